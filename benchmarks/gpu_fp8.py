"""Products of fp8 with scales of blocks, grouped products and attention in fp8, beside Triton and cuBLAS, on Hopper.

    python benchmarks/gpu_fp8.py [--only WORD] [--seconds N] [--save]

e4m3 products: a scale for each 128 elements of a row of the left operand, and for each 128 by 128 of the right one;
operands by pointers, by descriptors, and by descriptors over tiles, the same source on both sides, each with its best
of one list of configurations. "plain" is Weft by pointers without tensor maps (`made_tensors=False`), so that warps
are not specialised. cuBLAS is `torch._scaled_mm` with scales of blocks where PyTorch has it, else with one for each
row and column. Attention is in the form of Triton's tutorial: e5m2, v transposed in memory, 16 heads of 128. Random
data; all take turns; TFLOP/s by the median.

Required of Weft: products of 4,096 to 8,192 at 1.25 of Triton's speed, attention of 16 Ki at 750. A line that falls
short says so, and the program ends with status 1.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import json
import math
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import torch
import torch.nn.functional as F
import triton
import triton.language
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from gpu import load_side, medians
from gpu_facts import machine

FILE = "gpu_fp8_kernels"
SIDES = {
    "Weft": (load_side("weft", FILE, jit=weft.jit, tl=weft.language), weft.TensorDescriptor, {}),
    "Triton": (load_side("triton", FILE, jit=triton.jit, tl=triton.language), TensorDescriptor, {}),
}
FORMS = ("by_pointers", "by_descriptors", "over_tiles")
CONFIGURATIONS = [
    (128, 128, 8, 3), (128, 128, 8, 4), (128, 128, 4, 3), (64, 128, 4, 4), (128, 256, 8, 3), (128, 256, 8, 4),
]  # fmt: skip
"""Rows, columns, warps, stages; 128 along the sum."""
ATTENTIONS = [(128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 4)]
"""Rows of queries, of keys, warps, stages."""
SIZES = [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 2048), (8192, 4096, 7168)]
BK = 128
HEAD, LENGTH, HEADS = 128, 16384, 16
GROUPS = [(4096, 4096, 4096), (2048, 4096, 4096), (1024, 4096, 4096), (512, 4096, 4096)]
"""Rows, columns and depth of the products of one launch."""
RESULTS = Path(__file__).resolve().parent / "results"


def tried(launches, seconds):
    """(name, what launches it, the kernel) of the fastest of some; what cannot be compiled is left out."""
    found = []
    for name, launch in launches:
        try:
            made = launch()
            torch.cuda.synchronize()
        except Exception as error:
            print(f"    {name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        found.append((name, launch, made))
    times = medians(*(launch for _, launch, _ in found), seconds=seconds)
    for (name, _, _), t in zip(found, times, strict=True):
        print(f"    {name}: {t * 1e6:.0f} us", flush=True)
    return found[min(range(len(found)), key=lambda i: times[i])]


class Scaled:
    """A product to be made, and what each side is given."""

    def __init__(self, m, n, k):
        self.sizes = m, n, k
        self.a, self.b = (torch.randn(x, k, device="cuda").to(torch.float8_e4m3fn) for x in (m, n))
        self.sa = torch.rand(m, k // BK, device="cuda") + 0.5
        self.sb = torch.rand(n // BK, k // BK, device="cuda") + 0.5
        self.by_columns = self.sa.T.contiguous()
        self.c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def expected(self):
        left = self.a.float() * self.sa.repeat_interleave(BK, 1)
        return left @ (self.b.float() * self.sb.repeat_interleave(BK, 0).repeat_interleave(BK, 1)).T

    def check(self):
        expected = self.expected()
        error = (self.c.float() - expected).abs().max() / expected.abs().max()
        assert error < 2e-2, f"off by {error:.3g} of the largest"

    def launches(self, side, forms=FORMS, **options):
        kernels, descriptor, more = SIDES[side]
        (m, n, k), groups = self.sizes, self.sizes[2] // BK
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        for form in forms:
            kernel = getattr(kernels, form)
            for bm, bn, warps, stages in CONFIGURATIONS:
                tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
                programs = min(processors, tiles)
                meta = {"BM": bm, "BN": bn, "BK": BK, "GROUP": 8, "PROGRAMS": programs, "ASKED": False}
                if form == "by_pointers":
                    args = (self.a, self.b, self.sa, self.sb, self.c, m, n, k, k, k, n, groups, groups)
                else:
                    blocks = ((self.a, [bm, BK]), (self.b, [bn, BK]), (self.c, [bm, bn]))
                    a, b, c = (descriptor.from_tensor(x, block) for x, block in blocks)
                    args = (a, b, self.by_columns, self.sb, c, m, n, k, m, groups)
                grid = (programs if form == "over_tiles" else tiles,)
                given = {**meta, **more, **options, "num_warps": warps, "num_stages": stages}

                def launch(kernel=kernel, grid=grid, args=args, given=given):
                    return kernel[grid](*args, **given)

                yield f"{side} {form} {bm}x{bn}, {warps} warps, {stages} stages", launch

    def library(self):
        """(what it is, what launches it) by cuBLAS."""
        by_blocks = {"scale_a": self.sa.T.contiguous().T, "scale_b": self.sb.T.contiguous().T.t()}
        by_rows = {"scale_a": self.sa[:, :1].contiguous(), "scale_b": torch.rand(1, len(self.b), device="cuda")}
        for name, scales in (("blocks", by_blocks), ("rows", by_rows)):

            def launch(scales=scales):
                return torch._scaled_mm(self.a, self.b.T, **scales, out_dtype=torch.bfloat16)

            try:
                launch()
                torch.cuda.synchronize()
            except Exception as error:
                print(f"    cuBLAS with scales of {name}: {str(error).splitlines()[0][:100]}")
                continue
            return name, launch
        return "none", lambda: None


def product(m, n, k):
    """A line of the table: figures, what won."""
    case = Scaled(m, n, k)
    chosen = {}
    for name, side, forms, options in (
        ("Weft", "Weft", FORMS, {}),
        ("plain", "Weft", FORMS[:1], {"made_tensors": False}),
        ("Triton", "Triton", FORMS, {}),
    ):
        chosen[name] = tried(case.launches(side, forms, **options), 0.02)
        case.c.zero_()
        chosen[name][1]()
        case.check()
    which, library = case.library()
    times = medians(*(x[1] for x in chosen.values()), library, seconds=0.2)
    figures = dict(zip((*chosen, f"cuBLAS, {which}"), (2 * m * n * k / t / 1e12 for t in times), strict=True))
    return figures, {name: x[0] for name, x in chosen.items()}, chosen["Weft"][2]


def attention():
    """The same of attention."""
    shape = HEADS, LENGTH, HEAD
    q, k, v = (torch.randn(shape, device="cuda").to(torch.float8_e5m2) for _ in range(3))
    across = v.transpose(1, 2).contiguous().view(HEADS * HEAD, LENGTH)
    flat = [x.view(HEADS * LENGTH, HEAD) for x in (q, k)]
    out = torch.empty(HEADS * LENGTH, HEAD, device="cuda", dtype=torch.bfloat16)
    expected = F.scaled_dot_product_attention(*(x.bfloat16()[None] for x in (q, k, v)))[0].view_as(out)
    scale = 1.4426950408889634 / math.sqrt(HEAD)
    chosen = {}
    for side, (kernels, descriptor, more) in SIDES.items():
        launches = []
        for bm, bn, warps, stages in ATTENTIONS:
            blocks = ((flat[0], [bm, HEAD]), (flat[1], [bn, HEAD]), (across, [HEAD, bn]), (out, [bm, HEAD]))
            sides = [descriptor.from_tensor(x, block) for x, block in blocks]
            given = {"HEAD": HEAD, "BM": bm, "BN": bn, "ASKED": False, "num_warps": warps, "num_stages": stages, **more}

            def launch(kernels=kernels, sides=sides, bm=bm, given=given):
                return kernels.attention[LENGTH // bm, HEADS](*sides, scale, LENGTH, **given)

            launches.append((f"{side} {bm}x{bn}, {warps} warps, {stages} stages", launch))
        chosen[side] = tried(launches, 0.1)
        out.zero_()
        chosen[side][1]()
        torch.testing.assert_close(out, expected, rtol=0.05, atol=0.02)
    times = medians(*(x[1] for x in chosen.values()), seconds=0.3)
    work = 4 * LENGTH * LENGTH * HEAD * HEADS
    figures = dict(zip(chosen, (work / t / 1e12 for t in times), strict=True))
    return figures, {name: x[0] for name, x in chosen.items()}, chosen["Weft"][2]


def grouped():
    """Several products in one launch, whose addresses and sizes are in memory, and descriptors made by the kernel."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    pairs = []
    for m, n, k in GROUPS:
        a, b = (torch.randn(x, k, device="cuda").to(torch.float8_e4m3fn) for x in (m, n))
        pairs.append((a, b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)))
    tables = [torch.tensor([x[i].data_ptr() for x in pairs], device="cuda") for i in range(3)]
    sizes = torch.tensor(GROUPS, dtype=torch.int32, device="cuda")
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    chosen = {}
    for side, (kernels, _, _) in SIDES.items():
        launches = []
        for bm, bn, warps, stages in ((128, 128, 8, 4), (128, 128, 4, 3), (128, 256, 8, 3)):
            given = {"BM": bm, "BN": bn, "BK": BK, "PROGRAMS": programs, "num_warps": warps, "num_stages": stages}

            def launch(kernels=kernels, given=given):
                return kernels.grouped[programs,](*tables, sizes, len(GROUPS), **given)

            launches.append((f"{side} {bm}x{bn}, {warps} warps, {stages} stages", launch))
        for *_, c in pairs:
            c.zero_()
        chosen[side] = tried(launches, 0.05)
        for a, b, c in pairs:
            torch.testing.assert_close(c.float(), a.float() @ b.float().T, rtol=0.02, atol=2.0)
    times = medians(*(x[1] for x in chosen.values()), seconds=0.2)
    work = sum(2 * m * n * k for m, n, k in GROUPS)
    figures = dict(zip(chosen, (work / t / 1e12 for t in times), strict=True))
    return figures, {name: x[0] for name, x in chosen.items()}, chosen["Weft"][2]


def main() -> int:
    """Print the table; 1 where a line falls short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no line after so long")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/")
    options = parser.parse_args()
    begin = time.perf_counter()
    facts = machine()
    print(facts)
    lines = [(f"products {'x'.join(map(str, s))}", lambda s=s: product(*s)) for s in SIZES]
    lines.insert(1, (f"attention e5m2 d{HEAD} {LENGTH}", attention))
    lines.insert(2, ("grouped e4m3", grouped))
    table, short = {}, 0
    for name, line in lines:
        if options.only not in name or time.perf_counter() - begin > options.seconds:
            continue
        try:
            figures, won, made = line()
        except AssertionError as error:
            print(f"{name}: WRONG: {str(error).splitlines()[0][:200]}", flush=True)
            short += 1
            continue
        part = figures["Weft"] / figures["Triton"]
        is_short = figures["Weft"] < 750 if name.startswith("attention") else part < (1.25 if "x" in name else 1.0)
        short += is_short
        shown = "  ".join(f"{key} {figure:.0f}" for key, figure in figures.items())
        divided = "specialised" if "warp_specialize" in made.asm["ttgir"] else "not specialised"
        print(f"{name}: {shown}  of Triton {part:.2f}{'  SHORT' if is_short else ''}  {won} {divided}", flush=True)
        table[name] = {"TFLOP/s": figures, "won": won}
    if options.save and table:
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        card = str(facts["gpu"]).split()[1].lower()
        path = RESULTS / f"fp8-{card}-{day}.json"
        path.write_text(json.dumps({"machine": facts, **table}, indent=1) + "\n")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
