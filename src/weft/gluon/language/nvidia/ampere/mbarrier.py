"""`ampere.mbarrier`: barriers in shared memory.

bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
mbarrier.init(bar, count=1)
mbarrier.arrive(bar)
mbarrier.wait(bar, phase=0)         # the phase counts 0, 1, 0, 1, ...
"""

from __future__ import annotations

from typing import Any

from weft.language.protocol import GIVEN, builtin

from ....semantic import GluonSemantic
from ...layouts import MBarrierLayout
from .. import barriers
from ..barriers import allocate_mbarrier, init, invalidate, wait

__all__ = ["MBarrierLayout", "allocate_mbarrier", "arrive", "init", "invalidate", "wait"]


@builtin
def arrive(mbarrier: Any, pred: Any = True, *, from_cta: Any = None, _semantic: GluonSemantic = GIVEN) -> None:
    """Arrive once, where `pred` holds."""
    barriers.arrive(mbarrier, count=1, pred=pred, from_cta=from_cta, _semantic=_semantic)
