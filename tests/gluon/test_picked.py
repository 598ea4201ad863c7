"""Elements of shared memory gathered and scattered by indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.base import CompilationError
from weft.compiler import ASTSource, as_target
from weft.compiler.gpu import layout_ir
from weft.gluon import language as gl
from weft.ir import parse_module, print_module, verify


@gluon.jit
def offsets(shape: gl.constexpr, layout: gl.constexpr) -> Any:
    """Of the elements of an array, row by row."""
    if len(shape) == 1:
        at = gl.arange(0, shape[0])
    elif len(shape) == 2:
        at = gl.arange(0, shape[0])[:, None] * shape[1] + gl.arange(0, shape[1])[None, :]
    else:
        plane = gl.arange(0, shape[1])[None, :, None] * shape[2] + gl.arange(0, shape[2])[None, None, :]
        at = gl.arange(0, shape[0])[:, None, None] * (shape[1] * shape[2]) + plane
    return gl.set_auto_layout(at, layout)


@gluon.jit
def gather(
    x: Any, index: Any, out: Any, shape: gl.constexpr, picked: gl.constexpr, axis: gl.constexpr, rows: gl.constexpr,
    memory: gl.constexpr,
) -> None:  # fmt: skip
    held = gl.allocate_shared_memory(gl.float32, shape, memory, gl.load(x + offsets(shape, rows)))
    at = offsets(picked, rows)
    gl.store(out + at, held.gather(gl.load(index + at), axis=axis))


@gluon.jit
def scatter(
    x: Any, index: Any, out: Any, shape: gl.constexpr, picked: gl.constexpr, axis: gl.constexpr, rows: gl.constexpr,
    memory: gl.constexpr,
) -> None:  # fmt: skip
    held = gl.allocate_shared_memory(gl.float32, shape, memory, gl.zeros(shape, gl.float32, rows))
    at = offsets(picked, rows)
    held.scatter(gl.load(x + at), gl.load(index + at), axis=axis)
    gl.store(out + offsets(shape, rows), held.load(rows))


def blocked(rank: int) -> gl.BlockedLayout:
    threads = {1: [32], 2: [8, 4], 3: [4, 4, 2]}[rank]
    return gl.BlockedLayout([1] * (rank - 1) + [2], threads, [4] + [1] * (rank - 1), list(reversed(range(rank))))


LINEAR = gl.SharedLinearLayout(
    [[0, 1], [0, 2], [1, 0], [2, 8], [4, 16], [0, 4], [0, 8], [0, 16], [8, 0], [16, 4], [32, 0]]
)
CASES = [
    ((128,), (32,), 0, gl.SwizzledSharedLayout(1, 1, 1, [0])),
    ((32, 32), (32, 32), 0, gl.SwizzledSharedLayout(4, 2, 4, [1, 0])),
    ((32, 32), (32, 8), 1, gl.SwizzledSharedLayout(1, 1, 1, [0, 1])),
    ((64, 32), (16, 32), 0, gl.NVMMASharedLayout(128, 32, rank=2)),
    ((64, 32), (64, 64), 1, LINEAR),
    ((64, 64), (64, 64), 0, gl.PaddedSharedLayout.with_identity_for([[16, 4], [64, 8]], [64, 64], [0, 1])),
    *(((16, 8, 4), (16, 8, 4), axis, gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0])) for axis in range(3)),
]


@pytest.mark.parametrize(("shape", "picked", "axis", "memory"), CASES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int16])
@pytest.mark.thinned(3)
def test_gather(shape: Any, picked: Any, axis: int, memory: Any, dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    index = np.random.default_rng(1).integers(0, shape[axis], picked).astype(dtype)
    out = np.zeros(picked, np.float32)
    with weft.target("sim:cuda:80"):
        gather[(1,)](x, index, out, shape, picked, axis, blocked(len(shape)), memory)
    assert (out == np.take_along_axis(x, index.astype(np.int64), axis)).all()


@pytest.mark.parametrize(("shape", "picked", "axis", "memory"), [case for case in CASES if case[1] <= case[0]])
def test_scatter(shape: Any, picked: Any, axis: int, memory: Any) -> None:
    if picked[axis] > shape[axis]:
        pytest.skip("two values would go to one place")
    x = np.random.default_rng(0).normal(size=picked).astype(np.float32)
    order = np.random.default_rng(1).random(shape).argsort(axis).astype(np.int32)
    index = np.ascontiguousarray(np.take(order, range(picked[axis]), axis))
    out = np.full(shape, 7, np.float32)
    with weft.target("sim:cuda:80"):
        scatter[(1,)](x, index, out, shape, picked, axis, blocked(len(shape)), memory)
    wanted = np.zeros(shape, np.float32)
    np.put_along_axis(wanted, index.astype(np.int64), x, axis)
    assert (out == wanted).all()


@gluon.jit
def part(x: Any, index: Any, out: Any, back: Any, rows: gl.constexpr, memory: gl.constexpr) -> None:
    held = gl.allocate_shared_memory(gl.float32, [64, 64], memory, gl.load(x + offsets([64, 64], rows)))
    middle = held.slice(32, 32, dim=0).slice(48, 16, dim=1)
    at = offsets([32, 16], rows)
    found = middle.gather(gl.load(index + at), axis=0)
    gl.store(out + at, found)
    middle.scatter(found * 2, gl.load(index + at), 0)
    gl.store(back + offsets([64, 64], rows), held.load(rows))


@pytest.mark.parametrize(
    "memory",
    [
        gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
        gl.SwizzledSharedLayout(4, 1, 8, [1, 0]),
        gl.PaddedSharedLayout.with_identity_for([[32, 4]], [64, 64], [1, 0]),
    ],
)
def test_a_part(memory: Any) -> None:
    x = np.arange(4096, dtype=np.float32).reshape(64, 64)
    index = ((np.arange(16)[None, :] + np.arange(32)[:, None]) % 32).astype(np.int32)
    out, back = np.zeros((32, 16), np.float32), np.zeros_like(x)
    with weft.target("sim:cuda:90"):
        part[(1,)](x, index, out, back, blocked(2), memory)
    assert (out == np.take_along_axis(x[32:, 48:], index.astype(np.int64), 0)).all()
    wanted = x.copy()
    wanted[32:, 48:] *= 2
    assert (back == wanted).all()


def source(picked: tuple[int, ...], axis: int) -> ASTSource:
    constants = {"shape": (32, 32), "picked": picked, "axis": axis, "rows": blocked(2)}
    memory = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    return ASTSource(gather, {"x": "*fp32", "index": "*i32", "out": "*fp32"}, {**constants, "memory": memory})


def test_the_text_is_read_back() -> None:
    text = print_module(layout_ir(source((32, 8), 1), as_target("cuda:80"), {}))
    assert "ttg.local_gather" in text
    again = parse_module(text)
    verify(again, "layout")
    assert print_module(again) == text


@pytest.mark.parametrize(
    ("picked", "axis", "message"),
    [
        ((64, 32), 1, r"at most the shape of the memory but along axis 1: got \[64, 32\] and \[32, 32\]"),
        ((32, 32), 2, "the axis must be from -2 to 1, got 2"),
    ],
)
def test_what_does_not_fit(picked: tuple[int, ...], axis: int, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        layout_ir(source(picked, axis), as_target("cuda:80"), {})
