"""How far apart in memory the parts of an access are: rows of its tile, and iterations of the loop around it.

    x + rows[:, None] * stride + start + columns[None, :], in a loop that goes on by 64

has runs of as many elements as there are columns, 1 * `stride` elements apart, and is 64 elements further in each turn.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.backends.cpu.program import FunctionProgram, Op, Value
from weft.backends.cpu.questions import CASTS, SPREAD, Steps, consecutive_run, constant_int

__all__ = ["Distance", "between_runs", "per_turn"]

NONE, UNKNOWN = (0, ""), (-1, "")
Distance = tuple[int, str]
"""Elements: a number, or a number times an argument; (-1, "") where it is not known."""


class Runs(NamedTuple):
    """Of a tile of addresses."""

    length: int
    """Elements that are neighbours in memory."""
    apart: Distance
    """From one such run to the next; (0, "") where there is but one."""


def between_runs(steps: Steps, named: str) -> Runs:
    """The runs of an access by the steps of its bits; `named` is the argument by which rows are apart, if it is one."""
    run = consecutive_run(steps)
    others = [step for bit, step in steps.items() if bit not in run and step != 0]
    if not others:
        return Runs(1 << len(run), NONE)
    known = [abs(step) for step in others if step is not None]
    return Runs(1 << len(run), (min(known), "") if known else (1, named) if named else UNKNOWN)


def per_turn(op: Op, program: FunctionProgram) -> Distance:
    """How much further an access is in each turn of the innermost loop that it stands in; (0, "") if it is in none."""
    loop = op.block.parent
    while loop is not None and loop.name != "scf.for":
        loop = loop.block.parent
    return _further(op.args[0], loop, program, 100) if loop is not None else NONE


def _further(value: Value, loop: Op, program: FunctionProgram, depth: int) -> Distance:
    """By how much a number or pointer is larger in the next turn of a loop."""
    op = value.op
    if not depth:
        return UNKNOWN
    if op is None:
        if value.block is None or value.block.parent is not loop:
            return NONE
        if not value.index:
            return _factor(loop.args[2], program)
        given = loop.regions[0][0].ops[-1].args[value.index - 1]
        return _added(given, value, program)
    if op.index < loop.index or not op.args:
        return NONE
    if op.name in SPREAD or op.name in CASTS:
        return _further(op.args[0], loop, program, depth - 1)
    parts = [_further(a, loop, program, depth - 1) for a in op.args]
    if all(part == NONE for part in parts) and op.name not in ("tt.load", "scf.for", "scf.if", "scf.while"):
        return NONE
    if op.name in ("tt.addptr", "arith.addi"):
        moving = [part for part in parts if part != NONE]
        if len(moving) == 1:
            return moving[0]
        return (sum(n for n, _ in moving), "") if all(n > 0 and not by for n, by in moving) else UNKNOWN
    if op.name == "arith.muli" and NONE in parts:
        at = 1 - parts.index(NONE)
        (number, by), (times, name) = parts[at], _factor(op.args[1 - at], program)
        if UNKNOWN not in (parts[at], (times, name)) and not (by and name):
            return number * times, by or name
    return UNKNOWN


def _added(given: Value, carried: Value, program: FunctionProgram) -> Distance:
    """What is added in each turn to a value that a loop carries."""
    op = given.op
    if given is carried:
        return NONE
    if op is not None and op.name in ("tt.addptr", "arith.addi") and op.args[0] is carried:
        return _factor(op.args[1], program)
    return UNKNOWN


def _factor(value: Value, program: FunctionProgram) -> Distance:
    """A number that is known now, or one that an argument is or is made of by a product."""
    number = constant_int(value)
    if number is not None:
        return number, ""
    op = value.op
    if op is not None and (op.name in SPREAD or op.name in CASTS):
        return _factor(op.args[0], program)
    if op is None and value in program.params:
        return 1, program.names[program.params.index(value)]
    if op is not None and op.name == "arith.muli":
        (a, by), (b, name) = (_factor(each, program) for each in op.args)
        if a > 0 and b > 0 and not (by and name):
            return a * b, by or name
    return UNKNOWN
