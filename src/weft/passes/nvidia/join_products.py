"""Begin wgmma products together that do not need each other's results, and wait for them once.

    %a = ttg.local_alloc %x                                %a = ttg.local_alloc %x
    ttng.fence_async_shared                                %b = ttg.local_alloc %y
    %d = ttng.warp_group_dot %a, %k, %c                    ttng.fence_async_shared
    %b = ttg.local_alloc %y                      becomes   %0 = ttng.warp_group_dot %a, %k, %c {isAsync = true}
    ttng.fence_async_shared                                %1 = ttng.warp_group_dot %b, %k, %0 {isAsync = true}
    %e = ttng.warp_group_dot %b, %k, %d                    %e = ttng.warp_group_dot_wait %1 {pendings = 0 : i32}

Each by itself is stored, fenced, met at a barrier and awaited while nobody does anything else; and what is stored for
the second one is in registers until the first is over. One may add to what another one gives, as here.

What is between them comes before the first if an operand is made of it (stores, loads, arithmetic), else after the last
has begun. Other effects end such a row, and so does shared memory: operands that lie there at the same time must leave
room for as many blocks as there would have been, or for enough. Products that go on into the next iteration of a loop
stay as they are (overlap_products.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from weft import ir
from weft.base import each_once
from weft.base.remarks import NO_REMARKS, ProductsJoined, RemarkCollector
from weft.ir.gpu import MemDescType
from weft.ir.gpu.ttg import ConvertLayoutOp, LocalAllocOp, LocalLoadOp
from weft.ir.nvidia.ttng import FenceAsyncSharedOp, WarpGroupDotOp, WarpGroupDotWaitOp
from weft.machines import Machine

from ..effects import shareable
from ..removal import remove

MOVED = (LocalAllocOp, LocalLoadOp, FenceAsyncSharedOp)
ENOUGH_WARPS = 16
"""Of so many warps on a multiprocessor, some compute while others wait."""
VIEWS = ("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_subslice", "ttg.memdesc_index")


def join_products(module: ModuleOp, machine: Machine, remarks: RemarkCollector = NO_REMARKS) -> bool:
    """Rewrite a module of layout IR for a machine. Gives whether there are such products."""
    if not ir.find(module, WarpGroupDotOp):
        return False
    warps = ir.int_value(module.attributes["ttg.num-warps"]) if "ttg.num-warps" in module.attributes else 4
    for function in module.body.block.ops:
        if isinstance(function, ir.tt.FuncOp):
            rows = [row for op in ir.walk(function) for r in op.regions for b in r.blocks for row in _rows(b)]
            memory = _Memory(function, machine, warps) if rows else None
            for row in rows:
                if memory is not None and memory.has_room(row):
                    first, *others = (ir.site_of(op) for op in row.products)
                    why = "they begin together and are awaited once, as none needs another's result"
                    remarks.add(ProductsJoined(first.span, f"{len(row.products)} products", why, tuple(others)))
                    row.join()
    return True


@dataclass
class _Row:
    """Products of a block that follow each other, and what is between them."""

    products: list[WarpGroupDotOp]
    between: list[Operation] = field(default_factory=list)

    def join(self) -> None:
        """Begin them together."""
        first, last = self.products[0], self.products[-1]
        end = ir.Builder.after(last)
        wanted = self.wanted()
        for op in self.between:
            if isinstance(op, FenceAsyncSharedOp):
                remove(op)
            else:
                op.detach()
                (ir.Builder.before(first) if op in wanted else end).insert(op)
        if any(isinstance(op, LocalAllocOp) for op in wanted):
            if isinstance(before := _before(first), FenceAsyncSharedOp):
                remove(before)
            ir.Builder.before(first).create(FenceAsyncSharedOp, (), (), {"bCluster": ir.bool_attr(False)})
        for op in self.products:
            op.properties["isAsync"] = ir.bool_attr(True)
        results = [op.d for op in self.products if not self.continues(op.d)]
        types, pendings = [x.type for x in results], {"pendings": ir.i32_attr(0)}
        wait = end.create(WarpGroupDotWaitOp, tuple(results), types, pendings)
        for old, new in zip(results, wait.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_uses_with_if(new, lambda use: use.operation is not wait)

    def wanted(self) -> set[Operation]:
        """The operations between products from which their operands are computed."""
        between, wanted = set(self.between), set[Operation]()
        todo = [x.owner for op in self.products for x in op.operands]
        for op in each_once(todo):
            if isinstance(op, Operation) and op in between:
                wanted.add(op)
                todo += [x.owner for x in op.operands]
        return wanted

    def continues(self, result: SSAValue) -> bool:
        """Whether another one adds to a result."""
        return any(op.c is result for op in self.products)


def _before(op: Operation) -> Operation | None:
    """The operation before one that was moved to, of those that were there: the last fence."""
    before = op.prev_op
    while before is not None and not isinstance(before, FenceAsyncSharedOp | WarpGroupDotOp):
        before = before.prev_op
    return before


def _rows(block: Block) -> Iterator[_Row]:
    """The rows of two products and more."""
    row: _Row | None = None
    pending: list[Operation] = []
    for op in block.ops:
        if isinstance(op, WarpGroupDotOp) and not _is_async(op):
            if row is not None and _joins(row, pending, op):
                row.products.append(op)
                row.between += pending
            else:
                if row is not None and len(row.products) > 1:
                    yield row
                row = _Row([op])
            pending = []
        elif row is not None and _is_movable(op) and not _uses(op, row.products):
            pending.append(op)
        elif row is not None:
            if len(row.products) > 1:
                yield row
            row = None
    if row is not None and len(row.products) > 1:
        yield row


def _is_async(op: WarpGroupDotOp) -> bool:
    return "isAsync" in op.properties and bool(ir.int_value(op.properties["isAsync"]))


def _is_movable(op: Operation) -> bool:
    """Whether an operation may come before products that do not matter to it."""
    if isinstance(op, ir.tt.LoadOp):
        volatile = op.properties.get("isVolatile")
        return volatile is None or not ir.splat_value(volatile)
    return isinstance(op, MOVED) or op.name in VIEWS or shareable(op)


def _uses(op: Operation, products: Sequence[WarpGroupDotOp]) -> bool:
    return any(x.owner in products for x in op.operands)


def _joins(row: _Row, pending: Sequence[Operation], op: WarpGroupDotOp) -> bool:
    """Whether a product may begin before those of a row are over: it may add to what one of them gives, if no other
    uses that, and if the instruction adds to it.
    """
    if op.c.owner in row.products and (len(list(op.c.uses)) != 1 or op.imprecise):
        return False
    return not any(x.owner in row.products for x in op.operands if x is not op.c)


class _Memory:
    """What lies in shared memory when: for each tile, from which operation of the text to which."""

    def __init__(self, function: ir.tt.FuncOp, machine: Machine, warps: int) -> None:
        self.machine, self.warps = machine, warps
        self.place: Mapping[Operation, int] = {op: i for i, op in enumerate(ir.walk(function))}
        self.spans: dict[LocalAllocOp, tuple[int, int]] = {}
        self.moved = 0
        for op in self.place:
            if isinstance(op, LocalAllocOp):
                self.spans[op] = self.place[op], max([self.place[op], *self._last_uses(op.result, op)])
            elif isinstance(op, ConvertLayoutOp):
                self.moved = max(
                    self.moved, prod(ir.shape_of(op.src.type)) * ir.bit_width(ir.element_of(op.src.type)) // 8
                )

    def _last_uses(self, memory: SSAValue, allocation: LocalAllocOp) -> Iterator[int]:
        """The last operations of all that use memory, or a view of it; of loops that do, their ends."""
        for use in memory.uses:
            op = use.operation
            if op.name in VIEWS:
                yield from self._last_uses(op.results[0], allocation)
            while op.parent is not allocation.parent:
                parent = op.parent_op()
                assert parent is not None
                op = parent
            yield max(self.place[x] for x in ir.walk(op))

    def has_room(self, row: _Row) -> bool:
        """Whether enough warps run at a time with a row's operands there together; if so, they are from now on."""
        spans = dict(self.spans)
        first, last = self.place[row.products[0]], self.place[row.products[-1]]
        for op, (begin, end) in self.spans.items():
            if op in row.between:
                spans[op] = first, max(end, last)
            elif begin <= last and end >= first:
                spans[op] = begin, max(end, last)
        for rest in (0, self.moved):  # conversions may have memory of their own
            now, then = (self._peak(x) + rest for x in (self.spans, spans))
            if then > self.machine.shared_bytes >= now or self._warps(then) < min(self._warps(now), ENOUGH_WARPS):
                return False
        self.spans = spans
        return True

    def _warps(self, bytes: int) -> int:
        """How many run at a time, whatever registers they have."""
        return self.machine.blocks_at_a_time(self.machine.threads(self.warps), bytes) * self.warps

    @staticmethod
    def _peak(spans: Mapping[LocalAllocOp, tuple[int, int]]) -> int:
        """The most bytes that are there at a time."""
        sizes = {op: buffer_bytes(op) for op in spans}
        starts = {begin for begin, _ in spans.values()}
        return max((sum(sizes[op] for op, (b, e) in spans.items() if b <= at <= e) for at in starts), default=0)


def buffer_bytes(op: LocalAllocOp) -> int:
    """The size of a buffer in shared memory."""
    type = op.result.type
    assert isinstance(type, MemDescType)
    return prod(type.shape) * ir.bit_width(type.element_type) // 8
