"""Gathers and histograms in any layout, through shared memory and by shuffles, against NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lower.tile_text import TYPES, launched, loaded, program_of, random_layout, stored, text_of, tile
from weft.ir.lane import ELEMENT_BITS, LaneProgram

COLUMNS = "#ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>"


def gathered(
    shape: tuple[int, ...], axis: int, elem: str, source: str, index: str, seed: int, length: int | None = None
) -> LaneProgram:
    """A gather from a tile; the index has that length along the axis, or as many elements as the tile."""
    short = tuple(length if d == axis and length else s for d, s in enumerate(shape))
    one, wanted = tile(shape, elem, "#s"), tile(short, "i32", "#i")
    body = (
        loaded("x", "a", shape, elem, "#s")
        + loaded("n", "b", short, "i32", "#i")
        + f"""
    %y = tt.gather %x[%n] {{axis = {axis} : i32}} : ({one}, {wanted}) -> {tile(short, elem, "#i")}"""
        + stored("y", "c", short, elem, "#i")
    )
    program = program_of({"s": source, "i": index}, [("a", elem), ("b", "i32"), ("c", elem)], body)
    rng = np.random.default_rng(seed)
    x = rng.integers(-100, 100, shape).astype(TYPES[elem])
    n = rng.integers(-(1 << 20), 1 << 20, short, np.int32)
    found = np.zeros(short, x.dtype)
    launched(program, seed, a=x, b=n, c=found)
    assert np.array_equal(found, np.take_along_axis(x, n & (shape[axis] - 1), axis))
    return program


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.thinned(3)
def test_gather(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice([(256,), (1024,), (16, 32), (32, 64), (4, 8, 16)])
    elem = rng.choice(["i8", "f16", "f32", "i64"])
    layouts = [text_of(random_layout(rng, shape)) for _ in range(2)]
    gathered(shape, rng.randrange(len(shape)), elem, *layouts, seed)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.thinned(3)
def test_index_of_another_length(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice([(256,), (64,), (16, 32), (4, 8, 16)])
    axis, length = rng.randrange(len(shape)), 1 << rng.randrange(8)
    short = tuple(length if d == axis else s for d, s in enumerate(shape))
    layouts = [text_of(random_layout(rng, s)) for s in (shape, short)]
    gathered(shape, axis, "f32", *layouts, seed, length)


@pytest.mark.parametrize("elem", ["i8", "f32"])
def test_gather_within_a_warp(elem: str) -> None:
    gathered((16, 16), 0, elem, COLUMNS, COLUMNS, 5)
    gathered((16, 16), 0, elem, COLUMNS, COLUMNS, 7, 4)
    gathered((16, 16), 0, elem, COLUMNS, COLUMNS, 8, 64)
    apart = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>"
    gathered((16, 16), 0, elem, COLUMNS, apart, 6)


@pytest.mark.parametrize("elem", ["i8", "f16", "f32", "i64"])
@pytest.mark.parametrize("size", [2, 4])
def test_gather_within_a_lane(elem: str, size: int) -> None:
    """Nothing is read from lanes that are computed, and nothing goes through memory."""
    rows = (
        f"#ttg.blocked<{{sizePerThread = [1, {size}], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}}>"
    )
    program = gathered((256, size), 1, elem, rows, rows, size)
    assert not [op for op in program.body.walk() if op.name == "shuffle" and op.attrs["kind"] == "idx"]
    assert "gather" not in {allocation.what for allocation in program.shared}


@pytest.mark.parametrize("elem", ["i8", "f16"])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.thinned(2)
def test_gather_in_words(elem: str, size: int) -> None:
    """Columns from a part of a word to 32 words, in registers of any order; the index as long, shorter and longer."""
    for order in ("[1, 0]", "[0, 1]"):
        rows = (
            f"#ttg.blocked<{{sizePerThread = [4, {size}], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], "
            f"order = {order}}}>"
        )
        for length in (size, 1, 2 * size):
            program = gathered((512, size), 1, elem, rows, rows, size, length)
            assert ("gather" not in {allocation.what for allocation in program.shared}) or size > 16


@pytest.mark.parametrize("elem", ["i8", "f16"])
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_gather_in_words_of_other_lanes(elem: str, lanes: int) -> None:
    """Columns that lie in words of several lanes: a shuffle moves a word."""
    for registers in (1, 2, 4, 8):
        layout = (
            f"#ttg.blocked<{{sizePerThread = [{registers}, 1], threadsPerWarp = [{lanes}, {32 // lanes}], "
            "warpsPerCTA = [1, 4], order = [0, 1]}>"
        )
        program = gathered((registers * lanes, 128), 0, elem, layout, layout, registers)
        names = [op.name for op in program.body.walk()]
        if registers == 32 // ELEMENT_BITS[elem]:  # one word of a column in each lane
            computed = [op for op in program.body.walk() if op.name == "shuffle" and op.attrs["kind"] == "idx"]
            assert len(computed) == 1 and "permute" in names


@pytest.mark.parametrize("elem", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("bins", [2, 16, 256])
@pytest.mark.thinned(3)
def test_histogram(elem: str, bins: int) -> None:
    rng = random.Random(bins)
    shape, result = (512,), (bins,)
    layouts = {"s": text_of(random_layout(rng, shape)), "r": text_of(random_layout(rng, result))}
    body = (
        loaded("x", "a", shape, elem, "#s")
        + f"""
    %z = arith.constant dense<1> : {tile(shape, elem, "#s")}
    %m = arith.cmpi ne, %x, %z : {tile(shape, elem, "#s")}
    %h = tt.histogram %x, %m : {tile(shape, elem, "#s")} -> {tile(result, "i32", "#r")}"""
        + stored("h", "b", result, "i32", "#r")
    )
    program = program_of(layouts, [("a", elem), ("b", "i32")], body)
    x = np.random.default_rng(bins).integers(-20, min(127, bins + 10), shape).astype(TYPES[elem])
    found = np.zeros(result, np.int32)
    launched(program, bins, a=x, b=found)
    kept = x[(x != 1) & (x >= 0) & (x < bins)]
    assert np.array_equal(found, np.bincount(kept, minlength=bins))
