"""Random layouts as text, for a tile of a shape and a number of warps."""

from __future__ import annotations

import random
from collections.abc import Sequence

Shape = tuple[int, ...]
LANES = 5  # bits


def log2(n: int) -> int:
    return n.bit_length() - 1


def parts(draw: random.Random, bits: int, rank: int) -> list[int]:
    """Powers of two for each dimension whose product has so many bits."""
    found = [1] * rank
    for _ in range(bits):
        found[draw.randrange(rank)] *= 2
    return found


def order(draw: random.Random, rank: int) -> list[int]:
    """Dimensions, mostly the last one the fastest."""
    dims = list(range(rank))[::-1]
    if draw.random() < 0.4:
        draw.shuffle(dims)
    return dims


def blocked(draw: random.Random, rank: int, warps: int, last: int = 1) -> str:
    """Threads with boxes of elements, of at least `last` along the last dimension."""
    sizes = parts(draw, draw.randrange(4), rank)
    sizes[-1] = max(sizes[-1], last)
    dims = order(draw, rank) if last == 1 else list(range(rank))[::-1]
    return f"gl.BlockedLayout({sizes}, {parts(draw, LANES, rank)}, {parts(draw, log2(warps), rank)}, {dims})"


def mma(draw: random.Random, warps: int) -> str:
    """What mma.sync gives."""
    return f"gl.NVMMADistributedLayout([2, 0], {parts(draw, log2(warps), 2)}, [16, 8])"


def wgmma(draw: random.Random, warps: int, columns: int, rows: int = 0) -> str:
    """What wgmma gives, for groups of four warps; of a product of so many rows and columns."""
    down = draw.choice([n for n in (4, 8) if n <= warps])
    if rows and columns // 8 < warps // down:
        down = warps
    columns = columns // (warps // down) if rows else columns
    return f"gl.NVMMADistributedLayout([3, 0], [{down}, {warps // down}], [16, {columns}, 16])"


def linear(draw: random.Random, shape: Shape, warps: int) -> str:
    """Bases dealt out at random; some in sums of others along the same dimension, some places that hold copies."""
    bases = [(d, 1 << k) for d, size in enumerate(shape) for k in range(log2(size))]
    draw.shuffle(bases)
    for k in range(len(bases)):
        same = [b for b, _ in enumerate(bases) if b != k and bases[b][0] == bases[k][0]]
        if same and draw.random() < 0.3:
            bases[k] = (bases[k][0], bases[k][1] ^ bases[draw.choice(same)][1])
    dealt: list[list[list[int]]] = []
    for count in (LANES, log2(warps)):
        taken: list[list[int]] = []
        for _ in range(count):
            if bases and draw.random() < 0.85:
                dim, step = bases.pop()
                taken.append([step if d == dim else 0 for d in range(len(shape))])
            else:
                taken.append([0] * len(shape))
        dealt.append(taken)
    registers = [[step if d == dim else 0 for d in range(len(shape))] for dim, step in bases]
    return f"gl.DistributedLinearLayout({registers}, {dealt[0]}, {dealt[1]}, [], {list(shape)})"


def distributed(draw: random.Random, shape: Shape, warps: int, hopper: bool) -> str:
    """Any layout of registers."""
    rank, kind = len(shape), draw.random()
    if kind < 0.15 and rank < 3:
        dim = draw.randrange(rank + 1)
        parent = (*shape[:dim], draw.choice((1, 2, 8)), *shape[dim:])
        return f"gl.SliceLayout({dim}, {distributed(draw, parent, warps, hopper)})"
    if kind < 0.3 and rank == 2:
        if hopper and warps >= 4 and draw.random() < 0.4:
            return wgmma(draw, warps, draw.choice((8, 16, 32)))
        return mma(draw, warps)
    if kind < 0.4 and rank == 2 and min(shape) >= 16:
        return f"gl.DotOperandLayout({draw.randrange(2)}, {mma(draw, warps)}, {draw.choice((1, 2, 4))})"
    if kind < 0.65:
        return linear(draw, shape, warps)
    return blocked(draw, rank, warps)


def any_of(draw: random.Random, shape: Shape, warps: int, hopper: bool) -> str:
    """Any layout of registers, operands of products as often as others: of mma.sync, of wgmma, of plain products."""
    rank, kind = len(shape), draw.random()
    if kind < 0.12 and rank < 3:
        dim = draw.randrange(rank + 1)
        parent = (*shape[:dim], draw.choice((1, 2, 8)), *shape[dim:])
        return f"gl.SliceLayout({dim}, {any_of(draw, parent, warps, hopper)})"
    if kind < 0.24 and rank in (2, 3):
        return f"gl.DotOperandLayout({draw.randrange(2)}, {blocked(draw, rank, warps)}, 0)"
    if kind < 0.36 and rank == 2:
        return f"gl.DotOperandLayout({draw.randrange(2)}, {mma(draw, warps)}, {draw.choice((1, 2, 4, 8))})"
    if kind < 0.45 and rank == 2 and hopper and warps >= 4:
        return f"gl.DotOperandLayout(0, {wgmma(draw, warps, draw.choice((8, 16, 32, 64)))}, {draw.choice((1, 2, 4))})"
    return distributed(draw, shape, warps, hopper)


def expanded(layout: str, rank: int, axis: int) -> str:
    """The layout of a range along one axis of a tile of this rank, before dimensions are added to it."""
    for other in range(rank - 1, -1, -1):
        if other != axis:
            layout = f"gl.SliceLayout({other}, {layout})"
    return layout


def _bases(shape: Shape, dims: Sequence[int]) -> list[list[int]]:
    return [[1 << k if d == dim else 0 for d in range(len(shape))] for dim in dims for k in range(log2(shape[dim]))]


def shared(draw: random.Random, shape: Shape, bits: int) -> str:
    """A layout of shared memory, for elements of so many bits."""
    rank, kind = len(shape), draw.random()
    dims = order(draw, rank)
    if kind < 0.2 and max(shape) > 1:
        bases = _bases(shape, dims)
        if draw.random() < 0.6:
            draw.shuffle(bases)
        return f"gl.SharedLinearLayout({bases}, [], {draw.choice((16, 32, 128))})"
    if kind < 0.4 and max(shape) > 1:
        pairs = [[draw.choice((8, 16, 32, 64)), draw.choice((4, 8, 16))]]
        return f"gl.PaddedSharedLayout.with_identity_for({pairs}, {list(shape)}, {dims})"
    if kind < 0.6 and rank == 2 and bits in (8, 16, 32):
        turned = draw.random() < 0.4
        width = shape[0 if turned else 1] * bits // 8
        rows = shape[1 if turned else 0]
        fits = [w for w in (32, 64, 128) if width >= w and rows >= 8]
        swizzle = draw.choice([0, *fits, *fits])
        return f"gl.NVMMASharedLayout({swizzle}, {bits}, 2, {turned})"
    vec, phase, most = draw.choice((1, 2, 4, 8)), draw.choice((1, 1, 2, 4)), draw.choice((1, 1, 2, 4, 8))
    if vec * most > shape[dims[0]]:
        vec, phase, most = 1, 1, 1
    return f"gl.SwizzledSharedLayout({vec}, {phase}, {most}, {dims})"
