"""`TensorDescriptor`, as on Hopper."""

from __future__ import annotations

from typing import Any

from . import hopper

__all__ = ["TensorDescriptor"]

TensorDescriptor: Any


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return hopper.TensorDescriptor
