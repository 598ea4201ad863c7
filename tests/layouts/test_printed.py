"""Pictures of layouts are read as the layouts that they show."""

from __future__ import annotations

import random

import pytest

from weft.layouts import BlockedLayout, LayoutError, SharedLayout, read_view

from .random_named import distributed, shared

BLOCKED = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])


def test_what_is_written_is_read() -> None:
    """Both pictures of random layouts of every kind, in registers and in memory, with copies and clusters."""
    seen = set()
    for seed in range(60):
        rng = random.Random(seed)
        layout, shape = (shared if seed % 3 == 0 else distributed)(rng)
        linear = layout.to_linear(shape)
        if linear.total_in_log > 9 or (linear.in_dims.get("block", 1) > 1 and isinstance(layout, SharedLayout)):
            continue
        lanes = linear.in_dims.get("lane")
        for text in (layout.format_tensor_view(shape), layout.format_hardware_view(shape)):
            assert read_view(text, lanes) == linear, layout
        seen.add(type(layout).__name__)
    assert len(seen) >= 5, seen


TILE = """\
[[ T0:0| T4:0,  T0:1| T4:1,  T1:0| T5:0,  T1:1| T5:1]
 [ T2:0| T6:0,  T2:1| T6:1,  T3:0| T7:0,  T3:1| T7:1]]
"""


def test_threads_are_lanes_of_warps() -> None:
    assert read_view(TILE, 4).bases["warp"] == ((0, 0),) and read_view(TILE).in_dims["lane"] == 8
    assert read_view(TILE, 4) == BlockedLayout([1, 2], [2, 2], [2, 1], [1, 0]).to_linear([2, 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no picture of a layout in the text"),
        ("hello", "expected a picture of a layout, found the line 'hello'"),
        (TILE.replace("T3:1| T7:1", "T3:1"), "the picture has no element at register 1, lane 7, warp 0, block 0"),
        (TILE.replace("]]", "]"), "not all of its brackets are closed"),
        (TILE.replace(",  T1:1| T5:1]\n", "]\n"), "the rows of the picture have 3, 4 elements, not the same"),
        ("[[T0:0, T0:1, T0:2]]", "the picture has 3 of register, which is no power of two"),
        ("[[T0:0, T0:1, T0:3, T0:2]]", ""),
        ("[[T0:1, T0:0, T1:0, T1:1]]", "the picture does not show a linear layout"),
        ("[T0:0, T1:0, <T2:0>, T3:0]", "a picture of a layout has no '<T2:0>' in it"),
        ("Warp0:\n(0,0), (0,1)\n(1,0)", "the picture has no element at register 1, lane 1"),
        ("Warp0:\n(0,0), (0)", "different numbers of coordinates"),
    ],
)
def test_what_is_no_layout_is_refused(text: str, message: str) -> None:
    if not message:
        assert read_view(text).bases["register"] == ((0, 1), (0, 3))
        return
    with pytest.raises(LayoutError) as caught:
        read_view(text)
    assert message in caught.value.message, caught.value.message
