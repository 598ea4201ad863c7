"""Turn tiles of pointers into one pointer and a tile of 32-bit offsets, if an argument says that these suffice.

    %0 = tt.splat %x : tensor<64x!tt.ptr<f16>>                      %x: {tt.pointer_range = 32 : i32}
    %1 = tt.addptr %0, %rows : tensor<64xi32>
    %2 = tt.addptr %1, splat(%moved : i64)
    %3 = tt.addptr %2, %columns : tensor<64xi32>
    tt.load %3
becomes
    %base = tt.addptr %x, %moved                                    one for all threads, in scalar registers
    %sum = arith.addi %rows, %columns : tensor<64xi32>
    %3 = tt.addptr splat(%base), %sum {amdg.narrow}
    tt.load %3

An AMD access can take its address from two scalar registers and one vector register of 32 bits, where otherwise each
address takes two vector registers. If a loop moves all pointers of a tile by the same amount (`scalarize_carried`), it
moves the base, and the offsets stay the same.

`tt.pointer_range = 32` says of an argument that its array is smaller than 2 GiB, so every access of the kernel is less
than 2^31 bytes from it. Launches set it for such arrays, and so does Inductor. Offsets may be negative, as
`lower/amd/addresses.py` expects. The offset that remains after the base has moved is assumed to fit into 32 bits too:
it does unless the base is further outside of the array than 2 GiB less the array's size.

Triton does this in its passes `canonicalize-pointers` and `convert-buffer-ops`, in the second only if offsets are known
not to be negative.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.ir import Builder, element_of, find, i32, int_value, is_tensor, like, tt, unit_attr
from weft.ir.amd.amdg import NARROW

RANGE = "tt.pointer_range"


@dataclass(frozen=True)
class Reach:
    """A tile of pointers: one pointer, and distances from it in elements."""

    base: SSAValue
    distance: SSAValue | None


class _Function:
    """The tiles of a function, taken apart."""

    def __init__(self) -> None:
        self.reaches: dict[SSAValue, Reach | None] = {}

    def of(self, value: SSAValue) -> Reach | None:
        """What a tile is; None where it is not known to be so, or comes from a large array."""
        if value not in self.reaches:
            self.reaches[value] = None  # what a loop carries in a circle
            self.reaches[value] = self._taken_apart(value)
        return self.reaches[value]

    def _taken_apart(self, value: SSAValue) -> Reach | None:
        op = value.owner
        if isinstance(op, tt.SplatOp):
            return Reach(op.operands[0], None) if _is_small(op.operands[0]) else None
        if isinstance(op, tt.BroadcastOp | tt.ExpandDimsOp):
            inner = self.of(op.operands[0])
            if inner is None or inner.distance is None:
                return inner
            b = Builder.after(op)
            shaped = b.create(type(op), (inner.distance,), (like(value.type, i32),), dict(op.properties))
            return Reach(inner.base, shaped.results[0])
        if not isinstance(op, tt.AddPtrOp):
            return None
        inner = self.of(op.operands[0])
        if inner is None:
            return None
        b = Builder.before(op)
        scalar = _scalar(op.operands[1])
        if scalar is not None:
            return Reach(b.create(tt.AddPtrOp, (inner.base, scalar), (inner.base.type,)).results[0], inner.distance)
        more = _narrow(b, op.operands[1])
        if inner.distance is not None:
            more = b.create(arith.AddiOp, (inner.distance, more), (more.type,)).result
        return Reach(inner.base, more)


def _scalar(value: SSAValue) -> SSAValue | None:
    """The number of which a tile is the splat."""
    return value.owner.operands[0] if isinstance(value.owner, tt.SplatOp) else None


def _narrow(b: Builder, value: SSAValue) -> SSAValue:
    """A tile of distances in 32 bits, which is all that counts of them."""
    if element_of(value.type) == i32:
        return value
    if isinstance(value.owner, arith.ExtSIOp) and element_of(value.owner.operands[0].type) == i32:
        return value.owner.operands[0]
    return b.create(arith.TruncIOp, (value,), (like(value.type, i32),)).result


def _is_small(pointer: SSAValue) -> bool:
    """Whether a pointer is of an argument whose array is small."""
    while isinstance(pointer.owner, tt.AddPtrOp):
        pointer = pointer.owner.operands[0]
    if not isinstance(pointer, BlockArgument):
        return False
    function = pointer.block.parent_op()
    if function is None or function.name != "tt.func":
        return False
    facts = function.properties.get("arg_attrs")
    known = facts.data[pointer.index].data if facts is not None else {}  # type: ignore[attr-defined]
    return RANGE in known and int_value(known[RANGE]) <= 32


def scalar_bases(module: ModuleOp) -> None:
    """Rewrite the pointers of accesses of a module of tile IR."""
    function = _Function()
    for op in find(module, tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp):
        if not is_tensor(op.operands[0].type):
            continue
        reach = function.of(op.operands[0])
        if reach is None or reach.distance is None:
            continue
        maker = op.operands[0].owner
        if isinstance(maker, Operation) and NARROW in maker.attributes:
            continue
        b = Builder.after(maker) if isinstance(maker, Operation) else Builder.before(op)
        tile = b.create(tt.SplatOp, (reach.base,), (op.operands[0].type,)).results[0]
        pointer = b.create(tt.AddPtrOp, (tile, reach.distance), (tile.type,), {}, {NARROW: unit_attr()}).results[0]
        old = op.operands[0]
        for use in list(old.uses):
            if use.operation.name in ACCESSES and use.index == 0:
                use.operation.operands[0] = pointer


ACCESSES = ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas")
