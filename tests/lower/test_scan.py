"""Scans in any layout against one that goes along the axis."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lower.tile_text import TYPES, launched, loaded, program_of, random_layout, stored, text_of, tile
from weft.ir.lane import LaneProgram

COMBINE = """
    ^bb0(%a0: i32, %a1: i32, %b0: i32, %b1: i32):
      %p = arith.muli %a0, %b0 : i32
      %q = arith.muli %a1, %b0 : i32
      %r = arith.addi %q, %b1 : i32
      tt.scan.return %p, %r : i32, i32"""
"""Affine maps one after the other, which is not commutative: x -> a0 x + a1, then x -> b0 x + b1."""


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.thinned(3)
def test_order_of_elements(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice([(256,), (1024,), (64,), (16, 32), (32, 64), (4, 8, 16)])
    axis, reverse = rng.randrange(len(shape)), rng.choice([False, True])
    layout = random_layout(rng, shape)
    one = tile(shape, "i32", "#l")
    body = (
        loaded("x", "a", shape, "i32", "#l")
        + loaded("y", "b", shape, "i32", "#l")
        + f"""
    %s:2 = "tt.scan"(%x, %y) <{{axis = {axis} : i32, reverse = {str(reverse).lower()}}}> ({{{COMBINE}
    }}) : ({one}, {one}) -> ({one}, {one})
    %c0 = ttg.convert_layout %s#0 : {one} -> {one}
    %c1 = ttg.convert_layout %s#1 : {one} -> {one}"""
        + stored("c0", "c", shape, "i32", "#l")
        + stored("c1", "d", shape, "i32", "#l")
    )
    program = program_of({"l": text_of(layout)}, [(n, "i32") for n in "abcd"], body)
    values = np.random.default_rng(seed)
    x, y = (values.integers(-9, 9, shape, np.int32) | np.int32(1) for _ in range(2))
    found = [np.zeros(shape, np.int32) for _ in range(2)]
    launched(program, seed, a=x, b=y, c=found[0], d=found[1])
    wanted = [x.copy(), y.copy()]
    first, second = (np.moveaxis(w, axis, 0) for w in wanted)
    order = range(shape[axis] - 2, -1, -1) if reverse else range(1, shape[axis])
    with np.errstate(over="ignore"):
        for i in order:
            k = i + 1 if reverse else i - 1
            second[i] += second[k] * first[i]
            first[i] *= first[k]
    assert np.array_equal(found[0], wanted[0])
    assert np.array_equal(found[1], wanted[1])


@pytest.mark.parametrize("elem", ["i8", "i64", "f16", "f64"])
def test_types(elem: str) -> None:
    add = "arith.addf" if elem[0] == "f" else "arith.addi"
    one = tile((16, 64), elem, "#l")
    layout = text_of(random_layout(random.Random(7), (16, 64)))
    body = (
        loaded("x", "a", (16, 64), elem, "#l")
        + f"""
    %s = "tt.scan"(%x) <{{axis = 1 : i32, reverse = false}}> ({{
    ^bb0(%p: {elem}, %q: {elem}):
      %r = {add} %p, %q : {elem}
      tt.scan.return %r : {elem}
    }}) : ({one}) -> {one}"""
        + stored("s", "b", (16, 64), elem, "#l")
    )
    program = program_of({"l": layout}, [("a", elem), ("b", elem)], body)
    x = np.random.default_rng(3).integers(0, 2, (16, 64)).astype(TYPES[elem])
    found = np.zeros_like(x)
    launched(program, a=x, b=found)
    assert np.array_equal(found, np.cumsum(x, axis=1, dtype=x.dtype))


def sums(layout: str, reverse: bool = False) -> LaneProgram:
    """Sums along the rows of (4, 128) floats."""
    one = tile((4, 128), "f32", "#l")
    body = (
        loaded("x", "a", (4, 128), "f32", "#l")
        + f"""
    %s = "tt.scan"(%x) <{{axis = 1 : i32, reverse = {str(reverse).lower()}}}> ({{
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tt.scan.return %r : f32
    }}) : ({one}) -> {one}"""
        + stored("s", "b", (4, 128), "f32", "#l")
    )
    program: LaneProgram = program_of({"l": layout}, [("a", "f32"), ("b", "f32")], body)
    return program


def counted(program: LaneProgram, name: str, **attrs: str) -> int:
    """On how many registers an operation works."""
    found = (op for op in program.body.walk() if op.name == name)
    return sum(op.results[0].count for op in found if all(op.attrs[k] == v for k, v in attrs.items()))


def test_a_warp_needs_six_shuffles_and_no_barrier() -> None:
    """One for each step, and the one that gives each lane what its predecessor has."""
    program = sums(
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>"
    )
    assert counted(program, "shuffle", kind="idx") == 6
    assert counted(program, "arith.addf") == 3 + 5 + 4
    assert {a.what for a in program.shared} == {"conversion"}


def test_what_lanes_scan_is_combined_once_a_step() -> None:
    """Four rows of 32 lanes, one after the other: no more than the steps, the rows and what is before each row."""
    program = sums(
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>"
    )
    assert counted(program, "arith.addf") == 4 * 5 + 2 + 3


def test_few_lanes_add_up_by_butterflies() -> None:
    """4 lanes, 16 groups of registers: two shuffles a group, not those of what precedes and of the total as well."""
    program = sums(
        "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
    )
    groups = 128 // 8
    assert counted(program, "shuffle", kind="xor") == 2 * groups
    assert counted(program, "shuffle", kind="idx") < groups


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("places", ["[8, 4], warpsPerCTA = [4, 1]", "[4, 8], warpsPerCTA = [1, 4]"])
@pytest.mark.parametrize("size", [1, 2])
def test_butterflies(places: str, size: int, reverse: bool) -> None:
    """With registers before the lanes or without, and registers or warps after them."""
    layout = f"#ttg.blocked<{{sizePerThread = [1, {size}], threadsPerWarp = {places}, order = [1, 0]}}>"
    x = np.random.default_rng(5).integers(-9, 9, (4, 128)).astype(np.float32)
    found = np.zeros_like(x)
    launched(sums(layout, reverse), a=x, b=found)
    expected = np.cumsum(x[:, ::-1], axis=1)[:, ::-1] if reverse else np.cumsum(x, axis=1)
    assert np.array_equal(found, expected)
