"""Products as calls, whose operands are vectors: those that are vectors already stay so.

    %v = load <8 x i16>, ptr %block                         a part of a 2D block, as an instruction takes it
    %d = call <8 x float> @dpas(..., <8 x i16> %v, ...)     and not eight elements, taken out and put in again
    %t = phi <8 x float> [ %zero, %entry ], [ %d, %body ]   so do sums that loops carry

What only products take, and loops and branches that hand it on whole, is never taken apart. Without that, two of three
lines of a matmul would be `insertelement` and `extractelement`, which take LLVM and the device's compiler their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.ir.lane import LaneOp, Value
from weft.targets.instruction import Instruction
from weft.targets.table import instruction

from ..gpu.calls import packed, unpacked
from ..gpu.emitter import BITS, CONVERGENT_PURE, Emitter, Part, Register
from ..gpu.groups import together

MOVES = ("rename", "join")
"""Operations that write nothing: they say which registers are meant."""
ZEROS = {"float": "0x0000000000000000", "i32": "0"}
"""How zeros are spelled, of the elements that sums begin with."""
WORD = 32
"""Bits of one."""
LOADED = 4
"""Words of the longest access."""
LARGEST = 16
"""Elements of SPIR-V's longest vectors."""


def whole(value: Value) -> int:
    """How many neighbouring registers are the result of one product, in its order; 1 where not all of them are."""
    op = value.op
    if op is not None and op.name in ("for", "if"):  # as it carries it
        return whole(op.regions[0].ops[-1].operands[op.results.index(value)])
    count = together(value)
    return count if count <= LARGEST and count & count - 1 == 0 else 1


def handed_on(op: LaneOp) -> Iterator[tuple[LaneOp, int, Sequence[Value]]]:
    """The operands, of an operation, with which a loop begins and a branch ends, that are carried whole as what is
    handed on in their place is; and what they are there and behind it."""
    if op.name == "for":
        end = op.regions[0].ops[-1]
        for i, last in enumerate(end.operands):
            if (count := whole(last)) > 1:
                yield end, i, (op.regions[0].arguments[i + 1], op.results[i])
                if whole(op.operands[i + 3]) == count:
                    yield op, i + 3, ()
    elif op.name == "if" and op.results:
        ends = [region.ops[-1] for region in op.regions]
        for i, last in enumerate(ends[0].operands):
            count = whole(last)
            yield from ((end, i, (op.results[i],)) for end in ends if count > 1 and whole(end.operands[i]) == count)


class Vectors:
    """The vectors of one program, by the registers that are their elements."""

    def __init__(self, e: Emitter) -> None:
        self.of: dict[tuple[str, tuple[Register, ...]], str] = {}
        self.inside: dict[Register, tuple[str, str, str, int, int]] = {}
        """Of elements that were not taken out: the vector, its type, that of an element, how many it has, which."""
        self.apart: set[Value] = set()
        """Values that something else takes."""
        for elem, zero in ZEROS.items():
            e.vectors |= {(f"<{n} x {elem}>", *[zero] * n): "zeroinitializer" for n in (2, 4, 8)}
        operations = list(e.program.body.walk())
        carried: set[Value] = set()
        kept: set[tuple[int, int]] = set()
        for op in operations:
            for end, i, values in handed_on(op):
                kept.add((id(end), i))
                carried.update(values)
        for op in reversed(operations):
            is_product = op.name == "instruction" and instruction(op.attrs["isa"]).products
            is_moved = op.name in MOVES and self.apart.isdisjoint(op.results)
            if op.name in ("for", "yield"):
                self.apart.update(value for i, value in enumerate(op.operands) if (id(op), i) not in kept)
            elif not is_product and not is_moved:
                self.apart.update(op.operands)
        e.whole = carried - self.apart

    def elements(self, e: Emitter, value: Value, name: str, type: str, count: int) -> list[Register]:
        """The elements of a vector that is a value or a part of it; they stay inside where only products take them."""
        elem = e.llvm[value.elem]
        if value in self.apart:
            elements = unpacked(e, name, type, elem, count)
        else:
            elements = [f"{name}.{i}" for i in range(count)]
            self.inside |= {r: (name, type, elem, count, i) for i, r in enumerate(elements)}
        self.of[type, tuple(elements)] = name
        if all(isinstance(x, str) for x in elements):
            e.vectors[type, *map(str, elements)] = name
        return elements

    def packed(self, e: Emitter, registers: Sequence[Register], elem: str, type: str) -> str:
        """Registers as one value of a type."""
        found = self.of.get((type, tuple(registers)))
        if found is None and all(isinstance(r, str) for r in registers):
            found = e.vectors.get((type, *map(str, registers)))
        if found is None and (words := words_of(registers)):
            found = _bits(e, words, type)
        return packed(e, [self._outside(e, r) for r in registers], elem, type) if found is None else found

    def _outside(self, e: Emitter, register: Register) -> Register:
        """A register that can be named: taken out of its vector, in another order than it has there."""
        if register not in self.inside:
            taken = e.inside.get(register) if isinstance(register, str) else None
            return register if taken is None else e.pure(taken)
        name, type, elem, count, i = self.inside[register]
        return unpacked(e, name, type, elem, count)[i]


def words_of(registers: Sequence[Register]) -> list[str]:
    """The words of 32 bits that registers are the elements of, all and in order; none where they are not."""
    words = []
    each = registers[0].count if isinstance(registers[0], Part) else 1
    for i in range(0, len(registers), each):
        parts = [r for r in registers[i : i + each] if isinstance(r, Part)]
        if len(parts) < each or BITS[parts[0].type] * each != WORD:
            return []
        if any((p.word, p.index, p.count) != (parts[0].word, k, each) for k, p in enumerate(parts)):
            return []
        words.append(parts[0].word)
    return words


def _bits(e: Emitter, words: Sequence[str], type: str) -> str:
    """Words as a value of a type: of the vectors that they were loaded in."""
    count = len(words)
    vector = f"<{count} x i32>"
    loaded = [e.vectors.get((f"<{LOADED} x i32>", *words[i : i + LOADED])) for i in range(0, count, LOADED)]
    if count == 2 * LOADED and None not in loaded:
        places = ", ".join(f"i32 {i}" for i in range(count))
        kind = f"<{LOADED} x i32>"
        whole = e.pure(f"shufflevector {kind} {loaded[0]}, {kind} {loaded[1]}, <{count} x i32> <{places}>")
    else:
        whole = words[0] if count == 1 else e.vector(words, vector)
    kind = "i32" if count == 1 else vector
    return whole if kind == type else e.pure(f"bitcast {kind} {whole} to {type}")


def write_product(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]], vectors: Vectors
) -> list[list[Register]]:
    """Write a product; the elements of its result."""
    given = {
        operand.name: (registers, e.llvm[value.elem])
        for operand, registers, value in zip(entry.operands, chunks, op.operands, strict=True)
    }
    arguments: list[tuple[str, str]] = []
    for type, what in entry.params["arguments"]:
        arguments.append((type, str(what) if isinstance(what, int) else vectors.packed(e, *given[what], type)))
    type, result = entry.params["returns"], op.results[0]
    made = e.ins(e.call(entry.text, type, arguments, CONVERGENT_PURE))
    return [vectors.elements(e, result, made, type, entry.results[0].count)]
