"""wgmma while it is under way: it reads shared memory and changes registers until its group has been waited for.

A product is computed when it is issued. That it might read, or write, later makes no difference that is not an error:
whatever touches what it reads, or its registers, before the wait is reported, both sites named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp

from ..errors import InFlightError
from ..machine import Context
from ..values import Array, Fragment

PASSING = frozenset(("rename", "join", "await", "yield", "condition", "for", "while", "if"))
"""What only hands registers on."""


@dataclass(eq=False)
class Product:
    """One wgmma of some warps: those still to wait, the group it belongs to, the granules that it reads."""

    op: LaneOp
    groups: dict[int, int]
    """Of each warp that has not waited yet."""
    granules: dict[int, Array] = field(default_factory=dict)
    """Of each block."""

    def is_open(self, context: Context) -> bool:
        """Whether some warp of a context has still to wait for it."""
        return bool(self.groups) and any(int(w) in self.groups for w in context.warps)


def issue(context: Context, op: LaneOp, reads: list[Array]) -> None:
    """A product begins; `reads` are the bytes that it reads, in the shared memory of all blocks."""
    batch = context.batch
    product = Product(op, {int(w): int(batch.product_groups[w]) for w in context.warps})
    if batch.options.races and reads:
        granules = np.unique(np.concatenate([r.reshape(-1) for r in reads]) // batch.granule)
        block = granules * batch.granule // batch.stride
        for number in np.unique(block).tolist():
            product.granules[number] = granules[block == number]
            batch.shadow.fly(product.granules[number], batch.shadow.site(op))
    batch.products.append(product)
    for value in op.results:
        context.env.values[value].flights = (product,)


def end_group(context: Context) -> None:
    """wgmma.commit_group."""
    context.batch.product_groups[context.warps] += 1


def await_products(context: Context, op: LaneOp, pending: int) -> None:
    """All groups of these warps but the last `pending` are done."""
    batch = context.batch
    for warp in (int(w) for w in context.warps):
        limit = int(batch.product_groups[warp]) - pending
        for product in batch.products:
            if product.groups.get(warp, limit) < limit:
                _done(context, product, warp)
    batch.products = [p for p in batch.products if p.groups]
    for value, result in zip(op.operands, op.results, strict=False):  # wgmma.wait_group has none
        f = context.env[value]
        flights = tuple(p for p in f.flights if p.is_open(context))
        context.env.values[result] = Fragment(f.data, f.undefined, f.known, flights)


def _done(context: Context, product: Product, warp: int) -> None:
    batch = context.batch
    del product.groups[warp]
    block = warp // batch.program.warps
    granules = product.granules.get(block)
    if granules is None:
        return
    last = not any(w // batch.program.warps == block for w in product.groups)
    shadow, count = batch.shadow, len(granules)
    shadow.record_read(granules, np.full(count, warp), np.full(count, -1), shadow.site(product.op))
    if last:
        batch.shadow.flights[granules] -= 1


def watch(context: Context, op: LaneOp) -> None:
    """Report an operation that uses registers of a product that is under way."""
    if op.name in PASSING:
        return
    allowed = -1
    if op.name == "instruction" and op.attrs["isa"].startswith("wgmma.m"):
        allowed = 2  # the accumulator
    for index, value in enumerate(op.operands):
        if index == allowed:
            continue
        for product in context.env[value].flights:
            if product.is_open(context):
                warps = sorted(int(w) for w in context.warps if int(w) in product.groups)
                thread = context.thread(int(np.searchsorted(context.warps, warps[0])))
                note = Note("the product was begun here, and has not been waited for", product.op.span)
                text = f"`{op.name}` uses registers that a wgmma still works on"
                context.batch.launch.error(InFlightError(text, op.span, thread=thread, others=(note,)))
                return


def carry(context: Context, op: LaneOp) -> None:
    """Registers handed on stay registers of a product."""
    if op.name in ("rename", "join"):
        flights = tuple(dict.fromkeys(p for v in op.operands for p in context.env[v].flights))
        if flights:
            context.env.values[op.results[0]].flights = flights
