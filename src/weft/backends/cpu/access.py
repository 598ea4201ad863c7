"""Moving lanes between memory and vectors: the cheapest instruction for an address form and a mask.

`load_lanes` and `store_lanes` take a `Pointer` form, the number of lanes and a mask form, and choose:

    the same address everywhere       one scalar access
    consecutive addresses             one vector access, masked if need be
    a known pattern in a short window one masked vector access and a lane permutation (strides, reversals, duplicates)
    two halves that are each simpler  both halves, joined
    two rows, up to some lane and on  either row under a mask, where the processor has masks (`Split` in forms.py)
    anything else                     a gather or scatter

Where the processor has no instruction for a masked access (`Module.masked_bits`), LLVM makes a branch for each lane of
it. There it is a whole vector where the mask holds for all lanes, which is most often, and nothing where it holds for
none; a gather or scatter goes to a place of our own for the lanes that the mask leaves out. Stores are made so without
AVX-512 too (`Module.branches_at_masks`): a quarter of the vectors is beyond a row of 768 that is a tile of 1,024, and
the last is seldom in part.
"""

from __future__ import annotations

from weft.backends.cpu.forms import Affine, Form, Pointer, Split, Uniform, Varying, is_const, vector_of
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, I64, PTR, Type, Value, const, const_lanes, mangle, vec

WINDOW = 64  # the widest pattern, in elements, served by one masked access and a permutation


def _scalar_address(f: Function, base: Value, offset: Value, elem: Type) -> Value:
    return base if offset.name == "0" else f.gep(elem, base, offset)


def _is_true(mask: Form | None) -> bool:
    return mask is None or (isinstance(mask, Uniform) and mask.value.name == "true")


def _slice_form(f: Function, form: Form, start: int, count: int, lanes: int) -> Form:
    """The lanes start..start+count-1 of a form."""
    if isinstance(form, Uniform):
        return form
    if isinstance(form, Split) or (isinstance(form, Affine) and form.exact is not None):
        form = Varying(vector_of(f, form, lanes))
    if isinstance(form, Affine):
        terms = tuple((s, n[start : start + count]) for s, n in form.terms)
        first = tuple((s, n[0]) for s, n in terms)
        base = form.base
        for scale, number in first:  # fold a constant part into the base so that halves look alike
            if number:
                step = const(base.type, number) if scale is None else f.mul(scale, const(scale.type, number))
                base = f.add(base, step)
        rest = tuple((s, tuple(x - n[0] for x in n)) for s, n in terms)
        rest = tuple((s, n) for s, n in rest if any(n))
        return Affine(base, rest) if rest else Uniform(base)
    if isinstance(form, Pointer):
        offset = form.offset
        if isinstance(offset, Affine):
            offset = Affine(offset.base, offset.terms)
        return Pointer(form.base, _slice_form(f, offset, start, count, lanes), form.elem)
    if count == 1:
        return Uniform(f.extract(form.value, start))
    return Varying(f.shuffle(form.value, None, list(range(start, start + count))))


def _halves_help(pointer: Pointer, lanes: int) -> bool:
    """Whether each half of the lanes is consecutive or uniform though the whole is not."""
    offset = pointer.offset
    if not isinstance(offset, Affine) or lanes < 4:
        return False
    half = lanes // 2
    while half >= 2:
        ok = True
        for start in range(0, lanes, half):
            moving = [
                (s, tuple(x - n[start] for x in n[start : start + half]))
                for s, n in offset.terms
                if any(x != n[start] for x in n[start : start + half])
            ]
            if moving and not (len(moving) == 1 and moving[0][0] is None and moving[0][1] == tuple(range(half))):
                ok = False
        if ok:
            return True
        half //= 2
        if lanes // half > 8:
            break
    return False


def load_lanes(f: Function, elem: Type, pointer: Pointer, lanes: int, mask: Form | None, other: Form | None) -> Form:
    """Load one element for each lane; where `mask` is false the lane is `other` (zero if absent) and memory is not
    touched.
    """
    offset = pointer.offset
    if _is_true(mask):
        mask = None
    if isinstance(mask, Uniform) and mask.value.name == "false":
        return other if other is not None else Uniform(const(elem, 0))
    if isinstance(offset, Uniform):
        return _load_uniform(f, elem, _scalar_address(f, pointer.base, offset.value, pointer.elem), lanes, mask, other)
    type = elem.with_lanes(lanes)
    if isinstance(offset, Split) and _is_in_rows(f, type, offset):
        return _load_from_rows(f, elem, pointer, lanes, mask, other, offset)
    constant = offset.constant_lanes if isinstance(offset, Affine) else None
    if isinstance(offset, Affine) and constant is not None:
        address = _scalar_address(f, pointer.base, offset.base, pointer.elem)
        if constant == tuple(range(lanes)):
            passthru = _other_vector(f, other, type)
            if isinstance(mask, Uniform) and not _has_masks(f, type):  # all lanes or none
                align = max(1, elem.bits // 8)
                either = f.if_else(mask.value, lambda: [f.load(type, address, align)], lambda: [passthru])
                return Varying(either[0])
            some = mask.value if isinstance(mask, Uniform) else None
            return Varying(load_vector(f, type, address, _mask_vector(f, mask, lanes), passthru, some))
        low, high = min(constant), max(constant)
        if high - low < WINDOW and (mask is None or isinstance(mask, Uniform) or len(set(constant)) == lanes):
            return Varying(_load_window(f, type, address, constant, low, high, mask, other))
    if _halves_help(pointer, lanes):
        half = lanes // 2
        parts = []
        for start in (0, half):
            sub = load_lanes(
                f,
                elem,
                _as_pointer(_slice_form(f, pointer, start, half, lanes)),
                half,
                None if mask is None else _slice_form(f, mask, start, half, lanes),
                None if other is None else _slice_form(f, other, start, half, lanes),
            )
            parts.append(vector_of(f, sub, half))
        return Varying(f.shuffle(parts[0], parts[1], list(range(lanes))))
    bits, passthru = _mask_vector(f, mask, lanes), _other_vector(f, other, type)
    if elem.bits < 32 and pointer.elem.bits <= elem.bits and f.module.gathers_words:
        return Varying(_gather_narrow(f, type, pointer, bits or const(vec("i1", lanes), 1), passthru))
    pointers = vector_of(f, pointer, lanes)
    if bits is None or _has_masks(f, type):
        return Varying(_gather(f, type, pointers, bits or const(vec("i1", lanes), 1), passthru))
    everywhere = f.select(bits, pointers, f.splat(_zeros(f), lanes))
    loaded = _gather(f, type, everywhere, const(bits.type, 1), passthru)
    return Varying(f.select(bits, loaded, passthru))


def _is_in_rows(f: Function, type: Type, offset: Form) -> bool:
    """Whether the lanes before and after the end of a row are accessed by one instruction each."""
    if isinstance(offset, Split):
        return _is_in_rows(f, type, offset.first) and _is_in_rows(f, type, offset.second)
    if isinstance(offset, Affine):
        return _has_masks(f, type) and offset.constant_lanes is not None
    return isinstance(offset, Uniform)


def _under(f: Function, side: Value, mask: Form | None, lanes: int) -> Form:
    return Varying(side if mask is None else f.and_(side, vector_of(f, mask, lanes)))


def _load_from_rows(
    f: Function, elem: Type, pointer: Pointer, lanes: int, mask: Form | None, other: Form | None, offset: Split
) -> Form:
    """Load from a row, and from the next into the lanes beyond the end of it."""
    rows = offset.map(lambda side: Pointer(pointer.base, side, pointer.elem))
    if mask is None and isinstance(offset.first, Uniform) and isinstance(offset.second, Uniform):
        return rows.map(lambda row: load_lanes(f, elem, _as_pointer(row), lanes, None, None))
    beyond = f.xor(offset.in_first, const(offset.in_first.type, 1))
    first = load_lanes(f, elem, _as_pointer(rows.first), lanes, _under(f, offset.in_first, mask, lanes), other)
    return load_lanes(f, elem, _as_pointer(rows.second), lanes, _under(f, beyond, mask, lanes), first)


def _has_masks(f: Function, type: Type) -> bool:
    """Whether masked accesses to vectors of this type are instructions."""
    return type.bits in f.module.masked_bits


def _all_hold(f: Function, bits: Value) -> Value:
    return f.call(f"llvm.vector.reduce.and.v{bits.type.lanes}i1", I1, [bits])


def _any_holds(f: Function, bits: Value) -> Value:
    return f.call(f"llvm.vector.reduce.or.v{bits.type.lanes}i1", I1, [bits])


def _gather_narrow(f: Function, type: Type, pointer: Pointer, bits: Value, passthru: Value) -> Value:
    """Gather elements of 8 or 16 bits as the aligned words that they lie in, which are in memory where they are."""
    offset = vector_of(f, pointer.offset, type.lanes)
    if offset.type.bits < 32:
        offset = f.cast("sext", offset, type.with_elem("i32"))
    unit = pointer.elem.bits  # in which offsets count
    shift = (32 // unit).bit_length() - 1
    low = const(offset.type, (1 << shift) - 1)
    start = f.cast("ptrtoint", pointer.base, I64)
    over = f.and_(start, const(I64, 3))
    aligned = f.gep(vec("i8", 0), pointer.base, f.sub(const(I64, 0), over))
    over = f.lshr(over, const(I64, (unit // 8).bit_length() - 1))
    first = f.splat(f.cast("trunc", over, offset.type.scalar), type.lanes)
    within = f.add(f.and_(offset, low), first)
    word = f.add(f.ashr(offset, const(offset.type, shift)), f.lshr(within, const(offset.type, shift)))
    words = type.with_elem("i32")
    loaded = _gather(f, words, f.gep(words, aligned, word), bits, const(words, 0))
    amount = f.mul(f.and_(within, low), const(offset.type, unit))
    amount = f.cast("trunc", amount, words)
    narrow = type.with_elem(f"i{type.bits}")
    found = f.bitcast(f.cast("trunc", f.lshr(loaded, amount), narrow), type)
    return found if passthru.name == "zeroinitializer" and is_const(bits) else f.select(bits, found, passthru)


def _gather(f: Function, type: Type, pointers: Value, bits: Value, passthru: Value) -> Value:
    name = f"llvm.masked.gather.{mangle(type)}.{mangle(pointers.type)}"
    f.module.declare(name, type, [pointers.type, bits.type, type])
    align = max(1, type.bits // 8)
    return f.emit(type, f"call {type} @{name}({pointers.type} align {align} {pointers.name}, {bits}, {passthru})")


def _as_pointer(form: Form) -> Pointer:
    assert isinstance(form, Pointer)
    return form


def _mask_vector(f: Function, mask: Form | None, lanes: int) -> Value | None:
    return None if mask is None else vector_of(f, mask, lanes)


def _other_vector(f: Function, other: Form | None, type: Type) -> Value:
    return const(type, 0) if other is None else vector_of(f, other, type.lanes)


def _load_uniform(f: Function, elem: Type, address: Value, lanes: int, mask: Form | None, other: Form | None) -> Form:
    if mask is None:
        return Uniform(f.load(elem, address, max(1, elem.bits // 8)))
    if isinstance(mask, (Varying, Affine)):
        bits = vector_of(f, mask, lanes)
        any_lane = f.call(f"llvm.vector.reduce.or.v{lanes}i1", I1, [bits])
        loaded = _guarded(f, elem, address, any_lane, None)
        type = elem.with_lanes(lanes)
        return Varying(f.select(bits, f.splat(loaded, lanes), _other_vector(f, other, type)))
    assert isinstance(mask, Uniform)
    if other is None or isinstance(other, Uniform):
        return Uniform(_guarded(f, elem, address, mask.value, other.value if other is not None else None))
    loaded = _guarded(f, elem, address, mask.value, None)
    return Varying(f.select(f.splat(mask.value, lanes), f.splat(loaded, lanes), vector_of(f, other, lanes)))


def _guarded(f: Function, elem: Type, address: Value, cond: Value, other: Value | None) -> Value:
    """A scalar load behind a branch-free guard: where `cond` is false a zero of our own is read instead."""
    loaded = f.load(elem, f.select(cond, address, _zeros(f)), max(1, elem.bits // 8))
    return loaded if other is None else f.select(cond, loaded, other)


def _zeros(f: Function) -> Value:
    """The address of eight bytes of zeros."""
    zeros = f.alloca(vec("i64", 0), 1, 8)
    f.store(const(I64, 0), zeros)
    return zeros


def load_vector(
    f: Function,
    type: Type,
    address: Value,
    bits: Value | None,
    passthru: Value | None = None,
    some: Value | None = None,
) -> Value:
    """Consecutive elements, or only those of some lanes, and what is passed through, or zero, in the others. `some`:
    whether there are such lanes, where that is known.

    A masked instruction whose lanes lie in a page that is not there takes hundreds of cycles, even if the mask has none
    of them. Rows that tiles go far beyond, and the last rows of an array, have many such: so it goes to a place of our
    own where no lane is wanted.
    """
    passthru = const(type, 0) if passthru is None else passthru
    align = max(1, type.bits // 8)
    if bits is None:
        return f.load(type, address, align)
    name = f"llvm.masked.load.{mangle(type)}.p0"
    f.module.declare(name, type, [PTR, bits.type, type])

    def masked() -> Value:
        return f.emit(type, f"call {type} @{name}(ptr align {align} {address.name}, {bits}, {passthru})")

    if is_const(bits):
        return masked()
    if _has_masks(f, type):
        somewhere = f.alloca(vec("i64", 0), 8)
        address = f.select(_any_holds(f, bits) if some is None else some, address, somewhere)
        return masked()

    def partly() -> list[Value]:
        return f.if_else(_any_holds(f, bits), lambda: [masked()], lambda: [passthru])

    return f.if_else(_all_hold(f, bits), lambda: [f.load(type, address, align)], partly)[0]


def _window_lanes(span: int) -> int:
    return 1 << (span - 1).bit_length()


def _window_mask(f: Function, where: dict[int, int], width: int, mask: Form | None, lanes: int) -> Value | None:
    """Which elements of a window are accessed, by lanes at places in it, under a mask of the lanes; None: all."""
    touched = const_lanes(vec("i1", width), [int(i in where) for i in range(width)])
    if mask is None:
        return None if len(where) == width else touched
    if isinstance(mask, Uniform):
        return f.and_(f.splat(mask.value, width), touched)
    bits = vector_of(f, mask, lanes)
    return f.shuffle(bits, const(bits.type, 0), [where.get(i, lanes) for i in range(width)])


def _load_window(
    f: Function,
    type: Type,
    address: Value,
    constant: tuple[int, ...],
    low: int,
    high: int,
    mask: Form | None,
    other: Form | None,
) -> Value:
    width = _window_lanes(high - low + 1)
    window = type.with_lanes(width)
    start = address if low == 0 else f.gep(type, address, const(I64, low))
    bits = _window_mask(f, {c - low: lane for lane, c in enumerate(constant)}, width, mask, type.lanes)
    loaded = load_vector(f, window, start, bits, const(window, 0))
    result = f.shuffle(loaded, None, [c - low for c in constant])
    if mask is None or other is None:
        return result
    return f.select(vector_of(f, mask, type.lanes), result, vector_of(f, other, type.lanes))


def store_lanes(
    f: Function, elem: Type, pointer: Pointer, lanes: int, value: Form, mask: Form | None, streaming: int = 0
) -> None:
    """Store one element for each lane where `mask` holds; of several lanes with one address the highest wins.

    `streaming`: the alignment in bytes of a whole vector that nobody reads soon, so that it may go around the cache;
    otherwise 0.
    """
    offset = pointer.offset
    if _is_true(mask):
        mask = None
    if isinstance(mask, Uniform) and mask.value.name == "false":
        return
    if isinstance(offset, Uniform):
        _store_uniform(f, elem, _scalar_address(f, pointer.base, offset.value, pointer.elem), lanes, value, mask)
        return
    type = elem.with_lanes(lanes)
    if isinstance(offset, Split) and _is_in_rows(f, type, offset):
        beyond = f.xor(offset.in_first, const(offset.in_first.type, 1))
        for side, there in ((offset.in_first, offset.first), (beyond, offset.second)):
            row = Pointer(pointer.base, there, pointer.elem)
            store_lanes(f, elem, row, lanes, value, _under(f, side, mask, lanes))
        return
    constant = offset.constant_lanes if isinstance(offset, Affine) else None
    if isinstance(offset, Affine) and constant is not None:
        address = _scalar_address(f, pointer.base, offset.base, pointer.elem)
        if constant == tuple(range(lanes)):
            if streaming and mask is None:
                data = vector_of(f, value, lanes)
                f.module.use_nontemporal()
                f.do(f"store {data}, {address}, align {streaming}, !nontemporal !0")
                return
            data = vector_of(f, value, lanes)
            if isinstance(mask, Uniform) and not _has_masks(f, type):
                f.when(mask.value, lambda: f.store(data, address, max(1, elem.bits // 8)))
                return
            _store_vector(f, data, address, _mask_vector(f, mask, lanes))
            return
        low, high = min(constant), max(constant)
        if high - low < WINDOW and len(set(constant)) == lanes:
            width = _window_lanes(high - low + 1)
            where = {c - low: lane for lane, c in enumerate(constant)}
            data = f.shuffle(_opaque(f, vector_of(f, value, lanes)), None, [where.get(i, -1) for i in range(width)])
            bits = _window_mask(f, where, width, mask, lanes)
            start = address if low == 0 else f.gep(type, address, const(I64, low))
            _store_vector(f, data, start, bits)
            return
    if _halves_help(pointer, lanes):
        half = lanes // 2
        for start_lane in (0, half):
            store_lanes(
                f,
                elem,
                _as_pointer(_slice_form(f, pointer, start_lane, half, lanes)),
                half,
                _slice_form(f, value, start_lane, half, lanes),
                None if mask is None else _slice_form(f, mask, start_lane, half, lanes),
            )
        return
    pointers = vector_of(f, pointer, lanes)
    bits = _mask_vector(f, mask, lanes) or const(vec("i1", lanes), 1)
    name = f"llvm.masked.scatter.{mangle(type)}.{mangle(pointers.type)}"
    data = vector_of(f, value, lanes)
    if not is_const(bits) and not _has_masks(f, data.type):  # which of two lanes with one address stays: the last
        spare = f.alloca(vec("i64", 0), 1, 8)
        pointers, bits = f.select(bits, pointers, f.splat(spare, lanes)), const(bits.type, 1)
    f.module.declare(name, vec("void", 0), [data.type, pointers.type, bits.type])
    f.do(f"call void @{name}({data}, {pointers.type} align {max(1, elem.bits // 8)} {pointers.name}, {bits})")


def _store_vector(f: Function, data: Value, address: Value, bits: Value | None) -> None:
    align = max(1, data.type.bits // 8)
    if bits is None:
        f.store(data, address, align)
        return
    if is_const(bits) or (_has_masks(f, data.type) and not f.module.branches_at_masks):
        _masked(f, data, address, bits)
        return

    def whole() -> list[Value]:
        f.store(data, address, align)
        return []

    def partly() -> list[Value]:
        f.when(_any_holds(f, bits), lambda: _masked(f, data, address, bits))
        return []

    f.if_else(_all_hold(f, bits), whole, partly)


def _masked(f: Function, data: Value, address: Value, bits: Value) -> None:
    """Store the lanes that a mask has."""
    align = max(1, data.type.bits // 8)
    if data.type.bits * data.type.lanes == 16:  # two bytes: as four, see _opaque
        data = f.shuffle(data, None, [0, 1, -1, -1])
        bits = f.shuffle(bits, const(bits.type, 0), [0, 1, 2, 2])
    data = _opaque(f, data)
    name = f"llvm.masked.store.{mangle(data.type)}.p0"
    f.module.declare(name, vec("void", 0), [data.type, PTR, bits.type])
    f.do(f"call void @{name}({data}, ptr align {align} {address.name}, {bits})")


def _opaque(f: Function, data: Value) -> Value:
    """The same integers, of which LLVM cannot see how they were computed (LLVM 22, AVX-512).

    It would make a truncation and a masked store one, and where the mask turns out to be a single known lane it then
    stores as many bytes as were there before truncation, over what lies beyond. And where a sum with constants is
    spread over 64 bytes with gaps, it takes the sum before and behind the shuffle in turns, without end.
    """
    size = data.type.bits * data.type.lanes
    if data.type.is_float or data.type.bits > 32 or size % 32:
        return data
    floats = vec("float", size // 32 if size > 32 else 0)
    fenced = f.call(f"llvm.arithmetic.fence.{mangle(floats)}", floats, [f.bitcast(data, floats)])
    return f.bitcast(fenced, data.type)


def _store_uniform(f: Function, elem: Type, address: Value, lanes: int, value: Form, mask: Form | None) -> None:
    align = max(1, elem.bits // 8)
    if isinstance(mask, (Varying, Affine)) and lanes:
        bits = vector_of(f, mask, lanes)
        whole = f.bitcast(bits, vec(f"i{lanes}", 0))
        any_lane = f.icmp("ne", whole, const(whole.type, 0))
        leading = f.call(f"llvm.ctlz.i{lanes}", whole.type, [whole, const(I1, 0)])
        last = f.sub(const(whole.type, lanes - 1), leading)
        if isinstance(value, Uniform):
            chosen = value.value
        else:
            last = f.select(any_lane, last, const(whole.type, 0))
            chosen = f.extract(vector_of(f, value, lanes), last)
        _store_if(f, chosen, address, any_lane, align)
        return
    scalar = value.value if isinstance(value, Uniform) else f.extract(vector_of(f, value, lanes), lanes - 1)
    if mask is None:
        f.store(scalar, address, align)
    else:
        assert isinstance(mask, Uniform)
        _store_if(f, scalar, address, mask.value, align)


def _store_if(f: Function, value: Value, address: Value, cond: Value, align: int) -> None:
    if is_const(cond) and cond.name == "true":
        f.store(value, address, align)
        return
    f.when(cond, lambda: f.store(value, address, align))
