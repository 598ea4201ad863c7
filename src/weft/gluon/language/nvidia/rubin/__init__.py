"""`gl.nvidia.rubin`: the generation after Blackwell; what Blackwell does not have says that it is not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on
from ..blackwell import TensorMemoryLayout as TensorMemoryLayout
from ..blackwell import TensorMemoryScalesLayout as TensorMemoryScalesLayout
from ..blackwell import add2 as add2
from ..blackwell import allocate_tensor_memory as allocate_tensor_memory
from ..blackwell import async_copy as async_copy
from ..blackwell import async_store as async_store
from ..blackwell import clc as clc
from ..blackwell import cluster as cluster
from ..blackwell import fence_async_shared as fence_async_shared
from ..blackwell import fma2 as fma2
from ..blackwell import max2 as max2
from ..blackwell import min2 as min2
from ..blackwell import mma_v2 as mma_v2
from ..blackwell import mul2 as mul2
from ..blackwell import sub2 as sub2
from ..blackwell import tcgen05_commit as tcgen05_commit
from ..blackwell import tcgen05_copy as tcgen05_copy
from ..blackwell import tcgen05_mma as tcgen05_mma
from ..blackwell import tcgen05_mma_barrier_count as tcgen05_mma_barrier_count
from ..blackwell import tcgen05_mma_scaled as tcgen05_mma_scaled
from ..blackwell import tensor_memory_descriptor as tensor_memory_descriptor
from ..blackwell import tensor_memory_descriptor_type as tensor_memory_descriptor_type
from ..blackwell import tma as tma
from . import mbarrier as mbarrier

_missing = _only_on("rubin", "cuda:107")
add4 = _missing("add4")
fma4 = _missing("fma4")
mul4 = _missing("mul4")
sub4 = _missing("sub4")

_publish(globals(), modules="async_copy clc cluster mbarrier tma")
