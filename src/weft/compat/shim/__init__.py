"""The package `triton`, as `weft.compat` shows it: the names of Triton 3.6.0, the things of Weft."""

from typing import Any

from weft import language
from weft.base import load
from weft.compat.finder import VERSION
from weft.compiler import CompiledKernel
from weft.language.callable import constexpr_function
from weft.language.core import _aggregate as aggregate
from weft.language.core import must_use_result
from weft.runtime import (
    AsyncCompileMode,
    Autotuner,
    Config,
    FutureKernel,
    InterpreterError,
    JITFunction,
    KernelInterface,
    MockTensor,
    OutOfResources,
    TensorWrapper,
    TritonError,
    autotune,
    cdiv,
    heuristics,
    jit,
    knobs,
    next_power_of_2,
    reinterpret,
    set_allocator,
    testing,
)
from weft.runtime.errors import CompilationError

from . import backends, compiler, errors, runtime, tools
from .compiler import ASTSource, IRSource, compile

__version__ = VERSION

__all__ = [
    "ASTSource",
    "AsyncCompileMode",
    "Autotuner",
    "CompilationError",
    "CompiledKernel",
    "Config",
    "FutureKernel",
    "IRSource",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "aggregate",
    "autotune",
    "backends",
    "cdiv",
    "compile",
    "compiler",
    "constexpr_function",
    "errors",
    "heuristics",
    "jit",
    "knobs",
    "language",
    "must_use_result",
    "next_power_of_2",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
]


def __getattr__(name: str) -> Any:
    """`triton._C.libtriton`, imported when it is asked for: in Triton it always is."""
    if name != "_C":
        raise AttributeError(f"module 'triton' has no attribute {name!r}")
    load("weft.compat.shim._C.libtriton")
    return load("weft.compat.shim._C")
