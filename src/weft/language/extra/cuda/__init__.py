"""What NVIDIA GPUs have: `libdevice` works everywhere, the rest only there."""

from ..gpu_only import gpu_only
from . import libdevice

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

_WHERE = "cuda"
globaltimer = gpu_only("tl.extra.cuda", "globaltimer", _WHERE)
smid = gpu_only("tl.extra.cuda", "smid", _WHERE)
num_threads = gpu_only("tl.extra.cuda", "num_threads", _WHERE)
num_warps = gpu_only("tl.extra.cuda", "num_warps", _WHERE)
gdc_wait = gpu_only("tl.extra.cuda", "gdc_wait", "cuda:90 and later")
gdc_launch_dependents = gpu_only("tl.extra.cuda", "gdc_launch_dependents", "cuda:90 and later")
convert_custom_float8_sm70 = gpu_only(
    "tl.extra.cuda", "convert_custom_float8_sm70", _WHERE, "arg", "dst_ty", "fp_downcast_rounding"
)
convert_custom_float8_sm80 = gpu_only(
    "tl.extra.cuda", "convert_custom_float8_sm80", _WHERE, "arg", "dst_ty", "fp_downcast_rounding"
)
