"""Random named layouts with a shape that they fit."""

from __future__ import annotations

import random

from weft.layouts import (
    AMDMFMALayout,
    AMDWMMALayout,
    BlockedLayout,
    DistributedLayout,
    DotOperandLayout,
    Layout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    SharedLayout,
    SliceLayout,
    SwizzledSharedLayout,
)

Named = tuple[Layout, list[int]]


def power(rng: random.Random, low: int, high: int) -> int:
    return 1 << rng.randint(low, high)


def factors(rng: random.Random, log: int, rank: int) -> list[int]:
    """`rank` powers of two whose product is 2 ** log."""
    found = [1] * rank
    for _ in range(log):
        found[rng.randrange(rank)] *= 2
    return found


def cluster(rng: random.Random, rank: int) -> list[list[int]]:
    """A cga_layout of up to 8 blocks, some of them with copies."""
    parts, found = [1] * rank, []
    for _ in range(rng.choice([0, 0, 0, 1, 2, 3])):
        basis, dim = [0] * rank, rng.randrange(rank)
        if rng.random() < 0.75:
            basis[dim] = parts[dim]
            parts[dim] *= 2
        found.append(basis)
    return found


def order(rng: random.Random, rank: int) -> list[int]:
    return rng.sample(range(rank), rank)


def shape(rng: random.Random, rank: int, low: int = 0, high: int = 7, most: int = 14) -> list[int]:
    while True:
        logs = [rng.randint(low, high) for _ in range(rank)]
        if sum(logs) <= max(most, low * rank):
            return [1 << log for log in logs]


def blocked(rng: random.Random, rank: int | None = None) -> BlockedLayout:
    rank = rank or rng.randint(1, 4)
    parts = [factors(rng, log, rank) for log in (rng.randint(0, 4), 5, rng.randint(0, 3))]
    return BlockedLayout(*parts, order(rng, rank), cluster(rng, rank))


def instruction(rng: random.Random) -> tuple[DistributedLayout, tuple[int, ...]]:
    """The result of a matrix instruction, with the legal k_width of its operands."""
    rank = rng.choice([2, 2, 3])
    warps = factors(rng, rng.randint(0, 3), rank)
    tiles = [1] * (rank - 2) + factors(rng, rng.choice([0, 0, 1, 2]), 2)
    cga = cluster(rng, rank)
    kind = rng.randrange(4)
    if kind == 0:
        return NVMMADistributedLayout([2, 0], warps, [1] * (rank - 2) + [16, 8], cga), (1, 2, 4, 8)
    if kind == 1:
        return NVMMADistributedLayout([3, 0], warps[-2:], [16, power(rng, 3, 8), 16], cluster(rng, 2)), (1, 2, 4)
    if kind == 2:
        m, n = rng.choice([(32, 32), (16, 16), (64, 4), (4, 64)])
        transposed = m == 64 or rng.random() < 0.5
        layout = AMDMFMALayout(3, [m, n, 8], transposed, warps, rng.choice([32, 64]), tiles, cga)
        return layout, (1, 2, 4, 8, 16)
    version, depth, widths = rng.choice([(1, 16, (8, 16)), (2, 16, (4, 8, 16)), (3, 32, (2, 8, 16)), (3, 128, (8, 16))])
    return AMDWMMALayout(version, rng.random() < 0.5, warps, [16, 16, depth], tiles, cga), widths


def distributed(rng: random.Random) -> Named:
    """A layout in registers of any family."""
    layout: DistributedLayout
    choice = rng.random()
    if choice < 0.35:
        layout = blocked(rng)
    elif choice < 0.45:
        layout = DotOperandLayout(rng.randrange(2), blocked(rng, rng.choice([2, 3])), 0)
    else:
        layout, widths = instruction(rng)
        if choice < 0.75:
            wgmma = isinstance(layout, NVMMADistributedLayout) and layout.version[0] == 3
            layout = DotOperandLayout(0 if wgmma else rng.randrange(2), layout, rng.choice(widths))
    while layout.rank > 1 and rng.random() < 0.2:
        layout = SliceLayout(rng.randrange(layout.rank), layout)
    return layout, shape(rng, layout.rank, 0 if layout.rank == 1 or choice < 0.45 else 3)


def shared(rng: random.Random) -> tuple[SharedLayout, list[int]]:
    """A layout in shared memory that is a bijection."""
    if rng.random() < 0.5:
        rank = rng.randint(1, 4)
        parts = power(rng, 0, 4), power(rng, 0, 3), power(rng, 0, 4)
        return SwizzledSharedLayout(*parts, order(rng, rank)), shape(rng, rank)
    rank, width, bits = rng.choice([2, 2, 3]), rng.choice([0, 32, 64, 128]), rng.choice([8, 16, 32])
    transposed = rng.random() < 0.5
    sizes = shape(rng, rank, 3)
    if width:
        sizes[0 if transposed else -1] = max(sizes[0 if transposed else -1], 8 * width // bits)
    return NVMMASharedLayout(width, bits, rank, transposed), sizes
