"""One seed: generate the kernel, launch it, interpret it, compare.

program = generate(17)
difference(program, VARIANTS["host"])       # "" where the compiled kernel agrees
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from weft.backends.cpu import schedule
from weft.runtime import knobs

from .control import some
from .elements import DTYPES, Array, is_float
from .memory import keep
from .program import Array1D, Program
from .scope import Generator, Impossible

PAGE = mmap.PAGESIZE
SSE2 = {"cpu": "x86-64", "features": "+sse,+sse2", "vector_bits": 128}
SSE42 = {"cpu": "x86-64-v2", "features": "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt", "vector_bits": 128}
AVX = {"cpu": "sandybridge", "features": "+avx,+sse4.2,+popcnt,-avx2,-fma,-f16c", "vector_bits": 256}
AVX2 = {"cpu": "x86-64-v3", "features": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+sse4.2", "vector_bits": 256}


@dataclass(frozen=True)
class Variant:
    """How a kernel is compiled: options of the launch, and whether every store that can goes around the cache.

    With `apart`, no store may have two lanes with one address: which of them stays is open on the target.
    """

    options: dict[str, Any] = field(default_factory=dict)
    streams: bool = False
    apart: bool = False

    @contextmanager
    def applied(self) -> Iterator[dict[str, Any]]:
        """The options; what is compiled meanwhile stays out of the cache, which does not know of `streams`."""
        with knobs.cache.scope():
            knobs.cache.disabled = True
            least = 1 if self.streams else schedule.STREAM_BYTES
            with mock.patch.object(schedule, "STREAM_BYTES", least):
                yield self.options


VARIANTS = {
    "host": Variant(),
    "streams": Variant(streams=True),
    "avx2": Variant(AVX2),
    "avx2-streams": Variant(AVX2, streams=True),
    "avx": Variant(AVX),
    "sse4.2": Variant(SSE42),
    "sse2": Variant(SSE2),
    "sse2-streams": Variant(SSE2, streams=True),
    "narrow": Variant({"vector_bits": 128}),
    "aliased": Variant({"assume_no_alias": False}),
}
"""Each runs on any x86-64 with AVX2."""
SIMULATED = {f"sim:cuda:{n}": Variant({"target": f"sim:cuda:{n}"}, apart=True) for n in (80, 90)}
"""Each runs anywhere."""


def generate(seed: int, apart: bool = False) -> Program:
    """The kernel of a seed; with `apart`, one of which no store has two lanes with one address."""
    g = Generator(seed, apart)
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


def difference(program: Program, variant: Variant) -> str:
    """What the compiled kernel does otherwise than the interpreter; "" if nothing."""
    expected, _ = memories(program, guarded=False)
    program.interpret(expected)
    given, owners = memories(program, guarded=True)
    arguments = dict(given)
    with tempfile.TemporaryDirectory() as directory, variant.applied() as options:
        kernel = load_kernel(program, directory)
        kernel[(program.programs,)](**arguments, **program.launch_values(), **options)
    del owners
    for array in program.arrays:
        mine, theirs = expected[array.name], given[array.name]
        if not np.array_equal(mine, theirs):
            at = np.flatnonzero(mine != theirs)
            show = ", ".join(f"[{i}] {theirs[i]} for {mine[i]}" for i in at[:5])
            return f"{array.name} differs at {len(at)} of {len(mine)} places: {show}"
    return ""


def check(seed: int, variant: str) -> None:
    """Raise AssertionError, with the kernel and the command that runs it alone, if it computes something else."""
    how = {**VARIANTS, **SIMULATED}[variant]
    program = generate(seed, how.apart)
    what = difference(program, how)
    if what:
        again = f"cd tests && python -m fuzz.run --seed {seed} --variant {variant} --reduce"
        raise AssertionError(f"seed {seed}, {variant}: {what}\n\n{program.source()}\nAlone, and cut down: {again}")


def kind_of(error: Exception) -> str:
    """An exception in a few words, to recognise it by."""
    return f"{type(error).__name__}: {str(error).splitlines()[0][:60] if str(error) else ''}"
