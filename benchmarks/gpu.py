"""The table of an NVIDIA GPU: Weft against Triton, the same kernel source on both sides, in one process.

    python benchmarks/gpu.py                     # needs a GPU, PyTorch and Triton
    python benchmarks/gpu.py --only softmax

Figures are medians of many launches measured by events, the sides alternating, of five such runs where the sides are
close. Results are compared with PyTorch's before anything is timed. A line that falls short of its goal (goals.py) says
so. (`gpu_goals.py` runs this, after the kernels have been compiled by many processes: one alone takes some minutes.)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton.language
from triton.experimental import gluon as their_gluon
from triton.experimental.gluon.language.nvidia import ampere as their_ampere, hopper as their_hopper
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as TheirDescriptor

import gpu_cold
import weft
import weft.gluon.language
from goals import Line
from gpu_sides import alternating, check, load_side, medians
from weft.compiler import devices
from weft.gluon.language.nvidia import ampere as our_ampere, hopper as our_hopper
from weft.gluon.nvidia.hopper import TensorDescriptor as OurDescriptor

OURS = load_side("weft", "gpu_kernels", jit=weft.jit, tl=weft.language)
THEIRS = load_side("triton", "gpu_kernels", jit=triton.jit, tl=triton.language)
GLUON = (
    load_side(
        "weft", "gpu_gluon", gluon=weft.gluon, gl=weft.gluon.language, ampere=our_ampere, hopper=our_hopper,
        descriptor=OurDescriptor,
    ),
    load_side(
        "triton", "gpu_gluon", gluon=their_gluon, gl=their_gluon.language, ampere=their_ampere, hopper=their_hopper,
        descriptor=TheirDescriptor,
    ),
)  # fmt: skip


def pair(
    name: str,
    grid: Any,
    args: tuple[Any, ...],
    out: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float,
    **more: Any,
) -> tuple[float, float]:
    """Check both sides, then time them."""
    calls = []
    for side in (OURS, THEIRS):
        kernel = getattr(side, name)
        out.fill_(float("nan")) if out.is_floating_point() else out.zero_()
        kernel[grid](*args, **more)
        check(out, expected, tolerance)
        calls.append(lambda kernel=kernel: kernel[grid](*args, **more))
    return alternating(*calls)


def gluon_pair(
    name: str,
    grid: Any,
    make: Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]],
    out: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float,
) -> tuple[float, float]:
    """The same for Gluon: `make` gives a side's arguments and constants, whose layouts are its own."""
    calls = []
    for side in GLUON:
        args, more = make(side)
        kernel = getattr(side, name)
        if name not in ("convert",):
            out.fill_(float("nan"))
        kernel[grid](*args, **more)
        check(out, expected, tolerance)
        calls.append(lambda kernel=kernel, args=args, more=more: kernel[grid](*args, **more))
    return alternating(*calls)


def _line(work: str, times: tuple[float, float], size: float, unit: str, **others: float) -> Line:
    """A line, whose figures are the size of the work by the times of Weft, Triton and others."""
    ours, theirs = times
    return Line(work, {side: size / t for side, t in {"Weft": ours, "Triton": theirs, **others}.items()}, unit)


def copies() -> Iterator[Line]:
    """1-D copies of 4 GiB in all."""
    n = 512 << 20
    x = torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    for block, warps in ((1024, 4), (2048, 4), (4096, 4), (8192, 8)):
        times = pair("copy_1d", (triton.cdiv(n, block),), (x, out, n), out, x, 0.0, BLOCK=block, num_warps=warps)
        yield _line(f"copy, blocks of {block}", times, 8 * n / 1e12, "TB/s")


def gluon_copies() -> Iterator[Line]:
    """1-D copies with R elements of a thread together, 4 GiB in all."""
    n = 512 << 20
    x = torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    for block in (1024, 2048, 4096, 8192):
        for r in (1, 2, 4, 8, 16):

            def make(side: Any, block: int = block, r: int = r) -> Any:
                layout = side.gl.BlockedLayout([r], [32], [4], [0])
                return (x, out, n), {"BLOCK": block, "layout": layout, "num_warps": 4}

            times = gluon_pair("copy_1d", (triton.cdiv(n, block),), make, out, x, 0.0)
            yield _line(f"Gluon copy, XBLOCK {block}, R {r}", times, 8 * n / 1e12, "TB/s")


def gluon_transposes() -> Iterator[Line]:
    """2-D copies between a row-major and a column-major array of 4 GiB each."""
    m = 32 << 10
    x = torch.randn(m, m, device="cuda")
    out = torch.empty(m, m, device="cuda").t()
    for block, warps in ((64, 4), (128, 8)):

        def make(side: Any, block: int = block, warps: int = warps) -> Any:
            load = side.gl.BlockedLayout([1, 4], [32 * 4 // block, block // 4], [warps, 1], [1, 0])
            store = side.gl.BlockedLayout([4, 1], [block // 4, 32 * 4 // block], [1, warps], [0, 1])
            args = (x, out, m, m, *x.stride(), *out.stride())
            return args, {"BM": block, "BN": block, "load": load, "store": store, "num_warps": warps}

        times = gluon_pair("copy_2d", (m // block, m // block), make, out, x, 0.0)
        yield _line(f"Gluon 2-D copy, transposed, {block}x{block}", times, 8 * m * m / 1e12, "TB/s")


def _conversions(gl: Any) -> dict[str, tuple[Any, Any, Any, int, int]]:
    """Pairs of layouts by name: (from, to, element, rows, columns)."""
    wide = gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])
    tall = gl.BlockedLayout([8, 1], [16, 2], [1, 4], [0, 1])
    bytes16 = gl.BlockedLayout([1, 16], [4, 8], [4, 1], [1, 0])
    bytes16t = gl.BlockedLayout([16, 1], [8, 4], [1, 4], [0, 1])
    row4, col4 = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0]), gl.BlockedLayout([4, 1], [32, 1], [1, 4], [0, 1])
    line = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    packed = gl.BlockedLayout([1, 16], [1, 32], [1, 4], [1, 0])
    mma = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    flat = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    group = {n: gl.NVMMADistributedLayout([3, 0], [4, 1], [16, n, 16]) for n in (64, 128)}
    f32, f16, i8 = torch.float32, torch.float16, torch.int8
    return {
        "wgmma f32 to blocked": (group[128], row4, f32, 64, 128),
        "wgmma f16 to blocked": (group[128], wide, f16, 128, 128),
        "wgmma f16 n64 to blocked": (group[64], wide, f16, 128, 128),
        "wgmma f16 to transposed": (group[128], tall, f16, 128, 128),
        "mma f32 to blocked": (mma, row4, f32, 64, 128),
        "mma f16 to blocked": (mma, wide, f16, 128, 128),
        "mma f16 to transposed": (mma, tall, f16, 128, 128),
        "mma f16 to operand 0": (flat, gl.DotOperandLayout(0, flat, 2), f16, 128, 64),
        "mma f16 to operand 1": (mma, gl.DotOperandLayout(1, mma, 2), f16, 128, 64),
        "transposition f32": (row4, col4, f32, 128, 128),
        "transposition f16": (wide, tall, f16, 128, 128),
        "transposition i8": (bytes16, bytes16t, i8, 128, 128),
        "repacking 1-D f32": (line, packed, f32, 1, 4096),
        "repacking 1-D f16": (line, packed, f16, 1, 4096),
        "repacking 1-D i8": (line, packed, i8, 1, 8192),
        "blocked f16 to operand 0": (wide, gl.DotOperandLayout(0, mma, 2), f16, 128, 128),
    }


def conversions() -> Iterator[Line]:
    """convert_layout alone, there and back in a loop; one block, and as many as fill the GPU."""
    rounds = 200
    both = [_conversions(side.gl) for side in GLUON]
    for name in both[0]:
        _, _, dtype, m, n = both[0][name]
        for where, blocks in (("one block", 1), ("full", 132 * 8)):
            values = torch.randint(-100, 100, (blocks * m, n), device="cuda").to(dtype)
            out = values.clone()

            def make(side: Any, name: str = name, out: torch.Tensor = out, m: int = m, n: int = n) -> Any:
                first, second = both[GLUON.index(side)][name][:2]
                return (out, rounds), {"BM": m, "BN": n, "first": first, "second": second, "num_warps": 4}

            try:
                times = gluon_pair("convert", (blocks,), make, out, values, 0.0)
            except Exception as error:  # one side may not have it; the other rows still count
                yield Line(f"convert {name}, {where}", error=f"{type(error).__name__}: {str(error)[:200]}")
                continue
            yield _line(f"convert {name}, {where}", times, 2e-6 * rounds, "conversions/us")


def gathers() -> Iterator[Line]:
    """Gathers along rows that lie within a warp."""
    for dtype, byte in ((torch.float16, 2), (torch.float8_e5m2, 1)):
        for n in (2, 4, 8, 16, 32, 64):
            rounds = 200 if n <= 16 else 10  # Triton takes a thousand times as long from there on
            x = torch.randn(512, n, device="cuda").to(dtype)
            index = torch.stack([torch.randperm(n, device="cuda") for _ in range(512)]).to(torch.int32)
            out = torch.empty_like(x)
            expected = x.view(torch.int16 if byte == 2 else torch.int8)
            for _ in range(rounds):
                expected = expected.gather(1, index.long())
            expected = expected.view(dtype)

            def make(side: Any, n: int = n, x: Any = x, index: Any = index, out: Any = out, k: int = rounds) -> Any:
                across = max(1, n // 16)
                layout = side.gl.BlockedLayout([1, n // across], [32 // across, across], [4, 1], [1, 0])
                args = (x, index, out, k)
                return args, {"BM": 512, "BN": n, "layout": layout, "num_warps": 4}

            times = gluon_pair("gather", (132 * 8,), make, out, expected, 0.0)
            yield _line(f"gather [512, {n}] of {byte} bytes", times, 1e-6 * rounds, "gathers/us")


def gluon_products() -> Iterator[Line]:
    """Matrix products in Gluon: by mma.sync with cp.async, and by wgmma with bulk copies; beside cuBLAS."""
    m = 4096
    a, b = torch.randn(m, m, device="cuda").half(), torch.randn(m, m, device="cuda").half()
    c = torch.empty_like(a)
    for bm, bn, bk, stages, warps in ((128, 128, 32, 4, 4), (128, 256, 32, 4, 8)):

        def make_mma(side: Any, bm: int = bm, bn: int = bn, bk: int = bk, stages: int = stages, w: int = warps) -> Any:
            more = {"BM": bm, "BN": bn, "BK": bk, "STAGES": stages, "GROUP": 8, "num_warps": w}
            return (a, b, c, m, m, m), more

        times = gluon_pair("matmul_mma", (m // bm * (m // bn),), make_mma, c, a @ b, 1e-2)
        yield _line(f"Gluon matmul, mma.sync, f16, {m}, {bm}x{bn}", times, 2e-12 * m**3, "TFLOP/s")
    for m in (4096, 8192):
        a, b = torch.randn(m, m, device="cuda").bfloat16(), torch.randn(m, m, device="cuda").bfloat16()
        c = torch.empty_like(a)
        expected = a @ b
        (blas,) = medians(lambda a=a, b=b, c=c: torch.mm(a, b, out=c), seconds=0.1)
        for bm, bn, bk, stages, warps in ((128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 4, 4)):

            def make(
                side: Any, a: Any = a, b: Any = b, c: Any = c, m: int = m,
                bm: int = bm, bn: int = bn, bk: int = bk, stages: int = stages, w: int = warps,
            ) -> Any:  # fmt: skip
                lay = side.gl.NVMMASharedLayout.get_default_for
                bf16 = side.gl.bfloat16
                args = [
                    side.Descriptor.from_tensor(x, list(block), lay(list(block), bf16))
                    for x, block in ((a, (bm, bk)), (b, (bk, bn)), (c, (bm, bn)))
                ]
                more = {"BM": bm, "BN": bn, "BK": bk, "STAGES": stages, "GROUP": 8, "num_warps": w}
                return (*args, m), more

            times = gluon_pair("matmul_wgmma", (m // bm * (m // bn),), make, c, expected, 1e-2)
            name = f"Gluon matmul, wgmma, {m}, {bm}x{bn}x{bk} s{stages}"
            yield _line(name, times, 2e-12 * m**3, "TFLOP/s", cuBLAS=blas)


def adds() -> Iterator[Line]:
    """Vector addition."""
    n = 256 << 20
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    times = pair("add", (triton.cdiv(n, 1024),), (x, y, out, n), out, x + y, 0.0, BLOCK=1024)
    yield _line("vector add", times, 12 * n / 1e12, "TB/s")


def rows() -> Iterator[Line]:
    """Softmax and layer norm."""
    for columns in (1024, 4096, 16384):
        m = (128 << 20) // columns
        x = torch.randn(m, columns, device="cuda")
        out = torch.empty_like(x)
        warps = 4 if columns <= 1024 else 8 if columns <= 4096 else 16
        expected = torch.softmax(x, 1)
        times = pair("softmax", (m,), (x, out, columns), out, expected, 1e-5, BLOCK=columns, num_warps=warps)
        yield _line(f"softmax, rows of {columns}", times, 8 * x.numel() / 1e12, "TB/s")
    columns, m = 4096, 32768
    x = torch.randn(m, columns, device="cuda")
    w, b = torch.randn(columns, device="cuda"), torch.randn(columns, device="cuda")
    out = torch.empty_like(x)
    expected = torch.nn.functional.layer_norm(x, (columns,), w, b, 1e-5)
    args = (x, out, w, b, columns, 1e-5)
    times = pair("layer_norm", (m,), args, out, expected, 1e-5, BLOCK=columns, num_warps=8)
    yield _line("layer norm, rows of 4096", times, 8 * x.numel() / 1e12, "TB/s")


def transposes() -> Iterator[Line]:
    """Transposed copies."""
    m = 16384
    for dtype in (torch.float32, torch.float16):
        x = torch.randn(m, m, device="cuda").to(dtype)
        out = torch.empty_like(x)
        for block, warps in ((64, 4), (128, 8)):
            grid = (m // block, m // block)
            times = pair("transpose", grid, (x, out, m, m), out, x.t(), 0.0, BLOCK=block, num_warps=warps)
            name = str(dtype).rpartition(".")[2]
            size = 2 * x.numel() * x.element_size()
            yield _line(f"transposed copy, {name}, {block}x{block}", times, size / 1e12, "TB/s")


def products() -> Iterator[Line]:
    """Matrix products of the Triton language, no pipelining asked for on either side."""
    for dtype, m in ((torch.float16, 4096), (torch.bfloat16, 4096)):
        a, b = torch.randn(m, m, device="cuda").to(dtype), torch.randn(m, m, device="cuda").to(dtype)
        c = torch.empty(m, m, device="cuda", dtype=dtype)
        grid = ((m // 128) * (m // 128),)
        more = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "num_warps": 8}
        times = pair("matmul", grid, (a, b, c, m, m, m), c, a @ b, 1e-2, **more)
        name = str(dtype).rpartition(".")[2]
        yield _line(f"matmul, {name}, {m}", times, 2e-12 * m**3, "TFLOP/s")


def _host_times(*calls: Callable[[], Any], rounds: int = 300, repeats: int = 25) -> list[float]:
    """The least of several means of the time that each call takes on the host; the calls take turns."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, times in zip(calls, found, strict=True):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(rounds):
                call()
            times.append((time.perf_counter() - begin) / rounds)
    torch.cuda.synchronize()
    return [min(times) for times in found]


def launches() -> Iterator[Line]:
    """What a launch costs the host; the floor is cuLaunchKernel through cuda-bindings with prepared pointers."""
    from cuda.bindings import driver

    x = torch.zeros(16, device="cuda")
    args = (x, x, x, 16, 32, 64)
    kernel = OURS.nothing[(1,)](*args)
    loaded = kernel.load()
    import ctypes

    slots = (ctypes.c_uint64 * 6)(*[x.data_ptr()] * 3, 16, 32, 64)
    pointers = (ctypes.c_uint64 * 6)(*[ctypes.addressof(slots) + 8 * i for i in range(6)])
    function = driver.cuKernelGetFunction(loaded.kernel)[1]
    stream, where = driver.CUstream(0), ctypes.addressof(pointers)

    def least() -> None:
        driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, where, 0)

    long = (*[x] * 7, *[16 * (i + 1) for i in range(12)])
    named = {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8, "num_warps": 4}
    frozen = OURS.nothing.bind(*args, grid=(1,))
    for work, ours, theirs in (
        ("launch, 6 arguments", lambda: OURS.nothing[(1,)](*args), lambda: THEIRS.nothing[(1,)](*args)),
        (
            "launch, 6 arguments, 4 constants by name",
            lambda: OURS.nothing_named[(1,)](*args, **named), lambda: THEIRS.nothing_named[(1,)](*args, **named),
        ),
        ("launch, 19 arguments", lambda: OURS.nothing_19[(1,)](*long), lambda: THEIRS.nothing_19[(1,)](*long)),
        ("launch, frozen", frozen, lambda: THEIRS.nothing[(1,)](*args)),
    ):  # fmt: skip
        ours(), theirs()
        floor, mine, other = (1e6 * seconds for seconds in _host_times(least, ours, theirs))
        yield Line(work, {"Weft": mine, "Triton": other, "cuLaunchKernel": floor}, "us")


def compiles() -> Iterator[Line]:
    """Cold compiles to machine code, in fresh processes; each kernel three times, as two get ready beside each pair."""
    together = max(1, (os.cpu_count() or 1) // 4)
    _, *found = gpu_cold.rows(devices.current_device().target, repeat=3, together=together)
    for name, *times in found:
        yield _line(f"cold compile, {name}", (times[0], times[1]), 1.0, "compiles/s")


GROUPS = {
    "launch": launches,
    "copy": copies,
    "gluon copy": gluon_copies,
    "gluon transpose": gluon_transposes,
    "convert": conversions,
    "gather": gathers,
    "gluon matmul": gluon_products,
    "add": adds,
    "softmax": rows,
    "transpose": transposes,
    "matmul": products,
    "compile": compiles,
}


def parts() -> list[str]:
    """The parts of the table."""
    return list(GROUPS)


def prepare(part: str) -> None:
    """Compile the kernels of a part."""
    if part not in ("launch", "compile"):
        for _ in GROUPS[part]():
            pass


def measure(part: str) -> Iterator[Line]:
    """The lines of a part."""
    yield from GROUPS[part]()


if __name__ == "__main__":
    from gpu_goals import main

    sys.exit(main(["--rows", "gpu,cold,launch", *sys.argv[1:]]))
