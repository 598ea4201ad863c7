"""One seed: generate the kernel, launch it, interpret it, compare.

program = generate(17, VARIANTS["host"])
difference(program, VARIANTS["host"])       # "" where the compiled kernel agrees
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from weft import sim
from weft.backends.cpu import streaming
from weft.backends.nvidia import ptxas
from weft.runtime import knobs

from . import special
from .arrays import memories
from .control import some
from .device import difference_on_gpu
from .elements import Array
from .gluon import kernels as gluon
from .memory import MEMORY, keep
from .operations import OPERATIONS
from .program import Program, Simple
from .scope import Generator, Impossible

SSE2 = {"cpu": "x86-64", "features": "+sse,+sse2", "vector_bits": 128}
SSE42 = {"cpu": "x86-64-v2", "features": "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt", "vector_bits": 128}
AVX = {"cpu": "sandybridge", "features": "+avx,+sse4.2,+popcnt,-avx2,-fma,-f16c", "vector_bits": 256}
AVX2 = {"cpu": "x86-64-v3", "features": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+sse4.2", "vector_bits": 256}


@dataclass(frozen=True)
class Variant:
    """How a kernel is compiled: options of the launch, and whether every store that can goes around the cache.

    With `apart`, no store may have two lanes with one address: which of them stays is open on the target. With
    `lanes`, options of threads and the simulator's schedule are drawn from the seed. With `device`, arrays lie on the
    GPU. `gluon` is the compute capability that Gluon kernels are for, 0 for kernels of the Triton language. `special`
    kernels have floats of any value besides whole ones. With `layouts`, Gluon kernels only move tiles through many.
    """

    options: dict[str, Any] = field(default_factory=dict)
    streams: bool = False
    apart: bool = False
    lanes: bool = False
    device: bool = False
    gluon: int = 0
    special: bool = False
    layouts: bool = False

    @contextmanager
    def applied(self) -> Iterator[dict[str, Any]]:
        """The options; what is compiled meanwhile stays out of the cache, which does not know of `streams`."""
        with knobs.cache.scope():
            knobs.cache.disabled = True
            least = 1 if self.streams else streaming.STREAM_BYTES
            with mock.patch.object(streaming, "STREAM_BYTES", least):
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
SIMULATED = {f"sim:cuda:{n}": Variant({"target": f"sim:cuda:{n}"}, apart=True, lanes=True) for n in (80, 90)}
AMD = ("gfx942", "gfx950", "gfx1201")
"""gfx950 alone copies operands to LDS directly, and reads them so that they come out transposed."""
SIMULATED |= {f"sim:hip:{n}": Variant({"target": f"sim:hip:{n}"}, apart=True, lanes=True) for n in AMD}
SIMULATED |= {
    f"sim:cuda:90-x{n}": Variant({"target": "sim:cuda:90", "num_ctas": n}, apart=True, lanes=True) for n in (2, 4)
}
SIMULATED |= {
    f"gluon:sim:cuda:{n}": Variant({"target": f"sim:cuda:{n}"}, apart=True, lanes=True, gluon=n) for n in (80, 90)
}
"""Each runs anywhere."""
ON_GPU = {
    "cuda": Variant(apart=True, lanes=True, device=True),
    **{f"cuda-x{n}": Variant({"num_ctas": n}, apart=True, lanes=True, device=True) for n in (2, 4)},
    **{f"gluon:cuda:{n}": Variant(apart=True, lanes=True, device=True, gluon=n) for n in (80, 90)},
}
"""Each runs where there is a GPU; those with clusters (`-x2`), where it has them."""
SPECIAL = {
    f"special:{name}": replace(variant, options={**variant.options, "enable_fp_fusion": False}, special=True)
    for name, variant in {**VARIANTS, **SIMULATED, **ON_GPU}.items()
}
"""The same on floats that may be anything; `x * y + z` rounds twice, as it is written."""
LAYOUTS = {f"layouts:{name}": replace(variant, layouts=True) for name, variant in SIMULATED.items() if variant.gluon}
LAYOUTS["layouts:gluon:sim:hip:gfx1201"] = replace(SIMULATED["sim:hip:gfx1201"], gluon=80, layouts=True)
"""Gluon kernels that take tiles through random layouts of every family, by registers and by shared memory."""
EVERY = {**VARIANTS, **SIMULATED, **ON_GPU, **SPECIAL, **LAYOUTS}


def generate(seed: int, variant: Variant) -> Program:
    """The kernel of a seed, as a variant can have it."""
    if variant.layouts:
        return gluon.generate_layouts(seed, variant.gluon)
    if variant.gluon:
        return gluon.generate(seed, variant.gluon, variant.special)
    g = Generator(seed, variant.apart)
    if variant.special:
        g.menu = [*OPERATIONS, *MEMORY, *special.SPECIAL]
    for start in range(3):
        try:
            some(g, 2, 2)
        except Impossible:
            continue
    some(g, g.rng.choice((4, 8, 12, 16)), 0)
    seen = [v for v in g.scopes[0] if v.name.startswith("v")]
    kept = [v for v in seen if v.special][-8:] + [v for v in seen if not v.special][-5:]
    for v in kept:
        with g.any_values(v.special):
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
        and (a.lo, a.hi, a.special) == (b.lo, b.hi, b.special)
    ]  # fmt: skip
    if pairs:
        a, b = g.rng.choice(pairs)
        p.overlaps.append((a.name, b.name, g.rng.choice((0, 0, 1, 4, max(0, b.size - 1), b.size // 2))))
        if g.apart:
            _wait_around_stores(p.body)


def _wait_around_stores(body: list[Any]) -> None:
    """Arrays that share memory are ordered by the author, where more than one thread runs a program."""
    for statement in body:
        for inner in statement.blocks():
            _wait_around_stores(inner)
        if isinstance(statement, Simple) and ("tl.store(" in statement.text or "tl.atomic" in statement.text):
            statement.text = f"tl.debug_barrier()\n{statement.text}\ntl.debug_barrier()"


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
    with tempfile.TemporaryDirectory() as directory, variant.applied() as options:
        kernel = load_kernel(program, directory)
        if variant.lanes:
            options = {**program.options(), **options}
        if variant.device:
            what = difference_on_gpu(kernel, program, expected, options)
            return ASSEMBLER + what if what and _agrees_unoptimised(program, directory, expected, options) else what
        given, owners = memories(program, guarded=True)
        arguments = program.arguments({a.name: given[a.name] for a in program.arrays})
        with sim.options(**program.schedule()) if variant.lanes else nullcontext():
            kernel[(program.programs,)](**arguments, **program.launch_values(), **options)
    what = program.compared(expected, given)
    del owners
    return what


ASSEMBLER = "assembler: "
"""What a difference begins with that is gone where ptxas does not optimise."""


def _agrees_unoptimised(program: Program, directory: str, expected: dict[str, Array], options: dict[str, Any]) -> bool:
    """Whether the same PTX, assembled with -O0, does what it should: then ptxas has optimised it wrongly."""
    real = ptxas._with_ptxas

    def unoptimised(tool: str, ptx: str, arch: str, maxnreg: int | None, options: tuple[str, ...]) -> Any:
        return real(tool, ptx, arch, maxnreg, ("-O0",))

    with mock.patch.object(ptxas, "_with_ptxas", unoptimised):
        return not difference_on_gpu(load_kernel(program, directory), program, expected, options)


def check(seed: int, variant: str) -> None:
    """Raise AssertionError, with the kernel and the command that runs it alone, if it computes something else."""
    how = EVERY[variant]
    program = generate(seed, how)
    what = difference(program, how)
    if what:
        again = f"cd tests && python -m fuzz.run --seed {seed} --variant {variant} --reduce"
        raise AssertionError(f"seed {seed}, {variant}: {what}\n\n{program.source()}\nAlone, and cut down: {again}")


def kind_of(error: Exception) -> str:
    """An exception in a few words, to recognise it by; the place in the kernel is none of them."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first.partition(': error: ')[2][:90] or first[:90]}"
