"""Have the copy engine store the tiles of a specialized loop, by way of the buffers that staging.py has chosen.

Buffers of their own are made before the loop. If the buffers are in a slot of the loop's ring, the slot counts as one
more iteration of each tile, for which nothing is copied:

    producer                                            warps that multiply
    ttng.wait_barrier %empty[%slot], %phase
    ttng.barrier_expect %full[%slot], 0                 ttng.wait_barrier %full[%slot], %phase
                                                        ttg.local_store %tile, %staged          a part of the slot
                                                        ttng.fence_async_shared
                                                        ttng.async_tma_copy_local_to_global %map[...] %staged
                                                        ...
                                                        ttng.async_tma_store_wait {pendings = 0}
                                                        ttng.arrive_barrier %empty[%slot]       each warp for itself

So products no longer read the slot when the first tile is written to it, and the copy engine has read it when the
producer has it filled again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from weft.ir import Builder, i32
from weft.ir.gpu import memdesc, ttg

from .bulk_stores import BulkStore, wait_until_read
from .rings import Ring, give_back, wait, word
from .staging import Place, Staging, largest_by_way_of, pending_copies


def store_by_buffers(b: Builder, stores: Sequence[BulkStore], staging: Staging) -> None:
    """Replace stores by copies from buffers that are made for them."""
    buffers: dict[int, SSAValue] = {}
    for number, bulk in largest_by_way_of(stores, staging.buffers).items():
        buffers[number] = b.create(ttg.LocalAllocOp, (), (bulk.memory(),)).result
        buffers[number].name_hint = f"{bulk.tensor.base.name_hint or 'tile'}_stored"
    _store(b, stores, staging, buffers, pending_copies(staging.buffers, [x.store.parent for x in stores]))


def store_by_slot(
    stores: Sequence[BulkStore], staging: Staging, rings: Sequence[Ring], slot: SSAValue, phase: SSAValue, blocks: int
) -> None:
    """Replace the stores behind a loop by copies from a slot, which is given back behind the last."""
    assert staging.places is not None
    behind = stores[-1].store.next_op
    assert behind is not None
    b = Builder.before(stores[0].store)
    wait(b, word(b, rings[-1].full, slot), phase)  # the producer has come to the others before
    buffers = {
        number: _in_slot(b, bulk, staging.places[number], rings, slot)
        for number, bulk in largest_by_way_of(stores, staging.buffers).items()
    }
    pending: list[int | None] = [*pending_copies(staging.buffers, [x.store.parent for x in stores])]
    for number in buffers:
        pending[staging.buffers.index(number)] = None  # nothing has been stored by way of the slot
    _store(b, stores, staging, buffers, pending)
    b = Builder.before(behind)
    wait_until_read(b)
    for ring in rings:
        give_back(b, ring, slot, blocks)


def _store(
    b: Builder, stores: Sequence[BulkStore], staging: Staging, buffers: Mapping[int, SSAValue],
    pending: Sequence[int | None],
) -> None:  # fmt: skip
    staged = []
    for bulk, number in zip(stores, staging.buffers, strict=True):
        memory, buffer = bulk.memory(), buffers[number]
        is_alike = buffer.type == memory
        staged.append(buffer if is_alike else b.create(ttg.MemDescReinterpretOp, (buffer,), (memory,)).result)
    for bulk, buffer, others in zip(stores, staged, pending, strict=True):
        bulk.done(buffer, others)


def _in_slot(b: Builder, bulk: BulkStore, place: Place, rings: Sequence[Ring], slot: SSAValue) -> SSAValue:
    """The buffer for a tile in a slot."""
    first = next(
        buffers.at(b, slot)
        for ring in rings
        for load, buffers in zip(ring.group.loads, ring.buffers, strict=True)
        if load is place.load
    )
    one = bulk.memory()
    if not place.number:
        return b.create(ttg.MemDescReinterpretOp, (first,), (one,)).result
    several = memdesc((place.number + 1, *one.shape), one.element_type, bulk.layout, mutable=True)
    alike = b.create(ttg.MemDescReinterpretOp, (first,), (several,)).result
    return b.create(ttg.MemDescIndexOp, (alike, b.constant(place.number, i32)), (one,)).result
