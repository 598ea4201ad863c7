"""triton.compiler.compiler."""

from __future__ import annotations

from typing import Any

from weft.compiler import AsmDict as AsmDict, CompiledKernel as CompiledKernel, LazyDict as LazyDict, as_target
from weft.runtime import compiler_key, driver
from weft.runtime.errors import OutOfResources as OutOfResources

from ..backends import backends
from ..backends.compiler import BaseBackend, GPUTarget as GPUTarget
from .files import compile as compile
from .sources import ASTSource as ASTSource, IRSource as IRSource


def make_backend(target: Any) -> BaseBackend:
    """The back end for a target."""
    chosen = as_target(target)
    made: BaseBackend = next(b.compiler for b in backends.values() if b.compiler.supports_target(chosen))(chosen)
    return made


def max_shared_mem(device: Any = None) -> int:
    """Bytes of shared memory that a block may have on the device that kernels are launched for."""
    return int(driver.active.utils.get_device_properties(device or 0)["max_shared_mem"])


def triton_key() -> str:
    """A digest of the compiler."""
    return compiler_key()
