"""Begin loads for products iterations ahead, as asynchronous copies into shared memory.

    scf.for %i = %lo to %hi step %st iter_args(%p = %init) {
      %a = tt.load %p
      %m = ttg.local_alloc %a                              or a conversion to what mma.sync takes
      ... ttng.warp_group_dot %m, ...
      %next = tt.addptr %p, %step
      scf.yield %next
    }
becomes, with three stages,
    %buffers = ttg.local_alloc : () -> !ttg.memdesc<3x...>
    copies of iterations 0 and 1, a group each                  masked by %lo + k * %st < %hi
    scf.for %i = %lo to %hi step %st iter_args(%slot = 0, %ahead = %init + 2 * %step) {
      ttg.async_wait {num = 1}                                  the group of this iteration has landed
      %m = ttg.memdesc_index %buffers[%slot]
      copies of iteration %i + 2 to the slot before, a group      masked by %i + 2 * %st < %hi
      ... ttng.warp_group_dot %m, ...
      scf.yield ...
    }
    ttg.async_wait {num = 0}

The copies' addresses are the loop's own, computed again for the later iteration (loop_slices.py). If products are in
flight across iterations (overlap_products.py), the copies come after the wait for the previous product, which has then
read that slot.

If addresses depend on numbers that the loop loads, such as the number of a page, the number for the later iteration is
loaded at the beginning of an iteration, and the copies come at its end.

A load stays as it is where a copy could not do the same: masks with another value than zero, less than 4 bytes in a
row, addresses or masks from tiles that the loop loads, a pointer argument through which the loop stores or executes
atomics. A loop with barriers, volatile loads, or atomics whose results it uses stays as a whole, because its loads may
depend on these. If shared memory is too small, there are fewer stages; if it is too small for two, operands that the
loop stores have one buffer instead of two, and then some loads stay.

If an iteration loads everything that was copied for it into registers before it computes (operands of mma.sync, or
values from which they are computed), the copies may come after that, to the slot that it has just read: one buffer
fewer, and one barrier more. This is done if memory is too small for all stages and there are fewer than four, or if it
is too small for a second block. If operands are computed, it is also done if few warps run and another block would have
room: a product of 16 rows by weights of 4 bits with 512 programs takes 21 us on an H200 instead of 25.

Where an iteration uses the results of all its products, the copies of a tile may come after the product that reads it:
one buffer fewer of that tile, if that makes room for another block (early_free.py).

Number of stages: that of the loop (`tl.range(..., num_stages=n)`), else of the kernel; 1 leaves loads where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from math import copysign

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts, ends_in_runs, limit_of_run
from weft.base import each_once
from weft.base.remarks import NO_REMARKS, Copy, NotPipelined, Pipelined, ProductOverlap, RemarkCollector
from weft.ir.gpu import layout_of, name_of
from weft.ir.gpu.products import OperandFenceOp, SharedProductOp
from weft.ir.gpu.ttg import ConvertLayoutOp, LocalAllocOp
from weft.layouts.plan import vector_width
from weft.machines import Machine
from weft.ops.table import ROWS

from .buffer_counts import FEW_WARPS, buffer_counts
from .buffered_tiles import buffer_layout, is_multiplied, is_thin
from .copy_engine import CopyEngine
from .early_free import early_free
from .early_landing import lands_early, warps_by_registers
from .loop_memory import SPARE_BYTES, moved_bytes, other_bytes, peak_bytes, stores_anew
from .loop_slices import slice_of
from .overlap_products import hoist_operands, stored_operands, words_of, words_of_results
from .pipelined_loop import CopiedLoad, PipelinedLoop, inputs_of
from .pointer_roots import root_of
from .store_operands import is_single
from .unroll_loops import known_iterations
from .vendor import passes_of

ENOUGH_STAGES = 4
HELD_REGISTERS = 216
"""What an iteration may hold of its operands and results, where the next ones come to where the operands were."""
EFFECTS = ("tt.atomic_cas", "tt.atomic_load", "tt.atomic_poll", "tt.call", "tt.assert", "weft.check")
STAYS_ZERO = frozenset(("tt.splat", "tt.broadcast", *(name for name, row in ROWS.items() if row.keeps_zero)))
OF_THE_BLOCK = ("ttg.convert_layout", "ttg.local_alloc", "ttg.local_load", "ttg.memdesc_trans")


def pipeline_loads(module: ModuleOp, machine: Machine, stages: int, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite the innermost loops of a module of layout IR for a machine."""
    warps = ir.int_value(module.attributes["ttg.num-warps"]) if "ttg.num-warps" in module.attributes else 4
    adds = passes_of(machine)
    for op in ir.find(module, scf.ForOp, scf.WhileOp):
        if op.parent is None:  # it was divided with another
            continue
        is_innermost = ir.find(op, scf.ForOp, scf.WhileOp) == [op]
        if not isinstance(op, scf.ForOp) or not is_innermost:
            why = "another loop stands in it" if not is_innermost else "it is a `while` loop that does not count"
            adds.tell_whole(op, why, machine, remarks)
        else:
            wanted = ir.int_value(op.attributes["tt.num_stages"]) if "tt.num_stages" in op.attributes else stages
            if adds.load_ahead(op, wanted, machine, remarks):
                continue
            if machine.async_copies:
                hoist_operands(op)
            _pipeline(op, wanted, machine, warps, remarks)


def _obstacle(loop: scf.ForOp, stages: int, machine: Machine) -> tuple[str, Operation | None] | None:
    """Why no load of a loop can be copied ahead, and the operation that is in the way; None if nothing is."""
    if not machine.async_copies:
        return f"{machine.name} has no asynchronous copies", None
    if stages < 2:
        return "num_stages is 1", None
    if "unsignedCmp" in loop.properties:
        return "its counter is unsigned", None
    op = next((op for op in ir.walk(loop.body.block) if has_effects(op)), None)
    return None if op is None else (f"loads may not move over {op.name}", op)


def _pipeline(loop: scf.ForOp, stages: int, machine: Machine, warps: int, remarks: RemarkCollector) -> None:
    tell = _Telling(loop, stages, remarks)
    obstacle = _obstacle(loop, stages, machine)
    if obstacle is not None:
        tell.whole(*obstacle)
        return
    facts, iterations = AxisFacts(), known_iterations(loop)
    stored = stored_roots(loop)
    candidates: list[CopiedLoad] = []
    for op in loop.body.block.ops:
        if isinstance(op, ir.tt.LoadOp) and ir.is_tensor(op.ptr.type):
            copied = _copied(loop, op, facts, machine)
            if isinstance(copied, CopiedLoad):
                candidates.append(copied)
            else:
                tell.stays(op, copied)
    loads = {c.load for c in candidates}
    for c in list(candidates):
        if depends_on_stores(loop, c.load, stored, loads):
            candidates.remove(c)
            tell.stays(c.load, "it may see what the loop stores, or is looked up in a tile that is copied")
    for by_twos, chosen in _ways(loop, candidates):
        others = other_bytes(loop, chosen, by_twos) + moved_bytes(loop, chosen, machine)
        used, stage_bytes, limit = SPARE_BYTES + others, sum(c.bytes for c in chosen), machine.shared_bytes
        room = (limit - used) // stage_bytes
        if iterations is not None and iterations < stages and iterations <= room:
            counts = [iterations] * len(chosen)
            tell.copied(candidates, chosen, iterations + 1, counts, iterations + 1)
            engine = _copy_engine(loop, chosen, iterations, machine)
            tell.overlap(PipelinedLoop(loop, chosen, iterations + 1, counts, machine, False, engine=engine).rewrite())
            return
        few = 0 < room < min(stages, ENOUGH_STAGES)
        warps_of = partial(_warps_at_a_time, machine, warps, others)
        held = _held_words(loop, chosen)
        if held is not None and (
            few
            or _is_crowded(limit, used, stage_bytes, stages)
            or (
                any(map(_is_computed_with, chosen))
                and _is_worth_a_barrier(stages, stage_bytes, warps_of, warps_by_registers(machine, 0, warps, held))
            )
        ):
            most = min(stages, room + 1)
            counts = [most - 1] * len(chosen)
            tell.copied(candidates, chosen, most, counts, most)
            tell.overlap(PipelinedLoop(loop, chosen, most, counts, machine, by_twos, in_registers=True).rewrite())
            return
        most = min(stages, room)
        if most > 1:
            twice = by_twos and stores_anew(loop, [c.load.result for c in chosen])
            tiles = [(c.load.result, c.bytes) for c in chosen]
            by_registers = warps_by_registers(machine, stage_bytes, warps, words_of_results(loop))
            most, counts = buffer_counts(loop, tiles, most, twice, warps_of, room, by_registers)
            can_begin_late = not any(_looks_up(loop, c) for c in chosen)  # whose copies come at the iteration's end
            blocks_of = partial(_blocks_at_a_time, machine, warps, by_registers, peak_bytes(loop, chosen, machine))
            free = early_free(loop, tiles, counts, most, blocks_of) if can_begin_late else {}
            counts = [n - (c.load.result in free) for c, n in zip(chosen, counts, strict=True)]
            tell.copied(candidates, chosen, most, counts, min(stages, room))
            engine = _copy_engine(loop, chosen, max(counts), machine)
            at_a_time = warps_of(sum(n * c.bytes for c, n in zip(chosen, counts, strict=True)))
            blocks, threads = at_a_time // warps, machine.threads(warps)
            registers = min(machine.thread_registers, machine.registers // (threads * max(1, blocks)))
            early = lands_early(machine, most, stage_bytes, warps, min(at_a_time, by_registers))
            way = PipelinedLoop(
                loop, chosen, most, counts, machine, twice, False, engine, blocks, registers, early, free
            )
            tell.overlap(way.rewrite())
            return
    tell.copied(candidates, (), 1, (), 1)


Loads = Sequence[CopiedLoad]


def _copy_engine(loop: scf.ForOp, copied: Loads, count: int, machine: Machine) -> CopyEngine | None:
    """What copies tiles in the place of the threads, into at most so many buffers of each."""
    return passes_of(machine).copy_engine(loop, [c.load for c in copied], count, machine)


class _Telling:
    """Remarks about one loop, which is as it was."""

    def __init__(self, loop: scf.ForOp, stages: int, remarks: RemarkCollector) -> None:
        self.loop, self.stages, self.remarks = loop, stages, remarks

    def whole(self, reason: str, because: Operation | None) -> None:
        """Nothing of the loop is copied ahead, if it loads tiles at all."""
        loads = [op for op in self.loop.body.block.ops if isinstance(op, ir.tt.LoadOp) and ir.is_tensor(op.ptr.type)]
        if self.remarks and loads:
            site = ir.site_of(because) if because is not None else None
            self.remarks.add(NotPipelined(ir.span_of(self.loop), "the loop", reason, site))

    def overlap(self, how: str) -> None:
        """How far products go on, if there are any that may."""
        if how:
            self.remarks.add(ProductOverlap(ir.span_of(self.loop), "between iterations", how))

    def stays(self, load: ir.tt.LoadOp, reason: str) -> None:
        """A load is not copied ahead."""
        if self.remarks:
            self.remarks.add(NotPipelined(ir.span_of(load), ir.tile_text(load.result.type), reason))

    def copied(
        self,
        candidates: Sequence[CopiedLoad],
        chosen: Sequence[CopiedLoad],
        stages: int,
        counts: Sequence[int],
        fit: int,
    ) -> None:
        """Some of the loads that may be copied ahead are, into so many buffers each; `fit` stages have room."""
        for c in candidates if self.remarks else ():
            if c not in chosen:
                self.stays(c.load, f"shared memory has no room for 2 buffers of {c.bytes} bytes")
        if self.remarks and chosen:
            pairs = list(zip(chosen, counts, strict=True))
            copies = tuple(Copy(ir.tile_text(c.load.result.type), ir.span_of(c.load), n, c.bytes) for c, n in pairs)
            total = sum(c.bytes * n for c, n in pairs)
            fewer = "more do not fit into shared memory" if stages == fit else "one less makes room for another block"
            iterations = known_iterations(self.loop)
            if iterations is not None and iterations < stages:
                fewer = f"the loop has {iterations} iterations"
            told = (stages, self.stages, copies, total, fewer if stages < self.stages else "")
            self.remarks.add(Pipelined(ir.span_of(self.loop), *told))


def _warps_at_a_time(machine: Machine, warps: int, others: int, bytes: int) -> int:
    """How many warps of blocks with so much shared memory a multiprocessor runs, whatever registers they have."""
    return machine.blocks_at_a_time(machine.threads(warps), others + bytes) * warps


def _blocks_at_a_time(machine: Machine, warps: int, by_registers: int, others: int, bytes: int) -> int:
    """How many blocks with so much shared memory a multiprocessor runs, and registers for so many warps."""
    return min(by_registers, _warps_at_a_time(machine, warps, others, bytes)) // warps


def _looks_up(loop: scf.ForOp, copied: CopiedLoad) -> bool:
    """Whether addresses of a copy depend on what an iteration loads."""
    needed = slice_of(loop, inputs_of(copied.load))
    return needed is not None and bool(needed.lookups)


def _is_crowded(limit: int, used: int, stage_bytes: int, stages: int) -> bool:
    """Whether a buffer less makes room for another block, where there is one only."""
    return 2 * (used + stages * stage_bytes) > limit >= 2 * (used + (stages - 1) * stage_bytes)


def _is_worth_a_barrier(stages: int, bytes: int, warps: Callable[[int], int], by_registers: int) -> bool:
    """Whether few warps run at a time with `bytes` in each of so many buffers, and more with a buffer less; `warps`
    says how many run with so many bytes, `by_registers` how many have registers."""
    now, then = (min(by_registers, warps(bytes * count)) for count in (stages, stages - 1))
    return stages > 2 and now < FEW_WARPS and then > now


def _is_computed_with(copied: CopiedLoad) -> bool:
    """Whether operands are computed of a copied tile, which is in registers then before the product begins."""
    moves = ConvertLayoutOp | ir.tt.TransOp | ir.tt.DotOp | ir.tt.DotScaledOp
    todo = [copied.load.result]
    for value in each_once(todo):
        for use in value.uses:
            if not isinstance(use.operation, moves):
                return True
            if isinstance(use.operation, ConvertLayoutOp | ir.tt.TransOp):
                todo += use.operation.results
    return False


def _held_words(loop: scf.ForOp, copied: Sequence[CopiedLoad]) -> int | None:
    """The registers for results and for all that was copied for an iteration, if it has that there before it computes;
    None if not, or if they are too many."""
    body, registers = loop.body.block, 0
    for op in ir.walk(body):
        if isinstance(op, SharedProductOp):
            return None
        if isinstance(op, ir.tt.DotOp | ir.tt.DotScaledOp):
            registers += words_of(op.d)
    for c in copied:
        todo: list[SSAValue] = [c.load.result]
        while todo:
            value = todo.pop()
            for op in {use.operation for use in value.uses}:
                moved = isinstance(op, ConvertLayoutOp)
                if op.parent is not body or isinstance(op, LocalAllocOp) or (moved and is_single(op.results[0].type)):
                    return None
                if isinstance(op, ir.tt.TransOp):
                    todo.append(op.results[0])
                else:
                    registers += words_of(op.results[0] if moved else value)
    return registers if registers <= HELD_REGISTERS else None


def _ways(loop: scf.ForOp, copied: Sequence[CopiedLoad]) -> Iterator[tuple[bool, Sequence[CopiedLoad]]]:
    """Which loads to copy, and whether stored operands have two buffers: what needs the most memory first.

    Of the loads, those that a product takes from memory as they are stay the longest, then the smaller ones.
    """
    direct = [any(isinstance(use.operation, LocalAllocOp) for use in c.load.result.uses) for c in copied]
    ranked = [c for _, c in sorted(zip(direct, copied, strict=True), key=lambda x: (not x[0], x[1].bytes))]
    for count in range(len(ranked), 0, -1):
        chosen = [c for c in copied if c in ranked[:count]]
        yield True, chosen
        if stored_operands(loop):
            yield False, chosen


def stored_roots(loop: scf.ForOp) -> set[SSAValue | None]:
    """The arguments through which a loop stores; None among them where one is not known."""
    writes = ir.tt.StoreOp | ir.tt.AtomicRMWOp | ir.tt.AtomicStoreOp
    return {root_of(op.ptr) for op in ir.walk(loop.body.block) if isinstance(op, writes)}


def depends_on_stores(
    loop: scf.ForOp, op: ir.tt.LoadOp, stored: Set[SSAValue | None], copied: Set[ir.tt.LoadOp]
) -> bool:
    """Whether a load, or what it looks up, may see what the loop stores, or is looked up in a tile that is copied."""
    needed = slice_of(loop, inputs_of(op))
    assert needed is not None
    if not copied.isdisjoint(needed.lookups):
        return True
    read = {root_of(x.ptr) for x in (op, *needed.lookups)}
    return bool(stored) and (None in stored or None in read or not read.isdisjoint(stored))


def has_effects(op: Operation) -> bool:
    """Whether loads may not be moved over an operation; an atomic one that tells nothing of others is a store."""
    if isinstance(op, ir.tt.AtomicRMWOp):
        return op.result.first_use is not None
    if isinstance(op, ir.tt.ElementwiseInlineAsmOp):
        return not ir.int_value(op.properties["pure"])
    if isinstance(op, ir.tt.LoadOp):  # no load may move over a volatile one
        volatile = op.properties.get("isVolatile")
        return volatile is not None and bool(ir.splat_value(volatile))
    is_ordinary = op.name in OF_THE_BLOCK or op.name.startswith(("arith.", "math.", "scf.", "tt."))
    is_ordinary = is_ordinary or isinstance(op, OperandFenceOp | SharedProductOp)
    return not is_ordinary or op.name in EFFECTS


# -- which loads ------------------------------------------------------------------------------------------------------


def _copied(loop: scf.ForOp, op: ir.tt.LoadOp, facts: AxisFacts, machine: Machine) -> CopiedLoad | str:
    """What a load of a tile becomes, or why it stays."""
    if not is_multiplied(op.result):
        return "it is no operand of a product, and only those are copied ahead"
    if op.other is not None and not is_zero(op.other):
        return "its value where the mask is false is not 0, and a copy can only write 0 there"
    bits = ir.bit_width(ir.element_of(op.result.type))
    if bits not in (8, 16, 32):
        return f"its elements have {bits} bits, and copies are for 8, 16 and 32"
    layout = buffer_layout(op.result, name_of(op.ptr.type), machine)
    if layout is None:
        return "copies cannot write it to shared memory in the layout that its product needs"
    axis, run = _run(op, bits, facts, machine.partial_copies)
    if run * bits < 32:
        limit = limit_of_run(facts, op.ptr, op.mask, axis, 32 // bits, bits // 8)
        text = f"a copy takes 4 bytes or more in a row, and a thread has {run * bits // 8} along dimension {axis}"
        return text if limit is None else f"{text}: {limit.fact}"
    if slice_of(loop, inputs_of(op)) is None:
        return "its addresses cannot be computed iterations ahead"
    return CopiedLoad(op, layout)


def is_zero(value: SSAValue) -> bool:
    """Whether a tile is known to be 0 everywhere, without a sign."""
    op = value.owner
    if isinstance(op, Operation) and op.name in STAYS_ZERO:
        return is_zero(op.operands[0])
    number = ir.splat_value(op.value) if isinstance(op, arith.ConstantOp) else None
    return number is not None and number == 0 and copysign(1, number) > 0


def _run(op: ir.tt.LoadOp, bits: int, facts: AxisFacts, partial: bool) -> tuple[int, int]:
    """The axis along which copies take elements in a row, and how many each can take; 0 where another has more.
    With `partial` a mask may end between them."""
    shape, size = ir.shape_of(op.result.type), bits // 8
    contiguity, divisibility = facts.of(op.ptr).contiguity, facts.of(op.ptr).divisibility
    axis = max(range(len(shape)), key=lambda d: shape[d])
    if not is_thin(shape):
        axis = name_of(op.ptr.type).order[0]  # type: ignore[union-attr]
    order = [axis, *(d for d in range(len(shape)) if d != axis)]
    width = vector_width(layout_of(op.result.type), shape, bits, order)
    run = min(contiguity[axis], divisibility[axis] // size, width)
    if op.mask is not None and not (partial and ends_in_runs(facts, op.mask, axis, run)):
        run = min(run, facts.of(op.mask).constancy[axis])
    return axis, run if contiguity[axis] >= max(contiguity) else 0
