"""Have the copy engine load operands ahead in a loop whose warps all multiply.

    scf.for %i = %lo to %hi step %st iter_args(%acc = %init) {
      %k = tt.load ...                                      a block of a descriptor
      %s = ttng.warp_group_dot %q, %k, zero
      ... compute with %s ...
becomes, with three stages,
    %buffers, %full = three buffers, and an mbarrier for each buffer
    copies of iterations 0 and 1
    scf.for %i ... iter_args(%acc, %slot = 0, %phase = 0) {
      ttng.wait_barrier %full[%slot], %phase
      %s = ttng.warp_group_dot %q, %buffers[%slot], zero
      wait for the product, and those of the iteration before
      ttng.barrier_expect %full[%before], bytes             this and the copy by one thread
      ttng.async_tma_copy_global_to_local %map[...] %buffers[%before], %full[%before]
      ... compute with %s ...

This is for loops that are not divided between warps that copy and warps that multiply (specialized_loops.py): a
multiprocessor runs several of their blocks, and one multiplies while another computes. If the threads copy, each of
them computes an address, and whether it lies in the tensor, for every 16 bytes. In a loop of attention's gradients that
loads two blocks of 64 x 64 bf16, those are 89 of 407 instructions and 26 of 199 registers: without them a third block
has room. No fence is needed either, as products see what the copy engine has written.

Where an iteration only multiplies and adds, the threads have nothing else to do, but their copies take longer. On an
H200, products of Triton's tutorials (bf16, best of several configurations) reach 1.00 to 1.10 times the speed at 1,024
to 4,096, where the fence that copies by threads need is what an iteration waits for, 1.25 times with masks on both
operands, and 1.17 to 1.23 times at 1,000 to 4,104, where rows begin within a sector of memory.

Operands that are blocks of descriptors among the kernel's arguments are loaded this way, because the launcher has
tensor maps of them anyway. If the engine can load all tiles of an iteration, tiles behind pointers are too, by tensor
maps that the launch makes:

* Rows of 128 bytes. Attention by four warps (bf16, heads of 64, 4,096 rows) is 1.10 times as fast, causal attention
  1.15, and the maximum of products 1.30. If an operand lies in memory transposed, the product reads a transposed view
  of the copy.
* Rows of 64 bytes (BK of 32), if the distance between them is a multiple of a sector. Products of 1,024 and 4,096 are
  1.00 to 1.25 times as fast. With a distance of 8,208 bytes, where a row of 64 touches three sectors instead of two,
  a b^T has 0.88 times the speed.
* Tiles from which operands are computed, such as weights of 8 bits: the threads load them from the buffer, convert them
  and store them for the product. The fence between these stores and the product (MEMBAR in machine code) waits for all
  copies that threads have begun, but not for those of the engine.

Rows of numbers, which no product reads, are copied by the threads.

A copy by the engine lands later than one by threads, by the time of some ten copies of a thread. With two buffers, it
has to land within an iteration: then the threads copy, unless each had to begin many. They also copy if copies begin
behind a product whose operand the iteration computes, so that only the rest of the iteration is left (products of 128 x
256 x 64 with two computed factors have 0.82 times the speed by the engine, the outputs of gated linear attention 0.85).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, i32, i32_attr, int_value, shape_of, tt
from weft.ir.gpu import MemDescType, ttg
from weft.ir.gpu.products import shared_products
from weft.ir.nvidia import ttng
from weft.machines import Machine

from ..buffered_tiles import is_thin
from ..loop_memory import stores_anew
from .bulk_loads import BulkLoad, bulk_loads, loads_of_tensors, map_of, tiles_in_bulk
from .rings import wait, word, words
from .specialized_loops import stored_before, stored_in

TWO_BUFFERS = 2
LONG_ROW, SHORT_ROW = 128, 64
"""Bytes of a block's row. The copy engine requests 128 bytes at most at a time, and so one row at a time even if rows
are shorter."""
COPY_BYTES, MANY_COPIES = 16, 16
"""Bytes of one copy by a thread, and how many of these in an iteration take longer than it takes to begin one by the
engine."""


def bulk_copies(loop: scf.ForOp, copied: Sequence[tt.LoadOp], count: int, machine: Machine) -> BulkCopies | None:
    """The copies of a loop that the copy engine is to do, into `count` buffers of each tile or one less; None if it is
    to do none."""
    function = loop.parent_op()
    module = function.parent_op() if isinstance(function, tt.FuncOp) else None
    if module is None or not machine.async_proxy or int_value(module.attributes["ttg.num-ctas"]) > 1:
        return None
    products = shared_products(loop.body.block)
    if not products or not all(isinstance(op, ttng.WarpGroupDotOp) for op in products):
        return None
    loads = _all_tiles(loop, copied, machine) or _described_operands(loop, machine)
    if not loads or any(x.load not in copied for x in loads):
        return None
    if count == TWO_BUFFERS and stores_anew(loop, [x.load.result for x in loads]):
        return None
    stored = stored_before(loop) | stored_in(loop.body.block)
    if None in stored or any(x.base in stored for x in loads):
        return None  # the copy engine need not see what threads have stored
    copies = sum(x.bytes for x in loads) // COPY_BYTES // machine.threads(int_value(module.attributes["ttg.num-warps"]))
    return BulkCopies(loads) if count > TWO_BUFFERS or copies >= MANY_COPIES else None


def _all_tiles(loop: scf.ForOp, copied: Sequence[tt.LoadOp], machine: Machine) -> Sequence[BulkLoad]:
    """All tiles that a loop loads, rows of numbers apart; none if the copy engine cannot load one of them."""
    tiles = [op for op in loads_of_tensors(loop) if not is_thin(shape_of(op.result.type))]
    if any(op not in copied for op in tiles):
        return ()
    loads = tiles_in_bulk(tiles, machine)
    if isinstance(loads, str) or any(x.tensor is not None and not _has_long_rows(x, machine) for x in loads):
        return ()
    return loads


def _described_operands(loop: scf.ForOp, machine: Machine) -> Sequence[BulkLoad]:
    """The operands of products, as they are loaded, if all are blocks of descriptors among the arguments; else none."""
    loads = bulk_loads(loop, machine)
    return () if isinstance(loads, str) or any(x.tensor is not None for x in loads) else loads


def _has_long_rows(load: BulkLoad, machine: Machine) -> bool:
    """Whether the rows of a block behind pointers are long enough for the copy engine. Short rows are only if each
    begins at a sector."""
    row = load.copied.swizzle_byte_width
    return row >= LONG_ROW or (row >= SHORT_ROW and load.apart % machine.sector_bytes == 0)


class BulkCopies:
    """Copies by the copy engine, as `PipelinedLoop` places them."""

    def __init__(self, bulk: Sequence[BulkLoad]) -> None:
        self.bulk = {x.load: x for x in bulk}
        self.maps: Mapping[tt.LoadOp, SSAValue] = {}
        self.full: SSAValue | None = None

    @property
    def loads(self) -> Sequence[tt.LoadOp]:
        return list(self.bulk)

    @property
    def inputs(self) -> Sequence[SSAValue]:
        return [v for x in self.bulk.values() for total in x.at for v in total.scalars]

    def memory(self, load: tt.LoadOp, count: int = 0) -> MemDescType:
        return self.bulk[load].memory(count)

    def tile(self, b: Builder, load: tt.LoadOp, buffer: SSAValue) -> SSAValue:
        return self.bulk[load].tile(b, buffer)

    def prepare(self, b: Builder, count: int) -> None:
        self.maps = {load: map_of(x) for load, x in self.bulk.items()}
        self.full = b.create(ttg.LocalAllocOp, (), (words(count),)).result
        self.full.name_hint = "full"
        for i in range(count):
            b.create(ttng.InitBarrierOp, (self._word(b, b.constant(i, i32)),), (), {"count": i32_attr(1)})

    def expect(self, b: Builder, slot: SSAValue, exists: SSAValue) -> SSAValue:
        full = self._word(b, slot)
        size = {"size": i32_attr(sum(x.bytes for x in self.bulk.values()))}
        b.create(ttng.BarrierExpectOp, (full, exists), (), size)
        return full

    def begin(
        self,
        b: Builder,
        full: SSAValue,
        buffers: Mapping[tt.LoadOp, SSAValue],
        values: Mapping[SSAValue, SSAValue],
        exists: SSAValue,
    ) -> None:
        for load, buffer in buffers.items():
            x = self.bulk[load]
            at = [total.renamed(lambda v: values.get(v, v)).made(b, i32) for total in x.at]
            kept = {k: v for k, v in load.properties.items() if k in ("cache", "evict")}
            operands = (self.maps[load], *at, full, buffer, exists)
            copy = b.create(ttng.AsyncTMACopyGlobalToLocalOp, operands, (), kept)
            copy.location = load.location

    def wait(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Operation:
        return wait(b, self._word(b, slot), phase)

    def _word(self, b: Builder, slot: SSAValue) -> SSAValue:
        assert self.full is not None, "prepared"
        return word(b, self.full, slot)
