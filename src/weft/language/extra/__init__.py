"""Library functions by the names of the vendors: `libdevice`, and what exists on one kind of GPU only.

>>> evaluate("tl.extra.cuda.num_threads()")
32
"""

from . import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]
