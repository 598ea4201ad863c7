"""`gl.intel`: the layout of the matrix instruction DPAS, as Intel's branch of Triton has it."""

from ._layouts import IntelDPASLayout

__all__ = ["IntelDPASLayout"]
