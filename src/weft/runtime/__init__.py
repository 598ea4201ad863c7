"""Kernels that can be launched: decorating, specialising, launching, caching, tuning, measuring.

Importing it loads what a launch needs; everything else is loaded when it is first used.

>>> weft.runtime.cdiv(10, 4), weft.runtime.next_power_of_2(10)
(3, 16)
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

from . import knobs as knobs
from .allocation import set_allocator as set_allocator
from .compiling import *
from .descriptor import TensorDescriptor as TensorDescriptor
from .futures import AsyncCompileMode as AsyncCompileMode, FutureKernel as FutureKernel
from .jit import *
from .numbers import *
from .tensors import (
    MockTensor as MockTensor,
    TensorWrapper as TensorWrapper,
    like as like,
    reinterpret as reinterpret,
)

if TYPE_CHECKING:
    from . import errors as errors, testing as testing
    from .autotuner import Autotuner as Autotuner, autotune as autotune
    from .config import *
    from .drivers import driver as driver
    from .errors import (
        AutotunerError as AutotunerError,
        InterpreterError as InterpreterError,
        OutOfResources as OutOfResources,
        PTXASError as PTXASError,
        TritonError as TritonError,
    )
    from .files import compiler_key as compiler_key
    from .ir_source import *
    from .many import compile_many as compile_many
    from .rules import *
    from .workers import WorkerPool as WorkerPool

__getattr__ = lazy_face(
    __name__,
    {
        "autotuner": "Autotuner autotune",
        "config": "Config",
        "drivers": "driver",
        "errors": "AutotunerError InterpreterError OutOfResources PTXASError TritonError",
        "files": "compiler_key",
        "many": "compile_many",
        "rules": "Heuristics heuristics",
        "workers": "WorkerPool",
        "ir_source": "IRSource",  # it comes with the whole compiler
    },
    {name: f"{__name__}.{name}" for name in ("errors", "knobs", "testing")},
)
