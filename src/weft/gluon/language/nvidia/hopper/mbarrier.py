"""`hopper.mbarrier`: barriers in shared memory that also count the bytes of bulk copies.

mbarrier.expect(bar, desc.block_type.nbytes)
tma.async_copy_global_to_shared(desc, [0, 0], bar, memory)
mbarrier.wait(bar, phase=0)
"""

from __future__ import annotations

from weft.language.protocol import GIVEN, builtin

from ....semantic import GluonSemantic
from ...layouts import MBarrierLayout as MBarrierLayout
from ..barriers import (
    allocate_mbarrier as allocate_mbarrier,
    arrive as arrive,
    expect as expect,
    init as init,
    invalidate as invalidate,
    wait as wait,
)
from . import cluster


@builtin
def fence_init_release_cluster(_semantic: GluonSemantic = GIVEN) -> None:
    """Mbarriers made before are seen by all blocks of the cluster after its next barrier, also a relaxed one.

    Every barrier of a cluster releases what was written before it, so there is nothing to add here.
    """


@builtin
def sync_cluster_init(_semantic: GluonSemantic = GIVEN) -> None:
    """All blocks of the cluster see the mbarriers that were made before this."""
    cluster.barrier(_semantic=_semantic)
