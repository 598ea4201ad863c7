"""What AMD GPUs have: `libdevice` works everywhere, the rest only there."""

from ..gpu_only import gpu_only
from . import libdevice

__all__ = ["libdevice", "memrealtime"]

memrealtime = gpu_only("tl.extra.hip", "memrealtime", "hip")
