"""triton.compiler.compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compiler import AsmDict, ASTSource, CompiledKernel, IRSource, compiler_key
from weft.runtime import compile
from weft.runtime.errors import OutOfResources

from ..backends.compiler import CPUBackend, GPUTarget

__all__ = [
    "ASTSource",
    "AsmDict",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "OutOfResources",
    "compile",
    "make_backend",
    "triton_key",
]


class LazyDict:
    """Facts about a launch, some of which are computed when they are asked for."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]] = []

    def get(self) -> dict[str, Any]:
        """Everything."""
        for function, args in self.extras:
            self.data = {**self.data, **function(*args)}
        self.extras.clear()
        return self.data

    def add(self, function: Callable[..., dict[str, Any]], args: tuple[Any, ...]) -> None:
        """Add what a function returns."""
        self.extras.append((function, args))


def make_backend(target: Any) -> CPUBackend:
    """The back end for a target."""
    return CPUBackend(target)


def triton_key() -> str:
    """A digest of the compiler."""
    return compiler_key()
