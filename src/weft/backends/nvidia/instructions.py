"""Entries of the target's instruction table as inline assembly: elements are packed into the registers that it wants.

A wgmma reads and writes registers while the warp goes on. Whoever reads them waits for it first, and that the read
comes after the wait is said by tying the registers to the wait (`await`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from weft.ir.lane import ELEMENT_BITS, LaneOp
from weft.targets.nvidia import Instruction, Operand, instruction

from ..gpu.emitter import BITS, CONVERGENT, CONVERGENT_PURE, LLVM, Emitter, Register, Sum
from ..gpu.memory import address_text
from .memory import CONSTRAINTS

WORDS = {"h": "i16", "r": "i32", "f": "float", "l": "i64", "d": "double", "n": "i32", "b": "i1"}
IMMEDIATE = "scale"
"""The operand that is written as a number where it is one: whether a product adds to what there is."""


@lru_cache(maxsize=512)
def _asm(name: str) -> tuple[str, str]:
    text, constraints = instruction(name).asm()
    return text, constraints


def write_instruction(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
) -> list[list[Register]]:
    """Write one; the elements of each of its results."""
    words = iter(_words(e, op, entry, chunks, [LLVM[v.elem] for v in op.operands]))
    each = [[next(words) for _ in range(operand.words)] for operand in entry.results]
    return [
        [x for word in some for x in _elements(e, word, operand, value.elem)]
        for some, operand, value in zip(each, entry.results, op.results, strict=True)
    ]


def _words(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]], types: Sequence[str]
) -> list[str]:
    """The PTX registers of its results."""
    text, constraints = _asm(entry.name)
    arguments: list[tuple[str, str]] = []
    results = [WORDS[o.constraint] for o in entry.results for _ in range(o.words)]
    at = len(results)
    for operand, registers, type in zip(entry.operands, chunks, types, strict=True):
        if entry.touches and entry.is_address(operand.name):
            kind, base, offset = address_text(e, registers[0], operand.constraint == "l")
            arguments.append((kind, base))
            text = text.replace(f"[${at}]", f"[${at} + {offset}]") if offset else text
        elif operand.name == IMMEDIATE and isinstance(constant := registers[0], Sum) and not constant.base:
            arguments.append((WORDS[operand.constraint], str(constant.offset)))
            constraints = _with_immediate(constraints, at)
        else:
            arguments += [(WORDS[operand.constraint], w) for w in _operand(e, op, operand, registers, type)]
        at += operand.words
    attributes = CONVERGENT if entry.touches else CONVERGENT_PURE
    return e.asm(text, constraints, results, arguments, attributes, effects=bool(entry.touches))


def _with_immediate(constraints: str, at: int) -> str:
    """An operand is no register: ptxas does not see a constant in one that a product writes later."""
    parts = constraints.split(",")
    parts[at] = "n"
    return ",".join(parts)


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
        return [e.early(f"zext {type}", e.name(r), to=word) for r in registers]
    return [n if type == word else e.pure(f"bitcast {type} {n} to {word}") for n in map(e.name, registers)]


def _elements(e: Emitter, word: str, operand: Operand, elem: str) -> list[Register]:
    """The elements in a PTX register of a result."""
    type, word_type = LLVM[elem], WORDS[operand.constraint]
    each = BITS[word_type] // ELEMENT_BITS[elem]
    if each > 1:
        return e.parts(word, type, each)
    return [word if word_type == type else e.pure(f"bitcast {word_type} {word} to {type}")]


def write_wait(e: Emitter, op: LaneOp) -> None:
    """All registers go through the wait, packed as the products have them."""
    if op.attrs["kind"] != "product":
        raise e.fail(op, f"waiting for a {op.attrs['kind']}")
    words: list[tuple[str, str]] = []
    packed: list[int] = []
    for value in op.operands:
        type, each = LLVM[value.elem], max(1, 32 // ELEMENT_BITS[value.elem])
        each = each if value.count % each == 0 and each > 1 else 1
        registers = e[value]
        if each > 1:
            words += [("i32", e.word(registers[i : i + each], type)) for i in range(0, len(registers), each)]
        else:
            words += [(type, e.name(r)) for r in registers]
        packed.append(each)
    kinds = [CONSTRAINTS[t] for t, _ in words]
    constraints = ",".join([*(f"={k}" for k in kinds), *map(str, range(len(words))), "~{memory}"])
    text = f"wgmma.wait_group.sync.aligned {int(op.attrs['pending'])};"
    awaited = iter(e.asm(text, constraints, [t for t, _ in words], words, CONVERGENT))
    for value, each in zip(op.results, packed, strict=True):
        names = [next(awaited) for _ in range(value.count // each)]
        e.env[value] = [r for n in names for r in e.parts(n, LLVM[value.elem], each)] if each > 1 else list(names)
