"""The steps of docs/tutorial_explain.md: times predicted, and times measured on an H100.

    python benchmarks/tutorial_times.py                   # needs an H100 and PyTorch; about 30 s
    python benchmarks/tutorial_times.py --predict         # predictions alone, without a GPU
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import statistics

import sides_of
import weft

FILE = sides_of.loaded("tutorial_kernel")
KINDS = {"fp32": "float32", "fp16": "float16"}


def measured(elem, strides, given):
    """Microseconds of a launch with a cold L2 cache: the median of 20."""
    import torch

    size = FILE.SIZE
    a, b, c = (torch.randn(size, size, device="cuda").to(getattr(torch, KINDS[elem])) for _ in range(3))
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    grid = (size // given["BM"], size // given["BN"])
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(22)]
    for begin, end in marks:
        flush.zero_()
        begin.record()
        FILE.product[grid](a, b, c, size, size, size, *strides, **given)
        end.record()
    torch.cuda.synchronize()
    right = a.float() @ (b if strides[1] == 1 else b.T).float()
    error = float((c.float() - right).norm() / right.norm())
    assert error < 2e-2, f"the result is wrong by {error:.2g}"
    return 1e3 * statistics.median(begin.elapsed_time(end) for begin, end in marks[2:])


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", action="store_true", help="measure nothing")
    options = parser.parse_args()
    print("| step | predicted us | measured us | ratio | bound by |\n|---|---|---|---|---|")
    size = FILE.SIZE
    for name, elem, strides, given in FILE.STEPS:
        x = weft.like((size, size), elem)
        grid = (size // given["BM"], size // given["BN"])
        args = (x, x, x, size, size, size, *strides)
        e = FILE.product.explain(*args, **given, grid=grid, target="cuda:90")
        taken = None if options.predict else measured(elem, strides, given)
        told = "" if taken is None else f"{taken:,.0f}"
        ratio = "" if taken is None else f"{e.time.microseconds / taken:.2f}"
        print(f"| {name} | {e.time.microseconds:,.0f} | {told} | {ratio} | {e.time.bound} |", flush=True)
        if options.predict:
            for finding in e.findings[:3]:
                print("   ", finding)


if __name__ == "__main__":
    main()
