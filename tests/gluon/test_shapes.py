"""What changes the shape of a tile, in layouts of every family: elements go where NumPy puts them, nothing moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft import gluon

SHAPE = (64, 32)
LAYOUTS = {
    "rows": gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]),
    "columns": gl.BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1]),
    "squares": gl.BlockedLayout([2, 2], [4, 8], [2, 2], [1, 0]),
    "copies": gl.BlockedLayout([1, 2], [1, 32], [1, 4], [1, 0]),
    "slice": gl.SliceLayout(1, gl.BlockedLayout([1, 2, 4], [4, 1, 8], [2, 2, 1], [2, 1, 0])),
    "slice of a product": gl.SliceLayout(0, gl.BlockedLayout([2, 1, 2], [2, 4, 4], [1, 4, 1], [0, 2, 1])),
    "linear": gl.DistributedLinearLayout(
        [[0, 1], [8, 0], [0, 16], [32, 0]], [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], [[4, 0], [16, 0]], [], [64, 32]
    ),
    "linear with copies": gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 0], [8, 0], [16, 0]], [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], [[4, 0], [32, 0]], [],
        [64, 32],
    ),
    "mma": gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8]),
    "mma in two directions": gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8]),
    "wgmma": gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 32, 16]),
    "operand": gl.DotOperandLayout(0, gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8]), 2),
}  # fmt: skip
FLAT = gl.BlockedLayout([4], [32], [4], [0])
each = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


@gluon.jit
def tile(x, layout: gl.constexpr):
    i = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None]
    return gl.load(x + i * 32 + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :])


@gluon.jit
def keep(y, value, SIZE: gl.constexpr):
    """Store a tile of any shape row by row."""
    flat: gl.constexpr = FLAT
    gl.store(y + gl.arange(0, SIZE, flat), gl.convert_layout(value.reshape([SIZE]), flat))


@gluon.jit
def transposed(x, y, layout: gl.constexpr):
    keep(y, tile(x, layout).permute([1, 0]), 2048)


@gluon.jit
def reshaped(x, y, layout: gl.constexpr):
    keep(y, tile(x, layout).reshape([8, 16, 16]).permute([2, 0, 1]), 2048)


@gluon.jit
def raveled(x, y, layout: gl.constexpr):
    flat: gl.constexpr = FLAT
    gl.store(y + gl.arange(0, 2048, flat), gl.convert_layout(gl.ravel(tile(x, layout)), flat))


@gluon.jit
def joined(x, y, layout: gl.constexpr):
    value = tile(x, layout)
    keep(y, gl.join(value, value * 3), 4096)


@gluon.jit
def interleaved(x, y, layout: gl.constexpr):
    value = tile(x, layout)
    keep(y, gl.join(value, value + 5000).permute([0, 2, 1]).reshape([128, 32]), 4096)


@gluon.jit
def split(x, y, layout: gl.constexpr):
    left, right = gl.split(gl.join(tile(x, layout), tile(x, layout) * 7))
    keep(y, left, 2048)
    keep(y + 2048, right, 2048)


@gluon.jit
def neighbours(x, y, layout: gl.constexpr):
    left, right = gl.split(tile(x, layout).reshape([64, 16, 2]))
    keep(y, left, 1024)
    keep(y + 1024, right, 1024)


@gluon.jit
def broadcast(x, y, layout: gl.constexpr):
    rows = gl.load(x + gl.arange(0, 64, gl.SliceLayout(1, layout)))[:, None]
    columns = gl.load(x + 64 + gl.arange(0, 32, gl.SliceLayout(0, layout)))[None, :]
    rows, columns = gl.broadcast(rows, columns)
    keep(y, rows * 4096 + columns, 2048)


@gluon.jit
def expanded(x, y, layout: gl.constexpr):
    sums = gl.sum(tile(x, layout), 1)
    keep(y, gl.expand_dims(sums, 1) - tile(x, layout), 2048)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x.reshape(8, 16, 16).transpose(2, 0, 1),
    "raveled": lambda x: x,
    "joined": lambda x: np.stack([x, x * 3], -1),
    "interleaved": lambda x: np.stack([x, x + 5000], -1).transpose(0, 2, 1),
    "split": lambda x: np.stack([x, x * 7]),
    "neighbours": lambda x: x.reshape(64, 16, 2).transpose(2, 0, 1),
    "broadcast": lambda x: x.ravel()[:64, None] * 4096 + x.ravel()[None, 64:96],
    "expanded": lambda x: x.sum(1, keepdims=True) - x,
}
"""What each kernel gives."""


def run(kernel: Any, layout: Any, dtype: Any = np.int32) -> None:
    x = np.random.default_rng(0).integers(0, 1000, SHAPE).astype(dtype)
    wanted = NUMBERS[kernel.__name__](x)
    y = np.full(wanted.size, -1, dtype)
    kernel[(1,)](x, y, layout, target="sim:cuda:90")
    np.testing.assert_array_equal(y, wanted.ravel().astype(dtype))


@each
@pytest.mark.parametrize(
    "kernel", [transposed, reshaped, raveled, joined, interleaved, split, broadcast, expanded], ids=lambda k: k.__name__
)
@pytest.mark.thinned(3)
def test_numbers(kernel: Any, layout: Any) -> None:
    run(kernel, layout)


@each
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64])
@pytest.mark.thinned(3)
def test_other_elements(dtype: Any, layout: Any) -> None:
    run(transposed, layout, dtype)
    run(split, layout, dtype)


@each
def test_halves_that_registers_tell_apart(layout: Any) -> None:
    """A last axis of size 2 is split where a register alone chooses the half; elsewhere data would have to move."""
    linear = layout.to_linear(SHAPE)
    if (0, 1) in linear.bases["register"]:
        run(neighbours, layout)
        return
    with pytest.raises(weft.CompilationError, match="so data would have to move"):
        run(neighbours, layout)


@each
def test_nothing_moves(layout: Any) -> None:
    """Joined and split again, a tile takes no shuffles and no shared memory but for its own conversion to be stored."""
    x = np.zeros(SHAPE, np.int32)

    @gluon.jit
    def there_and_back(x, y, layout: gl.constexpr):
        left, right = gl.split(gl.join(tile(x, layout), tile(x, layout)))
        value = (left + right).reshape([32, 64]).permute([1, 0]).permute([1, 0]).reshape([64, 32])
        gl.store(y + gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None] * 32
                 + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :], gl.convert_layout(value, layout))  # fmt: skip

    report = there_and_back[(1,)](x, np.zeros(SHAPE, np.int32), layout, target="sim:cuda:90")
    assert report["shuffles"] == report["barriers"] == 0
