"""Taking operations out of their block."""

from __future__ import annotations

from xdsl.ir import Operation

__all__ = ["remove"]


def remove(op: Operation) -> None:
    """Take an operation out of its block and drop it; nothing that stays may use its results."""
    op.detach()
    op.erase(safe_erase=False)
