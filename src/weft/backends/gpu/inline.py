"""Inline assembly that a kernel's author wrote: `pack` elements at a time, in the registers that the constraints name.

Elements smaller than 32 bits share registers as far as `pack` reaches: with pack 4, four i8 are one register, two f16
are one and four are two; with pack 1 each element has a register. What registers there are, and which letters name
them, a vendor says by its `Registers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from weft.base import CompilationError
from weft.ir.lane import LaneOp

from .emitter import BITS, CONVERGENT, LLVM, Emitter, Register
from .lines import escaped


class Registers:
    """What a vendor's inline assembly calls its registers."""

    outputs: re.Pattern[str]
    inputs: re.Pattern[str]
    clobbers: re.Pattern[str]
    """The constraints of results, of operands (which may be the number of a result too), of what is clobbered."""
    kinds: str
    """The letters, in words."""
    immediates = ""
    """The letters of operands that are written into the instruction as numbers."""
    widened: Mapping[str, str]
    """LLVM's integer types that are too small for a register, and the one that holds them."""

    def operand(self, e: Emitter, constraint: str, type: str, name: str) -> str:
        """An operand, in the kind of register that its constraint asks for."""
        return name


def _per_register(type: str, pack: int) -> int:
    return min(pack, max(1, 32 // BITS[type]))


def _held(type: str, each: int) -> str:
    """The LLVM type of so many elements in a register."""
    if each > 1:
        return f"i{each * BITS[type]}"
    return {"half": "i16", "bfloat": "i16"}.get(type, type)


def _given(e: Emitter, kinds: Registers, elements: list[Register], type: str, pack: int) -> list[tuple[str, str]]:
    """The operands of one call for `pack` elements."""
    each = _per_register(type, pack)
    held = _held(type, each)
    kind = kinds.widened.get(held, held)
    words = []
    for at in range(0, pack, each):
        part = elements[at : at + each]
        name = e.word(part, type) if each > 1 or (held[0] == "i" and type != "i1") else e.name(part[0])
        words.append((kind, name if kind == held else e.early(f"zext {held}", name, to=kind)))
    return words


def _taken(e: Emitter, kinds: Registers, names: list[str], type: str, pack: int) -> list[Register]:
    """The elements in the results of one call."""
    each = _per_register(type, pack)
    held = _held(type, each)
    kind = kinds.widened.get(held, held)
    if kind != held:
        names = [e.ins(f"trunc {kind} {n} to {held}") for n in names]
    if each > 1:
        return [r for n in names for r in e.parts(n, type, each)]
    return [n if held == type else e.pure(f"bitcast {held} {n} to {type}") for n in names]


def _constraints(op: LaneOp, kinds: Registers, results: list[str], operands: list[str]) -> list[str]:
    """Those of all registers, whose types are given. CompilationError for what LLVM would end the process for."""
    outputs, inputs = len(results), len(operands)
    constraints = [c.strip() for c in op.attrs["constraints"].split(",")]
    names = [c for c in constraints if not kinds.clobbers.fullmatch(c)]
    patterns = [kinds.outputs] * outputs + [kinds.inputs] * inputs
    if len(names) != len(patterns) or constraints[: len(names)] != names:
        raise CompilationError(
            f"the constraints `{op.attrs['constraints']}` name {len(names)} registers, but the assembly has {outputs} "
            f"for results and {inputs} for operands",
            op.span,
            hint="one for each register, results first, as in '=r,r,r'; what is clobbered comes last, as ~{memory}",
        )
    for constraint, pattern in zip(names, patterns, strict=True):
        fits = pattern.fullmatch(constraint) and (not constraint.isdigit() or int(constraint) < outputs)
        if not fits:
            side = "a result" if pattern is kinds.outputs else "an operand"
            raise CompilationError(
                f"`{constraint}` is no constraint for {side}",
                op.span,
                hint=f"there are {kinds.kinds}; a result has = before it; an operand may be the number of a result",
            )
    for constraint, type in zip(names[outputs:], operands, strict=True):
        if constraint.isdigit() and BITS[type] != BITS[results[int(constraint)]]:
            raise CompilationError(
                f"`{constraint}` puts an operand of {BITS[type]} bits into the register of a result of "
                f"{BITS[results[int(constraint)]]}",
                op.span,
                hint="an operand that shares the register of a result has as many bits",
            )
    for number in re.findall(r"\$\{?(\d+)", op.attrs["text"].replace("$$", "")):
        if int(number) >= len(names):
            raise CompilationError(
                f"the assembly says ${number}, but its registers are $0 to ${len(names) - 1}",
                op.span,
                hint="results are counted first; a dollar sign itself is $$",
            )
    return names


def write_assembly(e: Emitter, op: LaneOp, kinds: Registers) -> None:
    """Write it, once for each `pack` elements."""
    attrs = op.attrs
    pack, text = int(attrs["pack"]), escaped(attrs["text"])
    count = max(v.count for v in (*op.operands, *op.results))
    wide = -(-count // pack) * pack
    columns = [e.wide(v, count) for v in op.operands]
    columns = [c + c[-1:] * (wide - count) for c in columns]  # what is left over of the last call is not looked at
    types = [LLVM[v.elem] for v in op.results]
    sizes = [-(-pack // _per_register(t, pack)) for t in types]

    def registers(type: str) -> list[str]:
        each = _per_register(type, pack)
        held = _held(type, each)
        return [kinds.widened.get(held, held)] * -(-pack // each)

    results = [kind for type in types for kind in registers(type)]
    names = _constraints(op, kinds, results, [kind for v in op.operands for kind in registers(LLVM[v.elem])])
    out: list[list[Register]] = [[] for _ in op.results]
    for at in range(0, wide, pack):
        arguments = [
            pair
            for column, value in zip(columns, op.operands, strict=True)
            for pair in _given(e, kinds, column[at : at + pack], LLVM[value.elem], pack)
        ]
        placed = [*zip(names[len(results) :], arguments, strict=True)]
        for constraint, (_, name) in placed:
            if constraint in kinds.immediates and not re.fullmatch(r"-?\d+", name):
                raise CompilationError(
                    f"`{constraint}` takes an integer that is known when the kernel is compiled",
                    op.span,
                    hint="declare the argument as a tl.constexpr, or use r, which takes it in a register",
                )
        arguments = [(type, kinds.operand(e, constraint, type, name)) for constraint, (type, name) in placed]
        attributes = "" if attrs["pure"] else CONVERGENT
        made = e.asm(text, attrs["constraints"], results, arguments, attributes, effects=not attrs["pure"])
        for k, size in enumerate(sizes):
            out[k] += _taken(e, kinds, made[:size], types[k], pack)
            made = made[size:]
    for value, taken in zip(op.results, out, strict=True):
        e.env[value] = taken[: value.count]
