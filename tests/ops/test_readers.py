"""Who reads the table has an entry for every row, and none for what is no row."""

from __future__ import annotations

import pytest

import weft.ir.gpu  # fills the rules of layouts
import weft.ir.gpu.check  # fills
import weft.lower  # fills the lowerings
from weft.backends.cpu.affine_ops import AFFINE_OPS
from weft.backends.cpu.elementwise import EMITTERS
from weft.backends.cpu.evaluate import SHAPE_OPS
from weft.backends.gpu.elementwise import SCALARS
from weft.backends.llvm.elementwise import MEANINGS, meaning_of
from weft.backends.nvidia.dialect import PTX
from weft.ir.check.rules import LAYOUT_RULES, RULES
from weft.ir.elementwise import CLASSES
from weft.ir.lane import is_elementwise
from weft.ir.text.examples import written
from weft.ir.text.forms import CASTS, FORMS, OPERATIONS, SAME
from weft.ir.text.special import SPECIAL, WRITE
from weft.lower.context import LOWERINGS
from weft.ops.row import Row
from weft.ops.table import ELEMENTWISE, ROWS
from weft.sim.arithmetic import is_elementwise as is_simulated

ALL, OF_TILES = list(ROWS.values()), [row for row in ROWS.values() if row.is_tile]
OF_LANES = [row for row in ROWS.values() if not row.lane]
WITH_POINTERS = {"tt.addptr", "tt.int_to_ptr", "tt.ptr_to_int"}
"""Addresses are pointers on the CPU and integers on GPUs: each has its own way with them."""


def test_loaded() -> None:
    assert weft.ir.gpu.ttg and weft.lower.lower


@pytest.mark.parametrize("row", OF_TILES, ids=lambda row: row.name)
def test_tile_ir(row: Row) -> None:
    cls = CLASSES[row.name]
    assert OPERATIONS[row.name] is cls and cls in RULES and cls in LAYOUT_RULES
    assert (row.name in SAME) + (row.name in CASTS) + (row.name in FORMS) + (row.name in SPECIAL) == 1
    assert row.name not in SPECIAL or row.name in WRITE
    assert f" {row.name} " in f" {written(row.name)}"


@pytest.mark.parametrize("row", OF_TILES, ids=lambda row: row.name)
def test_targets(row: Row) -> None:
    assert row.name in EMITTERS or row.name in SHAPE_OPS, "the CPU"
    spelled = ROWS.get((row.lane or row.name).partition(" ")[0])
    assert row.name in LOWERINGS or (spelled is not None and spelled.arity == row.arity), "GPUs"
    if row.name not in WITH_POINTERS and row.name != "tt.extern_elementwise" and row.kind.how != "halves":
        assert meaning_of(row.name) is not None


@pytest.mark.parametrize("row", OF_LANES, ids=lambda row: row.name)
def test_lane_programs(row: Row) -> None:
    assert is_elementwise(row.name) and is_simulated(row.name) and row.meaning is not None
    assert row.name in MEANINGS or row.name in SCALARS or row.kind.how == "halves"


def test_no_reader_has_more() -> None:
    assert set(EMITTERS) | set(SHAPE_OPS) >= ELEMENTWISE
    assert not (set(EMITTERS) | set(AFFINE_OPS)) - ELEMENTWISE
    assert not {*MEANINGS, *SCALARS, *PTX.scalars} - ROWS.keys()
    lanes = {row.lane.partition(" ")[0] for row in ALL if row.lane} - {"libdevice."}
    assert lanes <= ROWS.keys()
