"""The only wiring: a source and options in, a compiled kernel out.

    kernel = compile(ASTSource(...), "cpu", {"num_warps": 4})

Nothing here reads the environment or touches files.  `store` remembers artefacts (the runtime gives one on disk),
`dump` is shown every stage as it is made.  What makes code (`cpu_stages`, `gpu_stages`, with the frontend, the passes
and xDSL) is imported when the store has no answer.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from weft import __version__
from weft.backends.cpu.driver import host_cpu, llvm_version
from weft.base import CompilationError, CompilerCrash, Span, Unsupported, WeftError, load

from .alarms import raised_by_handler
from .kernel import AsmDict, CompiledKernel
from .options import Options, make_options
from .sources import IRSource, OverriddenSource, Source, trace_unfollowed
from .target import GPUTarget, as_target, target_of_arch

if TYPE_CHECKING:
    from .work import Artefact, Work

__all__ = ["Dump", "Store", "cache_key", "compile", "stages_begun", "versions"]

Dump = Callable[[str, str, str], None]
"""Called with the kernel's name, the name of a stage, and its text."""

REMARKS = "remarks"
"""The blob beside the stages."""


class Store(Protocol):
    """Where artefacts are kept: facts that are JSON, and blobs of bytes."""

    def get(self, key: str) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """What was put under a key, or nothing."""
        ...

    def put(self, key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> None:
        """Keep something; not being able to is no error."""
        ...


@lru_cache(maxsize=1)
def versions() -> str:
    """The versions of Weft and of what it is built on."""
    parts = [__version__, llvm_version(), np.__version__]
    parts += [platform.python_version(), platform.system(), platform.machine()]
    return "\0".join(parts)


def cache_key(src: Source, target: GPUTarget, options: Options, extra: Mapping[str, str] | None = None) -> str:
    """The key of an artefact: everything that it depends on.

    The compiler counts by its versions; a store that outlives a process gives what tells one source of it from another
    in `extra`.
    """
    parts = [
        versions(),
        str(target),
        host_cpu().fingerprint() if target.backend == "cpu" else "",  # asking the system takes a millisecond
        src.hash(),
        src.ext,
        options.key(),
        *([repr(sorted(src.places()))] if options.language.debug else []),  # its checks tell places; else none count
        *(f"{name}={value}" for name, value in sorted((extra or {}).items())),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


stages_begun: list[Callable[[str], None]] = []
"""Called with the name of every stage of this process when it begins; a worker says so to the process it works for."""


@contextmanager
def stage(name: str, timings: dict[str, float], ir: Callable[[], str] | None = None) -> Iterator[None]:
    """Time a stage; whatever goes wrong in it and is not an error of Weft becomes a CompilerCrash.

    What a handler of a signal raises is raised as it is.
    """
    begin = perf_counter()
    for tell in stages_begun:
        tell(name)
    try:
        yield
    except Exception as error:
        raised = raised_by_handler(error)
        if raised is not None:
            raise raised from None
        if isinstance(error, WeftError | RecursionError):  # see `too_deep`
            raise
        raise CompilerCrash(
            f"{type(error).__name__}: {error}", name, ir=ir() if ir else None, traceback=traceback.format_exc()
        ) from error
    finally:
        timings[name] = timings.get(name, 0.0) + perf_counter() - begin


@contextmanager
def too_deep(src: Source) -> Iterator[None]:
    """Say of which kernel it is that it is nested too deeply, where a stage has run out of Python's stack."""
    try:
        yield
    except RecursionError as error:
        fn = getattr(src, "fn", None)
        span = None
        if fn is not None:
            definition: Any = fn.parse().body[0]
            start = definition.col_offset + len("def ")
            span = Span(fn.file_name, definition.lineno, start, definition.lineno, start + len(definition.name))
        raise CompilationError(
            f"{src.name} is nested too deeply to be compiled: the stack of {sys.getrecursionlimit()} calls is full",
            span,
            source_line=fn.source_line(span.line) if fn is not None and span is not None else None,
            hint="nest less, or launch it where fewer calls are active; sys.setrecursionlimit(...) makes it larger",
        ) from error


def cpu_stages() -> Any:
    """The module that makes code for the CPU, imported when the cache has none."""
    return load("weft.compiler.cpu_stages")


def compile(
    src: Source | str,
    target: Any = None,
    options: Mapping[str, Any] | None = None,
    *,
    store: Store | None = None,
    dump: Dump | None = None,
    environment: Mapping[str, str] | None = None,
    instead: IRSource | None = None,
    elsewhere: Callable[[Work], Artefact] | None = None,
    worker: Callable[[Work], Artefact] | None = None,
) -> CompiledKernel:
    """Compile a kernel, or the text of tile IR.

    `environment` holds further things the artefact may depend on, for the key; `instead` is tile IR to take in the
    place of the kernel's own. The option `arch` says for which GPU in the place of a target that is one. `elsewhere`
    makes code of what was traced, in the place of this process (`WorkerPool.compile`, say); without it `worker` does
    so for machines whose code is made in one.
    """
    if isinstance(src, str):
        src = IRSource(src)
    with too_deep(src):
        chosen = as_target(target)
        if chosen.backend != "cpu" and options and options.get("arch"):
            chosen = target_of_arch(options["arch"])
        if instead is not None:
            src = OverriddenSource(src, instead)
        if chosen.backend == "cpu":
            making: Making = _CPU(src, chosen, options or {})
        else:  # whose stages are not imported for the CPU
            making = load("weft.compiler.gpu_kernels").ForGPU(src, chosen, options or {}, store)
        if elsewhere is None and making.in_worker:
            elsewhere = worker
        return _compile(making, store, dump, environment or {}, elsewhere)


def _compile(
    making: Making,
    store: Store | None,
    dump: Dump | None,
    environment: Mapping[str, str],
    elsewhere: Callable[[Work], Artefact] | None,
) -> CompiledKernel:
    src, timings = making.src, making.timings
    with stage("key", timings):
        if store is not None:
            making.trace_unfollowed()
        key = cache_key(src, making.target, making.opts, {**environment, **making.key_facts()})
    if store is not None:
        with stage("cache", timings):
            entry = store.get(key)
        if entry is not None and all(name in entry[1] for name in (*making.stages, REMARKS)):
            return making.kernel(making.as_now(entry[0]), entry[1], key, True, dump)
    if elsewhere is not None:
        with stage("trace", timings):  # here; its code is made by somebody else
            work = load("weft.compiler.work").work_of(src, making.target, making.options)
        facts, blobs, seconds = elsewhere(work)
        timings.update(seconds)
        if dump is not None and making.target.backend == "cpu":
            dump(src.name, "ttir", blobs["ttir"].decode("utf-8", "surrogatepass"))
    else:
        facts, blobs = making.make(dump)
    facts = {**facts, **making.facts}
    if store is not None:
        with stage("store", timings):
            store.put(key, facts, with_places(src, blobs))
    return making.kernel(facts, blobs, key, False, dump)


class Making:
    """What compiling for one kind of machine is; `_CPU` is that for the CPU, `gpu_kernels.ForGPU` that for GPUs."""

    stages: tuple[str, ...]
    """The blobs that an artefact has, remarks apart."""
    facts: Mapping[str, Any] = {}
    """What a kernel has besides the facts that its making gives."""
    in_worker = False
    """Whether making it may end the process, so that a worker does it."""

    def __init__(self, src: Source, target: GPUTarget, options: Mapping[str, Any]) -> None:
        self.src, self.target, self.options = src, target, options
        self.opts = make_options(options)
        self.timings: dict[str, float] = {}

    def trace_unfollowed(self) -> None:
        """Trace a kernel whose key needs it, see `sources`."""
        trace_unfollowed(self.src, self.opts.language, self.target)

    def key_facts(self) -> dict[str, str]:
        """What the key holds of such machines alone."""
        return {}

    def as_now(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Facts out of the store, where some may have changed since."""
        return facts

    def make(self, dump: Dump | None) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The facts and the blobs of a kernel, as they are put into a store."""
        raise NotImplementedError

    def kernel(
        self, facts: Mapping[str, Any], blobs: Mapping[str, bytes], key: str, from_cache: bool, dump: Dump | None
    ) -> CompiledKernel:
        """Put the artefact together."""
        raise NotImplementedError


class _CPU(Making):
    """A kernel for the CPU."""

    stages = ("source", "ttir", "llir", "object")

    def __init__(self, src: Source, target: GPUTarget, options: Mapping[str, Any]) -> None:
        if target.arch != host_cpu().name:
            options = {"cpu": target.arch, **options}
        super().__init__(src, target, options)
        if self.opts.backend.cpu:
            self.target = replace(target, arch=self.opts.backend.cpu)
        if src.ext == "ttgir":
            raise Unsupported(
                f"a Gluon kernel ({src.name}), whose layouts are for the threads of a GPU,",
                str(self.target),
                hint='`with weft.target("sim:cuda:80"):` around the launch, or WEFT_TARGET=sim:cuda:80, runs it on '
                "this machine",
            )

    def as_now(self, facts: dict[str, Any]) -> dict[str, Any]:
        if not facts.get("wrapped_offsets"):
            return facts
        with stage("ttir", self.timings):  # they may have moved in their file; rare, so it is traced again
            return {**facts, "wrapped_offsets": cpu_stages().wrapped(self.src, self.target, self.opts)}

    def make(self, dump: Dump | None) -> tuple[dict[str, Any], dict[str, bytes]]:
        if not self.opts.backend.cpu:
            load("weft.backends.llvm.machine").begin(host_cpu())  # beside what is imported now
        made: tuple[dict[str, Any], dict[str, bytes]]
        made = cpu_stages().make(self.src, self.target, self.opts, self.timings, dump)
        return made

    def kernel(
        self, facts: Mapping[str, Any], blobs: Mapping[str, bytes], key: str, from_cache: bool, dump: Dump | None
    ) -> CompiledKernel:
        src, target, opts = self.src, self.target, self.opts
        stages: dict[str, Any] = {name: blobs[name].decode("utf-8", "surrogatepass") for name in self.stages[:-1]}
        stages["object"] = blobs["object"]
        asm = AsmDict(stages, lambda: str(cpu_stages().assembly(stages["llir"], opts.backend)))
        # A program's scratch memory takes the place of a GPU's shared memory. Scripts divide by it where a GPU would
        # need some, for tiles; a kernel of scalars needs none there either.
        shared = max(16 if "tensor<" in stages["ttir"] else 0, int(facts.get("scratch_bytes", 0)))
        launch_facts = {"shared": shared, "warp_size": target.warp_size, "backend_name": "cpu", "arch": target.arch}
        metadata = {**TRITON_FACTS, **facts, **launch_facts}
        kernel = CompiledKernel(src, target, asm, metadata, key, self.timings, from_cache, blobs=blobs)
        if dump is not None:
            for name in ("ttir",) * from_cache + ("llir", "asm"):
                dump(src.name, name, asm[name])
        return kernel


def with_places(src: Source, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Blobs for a store, with where the source stands now: remarks tell places, and it may have moved when they are
    read (see `Remarks.moved`)."""
    return {**blobs, "places": json.dumps(src.places()).encode("utf-8", "surrogatepass")}


# Facts that tools written for Triton look for, and their values where there is no GPU.
TRITON_FACTS: dict[str, Any] = {
    "maxnreg": None,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "global_scratch_size": 0,
    "global_scratch_align": 1,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
    "tmem_size": 0,
    "cluster_dims": (1, 1, 1),
    "scratch_bytes": 0,
    "scratch_largest": [],
    "asserts": [],
    "checked": [],
    "prints": [],
    "alias_pairs": [],
    "stored_params": [],
    "wrapped_offsets": [],
    "params": [],
    "programs_each": 1,
    "tensor_maps": [],
    "made_maps": [],
}
