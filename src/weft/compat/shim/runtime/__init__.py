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
from weft.runtime import allocation as _allocation
from weft.runtime import futures as _async_compile

from . import cache, interpreter, jit
from .cache import RedisRemoteCacheBackend, RemoteCacheBackend
