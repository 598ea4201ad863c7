"""Layouts whose bases move in several dimensions, or overlap so that elements are held by several threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.gluon import language as gl

PLAIN = gl.BlockedLayout([2, 2], [8, 4], [2, 2], [1, 0])
LANES = [[2, 0], [4, 0], [8, 0], [0, 2], [0, 4]]
LAYOUTS = [
    gl.DistributedLinearLayout([[1, 0], [0, 1]], LANES, [[16, 8], [0, 8]], [], [32, 16]),
    gl.DistributedLinearLayout([[1, 0], [0, 1]], LANES, [[4, 2], [8, 4]], [], [16, 8]),
    gl.DistributedLinearLayout([[1, 1], [0, 0], [0, 1]], LANES, [[24, 0], [0, 8]], [], [32, 16]),
    gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [0, 16], [32, 0]],
        [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8]],
        [[32, 0], [16, 0]],
        [],
        [64, 32],
    ),
]


@gluon.jit
def places(M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr) -> Any:
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None]
    return rows * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]


@gluon.jit
def add(a: Any, b: Any) -> Any:
    return a + b


@gluon.jit
def kernel(
    x: Any, y: Any, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr, plain: gl.constexpr, what: gl.constexpr,
    axis: gl.constexpr,
) -> None:  # fmt: skip
    at = places(M, N, layout)
    other = places(M, N, plain)
    value = gl.load(x + at)
    if what == "from":
        gl.store(y + other, gl.convert_layout(value, plain))
    elif what == "to":
        gl.store(y + at, gl.convert_layout(gl.load(x + other), layout))
    elif what == "stored":
        memory = gl.allocate_shared_memory(gl.float32, [M, N], gl.SwizzledSharedLayout(2, 1, 4, [1, 0]), value)
        gl.store(y + other, memory.load(plain))
    elif what == "scan":
        gl.store(y + at, gl.associative_scan(value, axis, add))
    elif what == "sum":
        total = gl.sum(value, axis)
        gl.store(y + gl.arange(0, N if axis == 0 else M, gl.SliceLayout(axis, layout)), total)
    else:
        gl.atomic_add(y + at, value)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("what", ["from", "to", "stored", "scan", "sum", "atomic"])
@pytest.mark.thinned(3)
def test_tiles_in_general_layouts(layout: gl.DistributedLinearLayout, axis: int, what: str) -> None:
    shape = tuple(layout.shape)
    x = np.random.default_rng(0).integers(0, 64, shape).astype(np.float32)
    y = np.zeros_like(x)
    with weft.target("sim:cuda:80"):
        kernel[(1,)](x, y, *shape, layout, PLAIN, what, axis)
    wanted = {"scan": x.cumsum(axis), "sum": x.sum(axis)}.get(what, x)
    assert (y.ravel()[: wanted.size] == wanted.ravel()).all()


@gluon.jit
def halves(y: Any, first: gl.constexpr, layout: gl.constexpr) -> None:
    gl.store(y + first + gl.arange(0, 128, layout), gl.arange(0, 128, layout) + first)


@gluon.jit
def side_by_side(y: Any, layout: gl.constexpr) -> None:
    gl.warp_specialize([(halves, (y, 0, layout)), (halves, (y, 128, layout))], [4])


def test_partitions_without_a_number_of_registers() -> None:
    y = np.zeros(256, np.int32)
    with weft.target("sim:cuda:80"):
        side_by_side[(1,)](y, gl.BlockedLayout([1], [32], [4], [0]))
    assert y.tolist() == list(range(256))


@gluon.jit
def sums(x: Any, y: Any, layout: gl.constexpr) -> None:
    i = gl.arange(0, 64, layout)
    gl.store(y + i, gl.clamp(gl.cumsum(gl.load(x + i), 0), 0.0, 40.0))


def test_sums_of_what_came_before() -> None:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with weft.target("sim:cuda:80"):
        sums[(1,)](x, y, gl.BlockedLayout([1], [32], [4], [0]))
    assert y.tolist() == [min(i, 40) for i in range(1, 65)]


def test_layouts_as_parts_of_names_and_checked_again() -> None:
    padded = gl.PaddedSharedLayout.with_identity_for([[32, 4]], [16, 64], [1, 0])
    padded.verify()
    assert padded.mangle().isidentifier() and padded.mangle() != PLAIN.mangle()
