"""Times that `kernel.explain` predicts of kernels whose warps have parts of their own, beside those that were measured.

    python benchmarks/explain_partitions.py [--only WORD]        # needs no GPU

The kernels are those of gpu_attention.py, in the configuration that was the fastest, the times those of its results
(benchmarks/results/goals-*.json), whose launches follow each other with their arrays in the L2 cache as far as they
fit. No constant of the model was set by them.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import ast
import math
import statistics

import sides_of
import weft
from gpu_goals import Results
from weft.machines import machine_of

KERNELS = sides_of.loaded("gpu_attention_kernels")
TOKENS = 16384


def explained(name: str, config: list[int], device: str):
    """What is said of a row of gpu_attention.py, and its floating-point operations."""
    _, head, length, *causal = name.split()
    head, length, causal = int(head[1:]), int(length), bool(causal)
    rows, keys, warps, stages, *over_tiles = config
    heads = 2048 // head * max(1, TOKENS // length)
    x = weft.like((heads * length, head), "bf16")
    given = [weft.TensorDescriptor.from_tensor(x, [n, head]) for n in (rows, keys, keys, rows)]
    given += [1.4426950408889634 / math.sqrt(head), length]
    more = {"HEAD": head, "BM": rows, "BN": keys, "CAUSAL": causal, "TOGETHER": max(1, TOKENS // length)}
    more |= {"SPECIALIZE": False, "num_warps": warps, "num_stages": stages}
    if over_tiles:
        kernel, grid = KERNELS.over_tiles, (machine_of("cuda:90").multiprocessors,)
        given.append(heads * length // rows)
    else:
        kernel, grid = KERNELS.forward, (length // rows, heads)
    with weft.target("cuda:90", device=device):
        e = kernel.explain(*given, **more, grid=grid)
    return e, 4 * length * length * head * heads / (2 if causal else 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    print(f"{'':28} {'measured':>9} {'predicted':>9} {'ratio':>6}")
    for device in ("H100", "H200"):
        ratios, inside = [], 0
        for line in Results.load(device.lower()).lines("attention"):
            if line.error or options.only not in line.name:
                continue
            e, work = explained(line.name, ast.literal_eval(line.won["Weft"]), device)
            measured, t = work / line.figures["Weft"] / 1e6, e.time
            ratios.append(t.microseconds / measured)
            inside += t.low <= measured <= t.high
            print(f"{device} {line.name:23} {measured:9.0f} {t.microseconds:9.0f} {ratios[-1]:6.2f} {t}", flush=True)
        if ratios:
            off = statistics.median(abs(r - 1) for r in ratios)
            print(f"{device}: {len(ratios)} kernels, median error {off:.1%}, {inside} inside of the interval")


if __name__ == "__main__":
    main()
