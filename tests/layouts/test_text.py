"""Layouts written out: `format_tensor_view` and `format_hardware_view`, compared with texts of Triton's."""

from __future__ import annotations

from typing import Any

import pytest

from weft.layouts import (
    AutoLayout,
    BlockedLayout,
    CoalescedLayout,
    NVMMADistributedLayout,
    PaddedSharedLayout,
    SwizzledSharedLayout,
)

BLOCKED = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
ROW = (
    "   T8:0| T12:0,   T8:1| T12:1,   T8:2| T12:2,   T8:3| T12:3,   T9:0| T13:0,   T9:1| T13:1,   T9:2| T13:2, "
    "  T9:3| T13:3,  T10:0| T14:0,  T10:1| T14:1,  T10:2| T14:2,  T10:3| T14:3,  T11:0| T15:0,  T11:1| T15:1, "
    " T11:2| T15:2,  T11:3| T15:3"
)


def test_a_tile_is_written_as_nested_lists_with_all_that_hold_an_element() -> None:
    rows = BLOCKED.format_tensor_view([16, 16]).splitlines()
    assert len(rows) == 16 and rows[0].startswith("[[  T0:0|  T4:0,   T0:1|") and rows[15].endswith("T127:3]]")
    assert rows[1] == " [" + ROW[1:] + "]"


def test_registers_of_all_lanes_are_lines() -> None:
    lines = BLOCKED.format_hardware_view([16, 32]).splitlines()
    assert len(lines) == 4 * 5 and lines[::5] == ["Warp0:", "Warp1:", "Warp2:", "Warp3:"]
    assert lines[7].startswith("( 4, 1), ( 4, 5), ( 4, 9),") and lines[7].endswith("( 7,25), ( 7,29)")


def test_blocks_and_dimensions() -> None:
    layout = BlockedLayout([1, 1, 1], [1, 2, 2], [1, 1, 1], [2, 1, 0], cga_layout=[[1, 0, 0]])
    assert layout.format_tensor_view([2, 2, 2]) == (
        "[[[B0:T0:0, B0:T1:0]\n  [B0:T2:0, B0:T3:0]]\n [[B1:T0:0, B1:T1:0]\n  [B1:T2:0, B1:T3:0]]]\n"
    )
    assert layout.format_hardware_view([2, 2, 2]) == (
        "Block0:\nWarp0:\n(0,0,0), (0,0,1), (0,1,0), (0,1,1)\nBlock1:\nWarp0:\n(1,0,0), (1,0,1), (1,1,0), (1,1,1)\n"
    )
    assert NVMMADistributedLayout([2, 0], [4, 1], [16, 8]).format_tensor_view([16, 8]).startswith("[[  T0:0| T32:0|")


def test_shared_memory_is_written_by_offsets() -> None:
    layout = SwizzledSharedLayout(1, 1, 2, [1, 0])
    assert layout.format_tensor_view([2, 2]) == "[[(0:0),(0:1)]\n [(1:1),(1:0)]]\n"
    assert layout.format_hardware_view([2, 2]) == (
        "Block: 0:\nOffset: 0 -> (0,0)\nOffset: 1 -> (0,1)\nOffset: 2 -> (1,1)\nOffset: 3 -> (1,0)\n"
    )


@pytest.mark.parametrize(
    "layout", [AutoLayout(), CoalescedLayout(), PaddedSharedLayout.with_identity_for([[32, 4]], [16, 64], [1, 0])]
)
def test_what_cannot_be_written_is_a_value_error(layout: Any) -> None:
    for view in (layout.format_tensor_view, layout.format_hardware_view):
        with pytest.raises(ValueError, match=f"{type(layout).__name__} cannot be visualized"):
            view([16, 64])
