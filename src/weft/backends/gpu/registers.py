"""Where a thread is, registers under other names, and what lanes tell each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.lane import ELEMENT_BITS, LaneOp
from weft.targets.table import first_with, instruction

from .emitter import Emitter, Part, Register, Sum, emitter


def thread_index(e: Emitter) -> str:
    """The thread's number in the block, or in its partition: the lane in its low bits, the warp above."""
    thread = e.dialect.place(e, "thread", e.program.warps * e.program.lanes)
    if e.partition is None:
        return thread
    start, warps = e.partition
    name = e.early("sub i32", thread, str(start * e.program.lanes)) if start else thread
    e.largest[name] = (1 << (warps * e.program.lanes - 1).bit_length()) - 1
    return name


def warp_index(e: Emitter) -> str:
    """The warp's number in the block, or in its partition, in a form of which the assembler sees that it is uniform.

    What is computed from it can then be in uniform registers.
    """
    thread = thread_index(e)
    number = e.early("lshr i32", thread, str(e.program.lanes.bit_length() - 1))
    index = e.dialect.same(e, ("warp", e.partition), number)
    e.largest[index] = e.largest[thread] // e.program.lanes
    return index


@emitter("constant")
def _constant(e: Emitter, op: LaneOp) -> None:
    result = op.results[0]
    e.env[result] = [e.constant(result.elem, op.attrs["value"])] * result.count


@emitter("undefined")
def _undefined(e: Emitter, op: LaneOp) -> None:
    """What reads it is undefined; zeros, so that nothing else becomes so."""
    result = op.results[0]
    e.env[result] = [e.constant(result.elem, 0)] * result.count


@emitter("keep")
def _keep(e: Emitter, op: LaneOp) -> None:
    """No instruction, but LLVM takes it for one that reads them."""
    e.dialect.keep(e, [(e.llvm[v.elem], n) for v in op.operands for n in e.names(v)])


@emitter("program_id")
def _program_id(e: Emitter, op: LaneOp) -> None:
    axis = "xyz"[op.attrs["axis"]]
    if axis == "x" and e.walk is not None:
        e.env[op.results[0]] = [e.walk.number]
        return
    e.env[op.results[0]] = [e.dialect.place(e, f"program.{axis}")]


@emitter("num_programs")
def _num_programs(e: Emitter, op: LaneOp) -> None:
    axis = "xyz"[op.attrs["axis"]]
    if axis == "x" and e.walk is not None:
        e.env[op.results[0]] = [e.walk.count]
        return
    e.env[op.results[0]] = [e.dialect.place(e, f"programs.{axis}")]


def _spread(e: Emitter, index: str, bases: Sequence[int]) -> list[str]:
    """Terms whose xor is the linear function of an index: bits that move by one distance move together."""
    masks: dict[int, int] = {}
    for i, base in enumerate(bases):
        for o in range(base.bit_length()):
            if base >> o & 1:
                masks[o - i] = masks.get(o - i, 0) | 1 << i
    terms = []
    for distance, mask in sorted(masks.items()):
        term = e.early("and i32", index, str(mask))
        if distance:
            term = e.early(f"{'shl' if distance > 0 else 'lshr'} i32", term, str(abs(distance)))
        terms.append(term)
    return terms


@emitter("linear")
def _linear(e: Emitter, op: LaneOp) -> None:
    e.env[op.results[0]] = linear(e, op.attrs)


def linear(e: Emitter, attrs: Mapping[str, Any]) -> list[Register]:
    """The registers of a linear function of register, lane, warp and block."""
    warp_bits = e.program.lanes.bit_length() - 1
    lane = [*attrs["lane"], *[0] * (warp_bits - len(attrs["lane"]))]
    within, block = (*lane, *attrs["warp"]), attrs["block"]
    reached = 0
    terms: list[str] = []
    if attrs.get("uniform") and any(attrs["warp"]) and not any(lane):
        terms += _spread(e, warp_index(e), attrs["warp"])
    elif any(within):
        terms += _spread(e, thread_index(e), within)
    if any(block):
        terms += _spread(e, e.dialect.place(e, "rank", e.program.blocks), block)
    for base in (*within, *block):
        reached |= base
    moving = ""
    for term in terms:
        moving = e.early("xor i32", moving, term) if moving else term
    if moving:
        e.largest[moving] = (1 << reached.bit_length()) - 1
    return [_plus_bits(e, moving, reached, register) for register in attrs["registers"]]


def _plus_bits(e: Emitter, moving: str, reached: int, register: int) -> Register:
    """moving ^ register; what no bit of `moving` meets is as good as added."""
    if not moving:
        return Sum("", register, "i32")
    meeting = register & reached
    base = e.early("xor i32", moving, str(meeting)) if meeting else moving
    if meeting:
        e.largest[base] = e.largest[moving]
    return Sum(base, register & ~reached, "i32")


@emitter("rename")
def _rename(e: Emitter, op: LaneOp) -> None:
    registers = e.env[op.operands[0]]
    e.env[op.results[0]] = [registers[k] for k in op.attrs["table"]]


@emitter("join")
def _join(e: Emitter, op: LaneOp) -> None:
    e.env[op.results[0]] = [r for v in op.operands for r in e.env[v]]


@emitter("pack")
def _pack(e: Emitter, op: LaneOp) -> None:
    source, result = op.operands[0], op.results[0]
    registers, type = e.env[source], e.llvm[source.elem]
    each, bits = len(registers) // result.count, ELEMENT_BITS[result.elem]
    assert bits == each * ELEMENT_BITS[source.elem], op.name
    out: list[Register] = []
    for i in range(0, len(registers), each):
        run = registers[i : i + each]
        out += _run(run, e.llvm[result.elem]) or e.parts(e.word(run, type), e.llvm[result.elem], 1)
    e.env[result] = out


def _run(registers: Sequence[Register], type: str) -> list[Register] | None:
    """Neighbours in one larger word, as one element of it."""
    first, each = registers[0], len(registers)
    if not isinstance(first, Part) or first.count <= each or first.index % each:
        return None
    for i, r in enumerate(registers):
        if not isinstance(r, Part) or (r.word, r.index) != (first.word, first.index + i):
            return None
    return [Part(first.word, first.index // each, first.count // each, type)]


@emitter("unpack")
def _unpack(e: Emitter, op: LaneOp) -> None:
    source, result = op.operands[0], op.results[0]
    each = result.count // source.count
    if ELEMENT_BITS[source.elem] < 32 and all(isinstance(r, Part) for r in e.env[source]):
        e.env[result] = [r for p in e.env[source] if isinstance(p, Part) for r in _within(p, each, e.llvm[result.elem])]
        return
    words = [e.word([r], e.llvm[source.elem]) for r in e.env[source]]
    if ELEMENT_BITS[source.elem] == 64:
        type = e.llvm[result.elem]
        vector = f"<{each} x {type}>"
        wholes = [e.pure(f"bitcast i64 {w} to {vector}") for w in words]
        e.env[result] = [e.pure(f"extractelement {vector} {w}, i32 {i}") for w in wholes for i in range(each)]
        return
    e.env[result] = [r for w in words for r in e.parts(w, e.llvm[result.elem], each)]


def _within(part: Part, each: int, type: str) -> list[Register]:
    """The smaller elements of an element of a word."""
    return [Part(part.word, part.index * each + i, part.count * each, type) for i in range(each)]


@emitter("permute")
def _permute(e: Emitter, op: LaneOp) -> None:
    count = op.results[0].count
    operands = [[e.name(r) for r in e.wide(v, count)] for v in op.operands]
    e.env[op.results[0]] = [e.permuted(a, b, s) for a, b, s in zip(*operands, strict=True)]


# -- between lanes ----------------------------------------------------------------------------------------------------


def _through_words(e: Emitter, register: Register, type: str, lane: str, xor: bool) -> Register:
    """A register of any type from another lane, by words of 32 bits."""
    bits = {"i1": 1, "i8": 8}.get(type) or int(e.of_type(type, "").type.bits)
    if bits == 64:
        whole = e.pure(f"bitcast {type} {e.name(register)} to <2 x i32>")
        halves = [e.pure(f"extractelement <2 x i32> {whole}, i32 {i}") for i in (0, 1)]
        moved = [e.dialect.shuffle(e, h, lane, xor=xor) for h in halves]
        pair = e.ins(f"insertelement <2 x i32> poison, i32 {moved[0]}, i32 0")
        pair = e.ins(f"insertelement <2 x i32> {pair}, i32 {moved[1]}, i32 1")
        return e.ins(f"bitcast <2 x i32> {pair} to {type}")
    word = e.word([register], type)
    if bits < 32:
        word = e.early(f"zext i{bits}", word, to="i32")
    moved_word = e.dialect.shuffle(e, word, lane, xor=xor)
    if bits < 32:
        moved_word = e.ins(f"trunc i32 {moved_word} to i{bits}")
    return moved_word if type[0] == "i" else e.ins(f"bitcast i{bits} {moved_word} to {type}")


def _in_word(e: Emitter, register: Register, type: str) -> Register:
    """A half as that of a word: what moves and computes whole words has nothing to take out then."""
    if isinstance(register, Part):
        return register
    pair = e.pure(f"insertelement <2 x {type}> poison, {type} {e.name(register)}, i32 0")
    return Part(e.pure(f"bitcast <2 x {type}> {pair} to i32"), 0, 2, type)


@emitter("shuffle")
def _shuffle(e: Emitter, op: LaneOp) -> None:
    value, result = op.operands[0], op.results[0]
    type = e.llvm[value.elem]
    if e.of_type(type, "").type.bits == 16:
        e.env[value] = [_in_word(e, r, type) for r in e.env[value]]
    registers = e.env[value]
    xor = op.attrs["kind"] == "xor"
    if xor:
        masks = op.attrs["masks"]
        lanes = [str(m) for m in (masks if len(masks) == len(registers) else masks * len(registers))]
    else:
        lanes = [e.name(r) for r in e.wide(op.operands[1], result.count)]
    moved: dict[tuple[object, str], Register] = {}
    out: list[Register] = []
    for register, lane in zip(e.wide(value, result.count), lanes, strict=True):
        if xor and lane == "0":
            out.append(register)
            continue
        if isinstance(register, Part):  # both halves of a word mostly go the same way
            key = (register.word, lane)
            if key not in moved:
                bits = 16 if register.count * e.of_type(type, "").type.bits == 16 else 32
                word = register.word if bits == 32 else e.early("zext i16", register.word, to="i32")
                back = e.dialect.shuffle(e, word, lane, xor=xor)
                moved[key] = back if bits == 32 else e.ins(f"trunc i32 {back} to i16")
            together = moved[key]
            assert isinstance(together, str)
            out.append(Part(together, register.index, register.count, register.type))
            continue
        name = e.name(register)
        if (name, lane) not in moved:
            moved[name, lane] = _through_words(e, register, type, lane, xor)
        out.append(moved[name, lane])
    e.env[result] = out


@emitter("ballot")
def _ballot(e: Emitter, op: LaneOp) -> None:
    e.env[op.results[0]] = [e.dialect.ballot(e, n) for n in e.names(op.operands[0])]


@emitter("instruction")
def _instruction(e: Emitter, op: LaneOp) -> None:
    """As many instructions as the registers of the operands are for; an operand for one takes part in all."""
    entry = instruction(op.attrs["isa"])
    if not entry.works_on(e.program.machine):
        raise e.fail(op, f"the instruction `{entry.name}`", *first_with(entry.name))
    operands = [(e[v], o.count) for v, o in zip(op.operands, entry.operands, strict=True)]
    out: list[list[Register]] = [[] for _ in op.results]
    for i in range(max((len(registers) // count for registers, count in operands), default=1)):
        chunks = [r if len(r) == count else r[i * count : (i + 1) * count] for r, count in operands]
        for registers, words in zip(out, e.dialect.instruction(e, op, entry, chunks), strict=True):
            registers += words
    for value, registers in zip(op.results, out, strict=True):
        e.env[value] = registers[: value.count]


@emitter("zero", "clock", "elect")
def _given(e: Emitter, op: LaneOp) -> None:
    """A register that the dialect makes of nothing."""
    e.env[op.results[0]] = [getattr(e.dialect, op.name)(e)]


@emitter("barrier", "fence", "await", "assembly")
def _for_the_dialect(e: Emitter, op: LaneOp) -> None:
    getattr(e.dialect, {"await": "wait"}.get(op.name, op.name))(e, op)
