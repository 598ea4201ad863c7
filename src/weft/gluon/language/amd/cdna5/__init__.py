"""`gl.amd.cdna5`: what gfx1250 has: buffer operations, wmma and wmma_scaled, the layout of scales."""

from weft.layouts import wmma_scale_layout as get_wmma_scale_layout

from ....elsewhere import unsupported as _unsupported
from ...layouts import takes_plain_values as _takes_plain_values
from ..buffers import buffer_load as buffer_load, buffer_store as buffer_store
from ..products import wmma_of as _wmma_of
from ..scaled import wmma_scaled as wmma_scaled
from . import async_copy as async_copy, cluster as cluster, mbarrier as mbarrier, tdm as tdm
from ._layouts import (
    PartitionedSharedLayout as PartitionedSharedLayout,
    make_partitioned_dot_layouts as make_partitioned_dot_layouts,
)

_takes_plain_values(get_wmma_scale_layout)

wmma = _wmma_of(3, "gfx1250")
__getattr__ = _unsupported(
    globals(),
    "amd.cdna5",
    "hip:gfx1250",
    "load_shared_fp4_repacked scaled_upcast",
    modules="async_copy cluster mbarrier tdm",
)
