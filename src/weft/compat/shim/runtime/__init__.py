"""triton.runtime."""

from weft.runtime import (
    Autotuner,
    Config,
    Heuristics,
    InterpreterError,
    JITFunction,
    KernelInterface,
    MockTensor,
    OutOfResources,
    TensorWrapper,
    autotune,
    autotuner,
    driver,
    errors,
    heuristics,
    reinterpret,
)

from . import cache, interpreter, jit
from .cache import RedisRemoteCacheBackend

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "RedisRemoteCacheBackend",
    "TensorWrapper",
    "autotune",
    "autotuner",
    "cache",
    "driver",
    "errors",
    "heuristics",
    "interpreter",
    "jit",
    "reinterpret",
]
