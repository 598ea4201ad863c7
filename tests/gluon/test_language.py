"""What kernels say with `gl` beyond the kernels that are compared with Triton's, in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft import gluon

LINE = gl.BlockedLayout([2], [32], [4], [0])
TILE = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])


def launch(kernel: Any, *args: Any, grid: Any = (1,), target: str = "sim:cuda:80", **more: Any) -> None:
    with weft.target(target):
        kernel[grid](*args, **more)


@gluon.jit
def tile_of(ROWS: gl.constexpr, COLUMNS: gl.constexpr, layout: gl.constexpr):
    i = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    j = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    return i[:, None] * COLUMNS + j[None, :]


@gluon.jit
def facts_of_types(x, y, layout: gl.constexpr, kind: gl.constexpr):
    gl.static_assert(isinstance(layout, gl.BlockedLayout))
    value = gl.load(x + tile_of(32, 64, layout))
    gl.static_assert(value.type.layout == layout)
    gl.static_assert(value.shape[0] == 32 and value.dtype == kind and value.numel == 2048)
    gl.static_assert(layout.threads_per_warp[0] * layout.threads_per_warp[1] == 32)
    top = gl.max(value, 1, keep_dims=True)
    most, where = gl.max(value, 1, return_indices=True)
    total = value.sum(1, keep_dims=True)
    gl.store(y + tile_of(32, 64, layout), value - top + total + most[:, None] + where[:, None].to(kind))


def test_facts_of_types() -> None:
    x = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    y = np.zeros_like(x)
    launch(facts_of_types, x, y, TILE, gl.float32)
    expected = x + x.sum(1, keepdims=True) + x.argmax(1)[:, None]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@gluon.jit
def checked(x, n, layout: gl.constexpr):
    i = gl.max_contiguous(gl.multiple_of(gl.program_id(0) * 256 + gl.arange(0, 256, layout), 256), 256)
    value = gl.load(x + i, i < n)
    gl.device_assert(value >= 0, "positive")
    gl.store(x + i, value * 2, mask=i < n)


def test_debug_checks_hints_and_assertions() -> None:
    x = np.arange(256, dtype=np.float32)
    launch(checked, x, 256, LINE, debug=True)
    np.testing.assert_array_equal(x, 2 * np.arange(256))


@gluon.jit
def prints(layout: gl.constexpr):
    gl.device_print("lane", gl.arange(0, 32, layout))


def test_device_print(capfd: pytest.CaptureFixture[str]) -> None:
    launch(prints, gl.BlockedLayout([1], [32], [1], [0]), num_warps=1)
    assert "lane: 31" in capfd.readouterr().out


@weft.jit
def of_the_language(value):
    return value * 2 + weft.language.cdiv(7, 2)


@gluon.jit
def calls_triton(x, layout: gl.constexpr):
    i = gl.arange(0, 256, layout)
    gl.store(x + i, of_the_language(gl.load(x + i)))


def test_functions_of_the_language_can_be_called() -> None:
    x = np.arange(256, dtype=np.float32)
    launch(calls_triton, x, LINE)
    np.testing.assert_array_equal(x, 2 * np.arange(256) + 4)


@weft.autotune([weft.Config({"BLOCK": 256}), weft.Config({"BLOCK": 512})], key=["n"])
@gluon.jit
def tuned(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    gl.store(y + i, gl.load(x + i, i < n), i < n)


def test_autotuned() -> None:
    x = np.arange(1000, dtype=np.float32)
    y = np.zeros_like(x)
    launch(tuned, x, y, 1000, grid=lambda meta: (weft.cdiv(1000, meta["BLOCK"]),))
    np.testing.assert_array_equal(x, y)


@gluon.jit
def clustered(x):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]])
    i = gl.arange(0, 256, layout)
    gl.store(x + i, gl.load(x + i) * 2)


def test_clusters_came_with_hopper() -> None:
    x = np.arange(256, dtype=np.float32)
    launch(clustered, x, target="sim:cuda:90", num_ctas=2)
    np.testing.assert_array_equal(x, np.arange(256) * 2)
    with pytest.raises(weft.Unsupported) as caught:
        launch(clustered, x, target="sim:cuda:80", num_ctas=2)
    assert str(caught.value) == (
        "error: a cluster of 2 blocks (num_ctas=2) is not supported on target cuda:80\n"
        "hint: num_ctas > 1 requires NVIDIA SM90+ (Hopper): launch with num_ctas=1, or for target cuda:90"
    )


@gluon.jit
def unaligned(x, y, layout: gl.constexpr):
    i = gl.arange(0, 128, layout)
    memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + i))
    gl.store(y + i, memory._reinterpret(gl.int32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0])).load(layout))


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
def test_numbers_of_warps(warps: int) -> None:
    x, y = np.random.default_rng(0).standard_normal(128).astype(np.float32), np.zeros(128, np.int32)
    launch(unaligned, x, y, gl.BlockedLayout([1], [32], [warps], [0]), num_warps=warps)
    np.testing.assert_array_equal(y, x.view(np.int32))


@gluon.jit
def converted(x, y, first: gl.constexpr, second: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    value = gl.convert_layout(gl.load(x + tile_of(ROWS, COLUMNS, first)), second)
    gl.store(y + tile_of(ROWS, COLUMNS, second), value)


LAYOUTS = {
    "rows": TILE,
    "columns": gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1]),
    "small": gl.BlockedLayout([1, 1], [2, 16], [2, 2], [1, 0]),
    "mma": gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8]),
    "operand": gl.DotOperandLayout(0, gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8]), 2),
    "wgmma": gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 32, 16]),
    "slice": gl.SliceLayout(1, gl.BlockedLayout([1, 2, 1], [4, 2, 4], [2, 1, 2], [2, 1, 0])),
}


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.thinned(4)
def test_conversions(first: str, second: str, dtype: Any) -> None:
    x = np.arange(64 * 32).astype(dtype).reshape(64, 32)
    y = np.zeros_like(x)
    launch(converted, x, y, LAYOUTS[first], LAYOUTS[second], 64, 32)
    np.testing.assert_array_equal(x, y)


def test_bank_conflicts_are_those_of_the_layouts() -> None:
    found: list[int] = []

    @gluon.constexpr_function
    def keep(value):
        found.append(int(value))
        return value

    @gluon.jit
    def kernel(tile: gl.constexpr, plain: gl.constexpr, swizzled: gl.constexpr):
        keep(gl.bank_conflicts(tile, plain))
        keep(gl.bank_conflicts(tile, swizzled))

    shape = [64, 64]
    tile = gl.distributed_type(gl.float16, shape, gl.BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1]))
    memories = [
        gl.shared_memory_descriptor_type(gl.float16, shape, gl.SwizzledSharedLayout(1, per, most, [1, 0]), shape)
        for per, most in ((1, 1), (8, 8))
    ]
    launch(kernel, tile, *memories)
    assert found == [7, 3]


def copied(x, y, layout: gl.constexpr):
    i = gl.arange(0, 64, layout)
    gl.store(y + i, gl.load(x + i))


def test_the_language_of_a_kernel_is_part_of_its_key() -> None:
    signature = {"x": "*fp32", "y": "*fp32", "layout": "constexpr"}
    keys = [weft.ASTSource(jit(copied), signature, {"layout": LINE}).hash() for jit in (weft.jit, gluon.jit)]
    assert keys[0] != keys[1]
