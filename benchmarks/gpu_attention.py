"""Attention from plain source, beside Triton and cuDNN, on an NVIDIA GPU.

    python benchmarks/gpu_attention.py [--only WORD]

bf16, forward, 16 Ki tokens a batch in all, the same source on both sides with the best of one list of configurations
each (blocks, warps, stages), random data. The three take turns; figures are TFLOP/s by the median, of causal attention
for the half that is computed. A line that falls short of its goal (goals.py) says so.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
import sys

import torch
import torch.nn.functional as F
import triton
import triton.language
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from goals import Line
from gpu_sides import fastest, load_side, medians

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


def inputs(part: str):
    """(queries, keys, values, whether attention is causal) of a line."""
    head, length, *causal = part.removeprefix("bf16 d").split()
    head, length = int(head), int(length)
    heads = 2048 // head * max(1, TOKENS // length)
    shape = (1, heads, length, head)
    return (*(torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)), bool(causal))


def parts() -> list[str]:
    """The lines of the table."""
    return [f"bf16 d{head} {length}{' causal' if causal else ''}" for head, length, causal in ROWS]


def prepare(part: str) -> None:
    """Compile the kernels of a line."""
    *given, causal = inputs(part)
    for side in SIDES:
        fastest(launches(side, *given, torch.empty_like(given[0]), causal))


def measure(part: str):
    """The line: TFLOP/s of each side, with the configurations that won."""
    q, k, v, causal = inputs(part)
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

    times = medians(*(launch for _, launch in chosen.values()), library)
    _, heads, length, head = q.shape
    work = 4 * length * length * head * heads / (2 if causal else 1)
    figures = dict(zip((*SIDES, "cuDNN"), (work / t / 1e12 for t in times), strict=True))
    yield Line(part, figures, "TFLOP/s", {side: str(configuration) for side, (configuration, _) in chosen.items()})


if __name__ == "__main__":
    from gpu_goals import main

    sys.exit(main(["--rows", "attention", *sys.argv[1:]]))
