"""The package `triton`, as `weft.compat` shows it: the names of Triton 3.6.0, the things of Weft.

A module of it has the names that it defines and those that it imports.
"""

from weft import language as language
from weft.base import load, publish
from weft.compat.finder import VERSION as _VERSION
from weft.compiler import CompiledKernel as CompiledKernel
from weft.language.callable import constexpr_function as constexpr_function
from weft.language.core import _aggregate
from weft.language.core import must_use_result as must_use_result
from weft.runtime import AsyncCompileMode as AsyncCompileMode
from weft.runtime import Autotuner as Autotuner
from weft.runtime import Config as Config
from weft.runtime import FutureKernel as FutureKernel
from weft.runtime import InterpreterError as InterpreterError
from weft.runtime import JITFunction as JITFunction
from weft.runtime import KernelInterface as KernelInterface
from weft.runtime import MockTensor as MockTensor
from weft.runtime import OutOfResources as OutOfResources
from weft.runtime import TensorWrapper as TensorWrapper
from weft.runtime import TritonError as TritonError
from weft.runtime import autotune as autotune
from weft.runtime import cdiv as cdiv
from weft.runtime import heuristics as heuristics
from weft.runtime import jit as jit
from weft.runtime import knobs as knobs
from weft.runtime import next_power_of_2 as next_power_of_2
from weft.runtime import reinterpret as reinterpret
from weft.runtime import set_allocator as set_allocator
from weft.runtime import testing as testing
from weft.runtime.errors import CompilationError as CompilationError

from . import backends as backends
from . import compiler as compiler
from . import errors as errors
from . import runtime as runtime
from . import tools as tools
from .compiler import ASTSource as ASTSource
from .compiler import IRSource as IRSource
from .compiler import compile as compile

__version__, aggregate = _VERSION, _aggregate

publish(globals(), "backends compiler errors knobs language runtime testing tools")


def __getattr__(name: str) -> object:
    """`triton._C.libtriton`, imported when it is asked for: in Triton it always is."""
    if name != "_C":
        raise AttributeError(f"module 'triton' has no attribute {name!r}")
    load("weft.compat.shim._C.libtriton")
    return load("weft.compat.shim._C")
