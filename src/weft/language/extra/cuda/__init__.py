"""What NVIDIA GPUs have: `libdevice` works everywhere, the rest only there."""

from . import libdevice
from .functions import (
    convert_custom_float8_sm70,
    convert_custom_float8_sm80,
    gdc_launch_dependents,
    gdc_wait,
    globaltimer,
    num_threads,
    num_warps,
    smid,
)

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]
