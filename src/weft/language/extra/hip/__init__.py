"""What AMD GPUs have: `libdevice` works everywhere, the rest only there."""

from . import libdevice
from ..gpu_only import gpu_only

__all__ = ["libdevice", "memrealtime"]

memrealtime = gpu_only("tl.extra.hip", "memrealtime", "hip")
