"""From a source and options to a compiled kernel: the only place where the stages are put together.

The names below load when they are first used: a process that never compiles should not pay for the compiler, nor one
whose kernels are all in the cache for more of it than `stages`, which looks there.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .gpu import lane_program
    from .kernel import AsmDict, CompiledKernel, LazyDict, Metadata
    from .options import gpu_options, make_options, option_names
    from .sources import ASTSource, IRSource, Source
    from .stages import Dump, Store, cache_key, compile, stages_begun, versions
    from .target import (
        SIMULATED,
        TARGETS,
        GPUTarget,
        as_target,
        get_num_threads,
        host_cpu,
        set_num_threads,
        set_scratch_limit,
        target_of_arch,
    )
    from .work import Artefact, Work, compile_work, work_of

__all__ = [
    "SIMULATED",
    "TARGETS",
    "ASTSource",
    "Artefact",
    "AsmDict",
    "CompiledKernel",
    "Dump",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "Metadata",
    "Source",
    "Store",
    "Work",
    "as_target",
    "cache_key",
    "compile",
    "compile_work",
    "get_num_threads",
    "gpu_options",
    "host_cpu",
    "lane_program",
    "make_options",
    "option_names",
    "set_num_threads",
    "set_scratch_limit",
    "stages_begun",
    "target_of_arch",
    "versions",
    "work_of",
]

__getattr__ = lazy_face(
    __name__,
    {
        "stages": "Dump Store cache_key compile stages_begun versions",
        "sources": "ASTSource IRSource Source",
        "options": "gpu_options make_options option_names",
        "kernel": "AsmDict CompiledKernel LazyDict Metadata",
        "target": (
            "SIMULATED TARGETS GPUTarget as_target get_num_threads host_cpu set_num_threads set_scratch_limit "
            "target_of_arch"
        ),
        "gpu": "lane_program",
        "work": "Artefact Work compile_work work_of",
    },
)
