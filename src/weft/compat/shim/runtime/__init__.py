"""triton.runtime."""

from weft.runtime import Autotuner as Autotuner
from weft.runtime import Config as Config
from weft.runtime import Heuristics as Heuristics
from weft.runtime import InterpreterError as InterpreterError
from weft.runtime import JITFunction as JITFunction
from weft.runtime import KernelInterface as KernelInterface
from weft.runtime import MockTensor as MockTensor
from weft.runtime import OutOfResources as OutOfResources
from weft.runtime import TensorWrapper as TensorWrapper
from weft.runtime import allocation as _memory
from weft.runtime import autotune as autotune
from weft.runtime import autotuner as autotuner
from weft.runtime import driver as driver
from weft.runtime import errors as errors
from weft.runtime import futures as _futures
from weft.runtime import heuristics as heuristics
from weft.runtime import reinterpret as reinterpret

from . import cache as cache
from . import interpreter as interpreter
from . import jit as jit
from .cache import RedisRemoteCacheBackend as RedisRemoteCacheBackend
from .cache import RemoteCacheBackend as RemoteCacheBackend

_allocation, _async_compile = _memory, _futures
