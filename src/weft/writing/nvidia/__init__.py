"""NVIDIA's words of Gluon: matrix instructions of Ampere and Hopper, and the modules that its functions are in."""

from weft.layouts import NVMMADistributedLayout

from .. import layouts, words, writer
from . import products as products

AMPERE = "gluon.language.nvidia.ampere"
HOPPER = "gluon.language.nvidia.hopper"

words.HOMES.update(dict.fromkeys(("async_copy", "mma_v2"), AMPERE))
words.HOMES.update(
    dict.fromkeys(("warpgroup_mma", "warpgroup_mma_init", "warpgroup_mma_wait", "fence_async_shared"), HOPPER)
)
words.PRODUCTS[NVMMADistributedLayout] = "mma_v2"
words.UNDER_WAY["ttng.warp_group_dot"] = "warpgroup_mma_init"
layouts.STEMS[NVMMADistributedLayout] = "mma"
writer.STEMS["ttng.warp_group_dot"] = "product"
