"""The table of an NVIDIA GPU: Weft against Triton, the same kernel source on both sides, in one process.

    python benchmarks/gpu.py                     # needs a GPU, PyTorch and Triton
    python benchmarks/gpu.py --only softmax
    python benchmarks/gpu.py --save              # the table to benchmarks/results/

Times are medians of many launches measured by events, the sides alternating; "reached" is how many times faster Weft
is. Results are compared with PyTorch's before anything is timed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language

import weft
from weft.compiler import devices

HERE = Path(__file__).resolve().parent


@dataclass
class Row:
    """One line: seconds of both sides, and what the work moves or computes."""

    work: str
    least: float
    ours: float
    theirs: float
    rate: str = ""
    note: str = ""

    @property
    def reached(self) -> float:
        """How many times faster Weft is."""
        return self.theirs / self.ours


def load_side(name: str, jit: Any, tl: Any) -> Any:
    """The kernels with one side's `jit` and language."""
    sys.modules["sides"] = sides = types.ModuleType("sides")
    sides.jit, sides.tl = jit, tl  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location(f"gpu_kernels_{name}", HERE / "gpu_kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def medians(*calls: Callable[[], Any], seconds: float = 0.4) -> list[float]:
    """The median time of each call on the GPU, in seconds; they take turns, the L2 cache is overwritten between."""
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for call in calls:
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    calls[0]()
    torch.cuda.synchronize()
    rounds = max(10, min(200, int(seconds / (time.perf_counter() - begin + 1e-4))))
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2 * rounds)] for _ in calls]
    for k in range(rounds):
        for call, marks in zip(calls, events, strict=True):
            flush.zero_()
            marks[2 * k].record()
            call()
            marks[2 * k + 1].record()
    torch.cuda.synchronize()
    return [
        statistics.median(marks[2 * k].elapsed_time(marks[2 * k + 1]) for k in range(rounds)) * 1e-3 for marks in events
    ]


def check(out: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Stop where a result is wrong: nothing is timed that is not right."""
    error = (out.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-30)
    if not bool(error <= tolerance):
        raise SystemExit(f"wrong result: relative error {float(error):.3g}")


OURS = load_side("weft", weft.jit, weft.language)
THEIRS = load_side("triton", triton.jit, triton.language)


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
    ours, theirs = medians(*calls)
    return ours, theirs


def _bandwidth(size: int, seconds: float) -> str:
    return f"{size / seconds / 1e12:.2f} TB/s"


def copies() -> Iterator[Row]:
    """1-D copies of 4 GiB in all."""
    n = 512 << 20
    x = torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    for block, warps in ((1024, 4), (2048, 4), (4096, 4), (8192, 8)):
        times = pair("copy_1d", (triton.cdiv(n, block),), (x, out, n), out, x, 0.0, BLOCK=block, num_warps=warps)
        yield Row(f"copy, blocks of {block}", 1.0, *times, _bandwidth(8 * n, times[0]))


def adds() -> Iterator[Row]:
    """Vector addition."""
    n = 256 << 20
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    times = pair("add", (triton.cdiv(n, 1024),), (x, y, out, n), out, x + y, 0.0, BLOCK=1024)
    yield Row("vector add", 1.0, *times, _bandwidth(12 * n, times[0]))


def rows() -> Iterator[Row]:
    """Softmax and layer norm."""
    for columns in (1024, 4096, 16384):
        m = (128 << 20) // columns
        x = torch.randn(m, columns, device="cuda")
        out = torch.empty_like(x)
        warps = 4 if columns <= 1024 else 8 if columns <= 4096 else 16
        expected = torch.softmax(x, 1)
        times = pair("softmax", (m,), (x, out, columns), out, expected, 1e-5, BLOCK=columns, num_warps=warps)
        yield Row(f"softmax, rows of {columns}", 1.0, *times, _bandwidth(8 * x.numel(), times[0]))
    columns, m = 4096, 32768
    x = torch.randn(m, columns, device="cuda")
    w, b = torch.randn(columns, device="cuda"), torch.randn(columns, device="cuda")
    out = torch.empty_like(x)
    expected = torch.nn.functional.layer_norm(x, (columns,), w, b, 1e-5)
    args = (x, out, w, b, columns, 1e-5)
    times = pair("layer_norm", (m,), args, out, expected, 1e-5, BLOCK=columns, num_warps=8)
    yield Row("layer norm, rows of 4096", 1.0, *times, _bandwidth(8 * x.numel(), times[0]))


def transposes() -> Iterator[Row]:
    """Transposed copies."""
    m = 16384
    for dtype in (torch.float32, torch.float16):
        x = torch.randn(m, m, device="cuda").to(dtype)
        out = torch.empty_like(x)
        for block, warps in ((64, 4), (128, 8)):
            grid = (m // block, m // block)
            times = pair("transpose", grid, (x, out, m, m), out, x.t(), 0.0, BLOCK=block, num_warps=warps)
            name = str(dtype).rpartition(".")[2]
            rate = _bandwidth(2 * x.numel() * x.element_size(), times[0])
            yield Row(f"transposed copy, {name}, {block}x{block}", 1.0, *times, rate)


def products() -> Iterator[Row]:
    """Matrix products of the Triton language, no pipelining asked for on either side."""
    for dtype, m in ((torch.float16, 4096), (torch.bfloat16, 4096)):
        a, b = torch.randn(m, m, device="cuda").to(dtype), torch.randn(m, m, device="cuda").to(dtype)
        c = torch.empty(m, m, device="cuda", dtype=dtype)
        grid = ((m // 128) * (m // 128),)
        more = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "num_warps": 8}
        times = pair("matmul", grid, (a, b, c, m, m, m), c, a @ b, 1e-2, **more)
        name = str(dtype).rpartition(".")[2]
        yield Row(f"matmul, {name}, {m}", 1.0, *times, f"{2 * m**3 / times[0] / 1e12:.0f} TFLOP/s")


def _host_time(call: Callable[[], Any], rounds: int = 300, repeats: int = 15) -> float:
    """The least of several means of the time that a call takes on the host; the queue is emptied between."""
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(rounds):
            call()
        found.append((time.perf_counter() - begin) / rounds)
    torch.cuda.synchronize()
    return min(found)


def launches() -> Iterator[Row]:
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
    floor = _host_time(lambda: driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, where, 0))
    long = (*[x] * 7, *[16 * (i + 1) for i in range(12)])
    frozen = OURS.nothing.bind(*args, grid=(1,))
    for work, least, ours, theirs in (
        ("launch, 6 arguments", 1.7, lambda: OURS.nothing[(1,)](*args), lambda: THEIRS.nothing[(1,)](*args)),
        ("launch, 19 arguments", 2.5, lambda: OURS.nothing_19[(1,)](*long), lambda: THEIRS.nothing_19[(1,)](*long)),
        ("launch, frozen", 1.2, frozen, lambda: THEIRS.nothing[(1,)](*args)),
    ):
        ours(), theirs()
        mine, other = _host_time(ours), _host_time(theirs)
        note = f"{1e6 * mine:.2f} us, {mine / floor:.2f}x the floor of {1e6 * floor:.2f} (at most {least})"
        yield Row(work, 1.0, mine, other, note=note)


GROUPS = {
    "launch": launches,
    "copy": copies,
    "add": adds,
    "softmax": rows,
    "transpose": transposes,
    "matmul": products,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="groups whose name contains this: " + ", ".join(GROUPS))
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    device = devices.current_device()
    found: list[Row] = []
    print(f"{device.name}, driver {devices.driver_version()}, torch {torch.__version__}, triton {triton.__version__}")
    print(f"{'work':34} {'weft':>10} {'triton':>10} {'reached':>8}  rate", flush=True)
    for name, group in GROUPS.items():
        if options.only not in name:
            continue
        try:
            for row in group():
                found.append(row)
                times = f"{1e6 * row.ours:9.1f}u {1e6 * row.theirs:9.1f}u"
                print(f"{row.work:34} {times} {row.reached:7.2f}x  {row.rate}{row.note}", flush=True)
        except (Exception, SystemExit) as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        torch.cuda.empty_cache()
    facts = {
        "date": datetime.date.today().isoformat(),
        "gpu": device.name,
        "driver": devices.driver_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "rows": [{**asdict(r), "reached": r.reached} for r in found],
    }
    if options.json:
        print(json.dumps(facts, indent=1))
    if options.save:
        place = HERE / "results" / f"gpu-{facts['date']}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
