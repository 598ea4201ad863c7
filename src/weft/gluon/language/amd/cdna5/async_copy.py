"""`gl.amd.gfx1250.async_copy`: copies from global to shared memory that go through no register, 4, 8 or 16 bytes each.

    async_copy.global_to_shared(memory, pointers, mask)
    async_copy.commit_group()
    ...
    async_copy.wait_group(0)            # and a barrier, before other threads read

Unlike those of gfx950, each lane's bytes go where it says.
"""

from __future__ import annotations

from typing import Any

from weft.ir.amd.mbarriers import CopiesArriveOp
from weft.language.protocol import GIVEN, builtin

from ....copies import begin_copy, commit_group as commit_group, wait_group as wait_group
from ....elsewhere import unsupported_builtin
from ....semantic import GluonSemantic
from ..mbarriers import barrier_handle
from ..processors import check_other, check_processor

__all__ = ["commit_group", "global_to_shared", "mbarrier_arrive", "shared_to_global", "wait_group"]


@builtin
def global_to_shared(
    smem: Any,
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    cache_modifier: Any = "",
    _semantic: GluonSemantic = GIVEN,
) -> None:
    """Begin to copy an element for each pointer to shared memory of the same shape; masked-off elements become 0."""
    check_processor("async_copy.global_to_shared", "hip:gfx1250", _semantic)
    check_other("async_copy.global_to_shared", other)
    begin_copy(smem, pointer, mask, _semantic, cache_modifier)


@builtin
def mbarrier_arrive(mbarrier: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """Each thread arrives at an mbarrier once the copies that it has begun are done."""
    handle = barrier_handle("async_copy.mbarrier_arrive", mbarrier, _semantic)
    _semantic.builder.create(CopiesArriveOp, (handle,))


shared_to_global = unsupported_builtin(
    "amd.cdna5.async_copy.shared_to_global",
    "hip:gfx1250",
    "the instruction is global_store_async_from_lds; tdm.async_store copies blocks",
)
