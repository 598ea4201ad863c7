"""Every public name of Gluon from Triton 3.6 to 3.8 can be imported under the name triton.

`names.txt` has a line for each module and version: the names that are new in that version. What Weft has nothing for is
Unsupported by name when it is used, never when it is imported, nor when a list of layouts at module level is made.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import weft.gluon.language as gl
from weft.base import LayoutError, Unsupported
from weft.layouts import (
    AMDWMMALayout,
    PaddedSharedLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout as ScalesLayout,
)

NAMES = Path(__file__).parent / "names.txt"
LOOK = """
import importlib, json, sys, weft.compat
weft.compat.install()
missing = []
for module, names in json.load(sys.stdin).items():
    try:
        found = importlib.import_module(f"triton.experimental.{module}")
    except ImportError as error:
        missing.append(f"{module}: {error}")
        continue
    missing += [f"{module}.{name}" for name in names if not hasattr(found, name)]
print(json.dumps(missing))
"""


def _names() -> dict[str, list[str]]:
    """The names of each module."""
    found: dict[str, list[str]] = {}
    module = ""
    for line in NAMES.read_text().splitlines():
        if not line.startswith(" "):
            head, _, line = line.partition(":")
            module = head.split()[0]
        found.setdefault(module, []).extend(line.split())
    return found


def test_every_name_can_be_imported() -> None:
    names = _names()
    assert sum(map(len, names.values())) > 500
    done = subprocess.run([sys.executable, "-c", LOOK], input=json.dumps(names), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvidia.blackwell.clc.try_cancel", "blackwell.clc.try_cancel, which is for cuda:100,"),
        ("nvidia.rubin.add4", "rubin.add4, which is for cuda:107,"),
        ("amd.cdna5.tdm.async_gather", "amd.cdna5.tdm.async_gather, which is for hip:gfx1250,"),
        ("amd.gfx1250.cluster.arrive", "amd.cdna5.cluster.arrive, which is for hip:gfx1250,"),
        ("amd.cdna5.make_partitioned_dot_layouts", "amd.cdna5.make_partitioned_dot_layouts, which is for hip:gfx1250,"),
        ("amd.slice", "amd.slice, which is for hip,"),
        ("fpsan.embed", "fpsan.embed, which is for Triton's floating-point sanitizer,"),
    ],
)
def test_what_is_not_there_says_so_when_it_is_used(name: str, said: str) -> None:
    found = gl
    for part in name.split("."):
        found = getattr(found, part)
    with pytest.raises(Unsupported) as raised:
        found()  # type: ignore[operator]
    assert raised.value.message == f"{said} is not supported"


def test_layouts_of_other_machines_can_be_listed() -> None:
    """By the parameters of Triton 3.7; where there is no linear layout, that is told by whoever wants one."""
    bases = [[0, 1], [1, 0]]
    by_bases = AMDWMMALayout(version=3, transposed=True, warp_bases=bases, instr_shape=[16, 16, 32])
    assert by_bases == AMDWMMALayout(3, True, bases, [], [16, 16, 32]) and by_bases.warps_per_cta == [2, 2]
    assert eval(repr(by_bases)) == by_bases
    partitioned = gl.amd.cdna5.PartitionedSharedLayout(2, 1, 0, SwizzledSharedLayout(1, 1, 1, [1, 0]))
    padded = TensorMemoryLayout((128, 64), 1, fp4_padded=True)
    assert by_bases.to_linear([64, 64]) == AMDWMMALayout(3, True, [2, 2], [16, 16, 32]).to_linear([64, 64])
    for layout in (partitioned, padded, ScalesLayout(block_rep_order="kThenMn")):
        with pytest.raises(Unsupported, match=type(layout).__name__):
            layout.to_linear([128, 64])
    assert AMDWMMALayout(2, False, [2, 2]).warp_bases is None
    with pytest.raises(LayoutError, match="reg_bases go with warp_bases"):
        AMDWMMALayout(2, False, [2, 2], reg_bases=[[0, 1]])


def test_bases_of_a_cluster_in_place_of_numbers() -> None:
    layout = TensorMemoryLayout((128, 64), 1, cga_layout=[[1, 0], [0, 0]])
    assert layout == TensorMemoryLayout((128, 64), 1, [[1, 0], [0, 0]]) and layout.cta_split_num == (2, 1)
    split = TensorMemoryLayout((128, 64), 1, [2, 1])
    assert layout.to_linear([256, 64]) == split.to_linear([256, 64])
    with pytest.raises(LayoutError, match="differ"):
        TensorMemoryLayout((128, 64), 1, [1, 2], cga_layout=[[1, 0]])
    made = PaddedSharedLayout.with_identity_for([[64, 8]], [16, 32], [1, 0], [[1, 0]])
    assert made == PaddedSharedLayout([[64, 8]], made.offset_bases, cga_layout=[[8, 0]], shape=[16, 32])
    assert made.size == 8 * 32 + 3 * 8


def test_shape_of_a_linear_layout_of_memory() -> None:
    assert gl.SharedLinearLayout([[0, 1], [0, 2]]).shape == [1, 4]
    assert gl.SharedLinearLayout([[3, 1], [1, 0], [0, 1]]).shape == [4, 2]
    assert gl.SharedLinearLayout([[4]]).shape == [8]  # refused when a tile is laid out so
