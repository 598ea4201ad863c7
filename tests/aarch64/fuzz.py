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
from fuzz.compare import Variant, generate, load_kernel
from weft.runtime import knobs

from . import MISSING, Emulator

PROCESSORS = ("neoverse-v1", "apple-m1")


def difference(emulator: Emulator, seed: int) -> str:
    """What a random kernel does otherwise than the interpreter; even seeds have floats of any value."""
    special = seed % 2 == 0
    program = generate(seed, Variant(special=special))
    expected, _ = memories(program, guarded=False)
    program.interpret(expected)
    with tempfile.TemporaryDirectory() as directory:
        kernel = load_kernel(program, directory)
        given, owners = memories(program, guarded=True)
        arguments = program.arguments({a.name: given[a.name] for a in program.arrays})
        options: dict[str, Any] = {"cpu": PROCESSORS[seed // 2 % 2], **({"enable_fp_fusion": False} if special else {})}
        emulator.launch(kernel, (program.programs,), {**arguments, **program.launch_values()}, **options)
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
