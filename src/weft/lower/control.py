"""Control flow: loops and branches, uniform over the block.

Tiles keep all their registers, but for those of counted loops that are known to hold the same as others (runs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from weft.ir import int_value, is_tensor, walk
from weft.ir.gpu import layout_of
from weft.ir.lane import Block, Value

from . import elements
from .context import Context, elem_of, lowering
from .runs import carried_registers
from .telling import barrier_between


def _arguments(c: Context, values: Sequence[SSAValue]) -> tuple[Value, ...]:
    values_of = tuple(Value(elem_of(v.type), c.count(v.type)) for v in values)
    c.set_all(values, values_of)
    return values_of


def _operations(c: Context, ops: Sequence[Operation]) -> None:
    stores = ("tt.store", "weft.store_row")
    c.has_stored = c.has_stored or any(op.name in stores for outer in ops for op in walk(outer))  # an iteration before
    c.block(ops)


@lowering("scf.for")
def _for(c: Context, op: Operation) -> None:
    if c.elements is not None:
        elements.counted(c, op)
        return
    inner = op.regions[0].blocks[0]
    tables = [carried_registers(c, x) for x in inner.args[1:]]
    kept = [list(dict.fromkeys(table)) for table in tables]
    index = Value(elem_of(inner.args[0].type), 1)
    block = Block((index, *(Value(elem_of(x.type), len(k)) for x, k in zip(inner.args[1:], kept, strict=True))))
    operands = [c[x] for x in op.operands[:3]] + _some(c, op.operands[3:], kept)
    with c.inside(block):
        c[inner.args[0]] = index
        _spread(c, inner.args[1:], block.arguments[1:], tables, kept)
        *ops, last = inner.ops
        _operations(c, ops)
        c.build.add("yield", _some(c, last.operands, kept))
    kinds = [(elem_of(r.type), len(k)) for r, k in zip(op.results, kept, strict=True)]
    loop = c.build.add("for", operands, kinds, {}, [block])
    _spread(c, op.results, loop.results, tables, kept)


def _some(c: Context, values: Sequence[SSAValue], kept: Sequence[Sequence[int]]) -> list[Value]:
    """Some registers of each value."""
    return [c.build.rename(c.whole(x), k) for x, k in zip(values, kept, strict=True)]


def _spread(
    c: Context,
    values: Sequence[SSAValue],
    results: Sequence[Value],
    tables: Sequence[Sequence[int]],
    kept: Sequence[Sequence[int]],
) -> None:
    """Values have become so many registers as are kept of them: each gets the one that holds what it would."""
    for value, pieces, table, registers in zip(values, results, tables, kept, strict=True):
        place = {register: k for k, register in enumerate(registers)}
        c[value] = c.build.rename(pieces, [place[r] for r in table])


@lowering("scf.yield")
def _yield(c: Context, op: Operation) -> None:
    c.build.add("yield", [c.whole(x) for x in op.operands])


@lowering("scf.if")
def _if(c: Context, op: Operation) -> None:
    if c.elements is not None:
        elements.branch(c, op)
        return
    blocks = []
    for region in op.regions:
        block = Block()
        if region.blocks:
            with c.inside(block):
                _operations(c, list(region.blocks[0].ops))
        blocks.append(block)
    branch = c.build.add(
        "if", [c[op.operands[0]]], [(elem_of(r.type), c.count(r.type)) for r in op.results], {}, blocks
    )
    c.set_all(op.results, branch.results)


@lowering("scf.while")
def _while(c: Context, op: Operation) -> None:
    if c.elements is not None:
        elements.repeated(c, op)
        return
    blocks = []
    for region in op.regions:
        inner = region.blocks[0]
        block = Block(_arguments(c, inner.args))
        with c.inside(block):
            _operations(c, list(inner.ops))
        blocks.append(block)
    loop = c.build.add(
        "while",
        [c.whole(x) for x in op.operands],
        [(elem_of(r.type), c.count(r.type)) for r in op.results],
        {},
        blocks,
    )
    c.set_all(op.results, loop.results)


@lowering("scf.condition")
def _condition(c: Context, op: Operation) -> None:
    c.build.add("condition", [c[op.operands[0]], *(c.whole(x) for x in op.operands[1:])])


@lowering("tt.return")
def _return(c: Context, op: Operation) -> None:
    c.build.add("return")


@lowering("weft.end_unless")
def _end_unless(c: Context, op: Operation) -> None:
    end = Block()
    with c.inside(end):
        c.build.add("return")
    idle = c.build.op("arith.xori", [c[op.operands[0]], c.build.constant("i1", 1)], "i1")
    c.build.add("if", [idle], (), {}, [end, Block()])


@lowering("tt.assert")
def _assert(c: Context, op: Operation) -> None:
    message = getattr(op.properties.get("message"), "data", "")
    operands = [c.whole(op.operands[0])]
    mask = c.active_mask()
    if mask is not None:
        operands.append(mask)
    c.build.add("assert", operands, (), {"message": message})


@lowering("weft.check")
def _check(c: Context, op: Operation) -> None:
    """With what the simulator tells of it: each value as a tile of its own, for their layouts may differ."""
    attrs: dict[str, Any] = {}
    for name in ("what", "message", "relation", "type"):
        text = op.properties.get(name)
        if isinstance(text, StringAttr):
            attrs[name] = text.data
    sources = op.properties.get("sources")
    if isinstance(sources, ArrayAttr):
        attrs["sources"] = tuple(_plain(source) for source in sources.data)
    attrs["layouts"] = tuple(layout_of(x.type) if is_tensor(x.type) else None for x in op.operands)
    c.build.add("check", [c.whole(x) for x in op.operands], (), attrs)


def _plain(source: Attribute) -> list[str | int]:
    parts = source.data if isinstance(source, ArrayAttr) else ()
    return [x.data if isinstance(x, StringAttr) else int_value(x) for x in parts]


@lowering("ttg.local_barrier")
def _local_barrier(c: Context, op: Operation) -> None:
    c.build.barrier("block", inserted=False)


@lowering("gpu.barrier")
def _barrier(c: Context, op: Operation) -> None:
    """A barrier of the whole program: after it, every block may load what any block has stored."""
    parent = op.parent_op()
    while parent is not None and parent.name not in ("ttg.warp_specialize", "ttg.warp_specialize.partitions"):
        parent = parent.parent_op()
    scope = "cluster" if c.program.blocks > 1 and parent is None else "block"
    before = op.prev_op
    if before is not None and before.name == "tt.store" and before.location is op.location:  # by `check_stores`
        barrier_between(c, "global", "a store", "the check of what it stored", scope)
    else:
        c.build.barrier(scope, inserted=False)


@lowering("llvm.intr.assume")
def _assume(c: Context, op: Operation) -> None:
    """A promise to the optimiser: nothing is done."""
