"""SPIR-V run by an OpenCL device that is found, such as Intel's runtime for the host's processor.

pytest tests/intel/test_opencl.py -m "slow or not slow"      # all kernels of the suite; otherwise some
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from kernels import load_cases
from kernels.case import copy_arguments
from kernels.running import for_weft, our_ttir, run_case
from weft.backends.intel import opencl
from weft.base import DeviceAssertionError, LaunchError, LaunchTypeError, NoDevice
from weft.language.extra import libdevice
from weft.runtime.simulate import flattened
from weft.runtime.views import dtype_of, numpy_view

CASES = load_cases("weft")
SOME = (
    *("vector_add", "vector_add_f16", "vector_add_bf16", "vector_add_f64", "softmax", "running_sums"),
    *("half_atomic_add_bfloat16", "countdown", "cast_bool_to_float32", "cast_int32_to_int8", "cast_uint8_to_int32"),
    *("cast_float32_to_float8_e5m2", "cast_float8_e4m3fn_to_float32", "cast_float16_to_int8", "integer_ops_int64"),
    *("vector_add_one_element", "vector_add_two_elements", "vector_add_four_elements", "unrolled_rows_3_5_1"),
    "gather_rows",
)
WAYS = ("opencl", "opencl:simd")
"""A work item for each lane, and one for each warp."""


def _missing() -> str:
    """Why there is no device; "" where there is one."""
    if importlib.util.find_spec("pyopencl") is None:
        return "pyopencl is not installed"
    try:
        opencl.chosen()
    except NoDevice as error:
        return error.message
    return ""


needs_device = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there is one")


@weft.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)


@weft.jit
def half_of_sum(x, out, factor, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0) * factor)


def run_elsewhere(name: str, target: str, options: Any = None, plain: str = "") -> Any:
    """Run a kernel of the suite that was compiled for a GPU by what is here, and check it; the compiled kernel."""
    case = CASES[name]
    before = case.make_inputs()
    after = copy_arguments(before)
    types, values, attributes = case.signature(before)
    source = weft.ASTSource(case.kernel, types, values, attributes)
    kernel = weft.compile(source, target, {**case.options, **(options or {})})
    arguments = flattened(tuple(for_weft(after[n]) for n in case.kernel.arg_names if types[n] != "constexpr"))
    pairs = zip(kernel.metadata.params, arguments, strict=True)
    grid = case.grid(case.constexprs) if callable(case.grid) else case.grid
    built = opencl.Built(kernel.asm["spirv"], kernel.metadata._asdict(), plain)
    built.run((*grid, 1, 1)[:3], [numpy_view(v, "an array") if k[0] == "*" else v for k, v in pairs])
    case.check(before, after)
    return kernel


LONG = ("vector_add_large_tile", "flash_attention_128_causal")
"""Kernels with thousands of instructions, which Intel's compiler for processors builds for minutes: more than four."""


def _cases() -> Iterator[Any]:
    skipped = pytest.mark.skip(reason="the device's compiler takes more than four minutes")
    for name in CASES:
        marks = [] if name in SOME else [pytest.mark.slow]
        yield pytest.param(name, marks=[*marks, skipped] if name in LONG else marks)


@needs_device
@pytest.mark.parametrize("name", list(_cases()))
@pytest.mark.thinned(3)
def test_kernels_agree_with_numpy_and_both_ways_with_each_other(name: str) -> None:
    stored = []
    for way in WAYS:
        with weft.target(way):
            stored.append(run_case(CASES[name]))
    if "fadd" in our_ttir(CASES[name]):
        return  # programs come in any order, and what they add to one number is rounded in that order
    for argument, lanes in stored[0].items():
        warps = stored[1][argument]
        if type(lanes) is np.ndarray:  # what has a type of its own are addresses of arrays, which are others each time
            assert lanes.tobytes() == warps.tobytes(), argument
        elif hasattr(lanes, "array"):
            assert lanes.array.tobytes() == warps.array.tobytes(), argument


@weft.jit
def sums_of_rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, i < n, 0.0)
    tl.store(out + tl.program_id(0), tl.sum(tl.exp(row - tl.max(row, 0)), 0))


@needs_device
def test_both_ways_give_the_same_bits() -> None:
    x = np.random.default_rng(3).standard_normal((7, 200)).astype(np.float32)
    outs = []
    for way in WAYS:
        out = np.zeros(7, np.float32)
        with weft.target(way):
            sums_of_rows[(7,)](x, out, 200, BLOCK=256)
        outs.append(out)
    assert np.array_equal(*outs) and outs[0].all()


@weft.jit
def upper_halves(x, y, unsigned, signed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(unsigned + i, tl.umulhi(a.to(tl.uint64, bitcast=True), b.to(tl.uint64, bitcast=True)))
    tl.store(signed + i, libdevice.mulhi(a, b))


@needs_device
@pytest.mark.parametrize("way", WAYS)
def test_upper_halves_of_products_of_64_bits(way: str) -> None:
    """SPIR-V has no integers of 128 bits."""
    x, y = np.random.default_rng(0).integers(-(1 << 63), (1 << 63) - 1, (2, 64))
    x[:3], y[:3] = (-1, -(1 << 63), (1 << 63) - 1), (-1, -(1 << 63), -(1 << 63))
    unsigned, signed = np.zeros(64, np.uint64), np.zeros(64, np.int64)
    with weft.target(way):
        upper_halves[1,](x, y, unsigned, signed, BLOCK=64)
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    assert signed.tolist() == [a * b >> 64 for a, b in pairs]
    assert unsigned.tolist() == [(a % (1 << 64)) * (b % (1 << 64)) >> 64 for a, b in pairs]


SUBGROUP = re.compile(rb"[sS]ub_?[gG]roup")
"""What every builtin of subgroups has in its name."""


@pytest.mark.parametrize("target", ["opencl:simd", "xpu:pvc:simd"])
@pytest.mark.parametrize("name", ["softmax", "matmul_f16"])
def test_a_whole_warp_is_one_work_item(name: str, target: str) -> None:
    """Its module has nothing of subgroups, and takes a work item for each warp."""
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    kernel = weft.compile(source, target, case.options)
    assert SUBGROUP.search(kernel.asm["spirv"]) is None and kernel.metadata.extensions == []
    assert kernel.metadata.threads == kernel.metadata.num_warps
    assert f"!{{i32 {kernel.metadata.num_warps}, i32 1, i32 1}}" in kernel.asm["llir"]
    lanes = weft.compile(source, target.removesuffix(":simd"), case.options)
    assert lanes.metadata.threads == 16 * lanes.metadata.num_warps and SUBGROUP.search(lanes.asm["spirv"])


@needs_device
def test_products_of_whole_warps_are_sums_of_vectors() -> None:
    """Compiled for a GPU that has DPAS; what its entry means is written as sums."""
    run_elsewhere("matmul_f16", "xpu:pvc:simd")


@needs_device
@pytest.mark.parametrize("elem", ["float32", "bfloat16", "int8", "int64"])
def test_arrays_are_changed_in_place(elem: str) -> None:
    x = np.arange(1000).astype(elem if elem != "bfloat16" else np.float32)
    x = x if elem != "bfloat16" else x.astype(dtype_of("bf16"))
    out = np.zeros_like(x)
    with weft.target("opencl"):
        double[(8,)](x[3:], out[3:], 900, BLOCK=128)
    assert np.array_equal(out[3:903], x[3:903] * 2) and not out[903:].any() and not out[:3].any()


@needs_device
def test_arrays_are_copied_to_a_device_that_does_not_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "SYSTEM", 0)
    whole = np.arange(2000, dtype=np.float32)
    with weft.target("opencl"):
        double[(8,)](whole[1000:], whole, 1000, BLOCK=128)  # two parts of one array, which are in one copy
    assert np.array_equal(whole, np.r_[2 * np.arange(1000, 2000), np.arange(1000, 2000)].astype(np.float32))


@needs_device
def test_numbers_are_of_the_kernels_types() -> None:
    x, out = np.ones(64, np.float32), np.zeros(1, np.float32)
    with weft.target("opencl"):
        half_of_sum[(1,)](x, out, 0.5, BLOCK=64)
        assert out[0] == 32
        half_of_sum[(1,)](x, out, 3, BLOCK=64)
    assert out[0] == 192


@needs_device
def test_a_compiled_kernel_is_launched_by_its_grid() -> None:
    source = weft.ASTSource(double, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 128})
    kernel = weft.compile(source, target="opencl")
    for n in (1, 1000, 4097):
        x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        kernel[(-(-n // 128),)](x, out, n)
        assert np.array_equal(out, 2 * x)
    with pytest.raises(LaunchTypeError, match="2 arguments were given, the kernel takes 3"):
        kernel[(1,)](x, out)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="`out`"):
        kernel[(1,)](x, out, 8)


@needs_device
def test_an_empty_grid_does_nothing_and_a_read_only_array_is_refused() -> None:
    x = np.ones(8, np.float32)
    out = np.zeros(8, np.float32)
    with weft.target("opencl"):
        double[(0,)](x, out, 8, BLOCK=8)
        assert not out.any()
        out.flags.writeable = False
        with pytest.raises(LaunchError, match="out"):
            double[(1,)](x, out, 8, BLOCK=8)


def test_without_pyopencl_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    opencl.library.cache_clear()
    monkeypatch.setattr(opencl, "load", absent)
    with pytest.raises(NoDevice, match="pyopencl, by which OpenCL is reached, is not installed") as caught:
        opencl.library()
    assert "pip install 'weft[opencl]'" in str(caught.value)


@weft.jit
def says(x, n, BLOCK: tl.constexpr):
    tl.device_print("100% of x:", tl.load(x + tl.arange(0, BLOCK)))
    tl.device_print("n =", n, tl.program_id(0).to(tl.int64) << 33)


@needs_device
@pytest.mark.parametrize("way", WAYS)
def test_lines_are_printed(way: str, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.array([0.5, 1.5], np.float32)
    with weft.target(way):
        says[(2,)](x, -7, BLOCK=2, num_warps=1)
    ctypes.CDLL(None).fflush(None)
    expected = [f"pid ({p}, 0, 0) idx ({i}) 100% of x: {i}.500000" for p in (0, 1) for i in (0, 1)]
    for p in (0, 1):
        expected += [f"pid ({p}, 0, 0) idx () n =: (operand {i}) {v}" for i, v in enumerate((-7, p << 33))]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(expected)


@needs_device
@pytest.mark.parametrize("way", WAYS)
def test_every_lane_prints(way: str, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.arange(64, dtype=np.float32)
    with weft.target(way):
        says[(1,)](x, 5, BLOCK=64, num_warps=2)
    ctypes.CDLL(None).fflush(None)
    expected = [f"pid (0, 0, 0) idx ({i:2d}) 100% of x: {i}.000000" for i in range(64)]
    assert sorted(line for line in capfd.readouterr().out.splitlines() if "100%" in line) == sorted(expected)


@weft.jit
def positive(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.device_assert(value > 0, "x is positive")
    whole = tl.sum(value, 0)
    tl.device_assert(whole < 1000, "the sum is small")
    tl.store(out + i, whole)


@needs_device
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("warps", [1, 4])
def test_a_program_stops_where_an_assertion_does_not_hold(way: str, warps: int) -> None:
    """All of its threads do, and others end: nothing waits for ever at a barrier."""
    for place, value, program, text in ((300, -1, 2, "x is positive"), (0, 2000, 0, "the sum is small")):
        x, out = np.ones(512, np.int32), np.zeros((4, 128), np.int32)
        x[place] = value
        with weft.target(way):
            with pytest.raises(DeviceAssertionError, match=text) as error:
                positive[(4,)](x, out, BLOCK=128, debug=True, num_warps=warps)
            expected = np.where(np.arange(4) == program, 0, 128)
            assert (out == expected[:, None]).all()
            assert error.value.program == (program, 0, 0) and "device_assert" in (error.value.source_line or "")
            positive[(4,)](np.ones(512, np.int32), out, BLOCK=128, debug=True, num_warps=warps)
        assert (out == 128).all()


@weft.jit
def waits(flag, out, ns):
    tl.store(out, tl.atomic_poll(flag, 1, timeout_ns=ns))


@needs_device
@pytest.mark.parametrize("way", WAYS)
def test_a_wait_ends_by_the_devices_clock(way: str) -> None:
    with weft.target(way):
        for there in (0, 1):
            out = np.full(1, 7, np.int32)
            waits[(1,)](np.full(1, there, np.int32), out, 100_000)
            assert out[0] == there
