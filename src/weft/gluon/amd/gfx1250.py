"""The name of `cdna5` before Triton 3.8."""

from __future__ import annotations

from typing import Any

from . import cdna5

__all__ = ["TensorDescriptor"]

TensorDescriptor: Any


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cdna5.__getattr__(name)
