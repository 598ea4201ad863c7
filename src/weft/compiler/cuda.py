"""Kernels for NVIDIA GPUs: out of the cache or, by `cuda_stages`, made; their machine code.

    kernel = compile(ASTSource(...), "cuda:90")         # needs no GPU; kernel.asm["ptx"]
    kernel.asm["ttgir"], kernel.asm["lane"]             # made again from the tile IR when asked for
    kernel.asm["cubin"]                                 # assembled when asked for, or when the kernel is loaded

What the cache keeps is source, tile IR, LLVM IR and PTX, and machine code in an entry of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft.backends.nvidia import begin, ptx_target
from weft.backends.nvidia.driver import LoadedKernel, current_device
from weft.backends.nvidia.ptxas import MachineCode, assembler, disassemble, source_of
from weft.base import (
    CompilationError,
    CompileOptions,
    LaunchTypeError,
    OutOfResources,
    PTXASError,
    Unsupported,
)

from .kernel import AsmDict, CompiledKernel
from .options import given_for_gpu, make_options
from .sources import Source, trace_unfollowed
from .stages import REMARKS, TRITON_FACTS, Dump, Store, cache_key, made_elsewhere, stage, with_places
from .target import GPUTarget

if TYPE_CHECKING:
    from .work import Artefact, Work

__all__ = ["CudaKernel", "compile_for"]

STAGES = ("source", "ttir", "llir", "ptx")
LAUNCH_OPTIONS = ("launch_cooperative_grid", "launch_pdl")
"""Options of the launch: all programs at once, so that they may wait for each other; and programmatic dependent launch,
before the kernel that is in front in the stream has ended."""


class CudaKernel(CompiledKernel):
    """A kernel compiled for an NVIDIA GPU; assembled and loaded when it is launched."""

    def __init__(self, *args: Any, store: Store | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = store
        self._code: MachineCode | None = None

    def assemble(self, processor: str = "") -> MachineCode:
        """The machine code, from the cache if it is there. PTXASError where ptxas refuses the PTX.

        `processor` is the one to run on, where it is newer than the one that the PTX is for.
        """
        if self._code is None:
            processor = processor or self.metadata.arch
            made = f"{self.hash} machine code for {processor} by {assembler()}"
            key = hashlib.sha256(made.encode("utf-8", "surrogatepass")).hexdigest()
            found = self._store.get(key) if self._store is not None else None
            if found is not None and "image" in found[1]:
                self._code = MachineCode(bytes(found[1]["image"]), **found[0])
            else:
                self._code = self._assembled(processor)
                facts = {k: v for k, v in asdict(self._code).items() if k != "image"}
                if self._store is not None and self._code.by != "driver":
                    self._store.put(key, facts, {"image": self._code.image})
            self.kernel = self._code.image
        return self._code

    def _assembled(self, processor: str) -> MachineCode:
        try:
            facts = self.metadata
            found: MachineCode = _occupancy().assemble_for(
                self.asm["ptx"],
                processor,
                threads=facts.warp_size * facts.num_warps,
                shared=facts.shared,
                maxnreg=facts.maxnreg,
            )
            return found
        except PTXASError as error:
            if error.hint or "refuses" not in error.message or "tt.elementwise_inline_asm" not in self.asm["ttir"]:
                raise
            raise CompilationError(
                f"the assembler refuses {self.name}, which has inline assembly: {error.message.partition(chr(10))[2]}",
                source_of(self.asm["ptx"], error.message),
                hint="the lines are those of kernel.asm['ptx']",
            ) from error

    def _into_memory(self) -> Any:
        here = current_device()  # says what is missing before anything is assembled
        newer = f"sm_{here.capability}" if here.capability > int(self.metadata.target.arch) else ""
        image = self.assemble(newer).image
        try:
            return LoadedKernel(image, self.metadata._asdict())
        except OutOfResources as error:
            raise self._itemised(error) from None

    def _itemised(self, error: OutOfResources) -> OutOfResources:
        """With the buffers of shared memory, where that is what there is too little of."""
        if error.name != "shared memory":
            return error
        buffers = [line for line in self.asm["lane"].splitlines() if line.startswith("  shared ")]
        return OutOfResources(error.required, error.limit, error.name, error.hint, details=buffers)

    @property
    def n_regs(self) -> int:
        """Registers of a thread, as the assembler counts them; where that is the driver, the kernel is loaded."""
        code = self.assemble()
        return int(self.load().registers) if code.by == "driver" else code.registers

    @property
    def n_spills(self) -> int:
        """Words that a thread spills, as the assembler counts them; by the driver, words that it has in memory."""
        code = self.assemble()
        return int(self.load().local_bytes if code.by == "driver" else code.spilled_bytes) // 4

    @property
    def n_max_threads(self) -> int:
        """The largest number of threads a block may have."""
        return int(self.load().max_threads)

    def _launch_into(self, stream: Any, grid: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """A launch into a stream (its handle); None is the one in which the library of the arrays launches now."""
        self.launcher()(*grid, *args, stream=stream)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_store": None}


def _launch_options(options: Mapping[str, Any]) -> dict[str, bool]:
    """Those of LAUNCH_OPTIONS that are on. LaunchTypeError where one is neither on nor off."""
    for name in LAUNCH_OPTIONS:
        if options.get(name) not in (None, False, True):
            raise LaunchTypeError(f"{name} must be True or False, got {options[name]!r}", name)
    return {name: True for name in LAUNCH_OPTIONS if options.get(name)}


def _occupancy() -> Any:
    """The module that has kernels assembled; it knows the target, which kernels out of the cache do without."""
    return importlib.import_module("weft.backends.nvidia.occupancy")


def _trace_unfollowed(src: Source, target: GPUTarget, given: Mapping[str, Any], language: CompileOptions) -> None:
    """See `sources`; a Gluon kernel is traced with the options that it is made with."""
    if getattr(src, "unfollowed", None):
        gluon = importlib.import_module(f"{__package__}.gpu") if src.ext == "ttgir" else None
        wanted = language if gluon is None else gluon.gluon_options(given, target)
        trace_unfollowed(src, wanted, target)


def _stages() -> Any:
    """The module that makes PTX, imported when the cache has none."""
    return importlib.import_module(f"{__package__}.cuda_stages")


def compile_for(
    src: Source,
    target: GPUTarget,
    options: Mapping[str, Any],
    *,
    store: Store | None,
    dump: Dump | None,
    extra: Mapping[str, str] | None,
    elsewhere: Callable[[Work], Artefact] | None = None,
) -> CudaKernel:
    """See `weft.compiler.compile`."""
    timings: dict[str, float] = {}
    given = given_for_gpu(options)
    opts = make_options(given)
    language = opts.language
    launch = _launch_options(options)
    with stage("key", timings):
        fn = getattr(src, "fn", None)
        place = f"{getattr(fn, 'file_name', '')}:{getattr(fn, 'starting_line_number', 0)}"  # which the PTX says
        if store is not None:
            _trace_unfollowed(src, target, given, language)
        more = {"maxnreg": str(given["maxnreg"]), "launch": str(sorted(launch)), "place": place}
        key = cache_key(src, target, opts, {**(extra or {}), **more})
    if store is not None:
        with stage("cache", timings):
            found = store.get(key)
        if found is not None and all(name in found[1] for name in (*STAGES, REMARKS)):
            return _kernel(src, target, language, found[0], found[1], key, timings, store, dump, from_cache=True)
    if elsewhere is not None:
        facts, blobs = made_elsewhere(elsewhere, src, target, given, timings)
    else:
        with contextlib.suppress(Unsupported):  # which is said when the kernel has been traced
            begin(ptx_target(target.machine))
        facts, blobs = _stages().make(src, target, opts, given, timings)
    facts |= launch
    if store is not None:
        with stage("store", timings):
            store.put(key, facts, with_places(src, blobs))
    return _kernel(src, target, language, facts, blobs, key, timings, store, dump, from_cache=False)


def _kernel(
    src: Source,
    target: GPUTarget,
    language: CompileOptions,
    facts: Mapping[str, Any],
    blobs: Mapping[str, bytes],
    key: str,
    timings: Mapping[str, float],
    store: Store | None,
    dump: Dump | None,
    *,
    from_cache: bool,
) -> CudaKernel:
    """Put the artefact together."""
    stages = {name: blobs[name].decode("utf-8", "surrogatepass") for name in STAGES}
    ttir = stages["ttir"]
    made: list[CudaKernel] = []
    later: dict[str, Callable[[], Any]] = {
        "ttgir": lambda: _stages().layout_text(ttir, target, language),
        "lane": lambda: _stages().lane_text(ttir, target, language),
        "cubin": lambda: made[0].assemble().cubin,
        "sass": lambda: disassemble(made[0].assemble().image),
    }
    asm = AsmDict(stages, None, later)
    metadata = {**TRITON_FACTS, **facts, "cluster_dims": (facts["num_ctas"], 1, 1)}
    kernel = CudaKernel(src, target, asm, metadata, key, timings, from_cache, blobs=blobs, store=store)
    made.append(kernel)
    if dump is not None:
        for name in ("ttir", "ttgir", "lane", "llir", "ptx"):
            dump(src.name, name, asm[name])
    return kernel
