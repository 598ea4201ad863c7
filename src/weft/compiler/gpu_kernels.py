"""Kernels for GPUs: out of the cache or, by `gpu_stages` and a back end, made.

    kernel = compile(ASTSource(...), "cuda:90")         # needs no GPU; kernel.asm["llir"]
    kernel.asm["ttgir"], kernel.asm["lane"]             # made again from the tile IR when asked for

What the cache keeps is source, tile IR, and the texts of the back end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.base import OutOfResources, Unsupported, load

from .backends import backend_of
from .kernel import AsmDict, CompiledKernel
from .options import given_for_gpu
from .sources import Source, trace_unfollowed
from .stages import TRITON_FACTS, Dump, Making, Store
from .target import GPUTarget


class GPUKernel(CompiledKernel):
    """A kernel compiled for a GPU; loaded when it is launched."""

    def __init__(self, *args: Any, store: Store | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = store

    @property
    def machine_code(self) -> bytes:
        """The machine code as an assembler made it; nothing where it cannot be had without the driver."""
        return b""

    def _into_memory(self) -> Any:
        return backend_of(self.metadata.target.machine).load(self)

    @contextlib.contextmanager
    def itemising(self) -> Iterator[None]:
        """Where there is too little shared memory for it, say by which of its buffers."""
        try:
            yield
        except OutOfResources as error:
            if error.name != "shared memory":
                raise
            buffers = [line for line in self.asm["lane"].splitlines() if line.startswith("  shared ")]
            raise OutOfResources(error.required, error.limit, error.name, error.hint, details=buffers) from None

    def _launch_into(self, stream: Any, grid: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """A launch into a stream (its handle); None is the one in which the library of the arrays launches now."""
        self.launcher()(*grid, *args, stream=stream)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_store": None}


def _stages() -> Any:
    """The module that makes code, imported when the cache has none."""
    return load("weft.compiler.gpu_stages")


class ForGPU(Making):
    """A kernel for a GPU."""

    def __init__(self, src: Source, target: GPUTarget, options: Mapping[str, Any], store: Store | None) -> None:
        super().__init__(src, target, given_for_gpu(options, target.machine))
        self.backend, self.store = backend_of(target.machine), store
        self.facts = self.backend.options(self.options)
        self.stages = ("source", "ttir", *self.backend.texts, *filter(None, (self.backend.binary,)))
        self.in_worker = self.backend.in_worker

    def trace_unfollowed(self) -> None:
        """See `sources`; a Gluon kernel is traced with the options that it is made with."""
        if getattr(self.src, "unfollowed", None):
            gluon = load("weft.compiler.gpu") if self.src.ext == "ttgir" else None
            wanted = self.opts.language if gluon is None else gluon.gluon_options(self.options, self.target)
            trace_unfollowed(self.src, wanted, self.target)

    def key_facts(self) -> dict[str, str]:
        fn = getattr(self.src, "fn", None)
        place = f"{getattr(fn, 'file_name', '')}:{getattr(fn, 'starting_line_number', 0)}"  # which code says
        return {"maxnreg": str(self.options["maxnreg"]), "own": str(sorted(self.facts.items())), "place": place}

    def make(self, dump: Dump | None) -> tuple[dict[str, Any], dict[str, bytes]]:
        with contextlib.suppress(Unsupported):  # which is said when the kernel has been traced
            self.backend.begin(self.target.machine)
        made: tuple[dict[str, Any], dict[str, bytes]]
        made = _stages().make(self.src, self.target, self.opts, self.options, self.timings)
        return made

    def kernel(
        self, facts: Mapping[str, Any], blobs: Mapping[str, bytes], key: str, from_cache: bool, dump: Dump | None
    ) -> GPUKernel:
        src, target, language = self.src, self.target, self.opts.language
        binary = self.backend.binary
        stages: dict[str, Any] = {n: blobs[n].decode("utf-8", "surrogatepass") for n in self.stages if n != binary}
        ttir = stages["ttir"]
        later: dict[str, Callable[[], Any]] = {
            "ttgir": lambda: _stages().layout_text(ttir, target, language),
            "lane": lambda: _stages().lane_text(ttir, target, language),
        }
        asm = AsmDict({**stages, **({binary: blobs[binary]} if binary else {})}, None, later)
        metadata = {**TRITON_FACTS, **facts, "cluster_dims": (facts["num_ctas"], 1, 1)}
        kernel: GPUKernel = self.backend.kernel(
            src, target, asm, metadata, key, self.timings, from_cache, blobs=blobs, store=self.store
        )
        if dump is not None:
            for name in ("ttir", "ttgir", "lane", *self.backend.shown):
                dump(src.name, name, asm[name])
        return kernel
