"""`gl.amd.cdna5.async_copy`: copies between global and shared memory of gfx1250; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(
    globals(),
    "amd.cdna5.async_copy",
    "hip:gfx1250",
    "commit_group global_to_shared mbarrier_arrive shared_to_global wait_group",
)
