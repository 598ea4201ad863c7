"""Keep wgmma products in flight while the next iteration of their loop begins.

    %d = ttng.warp_group_dot %a, %b, %acc
    scf.yield %d
becomes
    %0 = ttng.warp_group_dot %a, %b, %acc {isAsync = true}
    %d = ttng.warp_group_dot_wait %0 {pendings = 1 : i32}       the previous iteration's product has ended
    scf.yield %d

if only the next iteration's product uses the result. If one of several products needs another's result, the last one is
in flight until the first one of the next iteration has begun, or has ended (attention: the scores times the values):

    %s = ttng.warp_group_dot %q, %k, %zero
    %1 = arith.mulf %acc, %shrink
    %d = ttng.warp_group_dot %p, %v, %1
    scf.yield %d
becomes
    %0 = ttng.warp_group_dot %q, %k, %zero {isAsync = true}
    %s, %2 = ttng.warp_group_dot_wait %0, %acc {pendings = 0 : i32}
    %1 = arith.mulf %2, %shrink
    %d = ttng.warp_group_dot %p, %v, %1 {isAsync = true}
    scf.yield %d

If only that product uses the sum, as in gradients of attention, the sum has a wait of its own, while the first product
of the iteration is still in flight. Copies for later iterations begin right after this wait, because they overwrite
what the product has read. So the barrier and some forty instructions that begin them overlap the first product. If the
iteration itself computes with the sum, there is one wait for both, because ptxas would otherwise serialize the
products.

    %2 = ttng.warp_group_dot_wait %acc {pendings = 1 : i32}
    begin copies
    %s = ttng.warp_group_dot_wait %0 {pendings = 0 : i32}

Products between those two that need only what is loaded begin right behind the first (gradients of attention: the
output's gradient times the values), so that matrix units have work while the first one's result is used. Each result is
in registers from then on, so this is done where a thread has enough of them.

Products between the two whose result is only loop-carried (the gradient of the values) are in flight until the
iteration ends, while the last one's operand is computed. Their left operands stay in registers meanwhile.

    %t = ttng.warp_group_dot %p, %o, %sum {isAsync = true}
    ...
    %d = ttng.warp_group_dot %ds, %q, %1 {isAsync = true}
    %u = ttng.warp_group_dot_wait %t {pendings = 1 : i32}
    scf.yield %d, %u

If the only product of a loop takes an operand that the loop itself stores (weights that are widened, scaled, or
unpacked), the operand gets two buffers, so that the next iteration computes and stores its own while the product runs:

    %w = ttg.local_alloc %x
    %d = ttng.warp_group_dot %a, %w, %acc
    scf.yield %d
becomes
    %w = ttg.memdesc_index %two[%parity]
    ttg.local_store %x, %w
    %0 = ttng.warp_group_dot_wait %acc {pendings = 0 : i32}
    %d = ttng.warp_group_dot %a, %w, %0 {isAsync = true}
    scf.yield %d

If there is one more buffer than stages (buffer_counts.py), products of two iterations are in flight, so that tensor
cores are busy while copies are begun: these overwrite what was read two iterations ago, and the wait at the beginning
is for that product.

    %0 = ttng.warp_group_dot_wait %acc {pendings = 1 : i32}
    %d = ttng.warp_group_dot %a, %b, %0 {isAsync = true}
    scf.yield %d

If the iteration itself uses the result of its only product, it waits at once, but begins the copies for later
iterations between the product and the wait (`begin_product`).

The results that the loop yields are awaited after it. Until then, operands must not change: they are in one of several
buffers, or were computed before the loop. Which products may be in flight at which time is as in Triton
(`WGMMAPipeline.cpp`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.ir import Builder, bit_width, element_of, is_tensor, walk
from weft.ir.gpu import MemDescType, layout_of, memdesc
from weft.ir.gpu.products import OperandFenceOp, SharedProductOp, shared_products
from weft.ir.gpu.ttg import LocalAllocOp, LocalStoreOp, MemDescIndexOp

from .removal import remove

VIEWS = ("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_subslice", "ttg.memdesc_index")
OTHER_WORDS = 32
"""Registers for addresses, counters and rows, beside the tiles of an iteration."""
MANY_RESULTS = 64
"""Registers of a product's result: while one of two blocks computes with so many, the other's products end."""
FEW_OTHERS = 24
"""The same if the tiles of an iteration are counted without the operand of its last product, which is computed when
other tiles are no longer needed."""


def all_go_on(loop: scf.ForOp) -> bool:
    """Whether each product of a loop may stay in flight until those of the next iteration have begun."""
    products = shared_products(loop.body.block)
    return bool(products) and all(_goes_on(loop, op) for op in products)


def overlap_products(loop: scf.ForOp, registers: int = 0, is_one_of_many: bool = False) -> Operation | None:
    """Keep products of a loop in flight where possible, in `registers` of a thread. With `is_one_of_many`, other
    blocks have products for the matrix units while one computes. Returns the wait for the previous iteration's
    products, if there is one.
    """
    products = shared_products(loop.body.block)
    if all_go_on(loop):
        return _all_overlap(loop, products)
    if not products or any(op.parent is not loop.body.block for op in products):
        return None
    if len(products) > 1 and _waits_for_first(loop, products[0], products[-1]):
        return _last_overlaps(loop, products, registers, is_one_of_many)
    return None


def are_used_at_once(loop: scf.ForOp) -> bool:
    """Whether no product of a loop is in flight across iterations."""
    products = shared_products(loop.body.block)
    if not products or any(op.parent is not loop.body.block for op in products) or all_go_on(loop):
        return False
    return len(products) == 1 or not _waits_for_first(loop, products[0], products[-1])


def _all_overlap(loop: scf.ForOp, products: Sequence[SharedProductOp]) -> Operation:
    """Keep each product in flight until those of the next iteration have begun."""
    end = loop.body.block.last_op
    assert end is not None
    for op in products:
        op.begin()
    results: list[SSAValue] = [op.d for op in products]
    wait = _wait(products[0], Builder.after(products[-1]), results, len(products))
    for old, new in zip(results, wait.results, strict=True):
        for i, value in enumerate(end.operands):
            if value is old:
                end.operands[i] = new
    _await_after(loop, products[0], [i for i, x in enumerate(end.operands) if x in wait.results])
    return wait


def overlaps_two_iterations(loop: scf.ForOp, copied: Set[SSAValue]) -> bool:
    """Whether all products of a loop may stay in flight, once loaded tiles are in one of several buffers."""
    products = shared_products(loop.body.block)
    return bool(products) and all(
        _is_carried(loop, op) and all(_is_copied(x, copied) or _outlasts(loop, x) for x in (op.a, op.b))
        for op in products
    )


def _is_copied(memory: SSAValue, copied: Set[SSAValue]) -> bool:
    """Whether memory holds a loaded tile without a computation on it."""
    while isinstance(memory.owner, Operation) and memory.owner.name in (*VIEWS, "tt.trans", "ttg.local_alloc"):
        if not memory.owner.operands:
            return False
        memory = memory.owner.operands[0]
    return memory in copied


def overlap_two_iterations(loop: scf.ForOp, first: Operation) -> Operation:
    """Keep products in flight for two iterations: wait at `first` for those of two iterations ago. Returns the last."""
    products = [op for op in loop.body.block.ops if isinstance(op, SharedProductOp)]
    totals = [op.c for op in products]
    wait = _wait(products[0], Builder.before(first), totals, len(products))
    for op, old, new in zip(products, totals, wait.results, strict=True):
        op.begin()
        old.replace_uses_with_if(new, lambda use, op=op: use.operation is op)  # type: ignore[misc]
    end = loop.body.block.last_op
    assert end is not None
    _await_after(loop, products[0], [i for i, x in enumerate(end.operands) if x in [op.d for op in products]])
    return products[-1]


def _last_overlaps(
    loop: scf.ForOp, products: Sequence[SharedProductOp], registers: int, is_one_of_many: bool
) -> Operation:
    """Let the last product run until the first one of the next iteration has begun. Returns the wait for it."""
    first, last = products[0], products[-1]
    (use,) = last.d.uses
    total = loop.body.block.args[use.index + 1]
    words = words_held(loop)
    made_last = words_of(last.a) if is_tensor(last.a.type) else 0
    has_room = words - made_last + FEW_OTHERS <= registers
    going = [op for op in products[1:-1] if _is_carried(loop, op) and _goes_on_there(loop, op)]
    if is_one_of_many:
        is_early = words + OTHER_WORDS <= registers
    else:
        is_early = has_room and bool(going) and words_of(first.d) >= MANY_RESULTS
    ready = _ready(loop, products) if is_early else []
    begun = _begin_behind(first, ready)
    if going and has_room and not ready:
        _end_with_iteration(loop, going)
    first.begin()
    last.begin()
    alone = _is_carried(loop, last)
    values: list[SSAValue] = [total] if alone else [first.d, total]
    wait = _wait(first, Builder.after(begun), values, len(ready) + alone)
    _use_awaited(values, wait)
    if alone:
        _use_awaited([first.d], _wait(first, Builder.after(wait), [first.d], len(ready)))
    _await_after(loop, first, [use.index])
    return wait


def _use_awaited(values: Sequence[SSAValue], wait: Operation) -> None:
    """Replace uses of results by the values that a wait returns for them."""
    for old, new in zip(values, wait.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation is not wait)


def _goes_on_there(loop: scf.ForOp, product: SharedProductOp) -> bool:
    """Whether the operands of a product do not change until the iteration ends."""
    return _outlasts(loop, product.b) and (is_tensor(product.a.type) or _outlasts(loop, product.a))


def _end_with_iteration(loop: scf.ForOp, going: Sequence[SharedProductOp]) -> None:
    """Wait at the end of the iteration for products before the last one whose results are only loop-carried. By then
    the last one has begun."""
    end = loop.body.block.last_op
    assert end is not None
    for op in going:
        op.begin()
    results: list[SSAValue] = [op.d for op in going]
    wait = _wait(going[0], Builder.before(end), results, 1)
    for old, new in zip(results, wait.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation is not wait)


def words_held(loop: scf.ForOp) -> int:
    """The registers that a thread needs if all products of a loop are in flight: for loop-carried tiles, results, and
    operands in registers.
    """
    products = shared_products(loop.body.block)
    carried = [x for x in loop.body.block.args if is_tensor(x.type)]
    results = [op.d for op in products if op.c not in carried]
    return sum(map(words_of, {*carried, *results, *(op.a for op in products if is_tensor(op.a.type))}))


def words_of_results(loop: scf.ForOp) -> int:
    """The registers that a thread needs for the results of a loop's products."""
    return sum(words_of(op.d) for op in shared_products(loop.body.block))


def words_of(tile: SSAValue) -> int:
    """The registers of 32 bits that a tile takes in a thread."""
    return layout_of(tile.type).in_dims["register"] * bit_width(element_of(tile.type)) // 32


def _ready(loop: scf.ForOp, products: Sequence[SharedProductOp]) -> list[SharedProductOp]:
    """The products between the first and the last that need no value computed in the iteration, and whose results it
    uses before the last one begins.
    """
    body = loop.body.block
    late = set(itertools.dropwhile(lambda op: op is not products[-1], body.ops))
    found = []
    for op in products[1:-1]:
        is_there = _is_outside(op.c, loop) or isinstance(op.c.owner, arith.ConstantOp)
        is_there = is_there and all(_is_outside(x, loop) or _outlasts(loop, x) for x in (op.a, op.b))
        users = {_in_body(use.operation, loop) for use in op.d.uses}
        if is_there and users and not users <= late:
            found.append(op)
    return found


def _begin_behind(first: SharedProductOp, ready: Sequence[SharedProductOp]) -> SharedProductOp:
    """Begin products right after the first one of their body, and wait for each where its result is used. Returns the
    last one that is begun there.
    """
    body = first.parent
    assert body is not None
    at: Operation = first
    for op in ready:
        later = set(itertools.dropwhile(lambda x, at=at: x is not at, body.ops))  # type: ignore[misc]
        for moved in (*(x for x in _made_of(op) if x in later), op):
            moved.detach()
            body.insert_op_after(moved, at)
            at = moved
        op.begin()
    for op in ready:
        users = {use.operation for use in op.d.uses}
        place = next(x for x in body.ops if not users.isdisjoint(walk(x)))
        wait = _wait(op, Builder.before(place), [op.d], 0)
        op.d.replace_uses_with_if(wait.results[0], lambda use, wait=wait: use.operation is not wait)  # type: ignore[misc]
    return ready[-1] if ready else first


def _made_of(product: SharedProductOp) -> list[Operation]:
    """The views of memory and the constants in the block of a product from which its operands are made, in order."""
    body = product.parent
    assert body is not None
    todo, found = list(product.operands), set[Operation]()
    while todo:
        op = todo.pop().owner
        if isinstance(op, Operation) and op.parent is body and op.name in (*VIEWS, "arith.constant"):
            found.add(op)
            todo += op.operands
    return [op for op in body.ops if op in found]


def stored_operands(loop: scf.ForOp) -> list[LocalAllocOp]:
    """The operands that a loop's only product takes from the iteration's own stores; none if it could not stay in
    flight with them.
    """
    products = shared_products(loop.body.block)
    if len(products) != 1 or not _is_carried(loop, products[0]):
        return []
    stored = []
    for operand in (products[0].a, products[0].b):
        maker = operand.owner
        if isinstance(maker, LocalAllocOp) and maker.src is not None and maker.parent is loop.body.block:
            if [u.operation for u in operand.uses] != [products[0]]:
                return []
            stored.append(maker)
        elif not _outlasts(loop, operand):
            return []
    return stored


def overlap_stores(loop: scf.ForOp, stored: Sequence[LocalAllocOp], parity: SSAValue) -> Operation:
    """Keep the product in flight while the next iteration stores its operands, to the other one of two buffers. Returns
    the product.
    """
    (product,) = (op for op in loop.body.block.ops if isinstance(op, SharedProductOp))
    for op in stored:
        type = op.result.type
        assert isinstance(type, MemDescType) and op.src is not None
        both = memdesc((2, *type.shape), type.element_type, type.data.layout.named, mutable=True)
        buffer_type = memdesc(type.shape, type.element_type, type.data.layout.named, mutable=True)
        buffers = Builder.before(loop).create(LocalAllocOp, (), (both,)).result
        b = Builder.before(op)
        tile = b.create(MemDescIndexOp, (buffers, parity), (buffer_type,)).result
        b.create(LocalStoreOp, (op.src, tile), ())
        op.result.replace_all_uses_with(tile)
        remove(op)
    product.begin()
    total = product.c
    wait = _wait(product, Builder.before(product), [total], 0)
    total.replace_uses_with_if(wait.results[0], lambda use: use.operation is product)
    end = loop.body.block.last_op
    assert end is not None
    _await_after(loop, product, [i for i, x in enumerate(end.operands) if x is product.d])
    return product


def begin_product(loop: scf.ForOp) -> Operation | None:
    """Begin the only product of a loop before its wait, so that the operations between overlap it; None if there are
    several."""
    products = shared_products(loop.body.block)
    if len(products) != 1 or products[0].parent is not loop.body.block or is_tensor(products[0].a.type):
        return None
    (product,) = products
    product.begin()
    wait = _wait(product, Builder.after(product), [product.d], 0)
    product.d.replace_uses_with_if(wait.results[0], lambda use: use.operation is not wait)
    return product


def _waits_for_first(loop: scf.ForOp, first: SharedProductOp, last: SharedProductOp) -> bool:
    """Whether the last product's result is only loop-carried, and not used in the next iteration before its first."""
    body = loop.body.block
    uses = list(last.d.uses)
    if len(uses) != 1 or uses[0].operation is not body.last_op:
        return False
    if not _outlasts(loop, last.b) or not (is_tensor(last.a.type) or _outlasts(loop, last.a)):
        return False
    late = set(itertools.dropwhile(lambda op: op is not first, body.ops)) - {first}
    return all(_in_body(u.operation, loop) in late for u in body.args[uses[0].index + 1].uses)


def _in_body(op: Operation, loop: scf.ForOp) -> Operation:
    """The operation of the loop's body that contains an operation."""
    while op.parent is not loop.body.block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _await_after(loop: scf.ForOp, product: SharedProductOp, which: Sequence[int]) -> None:
    """Wait for a product's results after the loop."""
    handed: list[SSAValue] = [loop.results[i] for i in which]
    over = _wait(product, Builder.after(loop), handed, 0)
    for old, new in zip(handed, over.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation is not over)


def _wait(product: SharedProductOp, b: Builder, values: Sequence[SSAValue], pending: int) -> Operation:
    wait = product.wait(b, values, pending)
    for old, new in zip(values, wait.results, strict=True):
        new.name_hint = old.name_hint
    return wait


def _goes_on(loop: scf.ForOp, op: SharedProductOp) -> bool:
    """Whether a product adds to a loop-carried sum, and its operands outlast the iteration."""
    return _is_carried(loop, op) and all(_outlasts(loop, x) for x in (op.a, op.b))


def _is_carried(loop: scf.ForOp, op: SharedProductOp) -> bool:
    """Whether a product adds to a loop-carried sum that nothing else uses."""
    body, total = loop.body.block, op.c
    end = body.last_op
    if op.parent is not body or not isinstance(total, BlockArgument) or total.block is not body:
        return False
    uses = [(u.operation, u.index) for u in op.d.uses]
    return uses == [(end, total.index - 1)] and [u.operation for u in total.uses] == [op]


def _outlasts(loop: scf.ForOp, memory: SSAValue) -> bool:
    if is_tensor(memory.type):
        return False  # registers, which the next iteration computes anew
    op = memory.owner
    while isinstance(op, Operation) and loop.is_ancestor(op):
        if op.name == "ttg.memdesc_index":
            return True
        if op.name not in VIEWS:
            return False
        op = op.operands[0].owner
    return True


def hoist_operands(loop: scf.ForOp) -> None:
    """Store operands that a loop does not change to shared memory before it, and fence them there."""
    for op in list(loop.body.block.ops):
        if not isinstance(op, LocalAllocOp) or op.src is None or not _is_outside(op.src, loop):
            continue
        products = [u.operation for u in op.result.uses if isinstance(u.operation, SharedProductOp)]
        if not products or len(products) < len(list(op.result.uses)):
            continue
        again = _stored_before(loop, op)
        if again is not None:
            op.result.replace_all_uses_with(again)
            remove(op)
            continue
        op.detach()  # type: ignore[no-untyped-call]
        b = Builder.before(loop)
        b.insert(op)
        products[0].fence(b)


def _stored_before(loop: scf.ForOp, op: LocalAllocOp) -> SSAValue | None:
    """Memory to which the same tile has been stored for products of an earlier loop in the same block."""
    at = loop.prev_op
    while at is not None:
        same = isinstance(at, LocalAllocOp) and at.src is op.src and at.result.type == op.result.type
        if same and all(isinstance(use.operation, SharedProductOp) for use in at.results[0].uses):
            return at.results[0]
        at = at.prev_op
    return None


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    if isinstance(value, BlockArgument):
        return value.block is not loop.body.block
    return isinstance(value.owner, Operation) and not loop.is_ancestor(value.owner)


def drop_fences(loop: scf.ForOp) -> None:
    """Remove fences from a loop that stores no operand of a product itself."""
    if not any(isinstance(op, LocalAllocOp) for op in loop.body.block.ops):
        remove_fences(loop)


def remove_fences(loop: scf.ForOp) -> None:
    """Remove all fences of a loop's products."""
    for op in list(loop.body.block.ops):
        if isinstance(op, OperandFenceOp):
            remove(op)
