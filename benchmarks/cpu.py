"""The performance table: Weft on this machine's CPU against what a user would run instead.

    python benchmarks/cpu.py                       # the whole table; PyTorch and Triton must be installed
    python benchmarks/cpu.py --only softmax        # rows whose name contains a word
    python benchmarks/cpu.py --json

Both sides use the same number of threads and outputs allocated beforehand; their repetitions alternate; the median
counts, and "spread" is the larger of the two sides' interquartile ranges. "reached" is how many times faster Weft is
(for the last rows: the time itself). "of copy" compares the bytes moved per second with PyTorch's copy of 256 MiB.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import small_kernels  # noqa: E402
import small_problems  # noqa: E402
import table_kernels as kernels  # noqa: E402
import weft  # noqa: E402
from measure import Timing, interleaved, per_call  # noqa: E402
from weft.backends.cpu.driver import get_num_threads, set_num_threads  # noqa: E402

BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass
class Row:
    """One line of the table."""

    work: str
    least: float
    aim: str
    reached: float
    unit: str
    ours: float
    theirs: float | None = None
    spread: float = 0.0
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the least that was asked for is reached."""
        return self.reached >= self.least if self.unit == "x" else self.reached <= self.least


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Random data of any type."""
    array = zeros(*shape, dtype=dtype)
    array[...] = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return array


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Random data of any type: all values of a type of integers."""
    if dtype != np.int8:
        return normal(*shape, seed=seed, dtype=dtype)
    array = zeros(*shape, dtype=dtype)
    array[...] = np.random.default_rng(seed).integers(-128, 128, shape, dtype)
    return array


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    """Zeros, in memory aligned to 64 bytes as PyTorch does it, for both sides (NumPy aligns to 16)."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def tensor(array: Any) -> torch.Tensor:
    """The array as a tensor over the same memory."""
    if array.dtype == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def close(actual: Any, expected: torch.Tensor, tolerance: float) -> None:
    """A figure for a wrong result is no figure."""
    ours, theirs = np.asarray(actual, np.float32), expected.float().numpy()
    worst = float(np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))))
    if not worst <= tolerance:
        raise SystemExit(f"the result is wrong: differs by {worst:.1e}")


@lru_cache
def copy_speed() -> float:
    """Bytes per second that PyTorch's copy of 256 MiB moves, reading and writing counted."""
    source, target = torch.empty(1 << 26).normal_(), torch.empty(1 << 26)
    (timing,) = interleaved([lambda: target.copy_(source)])
    return 2 * source.nbytes / timing.median


def compare(
    work: str,
    least: float,
    aim: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    moved: float = 0,
    flops: float = 0,
) -> Row:
    """Time both sides in turns."""
    a, b = interleaved([ours, theirs])
    note = ""
    if moved:
        note = f"{moved / a.median / 1e9:.1f} GB/s, {moved / a.median / copy_speed():.2f} of copy"
    if flops:
        note = f"{flops / a.median / 1e9:.0f} GFLOP/s against {flops / b.median / 1e9:.0f}"
    return Row(work, least, aim, b.median / a.median, "x", a.median, b.median, max(a.spread, b.spread), note)


def vector_add() -> Iterator[Row]:
    n = 1 << 26
    x, y, out = normal(n), normal(n, seed=1), zeros(n)
    a, b, c = tensor(x), tensor(y), torch.zeros(n)
    kernels.add(x, y, out)
    close(out, torch.add(a, b, out=c), 0)
    yield compare(
        "vector add, 64 Mi fp32", 0.95, "copy", lambda: kernels.add(x, y, out), lambda: torch.add(a, b, out=c), 12 * n
    )


def softmax() -> Iterator[Row]:
    x, out = normal(4096, 4096), zeros(4096, 4096)
    a, b = tensor(x), torch.zeros(x.shape)
    kernels.softmax(x, out)
    close(out, torch.softmax(a, 1, out=b), 1e-5)
    yield compare(
        "softmax 4096x4096 fp32",
        1.3,
        "0.9 copy",
        lambda: kernels.softmax(x, out),
        lambda: torch.softmax(a, 1, out=b),
        2 * x.nbytes,
    )


def layer_norm() -> Iterator[Row]:
    rows, columns = 4096, 4096
    x, weight, bias = normal(rows, columns), normal(columns, seed=1), normal(columns, seed=2)
    out, mean, rstd = zeros(rows, columns), zeros(rows), zeros(rows)
    a, w, b = tensor(x), tensor(weight), tensor(bias)
    outs = {"out0": torch.zeros(x.shape), "out1": torch.zeros(rows, 1), "out2": torch.zeros(rows, 1)}

    def with_out() -> object:
        return torch.ops.aten.native_layer_norm.out(a, (columns,), w, b, 1e-5, **outs)

    def without_out() -> object:
        return torch.nn.functional.layer_norm(a, (columns,), w, b, 1e-5)

    kernels.layer_norm(x, weight, bias, out, mean, rstd)
    close(out, without_out(), 1e-4)
    # PyTorch's form with outputs may compute and then copy: it is given whichever of the two is faster here.
    first, second = interleaved([with_out, without_out], budget=1.0)
    theirs = with_out if first.median <= second.median else without_out
    yield compare(
        "layer norm 4096x4096 fp32",
        3.0,
        "0.9 copy",
        lambda: kernels.layer_norm(x, weight, bias, out, mean, rstd),
        theirs,
        2 * x.nbytes,
    )


def gelu() -> Iterator[Row]:
    n = 1 << 24
    x, out = normal(n), zeros(n)
    a, b = tensor(x), torch.zeros(n)
    kernels.gelu(x, out)
    close(out, torch._C._nn.gelu(a, out=b), 1e-5)
    yield compare(
        "gelu (erf), 16 Mi fp32",
        1.3,
        "0.9 copy",
        lambda: kernels.gelu(x, out),
        lambda: torch._C._nn.gelu(a, out=b),
        8 * n,
    )


def transpose() -> Iterator[Row]:
    x, out = normal(4096, 4096), zeros(4096, 4096)
    a, b = tensor(x), torch.zeros(x.shape)
    kernels.transpose(x, out)
    close(out, b.copy_(a.t()), 0)
    yield compare(
        "transposed copy 4096x4096",
        3.0,
        "0.8 copy",
        lambda: kernels.transpose(x, out),
        lambda: b.copy_(a.t()),
        2 * x.nbytes,
    )


def matmul(
    name: str, dtype: Any, sizes: dict[int, tuple[int, int, int]], least: float, aim: str, tolerance: float
) -> Iterator[Row]:
    """Square products of one type, with the blocks that are best for each size."""
    for size, block in sizes.items():
        a, b = random(size, size, dtype=dtype), random(size, size, seed=1, dtype=dtype)
        c = zeros(size, size, dtype=np.int32 if dtype == np.int8 else dtype)
        x, y, z = tensor(a), tensor(b), tensor(c.copy())
        theirs = partial(torch._int_mm if dtype == np.int8 else torch.mm, x, y, out=z)  # oneDNN's, both
        kernels.matmul(a, b, c, block)
        close(c, theirs(), tolerance)
        ours = partial(kernels.matmul, a, b, c, block)
        yield compare(f"matmul {name}, {size}", least, aim, ours, theirs, flops=2 * size**3)


def matmul_f32() -> Iterator[Row]:
    sizes = {512: (64, 64, 512), 1024: (256, 64, 512), **dict.fromkeys((2048, 4096), (256, 128, 512))}
    yield from matmul("fp32", np.dtype(np.float32), sizes, 0.95, "1.05x", 1e-3)


def matmul_amx() -> Iterator[Row]:
    """What a matrix unit multiplies, where the processor has one; by vectors elsewhere."""
    wide = dict.fromkeys((2048, 4096), (256, 512, 256))
    yield from matmul("bf16", BF16, {512: (128, 128, 256), 1024: (256, 256, 256), **wide}, 0.8, "1.0x", 2e-1)
    deep = dict.fromkeys((1024, 2048, 4096), (256, 256, 512))
    yield from matmul("int8", np.dtype(np.int8), {512: (128, 128, 256), **deep}, 0.8, "1.0x", 0)


def sorting() -> Iterator[Row]:
    """Rows of three lengths, values alone on our side; PyTorch's sort and top-k give the indices besides."""
    for columns, rows in ((256, 4096), (1024, 1024), (5000, 256)):
        x, out = normal(rows, columns), zeros(rows, columns)
        a, values, indices = tensor(x), torch.empty(rows, columns), torch.empty(rows, columns, dtype=torch.int64)
        block = weft.next_power_of_2(columns)

        def sort(x: Any = x, out: Any = out, n: int = columns, block: int = block) -> object:
            return small_kernels.sort_rows[(x.shape[0],)](x, out, n, BLOCK=block)

        def theirs(a: torch.Tensor = a, out: Any = (values, indices)) -> object:
            return torch.sort(a, 1, out=out)

        sort()
        close(out, torch.sort(a, 1)[0], 0)
        yield compare(f"sort {rows}x{columns} fp32", 1.0, "2x", sort, theirs)
        yield compare(f"sort {rows}x{columns} fp32, NumPy", 0, "-", sort, lambda x=x: np.sort(x, 1))
        for k in (8, 64):
            best, kept = zeros(rows, k), (torch.empty(rows, k), torch.empty(rows, k, dtype=torch.int64))

            def topk(x: Any = x, out: Any = best, n: int = columns, block: int = block, k: int = k) -> object:
                return small_kernels.topk[(x.shape[0],)](x, out, n, K=k, BLOCK=block)

            def largest(a: torch.Tensor = a, k: int = k, out: Any = kept) -> object:
                return torch.topk(a, k, out=out)

            topk()
            close(best, torch.topk(a, k)[0], 0)
            yield compare(f"top {k} of {rows}x{columns} fp32", 1.0, "2x", topk, largest)


def attention() -> Iterator[Row]:
    for name, dtype, block, least, tolerance in (
        ("fp32", np.dtype(np.float32), (128, 128), 1.2, 1e-4),
        ("bf16", BF16, (128, 256), 1.0, 2e-2),
    ):
        q, k, v = (normal(4, 8, 1024, 64, seed=s, dtype=dtype) for s in range(3))
        out = zeros(4, 8, 1024, 64, dtype=dtype)
        tensors = [tensor(x) for x in (q, k, v)]
        theirs = partial(torch.nn.functional.scaled_dot_product_attention, *tensors)
        kernels.attention(q, k, v, out, block)
        close(out, theirs(), tolerance)
        flops = 4 * 4 * 8 * 1024 * 1024 * 64
        ours = partial(kernels.attention, q, k, v, out, block)
        yield compare(f"flash attention, 4x8x1024x64 {name}", least, "1.5x", ours, theirs, flops=flops)


def script(*command: str, **variables: str) -> Any:
    """The result that a script of this folder prints."""
    environment = {**os.environ, **variables}
    process = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)
    marked = [line for line in process.stdout.splitlines() if line.startswith("RESULT")]
    if not marked:
        raise SystemExit(f"{' '.join(command)} failed:\n{process.stderr[-3000:]}")
    return json.loads(marked[-1].removeprefix("RESULT"))


def interpreter() -> Iterator[Row]:
    path = str(HERE / "interpreter.py")
    ours, theirs = script(path, "weft"), script(path, "triton")
    ratios = {}
    for name, row in ours.items():
        scale = max(1.0, abs(theirs[name]["checksum"]))
        if abs(row["checksum"] - theirs[name]["checksum"]) > 1e-2 * scale:
            raise SystemExit(f"interpreter: {name} gives {row['checksum']} here and {theirs[name]['checksum']} there")
        ratios[name] = theirs[name]["seconds"] / row["seconds"]
    middle = statistics.geometric_mean(ratios.values())
    worst = min(ratios, key=lambda name: ratios[name])
    total, other = (sum(row["seconds"] for row in side.values()) for side in (ours, theirs))
    note = f"geometric mean of {len(ratios)} small kernels; least {ratios[worst]:.0f}x ({worst})"
    yield Row("Triton's interpreter", 100, "1000x", middle, "x", total, other, note=note)


def compiling() -> Iterator[Row]:
    path = str(HERE / "compile_time.py")
    with tempfile.TemporaryDirectory() as folder:
        specs = str(Path(folder) / "specs.json")
        subprocess.run([sys.executable, path, "record", specs], check=True)
        runs: dict[str, list[dict[str, float]]] = {"weft": [], "triton": []}
        for _ in range(3):
            for which, results in runs.items():
                results.append(script(path, which, specs))
    medians = {
        which: {name: statistics.median(run[name] for run in results) for name in results[0]}
        for which, results in runs.items()
    }
    ratios = {name: medians["triton"][name] / seconds for name, seconds in medians["weft"].items()}
    means = {which: statistics.geometric_mean(times.values()) for which, times in medians.items()}
    worst = min(ratios, key=lambda name: ratios[name])
    note = f"{len(ratios)} kernels of the examples; least {ratios[worst]:.2f}x ({worst})"
    yield Row(
        "cold compile, against Triton", 1.0, "2x", means["triton"] / means["weft"], "x", means["weft"], means["triton"],
        note=note,
    )  # fmt: skip


def importing() -> Iterator[Row]:
    for least, aim, statement in (
        (150.0, "60 ms", "import weft"),
        (math.inf, "", "import weft.language, weft.runtime"),
    ):
        code = f"import time; t = time.perf_counter(); {statement}; print('RESULT' + str(time.perf_counter() - t))"
        samples = [script("-c", code) for _ in range(7)]
        middle = statistics.median(samples)
        yield Row(statement, least, aim, middle * 1e3, "ms", middle, spread=(max(samples) - min(samples)) / middle)


def first_launch() -> Iterator[Row]:
    """Whole processes, beside one that only imports NumPy; in turns, as a shared machine has good and bad moments."""
    path = str(HERE / "first_launch.py")
    with tempfile.TemporaryDirectory() as folder:
        full = {**os.environ, "WEFT_CACHE_DIR": folder}
        empty = {**full, "WEFT_CACHE_DIR": str(Path(folder) / "empty")}

        def seconds(*command: str, environment: dict[str, str]) -> float:
            begin = perf_counter()
            subprocess.run([sys.executable, *command], env=environment, check=True)
            return perf_counter() - begin

        seconds(path, environment=full)
        times: dict[str, list[float]] = {"warm": [], "cold": [], "numpy": []}
        for _ in range(9):
            times["warm"].append(seconds(path, environment=full))
            times["cold"].append(seconds(path, environment=empty))
            times["numpy"].append(seconds("-c", "import numpy", environment=full))
            shutil.rmtree(empty["WEFT_CACHE_DIR"])
    middle = {name: statistics.median(samples) for name, samples in times.items()}
    for name, least, aim in (("warm", 300.0, "200 ms"), ("cold", math.inf, "")):
        spread = (max(times[name]) - min(times[name])) / middle[name]
        yield Row(
            f"new process, first launch, {name} cache", least, aim, middle[name] * 1e3, "ms", middle[name],
            middle["numpy"], spread, note="theirs: a process that only imports NumPy",
        )  # fmt: skip


def warm_call() -> Iterator[Row]:
    a, b, c, d = (normal(128, seed=seed) for seed in range(4))
    launch = kernels.small_kernel[(1,)]
    arrays: Timing = per_call(lambda: launch(a, b, c, d, 100, 2.5, BLOCK=128))
    close(d[:100], tensor((a + b) * np.float32(2.5) + c)[:100], 1e-6)
    yield Row(
        "warm call, one program, 6 arguments", 15.0, "5 us", arrays.median * 1e6, "us", arrays.median,
        spread=arrays.spread,
    )  # fmt: skip


def scaling() -> Iterator[Row]:
    """How many times faster all threads are than one, beside how many times faster PyTorch's are."""
    threads = get_num_threads()
    x, y, out, result = normal(4096, 4096), normal(2048, 2048), zeros(4096, 4096), zeros(2048, 2048)
    weight, bias, mean, rstd = normal(4096, seed=1), normal(4096, seed=2), zeros(4096), zeros(4096)
    a, b, c, d, w, v = (tensor(array) for array in (x, y, zeros(4096, 4096), zeros(2048, 2048), weight, bias))
    works: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("softmax 4096x4096", lambda: kernels.softmax(x, out), lambda: torch.softmax(a, 1, out=c)),
        (
            "layer norm 4096x4096",
            lambda: kernels.layer_norm(x, weight, bias, out, mean, rstd),
            lambda: torch.nn.functional.layer_norm(a, (4096,), w, v, 1e-5),
        ),
        ("matmul fp32, 2048", lambda: kernels.matmul(y, y, result), lambda: torch.mm(b, b, out=d)),
    ]
    for name, ours, theirs in works:
        times = []
        for count in (1, threads):
            set_num_threads(count)
            torch.set_num_threads(count)
            times.append(interleaved([ours, theirs]))
        (single, other_single), (together, other_together) = times
        mine, other = single.median / together.median, other_single.median / other_together.median
        note = f"{mine:.2f} times one thread with {threads}, against {other:.2f}"
        spread = max(timing.spread for pair in times for timing in pair)
        yield Row(
            f"scaling of {name}", 0.85, "1.0x", mine / other, "x", together.median, other_together.median, spread, note
        )


def python_threads() -> Iterator[Row]:
    """Calls from several Python threads at once, each with an output of its own: how many there are a second, beside
    PyTorch's, and beside what one thread does. Each call runs on its caller alone, on both sides.

    A call of `w` us of work holds the interpreter's lock for `h` us, some 0.6 with its loop; so `n` threads make at
    most the smaller of n / (w + h) and 1 / h calls in a microsecond: work of 20 us ends at some 33 threads.
    """
    most = get_num_threads()
    set_num_threads(1)
    torch.set_num_threads(1)
    x, y = torch.randn(100_000), torch.empty(100_000)
    each = interleaved([lambda: _gelu(x, y)])[0].median / len(x)
    square = torch.randn(384, 384)
    works: list[tuple[str, torch.Tensor, Callable[..., object], Callable[..., object]]] = [
        (f"gelu, {us} us", torch.randn(round(us / 1e6 / each)), _gelu, lambda x, out: torch._C._nn.gelu(x, out=out))
        for us in (20, 100)
    ]
    works.append(("matmul 384", square, lambda x, out: kernels.matmul(x, x, out), _square))
    for name, x, ours, theirs in works:
        outs = [torch.empty_like(x) for _ in range(most)]
        alone = None
        for count in (n for n in (1, 2, 4, 8, 16) if n <= most):
            both = [small_problems.calls_per_second(partial(work, x), outs[:count]) for work in (ours, theirs)]
            alone = alone or both
            mine, other = both[0] / alone[0], both[1] / alone[1]
            note = f"{both[0]:,.0f} calls a second, {mine:.2f} times one thread's, PyTorch's {other:.2f}"
            reached = both[0] / both[1]
            yield Row(f"{name}, {count} Python threads", 1.0, "1.5x", reached, "x", 1 / both[0], 1 / both[1], note=note)
    set_num_threads(most)
    torch.set_num_threads(most)


def _square(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, x, out=out)


def _gelu(x: torch.Tensor, out: torch.Tensor) -> None:
    n = x.numel()
    kernels.gelu_kernel[(weft.cdiv(n, 1024),)](x, out, n, BLOCK=1024)


def small(problems: Callable[[], Iterator[small_problems.Problem]], title: str) -> Iterator[Row]:
    """Small problems, each a line, and what they come to together."""
    ratios, ours, theirs = [], [], []
    for problem in problems():
        problem.check()
        mine, other = small_problems.in_turns([problem.ours, problem.theirs])
        ratios.append(other / mine)
        ours.append(mine)
        theirs.append(other)
        yield Row(problem.name, 0.7, "1.5x", other / mine, "x", mine, other)
    middle = statistics.geometric_mean
    note = f"geometric mean of {len(ratios)}; least {min(ratios):.2f}x"
    yield Row(title, 1.0, "1.5x", middle(ratios), "x", middle(ours), middle(theirs), note=note)


def torch_compile() -> Iterator[Row]:
    """Thirty graphs, each a line, and what they come to together; in a process where `triton` is Weft."""
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        return  # Inductor's C++ back end has no compiler
    command = [sys.executable, "-W", "ignore", str(HERE / "inductor.py"), "--json", "--threads", str(get_num_threads())]
    graphs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    middle = statistics.geometric_mean
    for graph in graphs:
        ours, theirs = graph["weft_ms"] / 1e3, graph["cpp_ms"] / 1e3
        note = f"compiled in {graph['weft_compile_s']:.1f} s against {graph['cpp_compile_s']:.1f}"
        name = f"torch.compile {graph['graph']}"
        yield Row(name, 0.7, "", graph["reached"], "x", ours, theirs, graph["spread"], note)
    ours, theirs, reached = (middle([g[key] for g in graphs]) for key in ("weft_ms", "cpp_ms", "reached"))
    yield Row(f"torch.compile, {len(graphs)} graphs", 1.0, "1.4x", reached, "x", ours / 1e3, theirs / 1e3)


GROUPS = {
    "vector add": vector_add,
    "softmax": softmax,
    "layer norm": layer_norm,
    "gelu": gelu,
    "transposed copy": transpose,
    "matmul f32": matmul_f32,
    "matmul amx": matmul_amx,
    "sort and top-k": sorting,
    "flash attention": attention,
    "interpreter": interpreter,
    "cold compile": compiling,
    "import": importing,
    "first launch": first_launch,
    "warm call": warm_call,
    "small problems": partial(small, small_problems.problems, "small problems"),
    "other small": partial(small, small_problems.more_problems, "other small problems"),
    "torch.compile": torch_compile,
    "scaling": scaling,
    "Python threads": python_threads,
}


def duration(seconds: float) -> str:
    """A time with a fitting unit."""
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def line(row: Row) -> str:
    """One line of the table as text."""
    reached = f"{row.reached:.2f}x" if row.unit == "x" else f"{row.reached:.1f} {row.unit}"
    least = "" if math.isinf(row.least) else f"{row.least:g}{row.unit if row.unit == 'x' else ' ' + row.unit}"
    theirs = duration(row.theirs) if row.theirs is not None else ""
    verdict = "ok" if row.met else "SHORT"
    cells = (
        f"{row.work:36}",
        f"{least:>8}",
        f"{row.aim:>9}",
        f"{reached:>10}",
        f"{verdict:5}",
        f"{duration(row.ours):>11}",
    )
    return " ".join((*cells, f"{theirs:>11}", f"{row.spread:6.0%}", f" {row.note}")).rstrip()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Weft's performance on this CPU.")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="only rows whose group contains it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--threads", type=int, default=get_num_threads(), help="threads on both sides")
    options = parser.parse_args()
    set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    chosen = [run for name, run in GROUPS.items() if not options.only or any(word in name for word in options.only)]
    if not chosen:
        parser.error(f"no such row; there are {', '.join(GROUPS)}")
    facts: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "threads": options.threads,
        "python": platform.python_version(),
        "weft": weft.__version__,
        "torch": torch.__version__,
        "copy_gbytes_per_second": copy_speed() / 1e9,
    }
    if not options.json:
        print(
            ", ".join(
                f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in facts.items()
            )
        )
        titles = f"{'work':36} {'least':>8} {'aim':>9} {'reached':>10}       {'ours':>11} {'theirs':>11} spread"
        print(titles, flush=True)
    rows = []
    for run in chosen:
        for row in run():
            rows.append(row)
            if not options.json:
                print(line(row), flush=True)
    if options.json:
        print(json.dumps({**facts, "rows": [{**asdict(row), "met": row.met} for row in rows]}, indent=1, default=str))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
