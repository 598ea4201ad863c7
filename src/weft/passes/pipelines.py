"""The passes for each target, in order, with the reason for the order."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from .scalarize_carried import scalarize_carried

__all__ = ["cpu_pipeline"]


def cpu_pipeline(module: ModuleOp) -> tuple[ModuleOp, list[str] | None]:
    """Prepare a module for the CPU; also gives the type strings of the kernel's parameters, where they changed."""
    scalarize_carried(module)
    return module, None
