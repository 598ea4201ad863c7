"""`plan_conversion`: from any layout of a tile to any other, in registers or in shared memory.

Both in registers is a conversion (conversion.py); from registers to shared memory is a store, and the other way round
a load (local.py). Memory to memory goes through registers, whose layout is a choice that is not made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from weft.base import LayoutError
from weft.machines import DEFAULT, Machine

from ..linear import LinearLayout
from ..zoo import DistributedLayout, SharedLayout
from .conversion import Layout, Plan, plan_in_registers
from .local import LocalAccess, plan_local_access

__all__ = ["plan_conversion"]

Registers = LinearLayout | DistributedLayout
Target = Machine | str
"""A machine, or its name."""


@overload
def plan_conversion(
    src: Registers, dst: SharedLayout, shape: Sequence[int], element_bits: int, target: Target = DEFAULT
) -> LocalAccess: ...
@overload
def plan_conversion(
    src: SharedLayout, dst: Registers, shape: Sequence[int], element_bits: int, target: Target = DEFAULT
) -> LocalAccess: ...
@overload
def plan_conversion(
    src: Registers, dst: Registers, shape: Sequence[int], element_bits: int, target: Target = DEFAULT
) -> Plan: ...


def plan_conversion(
    src: LinearLayout | Layout,
    dst: LinearLayout | Layout,
    shape: Sequence[int],
    element_bits: int,
    target: Target = DEFAULT,
) -> Plan | LocalAccess:
    """The cheapest way to bring a tile from one layout to another.

    `shape` is that of the tile, `element_bits` 1 to 128, `target` a machine or its name. Plans are cached. Where one of
    the two is a SharedLayout, the plan is that of a store or a load (of shared memory given as a LinearLayout,
    `plan_local_access` makes it). LayoutError where the layouts do not fit the shape or each other.

    >>> from weft.layouts import BlockedLayout, SwizzledSharedLayout
    >>> rows = LinearLayout({"register": [(0, 1)], "lane": [(1, 0)]}, {"dim0": 2, "dim1": 2})
    >>> columns = LinearLayout({"register": [(1, 0)], "lane": [(0, 1)]}, {"dim0": 2, "dim1": 2})
    >>> plan_conversion(rows, columns, (2, 2), 32).kind
    'shuffles'
    >>> blocked = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    >>> print(plan_conversion(blocked, SwizzledSharedLayout(4, 1, 8, [1, 0]), (32, 32), 32).explain())
    st.shared: 18 cycles a warp
           2 instructions of 4 elements of each lane
           4 wavefronts each, 4 at least
    """
    if isinstance(dst, SharedLayout):
        if isinstance(src, SharedLayout):
            raise LayoutError(
                f"{src!r} and {dst!r} are both in shared memory, and a tile goes from one to the other by registers",
                hint="plan the load from the one, and the store to the other",
            )
        return plan_local_access(src, dst, shape, element_bits, target, store=True)
    if isinstance(src, SharedLayout):
        return plan_local_access(dst, src, shape, element_bits, target)
    return plan_in_registers(src, dst, shape, element_bits, target)
