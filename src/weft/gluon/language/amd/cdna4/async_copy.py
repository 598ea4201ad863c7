"""`gl.amd.cdna4.async_copy`: copies from global to shared memory of gfx950; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(
    globals(),
    "amd.cdna4.async_copy",
    "hip:gfx950",
    "buffer_load_to_shared commit_group global_load_to_shared load_shared_relaxed wait_group",
)
