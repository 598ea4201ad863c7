"""Entries of the target's instruction table as inline assembly: elements are packed into the registers that it wants.

What one thread does on behalf of its warp (operations on mbarriers but waiting, bulk copies) lane 0 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from weft.ir.lane import ELEMENT_BITS, LaneOp
from weft.targets.nvidia import Instruction, Operand, instruction

from .emitter import BITS, CONVERGENT, CONVERGENT_PURE, LLVM, Emitter, Register, Sum, emitter
from .memory import address_text
from .registers import lane_index

__all__: list[str] = []

WORDS = {"h": "i16", "r": "i32", "f": "float", "l": "i64", "d": "double", "n": "i32"}


@lru_cache(maxsize=512)
def _asm(name: str) -> tuple[str, str]:
    text, constraints = instruction(name).asm()
    return text, constraints


def _version(entry: Instruction) -> int:
    major, _, minor = entry.ptx.partition(".")
    return 10 * int(major) + int(minor)


@emitter("instruction")
def _instruction(e: Emitter, op: LaneOp) -> None:
    entry = instruction(op.attrs["isa"])
    if not entry.works_on(e.target.capability):
        raise e.fail(op, f"the instruction `{entry.name}`")
    e.version = max(e.version, _version(entry))
    repeats = max(
        (v.count // o.count for v, o in zip(op.operands, entry.operands, strict=True)),
        default=1,
    )
    given = [
        [_chunk(e[v], o.count, i, repeats) for i in range(repeats)]
        for v, o in zip(op.operands, entry.operands, strict=True)
    ]
    types = [LLVM[v.elem] for v in op.operands]
    out: list[list[Register]] = [[] for _ in op.results]
    for i in range(repeats):
        words = _one(e, op, entry, [g[i] for g in given], types)
        at = 0
        for k, operand in enumerate(entry.results):
            for word in words[at : at + operand.words]:
                out[k] += _elements(e, word, operand, op.results[k].elem)
            at += operand.words
    for value, registers in zip(op.results, out, strict=True):
        e.env[value] = registers[: value.count]


def _chunk(registers: list[Register], count: int, index: int, repeats: int) -> list[Register]:
    """The elements that one of several instructions takes; an operand for one takes part in all."""
    return registers[:count] if len(registers) == count else registers[index * count : (index + 1) * count]


def _one(e: Emitter, op: LaneOp, entry: Instruction, given: list[list[Register]], types: list[str]) -> list[str]:
    text, constraints = _asm(entry.name)
    arguments: list[tuple[str, str]] = []
    results = [WORDS[o.constraint] for o in entry.results for _ in range(o.words)]
    at = len(results)
    for operand, registers, type in zip(entry.operands, given, types, strict=True):
        if entry.touches and operand.name in ("address", "to", "source") and f"[${at}]" in text:
            kind, base, offset = address_text(e, registers[0], operand.constraint == "l")
            arguments.append((kind, base))
            text = text.replace(f"[${at}]", f"[${at} + {offset}]") if offset else text
        else:
            arguments += [(WORDS[operand.constraint], w) for w in _operand(e, op, operand, registers, type)]
        at += operand.words
    if _elected(entry):
        text, constraints = _by_lane_zero(e, text, constraints, arguments, at)
    attributes = CONVERGENT if entry.touches else CONVERGENT_PURE
    return e.asm(text, constraints, results, arguments, attributes, effects=bool(entry.touches))


def _elected(entry: Instruction) -> bool:
    return entry.touches == "bulk" or (entry.touches == "mbarrier" and "wait" not in entry.name)


def _by_lane_zero(
    e: Emitter, text: str, constraints: str, arguments: list[tuple[str, str]], at: int
) -> tuple[str, str]:
    arguments.append(("i1", e.pure(f"icmp eq i32 {lane_index(e)}, 0")))
    kinds = constraints.split(",")
    kinds.insert(at, "b")
    return f"@${at} {text}", ",".join(kinds)


def _operand(e: Emitter, op: LaneOp, operand: Operand, registers: Sequence[Register], type: str) -> list[str]:
    """The PTX registers of an operand."""
    word = WORDS[operand.constraint]
    if operand.constraint == "n":
        number = registers[0]
        if not isinstance(number, Sum) or number.base:
            raise e.fail(op, f"`{op.attrs['isa']}` with a `{operand.name}` that is not known when compiling")
        return [str(number.offset)]
    each = BITS[word] // BITS[type]
    if each > 1:
        return [e.word(registers[i : i + each], type) for i in range(0, len(registers), each)]
    if BITS[word] > BITS[type]:
        return [e.pure(f"zext {type} {e.name(r)} to {word}") for r in registers]
    return [n if type == word else e.pure(f"bitcast {type} {n} to {word}") for n in map(e.name, registers)]


def _elements(e: Emitter, word: str, operand: Operand, elem: str) -> list[Register]:
    """The elements in a PTX register of a result."""
    type, held = LLVM[elem], WORDS[operand.constraint]
    each = BITS[held] // ELEMENT_BITS[elem]
    if each > 1:
        return e.parts(word, type, each)
    return [word if held == type else e.pure(f"bitcast {held} {word} to {type}")]
