"""`ampere.async_copy`: copies from global to shared memory that go on while the program does other things (cp.async).

async_copy.async_copy_global_to_shared(memory, pointers, mask)
async_copy.commit_group()
...
async_copy.wait_group(0)            # and a barrier, before other threads read
"""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.ir.nvidia import ttng
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin

from ....copies import begin_copy, commit_group, wait_group
from ....semantic import GluonSemantic

__all__ = ["async_copy_global_to_shared", "async_load", "commit_group", "mbarrier_arrive", "wait_group"]


@builtin
def async_copy_global_to_shared(
    smem: Any,
    pointer: Any,
    mask: Any = None,
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    _semantic: GluonSemantic = GIVEN,
) -> None:
    """Begin to copy an element for each pointer to shared memory of the same shape; masked-off elements become 0."""
    begin_copy(smem, pointer, mask, _semantic, cache_modifier, eviction_policy, volatile)


async_load = async_copy_global_to_shared


@builtin
def mbarrier_arrive(mbarrier: Any, increment_count: Any = True, _semantic: GluonSemantic = GIVEN) -> None:
    """Arrive at an mbarrier when this thread's copies so far are done.

    With `increment_count` the arrival is one more than the mbarrier was made for, else one of those.
    """
    properties = {} if unwrap(increment_count) else {"noIncrement": ir.unit_attr()}
    _semantic.builder.create(ttng.AsyncCopyMbarrierArriveOp, (mbarrier.handle,), (), properties)
