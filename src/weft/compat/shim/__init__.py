"""The package `triton`, as `weft.compat` shows it: the names of Triton 3.6.0, the things of Weft.

A module of it has the names that it defines and those that it imports.
"""

from weft import language
from weft.base import load, publish
from weft.compat.finder import VERSION as __version__
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

publish(globals(), "backends compiler errors knobs language runtime testing tools")


def __getattr__(name: str) -> object:
    """`triton._C.libtriton`, imported when it is asked for: in Triton it always is."""
    if name != "_C":
        raise AttributeError(f"module 'triton' has no attribute {name!r}")
    load("weft.compat.shim._C.libtriton")
    return load("weft.compat.shim._C")
