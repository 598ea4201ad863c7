"""Load operands of products and store results by 2D blocks of memory, without shared memory in between.

    scf.for %k iter_args(%p = %init) {
      %a = tt.load %p, %mask, 0
      %x = ttg.convert_layout %a : ... -> #ttg.dot_op<{parent = #dpas}>
      ... tt.dot %x, ...
becomes
    %fits = ...                                          what the hardware wants of the surface (surfaces.py)
    scf.if %fits {
      prefetches of iterations 0 and 1
      scf.for %k {
        prefetches of iteration %k + 2                   with three stages
        %x = ttig.block_load %base[%width, %height, %pitch][%x, %y]
        ... tt.dot %x, ...
    } else { the loop as it was }

A block is loaded in the layout that lanes need (`targets/intel/covers.py`), so nothing is converted and no warp waits
for others. The conditions are tested once, before the loop; if all are known to hold, there is only one loop. Triton's
Intel back end does this in its passes for block pointers, descriptors and stride versioning. Here, only the form of
addresses and masks counts, however they were written (affine.py).

An access outside of innermost loops is in a branch of its own. Accesses of memory that the kernel both loads and stores
do not change, because barriers are inserted only between ordinary accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.base.remarks import BlockAccess, InstructionDeclined, RemarkCollector
from weft.ir import (
    Builder,
    bit_width,
    element_of,
    find,
    int_value,
    ints_of,
    is_tensor,
    span_of,
    splat_value,
    tile_text,
    tt,
    unit_attr,
    walk,
)  # fmt: skip
from weft.ir.gpu import layout_of, name_of
from weft.ir.intel.blocks import BlockLoadOp, BlockPrefetchOp, BlockStoreOp, is_right
from weft.layouts import BlockedLayout
from weft.machines import Machine
from weft.machines.intel import WITHOUT_BLOCKS, blocks_of
from weft.targets.intel.covers import cover_of

from ..affine import NotAffine, Sum
from ..pipeline_loads import is_zero
from ..pointer_roots import root_of
from ..removal import remove
from .quotients import divide_before
from .surfaces import Finder, Surface, asked

UNCACHED = (tt.CacheModifier.WT, tt.CacheModifier.CV)
ATOMICS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll")


@dataclass(frozen=True)
class Access:
    """A load, or a store, that can be done by blocks; what takes the loaded tile, each with whether it is transposed
    first."""

    op: tt.LoadOp | tt.StoreOp
    surface: Surface
    takers: tuple[tuple[Operation, bool], ...] = ()


def access_by_blocks(module: ModuleOp, machine: Machine, stages: int, remarks: RemarkCollector) -> None:
    """Rewrite the accesses of a module of layout IR; `stages` is how many iterations are under way in a loop that does
    not say so itself."""
    if blocks_of(machine) is None or WITHOUT_BLOCKS in module.attributes:
        return
    for function in find(module, tt.FuncOp):
        _Function(function, machine, stages, remarks).rewrite()


class _Function:
    def __init__(self, function: tt.FuncOp, machine: Machine, stages: int, remarks: RemarkCollector) -> None:
        self.function, self.machine, self.stages, self.remarks = function, machine, stages, remarks
        self.finder = Finder()
        self.stored: set[SSAValue | None] = set()
        self.loaded: set[SSAValue | None] = set()
        for op in walk(function):
            if isinstance(op, tt.LoadOp) or op.name in ATOMICS:
                self.loaded.add(root_of(op.operands[0]))
            if isinstance(op, tt.StoreOp) or op.name in ATOMICS:
                self.stored.add(root_of(op.operands[0]))

    def rewrite(self) -> None:
        """Loops first, then what is in none."""
        inner = [loop for loop in find(self.function, scf.ForOp) if find(loop, scf.ForOp, scf.WhileOp) == [loop]]
        bodies = {loop.body.block for loop in inner}
        accesses = [op for op in walk(self.function) if isinstance(op, tt.LoadOp | tt.StoreOp)]
        others = [op for op in accesses if op.parent not in bodies]
        for loop in inner:
            if not any(isinstance(op, tt.LoadOp) and takers_of(op.result, self.machine) for op in loop.body.block.ops):
                continue
            divide_before(loop)
            chosen = self.accesses(loop.body.block, loop)
            if any(isinstance(a.op, tt.LoadOp) for a in chosen):
                self.version(loop, chosen)
        for op in others:
            found = self.access(op, op)
            if found is not None:
                self.version(op, [found])

    def accesses(self, block: Block, where: Operation) -> list[Access]:
        """Those of a loop's body that can be blocks."""
        found = [self.access(op, where) for op in block.ops if isinstance(op, tt.LoadOp | tt.StoreOp)]
        return [a for a in found if a is not None]

    def access(self, op: tt.LoadOp | tt.StoreOp, where: Operation) -> Access | None:
        """How an access is one of blocks; None where it is none, which is said of operands of products."""
        if not is_tensor(op.ptr.type) or len(layout_of(op.ptr.type).out_dims) != 2:
            return None
        takers = takers_of(op.result, self.machine) if isinstance(op, tt.LoadOp) else ()
        if isinstance(op, tt.LoadOp):
            if not takers:
                return None
        elif moved_result(op) is None:
            return None
        tile = tile_text(op.result.type if isinstance(op, tt.LoadOp) else op.value.type)
        try:
            return Access(op, self.checked(op, where, takers), takers)
        except NotAffine as why:
            self.remarks.add(InstructionDeclined(span_of(op), f"a 2D block of {tile}", f"its addresses {why}"))
            return None

    def checked(
        self, op: tt.LoadOp | tt.StoreOp, where: Operation, takers: Sequence[tuple[Operation, bool]]
    ) -> Surface:
        """The surface of an access. NotAffine where it is none, or layouts or other accesses do not allow for it."""
        root, others = root_of(op.ptr), self.stored if isinstance(op, tt.LoadOp) else self.loaded
        if others and (root is None or root in others or None in others):
            raise NotAffine("are in memory that the kernel may both load and store")
        if isinstance(op, tt.LoadOp):
            if op.other is not None and not is_zero(op.other):
                raise NotAffine("are masked, and the value there is not 0")
            volatile = op.properties.get("isVolatile")
            if volatile is not None and splat_value(volatile):
                raise NotAffine("are volatile")
        if "cache" in op.properties and int_value(op.properties["cache"]) in UNCACHED:
            raise NotAffine("are accessed without caches (.cv, .wt)")
        surface = self.finder.of(op, where)
        bits = surface.size * 8
        if isinstance(op, tt.StoreOp):
            source = moved_result(op)
            assert source is not None
            if surface.transposed or cover_of(layout_of(source.type), bits, self.machine, stores=True) is None:
                raise NotAffine("are not consecutive in the order in which lanes hold the result")
            return surface
        for taker, turned in takers:
            if not is_covered(taker, bits, self.machine, turned ^ surface.transposed):
                raise NotAffine("are consecutive along the other dimension than lanes hold of the operand")
        return surface

    def version(self, op: Operation, chosen: Sequence[Access]) -> None:
        """Access by blocks where the conditions hold, and as before where they do not."""
        b = Builder.before(op)
        b.loc = op.location
        answers = list(dict.fromkeys(x for a in chosen for x in asked(b, a.surface)))
        if not answers:
            self.by_blocks(op, chosen)
            return
        fits = answers[0]
        for more in answers[1:]:
            fits = b.binary(arith.AndIOp, fits, more)
        takers = [t for a in chosen for t, _ in a.takers] if not isinstance(op, scf.ForOp) else []
        kept = [*takers, op] if not isinstance(op, tt.LoadOp) else takers
        results = [r for x in kept for r in x.results if r.first_use is not None]
        branch = b.if_(fits, [r.type for r in results])
        values: dict[SSAValue, SSAValue] = {}
        then, other = (region.block for region in branch.regions)
        group = [op, *_before(takers, op)] if isinstance(op, tt.LoadOp) else [op]
        if isinstance(op, tt.StoreOp) and [use.operation for use in op.value.uses] == [op]:
            maker = op.value.owner
            if isinstance(maker, Operation) and maker.name == "ttg.convert_layout":
                group.insert(0, maker)  # which blocks do without
        copies = Builder.at_end(other)
        for x in group:
            copies.insert(x.clone(values))
        copies.yield_([values[r] for r in results])
        for r, new in zip(results, branch.results, strict=True):
            r.replace_all_uses_with(new)
        for x in group:
            x.detach()
            then.add_op(x)
        end = Builder.at_end(then)
        end.yield_(results)
        self.by_blocks(op, chosen)

    def by_blocks(self, op: Operation, chosen: Sequence[Access]) -> None:
        """Put blocks where accesses are; in a loop, prefetch those that move."""
        if isinstance(op, scf.ForOp):
            self.prefetch(op, chosen)
        for a in chosen:
            b = Builder.before(a.op)
            b.loc = a.op.location
            operands = a.surface.made(b)
            if isinstance(a.op, tt.StoreOp):
                source = moved_result(a.op)
                assert source is not None
                b.create(BlockStoreOp, (source, *operands))
                self.remarks.add(BlockAccess(span_of(a.op), tile_text(source.type), "stored by 2D blocks"))
            for taker, turned in a.takers:
                properties = {"transposed": unit_attr()} if turned ^ a.surface.transposed else {}
                load = b.create(BlockLoadOp, operands, (taker.results[0].type,), properties)
                load.results[0].name_hint = taker.results[0].name_hint
                taker.results[0].replace_all_uses_with(load.results[0])
            if isinstance(a.op, tt.LoadOp):
                tile = tile_text(a.op.result.type)
                self.remarks.add(BlockAccess(span_of(a.op), tile, "loaded by 2D blocks, as products take it"))
                _drop_users(a.op)
            remove(a.op)
        if isinstance(op, scf.ForOp):
            leave_dead_values(op)

    def prefetch(self, loop: scf.ForOp, chosen: Sequence[Access]) -> None:
        """Ask for the blocks of iterations to come: those of the first ones before the loop."""
        own = loop.attributes.get("tt.num_stages")
        ahead = (int_value(own) if own is not None else self.stages) - 1
        counter = loop.body.block.args[0]
        moving = [a for a in chosen if isinstance(a.op, tt.LoadOp) and a.surface.is_foreseen(loop, counter)]
        if ahead < 1 or "unsignedCmp" in loop.properties or not moving:
            return
        low, step = (self.finder.forms.scalar(loop.operands[i]) for i in (0, 2))
        first = loop.body.block.first_op
        assert first is not None
        for i in range(ahead):
            self.ask(Builder.before(loop), loop, moving, low + step * i)
        self.ask(Builder.before(first), loop, moving, Sum.scalar(counter) + step * ahead)
        for a in moving:
            told = f"prefetched {ahead} iterations ahead" if ahead > 1 else "prefetched an iteration ahead"
            self.remarks.add(BlockAccess(span_of(a.op), tile_text(a.op.results[0].type), told))

    def ask(self, b: Builder, loop: scf.ForOp, moving: Sequence[Access], at: Sum) -> None:
        """Prefetch the blocks of one iteration, if it is there."""
        counter = loop.body.block.args[0]
        b.loc = loop.location
        exists = b.cmpi("slt", at.made(b, counter.type), loop.operands[1])
        for a in moving:
            operands = a.surface.at(counter, at).made(b, exists)
            shape = DenseArrayBase.from_list(IntegerType(32), list(a.surface.shape))
            b.create(BlockPrefetchOp, operands, (), {"shape": shape})


def takers_of(tile: SSAValue, machine: Machine) -> tuple[tuple[Operation, bool], ...]:
    """The conversions that all uses of a loaded tile are, straight or of it transposed, to layouts of which blocks are
    loaded; none where it has other uses."""
    takers: list[tuple[Operation, bool]] = []
    todo = [(tile, False)]
    while todo:
        value, turned = todo.pop()
        for use in value.uses:
            op = use.operation
            if op.name == "ttg.convert_layout":
                bits = bit_width(element_of(op.results[0].type))
                if not is_covered(op, bits, machine, False) and not is_covered(op, bits, machine, True):
                    return ()
                takers.append((op, turned))
            elif isinstance(op, tt.TransOp) and ints_of(op.properties["order"]) == (1, 0):
                todo.append((op.results[0], not turned))
            else:
                return ()
    return tuple(takers)


def is_covered(taker: Operation, bits: int, machine: Machine, transposed: bool) -> bool:
    """Whether blocks are loaded in the layout that a conversion is to."""
    type = taker.results[0].type
    packed = is_right(type)
    return cover_of(layout_of(type), bits, machine, transposed=transposed, packed=packed) is not None


def moved_result(op: tt.StoreOp) -> SSAValue | None:
    """What is stored, as a product left it or before it is converted to the layout of the addresses; None of others."""
    maker = op.value.owner
    if isinstance(maker, Operation) and maker.name == "ttg.convert_layout":
        return maker.operands[0]
    return None if isinstance(name_of(op.value.type), BlockedLayout) else op.value


def _before(takers: Sequence[Operation], load: Operation) -> list[Operation]:
    """What leads from a load to what takes it, in order."""
    chain: list[Operation] = []
    for taker in takers:
        source = taker.operands[0].owner
        while source is not load:
            assert isinstance(source, Operation)
            if source not in chain:
                chain.append(source)
            source = source.operands[0].owner
        chain.append(taker)
    return chain


def _drop_users(load: Operation) -> None:
    """Take away what led from a load to its takers, which nobody reads any more."""
    for result in load.results:
        for use in list(result.uses):
            _drop_users(use.operation)
            remove(use.operation)


def leave_dead_values(loop: scf.ForOp) -> None:
    """Let a loop yield what it was given of the values that it only carries for themselves: they are dropped then."""
    end = loop.body.block.last_op
    assert end is not None
    for index, argument in enumerate(loop.body.block.args[1:]):
        if loop.results[index].first_use is None and _only_yields(argument, end, index):
            end.operands[index] = argument


def _only_yields(argument: BlockArgument, end: Operation, index: int) -> bool:
    """Whether all that is made of an argument is what the loop yields in its place."""
    seen, todo = set[SSAValue](), list[SSAValue]([argument])
    while todo:
        value = todo.pop()
        for use in value.uses:
            op = use.operation
            if op is end:
                if use.index != index:
                    return False
            elif not isinstance(op, tt.AddPtrOp | arith.AddiOp) or op.parent is not end.parent:
                return False
            elif op.results[0] not in seen:
                seen.add(op.results[0])
                todo.append(op.results[0])
    return True
