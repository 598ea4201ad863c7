"""NVIDIA's words of Gluon: matrix instructions of Ampere and Hopper, and the modules that its functions are in."""

from weft.layouts import NVMMADistributedLayout, SwizzledSharedLayout

from .. import layouts, words, writer
from . import barriers as barriers, bulk as bulk, descriptors as descriptors, products as products

AMPERE = "gluon.language.nvidia.ampere"
HOPPER = "gluon.language.nvidia.hopper"

OF_HOPPER = (
    *("async_store", "cluster", "fence_async_shared", "mbarrier", "tma", "turns"),
    *("warpgroup_mma", "warpgroup_mma_init", "warpgroup_mma_wait"),
)
words.HOMES.update(dict.fromkeys(("async_copy", "mma_v2"), AMPERE))
words.HOMES.update(dict.fromkeys(OF_HOPPER, HOPPER))
words.WHOLE.add("nvidia")
words.PRODUCTS[NVMMADistributedLayout] = "mma_v2"
words.UNDER_WAY["ttng.warp_group_dot"] = "warpgroup_mma_init"
words.SPECIAL["i64", SwizzledSharedLayout(1, 1, 1, [0])] = words.Special("mbarrier", "MBarrierLayout()", "barrier")
layouts.STEMS[NVMMADistributedLayout] = "mma"
writer.STEMS["ttng.warp_group_dot"] = "product"
writer.STEMS["ttng.reinterpret_tensor_descriptor"] = "blocks"
words.COPIES |= {"ttng.async_tma_copy_global_to_local", "ttng.async_tma_copy_im2col_to_local"}
