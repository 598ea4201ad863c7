"""Random kernels as code objects for every processor, checked (`container`), and the waits of their final assembly.

    cd tests && PYTHONPATH=../src:. python -m amd.random_code --seeds 0:200 [--target gfx950] [--seconds 600]

The kernels are the fuzzer's (`fuzz`), which runs them in the simulator: this looks at what LLVM makes of them. Each
seed is compiled for one of the processors, in turn. Prints what is wrong, and how many there were.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

from fuzz.arrays import memories
from fuzz.compare import SIMULATED, generate, load_kernel
from weft.base import WeftError
from weft.runtime import knobs

from .container import problems
from .suite import PROCESSORS, sizes
from .waits import check

CDNA, RDNA = "sim:hip:gfx942", "sim:hip:gfx1201"


def wrong(seed: int, processor: str) -> list[str]:
    """What is wrong with the kernel of a seed."""
    variant = SIMULATED[CDNA if processor.startswith("gfx9") else RDNA]
    program = generate(seed, variant)
    given, owners = memories(program, guarded=True)
    with tempfile.TemporaryDirectory() as directory:
        kernel = load_kernel(program, directory)
        arguments = program.arguments({a.name: given[a.name] for a in program.arrays})
        options = {**program.launch_values(), **program.options()}
        try:
            made = kernel.warmup(**arguments, **options, grid=(program.programs,), target=f"hip:{processor}")
        except WeftError as error:
            return [f"{type(error).__name__}: {error}"]
    del owners
    found = problems(made.asm["hsaco"], processor, sizes(made))
    return found + [str(fault) for fault in check(made.asm["amdgcn"])]


def main(arguments: list[str]) -> int:
    """Seeds, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:100", help="first:last")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--target", action="append", help="a processor; all of them otherwise")
    given = parser.parse_args(arguments)
    first, last = map(int, given.seeds.split(":"))
    processors, until, faults, done = given.target or PROCESSORS, time.monotonic() + given.seconds, 0, 0
    with knobs.cache.scope():
        knobs.cache.disabled = True
        for seed in range(first, last):
            if time.monotonic() > until:
                break
            processor = processors[seed % len(processors)]
            found, done = wrong(seed, processor), done + 1
            faults += bool(found)
            for problem in found:
                print(f"seed {seed} on {processor}: {problem}", flush=True)
    print(f"{done} kernels, {faults} with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
