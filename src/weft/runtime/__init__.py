"""Kernels that can be launched: decorating, specialising, launching, caching, tuning, measuring.

What a launch needs is loaded with the room; the rest when it is first used.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

from . import knobs
from .allocation import set_allocator
from .compiling import compile, current_target, target
from .descriptor import TensorDescriptor
from .futures import AsyncCompileMode, FutureKernel
from .jit import JITFunction, JitFunctionInfo, KernelInterface, jit
from .numbers import cdiv, next_power_of_2
from .tensors import MockTensor, TensorWrapper, reinterpret

if TYPE_CHECKING:
    from . import errors, testing
    from .autotuner import Autotuner, Heuristics, autotune, heuristics
    from .config import Config
    from .drivers import driver
    from .errors import AutotunerError, InterpreterError, OutOfResources, PTXASError, TritonError
    from .files import compiler_key
    from .ir_source import IRSource
    from .many import compile_many
    from .workers import WorkerPool

__all__ = [
    # kernels
    "jit",
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "compile",
    "IRSource",
    "compiler_key",
    "compile_many",
    "WorkerPool",
    "AsyncCompileMode",
    "FutureKernel",
    # where they run
    "target",
    "current_target",
    "driver",
    "set_allocator",
    # choosing parameters
    "autotune",
    "Autotuner",
    "Config",
    "heuristics",
    "Heuristics",
    # arguments
    "TensorDescriptor",
    "TensorWrapper",
    "MockTensor",
    "reinterpret",
    "cdiv",
    "next_power_of_2",
    # settings, measuring, errors
    "knobs",
    "testing",
    "errors",
    "AutotunerError",
    "InterpreterError",
    "OutOfResources",
    "PTXASError",
    "TritonError",
]

__getattr__ = lazy_face(
    __name__,
    {
        "autotuner": "Autotuner Heuristics autotune heuristics",
        "config": "Config",
        "drivers": "driver",
        "errors": "AutotunerError InterpreterError OutOfResources PTXASError TritonError",
        "files": "compiler_key",
        "many": "compile_many",
        "workers": "WorkerPool",
        "ir_source": "IRSource",  # it comes with the whole compiler
    },
    {name: f"{__name__}.{name}" for name in ("errors", "testing")},
)
