"""Load the tiles of a loop one iteration ahead if its iterations wait for all warps.

    scf.for %k ... {                                 %first = tt.load %row + lower
      %x = tt.load %row + %k                         scf.for %k ... iter_args(%x = %first) {
      %s = tt.scan %x    (across warps)    becomes     %next = tt.load %row + (%k + step)
      tt.store %out + %k, %s                           %s = tt.scan %x
    }                                                  tt.store %out + %k, %s;  yield %next
                                                     }

A scan or reduction across warps has barriers, over which the assembler moves no load: without this pass, an iteration
takes as long as memory and the exchange, one after the other.

This is done for tiles of a few registers whose addresses can be computed an iteration ahead (loop_slices.py). If the
loop stores, it must store to another array at the same offsets, as above, so that a launch may pass one array for both.
Nothing is loaded for an iteration that does not exist.

Rows that begin anywhere stay as they are: there, instructions take longer than memory, and those for masks and
addresses would be executed twice (cross entropy of 32,003 bf16 is predicted to take 131 us instead of 107).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.analysis import AxisFacts
from weft.base.remarks import Prefetched, RemarkCollector
from weft.ir import bit_width, find, int_value, is_tensor, shape_of, span_of, tile_text, tt, walk
from weft.ir.gpu import layout_of
from weft.layouts.plan import plan_reduction
from weft.machines import Machine

from ..blocks_of_threads import VECTOR_BITS
from ..loop_slices import slice_of
from ..pipeline_loads import depends_on_stores, has_effects, stored_roots
from .loads_ahead import begun_ahead

WRITES = tt.StoreOp | tt.AtomicRMWOp | tt.AtomicStoreOp

MOST_WORDS = 16
"""Registers of a thread for what is loaded ahead in a loop."""


def load_tiles_ahead(root: Operation, machine: Machine, remarks: RemarkCollector) -> None:
    """Let the loops inside `root` whose iterations wait for all warps load their tiles an iteration ahead."""
    for loop in find(root, scf.ForOp):
        if _waits(loop, machine) and not any(has_effects(op) or op.name == "tt.dot" for op in walk(loop.body.block)):
            _load_ahead(loop, machine, remarks)


def _is_aligned(op: tt.LoadOp, facts: AxisFacts) -> bool:
    """Whether what lies in a row begins at a multiple of a vector, or of its own length."""
    known, bytes = facts.of(op.ptr), max(8, bit_width(op.result.type)) // 8
    run, begin = max(zip(known.contiguity, known.divisibility, strict=True))
    return begin >= min(run * bytes, VECTOR_BITS // 8)


def _offsets(pointer: SSAValue) -> list[SSAValue]:
    """What is added to the pointer that is an argument, the last first."""
    offsets: list[SSAValue] = []
    while isinstance(op := pointer.owner, tt.AddPtrOp | tt.SplatOp):
        offsets += op.operands[1:]
        pointer = op.operands[0]
    return offsets


def _waits(loop: scf.ForOp, machine: Machine) -> bool:
    """Whether an iteration has a barrier in a reduction or scan, and no loop."""
    waits = False
    for op in loop.body.block.ops:
        if isinstance(op, scf.ForOp | scf.WhileOp | scf.IfOp):
            return False
        if op.name in ("tt.reduce", "tt.scan"):
            tile, axis = op.operands[0], int_value(op.properties["axis"])
            bits = max(8, bit_width(tile.type))
            plan = plan_reduction(layout_of(tile.type), shape_of(tile.type), axis, bits, machine)
            waits = waits or "block" in plan.cost.barriers
    return waits


def _load_ahead(loop: scf.ForOp, machine: Machine, remarks: RemarkCollector) -> None:
    stored, facts, loads, words = stored_roots(loop), AxisFacts(), list[tt.LoadOp](), 0
    stores = [_offsets(op.operands[0]) for op in loop.body.block.ops if isinstance(op, WRITES)]
    for op in loop.body.block.ops:
        if isinstance(op, tt.LoadOp) and is_tensor(op.result.type):
            needed = slice_of(loop, op.operands)
            if needed is None or depends_on_stores(loop, op, stored, frozenset()) or not _is_aligned(op, facts):
                continue
            if any(offsets != _offsets(op.ptr) for offsets in stores):
                continue
            registers = 1 << len(layout_of(op.result.type).bases["register"])
            words += max(1, registers * bit_width(op.result.type) // 32)
            if words > MOST_WORDS:
                return
            loads.append(op)
    for op in loads:
        why = "an iteration ahead, as the loop waits for other warps"
        remarks.add(Prefetched(span_of(op), tile_text(op.result.type), why))
    if loads:
        begun_ahead(loop, loads)
