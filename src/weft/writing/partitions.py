"""Partitions: functions that different warps run side by side, and `gl.warp_specialize`, which calls them.

    @gluon.jit
    def consumer(acc, operands, full, empty, n): ...

    @gluon.jit
    def producer(x, operands, full, empty, n): ...

    acc, = gl.warp_specialize([(consumer, (acc, operands, full, empty, n)), (producer, (x, ...))], [1], [24])

In the IR the first one is part of the kernel and sees all of it; here it is given what it uses. Constants are written
where they are used. A descriptor that is given brings its shape and strides along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Block, SSAValue

from weft.ir import ints_of, walk

from .expressions import Text
from .variables import is_number
from .words import COPIES, UNDER_WAY, writes
from .writer import Names, Writer, in_lines


@writes("ttg.warp_specialize")
def _warp_specialize(w: Writer, op: Any) -> None:
    w.flush()
    own = op.regions[0].block
    bodies = [region.block for region in op.regions[1].block.first_op.regions]
    call, returned = _function(w, own, {v: v for v in _from_outside(w, own)}, "default")
    calls = [call]
    for body, values in zip(bodies, _captures(bodies, list(op.operands)), strict=True):
        calls.append(_function(w, body, values, "worker")[0])
    w.comment(op)
    results = ", ".join(map(w.name, op.results))
    assigned = f"{results}{',' * (len(op.results) == 1)} = " if op.results else ""
    w.statement(f"{assigned}gl.warp_specialize(")
    w.statement("    [")
    for call in calls:
        for line in call:
            w.statement(f"        {line}")
    w.statement("    ],")
    w.statement(f"    worker_num_warps={_numbers(op, 'partitionNumWarps')},")
    if "requestedRegisters" in op.properties:
        w.statement(f"    worker_num_regs={_numbers(op, 'requestedRegisters')},")
    w.statement(")")
    for result, text in zip(op.results, returned, strict=True):
        w.texts[result] = text.named(w.name(result))


def _numbers(op: Any, name: str) -> list[int]:
    return [int(n) for n in ints_of(op.properties[name])]


def _captures(bodies: Sequence[Block], operands: Sequence[SSAValue]) -> list[dict[SSAValue, SSAValue]]:
    """What each partition is given: its arguments, with the values outside. One that none uses is the first one's."""
    given: list[dict[SSAValue, SSAValue]] = [{} for _ in bodies]
    for i, operand in enumerate(operands):
        users = [k for k, body in enumerate(bodies) if body.args[i].first_use is not None]
        for k in users or [0]:
            given[k][bodies[k].args[i]] = operand
    return given


def _from_outside(w: Writer, block: Block) -> list[SSAValue]:
    """The values that a block uses and does not make, in the order of their first use; tiles that are written as what
    they are spread from are that."""
    inside: set[SSAValue] = set(block.args)
    used: list[SSAValue] = []
    for op in (inner for each in block.ops for inner in walk(each)):
        used += op.operands
        inside.update(op.results)
        inside.update(arg for region in op.regions for inner in region.blocks for arg in inner.args)
    found = dict.fromkeys(w.source(v) for v in used if v not in inside)
    return [v for v in found if not is_number(v)]


def _function(
    w: Writer, block: Block, values: Mapping[SSAValue, SSAValue], role: str
) -> tuple[list[str], Sequence[Text]]:  # fmt: skip
    """Write a function for a block, before the kernel; `values` are what it is given: what it calls them, and what they
    are outside.

    Gives what calls it, the lines of the pair of the function and its arguments, and the texts of what it returns.
    """
    given = [v for v in values if not is_number(values[v])]
    inner = Writer(block, w.shared, Names(w.shared.reserved, w.shared.names), given=given)
    inner.see(w)
    arguments: dict[str, str] = {}
    for value, outside in values.items():
        _give(w, inner, value, outside, arguments)
    last = inner.block(block)
    returned = [inner.whole(t) for t in inner.take(*last.operands)]
    inner.flush()
    if returned:
        inner.statement(f"return {', '.join(t.text for t in returned)}{',' * (len(returned) == 1)}")
    name = w.shared.names.unused(f"{w.shared.kernel}_{_role(block, role)}")
    body = "\n".join(inner.lines or ["    pass"])
    w.shared.functions.append("\n".join([*in_lines(f"def {name}(", list(arguments), "):"), body]))
    comma = "," * (len(arguments) == 1)
    return in_lines(f"({name}, (", list(arguments.values()), f"{comma})),", 8 + 4 * w.indent), returned


def _give(w: Writer, inner: Writer, value: SSAValue, outside: SSAValue, arguments: dict[str, str]) -> None:
    """Let a value of a function be what the function is called with there, by one more of its parameters if need be."""
    text = w.text(outside)
    whole, dot, rest = text.text.partition(".")  # the shape or a stride of a descriptor, which is given already
    names = {given: name for name, given in arguments.items()}
    if text.number is not None:
        inner.texts[value] = text
        return
    if dot and whole in names:
        inner.texts[value] = replace(text, text=f"{names[whole]}.{rest}")
        if inner.variables.is_shared(value):
            inner.assign(value, inner.texts[value])
        return
    name = names.get(text.text) or inner.names.unused(text.text if text.text.isidentifier() else value.name_hint or "t")
    if name not in arguments:
        arguments[name] = text.text
        inner.variables.group(value).name = name
    inner.texts[value] = replace(text, text=name)


def _role(block: Block, otherwise: str) -> str:
    """What a partition does, in a word."""
    names = {inner.name for op in block.ops for inner in walk(op)}
    if names & {"tt.dot", *UNDER_WAY}:
        return "consumer"
    return "producer" if names & COPIES else otherwise
