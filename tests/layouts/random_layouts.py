"""Random layouts for tests."""

from __future__ import annotations

import random

from weft.layouts import LinearLayout, f2

OUTS = ("dim0", "dim1", "dim2")


def invertible(rng: random.Random, size: int) -> list[int]:
    """The columns of a random invertible matrix."""
    rows = f2.Echelon()
    columns: list[int] = []
    while len(columns) < size:
        column = rng.randrange(1, 1 << size)
        if rows.add(column):
            columns.append(column)
    return columns


def split(rng: random.Random, total: int, names: tuple[str, ...]) -> dict[str, int]:
    """Sizes that multiply to 2 ** total, one for each name."""
    logs = dict.fromkeys(names, 0)
    for _ in range(total):
        logs[rng.choice(names)] += 1
    return {name: 1 << log for name, log in logs.items()}


def layout(
    rng: random.Random,
    columns: list[int],
    out_log: int,
    ins: tuple[str, ...] = ("register", "lane", "warp"),
    outs: tuple[str, ...] = OUTS[:2],
) -> LinearLayout:
    """A layout with these flattened bases, cut at random into dimensions."""
    flat = LinearLayout.from_bases({"x": [(c,) for c in columns]}, {"y": 1 << out_log}, require_surjective=False)
    return flat.reshape_ins(split(rng, len(columns), ins)).reshape_outs(split(rng, out_log, outs))


def permutation(rng: random.Random, size: int, copies: int = 0) -> list[int]:
    """The columns of a random distributed layout: every unit vector once, and zeros for copies."""
    columns = [1 << i for i in range(size)] + [0] * copies
    rng.shuffle(columns)
    return columns
