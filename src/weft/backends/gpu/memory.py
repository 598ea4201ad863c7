"""Loads, stores, atomics and asynchronous copies, as wide as the lane program says.

What has no mask goes through LLVM's own loads and stores, which it may combine and move; what has one is inline
assembly with a predicate:

    @%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1 + 16];

of which the results hold before what is to be there where the mask does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.lane import ELEMENT_BITS, LaneOp

from .emitter import BITS, CONVERGENT, LLVM, Emitter, Part, Register, Sum, emitter
from .registers import special

__all__ = ["CONSTRAINTS", "address_text"]

SPACES = {"global": 1, "shared": 3, "cluster": 7}
PTX_SPACES = {"global": "global", "shared": "shared", "cluster": "shared::cluster"}
CONSTRAINTS = {"i8": "h", "i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d"}
LARGEST_BYTES = 16
FIRST_WITH_POLICIES = 80
"""The first capability whose L2 cache is told what to keep; on others such hints are for the L1 cache alone."""


@dataclass(frozen=True)
class Shape:
    """How an access of `vector` elements is done: `words` of an LLVM type, each of `each` elements."""

    word: str
    words: int
    each: int
    bits: int


def _shape(elem: str, vector: int) -> list[Shape]:
    """The accesses that `vector` elements take, each of 16 bytes at most."""
    type = "i8" if elem == "i1" else LLVM[elem]
    bits = BITS[type]
    total = bits * vector
    if total > 8 * LARGEST_BYTES:
        most = 8 * LARGEST_BYTES // bits
        return _shape(elem, most) * (vector // most)
    if bits >= 32:
        return [Shape(type, vector, 1, bits)]
    size = min(32, total)
    return [Shape(f"i{size}", total // size, size // bits, size)]


def address_text(e: Emitter, register: Register, wide: bool) -> tuple[str, str, int]:
    """(type, operand, distance) of an address."""
    type = "i64" if wide else "i32"
    if isinstance(register, Sum):
        if not register.base:
            return type, str(register.offset), 0
        return type, register.base, register.offset
    return type, e.name(register), 0


def _pointer(e: Emitter, register: Register, space: str, more: int) -> str:
    """The address as a pointer of LLVM's."""
    type, base, offset = address_text(e, register, space == "global")
    pointer = f"ptr addrspace({SPACES[space]})"
    name = e.pure(f"inttoptr {type} {base} to {pointer}")
    if offset + more:
        name = e.pure(f"getelementptr i8, {pointer} {name}, {type} {offset + more}")
    return name


@dataclass(frozen=True)
class Hints:
    """What an access asks of the caches: modifiers as PTX spells them, and a register with a policy for L2."""

    text: str = ""
    policy: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)


def _hints(e: Emitter, op: LaneOp) -> Hints:
    """As the operation says it; a policy is of global memory."""
    attrs = op.attrs
    if attrs.get("volatile"):
        return Hints(".volatile")
    evict = attrs.get("evict")
    first = f".L1::{evict}" if evict else ""
    if attrs.get("cache"):  # PTX takes one or the other
        first = f".{attrs['cache']}"
    has_policies = evict != "no_allocate" and e.target.capability >= FIRST_WITH_POLICIES
    if evict and attrs["space"] == "global" and has_policies:
        return Hints(f"{first}.L2::cache_hint", _policy(e, evict))
    return Hints(first)


def _policy(e: Emitter, evict: str) -> str:
    """A register that says when what is accessed leaves L2."""
    return e.once(("policy", evict), f'call i64 asm "createpolicy.fractional.L2::{evict}.b64 $0, 1.0;", "=l"()')


def _suffix(shape: Shape) -> str:
    return f"{f'.v{shape.words}' if shape.words > 1 else ''}.b{shape.bits}"


def _braces(first: int, count: int) -> str:
    names = ", ".join(f"${first + i}" for i in range(count))
    return "{" + names + "}" if count > 1 else names


def _at(number: int, offset: int) -> str:
    return f"[${number} + {offset}]" if offset else f"[${number}]"


# -- loads ------------------------------------------------------------------------------------------------------------


@emitter("load")
def _load(e: Emitter, op: LaneOp) -> None:
    result, vector, space = op.results[0], op.attrs["vector"], op.attrs["space"]
    addresses = e.env[op.operands[0]]
    masked = op.attrs.get("masked", False)
    masks: Sequence[Register | None] = e.wide(op.operands[1], len(addresses)) if masked else [None] * len(addresses)
    others = e.wide(op.operands[2], result.count) if masked and len(op.operands) > 2 else None
    hints = _hints(e, op)
    loaded: dict[int, list[Register]] = {}
    turns = e.turns if space == "global" else None
    if turns is not None:
        e.asm(turns.take, "~{memory}", (), (), CONVERGENT)
    for done, i in enumerate(_upwards(addresses, space), 1):
        address, mask, at = addresses[i], masks[i], 0
        loaded[i] = []
        for shape in _shape(result.elem, vector):
            first, count = i * vector + at, shape.words * shape.each
            size = shape.words * shape.bits // 8
            more = at * shape.bits // shape.each // 8
            if mask in (None, "true") and not hints and space != "cluster":
                words: Sequence[Register] = _plain_load(e, address, space, more, shape, size)
            else:
                other = others[first : first + count] if others is not None else None
                words = _masked_load(e, op, address, mask, other, more, shape, hints)
            for word in words:
                loaded[i] += _elements(e, result.elem, word, shape)
            at += count
            if turns is not None and done == len(addresses) // 2:
                word = e.name(words[-1])
                word = word if shape.word == "i32" else e.ins(f"bitcast {shape.word} {word} to i32")
                e.asm(turns.hand_on, "r,~{memory}", (), [("i32", word)], CONVERGENT)
    e.env[result] = [register for i in range(len(addresses)) for register in loaded[i]]


def _upwards(addresses: Sequence[Register], space: str) -> Sequence[int]:
    """Addresses in the order in which they are accessed: those of global memory upwards, where they have one base.

    What lies in one line of the cache then comes together. The fragments of mma.sync have two rows in turn (0.96 of the
    time of one block that loads 128 x 64 f16 and stores them, on an H200).
    """
    offsets = [a.offset for a in addresses if isinstance(a, Sum) and a.base == getattr(addresses[0], "base", None)]
    if space != "global" or len(offsets) < len(addresses):
        return range(len(addresses))
    return sorted(range(len(addresses)), key=offsets.__getitem__)


def _elements(e: Emitter, elem: str, word: Register, shape: Shape) -> list[Register]:
    """The elements of a word that was loaded."""
    if elem != "i1" and isinstance(word, Part):
        return [word]
    word = e.name(word)
    if elem == "i1":
        parts = e.parts(word, "i8", shape.each)
        return [e.pure(f"icmp ne i8 {e.name(p)}, 0") for p in parts]
    if shape.bits >= 32 and shape.each == 1:
        return [word]
    return e.parts(word, LLVM[elem], shape.each)


def _plain_load(e: Emitter, address: Register, space: str, more: int, shape: Shape, size: int) -> list[str]:
    pointer = f"ptr addrspace({SPACES[space]}) {_pointer(e, address, space, more)}"
    if shape.words == 1:
        return [e.ins(f"load {shape.word}, {pointer}, align {size}")]
    type = f"<{shape.words} x {shape.word}>"
    whole = e.ins(f"load {type}, {pointer}, align {size}")
    return [e.ins(f"extractelement {type} {whole}, i32 {i}") for i in range(shape.words)]


def _masked_load(
    e: Emitter,
    op: LaneOp,
    address: Register,
    mask: Register | None,
    other: Sequence[Register] | None,
    more: int,
    shape: Shape,
    hints: Hints,
) -> list[Register]:
    """The words that are loaded; of single bytes the lowest parts of words of 32 bits, which computes best."""
    elem, space, n = op.results[0].elem, op.attrs["space"], shape.words
    type, base, offset = address_text(e, address, space == "global")
    small = shape.bits == 8
    word = "i32" if small else shape.word
    kind = CONSTRAINTS[word]
    arguments: list[tuple[str, str]] = []
    ties = ""
    if mask is not None:
        instead = _words(e, elem, other, shape) if other is not None else ["0" if word[0] == "i" else "0.0"] * n
        if small:
            instead = [e.pure(f"zext i8 {w} to i32") if w[0] == "%" else str(int(w) & 0xFF) for w in instead]
        arguments += [(word, w) for w in instead]
        ties = "".join(f",{i}" for i in range(n))
    start = n + len(arguments)
    arguments.append((type, base))
    predicate = ""
    if mask is not None:
        predicate = f"@${start + 1} "
        arguments.append(("i1", e.name(mask)))
    policy = f", ${n + len(arguments)}" if hints.policy else ""
    text = f"{predicate}ld{_placed(hints.text, PTX_SPACES[space])}{_suffix(shape)} {_braces(0, n)}, "
    text += f"{_at(start, offset + more)}{policy};"
    constraints = ",".join([f"={kind}"] * n) + ties + f",{'l' if type == 'i64' else 'r'}" + (",b" if predicate else "")
    if policy:
        arguments.append(("i64", hints.policy))
        constraints += ",l"
    found = e.asm(text, constraints, [word] * n, arguments)
    return [Part(w, 0, 4, "i8") for w in found] if small else list(found)


def _placed(modifiers: str, space: str) -> str:
    """`.volatile` comes before the space, all else after it."""
    return f"{modifiers}.{space}" if modifiers == ".volatile" else f".{space}{modifiers}"


def _words(e: Emitter, elem: str, registers: Sequence[Register], shape: Shape, is_masked: bool = False) -> list[str]:
    """Elements as the words of an access."""
    if elem == "i1":
        registers = [e.pure(f"zext i1 {e.name(r)} to i8") for r in registers]
        type = "i8"
    else:
        type = LLVM[elem]
    if shape.bits == 8 and is_masked:  # the upper bytes of what is stored do not matter
        return [e.lowest_byte(r) for r in registers]
    if shape.each == 1 and shape.word == type:
        return [e.name(r) for r in registers]
    return [e.word(registers[i : i + shape.each], type) for i in range(0, len(registers), shape.each)]


# -- stores -----------------------------------------------------------------------------------------------------------


@emitter("store")
def _store(e: Emitter, op: LaneOp) -> None:
    value, vector, space = op.operands[1], op.attrs["vector"], op.attrs["space"]
    addresses = e.env[op.operands[0]]
    values = e.wide(value, len(addresses) * vector)
    masked = op.attrs.get("masked", False)
    masks: Sequence[Register | None] = e.wide(op.operands[2], len(addresses)) if masked else [None] * len(addresses)
    hints = _hints(e, op)
    for i, (address, mask) in enumerate(zip(addresses, masks, strict=True)):
        at = 0
        for shape in _shape(value.elem, vector):
            first, count = i * vector + at, shape.words * shape.each
            more = at * shape.bits // shape.each // 8
            is_plain = mask in (None, "true") and not hints and space != "cluster"
            words = _words(e, value.elem, values[first : first + count], shape, not is_plain)
            if is_plain:
                _plain_store(e, address, space, more, shape, words)
            else:
                _masked_store(e, op, address, mask, more, shape, words, hints)
            at += count


def _plain_store(e: Emitter, address: Register, space: str, more: int, shape: Shape, words: list[str]) -> None:
    pointer = f"ptr addrspace({SPACES[space]}) {_pointer(e, address, space, more)}"
    size = shape.words * shape.bits // 8
    if shape.words == 1:
        e.do(f"store {shape.word} {words[0]}, {pointer}, align {size}")
        return
    type = f"<{shape.words} x {shape.word}>"
    whole = "poison"
    for i, word in enumerate(words):
        whole = e.ins(f"insertelement {type} {whole}, {shape.word} {word}, i32 {i}")
    e.do(f"store {type} {whole}, {pointer}, align {size}")


def _masked_store(
    e: Emitter,
    op: LaneOp,
    address: Register,
    mask: Register | None,
    more: int,
    shape: Shape,
    words: list[str],
    hints: Hints,
) -> None:
    space, n = op.attrs["space"], shape.words
    type, base, offset = address_text(e, address, space == "global")
    word = shape.word
    if shape.bits == 8:
        word = "i32"
    arguments = [(type, base), *((word, w) for w in words)]
    predicate = ""
    if mask is not None:
        predicate = f"@${n + 1} "
        arguments.append(("i1", e.name(mask)))
    policy = f", ${len(arguments)}" if hints.policy else ""
    text = f"{predicate}st{_placed(hints.text, PTX_SPACES[space])}{_suffix(shape)} {_at(0, offset + more)}, "
    text += f"{_braces(1, n)}{policy};"
    kinds = [("l" if type == "i64" else "r"), *[CONSTRAINTS[word]] * n, *(["b"] if predicate else [])]
    if policy:
        arguments.append(("i64", hints.policy))
        kinds.append("l")
    e.asm(text, ",".join([*kinds, "~{memory}"]), (), arguments)


# -- atomics ----------------------------------------------------------------------------------------------------------

INTEGER_KINDS = {
    "add": "add.u", "and": "and.b", "or": "or.b", "xor": "xor.b", "max": "max.s", "min": "min.s", "umax": "max.u",
    "umin": "min.u", "xchg": "exch.b", "exch": "exch.b",
}  # fmt: skip
FLOAT_ADDS = {"f32": "add.f32", "f64": "add.f64", "f16": "add.noftz.f16", "bf16": "add.noftz.bf16"}


def _atomic_name(e: Emitter, op: LaneOp, elem: str) -> str | None:
    """The operation and its type as PTX has them; None where there is no such instruction."""
    kind, bits = op.attrs["kind"], ELEMENT_BITS[elem]
    if kind in ("xchg", "exch"):
        return f"exch.b{bits}" if bits >= 32 else None
    if kind == "fadd" or (kind == "add" and elem not in ("i32", "i64")):
        if elem == "bf16" and e.target.capability < 90:
            if op.attrs.get("vector", 1) != 1:
                raise e.fail(op, "atomic additions of two bf16")
            return None
        return FLOAT_ADDS.get(elem)
    if elem in ("i32", "i64") and kind in INTEGER_KINDS:
        return f"{INTEGER_KINDS[kind]}{bits}"
    return None


def _ordered(op: LaneOp, *, swap: bool = False) -> str:
    """Where, as seen by whom and how ordered, in the order in which Triton writes it, whose users look for it."""
    order, scope = op.attrs.get("order", "acq_rel"), op.attrs.get("scope", "gpu")
    space = PTX_SPACES[op.attrs["space"]]
    return f".{space}.{order}.{scope}" if swap else f".{space}.{scope}.{order}"


@emitter("atomic")
def _atomic(e: Emitter, op: LaneOp) -> None:
    value = op.operands[1]
    addresses = e.env[op.operands[0]]
    vector = int(op.attrs.get("vector", 1))
    values = e.wide(value, len(addresses) * vector)
    masked = op.attrs.get("masked", len(op.operands) > 2)
    masks: Sequence[Register | None] = e.wide(op.operands[2], len(addresses)) if masked else [None] * len(addresses)
    if op.attrs["kind"] in ("load", "store"):
        e.env[op.results[0]] = [
            _ordered_access(e, op, value.elem, *access) for access in zip(addresses, values, masks, strict=True)
        ]
        return
    name = _atomic_name(e, op, value.elem)
    unused = not op.results or op.results[0] not in e.used
    out: list[Register] = []
    for i, (address, mask) in enumerate(zip(addresses, masks, strict=True)):
        new = values[i * vector : (i + 1) * vector]
        if name is None:
            out.append(_by_swapping(e, op, value.elem, address, new[0], mask))
        elif vector > 1 and e.target.capability >= 90:
            out += _vector_atomic(e, op, name, value.elem, address, new, mask)
        else:
            out += _one_atomic(e, op, name + "x2" * (vector == 2), value.elem, address, new, mask, unused)
    if op.results:
        e.env[op.results[0]] = out


def _ordered_access(
    e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
) -> Register:
    """`ld.acquire.gpu.global.b32`, `st.release.gpu.global.b32`: what is there; of a store nothing."""
    type, base, offset = address_text(e, address, op.attrs["space"] == "global")
    word, loads = _word_of(elem), op.attrs["kind"] == "load"
    kind, place = CONSTRAINTS[word], "l" if type == "i64" else "r"
    suffix = f".{op.attrs['order']}.{op.attrs['scope']}.{PTX_SPACES[op.attrs['space']]}.b{ELEMENT_BITS[elem]}"
    arguments, kinds = [(type, base)], [place]
    if loads and mask is not None:
        arguments, kinds = [(word, "0"), *arguments], ["0", *kinds]
    if not loads:
        given = e.name(new)
        arguments.append((word, given if word == LLVM[elem] else e.pure(f"zext {LLVM[elem]} {given} to {word}")))
        kinds.append(kind)
    if mask is not None:
        arguments.append(("i1", e.name(mask)))
        kinds.append("b")
    first = 1 if loads else 0
    at = first + (loads and mask is not None)
    predicate = f"@${first + len(kinds) - 1} " if mask is not None else ""
    if not loads:
        text = f"{predicate}st{suffix} {_at(at, offset)}, ${at + 1};"
        e.asm(text, ",".join([*kinds, "~{memory}"]), (), arguments)
        return e.constant(elem, 0)
    text = f"{predicate}ld{suffix} $0, {_at(at, offset)};"
    found = e.asm(text, ",".join([f"={kind}", *kinds, "~{memory}"]), [word], arguments)[0]
    return found if word == LLVM[elem] else e.pure(f"trunc {word} {found} to {LLVM[elem]}")


def _word_of(elem: str) -> str:
    bits = ELEMENT_BITS[elem]
    return LLVM[elem] if bits >= 32 else "i16"


def _one_atomic(
    e: Emitter,
    op: LaneOp,
    name: str,
    elem: str,
    address: Register,
    new: Sequence[Register],
    mask: Register | None,
    unused: bool,
) -> list[Register]:
    type, base, offset = address_text(e, address, op.attrs["space"] == "global")
    word = _word_of(elem) if len(new) == 1 else "i32"
    kind, place = CONSTRAINTS[word], "l" if type == "i64" else "r"
    one = isinstance(new[0], Sum) and not new[0].base and new[0].offset == 1
    if unused and one and name == "add.u32" and op.attrs["space"] == "cluster":  # as Triton writes it
        text, counted = f"red{_ordered(op)}.inc.u32 {_at(0, offset)}, -1;", [(type, base)]
        if mask is not None:
            text, counted = f"@$1 {text}", [*counted, ("i1", e.name(mask))]
        e.asm(text, ",".join([place, *(["b"] if mask is not None else []), "~{memory}"]), (), counted)
        return [e.constant(elem, 0)]
    given = e.name(new[0]) if word == LLVM[elem] else e.word(new, LLVM[elem])
    arguments, kinds = [(type, base), (word, given)], [place, kind]
    if mask is not None and not unused:
        arguments.insert(0, (word, "0" if word[0] == "i" else "0.0"))
        kinds.insert(0, "0")
    kinds.insert(0, f"={kind}")
    last = len(kinds) - 1
    predicate = ""
    if mask is not None:
        predicate = f"@${last + 1} "
        arguments.append(("i1", e.name(mask)))
        kinds.append("b")
    text = f"{predicate}atom{_ordered(op)}.{name} $0, {_at(last - 1, offset)}, ${last};"  # red, if $0 is not used
    found = e.asm(text, ",".join([*kinds, "~{memory}"]), [word], arguments)
    return [found[0]] if word == LLVM[elem] else list(e.parts(found[0], LLVM[elem], len(new)))


def _vector_atomic(
    e: Emitter, op: LaneOp, name: str, elem: str, address: Register, new: Sequence[Register], mask: Register | None
) -> list[Register]:
    """Several additions of one instruction, of a register each."""
    e.version = max(e.version, 81)
    type, base, offset = address_text(e, address, True)
    word, n = _word_of(elem), len(new)
    kind, place = CONSTRAINTS[word], "l" if type == "i64" else "r"
    given = [e.name(x) if word == LLVM[elem] else e.word([x], LLVM[elem]) for x in new]
    arguments, kinds, predicate = [(type, base), *((word, x) for x in given)], [place, *[kind] * n], ""
    start = n
    if mask is not None:
        zero = "0" if word[0] == "i" else "0.0"
        arguments, kinds, start = [*[(word, zero)] * n, *arguments], [*map(str, range(n)), *kinds], 2 * n
        predicate = f"@${start + 1 + n} "
        arguments.append(("i1", e.name(mask)))
        kinds.append("b")
    kinds = [*[f"={kind}"] * n, *kinds]
    what, _, of = name.rpartition(".")
    text = f"{predicate}atom{_ordered(op)}.{what}.v{n}.{of} {_braces(0, n)}, {_at(start, offset)}, "
    text += f"{_braces(start + 1, n)};"
    found = e.asm(text, ",".join([*kinds, "~{memory}"]), [word] * n, arguments)
    return [x if word == LLVM[elem] else e.parts(x, LLVM[elem], 1)[0] for x in found]


SWAPPED = {
    "fadd": "fadd", "add": "add", "and": "and", "or": "or", "xor": "xor", "xchg": "xchg", "exch": "xchg",
    "max": "max", "min": "min", "umax": "umax", "umin": "umin",
}  # fmt: skip


def _by_swapping(
    e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
) -> Register:
    """An atomic that PTX does not have: LLVM tries compare-and-swap until it holds."""
    kind = SWAPPED.get(op.attrs["kind"])
    if kind is None or op.attrs["space"] == "cluster":
        raise e.fail(op, f"atomic {op.attrs['kind']} of {elem}")
    if kind == "add" and elem[0] != "i":
        kind = "fadd"
    type, f = LLVM[elem], e.f
    zero = e.name(e.constant(elem, 0))
    pointer = f"ptr addrspace({SPACES[op.attrs['space']]}) {_pointer(e, address, op.attrs['space'], 0)}"
    given = e.name(new)
    scope = {"cta": 'syncscope("block") ', "gpu": 'syncscope("device") '}.get(op.attrs.get("scope", "gpu"), "")
    order = {"relaxed": "monotonic"}.get(op.attrs.get("order", "acq_rel"), op.attrs.get("order", "acq_rel"))
    mark = e.mark()
    before = f.block
    if mask is not None:
        inside, after = f.new_label("swap"), f.new_label("swapped")
        e.do(f"br i1 {e.name(mask)}, label %{inside}, label %{after}")
        f.start(inside)
    old = e.ins(f"atomicrmw {kind} {pointer}, {type} {given} {scope}{order}")
    if mask is not None:
        e.do(f"br label %{after}")
        f.start(after)
        old = e.ins(f"phi {type} [ {zero}, %{before} ], [ {old}, %{inside} ]")
    e.forget(mark)
    return old


@emitter("compare_and_swap")
def _compare_and_swap(e: Emitter, op: LaneOp) -> None:
    expected, value = op.operands[1], op.operands[2]
    elem, addresses = value.elem, e.env[op.operands[0]]
    bits = ELEMENT_BITS[elem]
    if bits < 16:
        raise e.fail(op, f"compare-and-swap of {elem}")
    word = f"i{bits}"
    kind = CONSTRAINTS[word]
    out: list[Register] = []
    masked = op.attrs.get("masked", False)
    masks: Sequence[Register | None] = e.wide(op.operands[3], len(addresses)) if masked else [None] * len(addresses)
    registers = zip(addresses, *(e.wide(v, len(addresses)) for v in (expected, value)), masks, strict=True)
    for address, old, new, mask in registers:
        type, base, offset = address_text(e, address, op.attrs["space"] == "global")
        kinds = [f"={kind}", "l" if type == "i64" else "r", kind, kind]
        arguments = [(type, base), (word, _bits(e, old, elem)), (word, _bits(e, new, elem))]
        predicate = ""
        if mask is not None:
            predicate = "@$5 "
            arguments += [(word, "0"), ("i1", e.name(mask))]
            kinds += ["0", "b"]
        text = f"{predicate}atom{_ordered(op, swap=True)}.cas.b{bits} $0, {_at(1, offset)}, $2, $3;"
        found = e.asm(text, ",".join([*kinds, "~{memory}"]), [word], arguments)
        type = LLVM[elem]
        out.append(found[0] if type == word else e.ins(f"bitcast {word} {found[0]} to {type}"))
    e.env[op.results[0]] = out


def _bits(e: Emitter, register: Register, elem: str) -> str:
    type, name = LLVM[elem], e.name(register)
    return name if type[0] == "i" else e.pure(f"bitcast {type} {name} to i{ELEMENT_BITS[elem]}")


# -- shared memory and asynchronous copies ----------------------------------------------------------------------------


@emitter("shared")
def _shared(e: Emitter, op: LaneOp) -> None:
    offset = e.program.shared[op.attrs["allocation"]].offset
    assert offset is not None, "memory has not been placed"
    base = e.pure("ptrtoint ptr addrspace(3) @shared_memory to i32")
    e.env[op.results[0]] = [Sum(base, offset, "i32")]


@emitter("remote")
def _remote(e: Emitter, op: LaneOp) -> None:
    count = op.results[0].count
    pairs = zip(e.wide(op.operands[0], count), e.wide(op.operands[1], count), strict=True)
    text = "mapa.shared::cluster.u32 $0, $1, $2;"
    e.env[op.results[0]] = [
        e.asm(text, "=r,r,r", ["i32"], [("i32", e.name(a)), ("i32", e.name(b))], effects=False)[0] for a, b in pairs
    ]


@emitter("scratch")
def _scratch(e: Emitter, op: LaneOp) -> None:
    """The kernel's last parameter, and as many bytes further as the programs before this one have."""
    x, y, z = (special(e, f"ctaid.{axis}") for axis in "xyz")
    width, height = (special(e, f"nctaid.{axis}") for axis in "xy")
    number = e.pure(f"add i32 {e.pure(f'mul i32 {z}, {height}')}, {y}")
    number = e.pure(f"add i32 {e.pure(f'mul i32 {number}, {width}')}, {x}")
    distance = e.pure(f"mul i64 {e.pure(f'zext i32 {number} to i64')}, {e.program.scratch}")
    base = e.pure("ptrtoint ptr addrspace(1) %scratch to i64")
    e.env[op.results[0]] = [Sum(e.pure(f"add i64 {base}, {distance}"), int(op.attrs["offset"]), "i64")]


@emitter("copy_async")
def _copy_async(e: Emitter, op: LaneOp) -> None:
    size = op.attrs["bytes"]
    to = e.env[op.operands[0]]
    count = max(len(to), op.operands[1].count)
    masked = len(op.operands) > 2
    masks: Sequence[Register | None] = e.wide(op.operands[2], count) if masked else [None] * count
    kind = op.attrs.get("cache") or ("cg" if size == 16 else "ca")
    addresses = zip(e.wide(op.operands[0], count), e.wide(op.operands[1], count), masks, strict=True)
    for target, source, mask in addresses:
        _, there, offset = address_text(e, target, False)
        _, here, distance = address_text(e, source, True)
        text = f"cp.async.{kind}.shared.global {_at(0, offset)}, {_at(1, distance)}, {size}"
        arguments, constraints = [("i32", there), ("i64", here)], "r,l"
        if mask is not None:  # by a predicate for zeros a matmul of 128x128x64 in four warps was 6 % slower
            name = e.name(mask)
            arguments.append(("i32", e.pure(f"select i1 {name}, i32 {size}, i32 0")))
            text, constraints = f"{text}, $2", f"{constraints},r"
        e.asm(f"{text};", f"{constraints},~{{memory}}", (), arguments)


@emitter("commit_async")
def _commit_async(e: Emitter, op: LaneOp) -> None:
    e.asm("cp.async.commit_group;", "~{memory}", (), ())


@emitter("wait_async")
def _wait_async(e: Emitter, op: LaneOp) -> None:
    e.asm(f"cp.async.wait_group {int(op.attrs['pending'])};", "~{memory}", (), ())
