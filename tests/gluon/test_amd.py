"""Gluon for AMD's processors, simulated: buffer operations, products by mfma and wmma, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.base import CompilationError, Unsupported
from weft.gluon import language as gl

PRODUCTS: dict[str, tuple[str, int, Any, int, Any]] = {
    "gfx90a": ("hip:gfx90a", 64, gl.amd.AMDMFMALayout(2, [32, 32, 8], False, [2, 2]), 4, gl.amd.cdna3.mfma),
    "gfx942": ("hip:gfx942", 64, gl.amd.AMDMFMALayout(3, [32, 32, 8], True, [2, 2]), 4, gl.amd.cdna3.mfma),
    "gfx942 16": ("hip:gfx942", 64, gl.amd.AMDMFMALayout(3, [16, 16, 16], False, [1, 4]), 4, gl.amd.cdna3.mfma),
    "gfx950": ("hip:gfx950", 64, gl.amd.AMDMFMALayout(4, [16, 16, 32], True, [4, 1]), 8, gl.amd.cdna4.mfma),
    "gfx1100": ("hip:gfx1100", 32, gl.amd.AMDWMMALayout(1, True, [2, 2]), 16, gl.amd.rdna3.wmma),
    "gfx1201": ("hip:gfx1201", 32, gl.amd.AMDWMMALayout(2, True, [2, 2]), 8, gl.amd.rdna4.wmma),
}


@gluon.jit
def copied(x, y, n, L: gl.constexpr, B: gl.constexpr):
    offsets = gl.program_id(0) * B + gl.arange(0, B, layout=L)
    value = gl.amd.cdna3.buffer_load(x, offsets, mask=offsets < n, other=-1.0)
    gl.amd.cdna3.buffer_store(value + 1, y, offsets, mask=offsets < n)
    before = gl.amd.cdna3.buffer_atomic_add(y, offsets, value, mask=offsets < n)
    gl.amd.cdna3.buffer_store(before, y, offsets + n, mask=offsets < n)


def test_buffer_operations() -> None:
    x, y = np.arange(300, dtype=np.float32), np.zeros(600, np.float32)
    with weft.target("sim:hip:gfx942"):
        copied[(2,)](x, y, 290, L=gl.BlockedLayout([1], [64], [4], [0]), B=256)
    assert (y[:290] == 2 * x[:290] + 1).all() and (y[290:580] == x[:290] + 1).all() and not y[580:].any()


@gluon.jit
def counted(x, y, L: gl.constexpr):
    offsets = gl.arange(0, 64, layout=L)
    gl.amd.cdna3.buffer_atomic_add(y, offsets, 1, mask=gl.load(x + offsets))
    gl.amd.cdna3.buffer_atomic_add(y, offsets, 2, mask=1)


def test_masks_of_atomics_may_be_numbers() -> None:
    x, y = np.arange(64, dtype=np.int32) % 3, np.zeros(64, np.int32)
    with weft.target("sim:hip:gfx942"):
        counted[(1,)](x, y, L=gl.BlockedLayout([1], [64], [4], [0]))
    assert (y == 2 + (x != 0)).all()


@gluon.jit
def product(
    a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, TILE: gl.constexpr, LOADED: gl.constexpr,
    K_WIDTH: gl.constexpr, multiply: gl.constexpr,
):  # fmt: skip
    m, k = gl.arange(0, M, layout=gl.SliceLayout(1, LOADED)), gl.arange(0, K, layout=gl.SliceLayout(0, LOADED))
    k2, n = gl.arange(0, K, layout=gl.SliceLayout(1, LOADED)), gl.arange(0, N, layout=gl.SliceLayout(0, LOADED))
    x = gl.load(a + m[:, None] * K + k[None, :])
    y = gl.load(b + k2[:, None] * N + n[None, :])
    x = gl.convert_layout(x, gl.DotOperandLayout(0, TILE, K_WIDTH))
    y = gl.convert_layout(y, gl.DotOperandLayout(1, TILE, K_WIDTH))
    total = multiply(x, y, gl.full((M, N), 3, gl.float32, layout=TILE))
    rows, columns = gl.arange(0, M, layout=gl.SliceLayout(1, TILE)), gl.arange(0, N, layout=gl.SliceLayout(0, TILE))
    gl.store(c + rows[:, None] * N + columns[None, :], total)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    target, lanes, tile, k_width, multiply = PRODUCTS[name]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 32), (32, 64)))
    c = np.zeros((64, 64), np.float32)
    loaded = gl.BlockedLayout([1, 4], [lanes // 8, 8], [4, 1], [1, 0])
    with weft.target(f"sim:{target}"):
        kernel = product[(1,)](a, b, c, 64, 64, 32, tile, loaded, k_width, multiply)
    assert (c == a.astype(np.float32) @ b + 3).all()
    assert multiply.__name__ in kernel.asm["lane"]


def test_other_vendors_are_told() -> None:
    constants = {"L": gl.BlockedLayout([1], [32], [4], [0]), "B": 128}
    source = weft.ASTSource(copied, {"x": "*fp32", "y": "*fp32", "n": "i32"}, constants)
    with pytest.raises(Unsupported, match=r"amd.buffer_load, which is for hip:gfx942, is not supported on .*cuda:80"):
        weft.compile(source, "cuda:80")


@gluon.jit
def narrow(x, L: gl.constexpr):
    gl.amd.cdna3.buffer_load(x, gl.arange(0, 256, layout=L).to(gl.int64))


@gluon.jit
def without_mask(x, L: gl.constexpr):
    gl.amd.cdna3.buffer_load(x, gl.arange(0, 256, layout=L), other=1)


@gluon.jit
def bf16_sum(x, L: gl.constexpr):
    gl.amd.cdna3.buffer_atomic_add(x.to(gl.pointer_type(gl.bfloat16)), gl.arange(0, 256, layout=L), 1)


WRONG = {
    narrow: "buffer_load: `offsets` must be int32 or uint32, got int64",
    without_mask: "buffer_load: `other` is what masked-off elements are: it needs a mask",
    bf16_sum: "buffer_atomic_add: amd.cdna3 has no such operation for elements of bf16",
}


@pytest.mark.parametrize("kernel", WRONG, ids=lambda kernel: kernel.__name__)
def test_wrong_operands_are_told(kernel: Any) -> None:
    source = weft.ASTSource(kernel, {"x": "*fp32"}, {"L": gl.BlockedLayout([1], [64], [4], [0])})
    with pytest.raises(CompilationError, match=WRONG[kernel].replace("[", r"\[")):
        weft.compile(source, "hip:gfx942")
