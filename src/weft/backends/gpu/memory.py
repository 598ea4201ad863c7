"""Loads, stores, atomics and asynchronous copies, as wide as the lane program says.

What has no mask goes through LLVM's own loads and stores, which it may combine and move; what has one, or asks
something of the caches, is the vendor's to write (`Access`).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.base.remarks import InstructionDeclined
from weft.ir.lane import LaneOp

from .emitter import BITS, Emitter, Part, Register, Sum, emitter
from .operands import Access, Shape

SPACES = {"global": 1, "shared": 3}
LARGEST_BYTES = 16


def _shape(e: Emitter, elem: str, vector: int) -> list[Shape]:
    """The accesses that `vector` elements take, each of 16 bytes at most."""
    type = "i8" if elem == "i1" else e.llvm[elem]
    bits = BITS[type]
    total = bits * vector
    if total > 8 * LARGEST_BYTES:
        most = 8 * LARGEST_BYTES // bits
        return _shape(e, elem, most) * (vector // most)
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


def pointer_to(e: Emitter, register: Register, space: str, more: int = 0) -> str:
    """The address as a pointer of LLVM's, with its type."""
    type, base, offset = address_text(e, register, space == "global")
    pointer = f"ptr addrspace({SPACES[space]})"
    if space == "shared" and e.dialect.counts_shared:
        place = e.name(Sum(base if base[0] == "%" else "", offset + more + (0 if base[0] == "%" else int(base)), type))
        return f"{pointer} {e.early(f'getelementptr i8, {pointer} @shared_memory, {type}', place)}"
    name = e.early(f"inttoptr {type}", base, to=pointer)
    if offset + more:
        name = e.early(f"getelementptr i8, {pointer}", name, f"{type} {offset + more}")
    return f"{pointer} {name}"


def instead_of(e: Emitter, access: Access, other: Sequence[Register] | None) -> list[str]:
    """The words that are there where a mask does not hold; of single bytes words of 32 bits, which compute best."""
    shape = access.shape
    zero = "0" if shape.word[0] == "i" else "0.0"
    words = _words(e, access.elem, other, shape) if other is not None else [zero] * shape.words
    if shape.bits > 8:
        return words
    return [e.early("zext i8", w, to="i32") if w[0] == "%" else str(int(w) & 0xFF) for w in words]


# -- loads ------------------------------------------------------------------------------------------------------------


@emitter("load")
def _load(e: Emitter, op: LaneOp) -> None:
    result, vector, space = op.results[0], op.attrs["vector"], op.attrs["space"]
    addresses = e.env[op.operands[0]]
    masked = op.attrs.get("masked", False)
    masks: Sequence[Register | None] = e.wide(op.operands[1], len(addresses)) if masked else [None] * len(addresses)
    others = e.wide(op.operands[2], result.count) if masked and len(op.operands) > 2 else None
    hints = e.dialect.hints(e, op)
    loaded: dict[int, list[Register]] = {}
    for i in _upwards(addresses, space):
        address, mask, at = addresses[i], masks[i], 0
        loaded[i] = []
        for shape in _shape(e, result.elem, vector):
            first, count = i * vector + at, shape.words * shape.each
            size = shape.words * shape.bits // 8
            more = at * shape.bits // shape.each // 8
            if mask in (None, "true") and not hints and space != "cluster":
                words: Sequence[Register] = _plain_load(e, address, space, more, shape, size)
            else:
                access = Access(op, result.elem, space, address, mask, more, shape)
                other = others[first : first + count] if others is not None else None
                words = e.dialect.masked_load(e, access, hints, other)
            for word in words:
                loaded[i] += _elements(e, result.elem, word, shape)
            at += count
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
        return [e.early("icmp ne i8", e.name(p), "0") for p in parts]
    if shape.bits >= 32 and shape.each == 1:
        return [word]
    return e.parts(word, e.llvm[elem], shape.each)


def _plain_load(e: Emitter, address: Register, space: str, more: int, shape: Shape, size: int) -> list[str]:
    pointer = pointer_to(e, address, space, more)
    if shape.words == 1:
        return [e.ins(f"load {shape.word}, {pointer}, align {size}")]
    type = f"<{shape.words} x {shape.word}>"
    whole = e.ins(f"load {type}, {pointer}, align {size}")
    return e.elements(whole, type, shape.words)


def _words(e: Emitter, elem: str, registers: Sequence[Register], shape: Shape, is_masked: bool = False) -> list[str]:
    """Elements as the words of an access."""
    if elem == "i1":
        registers = [e.early("zext i1", e.name(r), to="i8") for r in registers]
        type = "i8"
    else:
        type = e.llvm[elem]
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
    hints = e.dialect.hints(e, op)
    for i, (address, mask) in enumerate(zip(addresses, masks, strict=True)):
        at = 0
        for shape in _shape(e, value.elem, vector):
            first, count = i * vector + at, shape.words * shape.each
            more = at * shape.bits // shape.each // 8
            is_plain = mask in (None, "true") and not hints and space != "cluster"
            words = _words(e, value.elem, values[first : first + count], shape, not is_plain)
            if is_plain:
                _plain_store(e, address, space, more, shape, words)
            else:
                access = Access(op, value.elem, space, address, mask, more, shape)
                e.dialect.masked_store(e, access, hints, words)
            at += count


def _plain_store(e: Emitter, address: Register, space: str, more: int, shape: Shape, words: list[str]) -> None:
    pointer = pointer_to(e, address, space, more)
    size = shape.words * shape.bits // 8
    if shape.words == 1:
        e.do(f"store {shape.word} {words[0]}, {pointer}, align {size}")
        return
    type = f"<{shape.words} x {shape.word}>"
    whole = "poison"
    for i, word in enumerate(words):
        whole = e.ins(f"insertelement {type} {whole}, {shape.word} {word}, i32 {i}")
    e.do(f"store {type} {whole}, {pointer}, align {size}")


# -- atomics ----------------------------------------------------------------------------------------------------------


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
            e.dialect.ordered(e, op, value.elem, *access) for access in zip(addresses, values, masks, strict=True)
        ]
        return
    out: list[Register] = []
    for i, (address, mask) in enumerate(zip(addresses, masks, strict=True)):
        new = values[i * vector : (i + 1) * vector]
        results = e.dialect.atomic(e, op, value.elem, address, new, mask)
        out += [_by_swapping(e, op, value.elem, address, new[0], mask)] if results is None else results
    if op.results:
        e.env[op.results[0]] = out


SWAPPED = {
    "fadd": "fadd", "add": "add", "and": "and", "or": "or", "xor": "xor", "xchg": "xchg", "exch": "xchg",
    "max": "max", "min": "min", "umax": "umax", "umin": "umin",
}  # fmt: skip


def _by_swapping(
    e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
) -> Register:
    """An atomic that the vendor has no instruction for: LLVM tries compare-and-swap until it holds."""
    kind = SWAPPED.get(op.attrs["kind"])
    if kind is None or op.attrs["space"] == "cluster":
        raise e.fail(op, f"atomic {op.attrs['kind']} of {elem}")
    if kind == "add" and elem[0] != "i":
        kind = "fadd"
    why = f"{e.program.target} has none for {kind} of {elem}: each element is compared and swapped until it holds"
    e.program.remarks.add(InstructionDeclined(op.span, "an atomic instruction", why))
    type, f = e.llvm[elem], e.f
    zero = e.name(e.constant(elem, 0))
    pointer = pointer_to(e, address, op.attrs["space"])
    operand = e.name(new)
    scope = e.dialect.scopes.get(op.attrs.get("scope", "gpu"), "")
    scope = f'syncscope("{scope}") ' if scope else ""
    order = {"relaxed": "monotonic"}.get(op.attrs.get("order", "acq_rel"), op.attrs.get("order", "acq_rel"))
    mark = e.mark()
    before = f.block
    if mask is not None:
        inside, after = f.new_label("swap"), f.new_label("swapped")
        e.do(f"br i1 {e.name(mask)}, label %{inside}, label %{after}")
        f.start(inside)
    old = e.ins(f"atomicrmw {kind} {pointer}, {type} {operand} {scope}{order}")
    if mask is not None:
        e.do(f"br label %{after}")
        f.start(after)
        old = e.ins(f"phi {type} [ {zero}, %{before} ], [ {old}, %{inside} ]")
    e.forget(mark)
    return old


# -- shared memory and asynchronous copies ----------------------------------------------------------------------------


@emitter("shared")
def _shared(e: Emitter, op: LaneOp) -> None:
    offset = e.program.shared[op.attrs["allocation"]].offset
    assert offset is not None, "memory has not been placed"
    base = "" if e.dialect.counts_shared else e.early("ptrtoint ptr addrspace(3)", "@shared_memory", to="i32")
    e.env[op.results[0]] = [Sum(base, offset, "i32")]


@emitter("remote")
def _remote(e: Emitter, op: LaneOp) -> None:
    count = op.results[0].count
    pairs = zip(e.wide(op.operands[0], count), e.wide(op.operands[1], count), strict=True)
    e.env[op.results[0]] = [e.dialect.remote(e, e.name(a), e.name(b)) for a, b in pairs]


@emitter("scratch")
def _scratch(e: Emitter, op: LaneOp) -> None:
    """The kernel's last parameter, and as many bytes further as the programs before this one have."""
    x, y, z = (e.dialect.place(e, f"block.{axis}") for axis in "xyz")
    width, height = (e.dialect.place(e, f"blocks.{axis}") for axis in "xy")
    number = e.early("add i32", e.early("mul i32", z, height), y)
    number = e.early("add i32", e.early("mul i32", number, width), x)
    distance = e.early("mul i64", e.early("zext i32", number, to="i64"), str(e.program.scratch))
    base = e.early("ptrtoint ptr addrspace(1)", "%scratch", to="i64")
    e.env[op.results[0]] = [Sum(e.early("add i64", base, distance), int(op.attrs["offset"]), "i64")]


@emitter("compare_and_swap")
def _compare_and_swap(e: Emitter, op: LaneOp) -> None:
    addresses, masked = e.env[op.operands[0]], op.attrs.get("masked", False)
    old, new = (e.wide(v, len(addresses)) for v in op.operands[1:3])
    masks: Sequence[Register | None] = e.wide(op.operands[3], len(addresses)) if masked else [None] * len(addresses)
    accesses = zip(addresses, old, new, masks, strict=True)
    e.env[op.results[0]] = [e.dialect.compare_and_swap(e, op, *access) for access in accesses]


@emitter("copy_async")
def _copy(e: Emitter, op: LaneOp) -> None:
    count = max(len(e.env[op.operands[0]]), op.operands[1].count)
    target, source = (e.wide(v, count) for v in op.operands[:2])
    masks: Sequence[Register | None] = e.wide(op.operands[2], count) if len(op.operands) > 2 else [None] * count
    for registers in zip(target, source, masks, strict=True):
        e.dialect.copy(e, op, *registers)


@emitter("commit_async", "wait_async")
def _await_copies(e: Emitter, op: LaneOp) -> None:
    e.dialect.await_copies(e, op)
