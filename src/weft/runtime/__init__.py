"""Kernels that can be launched: decorating, specialising, launching, caching, tuning, measuring."""

import importlib
from typing import TYPE_CHECKING, Any

from . import errors, knobs, testing
from .allocation import set_allocator
from .autotuner import Autotuner, Heuristics, autotune, heuristics
from .compiling import compile, current_target, target
from .config import Config
from .descriptor import TensorDescriptor
from .driver import driver
from .errors import AutotunerError, InterpreterError, OutOfResources, PTXASError, TritonError
from .files import compiler_key
from .futures import AsyncCompileMode, FutureKernel
from .jit import JITFunction, JitFunctionInfo, KernelInterface, jit
from .numbers import cdiv, next_power_of_2
from .tensors import MockTensor, TensorWrapper, reinterpret

if TYPE_CHECKING:
    from .ir_source import IRSource

__all__ = [
    # kernels
    "jit",
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "compile",
    "IRSource",
    "compiler_key",
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


def __getattr__(name: str) -> Any:
    if name != "IRSource":  # it comes with the whole compiler
        raise AttributeError(f"module 'weft.runtime' has no attribute {name!r}")
    return importlib.import_module("weft.runtime.ir_source").IRSource
