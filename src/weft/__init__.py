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

from importlib import import_module as _load  # that of `weft.base` would load what every error needs
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import (
        compat as compat,
        compiler as compiler,
        cuda as cuda,
        explain as explain,
        gluon as gluon,
        language as language,
        layouts as layouts,
        remarks as remarks,
        runtime as runtime,
        sim as sim,
        view as view,
    )
    from .base import (
        CacheWarning as CacheWarning,
        CapturedGlobalError as CapturedGlobalError,
        CompilationError as CompilationError,
        CompilerCrash as CompilerCrash,
        CompileTimeAssertionFailure as CompileTimeAssertionFailure,
        DefinitionError as DefinitionError,
        DeviceAssertionError as DeviceAssertionError,
        DeviceLost as DeviceLost,
        LaunchError as LaunchError,
        LaunchOverflowError as LaunchOverflowError,
        LaunchTypeError as LaunchTypeError,
        LayoutError as LayoutError,
        NoDevice as NoDevice,
        OffsetOverflowWarning as OffsetOverflowWarning,
        OptionError as OptionError,
        OutOfBoundsError as OutOfBoundsError,
        OutOfResources as OutOfResources,
        OutsideKernelError as OutsideKernelError,
        PTXASError as PTXASError,
        SettingWarning as SettingWarning,
        SpecializationError as SpecializationError,
        UnknownKeyword as UnknownKeyword,
        Unsupported as Unsupported,
        UnsupportedLanguageConstruct as UnsupportedLanguageConstruct,
        WeftError as WeftError,
        WeftWarning as WeftWarning,
    )
    from .compiler import ASTSource as ASTSource, CompiledKernel as CompiledKernel
    from .language.callable import constexpr_function as constexpr_function
    from .language.core import must_use_result as must_use_result
    from .runtime import (
        AsyncCompileMode as AsyncCompileMode,
        Autotuner as Autotuner,
        Config as Config,
        FutureKernel as FutureKernel,
        Heuristics as Heuristics,
        IRSource as IRSource,
        JITFunction as JITFunction,
        KernelInterface as KernelInterface,
        MockTensor as MockTensor,
        TensorDescriptor as TensorDescriptor,
        TensorWrapper as TensorWrapper,
        WorkerPool as WorkerPool,
        autotune as autotune,
        cdiv as cdiv,
        compile as compile,
        compile_many as compile_many,
        heuristics as heuristics,
        knobs as knobs,
        like as like,
        next_power_of_2 as next_power_of_2,
        reinterpret as reinterpret,
        set_allocator as set_allocator,
        target as target,
        testing as testing,
    )
    from .runtime.jit import jit as jit

# The module of each public name, by idea.
_PLACES = {
    name: module
    for module, names in (
        # kernels
        ("weft.runtime", "jit JITFunction KernelInterface target"),
        ("weft.language.callable", "constexpr_function"),
        ("weft.language.core", "must_use_result"),
        # choosing parameters
        ("weft.runtime", "autotune heuristics Config Autotuner Heuristics"),
        # compiling
        ("weft.runtime", "compile IRSource compile_many WorkerPool AsyncCompileMode FutureKernel"),
        ("weft.compiler", "ASTSource CompiledKernel"),
        # arguments
        ("weft.runtime", "TensorDescriptor TensorWrapper reinterpret MockTensor like"),
        ("weft.runtime", "set_allocator cdiv next_power_of_2"),
        # errors
        ("weft.base", "WeftError CompilationError DefinitionError UnsupportedLanguageConstruct Unsupported"),
        ("weft.base", "CompileTimeAssertionFailure OutOfResources LaunchError LaunchTypeError LaunchOverflowError"),
        ("weft.base", "UnknownKeyword OptionError CapturedGlobalError SpecializationError OutsideKernelError"),
        ("weft.base", "LayoutError NoDevice DeviceLost DeviceAssertionError OutOfBoundsError CompilerCrash PTXASError"),
        ("weft.base", "WeftWarning SettingWarning CacheWarning OffsetOverflowWarning"),
    )
    for name in names.split()
}
_MODULES = {
    **{name: f"weft.{name}" for name in ("language", "gluon", "runtime", "compiler", "compat")},
    "testing": "weft.runtime.testing",
    "knobs": "weft.runtime.knobs",
}
globals()["__all__"] = [*_PLACES, *_MODULES]  # type checkers, which cannot follow it, take the imports above for public
_MODULES |= {name: f"weft.{name}" for name in ("layouts", "remarks", "sim", "cuda", "view", "explain")}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = _load(_MODULES[name])
    elif name in _PLACES:
        value = getattr(_load(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *globals()["__all__"]})
