"""Weft compiles and runs tile kernels: Python functions written in the Triton language.

    import numpy as np
    import weft
    import weft.language as tl

    @weft.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)

    add[(weft.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

Every name below loads what it needs when it is first used, so that `import weft` itself costs a few milliseconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import compat, compiler, gluon, language, runtime
    from .base import (
        CompilationError,
        CompilerCrash,
        DeviceAssertionError,
        LaunchError,
        OutOfBoundsError,
        OutOfResources,
        Unsupported,
        WeftError,
    )
    from .compiler import ASTSource, CompiledKernel
    from .language.callable import constexpr_function
    from .language.core import must_use_result
    from .runtime import (
        AsyncCompileMode,
        Autotuner,
        Config,
        FutureKernel,
        Heuristics,
        IRSource,
        JITFunction,
        KernelInterface,
        MockTensor,
        TensorDescriptor,
        TensorWrapper,
        WorkerPool,
        autotune,
        cdiv,
        compile,
        compile_many,
        heuristics,
        knobs,
        next_power_of_2,
        reinterpret,
        set_allocator,
        target,
        testing,
    )
    from .runtime.jit import jit

# Where each public name lives, grouped by idea.
_PLACES = {
    # kernels
    "jit": "weft.runtime",
    "constexpr_function": "weft.language.callable",
    "must_use_result": "weft.language.core",
    "JITFunction": "weft.runtime",
    "KernelInterface": "weft.runtime",
    "target": "weft.runtime",
    # choosing parameters
    "autotune": "weft.runtime",
    "heuristics": "weft.runtime",
    "Config": "weft.runtime",
    "Autotuner": "weft.runtime",
    "Heuristics": "weft.runtime",
    # compiling
    "compile": "weft.runtime",
    "ASTSource": "weft.compiler",
    "IRSource": "weft.runtime",
    "CompiledKernel": "weft.compiler",
    "compile_many": "weft.runtime",
    "WorkerPool": "weft.runtime",
    "AsyncCompileMode": "weft.runtime",
    "FutureKernel": "weft.runtime",
    # arguments
    "TensorDescriptor": "weft.runtime",
    "TensorWrapper": "weft.runtime",
    "reinterpret": "weft.runtime",
    "MockTensor": "weft.runtime",
    "set_allocator": "weft.runtime",
    "cdiv": "weft.runtime",
    "next_power_of_2": "weft.runtime",
    # errors
    "WeftError": "weft.base",
    "CompilationError": "weft.base",
    "Unsupported": "weft.base",
    "OutOfResources": "weft.base",
    "LaunchError": "weft.base",
    "DeviceAssertionError": "weft.base",
    "OutOfBoundsError": "weft.base",
    "CompilerCrash": "weft.base",
}
_MODULES = {
    "language": "weft.language",
    "gluon": "weft.gluon",
    "runtime": "weft.runtime",
    "compiler": "weft.compiler",
    "compat": "weft.compat",
    "layouts": "weft.layouts",
    "sim": "weft.sim",
    "cuda": "weft.cuda",
    "view": "weft.view",
    "testing": "weft.runtime.testing",
    "knobs": "weft.runtime.knobs",
    "remarks": "weft.base.remarks",
}

__all__ = [
    # kernels
    "jit",
    "constexpr_function",
    "must_use_result",
    "JITFunction",
    "KernelInterface",
    "target",
    # choosing parameters
    "autotune",
    "heuristics",
    "Config",
    "Autotuner",
    "Heuristics",
    # compiling
    "compile",
    "ASTSource",
    "IRSource",
    "CompiledKernel",
    "compile_many",
    "WorkerPool",
    "AsyncCompileMode",
    "FutureKernel",
    # arguments
    "TensorDescriptor",
    "TensorWrapper",
    "reinterpret",
    "MockTensor",
    "set_allocator",
    "cdiv",
    "next_power_of_2",
    # errors
    "WeftError",
    "CompilationError",
    "Unsupported",
    "OutOfResources",
    "LaunchError",
    "DeviceAssertionError",
    "OutOfBoundsError",
    "CompilerCrash",
    # modules
    "language",
    "gluon",
    "runtime",
    "compiler",
    "compat",
    "testing",
    "knobs",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _PLACES:
        value = getattr(importlib.import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
