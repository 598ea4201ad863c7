"""Measuring kernels, comparing arrays, and tables of measurements.

    ms = do_bench(lambda: kernel[grid](x, y, n))
    assert_close(out, expected, rtol=1e-5)

Times are in milliseconds, with cold caches: before each run, more memory is written than the last-level cache holds. If
this thread has used a GPU, they are measured with events in its current stream, otherwise with the wall clock.
"""

from __future__ import annotations

import contextlib
import csv
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import compiler
from weft.base import load, shortened, told

from .streams import may_use_gpu

if TYPE_CHECKING:
    from weft.compiler.devices import Device
    from weft.explain import Explanation

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "do_bench",
    "do_bench_cudagraph",
    "evaluate",
    "expect",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "set_gpu_clock",
]



@shortened
def expect(explanation: Explanation, **limits: Any) -> None:
    """Raise AssertionError if an explanation exceeds limits: a test of performance that needs no GPU.

    `access_bytes` (of an access to global memory) and `blocks` (on a multiprocessor at a time) are lower limits. The
    others are upper limits: `conversions` that move data, `bank_conflicts` (wavefronts over the whole grid), `spills`
    (words of a thread), `registers`, `shared_bytes`, `findings`, `time_us`.

    >>> @weft.jit
    ... def copy(x, out, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(out + i, tl.load(x + i))
    >>> x = weft.like((4096,), "fp32")
    >>> e = copy.explain(x, x, BLOCK=1024, grid=(4,), target="cuda:90")
    >>> weft.testing.expect(e, access_bytes=16)
    >>> e.accesses[0].remark.bytes
    16
    """
    load("weft.explain.limits").expect(explanation, **limits)


@shortened
def evaluate(line: str, /, *, target: str = "sim:cuda:80", num_warps: int = 1, **arguments: Any) -> Any:
    """Run one line of the language and return its value, as a NumPy array or a Python number.

    The line runs as a kernel of one program in the simulator, with its checks, so it needs no GPU. A list becomes a
    tile of int32, float32 or bool; an array becomes a pointer to its first element, and the line may change it;
    numbers and functions of `weft.jit` stay what they are. A line that uses `gl` is Gluon. Other lines, or statements
    that end in a semicolon, may come before the last expression. LaunchError and CompilationError say what is wrong
    with a line.

    >>> from weft.testing import evaluate
    >>> evaluate("tl.cumsum(x)", x=[1, 2, 3, 4])
    array([ 1,  3,  6, 10], dtype=int32)
    >>> evaluate("tl.max(x, axis=0, return_indices=True)", x=[3.0, 9.0, 1.0, 2.0])
    (9.0, 1)
    >>> memory = np.arange(5)
    >>> evaluate("tl.store(memory + tl.arange(0, 4), 7)", memory=memory)
    >>> memory
    array([7, 7, 7, 7, 4])
    """
    return load("weft.runtime.evaluating").evaluate(line, target=target, num_warps=num_warps, **arguments)


MODES = ("min", "max", "mean", "median", "all")


def _quantile(values: Sequence[float], q: Sequence[float]) -> list[float]:
    """Quantiles, linear between neighbours.

    >>> _quantile([3.0, 1.0, 2.0], [0.0, 0.5, 0.75])
    [1.0, 2.0, 2.5]
    """
    ordered = sorted(values)
    result = []
    for p in q:
        if not 0 <= p <= 1:
            raise ValueError(f"quantiles are between 0 and 1, got {p}")
        place = p * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        result.append(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
    return result


def _summarize_statistics(times: Sequence[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """What do_bench returns of a list of times."""
    if quantiles is not None:
        values = _quantile(times, quantiles)
        return values[0] if len(values) == 1 else values
    if return_mode == "all":
        return list(times)
    if return_mode == "min":
        return min(times)
    if return_mode == "max":
        return max(times)
    return statistics.mean(times) if return_mode == "mean" else statistics.median(times)


_flush_buffer: np.ndarray[Any, Any] | None = None


def _flush_size() -> int:
    """Twice the last level of cache, within reason."""
    return min(max(64 << 20, 2 * compiler.host_cpu().l3_bytes), 256 << 20)


def clear_cache() -> None:
    """Write more memory than the last level of cache holds."""
    global _flush_buffer
    if _flush_buffer is None:
        _flush_buffer = np.zeros(_flush_size() // 8, np.int64)
    _flush_buffer.fill(1)


def _host_times(fn: Callable[[], Any], warmup: float, rep: float, grads: Sequence[Any], *, cold: bool) -> list[float]:
    """Milliseconds of each run by the wall clock."""

    def once() -> float:
        for tensor in grads:
            tensor.grad = None
        if cold:
            clear_cache()
        begin = perf_counter()
        fn()
        return 1e3 * (perf_counter() - begin)

    begin = perf_counter()
    for _ in range(3):
        once()
    estimate = max(1e-3, 1e3 * (perf_counter() - begin) / 3)
    for _ in range(int(warmup / estimate)):
        fn()
    return [once() for _ in range(max(3, min(10_000, int(rep / estimate))))]


def _clock() -> Any:
    """A clock of the GPU that this thread has used; None where it has used none."""
    if not may_use_gpu():
        return None
    module = load("weft.runtime.clock")
    return module.GPUClock() if module.devices.in_use() else None


@shortened
def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    *,
    cold: bool = True,
) -> Any:
    """Measure the milliseconds that `fn` takes: about `warmup` ms unmeasured, then about `rep` ms measured.

    Returns the `quantiles` of the times, if given, otherwise what `return_mode` says: mean, median, min, max or all.
    Once this thread has used a GPU, the times are those between two events in the current stream, including work of
    the CPU, and the GPU's cache is cold.

    >>> weft.testing.do_bench(lambda: sum(range(100)), warmup=1, rep=1) > 0
    True
    """
    if return_mode not in MODES:
        raise ValueError(f"return_mode is one of {', '.join(MODES)}, got {return_mode!r}")
    fn()
    clock, grads = _clock(), grad_to_none or ()
    if clock is not None:
        times = clock.times(fn, warmup, rep, grads, cold=cold)
    else:
        times = _host_times(fn, warmup, rep, grads, cold=cold)
    return _summarize_statistics(times, quantiles, return_mode)


@shortened
def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Like do_bench, with warm caches, and on a GPU without the cost of launches: many runs are captured in one graph.

    PyTorch captures the graph, so `fn` must be something that it can capture. Without PyTorch, or on a CPU, there is no
    graph.

    >>> do_bench_cudagraph(lambda: sum(range(1000)), rep=1) > 0
    True
    """
    if return_mode not in MODES:
        raise ValueError(f"return_mode is one of {', '.join(MODES)}, got {return_mode!r}")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return _summarize_statistics(_graph_times(torch, fn, rep, grad_to_none or ()), quantiles, return_mode)
    return do_bench(fn, rep / 4, rep, grad_to_none, quantiles, return_mode, cold=False)


GRAPHS = 10
"""How often a graph of runs is replayed."""


def _graph_times(torch: Any, fn: Callable[[], Any], rep: float, grads: Sequence[Any]) -> list[float]:
    """Milliseconds of a run, one time for each replay of a graph of about rep / GRAPHS ms."""
    for tensor in grads:
        tensor.detach_()
        tensor.requires_grad_(True)
        tensor.grad = None
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()
        clock = _clock()
        estimate = statistics.median(clock.times(fn, 0, 1, grads, cold=False))
        runs = max(1, min(1000, int(rep / GRAPHS / max(estimate, 1e-3))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(runs):
                for tensor in grads:
                    tensor.grad = None
                fn()
        times = clock.times(graph.replay, 0, rep, cold=False)
    return [ms / runs for ms in times]


def _as_numpy(value: Any) -> np.ndarray[Any, Any]:
    """An array as NumPy's, small floats as float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        name = str(value.dtype)
        value = value.float().numpy() if "bfloat16" in name or "float8" in name else value.numpy()
    array = np.asarray(value)
    if array.dtype.kind == "V" or array.dtype.name in ("bfloat16",) or array.dtype.name.startswith("float8"):
        array = array.astype(np.float32)
    return array


@shortened
def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raise AssertionError unless |x - y| <= atol + rtol * |y| everywhere (atol 0.01 and rtol 0 if not given).

    >>> weft.testing.assert_close(np.float32([1.0]), np.float32([1.0 + 1e-7]))
    >>> try:
    ...     weft.testing.assert_close(np.float32([1.0]), np.float32([1.1]))
    ... except AssertionError as error:
    ...     print(type(error).__name__)
    AssertionError
    """
    a, b = _as_numpy(x), _as_numpy(y)
    atol = 1e-2 if atol is None else (atol(a.dtype) if callable(atol) else atol)
    rtol = 0.0 if rtol is None else (rtol(a.dtype) if callable(rtol) else rtol)
    if a.size > 1 or b.size > 1:
        try:
            np.testing.assert_allclose(a, b, atol=atol, rtol=rtol, equal_nan=True, err_msg=err_msg)
        except AssertionError as error:
            raise told(error.with_traceback(None)) from None  # NumPy's frames tell no more
    elif not np.allclose(a, b, atol=atol, rtol=rtol):
        raise told(AssertionError(f"{err_msg} {x} is not close to {y} (atol={atol}, rtol={rtol})"))


@dataclass(eq=False)
class Benchmark:
    """What `perf_report` varies, and how it plots the result.

    >>> benchmark = weft.testing.Benchmark(["n"], [1, 2], "way", ["a", "b"], ["A", "B"], "sums", {})
    >>> benchmark.x_vals
    [1, 2]
    """

    x_names: Sequence[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: dict[str, Any]
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        for name in ("x_names", "x_vals", "line_vals", "line_names"):  # what may be gone through only once
            setattr(self, name, list(getattr(self, name)))


class Mark:
    """A function that measures, with the benchmarks to run it on.

    >>> benchmark = weft.testing.Benchmark(["n"], [1, 2], "way", ["a", "b"], ["A", "B"], "sums", {})
    >>> mark = weft.testing.Mark(lambda n, way: n * 10.0, benchmark)
    >>> mark.fn(2, "a")
    20.0
    """

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def _rows(self, bench: Benchmark, **kwargs: Any) -> Iterator[list[Any]]:
        for x in bench.x_vals:
            values = x if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            if len(values) != len(bench.x_names):
                raise ValueError(f"{len(bench.x_names)} values expected for {bench.x_names}, got {x}")
            x_args = dict(zip(bench.x_names, values, strict=True))
            row: list[Any] = [*values]
            low_high: list[Any] = []
            for line in bench.line_vals:
                result = self.fn(**x_args, **{bench.line_arg: line}, **bench.args, **kwargs)
                mean, low, high = result if isinstance(result, (tuple, list)) else (result, None, None)
                row.append(mean)
                low_high += [low, high]
            yield row + low_high

    def _run(
        self,
        bench: Benchmark,
        save_path: str,
        show_plots: bool,
        print_data: bool,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: Any,
    ) -> Any:
        names = [f"{name} ({bench.ylabel})" if bench.ylabel else name for name in bench.line_names]
        rows = list(self._rows(bench, **kwargs))
        width = len(bench.x_names) + len(names)
        columns = [*bench.x_names, *names]
        table = [row[:width] for row in rows]
        if diff_col and len(names) == 2:
            columns.append("Diff")
            table = [[*row, row[-1] - row[-2]] for row in table]
        if show_plots or save_path:
            self._plot(bench, rows, save_path, show_plots)
        if print_data:
            print(f"{bench.plot_name}:")
            print(_format_table(columns, table))
        if save_path:
            with open(os.path.join(save_path, f"{bench.plot_name}.csv"), "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                for row in table:
                    writer.writerow([f"{v:.{save_precision}f}" if isinstance(v, float) else v for v in row])
        return _frame(columns, table)

    def _plot(self, bench: Benchmark, rows: list[list[Any]], save_path: str, show: bool) -> None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            if show:
                print("(no plot: matplotlib is not installed, see the extra `viz`)", file=sys.stderr)
            return
        figure, axes = plt.subplots()
        start = len(bench.x_names)
        xs = [row[0] for row in rows]
        for i, name in enumerate(bench.line_names):
            color, style = bench.styles[i] if bench.styles else (None, None)
            axes.plot(xs, [row[start + i] for row in rows], label=name, color=color, ls=style)
            bounds = [
                (row[start + len(bench.line_names) + 2 * i : start + len(bench.line_names) + 2 * i + 2]) for row in rows
            ]
            if all(b[0] is not None for b in bounds):
                axes.fill_between(xs, [b[0] for b in bounds], [b[1] for b in bounds], alpha=0.15, color=color)
        axes.set_xlabel(bench.xlabel or bench.x_names[0])
        axes.set_ylabel(bench.ylabel)
        axes.set_xscale("log" if bench.x_log else "linear")
        axes.set_yscale("log" if bench.y_log else "linear")
        axes.legend()
        if save_path:
            figure.savefig(os.path.join(save_path, f"{bench.plot_name}.png"))
        if show:
            plt.show()
        plt.close(figure)

    @shortened
    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run every benchmark; with `save_path` a CSV file, a picture where matplotlib is there, and an HTML page."""
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks: list[Benchmark] = (
            [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else list(self.benchmarks)
        )
        if save_path:
            os.makedirs(save_path, exist_ok=True)
        frames = [self._run(bench, save_path, show_plots, print_data, **kwargs) for bench in benchmarks]
        if save_path:
            with open(os.path.join(save_path, "results.html"), "w") as page:
                images = "".join(f'<image src="{bench.plot_name}.png"/>\n' for bench in benchmarks)
                page.write(f"<html><body>\n{images}</body></html>\n")
        if return_df:
            return frames[0] if single else frames
        return None


def _format_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [["", *columns]]
    cells += [[str(i), *(f"{v:.6f}" if isinstance(v, float) else str(v) for v in row)] for i, row in enumerate(rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells)


def _frame(columns: list[str], rows: list[list[Any]]) -> Any:
    """A pandas DataFrame where pandas is installed, else a list of dictionaries."""
    try:
        import pandas
    except ImportError:
        return [dict(zip(columns, row, strict=True)) for row in rows]
    return pandas.DataFrame(rows, columns=columns)


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorate a function that measures one point; `.run(print_data=True)` then measures them all.

    >>> benchmark = weft.testing.Benchmark(["n"], [1, 2], "way", ["a", "b"], ["A", "B"], "sums", {})
    >>> @weft.testing.perf_report(benchmark)
    ... def times(n, way):
    ...     return n * (1.0 if way == "a" else 2.0)
    >>> type(times).__name__
    'Mark'
    """

    def decorate(fn: Callable[..., Any]) -> Mark:
        return Mark(fn, benchmarks)

    return decorate


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """Attributes of the first NVIDIA GPU, as nvidia-smi reports them.

    >>> try:
    ...     clock = nvsmi(["clocks.max.sm"])[0]
    ... except RuntimeError:                                  # there is no nvidia-smi here
    ...     clock = 0
    >>> clock >= 0
    True
    """
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.check_output(command, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"nvidia-smi failed: {error}") from error
    return [int(part) for part in text.strip().split(",")]


def _gpu(device: Any) -> Device | None:
    """The GPU that is asked about; None where the CPU is meant: none is given and no GPU was used, or it is named."""
    if getattr(device, "type", device) == "cpu":
        return None
    clock = _clock()
    if clock is None or device is None:
        return None if clock is None else clock.device
    return clock.of(device if isinstance(device, int) else int(getattr(device, "index", 0) or 0))  # type: ignore[no-any-return]


def get_dram_gbps(device: Any = None) -> float:
    """The memory bandwidth in GB/s: of a GPU by its clock and the width of its bus, of a CPU measured by copying.

    >>> get_dram_gbps("cpu") > 0
    True
    """
    gpu = _gpu(device)
    if gpu is not None:
        return 2 * gpu.memory_clock_khz * gpu.bus_bits / 8 * 1e-6
    source = np.ones(1 << 24, np.float32)
    target = np.empty_like(source)
    times = _host_times(lambda: np.copyto(target, source), 5, 50, (), cold=False)
    return 2 * source.nbytes / min(times) * 1e-6


TENSOR_OPS = {80: 4096, 86: 2048, 89: 2048, 90: 8192}
"""Operations on 8-bit elements that the tensor cores of a multiprocessor do in a cycle, by compute capability."""
SIMD_OPS = {80: 128, 86: 256, 89: 256, 90: 256}
"""Operations on float32 that a multiprocessor does in a cycle, an FMA counted as two."""


def _bits(dtype: Any) -> int:
    """The bits of an element type by its name; of none, those of float16."""
    digits = "".join(c if c.isdigit() else " " for c in str(dtype)).split()
    return int(digits[0]) if dtype is not None and digits else 8 if "fp8" in str(dtype) else 16


def _peak(operations: dict[int, int], clock_rate: float, gpu: Device) -> float:
    """TFLOP/s of so many operations a cycle; of a GPU that is not in the table, those of the newest before it."""
    generation = max((n for n in operations if n <= gpu.capability), default=min(operations))
    return operations[generation] * gpu.multiprocessors * (clock_rate or gpu.clock_khz) * 1e-9


def get_max_tensorcore_tflops(dtype: Any = None, clock_rate: float = 0, device: Any = None) -> float:
    """The most TFLOP/s of matrix products: of a GPU by its clock (kHz, or `clock_rate`), of a CPU measured.

    >>> get_max_tensorcore_tflops("float32", device="cpu") > 0
    True
    """
    gpu = _gpu(device)
    if gpu is not None:
        return _peak(TENSOR_OPS, clock_rate, gpu) * 8 / _bits(dtype)
    size = 1024
    a = np.ones((size, size), np.float32)
    times = _host_times(lambda: a @ a, 5, 50, (), cold=False)
    return 2 * size**3 / min(times) * 1e-9


def get_max_simd_tflops(dtype: Any = None, clock_rate: float = 0, device: Any = None) -> float:
    """The most TFLOP/s without tensor cores; a CPU has one kind of arithmetic.

    >>> get_max_simd_tflops("float32", device="cpu") > 0
    True
    """
    gpu = _gpu(device)
    if gpu is None:
        return get_max_tensorcore_tflops(dtype)
    return _peak(SIMD_OPS, clock_rate, gpu) * (2 if dtype is not None and _bits(dtype) == 16 else 1)


@contextlib.contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Iterator[tuple[float, float]]:
    """The GPU's peak TFLOP/s and GB/s at its present clocks; zeros without a GPU. Weft never sets clocks.

    >>> with set_gpu_clock() as (tflops, gbps):
    ...     print(tflops >= 0, gbps >= 0)
    True True
    """
    gpu = _gpu(None)
    if gpu is None:
        yield 0.0, 0.0
    else:
        yield get_max_tensorcore_tflops("float16", 0, gpu.index), get_dram_gbps(gpu.index)
