"""The table of odd sizes: rows of any length beside Triton and the memory's own copy speed, on an NVIDIA GPU.

    python benchmarks/gpu_odd.py [--only WORD] [--sizes 1001,4097] [--save]

One program a row, one tile of the next power of two, 4 warps to 2,048 columns, 8 to 8,192, 16 to 32,768, 32 above, at
least 2^27 elements, the same source on both sides. Figures are TB/s of what is read once and written once; Weft, Triton
and a copy of as many bytes take turns, and each figure is a median. Required of Weft: 0.98 of Triton, and of copy speed
0.85 to 32,768 columns, 0.6 to 65,536; a line that falls short ends with what it misses, and the program with status 1.

All kernels are compiled first, by as many processes as there are processors, each launching them for a few rows: the
whole table takes about two minutes. (Both compilers find them in their caches then.)
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import triton
import triton.language

import weft
import weft.language
from gpu_facts import machine
from gpu_sides import check, load_side, medians

FILE = "gpu_odd_kernels"
OURS = load_side("weft", FILE, jit=weft.jit, tl=weft.language)
THEIRS = load_side("triton", FILE, jit=triton.jit, tl=triton.language)
SIZES = (1000, 1001, 1024, 2047, 4097, 6001, 8191, 12345, 12346, 16385, 20001, 32003, 50257, 65535, 100003)
SQUARES = (4096, 4097, 4098, 4100, 8193, 8196, 8200, 12300, 16388)
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i8": torch.int8}
KERNELS = {"scale": ("bf16", "f16", "f32", "i8"), "rms_norm": ("bf16", "f16", "f32"), "softmax": ("bf16", "f16", "f32")}
ELEMENTS = 1 << 27
OF_TRITON = 0.98
RESULTS = Path(__file__).resolve().parent / "results"


def of_copy(columns: int) -> float:
    """The part of copy speed that rows of so many columns are to reach."""
    return 0.85 if columns <= 32768 else 0.6 if columns <= 65536 else 0.0


def warps_of(block: int) -> int:
    """The warps of a tile of so many elements."""
    return 4 if block <= 2048 else 8 if block <= 8192 else 16 if block <= 32768 else 32


def _expected(kernel: str, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The first and the last rows as PyTorch computes them."""
    if kernel == "scale":
        return x * w
    if kernel == "rms_norm":
        return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], w.float(), 1e-6)
    return x.float().softmax(-1)


def _calls(kernel: str, kind: str, columns: int, rows: int) -> tuple[list[Callable[[], None]], torch.Tensor]:
    """The launches of both sides, whose results have been checked; and what they read."""
    dtype = TYPES[kind]
    if dtype is torch.int8:
        x, w = (torch.randint(-100, 100, shape, device="cuda", dtype=dtype) for shape in ((rows, columns), (columns,)))
    else:
        x, w = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((rows, columns), (columns,)))
    out = torch.empty_like(x)
    block = 1 << (columns - 1).bit_length()
    args = {"scale": (x, w, out, columns), "rms_norm": (x, w, out, columns, 1e-6), "softmax": (x, out, columns)}[kernel]
    calls = []
    some = torch.cat([torch.arange(min(rows, 64)), torch.arange(max(0, rows - 64), rows)]).cuda()
    expected = _expected(kernel, x[some], w)
    for side in (OURS, THEIRS):
        out.fill_(77)
        launch = getattr(side, kernel)[(rows,)]

        def call(launch=launch) -> None:
            launch(*args, BLOCK=block, num_warps=warps_of(block))

        call()
        check(out[some], expected, 0.0 if kernel == "scale" and kind == "i8" else 1e-5 if kind == "f32" else 1e-2)
        calls.append(call)
    return calls, x


def measure(kernel: str, kind: str, columns: int) -> list[float]:
    """TB/s of each side and of a copy, after all results have been checked."""
    calls, x = _calls(kernel, kind, columns, -(-ELEMENTS // columns))
    other = torch.empty_like(x)
    times = medians(*calls, lambda: other.copy_(x), seconds=0.15)
    return [2 * x.numel() * x.element_size() / t / 1e12 for t in times]


def compile_line(line: tuple[str, str, int]) -> str:
    """Have both sides' caches keep the kernels of a line; what went wrong, which the timed run will say again."""
    try:
        _calls(*line, rows=2)
    except (Exception, SystemExit) as error:
        return f"{line}: {type(error).__name__}"
    return ""


def transposed(size: int) -> list[float]:
    """TB/s of the transposition of a square of f16."""
    x = torch.randn(size, size, device="cuda", dtype=torch.float16)
    out, other, calls = torch.empty_like(x), torch.empty_like(x), []
    for side in (OURS, THEIRS):
        out.zero_()
        grid = (triton.cdiv(size, 64), triton.cdiv(size, 64))

        def call(launch=side.transpose[grid]) -> None:
            launch(x, out, size, size, BLOCK=64)

        call()
        check(out, x.T, 0.0)
        calls.append(call)
    return [4 * size * size / t / 1e12 for t in medians(*calls, lambda: other.copy_(x), seconds=0.15)]


def _wanted(only: str, sizes: Sequence[int]) -> list[tuple[str, str, int]]:
    """The lines of the table: kernel, type, columns."""
    lines = [(kernel, kind, n) for kernel, kinds in KERNELS.items() for kind in kinds for n in sizes]
    return [line for line in lines if only in "{} {} {}".format(*line)]


def _lines(only: str, sizes: Sequence[int]) -> Iterator[tuple[str, int, list[float]]]:
    wanted = _wanted(only, sizes)
    if wanted:
        processes = min(len(wanted), os.cpu_count() or 1)
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for problem in filter(None, pool.imap_unordered(compile_line, sorted(wanted, key=lambda x: -x[2]))):
                print(problem, flush=True)
    for kernel, kind, columns in wanted:
        yield f"{kernel} {kind}", columns, measure(kernel, kind, columns)
    for size in SQUARES:
        if only in f"transposition f16 {size}":
            yield "transposition f16", size, transposed(size)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="lines that contain this")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="columns of rows")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
    print(
        f"{'rows':18} {'columns':>8} {'weft':>6} {'triton':>7} {'copy':>6} {'of triton':>10} {'of copy':>8}", flush=True
    )
    table, short = {}, 0
    for name, columns, (ours, theirs, copied) in _lines(options.only, [int(n) for n in options.sizes.split(",")]):
        missed = [f"{OF_TRITON} of Triton"] if ours < OF_TRITON * theirs else []
        if "transposition" not in name and ours < of_copy(columns) * copied:
            missed.append(f"{of_copy(columns)} of copy")
        short += bool(missed)
        table[f"{name} {columns}"] = [round(x, 3) for x in (ours, theirs, copied)]
        print(
            f"{name:18} {columns:8} {ours:6.2f} {theirs:7.2f} {copied:6.2f} {ours / theirs:10.2f} {ours / copied:8.2f}"
            + (f"   short of {' and '.join(missed)}" if missed else ""),
            flush=True,
        )
    print(f"{len(table) - short} of {len(table)} reach what is required")
    if options.save:
        facts = machine("torch", "triton")
        place = RESULTS / f"odd-{facts['date']}.json"
        if place.exists():  # of the same machine and day: what was measured now takes the place of those lines
            before = json.loads(place.read_text(encoding="utf-8"))
            table = {**(before["tbps"] if {**before, "tbps": 0} == {**facts, "tbps": 0} else {}), **table}
        place.write_text(json.dumps({**facts, "tbps": table}, indent=1) + "\n", encoding="utf-8")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
