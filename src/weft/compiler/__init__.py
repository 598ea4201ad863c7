"""From a source and options to a compiled kernel: the only place where the stages are put together.

The names below load when they are first used: the compiler takes a few tenths of a second to import, and a process
that never compiles should not pay for it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .gpu import lane_program
    from .kernel import AsmDict, CompiledKernel, LazyDict, Metadata
    from .sources import ASTSource, IRSource, Source, stable_text
    from .stages import Dump, Store, cache_key, compile, make_options, option_names, versions
    from .target import (
        SIMULATED,
        TARGETS,
        GPUTarget,
        as_target,
        get_num_threads,
        host_cpu,
        set_num_threads,
        set_scratch_limit,
    )

_PLACES = {
    # compiling
    "compile": "stages",
    "ASTSource": "sources",
    "IRSource": "sources",
    "Source": "sources",
    "CompiledKernel": "kernel",
    "Metadata": "kernel",
    "AsmDict": "kernel",
    "LazyDict": "kernel",
    # targets and options
    "GPUTarget": "target",
    "TARGETS": "target",
    "SIMULATED": "target",
    "lane_program": "gpu",
    "as_target": "target",
    "host_cpu": "target",
    "get_num_threads": "target",
    "set_num_threads": "target",
    "set_scratch_limit": "target",
    "make_options": "stages",
    "option_names": "stages",
    # keys and stores
    "cache_key": "stages",
    "versions": "stages",
    "stable_text": "sources",
    "Store": "stages",
    "Dump": "stages",
}

__all__ = [
    "SIMULATED",
    "TARGETS",
    "ASTSource",
    "AsmDict",
    "CompiledKernel",
    "Dump",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "Metadata",
    "Source",
    "Store",
    "as_target",
    "cache_key",
    "compile",
    "get_num_threads",
    "host_cpu",
    "lane_program",
    "make_options",
    "option_names",
    "set_num_threads",
    "set_scratch_limit",
    "stable_text",
    "versions",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'weft.compiler' has no attribute {name!r}")
    module = importlib.import_module(f"weft.compiler.{_PLACES[name]}")
    for other, place in _PLACES.items():
        if place == _PLACES[name]:
            globals()[other] = getattr(module, other)
    return globals()[name]
