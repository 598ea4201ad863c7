"""The package `triton`, as `weft.compat` shows it: the names of Triton 3.6.0, the things of Weft.

A module of it has the names that it defines and those that it imports.
"""

from weft import language as language
from weft.base import load, publish
from weft.compat.finder import VERSION as _VERSION
from weft.compiler import CompiledKernel as CompiledKernel
from weft.language.callable import constexpr_function as constexpr_function
from weft.language.core import _aggregate, must_use_result as must_use_result
from weft.runtime import (
    AsyncCompileMode as AsyncCompileMode,
    Autotuner as Autotuner,
    Config as Config,
    FutureKernel as FutureKernel,
    InterpreterError as InterpreterError,
    JITFunction as JITFunction,
    KernelInterface as KernelInterface,
    MockTensor as MockTensor,
    OutOfResources as OutOfResources,
    TensorWrapper as TensorWrapper,
    TritonError as TritonError,
    autotune as autotune,
    cdiv as cdiv,
    heuristics as heuristics,
    jit as jit,
    knobs as knobs,
    next_power_of_2 as next_power_of_2,
    reinterpret as reinterpret,
    set_allocator as set_allocator,
    testing as testing,
)
from weft.runtime.errors import CompilationError as CompilationError

from . import backends as backends, compiler as compiler, errors as errors, runtime as runtime, tools as tools
from .compiler import ASTSource as ASTSource, IRSource as IRSource, compile as compile

__version__, aggregate = _VERSION, _aggregate

publish(globals(), "backends compiler errors knobs language runtime testing tools")


def __getattr__(name: str) -> object:
    """`triton._C.libtriton`, imported when it is asked for: in Triton it always is."""
    if name != "_C":
        raise AttributeError(f"module 'triton' has no attribute {name!r}")
    load("weft.compat.shim._C.libtriton")
    return load("weft.compat.shim._C")
