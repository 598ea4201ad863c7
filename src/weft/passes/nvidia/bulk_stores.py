"""Have the copy engine do stores and atomic additions, while the warps that multiply continue.

    tt.store (%base + rows * %stride + columns), %tile, mask
becomes
    ttng.async_tma_store_wait {pendings = 0}              until the previous copy has read %staged
    ttg.local_store %tile, %staged
    ttng.fence_async_shared
    ttng.async_tma_copy_local_to_global %map[%row, %column] %staged {tt.each_warp}

and `tt.atomic_rmw fadd, relaxed` the same with `ttng.async_tma_reduce add`. Stores are those of a loop over tiles,
additions those of any loop of products: gradients of attention add to those of the queries in each iteration. If
threads add, each 16 bytes take an instruction with an address of its own, and the tile is first converted to another
layout, for which all warps wait for each other.

Each warp stores the part of the tile that it holds, through its own part of the buffer, and waits for no other warp. So
one warp group may store while another multiplies, as far as the buffers of the loop let it run ahead. If a product is
stored transposed, a warp holds 16 columns, which are a quarter of a line of memory. One lane then has the whole tile
stored, when all warps have written it to the buffer.

The copy engine writes later than the threads would, and only the end of the kernel guarantees that it has written. So
this is done only if nothing in the kernel can observe the difference: no other operation accesses the array, and none
is atomic, which could signal to other programs that the tile is there. Relaxed additions without a used result signal
nothing, so any number of them is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft import ir
from weft.ir import Builder, bool_attr, i32, i32_attr, tt, unit_attr, walk
from weft.ir.gpu import MemDescType, laid_tensor, layout_of, memdesc, ttg
from weft.ir.nvidia import ttng
from weft.layouts import LinearLayout, NVMMASharedLayout

from ..affine import NotAffine
from ..pointer_roots import root_of
from ..removal import remove
from .bulk_loads import descriptor_of, function_of, is_forbidden, map_for
from .pointed_tensors import PointedTensor, stored_tensor, tensor_of_descriptor

ACCESSES = ("tt.load", "tt.store", "tt.atomic_store", "tt.atomic_rmw")
ATOMIC = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.call")
PART_ROWS = 16
"""Consecutive rows of a wgmma result that a warp holds."""


@dataclass(frozen=True)
class BulkStore:
    """A store, or an atomic addition, that the copy engine can do."""

    store: tt.StoreOp | tt.AtomicRMWOp
    tensor: PointedTensor
    layout: NVMMASharedLayout
    """The layout of the tile in shared memory."""
    part: tuple[int, int] | None
    """Rows and columns that the copy engine stores for a warp at a time; None if it stores the tile for all."""

    @property
    def bytes(self) -> int:
        """The size of the tile; in a cluster, of the part that one block has."""
        whole = prod(ir.shape_of(self.value.type)) * ir.bit_width(ir.element_of(self.value.type)) // 8
        return whole >> len(self.layout.cga_layout)

    @property
    def value(self) -> SSAValue:
        """The tile as the warps hold it, which is another value once the loop that gives it has been rewritten."""
        return held_value(self.store)

    @property
    def conversion(self) -> Operation | None:
        """What brings the tile into the layout by which threads store it, where nothing else wants that."""
        return conversion_of(self.store)

    def memory(self) -> MemDescType:
        """The type of the buffer."""
        return memdesc(ir.shape_of(self.value.type), ir.element_of(self.value.type), self.layout, mutable=True)

    def done(self, staged: SSAValue, pending: int | None) -> None:
        """Replace the store by a copy from a buffer, which all copies but the last `pending` may still read; None if no
        copy can."""
        b = Builder.before(self.store)
        alike = replace(self.layout, cga_layout=[[0, 0] for _ in self.layout.cga_layout])
        block = (self.part, alike) if self.part is not None else (ir.shape_of(self.value.type), self.layout)
        described = ir.TensorDescType(laid_tensor(block[0], ir.element_of(self.value.type), block[1]))
        base, tensor = self.tensor.base, self.tensor.tensor
        is_given = descriptor_of(base) is not None and tensor == tensor_of_descriptor(base)
        map = map_for(base, described, None if is_given else tensor)
        at = [total.made(b, i32) for total in self.tensor.at]
        if pending is not None:
            wait_until_read(b, pending)
        b.create(ttg.LocalStoreOp, (self.value, staged))
        b.create(ttng.FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})
        copy: Operation
        if isinstance(self.store, tt.StoreOp):
            copy = b.create(ttng.AsyncTMACopyLocalToGlobalOp, (map, *at, staged))
        else:
            kind = {"kind": ir.enum_attr(tt.DescriptorReduceKind.ADD)}
            copy = b.create(ttng.AsyncTMAReduceOp, (map, *at, staged), (), kind)
        if self.part is not None:
            copy.attributes[ttng.EACH_WARP] = unit_attr()
        copy.location = self.store.location
        conversion = self.conversion
        remove(self.store)
        if conversion is not None:
            remove(conversion)


def wait_until_read(b: Builder, pending: int = 0) -> None:
    """Each thread waits until the copies that it began have read what they store, all but the last `pending`."""
    b.create(ttng.AsyncTMAStoreWaitOp, (), (), {"pendings": i32_attr(pending)})


def bulk_stores(loop: scf.ForOp, tiles: scf.ForOp | None, warps: int) -> Sequence[BulkStore]:
    """What the copy engine can store of the loop over tiles that a loop of products is in, and what it can add to
    memory of either loop."""
    function = function_of(loop if tiles is None else tiles)
    if is_forbidden(loop) or function is None:
        return ()
    ops = list(walk(function.body.block))
    if not all(is_silent_addition(op) for op in ops if op.name in ATOMIC):
        return ()
    inside = [op for op in loop.body.block.ops if isinstance(op, tt.AtomicRMWOp)]
    of_tiles = [] if tiles is None else [x for x in tiles.body.block.ops if isinstance(x, tt.StoreOp | tt.AtomicRMWOp)]
    found = [x for op in (*inside, *of_tiles) if (x := _bulk_store(op, warps))]
    accesses = [op for op in ops if op.name in ACCESSES]
    while others := [x for x in found if not _is_alone(x, found, accesses)]:
        found = [x for x in found if x not in others]
    return found


def is_silent_addition(op: Operation) -> bool:
    """Whether an operation is an atomic addition of floats that orders nothing and yields nothing: nobody can tell when
    it is done, nor which of several comes first."""
    if not isinstance(op, tt.AtomicRMWOp) or ir.int_value(op.atomic_rmw_op) != tt.RMWOp.FADD:
        return False
    is_ordered = ir.int_value(op.sem) != tt.MemSemantic.RELAXED or ir.int_value(op.scope) == tt.MemSyncScope.SYSTEM
    return not is_ordered and op.result.first_use is None


def stored_value(op: tt.StoreOp | tt.AtomicRMWOp) -> SSAValue:
    """The tile that is stored, or added."""
    return op.value if isinstance(op, tt.StoreOp) else op.val


def conversion_of(op: tt.StoreOp | tt.AtomicRMWOp) -> ttg.ConvertLayoutOp | None:
    """What brings the tile that is stored into the layout by which threads store it, where nothing else wants that."""
    value = stored_value(op)
    return value.owner if isinstance(value.owner, ttg.ConvertLayoutOp) and value.uses.get_length() == 1 else None


def held_value(op: tt.StoreOp | tt.AtomicRMWOp) -> SSAValue:
    """The tile that is stored as it is before that."""
    conversion = conversion_of(op)
    return stored_value(op) if conversion is None else conversion.src


def _is_alone(one: BulkStore, stores: Sequence[BulkStore], accesses: Sequence[Operation]) -> bool:
    """Whether no other access meets a store, or only additions meet an addition: at most stores beside it, or other
    additions, go to the same array."""
    beside: set[Operation]
    if isinstance(one.store, tt.StoreOp):
        beside = {x.store for x in stores if x is one or _are_apart(one, x)}
    else:
        beside = {op for op in accesses if is_silent_addition(op)}
    return all(op in beside or root_of(op.operands[0]) not in (None, one.tensor.base) for op in accesses)


def _are_apart(one: BulkStore, other: BulkStore) -> bool:
    """Whether blocks of one tensor have no element in common, as far as is known."""
    if one.tensor.tensor != other.tensor.tensor:
        return False
    pairs = zip(one.tensor.at, other.tensor.at, ir.shape_of(one.value.type), ir.shape_of(other.value.type), strict=True)
    for a, b, of_one, of_other in pairs:
        distance = (b - a).known
        if distance is not None and (distance >= of_one or -distance >= of_other):
            return True
    return False


def _bulk_store(op: tt.StoreOp | tt.AtomicRMWOp, warps: int) -> BulkStore | None:
    if not ir.is_tensor(op.ptr.type) or any(ir.int_value(op.properties[x]) > 1 for x in HINTS if x in op.properties):
        return None
    value = held_value(op)
    shape, bits = ir.shape_of(value.type), ir.bit_width(ir.element_of(value.type))
    if len(shape) != 2 or bits not in ((16, 32) if isinstance(op, tt.AtomicRMWOp) else (8, 16, 32, 64)):
        return None
    held = layout_of(value.type)
    blocks = held.bases["block"]
    if not all(map(any, blocks)):
        return None  # several blocks of a cluster hold the same
    shape_of_block = [n >> sum(bool(basis[d]) for basis in blocks) for d, n in enumerate(shape)]
    division = [[x // n for x, n in zip(basis, shape_of_block, strict=True)] for basis in blocks]
    layout = NVMMASharedLayout.get_default_for(list(shape), bits, cga_layout=division)
    part = _held_part(held, shape_of_block, warps)
    if part is None or part[1] * bits // 8 < layout.swizzle_byte_width:
        part, turned = None, held.transpose_outs(["dim1", "dim0"])
        is_result = _held_part(turned, shape_of_block[::-1], warps) is not None or _is_of_groups(turned)
        if isinstance(op, tt.AtomicRMWOp) or not is_result:
            return None
    if not layout.swizzle_byte_width:
        return None
    try:
        tensor = stored_tensor(op)
    except NotAffine:
        return None
    if tensor.transposed or len(tensor.at) != len(shape):
        return None
    return BulkStore(op, tensor, layout, part)


HINTS = ("cache", "evict")
"""What a store may say of caches: the copy engine does not."""


def _held_part(layout: LinearLayout, shape: Sequence[int], warps: int) -> tuple[int, int] | None:
    """The part of a tile that a warp holds, of which there is one for each warp at least; None if it is no such."""
    rows, columns = shape
    across = max(1, warps * PART_ROWS // rows)
    part = PART_ROWS, columns // across
    return part if not rows % PART_ROWS and not columns % across and is_held_by_warps(layout, part, rows) else None


def _is_of_groups(layout: LinearLayout) -> bool:
    """Whether a tile is the result of a product of warp groups, however the groups divide it."""
    of_group = {"lane": ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)), "warp": ((PART_ROWS, 0), (2 * PART_ROWS, 0))}
    copies = layout.free_variable_masks()
    return all(layout.bases[d][: len(x)] == x and not copies[d] for d, x in of_group.items()) and not copies["register"]


def is_held_by_warps(layout: LinearLayout, part: tuple[int, int], rows: int) -> bool:
    """Whether part p of a tile of so many rows is held by warp p modulo their number. Parts are counted down columns.

    >>> from weft.layouts import NVMMADistributedLayout
    >>> layout = NVMMADistributedLayout([3, 0], [8, 1], [16, 64, 16]).to_linear([128, 64])
    >>> is_held_by_warps(layout, (16, 64), 128), is_held_by_warps(layout, (32, 64), 128)
    (True, False)
    """
    warps = 1 << len(layout.bases["warp"])

    def owner(basis: Sequence[int]) -> int:
        return (basis[0] // part[0] + basis[1] // part[1] * (rows // part[0])) % warps

    lanes = [*layout.bases["lane"], *layout.bases["register"]]
    return [owner(x) for x in layout.bases["warp"]] == [1 << i for i in range(len(layout.bases["warp"]))] and not any(
        map(owner, lanes)
    )
