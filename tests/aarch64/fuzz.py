"""Random kernels (tests/fuzz), compiled for AArch64, run under QEMU and compared with the interpreter.

    cd tests && python -m aarch64.fuzz --seconds 60        # or --seeds 0:1000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fuzz.arrays import memories
from fuzz.compare import AVX2, Variant, generate, load_kernel
from weft.runtime import knobs

from . import MISSING, Emulator

PROCESSORS = ("neoverse-v1", "apple-m1")
HERE = {**AVX2, "vector_bits": 128}


KINDS = ("whole", "special", "fused")
"""Whole numbers, and floats of any value, against the interpreter; floats of any value, with products and sums fused
where the compiler likes, against the same kernel compiled for x86-64 with vectors as wide."""


def difference(emulator: Emulator, seed: int) -> str:
    """What a random kernel does otherwise than it should."""
    kind = KINDS[seed % len(KINDS)]
    program = generate(seed, Variant(special=kind != "whole"))
    expected, _ = memories(program, guarded=False)
    options: dict[str, Any] = {"enable_fp_fusion": kind != "special"}
    with tempfile.TemporaryDirectory() as directory:
        kernel = load_kernel(program, directory)
        if kind == "fused":
            here = program.arguments({a.name: expected[a.name] for a in program.arrays})
            kernel[(program.programs,)](**here, **program.launch_values(), **options, **HERE)
        else:
            program.interpret(expected)
        given, owners = memories(program, guarded=True)
        arguments = {**program.arguments({a.name: given[a.name] for a in program.arrays}), **program.launch_values()}
        options["cpu"] = PROCESSORS[seed // len(KINDS) % 2]
        emulator.launch(kernel, (program.programs,), arguments, **options)
    what = program.compared(expected, given)
    del owners
    return what


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="Random kernels on AArch64 against an interpreter.")
    parser.add_argument("--seeds", default="", help="first:last")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    if MISSING:
        sys.exit(f"not here: {MISSING}")
    first, last = map(int, options.seeds.split(":")) if options.seeds else (int(time.time()) * 1000, 1 << 62)
    end, done, wrong = time.monotonic() + options.seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder, Emulator(Path(folder)) as emulator:
        knobs.cache.disabled = True
        for seed in range(first, last):
            if time.monotonic() > end:
                break
            try:
                what = difference(emulator, seed)
            except Exception as error:  # a crash of the kernel is a finding as well
                what = f"{type(error).__name__}: {error}"
            done += 1
            if what:
                wrong += 1
                print(f"seed {seed}: {what}", flush=True)
    print(f"{done} kernels from seed {first}, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
