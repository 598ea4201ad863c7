"""The kernels that are digested, by collection and name: `texts("kernels/vector_add", "cpu")` has the stages of one.

kernels          tests/kernels, as a first launch with their data specialises them
gluon            tests/gluon/kernels, for the GPUs that have their instructions
clusters         kernels of both languages that are launched with num_ctas
layout_ir        layout IR that the real Triton wrote
random           kernels of the fuzzer, of both languages
benchmarks       the kernels of benchmarks/gpu_cases.py
"""

from __future__ import annotations

import importlib.util
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any

import fuzz.compare
import gluon.clusters
import kernels.clusters
import weft
from fuzz.arrays import memories
from gluon.sources import arguments_of, sources
from kernels import load_cases
from weft.backends.gpu import emit_llvm
from weft.backends.nvidia import PTX
from weft.compiler import as_target
from weft.runtime import knobs

__all__ = ["NAMES", "TARGETS", "texts"]

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("cpu", "cuda:80", "cuda:90")
PROCESSOR = {"cpu": "x86-64-v3", "features": "-avx,-cx16"}
"""What is compiled for in the place of the processor that this runs on."""

DEFAULTS: dict[str, Any] = {}
"""Options that kernels are compiled with, unless they say others."""

CASES = load_cases("weft")
GLUON = sources("weft")
CLUSTERS = {f"{kind.__name__.partition('.')[0]}_{n}": c for kind in (kernels.clusters, gluon.clusters)
            for n, c in kind.CHECKS.items()}  # fmt: skip
LAYOUT_IR = {path.stem: path for kind in ("ttgir", "hopper") for path in (ROOT / "tests/data" / kind).glob("*.ttgir")}
RANDOM = [*(f"tile_{seed}" for seed in range(40)), *(f"gluon_{seed}" for seed in range(30))]


@cache
def benchmarks() -> dict[str, Any]:
    """The cases of benchmarks/gpu_cases.py."""
    spec = importlib.util.spec_from_file_location("gpu_cases", ROOT / "benchmarks" / "gpu_cases.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["gpu_cases"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name.replace(" ", "_"): case for name, case in module.cases("weft").items()}


NAMES = sorted(
    f"{collection}/{name}".replace(" ", "_")
    for collection, found in (
        ("kernels", CASES), ("gluon", GLUON), ("clusters", CLUSTERS), ("layout_ir", LAYOUT_IR), ("random", RANDOM),
        ("benchmarks", benchmarks()),
    )
    for name in found
)  # fmt: skip
"""Every kernel."""


def texts(name: str, target: str) -> Iterator[tuple[str, str]]:
    """The stages of a kernel and their texts, in their order; nothing where it is not for that target.

    Raises WeftError where the compiler refuses the kernel.
    """
    collection, _, kernel = name.partition("/")
    with redirect_stdout(io.StringIO()), knobs.cache.scope():  # some print while they are traced
        knobs.cache.disabled = True
        yield from COLLECTIONS[collection](kernel, target)


def _stages(source: Callable[[], Any], target: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each of a source, which is made anew for each compilation."""
    given = {**DEFAULTS, **options, **(PROCESSOR if target == "cpu" else {})}
    yield from _warmed_up(lambda target: weft.compile(source(), target, given), target)


def _warmed_up(warm: Callable[[str], Any], target: str) -> Iterator[tuple[str, str]]:
    """Each of a kernel that is compiled for a target by `warm`."""
    compiled = warm(target)
    yield "ttir", compiled.asm["ttir"]
    if target == "cpu":
        yield "llir", compiled.asm["llir"]
        return
    yield "lane", compiled.asm["lane"]
    yield "llir", compiled.asm["llir"]
    yield "ptx", compiled.asm["ptx"]
    simulated, facts = warm(f"sim:{target}"), compiled.metadata
    yield "sim", simulated.asm["lane"]
    dialect = PTX(simulated.program.machine)
    yield "emitted", emit_llvm(simulated.program, dialect, facts.enable_fp_fusion, facts.maxnreg)


def _case(name: str, target: str) -> Iterator[tuple[str, str]]:
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    yield from _stages(lambda: weft.ASTSource(case.kernel, types, values, attributes), target, case.options)


def _gluon(name: str, target: str) -> Iterator[tuple[str, str]]:
    source = GLUON[name]
    signature, attributes = arguments_of(source)
    if target != "cpu" and int(target.partition(":")[2]) >= source.capability:
        made = lambda: weft.ASTSource(source.kernel, signature, source.constexprs, attributes)
        yield from _stages(made, target, source.options)


class _Compiled(Exception):
    """The kernel is there; its results are not."""


def _clusters(name: str, target: str) -> Iterator[tuple[str, str]]:
    if target == "cpu" or not as_target(target).machine.async_proxy:
        return
    found: list[tuple[str, str]] = []

    def run(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
        found.extend(_warmed_up(lambda target: kernel.warmup(*args, grid=grid, target=target, **more), target))
        raise _Compiled

    with suppress(_Compiled):
        next(check for key, check in CLUSTERS.items() if key.replace(" ", "_") == name)(run)
    yield from found


def _layout_ir(name: str, target: str) -> Iterator[tuple[str, str]]:
    text = LAYOUT_IR[name].read_text(encoding="utf-8")
    other = {"_sm80": "cuda:90", "_sm90": "cuda:80"}
    if target not in ("cpu", other.get(name[-5:])):
        yield from _stages(lambda: weft.compiler.IRSource(text, f"{name}.ttgir"), target, {})


def _random(name: str, target: str) -> Iterator[tuple[str, str]]:
    kind, _, seed = name.partition("_")
    if kind == "gluon" and target == "cpu":
        return
    own = f"gluon:{target}" if target in TARGETS else "gluon:cuda:80"
    variant = fuzz.compare.EVERY[own if kind == "gluon" else "cuda" if target != "cpu" else "host"]
    program = fuzz.compare.generate(int(seed), variant)
    with tempfile.TemporaryDirectory() as folder:
        kernel = fuzz.compare.load_kernel(program, folder)
        given, owners = memories(program, guarded=False)
        values = {**program.arguments({a.name: given[a.name] for a in program.arrays}), **program.launch_values()}
        options = {**program.options(), **(PROCESSOR if target == "cpu" else {})}
        warm = lambda target: kernel.warmup(**values, grid=(program.programs,), target=target, **options)
        yield from _warmed_up(warm, target)
        del owners


def _benchmark(name: str, target: str) -> Iterator[tuple[str, str]]:
    case = benchmarks()[name]
    yield from _stages(case.source, target, case.options)


COLLECTIONS = {
    "kernels": _case,
    "gluon": _gluon,
    "clusters": _clusters,
    "layout_ir": _layout_ir,
    "random": _random,
    "benchmarks": _benchmark,
}
