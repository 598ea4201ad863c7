"""triton.runtime."""

from weft.runtime import (
    Autotuner as Autotuner,
    Config as Config,
    Heuristics as Heuristics,
    InterpreterError as InterpreterError,
    JITFunction as JITFunction,
    KernelInterface as KernelInterface,
    MockTensor as MockTensor,
    OutOfResources as OutOfResources,
    TensorWrapper as TensorWrapper,
    allocation as _memory,
    autotune as autotune,
    autotuner as autotuner,
    driver as driver,
    errors as errors,
    futures as _futures,
    heuristics as heuristics,
    reinterpret as reinterpret,
)

from . import cache as cache, interpreter as interpreter, jit as jit
from .cache import RedisRemoteCacheBackend as RedisRemoteCacheBackend, RemoteCacheBackend as RemoteCacheBackend

_allocation, _async_compile = _memory, _futures
