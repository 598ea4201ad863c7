"""Who has to wait in a trip through shared memory."""

from __future__ import annotations

from weft.layouts import LinearLayout
from weft.layouts.plan import Machine, plan_conversion


def test_where_warps_hold_copies_the_block_waits() -> None:
    """One of two warps that hold the same tile stores it; the other must not read before that."""
    lanes = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)]
    rows = {"register": [(1, 0), (2, 0)], "lane": lanes, "warp": [(0, 0)], "block": []}
    columns = {"register": lanes[:2], "lane": [(1, 0), (2, 0), *lanes[2:]], "warp": [(0, 0)], "block": []}
    src = LinearLayout.from_bases(rows, {"dim0": 4, "dim1": 32})
    dst = LinearLayout.from_bases(columns, {"dim0": 4, "dim1": 32})
    dear = Machine("dear", shuffle=1000.0)
    assert plan_conversion(src, dst, (4, 32), 32, dear).scope == "block"
    alone = (
        {d: [b for b in bs if any(b)] for d, bs in rows.items()},
        {d: [b for b in bs if any(b)] for d, bs in columns.items()},
    )
    src, dst = (LinearLayout.from_bases(x, {"dim0": 4, "dim1": 32}) for x in alone)
    assert plan_conversion(src, dst, (4, 32), 32, dear).scope == "warp"
