"""Which arrays a kernel loads from and stores to at each place of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.base import Span
from weft.ir.lane import LaneOp, LaneProgram
from weft.targets.table import instruction

if TYPE_CHECKING:
    from .findings import Facts

__all__ = ["arrays_of"]


def arrays_of(facts: Facts) -> dict[tuple[Span | None, str], list[str]]:
    """The arrays that are loaded and stored at each place."""
    program = facts.program
    assert program is not None
    names = {value: p.name for value, p in zip(program.body.arguments, program.parameters, strict=True)}
    found: dict[tuple[Span | None, str], list[str]] = {}
    for op in facts.ops:
        verb = _verb(op)
        if not verb:
            continue
        address = op.operands[1] if op.name == "copy_async" else op.operands[0]
        operands = op.operands if op.name == "instruction" else (address,)
        made = {v for operand in operands for v in facts.made_from(operand, by_memory=False)}
        there = sorted(name for value, name in names.items() if value in made and _is_array(program, name))
        known = found.setdefault((op.span, verb), [])
        known.extend(name for name in there if name not in known)
    return found


def _is_array(program: LaneProgram, name: str) -> bool:
    return any(p.name == name and p.elem in ("ptr", "tensormap") for p in program.parameters)


def _verb(op: LaneOp) -> str:
    if op.name in ("load", "store") and op.attrs["space"] == "global":
        return op.name
    if op.name in ("atomic", "compare_and_swap") and op.attrs["space"] == "global":
        return "store"
    if op.name == "copy_async":
        return "load"
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        if entry.touches == "bulk" and any(operand.name == "map" for operand in entry.operands):
            return "load" if entry.stores else "store"  # `stores` is about shared memory
    return ""
