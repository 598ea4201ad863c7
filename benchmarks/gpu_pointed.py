"""Products by pointers, with warps specialised and not, beside Triton and cuBLAS, on a Hopper GPU.

    python benchmarks/gpu_pointed.py [--seconds N] [--only WORD]

bf16, the source of Triton's tutorial. "bulk" is Weft with `warp_specialize=True`, whose loads are bulk copies by maps
that the launch makes; "threads" is Weft without. Each side has its best of one list of configurations; all take turns.
Figures are TFLOP/s by the median. Then: what a launch costs with maps that are looked up, and with such that are made.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import sys
import time

import torch
import triton
import triton.language

import weft
import weft.language
from gpu_facts import machine
from gpu_sides import check, fastest, load_side, medians
from weft.runtime import made_maps

FILE = "gpu_pointed_kernels"
OURS = load_side("weft", FILE, jit=weft.jit, tl=weft.language)
THEIRS = load_side("triton", FILE, jit=triton.jit, tl=triton.language)
SIDES = {"bulk": (OURS, True), "threads": (OURS, False), "Triton": (THEIRS, False)}
CONFIGURATIONS = [
    *((128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (64, 128, 64, 4, 4)),
]
"""Rows, columns, depth, warps, stages."""
SIZES = [
    ("1024", 1024, 1024, 1024, False),
    ("2048", 2048, 2048, 2048, False),
    ("4096", 4096, 4096, 4096, False),
    ("4096 b transposed", 4096, 4096, 4096, True),
    ("8192", 8192, 8192, 8192, False),
    ("1000", 1000, 1000, 1000, False),
    ("4104", 4104, 4104, 4104, True),
    ("8192x8192x512", 8192, 8192, 512, False),
    ("5120x50257x1536 b transposed", 5120, 50257, 1536, True),
    ("4097 (rows are odd: no maps)", 4097, 4097, 4097, False),
]


def launches(side, a, b, c):
    """The configurations of a side, each with what launches it."""
    kernels, asked = SIDES[side]
    (m, k), n = a.shape, b.shape[1]
    for bm, bn, bk, warps, stages in CONFIGURATIONS:
        grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
        strides = (*a.stride(), *b.stride(), *c.stride())
        more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "ASKED": asked, "num_warps": warps, "num_stages": stages}

        def launch(more=more, grid=grid, strides=strides):
            return kernels.matmul[grid](a, b, c, m, n, k, *strides, **more)

        yield (bm, bn, bk, warps, stages), launch


def row(m, n, k, transposed):
    """Seconds of each side and of cuBLAS, and what won."""
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16).T if transposed else (
        torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    )
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    expected = a @ b
    chosen = {}
    for side in SIDES:
        chosen[side] = fastest(launches(side, a, b, c))
        c.zero_()
        chosen[side][1]()
        check(c, expected, 1e-2)
    times = medians(*(x[1] for x in chosen.values()), lambda: torch.mm(a, b, out=c), seconds=0.3)
    won = [x[0] for x in chosen.values()]
    is_bulk = "warp_specialize" in chosen["bulk"][1]().asm["ttgir"]
    return [2 * m * n * k / t / 1e12 for t in times], won, is_bulk


def unmasked():
    """Whether maps of unbounded sizes are taken by the driver, and right."""
    n = 2048
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    declined = []
    missing = made_maps.MadeMaps.__missing__

    def noted(self, values):
        try:
            return missing(self, values)
        except made_maps.NoTensor as why:
            declined.append(str(why))
            raise

    made_maps.MadeMaps.__missing__ = noted
    more = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 4}
    grid = (n // 128 * (n // 128),)
    calls = [lambda asked=asked: OURS.unmasked[grid](a, b, c, n, n, ASKED=asked, **more) for asked in (True, False)]
    for call in calls:
        c.zero_()
        call()
        check(c, a @ b, 1e-2)
    times = medians(*calls, seconds=0.2)
    print("without masks, 2048: bulk, threads", [round(2 * n**3 / t / 1e12) for t in times], "declined:", declined)
    made_maps.MadeMaps.__missing__ = missing


def host():
    """Microseconds of the host for a launch: bulk with maps that are looked up, and made; threads; Triton."""
    arrays = [torch.randn(256, 256, device="cuda", dtype=torch.bfloat16) for _ in range(1000)]
    b, c = arrays[0], torch.empty_like(arrays[0])
    for name, lefts, (kernels, asked) in (
        ("bulk, the same arrays", arrays[:1] * 1000, SIDES["bulk"]),
        ("bulk, an array that is new each time", arrays, SIDES["bulk"]),
        ("threads", arrays, SIDES["threads"]),
        ("Triton", arrays, SIDES["Triton"]),
    ):
        more = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "ASKED": asked, "num_warps": 8, "num_stages": 4}
        for count in (3, 997):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for a in lefts[:count] if count == 3 else lefts[3:]:
                kernels.matmul[(4,)](a, b, c, 256, 256, 256, 256, 1, 256, 1, 256, 1, **more)
            taken = time.perf_counter() - begin
        print(f"a launch, {name}: {taken / 997 * 1e6:.1f} us")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after so long")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    begin = time.perf_counter()
    print(machine())
    unmasked()
    host()
    print(f"{'':32} {'bulk':>6} {'threads':>8} {'Triton':>7} {'cuBLAS':>7}  bulk of: threads, Triton, cuBLAS; what won")
    for name, m, n, k, transposed in SIZES:
        if options.only not in name or time.perf_counter() - begin > options.seconds:
            continue
        figures, won, is_bulk = row(m, n, k, transposed)
        parts = "  ".join(f"{figures[0] / f:.2f}" for f in figures[1:])
        shown = f"{figures[0]:6.0f} {figures[1]:8.0f} {figures[2]:7.0f} {figures[3]:7.0f}"
        print(f"{name:32} {shown}  {parts}  {won}{'' if is_bulk else '  (not specialised)'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
