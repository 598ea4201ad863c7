"""Laws of places in tiles, on every small shape and every place: they mean what index arithmetic in NumPy means."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from weft.backends.cpu.coords import (
    ONE,
    ZERO,
    Coords,
    constant_of,
    flat,
    live_bits,
    log2,
    pinned,
    pinned_bit,
    reshaped,
    row_major,
    substitute,
    trans_coords,
    unpin,
)

MOST = 5  # bits of a tile


def shapes(bits: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every shape of up to four dimensions with so many elements (as a power of two), or with up to 2^MOST."""
    for rank in range(5):
        for widths in itertools.product(range(MOST + 1), repeat=rank):
            if sum(widths) <= MOST if bits is None else sum(widths) == bits:
                yield tuple(1 << w for w in widths)


def at(coords: Coords, index: int) -> tuple[int, ...]:
    """The coordinates at an iteration index."""
    return tuple(
        sum((index >> s & 1 if s >= 0 else constant_of(s)) << k for k, s in enumerate(coord)) for coord in coords
    )


def count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int))


def test_a_tile_is_row_major() -> None:
    for shape in shapes():
        coords = row_major(shape)
        assert [at(coords, i) for i in range(count(shape))] == list(np.ndindex(*shape))
        assert live_bits(coords) == set(range(log2(count(shape))))
        assert flat(coords) == tuple(range(log2(count(shape))))


@pytest.mark.parametrize("bits", range(MOST))
def test_reshaping_keeps_the_row_major_position(bits: int) -> None:
    every = list(shapes(bits))
    for old, new in itertools.product(every, every):
        coords = reshaped(row_major(old), new)
        assert coords == row_major(new)
        turned = trans_coords(tuple(range(len(old)))[::-1], row_major(old[::-1]))  # a tile that is not row-major
        there = reshaped(turned, new)
        for i in range(1 << bits):
            place = np.ravel_multi_index(at(turned, i), old) if old else 0
            assert at(there, i) == (np.unravel_index(place, new) if new else ())
        assert reshaped(there, old) == turned


def test_transposition() -> None:
    for shape in shapes():
        for order in itertools.permutations(range(len(shape))):
            result = tuple(shape[o] for o in order)
            source = trans_coords(order, row_major(result))
            values = np.arange(count(shape)).reshape(shape)
            turned = values.transpose(order).reshape(-1)
            assert [values[at(source, i)] for i in range(count(shape))] == turned.tolist()
            back = tuple(int(k) for k in np.argsort(order))
            assert trans_coords(back, source) == row_major(result)


def test_substitution_composes() -> None:
    sources = [0, 1, 2, ZERO, ONE, pinned(0, 1), pinned(2, 0)]
    mappings = [dict(zip((0, 1, 2), chosen)) for chosen in itertools.product([0, 1, 2, ZERO, ONE], repeat=3)]
    for coords in [((a, b), (c,)) for a, b, c in itertools.product(sources, repeat=3)]:
        assert substitute(coords, {}) == coords == substitute(coords, {0: 0, 1: 1, 2: 2})
        for first, then in zip(mappings, mappings[::-1]):
            both = {k: then.get(v, v) for k, v in first.items()}
            assert substitute(substitute(coords, first), then) == substitute(coords, both)


def test_pinning_is_knowing_a_bit() -> None:
    for shape in shapes(4):
        coords = row_major(shape)
        for bits in itertools.chain.from_iterable(itertools.combinations(range(4), n) for n in range(5)):
            for values in itertools.product((0, 1), repeat=len(bits)):
                known = {b: pinned(b, v) for b, v in zip(bits, values)}
                there = substitute(coords, known)
                assert live_bits(there) == set(range(4)) - set(bits)
                assert unpin(there, bits) == coords
                for i in range(16):
                    index = i
                    for b, v in zip(bits, values):
                        index = index & ~(1 << b) | v << b
                    assert at(there, i) == at(coords, index)


def test_sources_do_not_collide() -> None:
    for bit, value in itertools.product(range(64), (0, 1)):
        source = pinned(bit, value)
        assert constant_of(source) == value and pinned_bit(source) == bit
    assert len({ZERO, ONE, *(pinned(b, v) for b in range(64) for v in (0, 1))}) == 130
    assert pinned_bit(ZERO) is None and pinned_bit(ONE) is None and pinned_bit(3) is None
    assert (constant_of(ZERO), constant_of(ONE)) == (0, 1)
