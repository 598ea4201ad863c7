"""The fuzzer from the command line, in the folder `tests`.

python -m fuzz.run --seeds 0:1000                     a campaign, each seed in one variant, in turn
python -m fuzz.run --seeds 0:1000 --variant avx2      all of them in one variant; `--variant all`: in every one
python -m fuzz.run --seeds 0:100 --variant sim:cuda:80     on a simulated GPU
python -m fuzz.run --seconds 600                      seeds that nobody has run, for ten minutes
python -m fuzz.run --seed 17 --show                   one kernel
python -m fuzz.run --seed 17 --reduce                 the smallest kernel that still fails
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback

from .campaign import Campaign, batch
from .compare import SIMULATED, VARIANTS, Variant, difference, elements_of, generate, kind_of
from .program import HELPERS, Program, written
from .shrink import fails_alike, reduced

FRESH = 1 << 40  # from here on


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(description="Random kernels against an interpreter.")
    parser.add_argument("--seeds", default="", help="first:last of a campaign")
    parser.add_argument("--seconds", type=float, default=1e9, help="when a campaign ends at the latest")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--variant", default="", choices=["", "all", *VARIANTS, *SIMULATED])
    parser.add_argument("--seed", type=int, help="one seed only")
    parser.add_argument("--show", action="store_true", help="print its kernel")
    parser.add_argument("--reduce", action="store_true", help="cut its kernel down as long as it fails")
    parser.add_argument("--batch", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch:
        batch(options.batch)
        return
    if options.seed is None:
        sys.exit(campaign(options))
    variant = {**VARIANTS, **SIMULATED}[options.variant or "host"]
    program = generate(options.seed, variant.apart)
    if options.show:
        show(program)
    if options.reduce:
        cut_down(program, variant)
    else:
        print(difference(program, variant) or "agrees")


def campaign(options: argparse.Namespace) -> int:
    """Run the campaign that was asked for; 1 if it found something."""
    if options.seeds:
        first, last = map(int, options.seeds.split(":"))
    else:
        first = FRESH + int(time.time())  # a second gives less than a thousand kernels, so most are new
        last = first + (1 << 30)
    in_turn = not options.variant
    variants = [options.variant] if options.variant not in ("", "all") else list(VARIANTS)
    print(f"seeds from {first}, {'each in one of' if in_turn else 'in'} {', '.join(variants)}", flush=True)
    chosen = Campaign(first, last, variants, in_turn, options.seconds, options.jobs)
    chosen.run()
    return 1 if chosen.findings else 0


def show(program: Program) -> None:
    """Print a kernel without its helpers, and how it is launched."""
    print(program.source().removeprefix(HELPERS))
    launch(program)


def launch(program: Program) -> None:
    """Print how a kernel is launched."""
    arrays = {a.name: (a.elem, elements_of(program, a)) for a in program.arrays}
    print(f"arrays {arrays}\nvalues {program.launch_values()}, programs {program.programs}")
    print(f"overlaps {program.overlaps}")


def cut_down(program: Program, variant: Variant) -> None:
    """Find out how a kernel fails, and print the smallest one that does so too."""
    like = how_it_fails(program, variant)
    if not like:
        print("agrees")
        return
    program = reduced(program, lambda p: fails_alike(p, variant, like))
    print("\n".join(written(program.body, 1)))
    launch(program)
    try:
        print(like, difference(program, variant) if like != "crash" else "")
    except Exception:
        traceback.print_exc(limit=-8)


def how_it_fails(program: Program, variant: Variant) -> str:
    """ "crash", "difference", an exception's name, or "" """
    child = os.fork()
    if child == 0:
        try:
            difference(program, variant)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "crash"
    try:
        return "difference" if difference(program, variant) else ""
    except Exception as error:
        return kind_of(error)


if __name__ == "__main__":
    main()
