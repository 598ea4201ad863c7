"""Copy operands of a loop's products directly into shared memory, iterations ahead.

    scf.for %i iter_args(%p = %init) {                    three stages, three buffers for each operand:
      %a = tt.load %p                                     wait for the copies of this iteration; a barrier
      %x = ttg.convert_layout %a              becomes     %x = ttg.local_load %buffers[%slot]
      ... tt.dot %x, ...                                  begin the copies of iteration %i + 2, to the previous slot
    }                                                     ... tt.dot %x, ...

This is `pipelined_loop.py` for processors where a lane copies 16 bytes at once, plus the choice of the addresses that
each lane reads. A wave fills one run of LDS, lane after lane, so the layout of the buffer says which elements a lane
copies, and addresses are computed in that layout. Rows of 64 f16 are 8 chunks of 16 bytes. Read as an operand, lane l
takes chunk c of row l: without a swizzle all rows would be in two groups of banks. With chunk c of row r at place c xor
r mod 8,

    lane    0 .. 7     8 .. 15    16 ..
    row        0          1         2           lane l copies chunk (l mod 8) xor (row mod 8) of row l / 8,
    chunk   0 .. 7     1 0 3 2 .. 2 3 0 1 ..    and rows are read from global memory whole

This is done for a loop if all operands that it loads qualify: their rows run along the summed dimension, a lane has 16
contiguous bytes under one mask, and masked elements are 0. Otherwise, its loads are begun ahead through registers
(`load_ahead.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, SSAValue

from weft.analysis import AxisFacts
from weft.base.remarks import Copy, NotPipelined, Pipelined, RemarkCollector
from weft.ir import (
    Builder,
    bit_width,
    element_of,
    i32_attr,
    int_value,
    is_tensor,
    segments,
    shape_of,
    span_of,
    tile_text,
    tt,
)  # fmt: skip
from weft.ir.gpu import async_token, laid_tensor, layout_of, name_of, ttg
from weft.layouts import BlockedLayout, LinearLayout, SwizzledSharedLayout, infer
from weft.layouts.plan import plan_local_access
from weft.machines import Machine
from weft.targets.amd.transposed import transposed_read

from ..buffered_tiles import is_multiplied
from ..effects import shareable
from ..loop_memory import SPARE_BYTES
from ..loop_slices import slice_of
from ..pipeline_loads import depends_on_stores, is_zero
from ..pipelined_loop import CopiedLoad, PipelinedLoop, inputs_of
from ..removal import remade, remove
from .operand_buffers import Memory, read_buffer, wanted_layouts

SWIZZLES = [(phase, most) for phase in (1, 2, 4, 8) for most in (16, 8, 4, 2, 1)]


@dataclass(frozen=True)
class DirectLoad(CopiedLoad):
    """A load that becomes copies: what its buffers are, and the layout of its addresses."""

    addresses: LinearLayout


def copy_directly(
    loop: scf.ForOp,
    loads: Sequence[tt.LoadOp],
    stages: int,
    stored: Set[SSAValue | None],
    machine: Machine,
    remarks: RemarkCollector,
) -> tuple[bool, str]:
    """Rewrite a loop, of which `stored` are the arguments that it stores through. Whether that was done, or why not."""
    operands = [op for op in loads if is_multiplied(op.result)]
    if machine.vector_bytes not in machine.async_copies or not operands:
        return False, ""
    copied: list[DirectLoad] = []
    for op in operands:
        found = direct_load(loop, op, machine)
        if not isinstance(found, str) and depends_on_stores(loop, op, stored, set(loads)):
            found = "it may see what the loop stores, or is looked up in a tile that is loaded"
        if isinstance(found, str):
            return False, f"{tile_text(op.result.type)} is not copied: {found}"
        copied.append(found)
    each = sum(c.bytes for c in copied)
    most = min(stages, (machine.shared_bytes - SPARE_BYTES) // each)
    if most < 2:
        return False, f"shared memory has no room for 2 buffers of {each} bytes"
    for op in loads:
        if op not in operands:
            why = "it is no operand of a product, and only those are copied ahead"
            remarks.add(NotPipelined(span_of(op), tile_text(op.result.type), why))
    copies = tuple(Copy(tile_text(c.load.result.type), span_of(c.load), most, c.bytes) for c in copied)
    fewer = "more do not fit into shared memory"
    remarks.add(Pipelined(span_of(loop), most, stages, copies, most * each, fewer if most < stages else ""))
    DirectLoop(loop, copied, most, machine).rewrite()
    return True, ""


def direct_load(loop: scf.ForOp, op: tt.LoadOp, machine: Machine) -> DirectLoad | str:
    """How a tile is copied, or why it is not, in words."""
    shape, bits = shape_of(op.result.type), bit_width(element_of(op.result.type))
    layout = name_of(op.ptr.type)
    if op.other is not None and not is_zero(op.other):
        return "its value where the mask is false is not 0"
    if bits < 8 or len(shape) != 2 or not isinstance(layout, BlockedLayout):
        return "it does not have two dimensions"
    along, vector = layout.order[0], machine.vector_bytes * 8 // bits
    warps = layout_of(op.result.type).in_dims["warp"]
    facts = AxisFacts()
    run = min(facts.of(op.ptr).contiguity[along], facts.of(op.ptr).divisibility[along] * 8 // bits, shape[along])
    if op.mask is not None:
        run = min(run, facts.of(op.mask).constancy[along])
    if run < vector:
        return f"a lane has {run * bits // 8} bytes in a row, and copies 16"
    if shape[0] * shape[1] < vector * machine.threads(warps):
        return "it has fewer than 16 bytes for each thread"
    wanted = next(wanted_layouts(op.result), None)
    if wanted is None:
        return "it is computed with before a product takes it"
    memory = _memory(wanted, shape, bits, along, vector, machine)
    if memory is None:
        return "no instruction reads it without conflicts as the product takes it"
    addresses = _copied_by(memory.to_linear(list(shape)), vector, machine.lanes, warps)
    if not all(_relayable(loop, x) for x in inputs_of(op)) or slice_of(loop, inputs_of(op)) is None:
        return "its addresses cannot be computed iterations ahead in another layout"
    return DirectLoad(op, memory, addresses)


def _memory(
    wanted: LinearLayout, shape: Sequence[int], bits: int, along: int, vector: int, machine: Machine
) -> Memory | None:
    """Memory from which an operand is read without conflicts, and that chunks of 16 bytes are copied to.

    Rows that do not run along the summed dimension are read by instructions that transpose.
    """
    order, transposing = [along, 1 - along], None
    for phase, most in SWIZZLES:
        for each in (vector, 2 * vector, 4 * vector):
            if most * each > shape[along]:
                continue
            memory = SwizzledSharedLayout(each, phase, most, order)
            access = plan_local_access(wanted, memory, shape, bits, machine).access
            if access.bytes >= 8 and not access.excess:
                return memory
            read = transposed_read(wanted, memory.to_linear(list(shape)), bits, machine)
            if transposing is None and read is not None and read.wavefronts == read.ideal:
                transposing = memory
    return transposing


def _copied_by(memory: LinearLayout, vector: int, lanes: int, warps: int) -> LinearLayout:
    """Which elements are a lane's where lanes and then warps fill memory, vector by vector."""
    bases = memory.bases["offset"]
    sizes = {"register": vector.bit_length() - 1, "lane": lanes.bit_length() - 1, "warp": warps.bit_length() - 1}
    parts: dict[str, list[tuple[int, ...]]] = {}
    first = 0
    for name, size in sizes.items():
        parts[name] = list(bases[first : first + size])
        first += size
    parts["register"] += bases[first:]
    parts["block"] = []
    return LinearLayout.from_bases(parts, memory.out_dims)


# -- addresses in another layout -------------------------------------------------------------------------------------


def _relayable(loop: scf.ForOp, value: SSAValue) -> bool:
    """Whether a tile can be computed in any layout, or moved to it in front of the loop."""
    if not is_tensor(value.type):
        return True
    op = value.owner
    if isinstance(op, Block):
        return op is not loop.body.block
    if not loop.is_ancestor(op):
        return True
    if op.parent is not loop.body.block or not shareable(op) or op.name in ("tt.trans", "tt.reshape"):
        return False
    return all(_relayable(loop, x) for x in op.operands)


class _Anew:
    """Tiles computed once more, in other layouts."""

    def __init__(self, loop: scf.ForOp) -> None:
        self.loop = loop
        self.made: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}

    def get(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        """A tile in a layout."""
        if not is_tensor(value.type):
            return value
        tile = self.made.get((value, layout))
        if tile is None:
            tile = self.made[value, layout] = self._computed(value, layout)
        return tile

    def _computed(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        op, shape = value.owner, list(shape_of(value.type))
        type = laid_tensor(shape, element_of(value.type), layout)
        if isinstance(op, Block) or not shareable(op) or op.name in ("tt.trans", "tt.reshape"):
            b = Builder.before(self.loop) if isinstance(op, Block) else Builder.after(op)
            return b.create(ttg.ConvertLayoutOp, (value,), (type,)).results[0]
        operands = [self.get(x, _source(op, x, layout)) if is_tensor(x.type) else x for x in op.operands]
        copy = remade(op, operands, [laid_tensor(shape, element_of(r.type), layout) for r in op.results])
        number = copy.properties.get("value")
        if isinstance(number, DenseIntOrFPElementsAttr):  # it has the type too
            copy.properties["value"] = DenseIntOrFPElementsAttr(copy.results[0].type, number.data)  # type: ignore[arg-type]
        Builder.after(op).insert(copy)
        return copy.results[list(op.results).index(value)]  # type: ignore[arg-type]


def _source(op: Operation, operand: SSAValue, layout: LinearLayout) -> LinearLayout:
    """The layout of an operand for a result in a layout."""
    if op.name == "tt.expand_dims":
        return infer.expand_dims_source(layout, int_value(op.properties["axis"]))
    return infer.broadcast_source(layout, shape_of(operand.type)) if op.name == "tt.broadcast" else layout


class DirectLoop(PipelinedLoop):
    """A loop whose operands are copied iterations ahead, with as many buffers as stages."""

    def __init__(self, loop: scf.ForOp, copied: Sequence[DirectLoad], stages: int, machine: Machine) -> None:
        anew = _Anew(loop)
        for c in copied:
            c.load.operands = [anew.get(x, c.addresses) for x in inputs_of(c.load)]
            c.load.properties["operandSegmentSizes"] = segments(1, len(c.load.operands) - 1, 0)
        super().__init__(loop, copied, stages, [stages] * len(copied), machine, by_twos=False)

    def landed(self, first: Operation, slots: Mapping[int, SSAValue]) -> Operation:
        """Wait for the copies of this iteration, and let what used the loads read their slot."""
        b = Builder.before(first)
        wait: Operation = b.create(ttg.AsyncWaitOp, (), (async_token,), {"num": i32_attr(self.stages - 2)})
        each, slot = zip(self.copied, self.buffers, strict=True), slots[self.stages]
        tiles = [b.create(ttg.MemDescIndexOp, (buffers, slot), (c.memory(),)).result for c, buffers in each]
        for c, tile in zip(self.copied, tiles, strict=True):
            read_buffer(c.load.result, tile)
            remove(c.load)
        return wait
