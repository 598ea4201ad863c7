"""Kernels for GPUs: out of the cache or, by `gpu_stages` and a back end, made.

    kernel = compile(ASTSource(...), "cuda:90")         # needs no GPU; kernel.asm["llir"]
    kernel.asm["ttgir"], kernel.asm["lane"]             # made again from the tile IR when asked for

What the cache keeps is source, tile IR, and the texts of the back end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weft.base import CompileOptions, Unsupported, load

from .backends import backend_of
from .kernel import AsmDict, CompiledKernel
from .options import given_for_gpu, make_options
from .sources import Source, trace_unfollowed
from .stages import REMARKS, TRITON_FACTS, Dump, Store, cache_key, made_elsewhere, stage, with_places
from .target import GPUTarget

if TYPE_CHECKING:
    from .work import Artefact, Work


class GPUKernel(CompiledKernel):
    """A kernel compiled for a GPU; loaded when it is launched."""

    def __init__(self, *args: Any, store: Store | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = store

    def _into_memory(self) -> Any:
        return backend_of(self.metadata.target.machine).load(self)

    def _launch_into(self, stream: Any, grid: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """A launch into a stream (its handle); None is the one in which the library of the arrays launches now."""
        self.launcher()(*grid, *args, stream=stream)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_store": None}


def _trace_unfollowed(src: Source, target: GPUTarget, options: Mapping[str, Any], language: CompileOptions) -> None:
    """See `sources`; a Gluon kernel is traced with the options that it is made with."""
    if getattr(src, "unfollowed", None):
        gluon = load("weft.compiler.gpu") if src.ext == "ttgir" else None
        wanted = language if gluon is None else gluon.gluon_options(options, target)
        trace_unfollowed(src, wanted, target)


def _stages() -> Any:
    """The module that makes code, imported when the cache has none."""
    return load("weft.compiler.gpu_stages")


def compile_for(
    src: Source,
    target: GPUTarget,
    options: Mapping[str, Any],
    *,
    store: Store | None,
    dump: Dump | None,
    extra: Mapping[str, str] | None,
    elsewhere: Callable[[Work], Artefact] | None = None,
) -> GPUKernel:
    """See `weft.compiler.compile`."""
    timings: dict[str, float] = {}
    gpu_options = given_for_gpu(options)
    opts = make_options(gpu_options)
    language = opts.language
    backend = backend_of(target.machine)
    vendor_options = backend.options(gpu_options)
    with stage("key", timings):
        fn = getattr(src, "fn", None)
        place = f"{getattr(fn, 'file_name', '')}:{getattr(fn, 'starting_line_number', 0)}"  # which code says
        if store is not None:
            _trace_unfollowed(src, target, gpu_options, language)
        more = {"maxnreg": str(gpu_options["maxnreg"]), "own": str(sorted(vendor_options.items())), "place": place}
        key = cache_key(src, target, opts, {**(extra or {}), **more})
    if store is not None:
        with stage("cache", timings):
            entry = store.get(key)
        if entry is not None and all(name in entry[1] for name in ("source", "ttir", *backend.texts, REMARKS)):
            return _kernel(src, target, language, entry[0], entry[1], key, timings, store, dump, from_cache=True)
    if elsewhere is not None:
        facts, blobs = made_elsewhere(elsewhere, src, target, gpu_options, timings)
    else:
        with contextlib.suppress(Unsupported):  # which is said when the kernel has been traced
            backend.begin(target.machine)
        facts, blobs = _stages().make(src, target, opts, gpu_options, timings)
    facts |= vendor_options
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
) -> GPUKernel:
    """Put the artefact together."""
    backend = backend_of(target.machine)
    stages = {name: blobs[name].decode("utf-8", "surrogatepass") for name in ("source", "ttir", *backend.texts)}
    ttir = stages["ttir"]
    later: dict[str, Callable[[], Any]] = {
        "ttgir": lambda: _stages().layout_text(ttir, target, language),
        "lane": lambda: _stages().lane_text(ttir, target, language),
    }
    asm = AsmDict(stages, None, later)
    metadata = {**TRITON_FACTS, **facts, "cluster_dims": (facts["num_ctas"], 1, 1)}
    kernel: GPUKernel = backend.kernel(src, target, asm, metadata, key, timings, from_cache, blobs=blobs, store=store)
    if dump is not None:
        for name in ("ttir", "ttgir", "lane", *backend.texts):
            dump(src.name, name, asm[name])
    return kernel
