"""Entries of a vendor's instruction table as calls of LLVM's intrinsics, or of functions that stand for instructions.

`Instruction.text` is the name of what is called; `params["arguments"]` has what it is called with, in order: a type of
LLVM's, and the name of an operand or a number. `params["returns"]` is the type of what it gives; of several results it
has one each, and the intrinsic gives a structure.

    text="llvm.amdgcn.mfma.f32.16x16x16f16", returns="<4 x float>", arguments=(
        ("<4 x half>", "a"), ("<4 x half>", "b"), ("<4 x float>", "c"), ("i32", 0), ("i32", 0), ("i32", 0))

The elements of an operand are packed into its type whatever they are, the lowest bits first: four f8 are an i32, eight
an i64, sixteen a <4 x i32>.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from weft.ir.lane import LaneOp
from weft.targets.instruction import Instruction

from .emitter import BITS, CONVERGENT, CONVERGENT_PURE, Emitter, Register, Sum
from .memory import pointer_to

IMMEDIATE = "n"
"""The constraint of an operand that is a number in the instruction."""
LOCAL = "ptr addrspace(3)"
"""The type of an operand that is an address of shared memory."""


@lru_cache(maxsize=512)
def members(type: str) -> tuple[int, str]:
    """(how many, of which type) a type has.

    >>> members("<4 x half>"), members("i64")
    ((4, 'half'), (1, 'i64'))
    """
    if type[0] != "<":
        return 1, type
    count, _, member = type[1:-1].partition(" x ")
    return int(count), member


def write_instruction(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]], behind: str = ""
) -> list[list[Register]]:
    """Write one, with what stands `behind` the call; the elements of each of its results."""
    given = {
        operand.name: (registers, e.llvm[value.elem], operand.constraint == IMMEDIATE)
        for operand, registers, value in zip(entry.operands, chunks, op.operands, strict=True)
    }
    arguments: list[tuple[str, str]] = []
    for type, what in entry.params["arguments"]:
        if isinstance(what, int):
            arguments.append((type, str(what) if type != "i1" else str(bool(what)).lower()))
            continue
        registers, elem, is_immediate = given[what]
        if type == LOCAL:
            arguments.append((type, pointer_to(e, registers[0], "shared").removeprefix(f"{LOCAL} ")))
            continue
        if not is_immediate:
            arguments.append((type, packed(e, registers, elem, type)))
            continue
        number = registers[0]
        if not isinstance(number, Sum) or number.base:
            raise e.fail(op, f"`{entry.name}` with a `{what}` that is not known when compiling")
        arguments.append((type, str(number.offset)))
    returns: str | tuple[str, ...] = entry.params.get("returns", ())
    kinds = (returns,) if isinstance(returns, str) else tuple(returns)
    result = "void" if not kinds else kinds[0] if len(kinds) == 1 else f"{{ {', '.join(kinds)} }}"
    text = e.call(entry.text, result, arguments, CONVERGENT if entry.touches else CONVERGENT_PURE) + behind
    if not kinds:
        e.do(text)
        return []
    made = e.ins(text)
    parts = [made] if len(kinds) == 1 else [e.ins(f"extractvalue {result} {made}, {i}") for i in range(len(kinds))]
    return [
        unpacked(e, name, type, e.llvm[value.elem], operand.count)
        for name, type, value, operand in zip(parts, kinds, op.results, entry.results, strict=True)
    ]


def packed(e: Emitter, registers: Sequence[Register], elem: str, type: str) -> str:
    """Elements of one type as one value of another."""
    count, member = members(type)
    each = max(1, BITS[member] // BITS[elem])
    if member == elem or each == 1:
        names = [e.name(r) for r in registers]
        names = [n if member == elem else _as(e, n, elem, member) for n in names]
    elif each * BITS[elem] <= 32:
        parts = [registers[i : i + each] for i in range(0, len(registers), each)]  # fewer fill the lowest bits
        names = [_as(e, e.word(part, elem), f"i{len(part) * BITS[elem]}", member) for part in parts]
    else:
        names = [_wide(e, registers[i : i + each], elem, member) for i in range(0, len(registers), each)]
    if type == member:
        return names[0]
    whole = "poison"
    for i, name in enumerate(names[:count]):
        whole = e.pure(f"insertelement {type} {whole}, {member} {name}, i32 {i}")
    return whole


def _as(e: Emitter, name: str, source: str, target: str) -> str:
    """Bits as another type of the same size, or of a larger one."""
    if source == target:
        return name
    if BITS[source] < BITS[target]:
        return e.early(f"zext {source}", name, to=target)
    return e.pure(f"bitcast {source} {name} to {target}")


def _wide(e: Emitter, registers: Sequence[Register], elem: str, type: str) -> str:
    """Elements in a word of more than 32 bits."""
    each = 32 // BITS[elem]
    words = [e.word(registers[i : i + each], elem) for i in range(0, len(registers), each)]
    vector, whole = f"<{len(words)} x i32>", "poison"
    for i, word in enumerate(words):
        whole = e.pure(f"insertelement {vector} {whole}, i32 {word}, i32 {i}")
    return e.pure(f"bitcast {vector} {whole} to {type}")


def unpacked(e: Emitter, name: str, type: str, elem: str, count: int) -> list[Register]:
    """The elements in a value."""
    have, member = members(type)
    parts = [name] if type == member else [e.ins(f"extractelement {type} {name}, i32 {i}") for i in range(have)]
    if member == elem:
        return list(parts)
    each = BITS[member] // BITS[elem]
    if each == 1:
        return [e.pure(f"bitcast {member} {p} to {elem}") for p in parts]
    if BITS[member] == 64:
        halves = [e.pure(f"bitcast {member} {p} to <2 x i32>") for p in parts]
        parts = [e.pure(f"extractelement <2 x i32> {h}, i32 {i}") for h in halves for i in (0, 1)]
        each //= 2
    elif member[0] != "i":
        parts = [e.pure(f"bitcast {member} {p} to i{BITS[member]}") for p in parts]
    return [r for p in parts for r in e.parts(p, elem, each)][:count]
