"""How long a kernel takes from its Python source to PTX, against Triton in the same process.

    python benchmarks/gpu_compile.py --capability 80 --repeat 5

Prints the median seconds of both and their ratio; needs the package triton, but no GPU.
"""

from __future__ import annotations

import argparse
import statistics

from gpu_cases import cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", type=int, default=80)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--stages", action="store_true", help="where the time goes")
    parser.add_argument("kernels", nargs="*", help="some of them, by the beginning of their names")
    args = parser.parse_args()
    ours, theirs = cases("weft"), cases("triton")
    chosen = [n for n in ours if not args.kernels or any(n.startswith(k) for k in args.kernels)]
    for name in chosen[:1]:  # imports, tables
        ours[name].compile(args.capability)
        theirs[name].compile(args.capability)
    print(f"{'kernel':28} {'Weft ms':>9} {'Triton ms':>10} {'ratio':>6}")
    for name in chosen:
        times: list[list[float]] = [[], []]
        for _ in range(args.repeat):
            kernel, seconds = ours[name].compile(args.capability)
            times[0].append(seconds)
            times[1].append(theirs[name].compile(args.capability)[1])
        mine, other = (1e3 * statistics.median(t) for t in times)
        print(f"{name:28} {mine:9.1f} {other:10.1f} {mine / other:6.2f}")
        if args.stages:
            print("    " + "  ".join(f"{k} {1e3 * v:.1f}" for k, v in kernel.timings.items()))


if __name__ == "__main__":
    main()
