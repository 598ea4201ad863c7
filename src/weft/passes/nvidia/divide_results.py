"""Multiply one half of a loop's tile after the other if its product and sum do not fit into registers together.

    scf.for ... iter_args(%acc: tensor<128x256xf32>) {
      %b = tt.load %columns                                    tensor<128x256xf8E4M3FN>
      %d = tt.dot %a, %b, zero
      scf.yield %acc + %d * %scales
    }
becomes
    scf.for ... iter_args(%acc0: tensor<128x128xf32>, %acc1: tensor<128x128xf32>) {
      %b0 = tt.load %columns0;  %b1 = tt.load %columns1        tensor<128x128xf8E4M3FN> each
      %sum0 = %acc0 + (tt.dot %a, %b0, zero) * %scales
      %sum1 = %acc1 + (tt.dot %a, %b1, zero) * %scales
      scf.yield %sum0, %sum1
    }

With 8 warps, a thread has 128 registers of such a sum, and 128 of the product that is scaled before it is added:
together with everything else, more than there are. Half a product takes 64. For each multiplication, one tile of this
size loads a quarter fewer bytes than two of half its size.

All operations from which a half is computed, and all that use it up to its stores, are written once for each half:
ranges, splats, broadcasts, loads and element-wise operations. If any other operation uses the result, the loop stays as
it is. Sums are the same: no element's terms change their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft import ir
from weft.base.remarks import ProductSplit, RemarkCollector
from weft.ir import Builder, is_tensor, tt
from weft.machines import Machine
from weft.ops.table import ELEMENTWISE
from weft.targets.table import products

from ..cse_dce import cse_dce
from ..effects import shareable
from ..fold import constant_of
from ..removal import remove
from .warpgroup_products import GROUP

ROOM = 208
"""Registers of a thread that its tiles may take: of 240, the others are for addresses and what is under way."""
LEAST_ROWS, LEAST_COLUMNS = 64, 64
"""The fewest rows and columns that a warp group multiplies at a time."""
PARTS = range(2)
PER_ELEMENT = ELEMENTWISE | {"tt.addptr", "tt.load", "tt.store"}


class _NoParts(Exception):
    """Something cannot be computed in parts."""


def divide_results(module: ModuleOp, machine: Machine, warps: int, remarks: RemarkCollector) -> None:
    """Rewrite the loops of a module of tile IR for so many warps."""
    divided = False
    for loop in ir.find(module, scf.ForOp):
        if (product := _product_of(loop)) is None or (dim := _dim_of(loop, product, machine, warps)) is None:
            continue
        try:
            division = _Division(loop, product, dim)
        except _NoParts:
            continue
        side = ("rows", "columns")[dim]
        size = ir.shape_of(product.d.type)[dim] // len(PARTS)
        why = f"in {len(PARTS)} parts of {size} {side}, as registers do not hold all of it beside what it is added to"
        remarks.add(ProductSplit(ir.span_of(product), ir.tile_text(product.d.type), why))
        division.rewrite()
        divided = True
    if divided:
        cse_dce(module)


def _product_of(loop: scf.ForOp) -> tt.DotOp | None:
    """The only product of an innermost loop, if it begins with zero and the iteration itself uses its result."""
    found = [op for op in ir.walk(loop.body.block) if isinstance(op, tt.DotOp | tt.DotScaledOp)]
    if len(found) != 1 or any(op.regions for op in loop.body.block.ops):
        return None
    (op,) = found
    if not isinstance(op, tt.DotOp) or constant_of(op.c) != 0 or len(ir.shape_of(op.d.type)) != 2:
        return None
    return None if any(use.operation is loop.body.block.last_op for use in op.d.uses) else op


def _dim_of(loop: scf.ForOp, product: tt.DotOp, machine: Machine, warps: int) -> int | None:
    """The dimension of the result that is divided; None where all of it has room, or a half has none either."""
    types = (ir.type_text(ir.element_of(x.type)) for x in (product.a, product.b, product.d))
    if warps % GROUP or not products(machine, *types, GROUP):
        return None
    rows, columns = ir.shape_of(product.d.type)
    one = _registers(product.d.type, warps)
    held = sum(_registers(r.type, warps) for r in loop.results)
    if one + held <= ROOM or one // len(PARTS) + held > ROOM:
        return None
    if rows >= LEAST_ROWS * len(PARTS) * (warps // GROUP):
        return 0
    return 1 if columns >= LEAST_COLUMNS * len(PARTS) else None


def _registers(type: Attribute, warps: int) -> int:
    """Registers of a thread for a tile of floats."""
    element = ir.element_of(type)
    if not is_tensor(type) or not ir.is_float(element):
        return 0
    return prod(ir.shape_of(type)) * ir.bit_width(element) // 32 // (32 * warps)


# -- dimensions -------------------------------------------------------------------------------------------------------


def _operand_dims(op: Operation, dim: int) -> list[int | None]:
    """Which dimension of each operand is divided with one of the result; None for an operand that stays whole."""
    if op.name in PER_ELEMENT:
        return [dim if is_tensor(x.type) else None for x in op.operands]
    if isinstance(op, arith.ConstantOp) and constant_of(op.results[0]) is not None:
        return []
    if isinstance(op, tt.MakeRangeOp):
        return []
    if isinstance(op, tt.SplatOp):
        return [None]
    if isinstance(op, tt.ExpandDimsOp):
        axis = ir.int_value(op.properties["axis"])
        return [dim if dim < axis else dim - 1]
    if isinstance(op, tt.BroadcastOp):
        return [None if ir.shape_of(op.operands[0].type)[dim] == 1 else dim]
    if isinstance(op, tt.TransOp):
        return [ir.ints_of(op.properties["order"])[dim]]
    if isinstance(op, tt.DotOp):
        return [0, None, 0] if dim == 0 else [None, 1, 1]
    raise _NoParts(op.name)


def _result_dim(op: Operation, operand: int, dim: int) -> int:
    """Which dimension of the result is divided with one of an operand."""
    if isinstance(op, tt.ExpandDimsOp):
        return dim if dim < ir.int_value(op.properties["axis"]) else dim + 1
    if isinstance(op, tt.TransOp):
        return ir.ints_of(op.properties["order"]).index(dim)
    found = dim
    if op.regions or not op.results or _operand_dims(op, found)[operand] != dim:
        raise _NoParts(op.name)
    return found


class _Division:
    """The rewriting of one loop. Finding what is to be divided raises _NoParts before anything is changed."""

    def __init__(self, loop: scf.ForOp, product: tt.DotOp, dim: int) -> None:
        self.loop, self.body, self.product = loop, loop.body.block, product
        self.dims: dict[SSAValue, int] = {}
        """What is divided, and along which dimension."""
        self.made: set[Operation] = set()
        """What is computed of the product or of a sum: these operations are there in parts only."""
        self.stores: list[Operation] = []
        self.parts: dict[tuple[SSAValue, int], SSAValue] = {}
        end = self.body.last_op
        assert end is not None
        self.end = end
        self._need(product.d, dim)
        self._follow(product.d)
        if not self.stores:
            raise _NoParts("nothing is stored")

    def _need(self, value: SSAValue, dim: int) -> None:
        """A value has to be there in parts."""
        if self.dims.setdefault(value, dim) != dim:
            raise _NoParts("two dimensions")
        if (value, 0) in self.parts:
            return
        self.parts[value, 0] = value  # seen
        if ir.shape_of(value.type)[dim] % len(PARTS):
            raise _NoParts("an odd number")
        if isinstance(value, BlockArgument):
            if value.block is not self.body:
                raise _NoParts("carried by another loop")
            self._carried(value.index - 1, dim)
            return
        op = value.owner
        assert isinstance(op, Operation)
        if op is self.loop:
            self._carried(next(i for i, x in enumerate(self.loop.results) if x is value), dim)
            return
        is_plain = shareable(op) or (isinstance(op, tt.LoadOp) and not self._is_volatile(op))
        if not is_plain or len(op.results) != 1:
            raise _NoParts(op.name)
        for operand, its in zip(op.operands, _operand_dims(op, dim), strict=False):
            if its is not None:
                self._need(operand, its)

    @staticmethod
    def _is_volatile(op: tt.LoadOp) -> bool:
        volatile = op.properties.get("isVolatile")
        return volatile is not None and bool(ir.splat_value(volatile))

    def _carried(self, index: int, dim: int) -> None:
        """A value that the loop carries has to be: what it begins with, is in an iteration, and is handed on."""
        argument, result = self.body.args[index + 1], self.loop.results[index]
        for value in (argument, result, self.end.operands[index], self.loop.operands[3 + index]):
            self._need(value, dim)
        for value in (argument, result):
            self._follow(value)

    def _follow(self, value: SSAValue) -> None:
        """All that uses a value has to take it in parts."""
        for use in list(value.uses):
            op, dim = use.operation, self.dims[value]
            if op is self.end:
                self._need(self.body.args[use.index + 1], dim)
                continue
            if op.parent not in (self.body, self.loop.parent):
                raise _NoParts("used in a branch")
            if op in self.made or op in self.stores:
                continue
            if isinstance(op, tt.StoreOp):
                if op.parent is self.body:
                    raise _NoParts("stored by the loop")
                self.stores.append(op)
                for operand, its in zip(op.operands, _operand_dims(op, dim), strict=True):
                    if its is not None:
                        self._need(operand, its)
                continue
            if isinstance(op, tt.LoadOp) and op.parent is not self.body:
                raise _NoParts("loaded after the loop")
            its = _result_dim(op, use.index, dim)
            self.made.add(op)
            self._need(op.results[0], its)
            self._follow(op.results[0])

    # -- rewriting ----------------------------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """The loop in parts, and the stores of what it gives."""
        self.made.add(self.product)
        self.parts.clear()
        loop = self.loop
        carried = [i for i in range(len(loop.results)) if self.body.args[i + 1] in self.dims]
        kept = [i for i in range(len(loop.results)) if i not in carried]
        inits = [loop.operands[3 + i] for i in kept]
        inits += [self._outside(loop.operands[3 + i], part) for i in carried for part in PARTS]
        block = Block(arg_types=[self.body.args[0].type, *(x.type for x in inits)])
        whole: dict[SSAValue, SSAValue] = {self.body.args[0]: block.args[0]}
        self._name(block.args[0], self.body.args[0])
        for i, argument in zip(kept, block.args[1:], strict=False):
            whole[self.body.args[i + 1]] = argument
            self._name(argument, self.body.args[i + 1])
        for (i, part), argument in zip(self._each(carried), block.args[1 + len(kept) :], strict=True):
            self.parts[self.body.args[i + 1], part] = argument
            self._name(argument, self.body.args[i + 1])
        b = Builder.at_end(block, loop.location)
        for op in self._iteration():
            if op not in self.made:
                clone = op.clone(whole)
                clone.location = op.location
                b.insert(clone)
        divided = [op for op in self._iteration() if op.results and op.results[0] in self.dims]
        early = self._early(divided)
        for op in divided:
            if op in early:
                for part in PARTS:
                    self._insert(b, op, part, whole)
        for part in PARTS:
            for op in divided:
                if op not in early:
                    self._insert(b, op, part, whole)
        handed = [whole.get(self.end.operands[i], self.end.operands[i]) for i in kept]
        handed += [self._part(self.end.operands[i], part, whole) for i, part in self._each(carried)]
        b.yield_(handed)
        near, types = Builder.before(loop), [x.type for x in inits]
        near.loc = loop.location
        operands = (*loop.operands[:3], *inits)
        new = near.create(scf.ForOp, operands, types, loop.properties, loop.attributes, [Region(block)])
        for i, result in zip(kept, new.results, strict=False):
            self._name(result, loop.results[i])
            loop.results[i].replace_all_uses_with(result)
        for (i, part), result in zip(self._each(carried), new.results[len(kept) :], strict=True):
            self.parts[loop.results[i], part] = result
            self._name(result, loop.results[i])
        self._store()
        remove(loop)

    @staticmethod
    def _each(carried: Sequence[int]) -> Iterator[tuple[int, int]]:
        return ((i, part) for i in carried for part in PARTS)

    @staticmethod
    def _name(new: SSAValue, old: SSAValue) -> None:
        new.name_hint = old.name_hint

    def _iteration(self) -> list[Operation]:
        return [op for op in self.body.ops if op is not self.end]

    def _early(self, divided: Sequence[Operation]) -> set[Operation]:
        """Of an iteration's operations in parts, those that come before the first part of the product: loads, and what
        the product or they are made of."""
        after: set[Operation] = {self.product}
        for op in divided:
            if any(x.owner in after for x in op.operands):
                after.add(op)
        wanted: set[Operation] = {op for op in divided if isinstance(op, tt.LoadOp) and op not in after}
        for op in reversed(divided):
            users = {use.operation for use in op.results[0].uses}
            if op not in after and (self.product in users or users & wanted):
                wanted.add(op)
        return wanted

    def _store(self) -> None:
        """What is made of the loop's results, and stored, in parts: the first one before all of the second."""
        behind = [op for op in self.made if op.parent is self.loop.parent]
        ordered = [op for op in self.loop.parent.ops if op in behind] if self.loop.parent is not None else []
        for store in sorted(self.stores, key=lambda op: list(op.parent.ops).index(op) if op.parent is not None else 0):
            for part in PARTS:
                b = Builder.before(store)
                for op in ordered:
                    if (op.results[0], part) not in self.parts and self._leads(op, store):
                        self._insert(b, op, part, {})
                self._insert(b, store, part, {})
        for op in self.stores:
            remove(op)
        for op in reversed(ordered):
            remove(op)

    def _leads(self, op: Operation, store: Operation) -> bool:
        """Whether a store needs an operation."""
        users = [use.operation for r in op.results for use in r.uses]
        return store in users or any(self._leads(x, store) for x in users if x in self.made)

    def _part(self, value: SSAValue, part: int, whole: dict[SSAValue, SSAValue]) -> SSAValue:
        """A part of a value, made where the value is if it is not there yet."""
        if (value, part) in self.parts:
            return self.parts[value, part]
        if value not in self.dims:
            return whole.get(value, value)
        return self._outside(value, part)

    def _outside(self, value: SSAValue, part: int) -> SSAValue:
        """A part of a value from outside of the loop, made behind the value."""
        if (value, part) not in self.parts:
            op = value.owner
            assert isinstance(op, Operation)
            self._insert(Builder.after(op), op, part, {})
        return self.parts[value, part]

    def _insert(self, b: Builder, op: Operation, part: int, whole: dict[SSAValue, SSAValue]) -> None:
        """An operation for one part."""
        b.loc = op.location
        if not op.results:
            dims = _operand_dims(op, self.dims[op.operands[0]])
            parts = zip(op.operands, dims, strict=True)
            operands = [self._part(x, part, whole) if d is not None else x for x, d in parts]
            b.create(type(op), operands, (), op.properties, op.attributes)
            return
        result = op.results[0]
        dim = self.dims[result]
        shape = list(ir.shape_of(result.type))
        shape[dim] //= len(PARTS)
        new_type = ir.tensor_of(shape, ir.element_of(result.type))
        if isinstance(op, arith.ConstantOp):
            number = constant_of(result)
            assert number is not None
            made = b.constant(number, new_type)
        elif isinstance(op, tt.MakeRangeOp):
            start = ir.int_value(op.properties["start"]) + part * shape[dim]
            made = b.make_range(start, start + shape[dim])
        else:
            dims = _operand_dims(op, dim)
            operands = [
                self._part(x, part, whole) if d is not None else whole.get(x, x)
                for x, d in zip(op.operands, dims, strict=True)
            ]
            made = b.create(type(op), operands, (new_type,), op.properties, op.attributes).results[0]
        self._name(made, result)
        self.parts[result, part] = made
