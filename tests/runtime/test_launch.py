"""Launching: arguments, grids, options, hooks, errors."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.base import DeviceAssertionError, LaunchError, LaunchTypeError, NoDevice
from weft.compiler import kernel as kernel_module
from weft.runtime.errors import UnknownKeyword


@weft.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@weft.jit
def where_am_i(out, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(out + n, x + 10 * y + 100 * z)


@weft.jit
def count_along(out, seen, AXIS: tl.constexpr):
    """The programs at each place along one axis, wherever they are along the others."""
    tl.atomic_add(out + tl.program_id(AXIS), 1)
    tl.atomic_add(seen, 1)


@weft.jit
def copy_one(x, out):
    tl.store(out, tl.load(x))


def fresh(kernel: Any) -> Any:
    """The same kernel with nothing compiled yet."""
    return weft.jit(kernel.fn)


def run_scale(x: Any, factor: Any = 2.0, **options: Any) -> np.ndarray:
    out = np.zeros(len(x), np.float32)
    scale[(weft.cdiv(len(x), 64),)](x, out, len(x), factor, **options)
    return out


# -- grids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (1, 5, 1), (3, 4, 5), (50, 2, 3), (1, 1, 9)])
def test_programs_that_ask_for_one_axis(grid: tuple[int, int, int], axis: int) -> None:
    out, seen = np.zeros(64, np.int32), np.zeros(1, np.int32)
    count_along[grid](out, seen, AXIS=axis)
    total = grid[0] * grid[1] * grid[2]
    assert seen[0] == total
    assert out[: grid[axis]].tolist() == [total // grid[axis]] * grid[axis]


@pytest.mark.parametrize("grid", [(5,), [5], (5, 1), (5, 3), (2, 3, 4), (np.int64(4), 2)])
def test_grids(grid: Any) -> None:
    sizes = [*map(int, grid), 1, 1][:3]
    out = np.full(int(np.prod(sizes)), -1, np.int32)
    where_am_i[grid](out, BLOCK=1)
    z, y, x = np.mgrid[: sizes[2], : sizes[1], : sizes[0]]
    assert (out == (x + 10 * y + 100 * z).ravel()).all()


def test_a_grid_may_be_a_function_of_the_arguments() -> None:
    seen = {}

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.update(meta)
        return (weft.cdiv(meta["n"], meta["BLOCK"]),)

    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    scale[grid](x, out, 100, 3.0)
    assert (out == 3 * x).all()
    assert seen["BLOCK"] == 64 and seen["n"] == 100 and seen["x"] is x


@pytest.mark.parametrize("grid", [(0,), (0, 5), (3, 0, 2)])
def test_an_empty_grid_does_nothing(grid: Any) -> None:
    out = np.full(8, -1, np.int32)
    where_am_i[grid](out, BLOCK=1)
    assert (out == -1).all()


@pytest.mark.parametrize(
    ("grid", "error", "text"),
    [
        ((-1,), LaunchError, "grid size -1 on axis 0 is negative"),
        ((2.0,), LaunchTypeError, "grid sizes are integers, got 2.0 of type float on axis 0"),
        ((1, 65536), LaunchError, "grid size 65536 on axis 1 exceeds 65535"),
        ((1, 1, 65536), LaunchError, "on axis 2 exceeds 65535"),
        ((1 << 31,), LaunchError, "exceeds 2147483647"),
        ((1, 1, 1, 2), LaunchError, "a grid has 1 to 3 dimensions, got 4"),
        ((), LaunchError, "a grid has 1 to 3 dimensions, got 0"),
        (("a",), LaunchTypeError, "grid sizes are integers"),
        (1.5, LaunchTypeError, "a grid is a tuple"),
        (None, LaunchTypeError, "a grid is a tuple"),
    ],
)
def test_bad_grids(grid: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        where_am_i[grid](np.zeros(4, np.int32), BLOCK=1)


def test_more_sizes_that_are_1_mean_the_same() -> None:
    out = np.zeros(3, np.int32)
    add_one[(3, 1, 1, 1)](out)
    add_one.warmup(out, grid=(1,))[(3, 1, 1, 1, 1)](out)
    add_one.warmup(out, grid=(1,))[3](out)
    assert out.tolist() == [3, 3, 3]


@weft.jit
def add_one(out):
    at = out + tl.program_id(0)
    tl.store(at, tl.load(at) + 1)


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_arguments_by_name_and_default() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    scale[(1,)](n=64, factor=2.0, out=out, x=x)
    assert (out == 2 * x).all()
    scale[(2,)](x, out, 64, factor=3.0, BLOCK=32)
    assert (out == 3 * x).all()


@pytest.mark.parametrize("factor", [2, 1, 16, 2.5, True, np.float32(2.5), np.int64(3), np.float64(0.5), -7, 1 << 40])
def test_numbers(factor: Any) -> None:
    x = np.arange(100, dtype=np.float32)
    expected = (x * np.float32(float(factor))).astype(np.float32)
    assert (run_scale(x, factor) == expected).all()


@pytest.mark.parametrize("value", [1e39, -1e39, float("inf"), float("nan")])
def test_floats_too_large_for_fp32_become_infinite(value: float) -> None:
    x = np.ones(64, np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run_scale(x, value), np.float32(value))


DTYPES = [
    *(np.dtype(t) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")),
    np.dtype(ml_dtypes.bfloat16),
    np.dtype(ml_dtypes.float8_e5m2),
    np.dtype(ml_dtypes.float8_e4m3fn),
    np.dtype(bool),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_element_types(dtype: np.dtype) -> None:
    x = np.array([1], dtype)
    out = np.zeros(1, dtype)
    copy_one[(1,)](x, out)
    assert out == x


def test_zero_dimensions_and_views() -> None:
    x = np.array(3.0, np.float32)
    base = np.arange(10, dtype=np.float32)
    copy_one[(1,)](x, base[4:])
    assert base[4] == 3
    copy_one[(1,)](base[9:], base[::2])
    assert base[0] == 9
    copy_one[(1,)](base[::-1], x)  # the first element of a reversed view
    assert x == 9


def test_empty_arrays() -> None:
    empty = np.empty(0, np.float32)
    scale[(1,)](empty, empty.copy(), 0, 2.0)


class Interface:
    """Memory of an array, shown by __array_interface__ alone."""

    def __init__(self, array: np.ndarray, read_only: bool = False) -> None:
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, read_only)}


class DLPack:
    """Memory of an array, shown by DLPack alone."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class OnAGpu:
    __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (1 << 40, False), "version": 3}
    device = 0


@pytest.mark.parametrize("wrap", [Interface, DLPack])
def test_arrays_by_protocol(wrap: Callable[[np.ndarray], Any]) -> None:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    scale[(2,)](wrap(x), wrap(out), 100, 2.0)
    assert (out == 2 * x).all()


class DLPackOne(DLPack):
    """The same by DLPack 1.0, which says whether memory may be written to."""

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array.__dlpack__(**kwargs)


def _accepts_versions() -> bool:
    try:
        np.zeros(1).__dlpack__(max_version=(1, 0))
    except TypeError:
        return False
    return True


@pytest.mark.skipif(not _accepts_versions(), reason="this NumPy has no DLPack 1.0")
def test_dlpack_says_what_is_read_only() -> None:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    x.flags.writeable = False
    scale[(2,)](DLPackOne(x), DLPackOne(out), 100, 2.0)
    assert (out == 2 * x).all()
    with pytest.raises(LaunchError, match="argument `out` is read-only, and the kernel stores to it"):
        scale[(2,)](out, DLPackOne(x), 100, 2.0)


def test_memory_that_dlpack_does_not_give() -> None:
    x = np.arange(100, dtype=np.float32)
    x.flags.writeable = False  # which DLPack before 1.0 cannot say
    with pytest.raises(LaunchTypeError, match="argument `x`: a .*DLPack does not give its memory by DLPack: Cannot"):
        scale[(2,)](DLPack(x), np.zeros(100, np.float32), 100, 2.0)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, out = torch.arange(100, dtype=torch.float32), torch.zeros(100)
    scale[(2,)](x, out, 100, 2.0)
    assert (out == 2 * x).all()
    for name in ("bfloat16", "float16", "float8_e5m2", "float8_e4m3fn", "int8", "uint8", "bool", "int64"):
        dtype = getattr(torch, name)
        a, b = torch.ones(1).to(dtype), torch.zeros(1).to(dtype)
        copy_one[(1,)](a, b)
        assert b.float() == 1
    parameter = torch.nn.Parameter(torch.ones(64))
    scale[(1,)](parameter, out, 64, 5.0)
    assert (out[:64] == 5).all()


def test_torch_tensors_elsewhere_or_freed() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(LaunchError, match="argument `x`.*meta"):
        scale[(1,)](torch.zeros(4, device="meta"), np.zeros(4, np.float32), 4, 1.0)
    freed = torch.zeros(4)
    freed.untyped_storage().resize_(0)
    with pytest.raises(LaunchError, match="argument `x`.*has been freed"):
        scale[(1,)](freed, np.zeros(4, np.float32), 4, 1.0)
    sparse = torch.zeros(4).to_sparse()
    with pytest.raises(LaunchError, match="argument `x`"):
        scale[(1,)](sparse, np.zeros(4, np.float32), 4, 1.0)


@pytest.mark.parametrize("value", [OnAGpu(), DLPack(np.zeros(4, np.float32), device=2)])
def test_arrays_on_a_gpu_are_refused(value: Any) -> None:
    with pytest.raises(LaunchError, match="argument `x`.*lives in the memory of GPU.*host memory"), weft.target("cpu"):
        scale[(1,)](value, np.zeros(4, np.float32), 4, 1.0)
    if not weft.cuda.is_available():
        with pytest.raises(NoDevice, match="argument `x` lives in the memory of a GPU, and "):
            scale[(1,)](value, np.zeros(4, np.float32), 4, 1.0)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([None, 1]), "object"),
        (np.array(["a"]), "str"),
        (np.zeros(3, np.complex64), "complex64"),
        (np.zeros(3, ">f4"), "byte order"),
        (np.zeros(3, "M8[s]"), "datetime"),
        (np.zeros(3, [("a", "f4")]), "void"),
    ],
)
def test_elements_kernels_cannot_use(array: np.ndarray, text: str) -> None:
    with pytest.raises(LaunchTypeError, match=f"argument `x`.*{text}"):
        scale[(1,)](array, np.zeros(4, np.float32), 4, 1.0)


def test_read_only_arrays() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    x.flags.writeable = False
    scale[(1,)](x, out, 64, 2.0)  # only read
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="argument `out` is read-only, and the kernel stores to it"):
        scale[(1,)](x, out, 64, 2.0)
    out.flags.writeable = True
    with pytest.raises(LaunchError, match="argument `out` is read-only"):
        fresh(scale)[(1,)](x, Interface(out, read_only=True), 64, 2.0)


@pytest.mark.parametrize("value", [object(), "text", {1: 2}, lambda: 0, 1j, b"bytes"])
def test_unsupported_objects(value: Any) -> None:
    with pytest.raises(LaunchTypeError, match="argument `n`: failed to specialize argument of type"):
        scale[(1,)](np.ones(4, np.float32), np.zeros(4, np.float32), value, 1.0)


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_integers_of_more_than_64_bits(value: int) -> None:
    with pytest.raises(LaunchError, match="argument `n`.*does not fit 64 bits"):
        scale[(1,)](np.ones(4, np.float32), np.zeros(4, np.float32), value, 1.0)


def test_wrong_numbers_of_arguments() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(LaunchTypeError, match="argument `n` is missing"):
        scale[(1,)](x, x.copy())
    with pytest.raises(LaunchTypeError, match="argument `BLOCK` \\(a constexpr\\) is missing"):
        where_am_i[(1,)](x)
    with pytest.raises(LaunchTypeError, match="7 arguments were given, the kernel has 5: x, out, n, factor, BLOCK"):
        scale[(1,)](x, x.copy(), 4, 1.0, 64, 1, 2)
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        scale[(1,)](x, x.copy(), 4, 1.0, x=x)


def test_too_many_arguments_by_position() -> None:
    @weft.jit
    def fill(out, *, value=1):
        tl.store(out, value)

    out = np.zeros(1, np.int32)
    for _ in range(5):
        with pytest.raises(LaunchTypeError, match="^2 arguments were given by position, the kernel has 1: out\n"):
            fill[(1,)](out, 2)
        fill[(1,)](out, value=3)
    assert out[0] == 3


def test_unknown_keywords() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(KeyError, match="Keyword argument BLOK was specified but unrecognised") as caught:
        scale[(1,)](x, x.copy(), 4, 1.0, BLOK=3)
    assert isinstance(caught.value, UnknownKeyword) and isinstance(caught.value, LaunchError)


def test_options_are_accepted_and_checked() -> None:
    x = np.ones(64, np.float32)
    assert (run_scale(x, num_warps=8, num_stages=2, num_ctas=1, enable_fp_fusion=False) == 2).all()
    for options in ({"num_warps": 3}, {"num_warps": 0}, {"num_warps": 4096}, {"num_stages": 0}, {"num_stages": 50}):
        (name,) = options
        with pytest.raises(LaunchError, match=f"{name} must be"):
            run_scale(x, **options)


def test_calling_a_kernel_without_a_grid() -> None:
    with pytest.raises(RuntimeError, match="launched as scale"):
        scale(1, 2, 3)


def test_kernel_parameters_may_have_any_name() -> None:
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    odd[(1,)](x, out, 4, grid=3, k0=1, int=2)
    assert (out == 10).all()


@weft.jit
def odd(self, out, _x, grid, k0, int):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(self + i) * (_x + grid + k0 + int))


# -- tuples, descriptors, annotations ----------------------------------------------------------------------------------


@weft.jit
def with_tuple(pair, out, extra):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(pair[0] + i) * pair[1] + extra[0])


def test_tuples() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    with_tuple[(1,)]((x, 3.0), out, (5, None))
    assert (out == 3 * x + 5).all()
    with_tuple[(1,)]((x, 2.0), out, (1, None))
    assert (out == 2 * x + 1).all()


@weft.jit
def annotated(x: tl.const, out: "*fp32", n: tl.int64, f: fp64, b: i1, half: fp16, brain: bf16):
    i = tl.arange(0, 4)
    value = tl.load(x + i).to(tl.float64) * f + half.to(tl.float64) + brain.to(tl.float64)
    tl.store(out + i, tl.where(b, value, 0.0).to(tl.float32), mask=i < n)


def test_annotations_fix_types() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    annotated[(1,)](x, out, 3, 2, True, 0.5, 0.25)
    assert out.tolist() == [0.75, 2.75, 4.75, 0]
    with pytest.raises(LaunchTypeError, match="argument `n` is annotated i64, got a float"):
        annotated[(1,)](x, out, 3.5, 2, True, 0.5, 0.25)
    with pytest.raises(LaunchError, match="argument `n` is annotated i64, 9223372036854775808 does not fit"):
        annotated[(1,)](x, out, 1 << 63, 2, True, 0.5, 0.25)


@weft.jit
def through_descriptors(source, target, M: tl.constexpr, N: tl.constexpr):
    block = source.load([tl.program_id(0) * M, tl.program_id(1) * N])
    target.store([tl.program_id(0) * M, tl.program_id(1) * N], block * 2)


def test_descriptors() -> None:
    x = np.arange(40 * 48, dtype=np.float32).reshape(40, 48)
    out = np.zeros_like(x)
    a, b = (weft.TensorDescriptor.from_tensor(t, [16, 16]) for t in (x, out))
    through_descriptors[(3, 3)](a, b, 16, 16)
    assert (out == 2 * x).all()


def test_descriptors_are_checked() -> None:
    x = np.zeros((8, 8), np.float32)
    make = weft.TensorDescriptor
    for arguments, text in (
        ((x, [8, 8], [8, 1], [3, 4]), "powers of 2"),
        ((x, [8, 8], [8, 2], [4, 4]), "last dimension"),
        ((x, [8, 8], [3, 1], [4, 4]), "multiples of 16 bytes"),
        ((x, [8, 0], [8, 1], [4, 4]), "positive"),
        ((x, [8, 8], [8], [4, 4]), "one entry"),
        ((x, [], [], []), "1 to 5 dimensions"),
        ((3, [8], [1], [4]), "must be an array"),
        ((x.ravel()[1:], [8], [1], [4]), "16-byte aligned"),
        ((x, [8, 8], [8, 1], [4, 4], "one"), '"zero" or "nan"'),
        ((x.astype(np.int32), [8, 8], [8, 1], [4, 4], "nan"), "floating point"),
    ):
        with pytest.raises(LaunchError, match=text):
            make(*arguments)


# -- aliasing ----------------------------------------------------------------------------------------------------------


@weft.jit
def shift(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("offset", [-40, -1, 0, 1, 7, 40])
def test_overlapping_arrays(offset: int) -> None:
    base = np.arange(200, dtype=np.float32)
    source, target = base[60:130], base[60 + offset : 130 + offset]
    expected = source.copy() + 1
    shift[(1,)](source, target, 70, BLOCK=128)
    assert (target == expected).all()


@weft.jit
def reversed_copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x - i, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("gap", [0, 10, 60, 200])
def test_overlapping_arrays_that_run_backwards(gap: int) -> None:
    base = np.arange(400, dtype=np.float32)
    source, target = base[100 + gap : 30 + gap : -1], base[60:130]
    expected = source.copy() + 1
    reversed_copy[(1,)](source, target, 70, BLOCK=128)
    assert (target == expected).all()


def test_spans() -> None:
    from weft.runtime.arrays import meet, span_of

    x = np.zeros((4, 6), np.float32)
    assert span_of(x) == (0, 96)
    assert span_of(x[:, ::-1]) == (-20, 76)
    assert span_of(x[1:3, 2:4]) == (0, 32)
    assert span_of(x[:0]) == (0, 0)
    assert span_of(Interface(x)) == span_of(DLPack(x)) == (0, 96)
    assert span_of(weft.MockTensor("fp32"))[1] == 1 << 62
    a, b = x[:2], x[2:]
    assert not meet(a, b, 48) and meet(a, b, 47) and not meet(b, a, -48)
    torch = pytest.importorskip("torch")
    t = torch.zeros(4, 6)
    assert span_of(t) == (0, 96) and span_of(t.T) == (0, 96) and span_of(t[:, 2]) == (0, 76)


# -- specialisation ----------------------------------------------------------------------------------------------------


def kernels(function: Any) -> int:
    return len(function.cache)


def test_specialisation_on_values() -> None:
    kernel = fresh(scale)
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for n, count in ((5, 1), (7, 1), (16, 2), (32, 2), (1, 3), (1 << 20, 3)):
        kernel[(1,)](x, out, n if n < 64 else 64, 2.0) if n < 64 else kernel[(1,)](x, out, 48, 2.0)
        assert kernels(kernel) == count
    kernel[(1,)](x[1:], out, 5, 2.0)  # not aligned to 16 bytes
    assert kernels(kernel) == 4
    kernel[(1,)](x, out, 5, 2)  # an integer factor
    assert kernels(kernel) == 5
    kernel[(1,)](x, out, 5, 2.0, BLOCK=32)
    assert kernels(kernel) == 6
    kernel[(1,)](x, out, 5, 2.0, num_warps=8)
    assert kernels(kernel) == 7


def test_do_not_specialize() -> None:
    kernel = weft.jit(scale.fn, do_not_specialize=["n"], do_not_specialize_on_alignment=["x", "out"])
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for n in (1, 5, 16):
        kernel[(1,)](x, out, n, 2.0)
    kernel[(1,)](x[1:], out, 5, 2.0)
    assert kernels(kernel) == 1


def test_specialisation_in_tritons_terms() -> None:
    from weft.runtime.specialize import specialize

    x = np.zeros(16, np.float32)
    address = x.__array_interface__["data"][0]
    aligned = x[(-address % 16) // 4 :]
    assert specialize(7) == ("i32", "")
    assert specialize(32) == ("i32", "D")
    assert specialize(1) == ("constexpr", 1)
    assert specialize(1, specialize_value=False) == ("i32", None)
    assert specialize(32, align=False) == ("i32", "")
    assert specialize(1 << 31) == ("i64", "D")
    assert specialize(1 << 63) == ("u64", "D")
    assert specialize(True) == ("u1", None)
    assert specialize(1.0) == ("fp32", None)
    assert specialize(None) == ("constexpr", None)
    assert specialize(aligned) == ("*fp32", "D")
    assert specialize(aligned[1:]) == ("*fp32", "")
    assert specialize(aligned, is_const=True) == ("*kfp32", "D")
    assert specialize((7, (1, 2.0))) == (("i32", ("constexpr", "fp32")), ("", (1, None)))
    assert specialize(tl.constexpr(5)) == ("constexpr", 5)


@weft.jit
def constant(out, C: tl.constexpr):
    tl.store(out, 1 if C is True else 2 if C is None else 3)


def test_constants_of_different_types_differ() -> None:
    out = np.zeros(1, np.int32)
    for value, expected in ((1, 3), (True, 1), (1.0, 3), (None, 2), (False, 3), (0, 3), ((1, 2), 3), ("a", 3)):
        constant[(1,)](out, value)
        assert out == expected
    assert kernels(constant) == 8


# -- warm-up, hooks, captured values -----------------------------------------------------------------------------------


def test_warmup_compiles_and_does_not_launch() -> None:
    kernel = fresh(scale)
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    compiled = kernel.warmup(x, out, 64, 2.0, grid=(1,))
    assert compiled.asm["ttir"] and not out.any()
    assert kernel[(1,)](x, out, 64, 2.0) is compiled
    by_type = fresh(scale).warmup(np.dtype(np.float32), weft.MockTensor("fp32"), 64, 2.0, grid=(1,))
    assert by_type.metadata.params[:2] == ["*fp32", "*fp32"]


def test_pre_run_hooks() -> None:
    kernel = fresh(scale)
    seen: list[Any] = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    x = np.ones(64, np.float32)
    kernel[(1,)](x, x.copy(), 64, 2.0, num_warps=2)
    assert seen == [(5, {"num_warps": 2})]


def test_launch_hooks() -> None:
    kernel = weft.jit(scale.fn, launch_metadata=lambda grid, metadata, args: {"n": args["n"], "grid": grid})
    seen: list[Any] = []
    knobs.runtime.launch_enter_hook.add(enter := lambda m: seen.append(("enter", m["n"], m["grid"], m["name"])))
    knobs.runtime.launch_exit_hook.add(leave := lambda m: seen.append("exit"))
    try:
        x = np.ones(64, np.float32)
        kernel[(1,)](x, x.copy(), 64, 2.0)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
        knobs.runtime.launch_exit_hook.remove(leave)
    assert seen == [("enter", 64, (1, 1, 1), "scale"), "exit"]


def test_compile_hooks() -> None:
    kernel = fresh(scale)
    x = np.ones(64, np.float32)
    seen: list[Any] = []

    def before(**facts: Any) -> bool:
        seen.append(facts)
        return False

    knobs.runtime.jit_cache_hook = before
    kernel[(1,)](x, x.copy(), 64, 2.0)
    (facts,) = seen
    assert facts["fn"].name == "scale" and facts["compile"]["num_warps"] == 4
    assert facts["repr"].startswith("scale[num_warps=4, num_ctas=1, num_stages=3](x: *fp32")
    other = fresh(scale)
    other.preload(facts["compile"]["specialization_data"])
    assert kernels(other) == 1
    knobs.runtime.jit_cache_hook = lambda **facts: True  # refuses
    assert fresh(scale)[(1,)](x, x.copy(), 64, 2.0) is None


FACTOR = tl.constexpr(3)


@weft.jit
def captures(out):
    tl.store(out, FACTOR)


def test_a_changed_global_is_an_error() -> None:
    global FACTOR
    out = np.zeros(1, np.int32)
    captures[(1,)](out)
    assert out == 3
    FACTOR = tl.constexpr(4)
    try:
        with pytest.raises(RuntimeError, match="Global variable FACTOR has changed"):
            captures[(1,)](out)
    finally:
        FACTOR = tl.constexpr(3)


@weft.jit
def helper(x):
    return x + 1


@weft.jit
def calls(out):
    tl.store(out, helper(tl.load(out)))


@weft.jit
def other_helper(x):
    return x + 10


def test_a_redefined_function_is_compiled_anew() -> None:
    global helper
    out = np.zeros(1, np.int32)
    calls[(1,)](out)
    assert out == 1
    kept = helper
    helper = other_helper
    try:
        calls[(1,)](out)
        assert out == 11
    finally:
        helper = kept


# -- compiled kernels --------------------------------------------------------------------------------------------------


def test_a_compiled_kernel_has_its_stages() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    kernel = scale[(1,)](x, out, 64, 2.0)
    stages = {"source", "ttir", "llir", "object", "asm"}
    assert set(kernel.asm.keys()) == set(kernel.asm) == stages and len(kernel.asm) == len(stages)
    assert "asm" in kernel.asm and "ptx" not in kernel.asm and kernel.asm.get("ptx", "none") == "none"
    assert kernel.asm.get("asm") == kernel.asm["asm"] == dict(kernel.asm.items())["asm"]
    assert "tt.store" in kernel.asm["ttir"] and "define" in kernel.asm["llir"] and "scale" in kernel.asm["asm"]
    assert kernel.asm["source"].startswith("def scale")
    assert kernel.metadata.num_warps == 4 and kernel.metadata.target.backend == "cpu"
    with pytest.raises(KeyError, match="there is no stage 'ptx'"):
        kernel.asm["ptx"]
    out[:] = 0
    kernel[(1, 1, 1)](x, out, 64, 3.0, 64)
    assert (out == 3).all()
    again = pickle.loads(pickle.dumps({k: v for k, v in kernel.__getstate__().items() if k != "src"}))
    assert again["asm"]["ttir"] == kernel.asm["ttir"]


def test_ttir_files(tmp_path: Any) -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    text = scale[(1,)](x, out, 64, 2.0).asm["ttir"]
    (tmp_path / "scale.ttir").write_text(text)
    kernel = weft.compile(str(tmp_path / "scale.ttir"))
    out[:] = 0
    kernel[(1,)](x, out, 64, 2.5)
    assert (out == 2.5).all()


def test_targets() -> None:
    with weft.target("cpu"):
        assert (run_scale(np.ones(4, np.float32)) == 2).all()
    with pytest.raises(weft.Unsupported, match="hip:gfx1030"), weft.target("hip:gfx1030"):
        pass
    knobs.weft.target = "hip:gfx1030"
    try:
        with pytest.raises(weft.Unsupported, match="hip:gfx1030"):
            fresh(scale)[(1,)](np.ones(4, np.float32), np.ones(4, np.float32), 4, 1.0)
    finally:
        knobs.weft.target = knobs.env


@weft.jit
def asserts(x, n):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.device_assert(v < n, "too large")
    tl.store(x + i, v)


def test_device_assert() -> None:
    x = np.arange(8, dtype=np.int32)
    asserts[(3,)](x, 5)  # off without debug
    with pytest.raises(DeviceAssertionError, match="too large") as caught:
        asserts[(3,)](x, 5, debug=True)
    assert caught.value.span is not None and caught.value.span.file == __file__
    knobs.runtime.debug = True
    with pytest.raises(DeviceAssertionError):
        asserts[(3,)](x, 5)
    knobs.runtime.debug = False
    asserts[(3,)](x, 5)


@weft.jit
def prints(x, y):
    i = tl.arange(0, 2)
    tl.device_print("x", tl.load(x + i))
    tl.device_print("pair: ", tl.load(y + i), tl.program_id(0))


def test_device_print(capsys: pytest.CaptureFixture[str]) -> None:
    prints[(2,)](np.array([1.5, -2], np.float32), np.array([7, 8], np.uint8))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["pid (0, 0, 0) idx (0) x: 1.500000", "pid (0, 0, 0) idx (1) x: -2.000000"]
    assert "pid (1, 0, 0) idx (1) pair: (operand 0) 8" in lines
    assert any(line.endswith("pair: (operand 1) 1") for line in lines)


def test_kernels_from_several_threads() -> None:
    kernel = fresh(scale)
    errors: list[BaseException] = []

    def work(factor: float) -> None:
        try:
            for _ in range(20):
                x, out = np.ones(500, np.float32), np.zeros(500, np.float32)
                kernel[(8,)](x, out, 500, factor)
                assert (out == factor).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert kernels(kernel) == 1


@weft.autotune([weft.Config({"N": 64})], key=[])
@weft.jit
def tuned(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 1.0)


@pytest.mark.parametrize("kernel", [scale, tuned])
def test_kernels_are_pickled_by_name(kernel: Any) -> None:
    assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert copy.deepcopy(kernel) is kernel
    other = copy.copy(kernel)
    assert other is not kernel
    with pytest.raises(pickle.PicklingError, match="is something else"):
        pickle.dumps(other)


def test_a_kernel_without_a_name_cannot_be_pickled() -> None:
    @weft.jit
    def local(x):
        tl.store(x, 1.0)

    with pytest.raises(pickle.PicklingError, match=r"local, which is not in module"):
        pickle.dumps(local)


@weft.jit
def counts_its_warps(out, num_warps: tl.constexpr, num_stages: tl.constexpr):
    tl.store(out, num_warps)
    tl.store(out + 1, num_stages)


def test_parameters_called_like_options_are_options_too() -> None:
    out = np.zeros(2, np.int32)
    kernel = counts_its_warps[(1,)](out, num_warps=8, num_stages=2)
    assert out.tolist() == [8, 2]
    assert (kernel.metadata.num_warps, kernel.metadata.num_stages) == (8, 2)


def test_loading_from_several_threads_loads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And keeps no lock for a kernel that is loaded."""
    compiled = add_one.warmup(np.zeros(4, np.float32), grid=(1,))
    compiled._loaded = None
    made: list[Any] = []

    def load(image: bytes, facts: Any) -> Any:
        time.sleep(0.02)
        made.append(real(image, facts))
        return made[-1]

    real = kernel_module.LoadedKernel
    monkeypatch.setattr(kernel_module, "LoadedKernel", load)
    with ThreadPoolExecutor(4) as threads:
        assert len({id(found) for found in threads.map(lambda _: compiled.load(), range(8))}) == 1
    assert len(made) == 1 and not kernel_module._locks


@weft.jit
def sized(x, n, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), n)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"nn": 3}, "did you mean `n`?"),
        ({"n": 1, "numwarps": 4}, "did you mean `num_warps`?"),
        ({"n": 1, "M": 8}, "its parameters are x, n, N"),
        ({"n": 1, "N": 8, "M": 2}, "its parameters are x, n, N"),
    ],
)
def test_an_unknown_keyword_is_what_is_wrong(given: dict[str, Any], hint: str) -> None:
    """Also where an argument is missing, which it was meant to be."""
    x = np.zeros(8, np.float32)
    wrong = next(name for name in given if name not in ("n", "N"))
    launches = (
        lambda: sized[(1,)](x, **given),
        lambda: sized.warmup(x, **given, grid=(1,)),
        lambda: sized[(1,)](x, **given, target="sim:cuda:90"),
    )
    for launch in launches:
        with pytest.raises(UnknownKeyword) as caught:
            launch()
        assert str(caught.value) == f"Keyword argument {wrong} was specified but unrecognised\nhint: {hint}"


def test_an_argument_is_missing_beside_known_options() -> None:
    with pytest.raises(LaunchTypeError) as caught:
        sized[(1,)](np.zeros(8, np.float32), 1, num_warps=4)
    assert caught.value.message == "argument `N` (a constexpr) is missing"
