"""What a GPU takes for one thing at a time, for the constants of the model of time (`src/weft/explain/nvidia`).

    python benchmarks/calibrate.py                        # about three minutes; needs a GPU and PyTorch
    python benchmarks/calibrate.py --seconds 200          # stops in time; run it again, and it goes on
    python benchmarks/calibrate.py --report               # what was measured, and the constants that follow

A kernel for each thing, launched at sizes that tell its rate and its fixed cost apart; microseconds are those of
explain_time.py. Everything measured is in benchmarks/results/calibration-h100.json (-h200), by card.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import weft
import weft.language as tl

RESULTS = Path(__file__).resolve().parent / "results"
UNITS = 132


# -- kernels -----------------------------------------------------------------------------------------------------------


@weft.jit
def nothing(x, BLOCK: tl.constexpr):
    """A launch, and its blocks."""


@weft.jit
def touch(x, out, BLOCK: tl.constexpr):
    """Blocks that each do a little."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + 1)


@weft.jit
def read(x, out, turns, step, BLOCK: tl.constexpr):
    """Reads, of which one number is left; `step` elements apart from turn to turn."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(turns):
        total += tl.load(x + i)
        i += step
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@weft.jit
def read_ahead(x, out, turns, step, BLOCK: tl.constexpr):
    """The same, four loads at a time."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(turns):
        a, b = tl.load(x + i), tl.load(x + i + step)
        c, d = tl.load(x + i + 2 * step), tl.load(x + i + 3 * step)
        total += a + b + c + d
        i += 4 * step
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@weft.jit
def read_again(x, out, turns, size, BLOCK: tl.constexpr):
    """Reads of an array of `size` elements, a power of two, over and over."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(turns):
        total += tl.load(x + (i & (size - 1)))
        i += BLOCK * 37
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@weft.jit
def write(out, value, BLOCK: tl.constexpr):
    """Writes alone."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.zeros((BLOCK,), tl.float32) + value)


@weft.jit
def chase(x, out, turns):
    """Each load says where the next one goes."""
    i = tl.load(x)
    for _ in range(turns):
        i = tl.load(x + i)
    tl.store(out, i)


@weft.jit
def gather(x, index, out, BLOCK: tl.constexpr):
    """Elements from anywhere."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


@weft.jit
def gather_rows(x, index, out, COLUMNS: tl.constexpr):
    """Rows from anywhere."""
    row, j = tl.program_id(0), tl.arange(0, COLUMNS)
    tl.store(out + row * COLUMNS + j, tl.load(x + tl.load(index + row) * COLUMNS + j))


@weft.jit
def add_to(x, index, BLOCK: tl.constexpr):
    """Atomic additions wherever an index says."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(index + i)
    tl.atomic_add(x + where, (where + 1).to(x.dtype.element_ty), sem="relaxed")


@weft.jit
def add_rows(x, index, COLUMNS: tl.constexpr):
    """Atomic additions to rows that an index says."""
    row, j = tl.program_id(0), tl.arange(0, COLUMNS)
    tl.atomic_add(x + tl.load(index + row) * COLUMNS + j, j.to(x.dtype.element_ty), sem="relaxed")


@weft.jit
def histogram(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Of a block each; 256 bins, which are then added to those of all."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i), BINS), sem="relaxed")


@weft.jit
def chain(x, out, turns, BLOCK: tl.constexpr):
    """Multiplications and additions that wait for each other."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in range(turns):
        for _ in tl.static_range(32):
            v = tl.fma(v, v, v)
    tl.store(out + i, v)


@weft.jit
def arithmetic(x, out, turns, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """An operation over and over, on several registers of a thread."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in range(turns):
        for k in tl.static_range(8):
            if KIND == "fma":
                v = tl.fma(v, v, v)
            elif KIND == "add":
                v = v + 1.5
            elif KIND == "max":
                v = tl.maximum(v, v * 0.5)
            elif KIND == "exp2":
                v = tl.exp2(v)
            elif KIND == "rsqrt":
                v = tl.rsqrt(v)
            elif KIND == "divide":
                v = v / (v + 1.5)
            elif KIND == "half":
                v = v.to(tl.float16).to(tl.float32) + 1.0
            elif KIND == "bfloat":
                v = v.to(tl.bfloat16).to(tl.float32) + 1.0
            elif KIND == "int":
                v = v.to(tl.int32).to(tl.float32) + 0.5
            elif KIND == "where":
                v = tl.where(v > 1.0 + k, v * 0.5, v)
    tl.store(out + i, v)


@weft.jit
def integers(x, out, turns, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """The same of integers."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in range(turns):
        for k in tl.static_range(8):
            if KIND == "add":
                v = (v ^ 0x5BD1E995) + i
            elif KIND == "multiply":
                v = v * v + 7
            elif KIND == "shift":
                v = (v >> 3) ^ v
            elif KIND == "divide":
                v = v // (i + 3) + 77777
            elif KIND == "wide":
                v = (v.to(tl.int64) * (v + k)).to(tl.int32)
            elif KIND == "byte":
                v = v.to(tl.int8).to(tl.float16).to(tl.int32) + i
    tl.store(out + i, v)


@weft.jit
def sums(x, out, turns, BLOCK: tl.constexpr):
    """Sums over a block, each waiting for the one before."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in range(turns):
        v = v * 0.5 + tl.sum(v, 0)
    tl.store(out + tl.program_id(0) * BLOCK + i, v)


@weft.jit
def barriers(out, turns):
    """Barriers of a block."""
    for _ in range(turns):
        tl.debug_barrier()
    tl.store(out + tl.program_id(0), turns)


@weft.jit
def turned(x, out, turns, M: tl.constexpr, N: tl.constexpr):
    """Trips through shared memory: a tile is transposed again and again."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    v = tl.load(x + i * N + j)
    for _ in range(turns):
        v = tl.trans(v) + tl.sum(v) * 0.0
    tl.store(out + tl.program_id(0) * M * N + i * N + j, v)


@weft.jit
def products(a, b, out, turns, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr, HOW: tl.constexpr):
    """Products of the same operands, added up."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    x = tl.load(a + i * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j)
    acc = tl.zeros((M, N), ACC)
    for _ in range(turns):
        acc = tl.dot(x, y, acc, input_precision=HOW, out_dtype=ACC)
    tl.store(out + tl.program_id(0) * M * N + i * N + j, acc)


# -- measurements ------------------------------------------------------------------------------------------------------

Measurement = tuple[str, dict[str, float], Callable[[], Callable[[], None]], Any]
"""A name, what it was asked for, what makes the call, and the kernel."""


def _launches() -> Iterator[Measurement]:
    import torch

    x = torch.zeros(1 << 24, device="cuda")
    for warps in (1, 4, 8, 16):
        for grid in (1, UNITS, 1056, 8448, 65536, 262144):
            yield (
                f"launch {warps} warps {grid}",
                {"blocks": grid},
                lambda w=warps, g=grid: lambda: nothing[(g,)](x, BLOCK=16, num_warps=w),
                nothing,
            )
    for grid in (1, UNITS, 1056, 8448, 65536):
        yield (
            f"touch {grid}",
            {"blocks": grid},
            lambda g=grid: lambda: touch[(g,)](x, x, BLOCK=128, num_warps=4),
            touch,
        )


def _streams() -> Iterator[Measurement]:
    import torch

    out = torch.empty(1 << 20, device="cuda")
    big = torch.ones(1 << 28, device="cuda")
    for mb in (1, 4, 16, 32, 64, 128, 256, 512, 1024):
        blocks = mb * (1 << 20) // 4 // 4096
        for clean in (False, True) if mb <= 256 else (False,):
            name = f"read {mb} MB{', clean' if clean else ''}"
            facts = {"bytes": mb << 20, "clean": clean}
            yield name, facts, lambda b=blocks: lambda: read[(b,)](big, out, 1, 0, BLOCK=4096, num_warps=8), read
        yield f"write {mb} MB", {"bytes": mb << 20}, lambda b=blocks: lambda: write[(b,)](big, 1, BLOCK=4096), write
        if mb <= 512:
            yield (
                f"copy {mb} MB",
                {"bytes": 2 * mb << 20},
                lambda b=blocks * 4: lambda: touch[(b,)](big, big[1 << 27 :], BLOCK=1024, num_warps=4),
                touch,
            )
    for warps in (1, 2, 4, 8, 16):  # bytes in flight: blocks of so many warps, one on a multiprocessor, 128 MB in all
        for per in (4, 16):
            for blocks in (UNITS, 4 * UNITS):
                size = warps * 32 * per
                turns = (1 << 25) // (blocks * size)
                yield (
                    f"read by {blocks} blocks of {warps} warps, {4 * per} bytes a thread",
                    {"bytes": turns * blocks * size * 4, "flight": blocks * size * 4},
                    lambda b=blocks, s=size, t=turns, w=warps: (
                        lambda: read[(b,)](big, out, t, b * s, BLOCK=s, num_warps=w)
                    ),
                    read,
                )
    for blocks in (16, 32, 64, UNITS, 2 * UNITS):
        yield (
            f"read ahead by {blocks} blocks",
            {"bytes": 16 * (1 << 25) // (4 * blocks * 2048) * (4 * blocks * 2048) // 4, "blocks": blocks},
            lambda b=blocks: (
                lambda: read_ahead[(b,)](big, out, (1 << 25) // (4 * b * 2048), b * 2048, BLOCK=2048, num_warps=8)
            ),
            read_ahead,
        )


def _caches() -> Iterator[Measurement]:
    import torch

    out = torch.empty(1 << 20, device="cuda")
    x = torch.ones(1 << 26, device="cuda")
    for kb in (16, 64, 128, 1024, 4096, 16384, 24576, 32768, 49152, 65536):
        size = 1 << ((kb << 8).bit_length() - 1)
        for blocks, warps in ((UNITS * 8, 8), (UNITS * 2, 8)):
            yield (
                f"read {size >> 8} KB again by {blocks} blocks",
                {"bytes": blocks * 200 * 2048 * 4},
                lambda s=size, b=blocks, w=warps: lambda: read_again[(b,)](x, out, 200, s, BLOCK=2048, num_warps=w),
                read_again,
            )
    for kb, what in ((64, "L1"), (4096, "L2"), (16384, "L2, larger"), (262144, "DRAM")):
        n = kb << 8
        step = 4097 if kb > 64 else 33

        def make(n: int = n, step: int = step) -> Callable[[], None]:
            order = (torch.arange(n, device="cuda") * 32 % n + torch.arange(n, device="cuda") * 32 // n) % n
            following = torch.empty(n, dtype=torch.int32, device="cuda")
            perm = torch.randperm(n // 32, device="cuda") * 32
            following[perm] = perm.roll(-1).to(torch.int32)
            del order
            return lambda: chase[(1,)](following, out.view(torch.int32), 2048, num_warps=1)

        yield f"chase {what}", {"turns": 2048}, make, chase
    yield "chase few", {"turns": 64}, lambda: make_few(out), chase


def make_few(out: Any) -> Callable[[], None]:
    """A chase of 64 loads, for the fixed part."""
    import torch

    n = 1 << 20
    following = torch.empty(n, dtype=torch.int32, device="cuda")
    perm = torch.randperm(n // 32, device="cuda") * 32
    following[perm] = perm.roll(-1).to(torch.int32)
    return lambda: chase[(1,)](following, out.view(torch.int32), 64, num_warps=1)


def _scattered() -> Iterator[Measurement]:
    import torch

    n = 1 << 22
    for dtype in (torch.int8, torch.float16, torch.float32, torch.float64):
        for mb in (8, 256):
            size = (mb << 20) // torch.empty(0, dtype=dtype).element_size()

            def make(dtype: Any = dtype, size: int = size) -> Callable[[], None]:
                x = torch.ones(size, device="cuda").to(dtype)
                index = torch.randint(0, size, (n,), device="cuda", dtype=torch.int32)
                out = torch.empty(n, device="cuda", dtype=dtype)
                return lambda: gather[(n // 1024,)](x, index, out, BLOCK=1024, num_warps=4)

            yield f"gather {str(dtype)[6:]} from {mb} MB", {"lanes": n}, make, gather
    for columns in (32, 128, 512, 2048):
        for mb in (16, 512):

            def make(columns: int = columns, mb: int = mb) -> Callable[[], None]:
                rows = (mb << 18) // columns
                x = torch.ones(rows, columns, device="cuda")
                count = (1 << 24) // columns
                index = torch.randint(0, rows, (count,), device="cuda", dtype=torch.int32)
                out = torch.empty(count, columns, device="cuda")
                warps = max(1, min(4, columns // 128))
                return lambda: gather_rows[(count,)](x, index, out, COLUMNS=columns, num_warps=warps)

            yield f"gather rows of {4 * columns} bytes from {mb} MB", {"bytes": 4 << 24}, make, gather_rows


def _atomics() -> Iterator[Measurement]:
    import torch

    n = 1 << 21
    for dtype in (torch.int32, torch.float32):
        for places in (1, 32, 256, 4096, 1 << 16, 1 << 21, 1 << 26):
            for order in ("random", "in a row"):

                def make(dtype: Any = dtype, places: int = places, order: str = order) -> Callable[[], None]:
                    x = torch.zeros(places, device="cuda", dtype=dtype)
                    if order == "random":
                        index = torch.randint(0, places, (n,), device="cuda", dtype=torch.int32)
                    else:
                        index = (torch.arange(n, device="cuda") % places).to(torch.int32)
                    return lambda: add_to[(n // 1024,)](x, index, BLOCK=1024, num_warps=4)

                yield f"atomic {str(dtype)[6:]}, {places} places {order}", {"lanes": n}, make, add_to
    for dtype in (torch.float32, torch.float16):
        for rows in (64, 1024, 65536):

            def make(rows: int = rows, dtype: Any = dtype) -> Callable[[], None]:
                x = torch.zeros(rows, 512, device="cuda", dtype=dtype)
                index = torch.randint(0, rows, (8192,), device="cuda", dtype=torch.int32)
                return lambda: add_rows[(8192,)](x, index, COLUMNS=512, num_warps=4)

            yield f"atomic {str(dtype)[6:]} rows of 512, {rows} rows", {"lanes": 8192 * 512}, make, add_rows
    for values in (1, 16, 256):

        def make(values: int = values) -> Callable[[], None]:
            x = torch.randint(0, values, (1 << 22,), device="cuda", dtype=torch.int32)
            bins = torch.zeros(256, device="cuda", dtype=torch.int32)
            return lambda: histogram[(1 << 10,)](x, bins, BLOCK=4096, BINS=256, num_warps=4)

        yield f"histogram of {values} values", {"lanes": 1 << 22}, make, histogram


def _arithmetic() -> Iterator[Measurement]:
    import torch

    x, out = torch.rand(1 << 22, device="cuda"), torch.empty(1 << 22, device="cuda")
    yield "chain", {"turns": 32000}, lambda: lambda: chain[(1,)](x, out, 1000, BLOCK=32, num_warps=1), chain
    for kind in ("fma", "add", "max", "exp2", "rsqrt", "divide", "half", "bfloat", "int", "where"):
        yield (
            f"arithmetic {kind}",
            {"lanes": UNITS * 4 * 2048 * 8 * 200},
            lambda k=kind: lambda: arithmetic[(UNITS * 4,)](x, out, 200, KIND=k, BLOCK=2048, num_warps=8),
            arithmetic,
        )
    y, to = torch.randint(1, 1 << 20, (1 << 22,), device="cuda", dtype=torch.int32), torch.empty_like(x).int()
    for kind in ("add", "multiply", "shift", "divide", "wide", "byte"):
        yield (
            f"integers {kind}",
            {"lanes": UNITS * 4 * 2048 * 8 * 200},
            lambda k=kind: lambda: integers[(UNITS * 4,)](y, to, 200, KIND=k, BLOCK=2048, num_warps=8),
            integers,
        )
    for warps in (1, 4, 8, 16):
        for turns in (100, 1100):
            yield (
                f"sums of {warps} warps, {turns}",
                {"turns": turns},
                lambda w=warps, t=turns: lambda: sums[(UNITS,)](x, out, t, BLOCK=32 * w, num_warps=w),
                sums,
            )
            yield (
                f"barriers of {warps} warps, {turns}",
                {"turns": turns},
                lambda w=warps, t=turns: lambda: barriers[(UNITS,)](to, t, num_warps=w),
                barriers,
            )
    for turns in (100, 1100):
        yield (
            f"turned 64x64, {turns}",
            {"turns": turns},
            lambda t=turns: lambda: turned[(UNITS,)](x, out, t, M=64, N=64, num_warps=4),
            turned,
        )


SHAPES = (
    ("float16", 64, 64, 64, 4),
    ("float16", 64, 128, 64, 4),
    ("float16", 64, 256, 64, 4),
    ("float16", 128, 128, 64, 8),
    ("float16", 128, 256, 64, 8),
    ("float16", 16, 64, 64, 4),
    ("float16", 32, 32, 32, 1),
    ("tfloat32", 64, 128, 32, 4),
    ("tfloat32", 32, 32, 32, 4),
    ("int8", 128, 128, 64, 8),
    ("float8", 128, 128, 128, 8),
    ("float32", 64, 64, 32, 4),
    ("float32", 128, 128, 32, 8),
    ("float64", 64, 64, 16, 4),
)


def _products() -> Iterator[Measurement]:
    import torch

    for kind, m, n, k, warps in SHAPES:
        for filled in ("random", "zero"):
            for turns, blocks in ((200, UNITS), (2200, UNITS), (2200, 2 * UNITS)):
                if kind in ("float32", "float64") and (turns > 200 and filled == "zero"):
                    continue

                def make(
                    kind: str = kind, m: int = m, n: int = n, k: int = k, warps: int = warps, filled: str = filled,
                    turns: int = turns, blocks: int = blocks,
                ) -> Callable[[], None]:  # fmt: skip
                    dtype = {"tfloat32": torch.float32, "float8": torch.float8_e4m3fn}.get(kind)
                    dtype = dtype or getattr(torch, kind)
                    scale = 4.0 if filled == "random" else 0.0
                    a, b = ((torch.randn(s, device="cuda") * scale).to(dtype) for s in ((m, k), (k, n)))
                    acc = tl.int32 if kind == "int8" else tl.float64 if kind == "float64" else tl.float32
                    out = torch.empty(
                        blocks * m * n, device="cuda", dtype=getattr(torch, acc.name.replace("fp", "float"))
                    )
                    how = "ieee" if kind == "float32" else "tf32"
                    more = {"M": m, "N": n, "K": k, "ACC": acc, "HOW": how, "num_warps": warps}
                    return lambda: products[(blocks,)](a, b, out, turns, **more)

                name = f"product {kind} {m}x{n}x{k} of {warps} warps, {filled}, {turns} turns, {blocks} blocks"
                yield name, {"flops": 2.0 * m * n * k * turns * blocks}, make, products


GROUPS = (_launches, _streams, _caches, _scattered, _atomics, _arithmetic, _products)


def results_of(gpu: str) -> Path:
    """The file of a card."""
    return RESULTS / f"calibration-{'h200' if 'H200' in gpu else 'h100'}.json"


def work(rows: dict[str, Any], path: Path, only: str, seconds: float) -> None:
    """Measure what is not known yet."""
    import torch

    from explain_time import by_events, by_profiler

    begin = time.monotonic()
    other = torch.ones(64 << 20, device="cuda")
    scratch = torch.empty(1 << 20, device="cuda")

    def clean() -> None:
        """The L2 cache full of what need not be written back."""
        read[(16384,)](other, scratch, 1, 0, BLOCK=4096, num_warps=8)

    empty = by_events(lambda: nothing[(UNITS,)](scratch, BLOCK=16), rounds=20)
    for group in GROUPS:
        for name, facts, make, kernel in group():
            if only not in name or name in rows:
                continue
            if time.monotonic() - begin > seconds:
                return
            row: dict[str, Any] = dict(facts)
            try:
                call = make()
                if facts.get("clean"):
                    row["us"] = cleanly(call, clean, kernel.__name__)
                else:
                    call()
                    row["us"] = by_profiler(call, kernel.__name__, rounds=12)
                    row["events"] = None if row["us"] else round(by_events(call, rounds=12) - empty, 2)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {str(error)[:200]}"
            rows[name] = row
            path.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
            print(f"{name:70} {row.get('us') or row.get('events') or row.get('error')}", flush=True)


def cleanly(call: Callable[[], None], clean: Callable[[], None], name: str) -> float | None:
    """The time of every other launch of `read`: the ones between fill the cache."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    call()
    clean()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(12):
            clean()
            call()
        torch.cuda.synchronize()
    events = sorted((e for e in found.events() if e.name == name), key=lambda e: e.time_range.start)
    times = [e.time_range.elapsed_us() for e in events[1::2]]
    return round(statistics.median(times), 2) if times else None


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="what has this in its name")
    parser.add_argument("--seconds", type=float, default=550.0, help="begin nothing after so long")
    parser.add_argument("--report", action="store_true", help="print what was measured before")
    parser.add_argument("--device", default="", help="whose measurements to print: H200")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    options = parser.parse_args()
    if not options.report:
        from gpu_facts import machine

        options.device = machine()["gpu"]
    path = results_of(options.device)
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not options.again else {}
    if not options.report:
        work(rows, path, options.only, options.seconds)
        return
    for name, row in rows.items():
        print(f"{name:70} {row.get('us') or row.get('events') or row.get('error')}")


if __name__ == "__main__":
    main()
