"""Inline assembly that a kernel's author wrote: `pack` elements at a time, in the registers that the constraints name.

Elements smaller than 32 bits share registers as far as `pack` reaches: with pack 4, four i8 are one register, two f16
are one and four are two; with pack 1 each element has a register, 8 bits in one of 16.
"""

from __future__ import annotations

import re

from weft.base import CompilationError
from weft.ir.lane import LaneOp

from ..gpu.emitter import BITS, CONVERGENT, LLVM, Emitter, Register
from ..gpu.lines import escaped


def _per_register(type: str, pack: int) -> int:
    return min(pack, max(1, 32 // BITS[type]))


def _register_type(type: str, each: int) -> str:
    """The LLVM type of a register with that many elements."""
    if each > 1:
        return f"i{each * BITS[type]}"
    return {"i1": "i1", "i8": "i16", "half": "i16", "bfloat": "i16"}.get(type, type)


def _given(e: Emitter, registers: list[Register], type: str, pack: int) -> list[tuple[str, str]]:
    """The operands of one call for `pack` elements."""
    each = _per_register(type, pack)
    kind = _register_type(type, each)
    words = []
    for at in range(0, pack, each):
        part = registers[at : at + each]
        name = e.word(part, type) if each > 1 or (kind[0] == "i" and type != "i1") else e.name(part[0])
        words.append((kind, e.early("zext i8", name, to="i16") if type == "i8" and each == 1 else name))
    return words


def _taken(e: Emitter, names: list[str], type: str, pack: int) -> list[Register]:
    """The elements in the results of one call."""
    each = _per_register(type, pack)
    kind = _register_type(type, each)
    if type == "i8" and each == 1:
        return [e.ins(f"trunc i16 {n} to i8") for n in names]
    if each > 1:
        return [r for n in names for r in e.parts(n, type, each)]
    return [n if kind == type else e.pure(f"bitcast {kind} {n} to {type}") for n in names]


NEWER = {
    r"multimem\.|e[45]m[23]x2|\bst\.async": 81,
    r"\btensormap\.|fence\.proxy\.tensormap": 83,
    r"e2m1|e3m2|e2m3|ue8m0|f32x2\b|tcgen05\.|clusterlaunchcontrol|redux\.sync\.\w+(?:\.abs)?(?:\.NaN)?\.f32": 86,
    r"\bcvt\.rs\b": 87,
}
"""Words of assembly, and the version of PTX, times ten, that has them: what is not here every version has."""

OUTPUT, INPUT = re.compile(r"=&?[hrlfdbc]"), re.compile(r"[hrlfdbc]|\d+")
CLOBBER = re.compile(r"~\{\w+\}")
KINDS = "h and c (16 bits), r and f (32), l and d (64), b (a predicate)"


def _check(op: LaneOp, results: list[str], operands: list[str]) -> None:
    """CompilationError for what LLVM would end the process for; given are the types of all registers."""
    outputs, inputs = len(results), len(operands)
    constraints = [c.strip() for c in op.attrs["constraints"].split(",")]
    names = [c for c in constraints if not CLOBBER.fullmatch(c)]
    kinds = [OUTPUT] * outputs + [INPUT] * inputs
    if len(names) != len(kinds) or constraints[: len(names)] != names:
        raise CompilationError(
            f"the constraints `{op.attrs['constraints']}` name {len(names)} registers, but the assembly has {outputs} "
            f"for results and {inputs} for operands",
            op.span,
            hint="one for each register, results first, as in '=r,r,r'; what is clobbered comes last, as ~{memory}",
        )
    for constraint, kind in zip(names, kinds, strict=True):
        fits = kind.fullmatch(constraint) and (not constraint.isdigit() or int(constraint) < outputs)
        if not fits:
            side = "a result" if kind is OUTPUT else "an operand"
            raise CompilationError(
                f"`{constraint}` is no constraint for {side}",
                op.span,
                hint=f"there are {KINDS}; a result has = before it; an operand may be the number of a result",
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


def write_assembly(e: Emitter, op: LaneOp) -> int:
    """Write it; the version of PTX, times ten, that has what it says, or 0."""
    attrs = op.attrs
    pack, text = int(attrs["pack"]), escaped(attrs["text"])
    count = max(v.count for v in (*op.operands, *op.results))
    wide = -(-count // pack) * pack
    columns = [e.wide(v, count) for v in op.operands]
    columns = [c + c[-1:] * (wide - count) for c in columns]  # what is left over of the last call is not looked at
    types = [LLVM[v.elem] for v in op.results]
    sizes = [-(-pack // _per_register(t, pack)) for t in types]
    results = [_register_type(t, _per_register(t, pack)) for t, n in zip(types, sizes, strict=True) for _ in range(n)]
    kinds = [(LLVM[v.elem], _per_register(LLVM[v.elem], pack)) for v in op.operands]
    _check(op, results, [_register_type(type, each) for type, each in kinds for _ in range(-(-pack // each))])
    out: list[list[Register]] = [[] for _ in op.results]
    for at in range(0, wide, pack):
        arguments = [
            pair
            for column, value in zip(columns, op.operands, strict=True)
            for pair in _given(e, column[at : at + pack], LLVM[value.elem], pack)
        ]
        attributes = "" if attrs["pure"] else CONVERGENT
        names = e.asm(text, attrs["constraints"], results, arguments, attributes, effects=not attrs["pure"])
        for k, size in enumerate(sizes):
            out[k] += _taken(e, names[:size], types[k], pack)
            names = names[size:]
    for value, registers in zip(op.results, out, strict=True):
        e.env[value] = registers[: value.count]
    return max((v for words, v in NEWER.items() if re.search(words, attrs["text"])), default=0)
