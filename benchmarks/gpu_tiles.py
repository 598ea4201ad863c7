"""Products over tiles and by small tiles, beside Triton and cuBLAS, on a Hopper GPU.

    python benchmarks/gpu_tiles.py [--seconds N] [--only WORD] [--all] [--rows] [--neighbours]

bf16, by host descriptors. Every side has its best of one list of sources and configurations (gpu_pointed_kernels.py):
"tiles" is a loop over tiles, "halves" the same that stores each tile in two halves, "beside" and "below" the same of
tiles whose columns, or rows, are no power of two (up to four sums), "crossed" and "both" of tiles of which neither is
one, "one" a program for each tile, "split" several for each, which divide K, and "tail" is "halves" whose last tiles,
which are no whole wave, are done in small parts by a second launch. Triton does not get the configurations of clusters
(two blocks that share an operand). "By threads" is what won for Weft, stored by threads instead of the copy engine
(`made_tensors=False`). All take turns. Figures are TFLOP/s by the median; a line that falls short of its goal
(goals.py) says so. With --neighbours: sizes for which no configuration was chosen. With --rows: what rows of A, B or C
that begin within a line of memory cost.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import functools
import sys
import time
from contextlib import suppress

import torch
import triton
import triton.language
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from goals import Line, short_of
from gpu_facts import machine
from gpu_sides import check, fastest, load_side, medians

FILE = "gpu_pointed_kernels"
OURS = load_side("weft", FILE, jit=weft.jit, tl=weft.language)
THEIRS = load_side("triton", FILE, jit=triton.jit, tl=triton.language)
SIDES = {"Weft": (OURS, weft.TensorDescriptor), "Triton": (THEIRS, TensorDescriptor)}
SOURCES = {
    "tiles": "over_tiles",
    "halves": "in_halves",
    "one": "one_tile",
    "split": "shared_sums",
    "tail": "parts_of_tiles",
    "beside": "side_by_side",
    "below": "one_below_another",
    "crossed": "crossed",
    "both": "below_and_beside",
}
SMALL_PART = (64, 128)
"""Rows and columns of the parts into which tiles beyond the last whole wave fall."""
LARGE = [
    ("halves", 128, 256, 64, 8, 3, 1, True),
    ("halves", 128, 256, 64, 8, 4, 1, True),
    ("halves", 256, 128, 64, 8, 4, 1, True),
    ("halves", 256, 256, 64, 8, 4, 2, True),
    ("halves", 256, 128, 64, 8, 4, 2, True),
    ("tiles", 256, 256, 64, 8, 3, 2, True),
    ("tiles", 128, 128, 64, 8, 4, 1, True),
]
BESIDE = [
    ("beside", 256, (64, 64, 64, 32), 64, 8, 4, 2, True),
    ("beside", 256, (64, 64, 64), 64, 8, 4, 2, True),
    ("beside", 256, (128, 128, 128), 64, 8, 3, 2, True),
    ("beside", 512, (64, 64, 64), 64, 8, 3, 2, True),
    ("below", (128, 128, 16, 16), 256, 64, 8, 3, 2, True),
    ("below", (128, 128, 16, 16), 256, 64, 8, 4, 2, True),
    ("below", (128, 128, 32, 16), 256, 64, 8, 3, 2, True),
    ("below", (128, 128, 32, 16), 256, 64, 8, 4, 2, True),
    ("below", (128, 128, 64, 32), 256, 64, 8, 3, 2, True),
    ("crossed", (128, 64), (256, 128), 64, 8, 3, 2, True),
    ("both", (256, 128), (128, 64), 64, 8, 4, 2, True),
    ("both", (256, 128, 64), (128, 64), 64, 8, 3, 2, True),
    ("both", (128, 128, 128, 64), (128, 64), 64, 8, 4, 2, True),
    ("both", (128, 64, 32, 16), (256, 128), 64, 8, 3, 2, True),
    ("halves", 512, 256, 64, 8, 4, 4, True),
    ("tiles", 256, 512, 64, 8, 3, 4, True),
]
ODD = [*LARGE, *BESIDE, ("tail", 128, 256, 64, 8, 4, 1, True), ("tail", 256, 256, 64, 8, 4, 2, True)]
SMALL = [
    ("one", 128, 128, 64, 8, 4, 1, True),
    ("one", 64, 128, 64, 4, 6, 1, True),
    ("one", 64, 128, 64, 4, 6, 1, False),
    ("one", 128, 64, 64, 4, 6, 1, True),
    ("one", 64, 128, 128, 4, 4, 1, True),
    ("one", 64, 128, 128, 4, 4, 1, False),
    ("one", 128, 64, 128, 4, 4, 1, False),
    ("one", 128, 128, 64, 4, 6, 2, True),
    ("one", 128, 128, 128, 4, 4, 2, True),
    ("one", 256, 256, 64, 8, 4, 4, True),
    ("one", 128, 256, 64, 4, 6, 4, True),
    ("split", 64, 128, 64, 4, 6, 1, True),
    ("tiles", 128, 128, 64, 4, 6, 2, True),
]
"""Source, rows, columns, depth, warps, stages, blocks of a cluster, and whether Weft is asked to specialise warps.
Several rows or columns are those of several sums."""
SIZES = [
    ("8192x8192x512", 8192, 8192, 512, LARGE),
    *((f"8192x8192x{k}", 8192, 8192, k, LARGE) for k in (1024, 2048, 4096, 16384)),
    ("4104", 4104, 4104, 4104, ODD),
    ("1024", 1024, 1024, 1024, SMALL),
    ("1000", 1000, 1000, 1000, SMALL),
    ("2048", 2048, 2048, 2048, LARGE),
    ("4096", 4096, 4096, 4096, LARGE),
    ("8192", 8192, 8192, 8192, LARGE),
    ("3000", 3000, 3000, 3000, ODD),
    ("5000x2056x1544", 5000, 2056, 1544, ODD),
    ("1160x8200x4104", 1160, 8200, 4104, ODD),
]
NEIGHBOURS = [
    ("776", 776, 776, 776, SMALL),
    ("1160x1288x1000", 1160, 1288, 1000, SMALL),
    ("512x512x8192", 512, 512, 8192, SMALL),
    ("1544", 1544, 1544, 1544, ODD),
    ("2056", 2056, 2056, 2056, ODD),
    ("3336", 3336, 3336, 3336, ODD),
    ("6152x1800x1032", 6152, 1800, 1032, ODD),
    ("2568x3592x2056", 2568, 3592, 2056, ODD),
    ("1024x4096x512", 1024, 4096, 512, LARGE),
]
"""Sizes for which no configuration was chosen: does the list have one for them?"""
SECONDS = 0.1
"""For each side of a row: a card that multiplies for longer may lower its clocks."""
PROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count


def described(side, a, b, c, bm, bn, bk, halves):
    """Descriptors of the operands and of the result."""
    block = [bm, bn // 2 if halves else bn]
    descriptor = SIDES[side][1]
    return [descriptor.from_tensor(x, block) for x, block in ((a, [bm, bk]), (b, [bk, bn]), (c, block))]


@functools.cache
def room(blocks):
    """Clusters of so many blocks that run at once, of which each has a multiprocessor alone: a cluster lies within one
    group of them, and the groups differ in size (on an H100, 30 clusters of 4 run at once)."""
    if blocks == 1:
        return PROCESSORS
    x = random(256, 256)
    sides = described("Weft", x, x, x, 256, 256, 64, False)
    sizes = {"BM": 256, "BN": 256, "BK": 64, "GROUP": 1, "PROGRAMS": 1, "ASKED": True}
    large = {"num_warps": 8, "num_stages": 4, "num_ctas": blocks}
    return OURS.one_tile.warmup(*sides, 256, 256, 256, **sizes, **large, grid=(1,)).n_max_programs


def launcher(side, configuration, a, b, c, **options):
    """What launches a configuration."""
    source, bm, bn, bk, warps, stages, blocks, asked = configuration
    kernel = getattr(SIDES[side][0], SOURCES[source])
    (m, k), n = a.shape, b.shape[1]
    tiles, clusters = triton.cdiv(m, whole(bm)) * triton.cdiv(n, whole(bn)), room(blocks)
    options |= {"ASKED": asked and side == "Weft"}
    large = {"num_warps": warps, "num_stages": stages, "num_ctas": blocks}
    if source in DESCRIBED:
        sides, sizes = DESCRIBED[source](side, a, b, c, bm, bn, bk)
        more = sizes | {"BK": bk, "GROUP": in_group(bm), "PROGRAMS": clusters}
        return lambda: kernel[(min(clusters, tiles),)](*sides, m, n, k, **more, **large, **options)
    sides = described(side, a, b, c, bm, bn, bk, source not in ("tiles", "one", "split"))
    more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": in_group(bm), "PROGRAMS": clusters}
    if source == "split":
        parts = max(1, clusters // tiles)
        sums = torch.empty(tiles * parts * bm * bn, device="cuda")
        counts = torch.zeros(tiles, dtype=torch.int32, device="cuda")
        more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": in_group(bm), "PARTS": parts}
        return lambda: kernel[(tiles * parts,)](*sides, sums, counts, m, n, k, **more, **large, **options)
    if source != "tail":
        grid = (tiles if source == "one" else min(clusters, tiles),)
        return lambda: kernel[grid](*sides, m, n, k, **more, **large, **options)
    first, (sm, sn) = tiles // clusters * clusters, SMALL_PART
    parts = {"DOWN": bm // sm, "ACROSS": bn // sn}
    each = parts["DOWN"] * parts["ACROSS"]
    small = more | parts | {"BM": sm, "BN": sn, "PROGRAMS": PROCESSORS, "num_warps": 4, "num_stages": 6}
    of_small = described(side, a, b, c, sm, sn, bk, True)
    rest = (min(PROCESSORS, (tiles - first) * each),)

    def launch():
        if first:
            kernel[(clusters,)](*sides, m, n, k, 0, first, **more, DOWN=1, ACROSS=1, **large, **options)
        if tiles > first:
            kernel[rest](*of_small, m, n, k, first * each, tiles * each, **small, **options)

    return launch


def whole(size):
    """The rows or columns of a tile."""
    return sum(size) if isinstance(size, tuple) else size


def in_group(size):
    """How many rows of tiles form a group, which is done before the next columns. Tiles of many rows gain by fewer: on
    an H200, 5000x2056x1544 with tiles of 512 rows takes 57.4 us in groups of two and 58.8 in groups of eight, and with
    448 rows 56.7 in groups of two and 58.7 in groups of six. For tiles of 256 rows it makes no difference."""
    return 2 if whole(size) >= 448 else 8


def several_sums(side, a, b, c, bm, bn, bk):
    """Descriptors and sizes of tiles of which either the rows or the columns are those of several sums."""
    is_below = isinstance(bm, tuple)
    parts = (*(bm if is_below else bn), 0, 0, 0)[:4]
    sizes = {f"{'M' if is_below else 'N'}{i + 1}": x for i, x in enumerate(parts)}
    sizes |= {"BN": bn} if is_below else {"BM": bm}
    own = [x or parts[0] for x in parts]
    if is_below:
        blocks = [*((a, x, bk) for x in own), (b, bk, bn), *((c, x, bn // 2) for x in own)]
    else:
        blocks = [(a, bm, bk), *((b, bk, x) for x in own), *((c, bm, x) for x in own)]
    return [SIDES[side][1].from_tensor(x, list(block)) for x, *block in blocks], sizes


def crossed_sums(side, a, b, c, bm, bn, bk):
    """Descriptors and sizes of tiles of two sums below two others."""
    blocks = [*((a, x, bk) for x in bm), *((b, bk, x) for x in bn), *((c, x, y) for x in bm for y in bn)]
    sizes = {"M1": bm[0], "M2": bm[1], "N1": bn[0], "N2": bn[1]}
    return [SIDES[side][1].from_tensor(x, list(block)) for x, *block in blocks], sizes


def transposed_sums(side, a, b, c, bm, bn, bk):
    """Descriptors and sizes for tiles of up to four sums one below another by two side by side."""
    parts = (*bm, 0, 0, 0)[:4]
    own = [x or parts[0] for x in parts]
    blocks = [*((a, x, bk) for x in own), *((b, bk, x) for x in bn), *((c, x, y) for y in bn for x in own)]
    sizes = {f"M{i + 1}": x for i, x in enumerate(parts)} | {f"N{i + 1}": x for i, x in enumerate(bn)}
    return [SIDES[side][1].from_tensor(x, list(block)) for x, *block in blocks], sizes


DESCRIBED = {"beside": several_sums, "below": several_sums, "crossed": crossed_sums, "both": transposed_sums}


def launches(side, configurations, a, b, c):
    """The configurations of a side, each with what launches it."""
    if side == "Triton":
        configurations = dict.fromkeys((*x[:-1], False) for x in configurations if x[-2] == 1)
    for configuration in configurations:
        yield configuration, launcher(side, configuration, a, b, c)


def best(side, configurations, a, b, c, expected, shown):
    """What wins, and its launch, whose result is right; every figure is `shown`, or not."""
    found = list(launches(side, configurations, a, b, c))
    chosen = fastest(found)
    for configuration, launch in found if shown else ():
        with suppress(weft.OutOfResources, triton.runtime.errors.OutOfResources):
            speed = 2 * c.numel() * a.shape[1] / medians(launch, seconds=0.05)[0] / 1e12
            print(f"    {side:6} {speed:6.0f}  {' '.join(map(str, configuration))}")
    c.zero_()
    chosen[1]()
    check(c, expected, 1e-2)
    return chosen


def random(rows, columns, wide=0):
    return torch.randn((rows, columns + wide), device="cuda", dtype=torch.bfloat16)[:, :columns]


def inputs(part: str):
    """(A, B, C, the list of configurations) of a line."""
    m, n, k, configurations = next(rest for name, *rest in (*SIZES, *NEIGHBOURS) if name == part)
    return random(m, k), random(k, n), torch.empty(m, n, device="cuda", dtype=torch.bfloat16), configurations


def parts() -> list[str]:
    """The lines of the table."""
    return [name for name, *_ in SIZES]


def prepare(part: str) -> None:
    """Compile the kernels of a line."""
    a, b, c, configurations = inputs(part)
    for side in SIDES:
        fastest(launches(side, configurations, a, b, c))


def measure(part: str, by_threads: bool = False, shown: bool = False):
    """The line: TFLOP/s of each side, with the configurations that won; of Weft also with stores by threads."""
    a, b, c, configurations = inputs(part)
    expected = a @ b
    chosen = {side: best(side, configurations, a, b, c, expected, shown) for side in SIDES}
    calls = {side: launch for side, (_, launch) in chosen.items()} | {"cuBLAS": lambda: torch.mm(a, b, out=c)}
    if by_threads:
        calls["by threads"] = launcher("Weft", chosen["Weft"][0], a, b, c, made_tensors=False)
    times = medians(*calls.values(), seconds=SECONDS)
    figures = dict(zip(calls, (2 * c.numel() * a.shape[1] / t / 1e12 for t in times), strict=True))
    won = {side: " ".join(map(str, configuration)) for side, (configuration, _) in chosen.items()}
    yield Line(part, figures, "TFLOP/s", won)


def rows(size, configuration):
    """What rows that begin within a line cost, in which of the matrices."""
    print(f"rows of 8 elements more in:   Weft  by threads  cuBLAS   {configuration}")
    for name, wide in (("none", (0, 0, 0)), ("A", (8, 0, 0)), ("B", (0, 8, 0)), ("C", (0, 0, 8)), ("all", (8, 8, 8))):
        a, b, c = (random(size, size, w) for w in wide)
        ways = [launcher("Weft", configuration, a, b, c, **more) for more in ({}, {"made_tensors": False})]
        times = medians(*ways, lambda a=a, b=b, c=c: torch.mm(a, b, out=c), seconds=0.2)
        figures = [2 * size**3 / t / 1e12 for t in times]
        print(f"{name:28} {figures[0]:6.0f} {figures[1]:11.0f} {figures[2]:7.0f}", flush=True)


def main() -> int:
    """Print the table; 1 where a line falls short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after so long")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--all", action="store_true", help="every configuration's figure besides")
    parser.add_argument("--rows", action="store_true", help="what rows that begin within a line of memory cost")
    parser.add_argument("--neighbours", action="store_true", help="other sizes, for which nothing was chosen")
    options = parser.parse_args()
    begin = time.perf_counter()
    facts, falls_short = machine(), False
    print(facts)
    if options.rows:
        for configuration in (LARGE[1], LARGE[3]):
            rows(4096, configuration)
    for name, *_ in NEIGHBOURS if options.neighbours else SIZES:
        if options.only not in name or time.perf_counter() - begin > options.seconds:
            continue
        for line in measure(name, True, options.all):
            missed = short_of("products", line, facts["gpu"])
            falls_short |= bool(missed)
            print(f"{line.shown()}{missed}  [{time.perf_counter() - begin:.0f} s]", flush=True)
    return int(falls_short)


if __name__ == "__main__":
    sys.exit(main())
