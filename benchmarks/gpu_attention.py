"""Attention from plain source, beside Triton and cuDNN, on an NVIDIA GPU.

    python benchmarks/gpu_attention.py [--only WORD] [--save]

bf16, forward, 16 Ki tokens a batch in all, the same source on both sides with the best of one list of configurations
each (blocks, warps, stages), random data. The three take turns; figures are TFLOP/s by the median, of causal attention
for the half that is computed. Required of Weft is a part of cuDNN's speed: of heads of 128 0.92, and 0.90 where
attention is causal or a sequence has less than 16 Ki tokens; of heads of 64 0.97 for 16 Ki. A line that falls short
says so, and the program ends with status 1.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path

import torch
import torch.nn.functional as F
import triton
import triton.language
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from gpu import fastest, load_side, medians
from gpu_facts import machine

FILE = "gpu_attention_kernels"
SIDES = {
    "Weft": (load_side("weft", FILE, jit=weft.jit, tl=weft.language), weft.TensorDescriptor),
    "Triton": (load_side("triton", FILE, jit=triton.jit, tl=triton.language), TensorDescriptor),
}
CONFIGURATIONS = [
    (128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3), (128, 64, 4, 4),
    (64, 128, 4, 2),
]  # fmt: skip
"""Rows of queries, of keys, warps, stages."""
OVER_TILES = [(128, 128, 8, 2), (128, 64, 8, 3), (64, 64, 4, 3)]
"""The same for a loop over tiles."""
TOKENS = 16384
ROWS = [
    (head, length, causal)
    for head in (128, 64)
    for length in ((1024, 2048, 4096, 8192, 16384) if head == 128 else (4096, 16384))
    for causal in (False, True)
]
RESULTS = Path(__file__).resolve().parent / "results"


def required(head: int, length: int, causal: bool) -> float:
    """The part of cuDNN's speed that Weft is to reach."""
    if head == 64:
        return 0.97 if length == TOKENS else 0.0
    return 0.9 if causal or length < TOKENS else 0.92


def launches(side: str, q, k, v, out, causal: bool):
    """The configurations of a side, each with what launches it."""
    kernels, descriptor = SIDES[side]
    _, heads, length, head = q.shape
    flat = [x.view(heads * length, head) for x in (q, k, v, out)]
    scale = 1.4426950408889634 / math.sqrt(head)
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    configurations = [(*x, False) for x in CONFIGURATIONS] + [(*x, True) for x in OVER_TILES]
    for rows, keys, warps, stages, is_over_tiles in configurations:
        described = [descriptor.from_tensor(x, [n, head]) for x, n in zip(flat, (rows, keys, keys, rows), strict=True)]
        together = max(1, TOKENS // length)
        more = {"HEAD": head, "BM": rows, "BN": keys, "CAUSAL": causal, "TOGETHER": together, "SPECIALIZE": False}
        more |= {"num_warps": warps, "num_stages": stages}
        kernel, grid, sizes = kernels.forward, (length // rows, heads), (length,)
        if is_over_tiles:
            tiles = heads * length // rows
            kernel, sizes = kernels.over_tiles, (length, tiles)
            grid = (min(tiles, programs * (2 if warps == 4 else 1)),)

        def launch(kernel=kernel, described=described, sizes=sizes, more=more, grid=grid):
            return kernel[grid](*described, scale, *sizes, **more)

        yield (rows, keys, warps, stages, *(["over tiles"] if is_over_tiles else [])), launch


def row(head: int, length: int, causal: bool):
    """Figures of one line, in TFLOP/s, with the configurations that won."""
    heads = 2048 // head * max(1, TOKENS // length)
    q, k, v = (torch.randn(1, heads, length, head, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    chosen = {}
    for side in SIDES:
        chosen[side] = fastest(launches(side, q, k, v, out, causal), seconds=0.1)
        out.zero_()
        chosen[side][1]()
        torch.testing.assert_close(out, expected, rtol=0.02, atol=0.02)

    def library():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    times = medians(chosen["Weft"][1], chosen["Triton"][1], library)
    work = 4 * length * length * head * heads / (2 if causal else 1)
    figures = [work / t / 1e12 for t in times]
    return figures, chosen["Weft"][0], chosen["Triton"][0]


def main() -> int:
    """Print the table; 1 where a line falls short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/")
    options = parser.parse_args()
    facts = machine()
    print(facts)
    print(f"{'':32} {'Weft':>6} {'Triton':>7} {'cuDNN':>6}  of Triton  of cuDNN")
    table, short = {}, 0
    for head, length, causal in ROWS:
        name = f"bf16 d{head} {length}{' causal' if causal else ''}"
        if options.only not in name:
            continue
        figures, ours, theirs = row(head, length, causal)
        part = figures[0] / figures[2]
        wanted = required(head, length, causal)
        told = f"  short of {wanted}" if part < wanted else ""
        short += bool(told)
        print(
            f"{name:32} {figures[0]:6.0f} {figures[1]:7.0f} {figures[2]:6.0f}  {figures[0] / figures[1]:9.2f}"
            f"  {part:8.2f}  {ours} / {theirs}{told}",
            flush=True,
        )
        table[name] = {"Weft": figures[0], "Triton": figures[1], "cuDNN": figures[2], "ours": ours, "theirs": theirs}
    if options.save and table:
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        card = str(facts["gpu"]).split()[1].lower()
        path = RESULTS / f"attention-{card}-{day}.json"
        path.write_text(json.dumps({"machine": facts, "TFLOP/s": table}, indent=1) + "\n")
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
