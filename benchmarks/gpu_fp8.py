"""Products of fp8 with scales of blocks, grouped products and attention in fp8, beside Triton and cuBLAS, on Hopper.

    python benchmarks/gpu_fp8.py [--only WORD]

e4m3 products: a scale for each 128 elements of a row of the left operand, and for each 128 by 128 of the right one;
operands by pointers, by descriptors, and by descriptors over tiles, the same source on both sides, each with its best
of one list of configurations. cuBLAS is `torch._scaled_mm` with scales of blocks where PyTorch has it, else with one
for each row and column. Attention is in the form of Triton's tutorial: e5m2, v transposed in memory, 16 heads of 128.
Random data; all take turns; TFLOP/s by the median. A line that falls short of its goals (goals.py) says so.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
import sys

import torch
import torch.nn.functional as F
import triton
import triton.language
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from goals import Line
from gpu_sides import load_side, medians, quickest

FILE = "gpu_fp8_kernels"
SIDES = {
    "Weft": (load_side("weft", FILE, jit=weft.jit, tl=weft.language), weft.TensorDescriptor),
    "Triton": (load_side("triton", FILE, jit=triton.jit, tl=triton.language), TensorDescriptor),
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


def tried(launches, seconds):
    """(name, what launches it) of the fastest of some; what cannot be compiled is left out."""
    found = []
    for name, launch in launches:
        try:
            launch()
            torch.cuda.synchronize()
        except Exception as error:
            print(f"    {name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        found.append((name, launch))
    times = quickest([launch for _, launch in found], seconds)
    return found[times.index(min(times))]


class Scaled:
    """A product with scales of blocks."""

    def __init__(self, m, n, k):
        self.sizes = m, n, k
        self.work = 2 * m * n * k
        self.a, self.b = (torch.randn(x, k, device="cuda").to(torch.float8_e4m3fn) for x in (m, n))
        self.sa = torch.rand(m, k // BK, device="cuda") + 0.5
        self.sb = torch.rand(n // BK, k // BK, device="cuda") + 0.5
        self.by_columns = self.sa.T.contiguous()
        self.c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        self.outputs = [self.c]

    def check(self):
        left = self.a.float() * self.sa.repeat_interleave(BK, 1)
        expected = left @ (self.b.float() * self.sb.repeat_interleave(BK, 0).repeat_interleave(BK, 1)).T
        error = (self.c.float() - expected).abs().max() / expected.abs().max()
        assert error < 2e-2, f"off by {error:.3g} of the largest"

    def launches(self, side):
        kernels, descriptor = SIDES[side]
        (m, n, k), groups = self.sizes, self.sizes[2] // BK
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        for form in FORMS:
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
                given = {**meta, "num_warps": warps, "num_stages": stages}

                def launch(kernel=kernel, grid=grid, args=args, given=given):
                    return kernel[grid](*args, **given)

                yield f"{form} {bm}x{bn}, {warps} warps, {stages} stages", launch

    def libraries(self):
        """What launches cuBLAS, by what it is."""
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
            return {f"cuBLAS with scales of {name}": launch}
        return {}


class Attention:
    """Attention in fp8."""

    work = 4 * LENGTH * LENGTH * HEAD * HEADS

    def __init__(self):
        shape = HEADS, LENGTH, HEAD
        self.q, self.k, self.v = (torch.randn(shape, device="cuda").to(torch.float8_e5m2) for _ in range(3))
        self.across = self.v.transpose(1, 2).contiguous().view(HEADS * HEAD, LENGTH)
        self.out = torch.empty(HEADS * LENGTH, HEAD, device="cuda", dtype=torch.bfloat16)
        self.outputs = [self.out]

    def check(self):
        wide = (x.bfloat16()[None] for x in (self.q, self.k, self.v))
        expected = F.scaled_dot_product_attention(*wide)[0].view_as(self.out)
        torch.testing.assert_close(self.out, expected, rtol=0.05, atol=0.02)

    def launches(self, side):
        kernels, descriptor = SIDES[side]
        q, k = (x.view(HEADS * LENGTH, HEAD) for x in (self.q, self.k))
        scale = 1.4426950408889634 / math.sqrt(HEAD)
        for bm, bn, warps, stages in ATTENTIONS:
            blocks = ((q, [bm, HEAD]), (k, [bn, HEAD]), (self.across, [HEAD, bn]), (self.out, [bm, HEAD]))
            sides = [descriptor.from_tensor(x, block) for x, block in blocks]
            given = {"HEAD": HEAD, "BM": bm, "BN": bn, "ASKED": False, "num_warps": warps, "num_stages": stages}

            def launch(sides=sides, bm=bm, given=given):
                return kernels.attention[LENGTH // bm, HEADS](*sides, scale, LENGTH, **given)

            yield f"{bm}x{bn}, {warps} warps, {stages} stages", launch

    def libraries(self):
        return {}


class Grouped:
    """Several products in one launch, whose addresses and sizes are in memory, and descriptors made by the kernel."""

    work = sum(2 * m * n * k for m, n, k in GROUPS)

    def __init__(self):
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        self.pairs = []
        for m, n, k in GROUPS:
            a, b = (torch.randn(x, k, device="cuda").to(torch.float8_e4m3fn) for x in (m, n))
            self.pairs.append((a, b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)))
        self.outputs = [c for *_, c in self.pairs]

    def check(self):
        for a, b, c in self.pairs:
            torch.testing.assert_close(c.float(), a.float() @ b.float().T, rtol=0.02, atol=2.0)

    def launches(self, side):
        kernels, _ = SIDES[side]
        tables = [torch.tensor([x[i].data_ptr() for x in self.pairs], device="cuda") for i in range(3)]
        sizes = torch.tensor(GROUPS, dtype=torch.int32, device="cuda")
        programs = torch.cuda.get_device_properties(0).multi_processor_count
        for bm, bn, warps, stages in ((128, 128, 8, 4), (128, 128, 4, 3), (128, 256, 8, 3)):
            given = {"BM": bm, "BN": bn, "BK": BK, "PROGRAMS": programs, "num_warps": warps, "num_stages": stages}

            def launch(given=given):
                return kernels.grouped[programs,](*tables, sizes, len(GROUPS), **given)

            yield f"{bm}x{bn}, {warps} warps, {stages} stages", launch

    def libraries(self):
        return {}


CASES = {f"products {m}x{n}x{k}": lambda m=m, n=n, k=k: Scaled(m, n, k) for m, n, k in SIZES}
CASES |= {f"attention e5m2 d{HEAD} {LENGTH}": Attention, "grouped e4m3": Grouped}


def parts() -> list[str]:
    """The lines of the table."""
    return list(CASES)


def prepare(part: str) -> None:
    """Compile the kernels of a line."""
    case = CASES[part]()
    for side in SIDES:
        tried(case.launches(side), 0.0)


def measure(part: str):
    """The line: TFLOP/s of each side, with the configurations that won."""
    case = CASES[part]()
    chosen = {}
    for side in SIDES:
        chosen[side] = tried(case.launches(side), 0.05)
        for out in case.outputs:
            out.zero_()
        chosen[side][1]()
        case.check()
    libraries = case.libraries()
    times = medians(*(launch for _, launch in chosen.values()), *libraries.values(), seconds=0.3)
    figures = dict(zip((*chosen, *libraries), (case.work / t / 1e12 for t in times), strict=True))
    yield Line(part, figures, "TFLOP/s", {side: name for side, (name, _) in chosen.items()})


if __name__ == "__main__":
    from gpu_goals import main

    sys.exit(main(["--rows", "fp8", *sys.argv[1:]]))
