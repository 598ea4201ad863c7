"""Rows of any length beside Triton and the memory's own copy speed, and transpositions, on an NVIDIA GPU.

    python benchmarks/gpu_odd.py [--only WORD]

One program a row, one tile of the next power of two, 4 warps to 2,048 columns, 8 to 8,192, 16 to 32,768, 32 above, at
least 2^27 elements, the same source on both sides. Figures are TB/s of what is read once and written once; Weft, Triton
and a copy of as many bytes take turns, and each figure is a median. A line that falls short of its goal (goals.py) says
so.
"""

# mypy: ignore-errors
from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import triton
import triton.language

import weft
import weft.language
from goals import Line
from gpu_sides import check, load_side, medians

FILE = "gpu_odd_kernels"
OURS = load_side("weft", FILE, jit=weft.jit, tl=weft.language)
THEIRS = load_side("triton", FILE, jit=triton.jit, tl=triton.language)
SIZES = (1000, 1001, 1024, 2047, 4097, 6001, 8191, 12345, 12346, 16385, 20001, 32003, 50257, 65535, 100003)
SQUARES = (4096, 4097, 4098, 4100, 8193, 8196, 8200, 12300, 16388)
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i8": torch.int8}
KERNELS = {"scale": ("bf16", "f16", "f32", "i8"), "rms_norm": ("bf16", "f16", "f32"), "softmax": ("bf16", "f16", "f32")}
ELEMENTS = 1 << 27


def warps_of(block: int) -> int:
    """The warps of a tile of so many elements."""
    return 4 if block <= 2048 else 8 if block <= 8192 else 16 if block <= 32768 else 32


def _expected(kernel: str, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The first and the last rows as PyTorch computes them."""
    if kernel == "scale":
        return x * w
    if kernel == "rms_norm":
        return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], w.float(), 1e-6)
    return x.float().softmax(-1)


def _calls(kernel: str, kind: str, columns: int, rows: int) -> tuple[list[Callable[[], None]], torch.Tensor]:
    """The launches of both sides, whose results have been checked; and what they read."""
    dtype = TYPES[kind]
    if dtype is torch.int8:
        x, w = (torch.randint(-100, 100, shape, device="cuda", dtype=dtype) for shape in ((rows, columns), (columns,)))
    else:
        x, w = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((rows, columns), (columns,)))
    out = torch.empty_like(x)
    block = 1 << (columns - 1).bit_length()
    args = {"scale": (x, w, out, columns), "rms_norm": (x, w, out, columns, 1e-6), "softmax": (x, out, columns)}[kernel]
    calls = []
    some = torch.cat([torch.arange(min(rows, 64)), torch.arange(max(0, rows - 64), rows)]).cuda()
    expected = _expected(kernel, x[some], w)
    for side in (OURS, THEIRS):
        out.fill_(77)
        launch = getattr(side, kernel)[(rows,)]

        def call(launch=launch) -> None:
            launch(*args, BLOCK=block, num_warps=warps_of(block))

        call()
        check(out[some], expected, 0.0 if kernel == "scale" and kind == "i8" else 1e-5 if kind == "f32" else 1e-2)
        calls.append(call)
    return calls, x


def _transposing(size: int) -> tuple[list[Callable[[], None]], torch.Tensor]:
    """The same of the transposition of a square of f16."""
    x = torch.randn(size, size, device="cuda", dtype=torch.float16)
    out, calls = torch.empty_like(x), []
    for side in (OURS, THEIRS):
        out.zero_()
        grid = (triton.cdiv(size, 64), triton.cdiv(size, 64))

        def call(launch=side.transpose[grid]) -> None:
            launch(x, out, size, size, BLOCK=64)

        call()
        check(out, x.T, 0.0)
        calls.append(call)
    return calls, x


def _launches(part: str, elements: int) -> tuple[list[Callable[[], None]], torch.Tensor]:
    kernel, kind, size = part.split()
    if kernel == "transposition":
        return _transposing(int(size))
    return _calls(kernel, kind, int(size), -(-elements // int(size)))


def parts() -> list[str]:
    """The lines of the table."""
    rows = [f"{kernel} {kind} {n}" for kernel, kinds in KERNELS.items() for kind in kinds for n in SIZES]
    return rows + [f"transposition f16 {size}" for size in SQUARES]


def prepare(part: str) -> None:
    """Compile the kernels of a line."""
    _launches(part, 1)


def measure(part: str):
    """The line: TB/s of each side and of a copy."""
    calls, x = _launches(part, ELEMENTS)
    other = torch.empty_like(x)
    times = medians(*calls, lambda: other.copy_(x), seconds=0.15)
    moved = 2 * x.numel() * x.element_size() / 1e12
    yield Line(part, dict(zip(("Weft", "Triton", "copy"), (moved / t for t in times), strict=True)), "TB/s")


if __name__ == "__main__":
    from gpu_goals import main

    sys.exit(main(["--rows", "odd", *sys.argv[1:]]))
