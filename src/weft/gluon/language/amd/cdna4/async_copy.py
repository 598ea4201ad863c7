"""`gl.amd.cdna4.async_copy`: copies from global to shared memory that go through no register.

    async_copy.buffer_load_to_shared(memory, pointer, offsets, mask)
    async_copy.commit_group()
    ...
    async_copy.wait_group(0)            # and a barrier, before other threads read

The lanes of a warp write side by side, in the order of their numbers: 16 bytes each on gfx950, or 4 there and on
gfx942. So the elements that they hold of a tile must fill one run of the shared memory, of 1024 or 256 bytes. Swizzles
may change places within such a run, and gaps of a padded layout may follow whole runs.
"""

from __future__ import annotations

from typing import Any

from weft.ir import unit_attr
from weft.ir.amd.amdg import NARROW
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin
from weft.language.tensors import tensor

from ....copies import begin_copy, commit_group, wait_group
from ....semantic import GluonSemantic
from ..buffers import pointers_at
from ..processors import check_other, check_processor

__all__ = ["buffer_load_to_shared", "commit_group", "global_load_to_shared", "load_shared_relaxed", "wait_group"]


@builtin
def global_load_to_shared(
    dest: Any,
    ptr: Any,
    mask: Any = None,
    other: Any = None,
    cache_modifier: Any = "",
    _semantic: GluonSemantic = GIVEN,
) -> None:
    """Begin to copy an element for each pointer to shared memory of the same shape; masked-off elements become 0."""
    check_processor("global_load_to_shared", "hip:gfx950", _semantic)
    check_other("global_load_to_shared", other)
    begin_copy(dest, ptr, mask, _semantic, cache_modifier)


@builtin
def buffer_load_to_shared(
    dest: Any,
    ptr: Any,
    offsets: Any,
    mask: Any = None,
    other: Any = None,
    cache_modifier: Any = "",
    _semantic: GluonSemantic = GIVEN,
) -> None:
    """The same of elements at offsets from one pointer."""
    check_other("buffer_load_to_shared", other)
    pointers = pointers_at("buffer_load_to_shared", ptr, offsets, _semantic)
    pointers.handle.owner.attributes[NARROW] = unit_attr()
    begin_copy(dest, pointers, mask, _semantic, cache_modifier)


@builtin
def load_shared_relaxed(smem: Any, layout: Any, _semantic: GluonSemantic = GIVEN) -> tensor:
    """`smem.load(layout)` of what a wait has ordered already; all loads here wait for no more than they need."""
    return _semantic.shared_load(smem, unwrap(layout))
