"""Are the fastest configurations among the first three that are predicted? 20 kernels, each with 50 or more.

    python benchmarks/tune_ranks.py                       # needs an H100 and PyTorch
    python benchmarks/tune_ranks.py --seconds 400         # stops in time; run it again, and it goes on
    python benchmarks/tune_ranks.py --report              # the table of what was measured, without a GPU
    python benchmarks/tune_ranks.py --predict --only row  # predictions alone, without a GPU
    python benchmarks/tune_ranks.py --repredict           # anew what was measured before, without a GPU

For each kernel all configurations are predicted and compiled, on all cores, and measured with a cold L2 cache: 8 times
each, those within 10 % of the fastest 40 times more. A kernel counts as found if one of the first three predicted is
within 2 % of the fastest. Results are written after each kernel, to benchmarks/results/tune-ranks.json.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import statistics
import time
from pathlib import Path

import sides_of
import weft
from weft.runtime import explaining

RESULTS = Path(__file__).resolve().parent / "results" / "tune-ranks.json"
TARGET = "cuda:90"
FIRST, CLOSE = 3, 1.02
MOST = 60
"""Configurations of a kernel."""
LOG2E = 1.4426950408889634
KERNELS = vars(sides_of.loaded("gpu_wider_kernels")) | vars(sides_of.loaded("tune_kernels"))


class Case:
    """A kernel, its arguments (an array is (shape, element type)), and its configurations."""

    def __init__(self, name, kernel, args, grid, configs, **fixed):
        self.name, self.kernel, self.args, self.grid = name, KERNELS[kernel], args, grid
        self.configs, self.fixed = configs, fixed

    def given(self, number):
        """What a launch is given by name."""
        return {**self.fixed, **self.configs[number]}

    def grid_of(self, number):
        """The grid for a configuration."""
        return self.grid(self.given(number))


def combined(keep=None, **choices):
    """Configurations with each of the values, those that `keep` says; where there are many, MOST of them by chance."""
    names = [name if name.startswith("num_") else name.upper() for name in choices]
    rows = [dict(zip(names, values, strict=True)) for values in itertools.product(*choices.values())]
    rows = [row for row in rows if keep is None or keep(row)]
    chance = sorted(rows, key=lambda row: hashlib.sha256(repr(sorted(row.items())).encode()).digest())
    return [row for row in rows if row in chance[:MOST]]


def cases():
    """All kernels."""
    n = 1 << 26
    flat = combined(block=[64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384], num_warps=[1, 2, 4, 8, 16, 32])
    along = lambda row: (-(-n // row["BLOCK"]),)  # noqa: E731
    yield Case("copy f32", "copy", (((n,), "fp32"), ((n,), "fp32"), n), along, flat)
    yield Case("add bf16", "add", (((n,), "bf16"),) * 3 + (n,), along, flat)

    tiles = combined(lambda r: 256 <= r["BM"] * r["BN"] <= 16384, bm=[16, 32, 64, 128, 256], bn=[16, 32, 64, 128, 256],
                     num_warps=[2, 4, 8])  # fmt: skip
    for elem in ("fp32", "fp16"):
        x = ((8192, 8192), elem)
        grid = lambda row: (8192 // row["BM"], 8192 // row["BN"])  # noqa: E731
        yield Case(f"transpose {elem}", "transpose", (x, x, 8192, 8192), grid, tiles)

    def rows_of(number, columns, most=16384):
        return combined(
            lambda r: 256 <= r["ROWS"] * r["PART"] <= most and r["PART"] <= columns,
            rows=[1, 2, 4, 8, 16, 32], part=[64, 128, 256, 512, 1024, 2048, 4096], num_warps=[1, 2, 4, 8],
        )  # fmt: skip

    by_rows = lambda number: lambda row: (number // row["ROWS"],)  # noqa: E731
    for number, columns, elem in ((8192, 8192, "fp32"), (1 << 17, 512, "fp16")):
        args = (((number, columns), elem), ((number,), "fp32"), columns)
        yield Case(f"row sums {elem} of {columns}", "row_sums", args, by_rows(number), rows_of(number, columns))
    for number, columns, elem in ((8192, 4096, "fp16"), (1 << 16, 1024, "fp32")):
        x = ((number, columns), elem)
        name = f"softmax {elem} of {columns}"
        yield Case(name, "softmax", (x, x, columns), by_rows(number), rows_of(number, columns, 8192))
    x, w = ((8192, 8192), "bf16"), ((8192,), "bf16")
    yield Case("rms norm bf16 of 8192", "rms_norm", (x, w, x, 8192), by_rows(8192), rows_of(8192, 8192, 8192))
    x, y, out = ((8192, 8192), "fp16"), ((8192,), "fp16"), ((8192,), "fp32")
    yield Case("matrix by vector f16", "times_vector", (x, y, out, 8192), by_rows(8192), rows_of(8192, 8192, 8192))
    columns = combined(lambda r: 256 <= r["PART"] * r["BLOCK"] <= 8192, part=[4, 8, 16, 32, 64],
                       block=[16, 32, 64, 128, 256], num_warps=[1, 2, 4, 8])  # fmt: skip
    args = (((8192, 8192), "fp32"), ((8192,), "fp32"), 8192, 8192)
    yield Case("column sums f32", "column_sums", args, lambda row: (8192 // row["BLOCK"],), columns)

    products = combined(
        lambda r: r["BM"] * r["BN"] <= 32768 and (r["num_warps"] == 4 or r["BM"] * r["BN"] >= 16384),
        bm=[64, 128, 256], bn=[64, 128, 256], bk=[32, 64, 128], num_warps=[4, 8], num_stages=[2, 3, 4],
    )  # fmt: skip
    narrow = combined(
        None, bm=[16, 32, 64], bn=[32, 64, 128, 256], bk=[64, 128], num_warps=[4], num_stages=[2, 3, 4, 5]
    )
    for name, m, n_, k, elem, configs in (
        ("matmul f16 4096", 4096, 4096, 4096, "fp16", products),
        ("matmul bf16 8192x1024x4096", 8192, 1024, 4096, "bf16", products),
        ("matmul f16 1024", 1024, 1024, 1024, "fp16", products),
        ("matmul f16, K 512", 8192, 8192, 512, "fp16", products),
        ("matmul tf32 2048", 2048, 2048, 2048, "fp32", products),
        ("matmul f16, 64 rows", 64, 4096, 4096, "fp16", narrow),
    ):
        args = (((m, k), elem), ((k, n_), elem), ((m, n_), elem), m, n_, k)
        grid = lambda row, m=m, n_=n_: (-(-m // row["BM"]) * -(-n_ // row["BN"]),)  # noqa: E731
        yield Case(name, "matmul", args, grid, configs)

    blocks = combined(lambda r: r["num_warps"] == 4 or r["BM"] > 64, bm=[64, 128, 256], bn=[32, 64, 128],
                      num_warps=[4, 8], num_stages=[1, 2, 3, 4])  # fmt: skip
    for head, causal in ((64, False), (64, True), (128, False)):
        q = ((32, 4096, head), "fp16")
        args = (q, q, q, q, head**-0.5 * LOG2E, 4096)
        grid = lambda row: (4096 // row["BM"], 32)  # noqa: E731
        name = f"attention f16 d{head}{' causal' if causal else ''}"
        yield Case(name, "attention", args, grid, blocks, HEAD=head, CAUSAL=causal)


CASES = list(cases())


def predicted(task):
    """Microseconds of a configuration, or why there are none; in a process of its own."""
    case, number = CASES[task[0]], task[1]
    args = [weft.like(*a) if isinstance(a, tuple) else a for a in case.args]
    given = {**case.given(number), "grid": case.grid_of(number), "target": TARGET}
    named = dict(zip(case.kernel.arg_names, args, strict=False))
    try:
        us = explaining.predicted(case.kernel, {**named, **given})
        return us if math.isfinite(us) else "it cannot be run"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"


class Device:
    """Measures on the GPU."""

    def __init__(self):
        import torch

        self.torch = torch
        self.flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
        self.gpu = torch.cuda.get_device_name()

    def array(self, shape, elem):
        """Random numbers."""
        kinds = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
        x = self.torch.randn(*shape, device="cuda", dtype=self.torch.float32)
        return (x * 0.1).to(getattr(self.torch, kinds[elem]))

    def time(self, call, rounds):
        """The median of some launches with a cold L2 cache, in microseconds."""
        marks = [self.torch.cuda.Event(enable_timing=True) for _ in range(2 * rounds)]
        call()
        for begin, end in zip(marks[::2], marks[1::2], strict=True):
            self.flush.zero_()
            begin.record()
            call()
            end.record()
        self.torch.cuda.synchronize()
        return 1e3 * statistics.median(b.elapsed_time(e) for b, e in zip(marks[::2], marks[1::2], strict=True))

    def measured(self, case):
        """Microseconds of each configuration; None for those that cannot be run."""
        args = [self.array(*a) if isinstance(a, tuple) else a for a in case.args]
        numbers = range(len(case.configs))

        def warm(i):
            return lambda: case.kernel.warmup(*args, **case.given(i), grid=case.grid_of(i))

        made = weft.compile_many([warm(i) for i in numbers], return_exceptions=True)
        times = [None] * len(case.configs)

        def launch(i):
            return lambda: case.kernel[case.grid_of(i)](*args, **case.given(i))

        for i in numbers:
            if not isinstance(made[i], Exception):
                try:
                    times[i] = self.time(launch(i), 8)
                except Exception as error:
                    print(f"  {case.configs[i]}: {str(error).splitlines()[0][:80]}")
        best = min((t for t in times if t is not None), default=0.0)
        for i in numbers:
            if times[i] is not None and times[i] <= 1.1 * best:
                times[i] = self.time(launch(i), 40)
        return times


def verdict(row):
    """(found, place of the fastest among the predicted, what the first three lose, the rank correlation)."""
    both = [
        (p, m) for p, m in zip(row["predicted"], row["measured"], strict=True) if isinstance(p, float) and m is not None
    ]
    best = min(m for m in row["measured"] if m is not None)
    order = sorted(both)
    place = next((i + 1 for i, (_, m) in enumerate(order) if m <= CLOSE * best), None)
    loss = min(m for _, m in order[:FIRST]) / best
    by_time = sorted(range(len(order)), key=lambda i: order[i][1])
    number = len(order)
    squares = sum((i - rank) ** 2 for rank, i in enumerate(by_time))
    return loss <= CLOSE, place, loss, 1 - 6 * squares / (number * (number**2 - 1))


def report(rows):
    """The table."""
    print(f"{'kernel':30} {'configs':>7} {'best us':>8} {'place':>5} {'loss of 3':>9} {'rank corr.':>10}  the fastest")
    found = 0
    for name, row in rows.items():
        good, place, loss, order = verdict(row)
        found += good
        best = min((m, i) for i, m in enumerate(row["measured"]) if m is not None)
        shown = ", ".join(f"{k} {v}" for k, v in row["configs"][best[1]].items())
        print(f"{name:30} {len(row['configs']):7} {best[0]:8.1f} {place!s:>5} {loss:9.2f} {order:10.2f}  {shown}")
    print(f"{found} of {len(rows)} kernels have one within {CLOSE - 1:.0%} of the fastest among the first {FIRST}")


def main():
    """Predict and measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--seconds", type=float, default=400.0, help="begin no kernel that would end later")
    parser.add_argument("--report", action="store_true", help="print what was measured before")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--predict", action="store_true", help="predict only, and print the first configurations")
    parser.add_argument("--repredict", action="store_true", help="predict anew what was measured, and print the table")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not options.again else {}
    if options.report:
        report(rows)
        return
    if options.repredict:
        with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
            for number, case in enumerate(CASES):
                if case.name in rows and options.only in case.name and rows[case.name]["configs"] == case.configs:
                    tasks = [(number, i) for i in range(len(case.configs))]
                    rows[case.name]["predicted"] = pool.map(predicted, tasks, chunksize=1)
                    RESULTS.write_text(json.dumps(rows) + "\n", encoding="utf-8")
        report({name: row for name, row in rows.items() if options.only in name})
        return
    begin = time.monotonic()
    longest = 0.0
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:  # before there is anything of CUDA
        device = None if options.predict else Device()
        for number, case in enumerate(CASES):
            begun = time.monotonic()
            if options.only not in case.name or (case.name in rows and not options.predict):
                continue
            if begun - begin + longest > options.seconds:
                break
            guessed = pool.map(predicted, [(number, i) for i in range(len(case.configs))], chunksize=1)
            if device is None:
                order = sorted((p, i) for i, p in enumerate(guessed) if isinstance(p, float))
                others = {p for p in guessed if not isinstance(p, float)}
                print(f"{case.name}: {len(guessed)} configurations in {time.monotonic() - begun:.0f} s; {others or ''}")
                for p, i in order[:FIRST]:
                    print(f"  {p:8.2f} us  {case.configs[i]}", flush=True)
                continue
            middle = time.monotonic()
            row = {"gpu": device.gpu, "configs": case.configs, "predicted": guessed}
            row["measured"] = device.measured(case)
            row["seconds"] = [round(middle - begun, 1), round(time.monotonic() - middle, 1)]
            rows[case.name] = row
            RESULTS.write_text(json.dumps(rows) + "\n", encoding="utf-8")
            longest = max(longest, time.monotonic() - begun)
            print(f"{case.name}: {row['seconds']} s", flush=True)
    if not options.predict:
        report(rows)


if __name__ == "__main__":
    main()
