"""`tl.device_print` in the simulator: a line for each element of a tile, once, as Triton prints it on a GPU.

pid (0, 0, 0) idx ( 3) x: 1.500000
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from weft.ir.lane import LaneOp
from weft.layouts import LinearLayout

from .debugger import assembled
from .machine import Context
from .values import Array, full


def print_op(context: Context, op: LaneOp) -> None:
    """Add the lines to the report; programs come in order."""
    batch = context.batch
    batch.report.add_kind(op.span, op.name, context.count)
    if batch.launch.counting:
        return
    if "layouts" not in op.attrs:
        _print_registers(context, op)
        return
    for block, rows in context.by_block():
        rank = int(batch.numbers[block]) % batch.program.blocks
        pid = f"pid ({', '.join(map(str, batch.index_of(block)))})"
        if not op.operands and not rank:
            batch.report.printed.append(f"{pid}{op.attrs['prefix'].rstrip()}")
        for number, (value, layout) in enumerate(zip(op.operands, op.attrs["layouts"], strict=True)):
            many = op.attrs.get("operands", len(op.operands)) > 1
            prefix = op.attrs["prefix"] + (f"(operand {op.attrs.get('operand', number)}) " if many else "")
            signed = op.attrs.get("signed", (True,) * len(op.operands))[number]
            show = partial(_shown, as_hex=bool(op.attrs.get("hex")), signed=signed)
            data = full(context.env[value].data, context.count, batch.lanes)[rows]
            if rank & (layout.free_variable_masks().get("block", 0) if layout is not None else -1):
                continue  # another block of the cluster has the same
            tile = data[0, 0, 0]
            if layout is not None:
                tile = _of_block(layout, assembled(layout, data, None, context.warps[rows] % batch.program.warps), rank)
            batch.report.printed += _lines(f"{pid} idx ", prefix, np.asanyarray(tile), show)


def _of_block(layout: LinearLayout, tile: Array, rank: int) -> Array:
    """What the first block of a cluster would have, where a block of this rank has it."""
    bases = layout.bases["block"] if layout.has_in("block") else ()
    for i, basis in enumerate(bases):
        if rank >> i & 1:
            tile = tile[np.ix_(*(np.arange(n) ^ x for n, x in zip(tile.shape, basis, strict=True)))]
    return tile


def _print_registers(context: Context, op: LaneOp) -> None:
    """Of values that belong to no tile: what each thread has."""
    arrays = [full(context.env[v].data, context.count, context.batch.lanes) for v in op.operands]
    show = partial(_shown, as_hex=bool(op.attrs.get("hex")), signed=True)
    for row, lane in itertools.product(range(context.count), range(context.batch.lanes)):
        values = ", ".join(show(x) for a in arrays for x in a[row, lane])
        context.batch.report.printed.append(f"{context.thread(row, lane)}: {op.attrs['prefix']}{values}")


def _lines(head: str, prefix: str, tile: Array, show: Callable[[Any], str]) -> list[str]:
    widths = [len(str(n - 1)) for n in tile.shape]
    lines = []
    for index in itertools.product(*map(range, tile.shape)):
        if tile[index] is not np.ma.masked:
            where = ", ".join(f"{i:>{w}}" for i, w in zip(index, widths, strict=True))
            lines.append(f"{head}({where}){prefix}{show(tile[index])}")
    return lines


def _shown(value: Any, as_hex: bool, signed: bool) -> str:
    """As C's printf does."""
    if value.dtype == np.bool_:
        return str(int(value))
    bits = 8 * value.dtype.itemsize
    if as_hex:
        number = int(np.asarray(value).view(f"u{value.dtype.itemsize}"))
        return f"0x{number:0{bits // 4}x}"
    if value.dtype.kind == "i":
        return str(int(value) & (1 << bits) - 1 if not signed else int(value))
    return f"{float(value):f}"
