"""Malformed input from the command line, in the folder `tests`.

python -m malformed.run --seeds 0:5000              a campaign: that many of each kind
python -m malformed.run --seeds 0:5000 ttir         of one kind
python -m malformed.run --seed 17 --show ttir       one input, and what Weft says to it
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator

from fuzz.campaign import Campaign

from .judge import FINE, KINDS, raised, shown, verdict


def main() -> int:
    """Parse the command line and do it; 1 where something is found."""
    parser = argparse.ArgumentParser(description="Malformed kernels, IR texts and layout expressions.")
    parser.add_argument("kinds", nargs="*", help=f"some of {', '.join(KINDS)}; by default all")
    parser.add_argument("--seeds", default="0:5000", help="first:last of a campaign")
    parser.add_argument("--seconds", type=float, default=1e9, help="when a campaign ends at the latest")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="one seed only")
    parser.add_argument("--show", action="store_true", help="print its input")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is not None:
        batch(options.batch)
        return 0
    odd = [kind for kind in options.kinds if kind not in KINDS]
    if odd:
        parser.error(f"there is no kind {odd[0]}; there are {', '.join(KINDS)}")
    kinds = options.kinds or list(KINDS)
    if options.seed is not None:
        return max([one(kind, options.seed, options.show) for kind in kinds])
    first, last = map(int, options.seeds.split(":"))
    optimised = ["-O"] * sys.flags.optimize
    command = [sys.executable, *optimised, "-m", "malformed.run", "--batch"]
    chosen = Campaign(first, last, kinds, False, options.seconds, options.jobs, command, FINE)
    chosen.run()
    print(chosen.table(), *hints(chosen), sep="\n", flush=True)
    return 1 if chosen.wrong else 0


def hints(campaign: Campaign) -> Iterator[str]:
    """The share of errors that have a hint, for each kind."""
    for kind in campaign.variants:
        counts = Counter(f.verdict for f in campaign.findings if f.variant == kind)
        errors = campaign.done[kind] - counts["VALID"]
        yield f"{kind:<24}{errors} errors, {1 - counts['UNHINTED'] / max(errors, 1):.4f} of them with a hint"


def one(kind: str, seed: int, show: bool) -> int:
    """Say what becomes of one input."""
    if show:
        print(shown(kind, seed))
    said, what = verdict(kind, seed)
    print(said, seed, kind, what)
    try:
        raised(kind, seed)
    except Exception:
        traceback.print_exc()
    return int(said not in FINE)


def batch(work: str) -> None:
    """What a child process does: `seed:kind ...`, a line for each that is finished and one before it if it failed."""
    for pair in work.split():
        seed, _, kind = pair.partition(":")
        said, what = verdict(kind, int(seed))
        if said != "PASS":
            print(said, seed, kind, " ".join(what.split()))
        print("DONE", pair, flush=True)


if __name__ == "__main__":
    sys.exit(main())
