"""`gl.intel`: the layout of the matrix instruction DPAS, as Intel's branch of Triton has it."""

from __future__ import annotations

from ._layouts import IntelDPASLayout

__all__ = ["IntelDPASLayout"]
