"""The fuzzer of control flow from the command line, in the folder `tests`.

python -m fuzz.flow.run --seeds 0:5000                       on the CPU; every other seed with debug=True
python -m fuzz.flow.run --seeds 0:500 --target sim:cuda:90   or ptx:cuda:90, its PTX by the interpreter of tests/ptx
python -m fuzz.flow.run --seeds 0:5000 --triton /path/to/python     ask Triton's frontend about what is refused, too
python -m fuzz.flow.run --seed 17                            one program, and what becomes of it
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from weft.ir import verify
from weft.runtime import knobs

from .check import in_triton, verdict
from .write import Program, write

SHOWN = ("MISMATCH", "REFUSED", "UNSUPPORTED", "CRASH")


def verified(pipeline: Any) -> Any:
    """A pipeline that checks the tile IR that it is given and what it makes of it, which users' launches leave out."""

    def run(module: Any, *args: Any, **options: Any) -> Any:
        verify(module)
        result = pipeline(module, *args, **options)
        verify(result)
        return result

    return run


def main() -> int:
    """Run what was asked for; 1 if something was found."""
    parser = argparse.ArgumentParser(description="Random control flow against Python.")
    parser.add_argument("--seeds", default="0:5000", help="first:last")
    parser.add_argument("--seed", type=int, help="one seed only; its program is shown")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--seconds", type=float, default=1e9, help="when to stop at the latest")
    parser.add_argument("--triton", default="", help="an interpreter that has Triton 3.6, to ask about refusals")
    options = parser.parse_args()
    for stages, pipeline in (("cpu_stages", "tile_pipeline"), ("gpu", "gpu_tile_pipeline")):
        module = importlib.import_module(f"weft.compiler.{stages}")
        setattr(module, pipeline, verified(getattr(module, pipeline)))
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = folder  # nothing compiled before is used, and the user's cache is left alone
        return search(options)


def search(options: argparse.Namespace) -> int:
    """Try programs, and say what becomes of them."""
    if options.seed is not None:
        program = write(options.seed)
        print(program.text, program.arguments, program.constants)
        print(*verdict(program, bool(options.seed % 2), options.target))
        return 0
    first, last = map(int, options.seeds.split(":"))
    begin = time.monotonic()
    counts: Counter[str] = Counter()
    refused: list[Program] = []
    for seed in range(first, last):
        if time.monotonic() - begin > options.seconds:
            last = seed
            break
        program = write(seed)
        what, text = verdict(program, bool(seed % 2), options.target)
        counts[what] += 1
        counts["plain"] += program.plain
        if what == "REFUSED":
            refused.append(program)
            counts["plain and REFUSED"] += program.plain
        if what in SHOWN:
            print(f"{what} {seed} {text.splitlines()[0] if text else ''}", flush=True)
    counts_of = ", ".join(f"{counts[k]} {k}" for k in ("PASS", "UNSET", *SHOWN, "plain and REFUSED"))
    print(f"seeds {first} to {last - 1} on {options.target}: {counts_of}; {time.monotonic() - begin:.0f} s")
    faults = counts["MISMATCH"] + counts["UNSUPPORTED"] + counts["CRASH"]
    if options.triton:
        taken = [p.seed for p, no in zip(refused, in_triton(options.triton, refused), strict=True) if not no]
        print(f"Triton takes {len(taken)} of the {len(refused)} refused: {taken}")
        faults += len(taken)
    else:
        faults += counts["plain and REFUSED"]
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
