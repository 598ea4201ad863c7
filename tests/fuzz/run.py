"""A seed from start to end: generate the kernel, launch it, interpret it, compare; reduce what fails.

PYTHONPATH=src:tests python -m fuzz.run --seeds 0:1000              a campaign, in processes of their own
PYTHONPATH=src:tests python -m fuzz.run --seed 17 --show            one kernel
PYTHONPATH=src:tests python -m fuzz.run --seed 17 --reduce          the smallest kernel that still fails
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import mmap
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from .control import some
from .elements import DTYPES, Array, is_float
from .memory import keep
from .program import Array1D, Program, written
from .scope import Generator, Impossible

PAGE = mmap.PAGESIZE
VARIANTS: dict[str, dict[str, Any]] = {
    "host": {},
    "avx2": {"cpu": "x86-64-v3", "features": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+sse4.2", "vector_bits": 256},
    "sse2": {"cpu": "x86-64", "features": "+sse,+sse2", "vector_bits": 128},
    "narrow": {"vector_bits": 128},
    "aliased": {"assume_no_alias": False},
}


def generate(seed: int) -> Program:
    """The kernel of a seed."""
    g = Generator(seed)
    for start in range(3):
        try:
            some(g, 2, 2)
        except Impossible:
            continue
    some(g, g.rng.choice((4, 8, 12, 16)), 0)
    seen = [v for v in g.scopes[0] if v.name.startswith("v")]
    for v in seen[-5:]:
        keep(g, v)
    _overlap(g)
    return g.program


def _overlap(g: Generator) -> None:
    """Perhaps let two arrays share memory, where one program runs."""
    p = g.program
    if p.programs != 1 or g.rng.random() < 0.5:
        return
    pairs = [
        (a, b)
        for a in p.arrays
        for b in p.arrays
        if a is not b and a.elem == b.elem and a.kind in ("inout", "in") and b.kind == "inout" and a.elem != "i1"
        and (a.lo, a.hi) == (b.lo, b.hi)
    ]  # fmt: skip
    if pairs:
        a, b = g.rng.choice(pairs)
        p.overlaps.append((a.name, b.name, g.rng.choice((0, 0, 1, 4, max(0, b.size - 1), b.size // 2))))


class Guarded:
    """Memory between two pages that may not be touched."""

    def __init__(self, size: int, at_end: bool) -> None:
        room = -(-max(1, size) // PAGE) * PAGE
        self.map = mmap.mmap(-1, room + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        libc = ctypes.CDLL(None)
        for page in (start, start + PAGE + room):
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
                raise OSError("mprotect")
        self.offset = PAGE + (room - size if at_end else 0)
        self.size = size

    def array(self, dtype: np.dtype[Any]) -> Array:
        return np.frombuffer(self.map, dtype, self.size // dtype.itemsize, self.offset)


def elements_of(program: Program, array: Array1D) -> int:
    return array.size * (program.programs if array.kind in ("out", "inout") else 1)


def contents(rng: np.random.Generator, program: Program, array: Array1D) -> Array:
    n = elements_of(program, array)
    if array.elem == "i1":
        return rng.integers(0, 2, n).astype(bool)
    lo, hi = array.lo, array.hi
    if array.kind in ("out", "atomic") or is_float(array.elem):
        lo, hi = max(lo, -8), min(hi, 8)
    values = rng.integers(lo, hi, n, endpoint=True, dtype=np.int64)
    if not is_float(array.elem) and n > 3 and array.kind in ("in", "inout"):
        values[rng.integers(0, n, 3)] = (array.lo, array.hi, max(array.lo, 0))
    return (
        values.astype(np.float32).astype(DTYPES[array.elem])
        if is_float(array.elem)
        else values.astype(DTYPES[array.elem])
    )


def memories(program: Program, guarded: bool) -> tuple[dict[str, Array], list[Any]]:
    """The arrays of a launch, filled from the seed; and what keeps them alive."""
    rng = np.random.default_rng(program.seed)
    shared = {b: (a, k) for a, b, k in program.overlaps}
    result: dict[str, Array] = {}
    owners: list[Any] = []
    by_name = {a.name: a for a in program.arrays}
    for array in program.arrays:
        values = contents(rng, program, array)
        if array.name in shared or any(array.name == a for a, _ in shared.values()):
            continue
        result[array.name] = _placed(values, array.tight, guarded, owners)
    for b, (a, k) in shared.items():
        both = np.random.default_rng(program.seed + 1)
        first, second = by_name[a], by_name[b]
        size = max(elements_of(program, first), k + elements_of(program, second))
        whole = Array1D("", first.elem, "inout", first.lo, first.hi, size)
        base = _placed(contents(both, Program(0, [], {}, {}, [], 1, []), whole), first.tight, guarded, owners)
        result[a] = base[: elements_of(program, first)]
        result[b] = base[k : k + elements_of(program, second)]
        owners.append(base)
    return result, owners


def _placed(values: Array, tight: bool, guarded: bool, owners: list[Any]) -> Array:
    if not guarded:
        return values.copy()
    memory = Guarded(values.nbytes, tight)
    owners.append(memory)
    placed = memory.array(values.dtype)
    placed[:] = values
    return placed


def load_kernel(program: Program, directory: str) -> Any:
    """The kernel as a jitted function, from a file as users have it."""
    path = os.path.join(directory, f"fuzz_{program.seed}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.source())
    spec = importlib.util.spec_from_file_location(f"fuzz_{program.seed}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def difference(program: Program, options: dict[str, Any] | None = None) -> str:
    """What the compiled kernel does otherwise than the interpreter; "" if nothing."""
    expected, _ = memories(program, guarded=False)
    program.interpret(expected)
    given, owners = memories(program, guarded=True)
    arguments = dict(given)
    with tempfile.TemporaryDirectory() as directory:
        kernel = load_kernel(program, directory)
        kernel[(program.programs,)](**arguments, **program.launch_values(), **(options or {}))
    del owners
    for array in program.arrays:
        mine, theirs = expected[array.name], given[array.name]
        if not np.array_equal(mine, theirs):
            at = np.flatnonzero(mine != theirs)
            show = ", ".join(f"[{i}] {theirs[i]} for {mine[i]}" for i in at[:5])
            return f"{array.name} differs at {len(at)} of {len(mine)} places: {show}"
    return ""


# -- reduction --------------------------------------------------------------------------------------------------------


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Take statements away as long as it still fails."""
    changed = True
    while changed:
        changed = False
        for block in _blocks(program.body):
            size = max(1, len(block) // 2)
            while size >= 1:
                start = len(block)
                while start > 0:
                    start = max(0, start - size)
                    cut = block[start : start + size]
                    del block[start : start + size]
                    if fails(program):
                        changed = True
                    else:
                        block[start:start] = cut
                size //= 2
        for block in _blocks(program.body):
            for k, statement in enumerate(list(block)):
                for inner in statement.blocks():  # a loop or branch gives way to its body
                    before = list(block)
                    at = block.index(statement) if statement in block else k
                    block[at : at + 1] = inner
                    if fails(program):
                        changed = True
                        break
                    block[:] = before
    return program


def _blocks(body: list[Any]) -> list[list[Any]]:
    found = [body]
    for statement in body:
        for inner in statement.blocks():
            found += _blocks(inner)
    return found


def interpretable(program: Program) -> bool:
    try:
        memory, _ = memories(program, guarded=False)
        program.interpret(memory)
        return True
    except (KeyError, AttributeError):
        return False


def fails_alike(program: Program, options: dict[str, Any], like: str) -> bool:
    """Whether a cut-down program is valid and still fails in the same way."""
    if not interpretable(program) or not _well_formed(program):
        return False
    if like == "crash":
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                difference(program, options)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)
    try:
        return difference(program, options) != "" and like == "difference"
    except Exception as error:
        return kind_of(error) == like


def kind_of(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:60] if str(error) else ''}"


def _well_formed(program: Program) -> bool:
    """Every name that is read has been given a value on every way there (Python alone would not complain)."""
    import re

    names = re.compile(r"\b[vpik]\d+\b")

    def walk(body: list[Any], known: set[str]) -> bool:
        for statement in body:
            inner = statement.blocks()
            if inner:
                head = next(iter(statement.lines(0)))
                local = set(known)
                if hasattr(statement, "name"):
                    local.add(statement.name)
                if not set(names.findall(head)) <= local:
                    return False
                if not all(walk(b, set(local)) for b in inner):
                    return False
                continue
            left, _, right = statement.text.partition(" = ")
            if not right:
                if not set(names.findall(statement.text)) <= known:
                    return False
                continue
            if not set(names.findall(right)) <= known:
                return False
            known |= set(names.findall(left))
        return True

    return walk(program.body, {"pid"})


# -- campaigns --------------------------------------------------------------------------------------------------------


def check(seed: int, variant: str = "host") -> None:
    """Raise AssertionError with the kernel if it computes something else."""
    program = generate(seed)
    what = difference(program, VARIANTS[variant])
    if what:
        raise AssertionError(f"seed {seed}: {what}\n{program.source()}")


def _campaign(first: int, last: int, variant: str, seconds: float) -> int:
    """Run seeds in a child process each batch, so that a crash is one finding and not the end."""
    found = 0
    begin = time.time()
    seed = first
    while seed < last and time.time() - begin < seconds:
        left = str(seconds - (time.time() - begin))
        command = [sys.executable, "-m", "fuzz.run", "--batch", f"{seed}:{last}", "--variant", variant]
        command += ["--seconds", left]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
        print(done.stdout, end="", flush=True)
        lines = done.stdout.splitlines()
        found += sum(line.startswith("FAIL") for line in lines)
        reached = [int(line.split()[1]) for line in lines if line.startswith("AT ")]
        if done.returncode < 0:
            at = reached[-1] if reached else seed
            print(f"FAIL {at} crash: signal {-done.returncode}", flush=True)
            found += 1
            seed = at + 1
        else:
            last = reached[-1] + 1 if reached else last
            break
    print(f"{found} findings, seeds {first}:{last}, {time.time() - begin:.0f} s")
    return found


def _batch(first: int, last: int, variant: str, seconds: float) -> None:
    begin = time.time()
    for seed in range(first, last):
        if time.time() - begin > seconds:
            return
        print(f"AT {seed}", file=sys.stdout, flush=True)
        try:
            program = generate(seed)
            what = difference(program, VARIANTS[variant])
            if what:
                print(f"FAIL {seed} difference: {what}", flush=True)
        except Exception as error:
            print(f"FAIL {seed} {kind_of(error)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Random kernels against an interpreter.")
    parser.add_argument("--seeds", default="")
    parser.add_argument("--batch", default="")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--variant", default="host", choices=sorted(VARIANTS))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--reduce", action="store_true")
    options = parser.parse_args()
    if options.batch or options.seeds:
        first, last = map(int, (options.batch or options.seeds).split(":"))
        if options.batch:
            _batch(first, last, options.variant, options.seconds)
            return
        sys.exit(1 if _campaign(first, last, options.variant, options.seconds) else 0)
    program = generate(options.seed)
    if options.show:
        print("\n".join(program.source().splitlines()[45:]))
        print({a.name: (a.elem, elements_of(program, a)) for a in program.arrays}, program.launch_values())
        print("overlaps", program.overlaps)
    if not options.reduce:
        print(difference(program, VARIANTS[options.variant]) or "agrees")
        return
    chosen = VARIANTS[options.variant]
    like = "crash"
    child = os.fork()
    if child == 0:
        os._exit(_quietly(program, chosen))
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        try:
            like = "difference" if difference(program, chosen) else ""
        except Exception as error:
            like = kind_of(error)
    if not like:
        print("agrees")
        return
    program = reduced(program, lambda p: fails_alike(p, chosen, like))
    print("\n".join(written(program.body, 1)))
    print(
        {a.name: (a.elem, elements_of(program, a)) for a in program.arrays}, program.launch_values(), program.programs
    )
    print("overlaps", program.overlaps)
    try:
        print(like, difference(program, chosen) if like != "crash" else "")
    except Exception:
        traceback.print_exc(limit=-8)


def _quietly(program: Program, options: dict[str, Any]) -> int:
    try:
        difference(program, options)
    except BaseException:
        return 1
    return 0


if __name__ == "__main__":
    main()
