"""Small kernels on eight processors, run from their final texts (`local`): do waves meet before they read?

    cd tests && PYTHONPATH=../src:. python -m amd.meetings [--only NAME] [--target gfx942]

Prints what is wrong; of some it says that it cannot tell, because data choose what is read or how often.
"""

from __future__ import annotations

import argparse
import struct
import sys

import numpy as np

from .assembly import parse
from .kernels import SMALL, compiled
from .local import CannotTell, run
from .suite import PROCESSORS
from .waits import check


def faults_of(name: str, processor: str) -> list[str]:
    """Those of a small kernel; CannotTell where addresses or branches follow data."""
    case = SMALL[name]
    given = case.arguments(np.random.default_rng(0))
    text = compiled(case, given, f"hip:{processor}").asm["amdgcn"]
    (function,) = parse(text).values()
    buffer, at = bytearray(256), 0
    for value in given.values():
        size = 8 if isinstance(value, np.ndarray) else 4
        at = -(-at // size) * size
        number = 1 << 20 if isinstance(value, np.ndarray) else value
        struct.pack_into("<Q" if size == 8 else "<i", buffer, at, number)
        at += size
    found = [str(fault) for fault in check(text)]
    return found + run(function, text, bytes(buffer), case.warps)


def main(arguments: list[str]) -> int:
    """All of them, or some; 1 where there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of kernels")
    parser.add_argument("--target", action="append", help="a processor; all of them otherwise")
    options = parser.parse_args(arguments)
    right, unknown, wrong = 0, 0, 0
    for processor in options.target or PROCESSORS:
        for name in (n for n in SMALL if options.only in n):
            try:
                found = faults_of(name, processor)
            except CannotTell as reason:
                unknown += 1
                print(f"{name} on {processor}: cannot tell: {reason}")
                continue
            right, wrong = right + (not found), wrong + bool(found)
            for fault in found:
                print(f"{name} on {processor}: {fault}")
    print(f"{right} without a fault, {wrong} with one, {unknown} not known")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
