"""The fuzzer from the command line, in the folder `tests`.

python -m fuzz.run --seeds 0:5000                     a campaign on the CPU, each seed in one variant, in turn
python -m fuzz.run --seeds 0:1000 --variant avx2      all of them in one variant; `--variant all`: in every one
python -m fuzz.run --kernels 5000 --variant cpu       so many that nobody has run, in turn in every variant of the CPU,
                                                      half of them on NaN, infinities and so on
python -m fuzz.run --seeds 0:100 --variant sim             on simulated GPUs, Gluon kernels too
python -m fuzz.run --seeds 0:2000 --variant layouts        random Gluon layouts on simulated GPUs
python -m fuzz.run --seeds 0:100 --variant special         on NaN, infinities, denormals, numbers that round
python -m fuzz.run --seconds 600                      seeds that nobody has run, for ten minutes
python -m fuzz.run --seconds 600 --variant gpu --out found      on the GPU of this machine; findings into a folder
python -m fuzz.run --seed 17 --show                   one kernel
python -m fuzz.run --seed 17 --reduce                 the smallest kernel that still fails
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from gpu.sharing import how_many

from .campaign import GPU_IS_MISSING, Campaign, batch, gpu_here
from .compare import EVERY, LAYOUTS, SIMULATED, SPECIAL, VARIANTS, Variant, difference, generate
from .program import Program
from .shrink import fails_alike, outcome, reduced

GROUPS = ("cpu", "sim", "special", "layouts", "gpu")
"""Names of several variants, each seed in one of them."""
FRESH = 1 << 40  # from here on
HOPPER = ["gluon:cuda:90", "cuda-x2", "cuda", "gluon:cuda:90", "cuda-x4"]
"""What a campaign has beside plain kernels, from compute capability 9.0 on."""


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(description="Random kernels against an interpreter.")
    parser.add_argument("--seeds", default="", help="first:last of a campaign")
    parser.add_argument("--kernels", type=int, default=1 << 30, help="how many a campaign without --seeds has at most")
    parser.add_argument("--seconds", type=float, default=1e9, help="when a campaign ends at the latest")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--variant", default="", choices=["", "all", *GROUPS, *EVERY])
    parser.add_argument("--seed", type=int, help="one seed only")
    parser.add_argument("--show", action="store_true", help="print its kernel")
    parser.add_argument("--reduce", action="store_true", help="cut its kernel down as long as it fails")
    parser.add_argument("--out", type=Path, help="a folder for what a campaign finds")
    parser.add_argument("--batch", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch:
        batch(options.batch)
        return
    if options.seed is None:
        sys.exit(campaign(options))
    variant = EVERY[options.variant or "host"]
    program = generate(options.seed, variant)
    if options.show:
        print(program.told().removeprefix(program.helpers))
    if options.reduce:
        cut_down(program, variant)
    else:
        print(difference(program, variant) or "agrees")


def campaign(options: argparse.Namespace) -> int:
    """Run the campaign that was asked for; 1 if it found something."""
    if options.seeds:
        first, last = map(int, options.seeds.split(":"))
    else:
        first = FRESH + int(time.time()) * 1000  # so no two campaigns share a kernel
        last = first + options.kernels
    in_turn = options.variant in ("", *GROUPS)
    groups = {"": list(VARIANTS), "all": list(VARIANTS), "sim": list(SIMULATED), "gpu": ["cuda", "special:cuda"]}
    groups["cpu"] = [*VARIANTS, *(f"special:{name}" for name in VARIANTS)]
    groups["layouts"] = list(LAYOUTS)
    groups["special"] = [name for name, variant in SPECIAL.items() if not variant.device]
    variants = groups.get(options.variant, [options.variant])
    gpus = 1
    if EVERY[variants[0]].device:
        gpus = how_many()
        capability, why = gpu_here()
        if why:
            print(f"no GPU: {why}", file=sys.stderr)
            return GPU_IS_MISSING
        if in_turn:
            variants += HOPPER if capability >= 90 else ["gluon:cuda:80"]
    print(f"seeds from {first}, {'each in one of' if in_turn else 'in'} {', '.join(variants)}", flush=True)
    chosen = Campaign(first, last, variants, in_turn, options.seconds, options.jobs, gpus=gpus)
    chosen.run()
    print(chosen.table(), flush=True)
    if options.out is not None:
        chosen.write(options.out)
    return 1 if chosen.wrong else 0


def cut_down(program: Program, variant: Variant) -> None:
    """Find out how a kernel fails, and print the smallest one that does so too."""
    like = outcome(program, variant)
    if not like:
        print("agrees")
        return
    program = reduced(program, lambda p: fails_alike(p, variant, like))
    print(program.told().removeprefix(program.helpers))
    print(outcome(program, variant))


if __name__ == "__main__":
    main()
