"""Load operands of products into registers an iteration ahead, and store them to shared memory after it has been read.

    scf.for %i = %lo to %hi step %st iter_args(%p = %init) {
      %a = tt.load %p
      %x = ttg.convert_layout %a
      ... tt.dot %x, ...
      %next = tt.addptr %p, %step
      scf.yield %next
    }
becomes
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<...>
    %first = tt.load %init                                       masked by %lo < %hi
    ttg.local_store %first, %buffer
    scf.for %i = %lo to %hi step %st iter_args(%ahead = %init + %step) {
      %a = tt.load %ahead                                        masked by %i + %st < %hi
      %x = ttg.local_load %buffer
      ... tt.dot %x, ...
      ttg.local_store %a, %buffer
      scf.yield %ahead + %step
    }

The loads overlap the products that follow them. They hold registers meanwhile, but need no second buffer and no further
instructions: on most AMD processors, copies from global to shared memory take 4 bytes of a lane, where a load takes 16
(if copies take 16 too, see `direct_copies.py`). There are two barriers an iteration, one between the reads of a buffer
and the store, and one after it. Triton's `StreamPipeline.cpp` does the same with two stages.

A tile that is computed with before a product takes it, such as one that is widened, is carried in registers to the next
iteration instead, if it is small.

The same loads may be begun ahead as for asynchronous copies (`pipeline_loads`), except that masked elements may have
any value, and there may be few contiguous elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from weft.base.remarks import Copy, NotPipelined, Pipelined, Prefetched, RemarkCollector
from weft.ir import Builder, bit_width, element_of, is_tensor, shape_of, site_of, span_of, tile_text, tt, walk
from weft.ir.gpu import layout_of, ttg
from weft.layouts import LinearLayout, SharedLinearLayout, f2
from weft.layouts.plan import plan_conversion
from weft.layouts.plan.trip import Trip
from weft.machines import Machine

from ..buffered_tiles import is_multiplied
from ..effects import shareable
from ..loop_memory import SPARE_BYTES
from ..loop_slices import is_there, masked_load, slice_of
from ..pipeline_loads import depends_on_stores, has_effects, stored_roots
from ..pipelined_loop import CopiedLoad, PipelinedLoop
from ..removal import remove
from ..store_operands import memory_for
from .direct_copies import copy_directly
from .operand_buffers import Memory, read_buffer, wanted_layouts
from .widen_behind_memory import widen_behind_memory

MOST_SUMS = 128
"""Registers of sums that a thread may have where both operands are loaded ahead through all of shared memory."""
HELD_WORDS = 32
"""Registers of a thread that a tile may take which is carried to the next iteration."""


def load_ahead(loop: scf.ForOp, stages: int, machine: Machine, remarks: RemarkCollector) -> bool:
    """Rewrite an innermost loop, if it has more than one stage and products; always True: nothing else is tried."""
    body = loop.body.block
    loads = [op for op in body.ops if isinstance(op, tt.LoadOp) and is_tensor(op.result.type)]
    obstacle = next((op for op in walk(body) if has_effects(op)), None)
    if stages < 2 or "unsignedCmp" in loop.properties or obstacle is not None:
        if loads and remarks:
            why = "num_stages is 1" if stages < 2 else "its counter is unsigned"
            why = why if obstacle is None else f"loads may not move over {obstacle.name}"
            because = None if obstacle is None else site_of(obstacle)
            remarks.add(NotPipelined(span_of(loop), "the loop", why, because))
        return True
    widen_behind_memory(loads)
    stored = stored_roots(loop)
    done, why_not = copy_directly(loop, loads, stages, stored, machine, remarks)
    if done:
        return True
    chosen: list[CopiedLoad] = []
    held: list[tt.LoadOp] = []
    ways = [_ahead(loop, op, machine) for op in loads]
    room = machine.shared_bytes - _spare(loop, ways, machine)
    for op, ahead in zip(loads, ways, strict=True):
        if not isinstance(ahead, str):
            if depends_on_stores(loop, op, stored, set(loads)):
                ahead = "it may see what the loop stores, or is looked up in a tile that is loaded"
            elif ahead is None:
                held.append(op)
                continue
            elif ahead.bytes > room:
                ahead = f"shared memory has no room for a buffer of {ahead.bytes} bytes"
            else:
                room -= ahead.bytes
                chosen.append(ahead)
                continue
        remarks.add(NotPipelined(span_of(op), tile_text(op.result.type), ahead))
    if chosen:
        copies = tuple(Copy(tile_text(c.load.result.type), span_of(c.load), 1, c.bytes) for c in chosen)
        fewer = Pipelined.IN_REGISTERS + (f" ({why_not})" if why_not else "")
        remarks.add(Pipelined(span_of(loop), 2, stages, copies, sum(c.bytes for c in chosen), fewer))
    for op in held:
        why = "threads carry it to the next iteration, as it is computed with before a product takes it"
        remarks.add(Prefetched(span_of(op), tile_text(op.result.type), why))
    if chosen or held:
        LoopAhead(loop, chosen, held, machine).rewrite()
    return True


def _spare(loop: scf.ForOp, ways: Sequence[CopiedLoad | str | None], machine: Machine) -> int:
    """Bytes of shared memory to leave to others: none where a loop only loads operands and multiplies them.

    Two operands of 32 KiB are all that gfx942 has. A loop that also reduces, or converts anything but those operands,
    needs memory for it while they are there. Where sums take most registers of a lane, one operand is not loaded ahead:
    a product of 256 x 256 by 256 lanes spills on RDNA, and more with both ahead.
    """
    operands = [way for way in ways if isinstance(way, CopiedLoad)]
    if len(operands) < len(ways) or sum(c.bytes for c in operands) > machine.shared_bytes:
        return SPARE_BYTES
    tiles = {c.load.result for c in operands}
    for op in walk(loop.body.block):
        source = op.operands[0] if isinstance(op, ttg.ConvertLayoutOp | tt.TransOp) else None
        if isinstance(op, tt.DotOp) and layout_of(op.results[0].type).in_dims["register"] > MOST_SUMS:
            return SPARE_BYTES
        if isinstance(op, tt.TransOp) and source in tiles:
            tiles.add(op.results[0])
        elif source not in tiles and not (isinstance(op, tt.LoadOp | tt.DotOp | scf.YieldOp) or shareable(op)):
            return SPARE_BYTES
    root = loop.parent_op()
    while root is not None and root.name != "tt.func":
        root = root.parent_op()
    others = root is None or any(isinstance(op, ttg.LocalAllocOp) for op in walk(root))
    return SPARE_BYTES if others else 0


def _ahead(loop: scf.ForOp, op: tt.LoadOp, machine: Machine) -> CopiedLoad | str | None:
    """How a loaded tile lies in shared memory, None for one that registers hold; or why it is not loaded ahead."""
    if not is_multiplied(op.result):
        return "it is no operand of a product, and only those are loaded ahead"
    if slice_of(loop, op.operands) is None:
        return "its addresses cannot be computed iterations ahead"
    wanted = next(wanted_layouts(op.result), None)
    shape, bits = shape_of(op.result.type), bit_width(element_of(op.result.type))
    if wanted is None or len(shape) < 2:  # a row that is computed with is no operand, whatever layout it is wanted in
        words = layout_of(op.result.type).in_dims["register"] * max(8, bits) // 32
        return None if words <= HELD_WORDS else f"it is computed with first, and {words} registers would be held"
    layout = memory_between(layout_of(op.result.type), wanted, shape, max(8, bits), machine)
    return "shared memory cannot have it as the product takes it" if layout is None else CopiedLoad(op, layout)


def memory_between(
    stored: LinearLayout, loaded: LinearLayout, shape: Sequence[int], bits: int, machine: Machine
) -> Memory | None:
    """How a tile lies in shared memory that is stored in one layout and loaded in another.

    As a conversion has it, where that goes through memory once: nobody has conflicts that can be avoided.
    """
    stages = plan_conversion(stored, loaded, shape, bits, machine).stages
    trip = stages[0].how if len(stages) == 1 else None
    if not isinstance(trip, Trip) or trip.repetitions > 1:
        return memory_for(shape, bits, [stored], loaded, machine)
    columns = trip.store_map.columns
    place, elements = f2.Echelon(columns), stored.columns
    at = [f2.multiply(elements, place.coefficients(1 << i) or 0) for i in range(len(trip.memory))]
    return SharedLinearLayout([stored._coordinates(x) for x in at])


class LoopAhead(PipelinedLoop):
    """A loop whose loads are begun one iteration ahead, each with one buffer."""

    def __init__(
        self, loop: scf.ForOp, copied: Sequence[CopiedLoad], held: Sequence[tt.LoadOp], machine: Machine
    ) -> None:
        super().__init__(loop, copied, 2, (), machine, by_twos=False)
        self.held = held
        self.all = [*(c.load for c in copied), *held]
        part = slice_of(loop, [x for load in self.all for x in load.operands])  # with what masks have behind them
        assert part is not None
        self.slice = part

    def rewrite(self) -> str:
        b = Builder.before(self.loop)
        for c in self.copied:
            self.buffers.append(b.create(ttg.LocalAllocOp, (), (c.memory(),)).result)
        states = {i: self.loop.operands[3 + i] for i in self.slice.carried}
        tiles, states = self.loads(b, self.loop.operands[0], states, 0)
        self.store(b, tiles)
        carried = dict(zip(range(-len(self.held), 0), tiles[len(self.copied) :], strict=True))
        _, _, ahead = self.carry(b, {**states, **carried}, by_twos=False)
        body = self.loop.body.block
        first, end = body.first_op, body.last_op
        assert first is not None and end is not None
        near = Builder.before(first)
        index = near.binary(arith.AddiOp, body.args[0], self.loop.operands[2])
        tiles, after = self.loads(near, index, ahead, 1)
        for c, buffer in zip(self.copied, self.buffers, strict=True):
            read_buffer(c.load.result, buffer)
            remove(c.load)
        for k, load in zip(carried, self.held, strict=True):
            load.result.replace_all_uses_with(ahead[k])
            remove(load)
        self.store(Builder.before(end), tiles)
        end.operands = [*end.operands, *after.values(), *tiles[len(self.copied) :]]
        return ""

    def loads(
        self, b: Builder, index: SSAValue, states: Mapping[int, SSAValue], iteration: int
    ) -> tuple[list[SSAValue], dict[int, SSAValue]]:
        """The tiles of an iteration that may not be there; what is carried into the one after it."""
        exists = is_there(self.loop, b, iteration)
        values, after = self.slice.clone(b, index, states, exists)
        tiles: list[SSAValue] = []
        for op in self.all:
            load = masked_load(b, op, [values.get(x, x) for x in op.operands], exists)
            load.location = op.location
            tiles.append(load.results[0])
        return tiles, after

    def store(self, b: Builder, tiles: Sequence[SSAValue]) -> None:
        """Tiles to their buffers."""
        for c, tile, buffer in zip(self.copied, tiles, self.buffers, strict=False):
            b.create(ttg.LocalStoreOp, (tile, buffer)).location = c.load.location
