"""From a source and options to a compiled kernel: the only place where the stages are put together.

The names below load when they are first used: a process that never compiles should not pay for the compiler, nor one
whose kernels are all in the cache for more of it than `stages`, which looks there.

>>> weft.compiler.as_target("cuda:90")
GPUTarget(backend='cuda', arch=90, warp_size=32)
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .gpu import lane_program as lane_program, source_text as source_text
    from .kernel import AsmDict as AsmDict, CompiledKernel as CompiledKernel, LazyDict as LazyDict, Metadata as Metadata
    from .options import (
        given_for_gpu as given_for_gpu,
        gpu_options as gpu_options,
        make_options as make_options,
        option_names as option_names,
    )
    from .sources import ASTSource as ASTSource, IRSource as IRSource, Source as Source
    from .stages import *
    from .target import *
    from .work import *

__getattr__ = lazy_face(
    __name__,
    {
        "stages": "Dump Store cache_key compile stages_begun versions",
        "sources": "ASTSource IRSource Source",
        "options": "given_for_gpu gpu_options make_options option_names",
        "kernel": "AsmDict CompiledKernel LazyDict Metadata",
        "target": (
            "HOSTED SIMULATED TARGETS GPUTarget as_target get_num_threads host_cpu is_gpu set_native_store "
            "set_num_threads set_scratch_limit target_of_arch"
        ),
        "gpu": "lane_program source_text",
        "work": "Artefact Work compile_work work_of",
    },
)
