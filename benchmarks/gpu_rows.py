"""Rows of 1 Ki to 256 Ki columns, beside Triton and a copy of as many bytes, on an NVIDIA GPU.

    python benchmarks/gpu_rows.py [--only WORD] [--columns 1000,50257] [--seconds 450]

Softmax, RMS norm, layer norm and cross entropy (the loss alone) in f32 and bf16, 256 MiB of rows each, random data.
Both sides choose the fastest of one list: the row as one tile with 4 to 32 warps, or a loop in blocks of 4,096 or
8,192; the same source on both sides. Weft, Triton and a copy then take turns. Figures are TB/s by the median, of every
element read once and written once (cross entropy: read once), so that 1.00 of copy means that no byte moves twice.
`asked` is Weft with the best `num_ctas=`: what clusters bring where one asks for them. A line that falls short of its
goals (goals.py) says so, and the program ends with status 1.

All kernels are compiled first, by as many processes as there are processors. After `--seconds` no further line is
begun, and compilation is given at most half of that.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import os
import sys
import time

import torch
import triton
import triton.language

import weft
import weft.language
from goals import Line, short_of
from gpu_facts import machine
from gpu_sides import check, load_side, medians, quickest

FILE = "gpu_rows_kernels"
SIDES = {
    "Weft": load_side("weft", FILE, jit=weft.jit, tl=weft.language),
    "Triton": load_side("triton", FILE, jit=triton.jit, tl=triton.language),
}
KERNELS = ("softmax", "rms_norm", "layer_norm", "cross_entropy")
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
COLUMNS = (1000, 1024, 4096, 8192, 16384, 32768, 50257, 65536, 131072, 262144)
BYTES = 1 << 28
EPS = 1e-6


def configurations(columns: int, blocks: int = 1):
    """(form, block, warps): tiles that give each thread 2 to 512 elements, 32 for few warps, and loops."""
    tile = 1 << (columns - 1).bit_length()
    for warps in (1, 2, 4, 8, 16, 32):
        if warps < 4 and tile // (32 * warps) > 32:
            continue
        if 2 <= tile // (32 * warps) <= 512 and tile // (32 * warps * blocks) <= 128 * (4 if blocks == 1 else 1):
            yield "tile", tile, warps
    if blocks == 1 and columns > 8192:
        yield from (("loop", 4096, 8), ("loop", 8192, 16), ("loop", 8192, 8))
    elif columns > 2048:
        yield from (("loop", 1024, 4), ("loop", 2048, 4))


def problem(kernel: str, kind: str, columns: int, rows: int):
    """(arguments of the kernels, the output)."""
    x = torch.randn(rows, columns, device="cuda", dtype=TYPES[kind])
    w, b = (torch.randn(columns, device="cuda", dtype=TYPES[kind]) for _ in range(2))
    out = torch.empty_like(x)
    if kernel == "cross_entropy":
        w = torch.randint(0, columns, (rows,), device="cuda")
        out = torch.empty(rows, device="cuda", dtype=torch.float32)
    return (x, w, b, out, columns, EPS), out


def expected(kernel: str, x, w, b, some):
    """Of some rows, as PyTorch computes them in f64."""
    rows = x[some].double()
    if kernel == "softmax":
        return rows.softmax(-1)
    if kernel == "rms_norm":
        return torch.nn.functional.rms_norm(rows, rows.shape[-1:], w.double(), EPS)
    if kernel == "layer_norm":
        return torch.nn.functional.layer_norm(rows, rows.shape[-1:], w.double(), b.double(), EPS)
    return torch.nn.functional.cross_entropy(rows, w[some], reduction="none")


def launches(side: str, kernel: str, args, columns: int, blocks: int = 1):
    """What a side can launch: (configuration, launch)."""
    grid = (args[0].shape[0],)
    more = {"num_ctas": blocks} if blocks > 1 else {}
    for form, block, warps in configurations(columns, blocks):
        launch = getattr(SIDES[side], f"{kernel}_{form}")[grid]

        def call(launch=launch, block=block, warps=warps):
            launch(*args, BLOCK=block, num_warps=warps, **more)

        yield (form, block, warps, *more.values()), call


def compile_line(line: tuple[str, str, int], side: str, blocks: int) -> str:
    """Have a side's cache keep the kernels of a line; what went wrong, which the timed run tries again."""
    kernel, kind, columns = line
    args, _ = problem(kernel, kind, columns, 2)
    problems = []
    for configuration, call in launches(side, kernel, args, columns, blocks):
        try:
            call()
            torch.cuda.synchronize()
        except Exception as error:
            problems.append(f"{side} {line} {configuration}: {type(error).__name__} {str(error)[:200]}")
    return "\n".join(problems)


def compile_all(lines, sizes, seconds: float) -> None:
    """Fill both caches, the slowest lines first; give up after so many seconds."""
    work = [(line, side, blocks) for line in lines for side, blocks in [("Weft", 1), ("Triton", 1)]]
    work += [(line, "Weft", blocks) for line in lines if line[2] > 8192 for blocks in sizes]
    work.sort(key=lambda x: -x[0][2])
    pool = concurrent.futures.ProcessPoolExecutor(
        min(len(work), os.cpu_count() or 1), multiprocessing.get_context("spawn")
    )
    futures = [pool.submit(compile_line, *one) for one in work]
    _, late = concurrent.futures.wait(futures, timeout=seconds)
    for future in futures:
        if future not in late:
            error = future.exception()
            text = f"{type(error).__name__}: {error}" if error else future.result()
            if text:
                print(text, flush=True)
    if late:
        print(f"{len(late)} of {len(futures)} lines were not compiled in {seconds:.0f} s")
    for process in pool._processes.values() if late else ():
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def best(found):
    """(configuration, launch) of the fastest."""
    working = []
    for configuration, call in found:
        try:
            call()
            torch.cuda.synchronize()
        except Exception:  # said when it was compiled: what a side cannot do is out of the list
            continue
        working.append((configuration, call))
    times = quickest([call for _, call in working], 0.01)
    return working[times.index(min(times))]


def parts() -> list[str]:
    """The lines of the table."""
    return [f"{kernel} {kind} {columns}" for kernel in KERNELS for kind in TYPES for columns in COLUMNS]


def prepare(part: str) -> None:
    """Compile the kernels of a line."""
    kernel, kind, columns = part.split()
    args, _ = problem(kernel, kind, int(columns), 2)
    for side in SIDES:
        best(launches(side, kernel, args, int(columns)))


def measure(part: str, sizes=()):
    """The line: TB/s of Weft, Triton, a copy, and of Weft's clusters of some sizes; the configurations that won."""
    kernel, kind, width = part.split()
    columns = int(width)
    rows = -(-BYTES // columns // TYPES[kind].itemsize)
    args, out = problem(kernel, kind, columns, rows)
    x = args[0]
    some = torch.cat([torch.arange(min(rows, 16)), torch.arange(max(0, rows - 16), rows)]).cuda()
    wanted = expected(kernel, *args[:3], some)
    lists = {side: list(launches(side, kernel, args, columns)) for side in SIDES}
    if columns > 8192 and sizes:
        lists["asked"] = [one for blocks in sizes for one in launches("Weft", kernel, args, columns, blocks)]
    chosen = {}
    for side, found in lists.items():
        chosen[side] = best(found)
        out.fill_(float("nan"))
        chosen[side][1]()
        check(out[some].reshape(wanted.shape), wanted, 1e-4 if kind == "f32" else 1e-2)
    moved = x.numel() * x.element_size() * (1 if kernel == "cross_entropy" else 2)
    source = x.view(-1)[: moved // 2 // x.element_size()]
    target = torch.empty_like(source)
    times = medians(*(launch for _, launch in chosen.values()), lambda: target.copy_(source), seconds=0.15)
    figures = dict(zip([*chosen, "copy"], (moved / t / 1e12 for t in times), strict=True))
    yield Line(part, figures, "TB/s", {side: told(configuration) for side, (configuration, _) in chosen.items()})


def told(configuration) -> str:
    """A configuration in few letters."""
    form, block, warps, *blocks = configuration
    return f"{form} {block}/{warps}" + (f" x{blocks[0]}" if blocks else "")


def main() -> int:
    """Print the table; 1 where a line falls short."""
    begin = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="lines whose name contains this; several with commas")
    parser.add_argument("--columns", default=",".join(map(str, COLUMNS)), help="columns of rows")
    parser.add_argument("--clusters", default="2,4,8", help="sizes of clusters that are asked for; empty for none")
    parser.add_argument("--seconds", type=float, default=450, help="begin no line after so many seconds")
    options = parser.parse_args()
    sizes = [int(n) for n in options.clusters.split(",") if n]
    lines = [(k, t, int(n)) for k in KERNELS for t in TYPES for n in options.columns.split(",")]
    lines = [line for line in lines if any(word in "{} {} {}".format(*line) for word in options.only.split(","))]
    facts = machine("torch", "triton")
    print(facts)
    compile_all(lines, sizes, options.seconds / 2)
    print(f"compiled after {time.monotonic() - begin:.0f} s", flush=True)
    measured, short = 0, 0
    for line in lines:
        if time.monotonic() - begin > options.seconds:
            print(f"{len(lines) - measured} lines are left out: the time is over")
            break
        for found in measure("{} {} {}".format(*line), sizes):
            missed = short_of("rows", found, facts["gpu"])
            measured, short = measured + 1, short + bool(missed)
            print(found.shown() + missed, flush=True)
    print(f"{measured - short} of {measured} reach what is wanted")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
