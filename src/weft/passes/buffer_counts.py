"""How many buffers tiles have that are copied iterations ahead: as many as stages, one fewer, or one more.

    in iteration i,
    as many     copies of iteration i + stages - 1 to the buffer of iteration i - 1; i computes meanwhile
    one less    i reads its own buffers; a barrier; copies of iteration i + stages - 1 to these
    one more    copies of iteration i + stages - 1 to the buffer of iteration i - 2; products of two are under way

Triton's pipelines have one fewer if a product does not use wgmma. Here, products by single multiplications, which read
their operands while they run, have one fewer if that makes room for another block and few warps would run without it:
the barrier and the later start of copies cost less than idle warps. Tiles that an iteration loads into registers and
stores widened for its product have one fewer anyway: their copies come after the product and its barrier. They also
give up a stage if that makes room for a block.

Products by wgmma that are in flight across iterations have one more if that costs no block, which is so if registers
limit the number of blocks. With as many buffers as stages, copies begin when the products of the previous iteration
have ended, and the next products begin after these copies: tensor cores wait whenever that takes longer than one
iteration's products. On an H200, products of 128 x 128 x 32 in 16 bits take 243 us in three stages instead of 250, and
of 64 different matrices by 128 x 64 x 32, 214 us instead of 233.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.ir import find, tt
from weft.ir.gpu.products import shared_products

from .buffered_tiles import is_product_operand
from .overlap_products import overlaps_two_iterations
from .store_operands import is_single

FEW_WARPS = 16
"""Where fewer run at a time, another block of them is worth a barrier."""


def buffer_counts(
    loop: scf.ForOp,
    tiles: Sequence[tuple[SSAValue, int]],
    stages: int,
    by_twos: bool,
    warps: Callable[[int], int],
    room: int,
    by_registers: int,
) -> tuple[int, list[int]]:
    """The stages, and the buffers of each tile; `tiles` are loaded values and the bytes of a buffer of each.

    With `by_twos` the loop stores operands of its product (overlap_products.py). `warps` says how many run at a time
    with so many bytes of buffers, `room` how many buffers there may be, `by_registers` how many warps have registers at
    a time.
    """
    products = shared_products(loop.body.block)
    sizes = [size for _, size in tiles]
    if any(is_single(op.a.type) for op in find(loop.body.block, tt.DotOp)):
        counts, fewer = [stages] * len(tiles), [stages - 1] * len(tiles)
        return stages, fewer if stages > 2 and _helps(sizes, counts, fewer, warps) else counts
    operands = {tile for tile, _ in tiles if is_product_operand(tile)}
    if stages > 2 and not by_twos and overlaps_two_iterations(loop, operands):
        more = stages + 1
        now, then = (min(by_registers, warps(sum(sizes) * n)) for n in (stages, more))
        if more <= room and then == now:
            return stages, [more] * len(tiles)
    if not by_twos or not products:
        return stages, [stages] * len(tiles)
    spared = [stages > 2 and _is_read_before(loop, tile, products[0]) for tile, _ in tiles]
    counts, fewer = ([n - x for x in spared] for n in (stages, stages - 1))
    return (stages - 1, fewer) if stages > 3 and _helps(sizes, counts, fewer, warps) else (stages, counts)


def _helps(sizes: Sequence[int], counts: Sequence[int], fewer: Sequence[int], warps: Callable[[int], int]) -> bool:
    """Whether few warps run at a time, and more with fewer buffers."""
    now, then = (warps(sum(s * n for s, n in zip(sizes, buffers, strict=True))) for buffers in (counts, fewer))
    return now < FEW_WARPS and then > now


def _is_read_before(loop: scf.ForOp, tile: SSAValue, product: Operation) -> bool:
    """Whether an iteration takes all of a tile into registers before its product."""
    if is_product_operand(tile):
        return False
    body = loop.body.block
    place = {op: i for i, op in enumerate(body.ops)}
    for use in tile.uses:
        op = use.operation
        if place.get(op, len(place)) >= place[product]:
            return False
        if isinstance(op, tt.TransOp) and not _is_read_before(loop, op.results[0], product):
            return False
    return True
