"""What kernels that wait for memory take on a CPU by how caches, alignments, streams and shapes are: raw times as JSON.

    python benchmarks/cpu_probe.py --threads 1,8,16 --seconds 60 --out probe.json

Every time is the least of several, taken by turns in rounds, each of which is kept apart: another program that disturbs
one round leaves the others. "cold" is after all threads changed more memory than caches hold, "as was" after one
thread wrote 64 MiB, "warm" right after the same launch. Nothing is predicted here: `explain_cpu.py` does that.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

import explain_cpu
import weft
import weft.language as tl
from explain_cpu_more import more
from explain_cpu_others import others
from weft.backends.cpu.driver import host_cpu, set_num_threads
from weft.runtime import calibrating as c, calibration_kernels as k

Run = Callable[[], Any]
MIB = 1 << 20
FLUSHED = 256 * MIB


@weft.jit
def two_read(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@weft.jit
def gate(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * tl.sigmoid(tl.load(y + i)))


@weft.jit
def exponential(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * tl.exp(tl.load(y + i)))


@weft.jit
def quotient(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) / (1 + tl.load(y + i)))


@weft.jit
def gate_read(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i) * tl.sigmoid(tl.load(y + i)), 0))


@weft.jit
def long_rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + start + i, mask=start + i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@weft.jit
def by_column(x, out, rows, columns, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x + row * columns + j)
    tl.store(out + j, total)


@weft.jit
def turned(x, out, rows, columns, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    j = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + j * rows + i, tl.load(x + i * columns + j))


@weft.jit
def one_of_two(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + 2 * i) + tl.load(x + 2 * i + 1))


@weft.jit
def to_i8(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.int8))


def at(memory: Any, offset: int, elements: int, align: int = 4096) -> Any:
    """A part of memory that begins so many bytes behind a multiple of `align`."""
    first = (-memory.ctypes.data % align + offset) // 4
    return memory[first : first + elements]


def probes(x: Any, y: Any, out: Any) -> dict[str, Run]:
    """Launches by name; memory is of 72 MiB each."""
    found: dict[str, Run] = {}
    for mib in (1, 4, 8, 16, 32, 64):
        n = mib * MIB // 4
        for name, kernel in (("read", k.read), ("write", k.written), ("copy", k.copied), ("change", k.changed)):
            if name != "copy" or mib <= 32:
                found[f"{name} {mib}M"] = partial(kernel[(n // 4096,)], x, out, BLOCK=4096)
    for mib in (4, 16):
        n = mib * MIB // 4
        for name, kernel in (("add", two_read), ("gate", gate), ("exp", exponential), ("div", quotient),
                             ("gateread", gate_read)):  # fmt: skip
            found[f"{name} {mib}M np"] = partial(kernel[(n // 1024,)], x, y, out, BLOCK=1024)
    n = 4 * MIB
    for name, kernel in (("add", two_read), ("gate", gate)):
        for far, align in ((0, 4096), (16, 4096), (1040, 4096)):
            a, b, o = at(x, far % 1024 and 16, n, align), at(y, far, n, align), at(out, 2 * far % 4096, n, align)
            found[f"{name} 16M at {far}"] = partial(kernel[(n // 1024,)], a, b, o, BLOCK=1024)
    aligned = at(x, 0, n), at(out, 0, n)
    found["copy 16M at 0"] = partial(k.copied[(n // 4096,)], *aligned, BLOCK=4096)
    found["read 16M at 0"] = partial(k.read[(n // 4096,)], *aligned, BLOCK=4096)
    found["write 16M at 0"] = partial(k.written[(n // 4096,)], *aligned, BLOCK=4096)
    found["read1024 16M"] = partial(k.read[(n // 1024,)], x, out, BLOCK=1024)
    found["four 16M"] = partial(k.read_of_four[(n // 4 // 4096,)], x, out, n // 4, BLOCK=4096)
    found["looped 16M"] = partial(k.read_in_a_loop[(n // 4096,)], x, out, 4096, BLOCK=1024)
    found["masked loop 4096"] = partial(long_rows[(1024,)], x, out, 4096, BLOCK=1024)
    found["masked loop 3900"] = partial(long_rows[(1024,)], x, out, 3900, BLOCK=1024)
    for length in (200, 256):
        found[f"masked loop {length}"] = partial(long_rows[(20000,)], x, out, length, BLOCK=256)
    found["scaled 1024"] = partial(k.scaled[(4096,)], x, out, BLOCK=1024)
    found["scaled 4096"] = partial(k.scaled[(1024,)], x, out, BLOCK=4096)
    for programs, columns in ((1, 1024), (2, 2048), (4, 4096), (8, 8192), (16, 16384), (4, 4000), (16, 4096)):
        rows, block = 4096 * 1024 // columns, 1024 if programs * 1024 <= columns else 256
        found[f"columns {programs} of {columns}"] = partial(by_column[(programs,)], x, out, rows, columns, BLOCK=block)
    for length in (*c.LENGTHS, 16384):
        columns = length // 4
        tile = {"SIDE": 4096, "ROWS": 4096 // columns, "COLUMNS": columns}
        grid = (1024 * columns // 4096, 4096 // columns)
        found[f"rows read {length}"] = partial(k.rows_read[grid], x, out, **tile)
        found[f"rows written {length}"] = partial(k.rows_written[grid], x, out, **tile)
    shapes = ((2048, 2048), (1024, 3072), (3072, 1024), (1024, 3008), (992, 3008), (1008, 1008), (2080, 2048), (96, 96))
    for rows, columns in shapes:
        for size in (16, 32, 64):
            grid = (rows // size, columns // size)
            found[f"turned {rows}x{columns} {size}"] = partial(turned[grid], x, out, rows, columns, SIZE=size)
    for rows, columns in ((1024, 3072), (1000, 3000), (96, 96), (90, 90)):
        for size in (32, 64):
            grid = (-(-rows // size), -(-columns // size))
            run = partial(explain_cpu.transposed[grid], x, out, rows, columns, SIZE=size)
            found[f"masked turned {rows}x{columns} {size}"] = run
    found["pairs 16M"] = partial(one_of_two[(2 * MIB // 1024,)], x, out, BLOCK=1024)
    found["to i8 16M"] = partial(to_i8[(4 * MIB // 1024,)], x, out.view(np.int8), BLOCK=1024)
    found["pairs 64K"] = partial(one_of_two[(8,)], x, out, BLOCK=1024)
    found["to i8 64K"] = partial(to_i8[(16,)], x, out.view(np.int8), BLOCK=1024)
    found["gate 64K"] = partial(gate[(16,)], x, y, out, BLOCK=1024)
    found["exp 64K"] = partial(exponential[(16,)], x, y, out, BLOCK=1024)
    found["add 64K"] = partial(two_read[(16,)], x, y, out, BLOCK=1024)
    found["launch"] = partial(k.little[(1,)], x, out, BLOCK=c.LITTLE)
    for each in (1, 64):
        found[f"programs {4096 // each}"] = partial(k.little[(4096 // each,)], x, out, BLOCK=c.LITTLE * each)
    return found


def curve(x: Any, out: Any) -> dict[str, Run]:
    """Reading memory of many sizes, warm: where it comes from a cache."""
    sizes = (1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    return {f"{mib}M": partial(k.read[(mib * MIB // 16384,)], x, out, BLOCK=4096) for mib in sizes}


def took(run: Run, before: Run | None) -> float:
    if before is not None:
        before()
    sleep(0.001)
    begin = perf_counter()
    run()
    return 1e6 * (perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1", help="numbers of threads, by commas")
    parser.add_argument("--seconds", type=float, default=60, help="for each number of threads")
    parser.add_argument("--out", type=Path, default=Path("cpu-probe.json"))
    parser.add_argument("-k", default="", help="only those whose name contains this")
    options = parser.parse_args()
    big = np.ones(FLUSHED // 4, np.float32)
    memory = [np.ones(72 * MIB // 4, np.float32) for _ in range(3)]
    small = np.zeros(8 * MIB, np.int64)
    table = [*explain_cpu.cases(), *others(explain_cpu._array, explain_cpu.Case),
             *more(explain_cpu._array, explain_cpu.Case)]  # fmt: skip
    kernels: dict[str, Run] = {}
    for case in table:
        if options.k in case.name:
            kernels[f"kernel {case.name}"] = partial(
                case.kernel[case.grid], *case.args(np.random.default_rng(0)), **case.constants
            )
    chosen = {name: run for name, run in probes(*memory).items() if options.k in name}
    cpu = host_cpu()
    print(cpu.name, cpu.cores, "cores; caches", cpu.l1_bytes, cpu.l2_bytes, cpu.l3_bytes)
    for path in ("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/node/online"):
        print(path, Path(path).read_text().strip() if os.path.exists(path) else "is not there")
    found: dict[str, Any] = {"processor": c.processor(), "features": cpu.feature_string, "name": cpu.name}

    def flush() -> None:
        k.changed[(FLUSHED // 16384,)](big, big, BLOCK=4096)

    for count in map(int, options.threads.split(",")):
        set_num_threads(count)
        begin = perf_counter()
        here: dict[str, dict[str, list[float]]] = {}
        found[str(count)] = here

        def note(name: str, how: str, us: float, here: Any = here) -> None:
            here.setdefault(how, {}).setdefault(name, []).append(round(us, 1))

        for name, run in curve(big, memory[2]).items():
            run()
            note(name, "curve", min(took(run, None) for _ in range(4)))
        everything = {**chosen, **kernels}
        for name, run in everything.items():
            run()
            note(name, "warm", min(took(run, None) for _ in range(3)))
        rounds = 0
        while rounds < 6 and (rounds < 2 or perf_counter() - begin < 0.8 * options.seconds):
            for name, run in everything.items():
                note(name, "cold", min(took(run, flush) for _ in range(2)))
            rounds += 1
        for name, run in everything.items():
            if perf_counter() - begin < options.seconds:
                note(name, "as was", min(took(run, partial(small.fill, 1)) for _ in range(2)))
        seconds = round(perf_counter() - begin, 1)
        print(f"{count} threads: {rounds} rounds, {seconds} s; GB/s again: {curve_text(here)}", flush=True)
        options.out.write_text(json.dumps(found, separators=(",", ":")), encoding="utf-8")


def curve_text(here: dict[str, dict[str, list[float]]]) -> str:
    """Gigabytes of a second by what is read again."""
    return " ".join(f"{name}:{int(name[:-1]) * MIB / us[0] / 1000:.1f}" for name, us in here["curve"].items())


if __name__ == "__main__":
    main()
