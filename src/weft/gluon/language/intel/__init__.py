"""`gl.intel`: the layout of the matrix instruction DPAS, as Intel's branch of Triton has it.

>>> layout = gl.intel.IntelDPASLayout(8, 8, 16, 2, [4, 1], [1, 1], 16)
>>> layout.to_linear([32, 16]).bases["warp"]
((8, 0), (16, 0))
"""

from ._layouts import IntelDPASLayout

__all__ = ["IntelDPASLayout"]
