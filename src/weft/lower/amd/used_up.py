"""Move operations before products if they are the last to use their operands and take fewer registers than these.

    %p = math.exp2 %x                  64 registers                 %p = math.exp2 %x
    %h = arith.truncf %p               32                           %h = arith.truncf %p
    %o = wmma %h, ...                                               %s = the sum of %p
    ... more products                                     becomes   %o = wmma %h, ...
    %s = the sum of %p                 1                            ... more products

Attention, as authors write it, sums the weights of a block in f32 after the product that takes them as f16. A lane then
holds both while the products run. LLVM's scheduler prefers to begin long operations first, and runs out of registers.

A connected group of operations without effects moves before the first product that follows all of its operands, if its
results have fewer words than those of its operands that nothing else uses after that product.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, LaneProgram, Value, is_elementwise
from weft.targets.table import instruction

MOVABLE = ("constant", "linear", "rename", "join", "pack", "unpack", "permute", "shuffle")
"""Operations without effects, beside those on elements."""


def use_up_before_products(program: LaneProgram) -> None:
    """Move operations in all blocks of a program that have products."""
    uses = program.body.uses()
    for block in (program.body, *(region for op in program.body.walk() for region in op.regions)):
        products = [i for i, op in enumerate(block.ops) if is_product(op)]
        if products:
            _in_block(block, products, uses)


def _in_block(block: Block, products: Sequence[int], uses: dict[Value, list[LaneOp]]) -> None:
    place = {op: i for i, op in enumerate(block.ops)}
    ready: dict[LaneOp, int] = {}
    """Behind which place what an operation needs is there, if all that can move has moved."""
    groups: dict[int, list[LaneOp]] = {}
    """By the product that operations could come before."""
    for i, op in enumerate(block.ops):
        ready[op] = i
        if is_movable(op):
            ready[op] = max([ready.get(x.op, -1) for x in op.operands if x.op is not None], default=-1)
            number = bisect_right(products, ready[op])
            if number < len(products) and products[number] < i:
                groups.setdefault(products[number], []).append(op)
    target: dict[LaneOp, int] = {}
    """The product that an operation is to come before."""
    for product, ops in groups.items():
        for part in _connected(ops):
            if _saves(part, product, place, uses):
                for op in part:
                    _move(op, product, place, target)
    before: dict[int, list[LaneOp]] = {}
    for op in sorted(target, key=place.__getitem__):
        before.setdefault(target[op], []).append(op)
    kept = [(i, op) for i, op in enumerate(block.ops) if op not in target]
    block.ops[:] = [x for i, op in kept for x in (*before.get(i, ()), op)]


def _move(op: LaneOp, product: int, place: dict[LaneOp, int], target: dict[LaneOp, int]) -> None:
    """An operation, and what it needs of those behind a product, to before it."""
    todo = [op]
    while todo:
        x = todo.pop()
        if place[x] > product and target.get(x, place[x]) > product:
            target[x] = product
            todo += [y.op for y in x.operands if y.op in place]


def _connected(ops: Sequence[LaneOp]) -> Iterator[list[LaneOp]]:
    """Operations that use each other's results, together."""
    leader: dict[LaneOp, LaneOp] = {op: op for op in ops}

    def find(op: LaneOp) -> LaneOp:
        while leader[op] is not op:
            op = leader[op]
        return op

    for op in ops:
        for x in op.operands:
            if x.op in leader and x.op.name != "constant":
                leader[find(x.op)] = find(op)
    parts: dict[LaneOp, list[LaneOp]] = {}
    for op in ops:
        parts.setdefault(find(op), []).append(op)
    return iter(parts.values())


def _saves(part: Sequence[LaneOp], product: int, place: dict[LaneOp, int], uses: dict[Value, list[LaneOp]]) -> bool:
    """Whether fewer words are held across a product, and those behind it, if a part comes before it."""
    inside = {*part}
    given = {r for op in part for r in op.results if any(u not in inside for u in uses.get(r, ()))}
    taken = {x for op in part for x in op.operands if x.op not in inside}
    freed = [
        x for x in taken
        if all(u in inside or place.get(u, product) < product for u in uses[x])
    ]  # fmt: skip
    return sum(map(_words, given)) < sum(map(_words, freed))


def _words(value: Value) -> int:
    """Registers; a condition has one of its own kind, of which there are fewer."""
    if value.elem == "i1":
        return value.count
    return -(-value.count * ELEMENT_BITS[value.elem] // 32)


def is_movable(op: LaneOp) -> bool:
    """Whether an operation only computes registers from others of its lanes' warp."""
    return op.name in MOVABLE or is_elementwise(op.name)


def is_product(op: LaneOp) -> bool:
    """Whether an operation is a matrix instruction."""
    return op.name == "instruction" and bool(instruction(op.attrs["isa"]).products)
