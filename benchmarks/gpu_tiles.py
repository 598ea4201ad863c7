"""Products over tiles (persistent kernels), with warps specialised and not, beside Triton and cuBLAS, on a Hopper GPU.

    python benchmarks/gpu_tiles.py [--seconds N] [--only WORD]

bf16, by host descriptors. "tiles" is Weft's loop over tiles with `warp_specialize=True`, whose copies run ahead into
the next tile; "one" is a program for each tile with the same option; "plain" is the loop over tiles without. Each side
has its best of one list of configurations; all take turns. Figures are TFLOP/s by the median.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import sys
import time

import torch
import triton
import triton.language
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from gpu import check, load_side, medians
from gpu_facts import machine

FILE = "gpu_pointed_kernels"
OURS = load_side("weft", FILE, jit=weft.jit, tl=weft.language)
THEIRS = load_side("triton", FILE, jit=triton.jit, tl=triton.language)
SIDES = {
    "tiles": (OURS.over_tiles, True, weft.TensorDescriptor),
    "one": (OURS.one_tile, True, weft.TensorDescriptor),
    "plain": (OURS.over_tiles, False, weft.TensorDescriptor),
    "Triton": (THEIRS.over_tiles, False, TensorDescriptor),
}
CONFIGURATIONS = [(128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 256, 64, 8, 4)]
"""Rows, columns, depth, warps, stages."""
SIZES = [
    ("8192x8192x512", 8192, 8192, 512),
    ("8192x8192x1024", 8192, 8192, 1024),
    ("4096", 4096, 4096, 4096),
    ("8192", 8192, 8192, 8192),
    ("2048", 2048, 2048, 2048),
    ("4104", 4104, 4104, 4104),
    ("1024", 1024, 1024, 1024),
]


def launches(side, a, b, c):
    """The configurations that a side compiles, each as what launches it."""
    kernel, asked, descriptor = SIDES[side]
    (m, k), n = a.shape, b.shape[1]
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    for bm, bn, bk, warps, stages in CONFIGURATIONS:
        tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
        programs = min(processors, tiles)
        grid = (tiles if side == "one" else programs,)
        sides = [descriptor.from_tensor(x, block) for x, block in ((a, [bm, bk]), (b, [bk, bn]), (c, [bm, bn]))]
        more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "PROGRAMS": programs, "ASKED": asked}

        def launch(more=more, grid=grid, sides=sides, warps=warps, stages=stages):
            return kernel[grid](*sides, m, n, k, **more, num_warps=warps, num_stages=stages)

        try:
            made = launch()
            torch.cuda.synchronize()
        except Exception as error:  # what a side cannot do is out of the list
            if "resource" not in str(error) and "OutOfResources" not in type(error).__name__:
                raise
            continue
        yield (bm, bn, bk, warps, stages), launch, made


def row(m, n, k):
    """Seconds of each side and of cuBLAS, what won, and whether that is specialised."""
    a, b = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    expected = a @ b
    chosen = {}
    for side in SIDES:
        found = list(launches(side, a, b, c))
        times = medians(*(launch for _, launch, _ in found), seconds=0.05)
        chosen[side] = found[min(range(len(found)), key=lambda i: times[i])]
        c.zero_()
        chosen[side][1]()
        check(c, expected, 1e-2)
    times = medians(*(x[1] for x in chosen.values()), lambda: torch.mm(a, b, out=c), seconds=0.3)
    is_divided = "warp_specialize" in chosen["tiles"][2].asm["ttgir"]
    return [2 * m * n * k / t / 1e12 for t in times], [x[0] for x in chosen.values()], is_divided


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after so long")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    begin = time.perf_counter()
    print(machine())
    print(f"{'':16} {'tiles':>6} {'one':>6} {'plain':>6} {'Triton':>7} {'cuBLAS':>7}  tiles of each; what won")
    for name, m, n, k in SIZES:
        if options.only not in name or time.perf_counter() - begin > options.seconds:
            continue
        figures, won, is_divided = row(m, n, k)
        shown = f"{figures[0]:6.0f} {figures[1]:6.0f} {figures[2]:6.0f} {figures[3]:7.0f} {figures[4]:7.0f}"
        parts = "  ".join(f"{figures[0] / f:.2f}" for f in figures[1:])
        print(f"{name:16} {shown}  {parts}  {won}{'' if is_divided else '  (not specialised)'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
