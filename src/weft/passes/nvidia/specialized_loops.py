"""Decide which loops of products are specialized, and into which parts they are divided.

A loop qualifies if the copy engine can do all loads of operands (bulk_loads.py), nothing in it waits for other threads
or stores to what it loads, and shared memory has room for two buffers of each operand. It is specialized if the author
asks for it. Otherwise it is specialized if a product would overlap the operations between two products (`Halves`) or
those of another warp group (`are_used_at_once`), and a multiprocessor has room for only one block of its eight warps.

specialize_warps.py then rewrites the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import bit_width, element_of, int_value, is_float, is_tensor, shape_of, tt, walk
from weft.ir.gpu import MemDescType
from weft.ir.gpu.products import SharedProductOp, shared_products
from weft.ir.nvidia import ttng
from weft.machines import Machine

from ..loop_memory import SPARE_BYTES, moved_bytes, other_bytes
from ..pipeline_loads import has_effects
from ..pointer_roots import root_of
from .bulk_loads import BulkLoad, bulk_loads, function_of
from .bulk_stores import BulkStore, bulk_stores
from .side_by_side import Row, products_of, rows_of
from .staging import NO_STAGING, Staging, ways_to_store

ASKED = "tt.warp_specialize"
UNASKED = "the kernel does not ask for it (warp_specialize=True)"
MANY_PRODUCTS = 3
"""With so many products, some always overlap operations on the results of others (product_waits.py)."""
WARPS = (4, 8)
HALF_OF_THE_REGISTERS = 128 - 40
"""Registers that a thread of 8 warps may hold in tiles if two blocks are to fit: 40 are left for addresses and sums."""
SPECIAL_A_CLOCK, LANES, BITS_MULTIPLIED = 16, 128, 32768
"""What a multiprocessor does in a clock: exponentials and other special functions, other operations on numbers, and
multiplications, counted in bits: 2,048 of 16 bits (NVIDIA H100 whitepaper; CUDA C++ programming guide, arithmetic
instructions)."""
FREE = ("arith.constant", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.load", "ttg.", "ttng.")
LARGE_TILE = 128 * 128
"""The least elements of a product for which a producer warp pays in a loop over tiles."""
MOVES = ("tt.reduce", "tt.scan", "tt.gather", "tt.histogram")
"""Operations that may need shared memory of their own. (`moved_bytes` counts that of conversions.)"""
WORDS_BYTES = 1 << 10
"""Shared memory for mbarriers and the like."""
COUNTS = ("ttg.num-warps", "ttg.num-ctas")
WRITES = ("tt.store", "tt.atomic_rmw", "tt.atomic_store", "tt.atomic_cas")
STORED_BEFORE = "the kernel stores to memory that the loop loads, and the copy engine need not see stores of threads"


@dataclass(frozen=True)
class Group:
    """Loads that the same products multiply, of which it has the numbers of the first and the last. Each buffer of a
    group has one mbarrier that says that it is full, and one that says that it is empty."""

    loads: tuple[BulkLoad, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Halves:
    """A loop of two products whose second one can be begun in the next iteration."""

    carried: int
    """The value that the loop carries to which the last product adds."""
    late: frozenset[Operation]
    """The operations on that value before the product: they wait for the previous iteration's product."""
    packing: frozenset[Operation]
    """The operations that convert the left operand for the product. They come after that wait too: if they wrote
    registers that a product is reading, ptxas would serialize the products."""
    between: float
    """The fewest clocks of a multiprocessor for the operations between the products."""
    products: float
    """Clocks for the products."""

    @property
    def follows(self) -> bool:
        """Whether the operations between the products should begin when the second product has ended: they overlap the
        products of the other warp group, which take longer. Otherwise they begin when the first has ended."""
        return self.products > self.between


@dataclass(frozen=True)
class Plan:
    """How a loop is specialized."""

    groups: tuple[Group, ...]
    count: int
    """The number of buffers of each operand."""
    warps: int
    """The number of warps that multiply."""
    halves: Halves | None
    rows: tuple[Row, ...]
    """All products; those that one instruction computes are in one row."""
    tiles: scf.ForOp | None = None
    """The loop over tiles around the loop, which is specialized with it."""
    stores: tuple[BulkStore, ...] = ()
    """The tiles that the copy engine stores, or adds to memory."""
    staging: Staging = NO_STAGING
    """By way of which memory these go."""
    blocks: int = 1
    """The number of blocks in the cluster of a program."""


def planned(loop: scf.ForOp, stages: int, machine: Machine) -> Plan | str:
    """How a loop is specialized, or, in words, why it is not."""
    around = loop.parent_op()
    tiles = around if isinstance(around, scf.ForOp) else None
    function = function_of(loop if tiles is None else tiles)
    module = function.parent_op() if function is not None else None
    if isinstance(around, scf.WhileOp):
        return "it is in a `while` loop, and a loop over tiles is only specialized if it is a `for`"
    if module is None:
        return "it is in a loop that is no loop over tiles, or in a branch in which another loop is specialized"
    if tiles is not None and function is not tiles.parent_op():
        return "the loop over tiles is inside a branch"
    warps, blocks = (int_value(module.attributes[n]) if n in module.attributes else 0 for n in COUNTS)
    products = shared_products(loop.body.block)
    if not products or not all(isinstance(op, ttng.WarpGroupDotOp) for op in products):
        return "it has no product by wgmma"
    if any(op.parent is not loop.body.block for op in products):
        return "a product is inside a branch"
    if blocks > 1 and tiles is None and function is not around:
        return "a program is a cluster, and the loop is inside a branch"
    if blocks > 1 and not is_asked(loop):
        return f"a program is a cluster, and {UNASKED}"
    if blocks > 1 and any(use.operation is not loop.body.block.last_op for op in products for use in op.d.uses):
        return "a program is a cluster, and an iteration uses the result of a product"
    if warps not in WARPS:
        return f"{warps} warps are neither one nor two warp groups"
    if stages < 2:
        return "num_stages is 1"
    if "unsignedCmp" in loop.properties:
        return "its counter is unsigned"
    if any(has_effects(op) for op in walk(loop.body.block)):
        return "it has an operation at which warps wait for each other, or for memory"
    if tiles is not None and (why := _not_over_tiles(tiles, loop)):
        return why
    loads = bulk_loads(loop, machine)
    if isinstance(loads, str):
        return loads
    whole = loop if tiles is None else tiles
    stored = stored_before(whole) | stored_in(whole.body.block)
    if None in stored or any(x.base in stored for x in loads):
        return STORED_BEFORE
    halves = halves_of(loop, products)
    if not is_asked(loop) and not (tiles is not None and _gains_over_tiles(products)):
        gains = halves is not None or len(products) >= MANY_PRODUCTS
        if not gains and not are_used_at_once(loop, products):
            return f"{UNASKED}, and no product would overlap other work"
        if warps < max(WARPS):
            return f"{UNASKED}, and {warps} warps leave room for other blocks"
        held = _held(products, 32 * warps) + (0 if gains else _added_to(loop, 32 * warps))
        if held <= HALF_OF_THE_REGISTERS:
            return f"{UNASKED}, and two blocks at a time overlap as much"
    rows = rows_of(loop, products, loads, machine)
    groups = _groups(loads, rows)
    room = _Room(whole, loads, stages, machine)
    bulk = tuple(bulk_stores(loop, tiles, warps))
    none: tuple[BulkStore, ...] = ()
    behind = tiles is not None and all(_comes_behind(x.store, loop) for x in bulk)
    ways = [*((bulk, each) for each in ways_to_store(bulk, loads if behind else (), rows)), (none, NO_STAGING)]
    count, copied, staging = max(((room.count(*way), *way) for way in ways), key=lambda x: x[0])
    return (
        Plan(tuple(groups), count, warps, halves, tuple(rows), tiles, copied, staging, blocks)
        if count > 1
        else "shared memory has no room for two buffers of each operand"
    )


@dataclass(frozen=True)
class _Room:
    """Shared memory for the buffers of a loop."""

    whole: scf.ForOp
    loads: Sequence[BulkLoad]
    stages: int
    machine: Machine

    def count(self, stored: Sequence[BulkStore], staging: Staging) -> int:
        """How many buffers of each operand there can be, where the copy engine stores some tiles by way of others."""
        without = [x.conversion for x in stored if x.conversion is not None]
        moved = moved_bytes(self.whole, self.loads, self.machine, without)
        moves = bool(moved) or any(op.name in MOVES for op in walk(self.whole.body.block))
        spare = SPARE_BYTES if moves or not stored else WORDS_BYTES
        stores = staging.own_bytes(stored)
        behind = self._moved_behind(without)
        used = max(spare + moved, behind) + other_bytes(self.whole, self.loads, False) + stores
        return min(self.stages, (self.machine.shared_bytes - used) // sum(x.bytes for x in self.loads))

    def _moved_behind(self, without: Sequence[Operation]) -> int:
        """Bytes of the largest tile that is moved behind a loop in a branch: each kind of warps has all of the branch
        (specialized_branches.py), so that the buffers are in use to its end. Behind any other loop they are free."""
        at: Operation = self.whole
        while isinstance(around := at.parent_op(), scf.IfOp):
            at = around
        return 0 if at is self.whole else moved_bytes(at, self.loads, self.machine, without)


def _comes_behind(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an operation stands in the block of a loop, behind it."""
    at = loop.next_op
    while at is not None and at is not op:
        at = at.next_op
    return at is op


def _gains_over_tiles(products: Sequence[SharedProductOp]) -> bool:
    """Whether copies that run ahead into the next tile gain more than a warp that copies costs: of large tiles, which
    have much to store meanwhile."""
    return all(prod(shape_of(op.d.type)) >= LARGE_TILE for op in products)


def is_asked(loop: scf.ForOp) -> bool:
    """Whether the author asks for it, of the loop or of the loop over tiles that it is in."""
    around = loop.parent_op()
    return ASKED in loop.attributes or (isinstance(around, scf.ForOp) and ASKED in around.attributes)


def multiplies(loop: scf.ForOp) -> bool:
    """Whether a loop has a product of tiles, by any instruction."""
    return any(isinstance(op, tt.DotOp | SharedProductOp) for op in walk(loop.body.block))


def has_own_products(loop: Operation) -> bool:
    """Whether a product of tiles stands in a loop, and in none inside of it."""

    def loop_of(op: Operation) -> Operation | None:
        at = op.parent_op()
        while isinstance(at, scf.IfOp):
            at = at.parent_op()
        return at

    products = (op for op in walk(loop) if isinstance(op, tt.DotOp | SharedProductOp))
    return any(loop_of(op) is loop for op in products)


def _not_over_tiles(tiles: scf.ForOp, loop: scf.ForOp) -> str | None:
    """Why a loop around a loop of products cannot be divided with it, in words; None where it can."""
    if "unsignedCmp" in tiles.properties:
        return "the counter of the loop over tiles is unsigned"
    ops = list(walk(tiles.body.block))
    if any(isinstance(op, scf.ForOp | scf.WhileOp) and op is not loop for op in ops):
        return "the loop over tiles has another loop in it"
    if len(shared_products(tiles.body.block)) > len(shared_products(loop.body.block)):
        return "the loop over tiles has another product in it"
    if any(has_effects(op) for op in ops):
        return "the loop over tiles has an operation at which warps wait for each other, or for memory"
    return None


def stored_in(block: Block) -> set[SSAValue | None]:
    """The arguments through which a block stores; None among them where one is not known."""
    return {root_of(op.operands[0]) for op in walk(block) if op.name in WRITES}


def stored_before(loop: scf.ForOp) -> set[SSAValue | None]:
    """The arguments through which the kernel stores before a loop; None among them where one is not known."""
    found: set[SSAValue | None] = set()
    at: Operation | None = loop
    while at is not None and not isinstance(at, tt.FuncOp):
        before = at.prev_op
        if before is not None:
            found |= {root_of(op.operands[0]) for op in walk(before) if op.name in WRITES}
        at = before if before is not None else at.parent_op()
    return found


def _held(products: Sequence[SharedProductOp], threads: int) -> int:
    """Registers of a thread that results of products, and operands in registers, take at least."""
    total = 0
    for op in products:
        tiles = [op.d.type, *([op.a.type] if is_tensor(op.a.type) else [])]
        total += sum(prod(shape_of(t)) * bit_width(element_of(t)) for t in tiles) // 32 // threads
    return total


def are_used_at_once(loop: scf.ForOp, products: Sequence[SharedProductOp]) -> bool:
    """Whether an iteration computes with the result of each of its products (scales it, adds it to a sum), for which
    the warp group waits: the matrix units are idle then, or have the products of another group."""
    end = loop.body.block.last_op
    users = [[u.operation for u in op.d.uses] for op in products]
    return bool(users) and all(ops and not any(op is end or op in products for op in ops) for ops in users)


def _added_to(loop: scf.ForOp, threads: int) -> int:
    """Registers of a thread that tiles of floats which the loop carries take at least."""
    types = [r.type for r in loop.results if is_tensor(r.type) and is_float(element_of(r.type))]
    return sum(prod(shape_of(t)) * bit_width(element_of(t)) for t in types) // 32 // threads


def _groups(loads: Sequence[BulkLoad], rows: Sequence[Row]) -> list[Group]:
    """In the order in which products want them."""
    found: dict[tuple[int, int], list[BulkLoad]] = {}
    products = [op for row in rows for op in row.products]
    for bulk in loads:
        those = products_of(bulk.load.result)
        users = [products.index(x) for row in rows if not set(row.products).isdisjoint(those) for x in row.products]
        found.setdefault((min(users), max(users)), []).append(bulk)
    return [Group(tuple(found[key]), *key) for key in sorted(found)]


def halves_of(loop: scf.ForOp, products: Sequence[SharedProductOp]) -> Halves | None:
    """How a loop of two products falls apart; None where it does not."""
    if len(products) != 2:
        return None
    body, (first, last) = loop.body.block, products
    end = body.last_op
    uses = list(last.d.uses)
    if len(uses) != 1 or uses[0].operation is not end or not is_tensor(last.a.type):
        return None
    total = body.args[uses[0].index + 1]
    late = {op for op in made_of(total, body) if op is not last and op is not end}
    if first in late or any(op.regions for op in late):
        return None
    for op in late:
        for result in op.results:
            if any(u.operation not in late and (u.operation is not last or u.index != 2) for u in result.uses):
                return None
    if last.c is not total and last.c.owner not in late:
        return None
    if any(u.operation is last and u.index != 2 for u in total.uses) or any(u.operation is end for u in total.uses):
        return None
    clocks = sum(map(_clocks, made_of(first.d, body))), sum(map(_product_clocks, products))
    return Halves(uses[0].index, frozenset(late), _packing(last, body), *clocks)


def _clocks(op: Operation) -> float:
    """What one operation on a tile takes, on all lanes of a multiprocessor; nothing if it only hands numbers on."""
    if not op.results or not is_tensor(op.results[0].type) or op.name.startswith(FREE):
        return 0.0
    count = max(prod(shape_of(x.type)) for x in (*op.operands, *op.results) if is_tensor(x.type))
    return count / (SPECIAL_A_CLOCK if op.name.startswith("math.") else LANES)


def _product_clocks(op: SharedProductOp) -> float:
    a = op.a.type
    shape, element = (a.shape, a.element_type) if isinstance(a, MemDescType) else (shape_of(a), element_of(a))
    return prod(shape) * shape_of(op.d.type)[-1] * bit_width(element) / BITS_MULTIPLIED


def _packing(product: SharedProductOp, body: Block) -> frozenset[Operation]:
    """The operations of a loop's body that make a tile of the type of a left operand, for it alone."""
    found: set[Operation] = set()
    value = product.a
    while isinstance(op := value.owner, Operation) and op.parent is body and len(op.operands) == 1 and not op.regions:
        if element_of(value.type) != element_of(product.a.type):
            break
        if any(use.operation not in found and use.operation is not product for use in value.uses):
            break
        found.add(op)
        value = op.operands[0]
        if not is_tensor(value.type):
            break
    return frozenset(found)


def made_of(value: SSAValue, body: Block) -> set[Operation]:
    """The operations of a loop's body that need a value."""
    found: set[Operation] = set()
    todo = [value]
    while todo:
        for use in todo.pop().uses:
            op = in_body(body, use.operation)
            if op is not None and op not in found:
                found.add(op)
                todo += op.results
    return found


def in_body(body: Block, op: Operation) -> Operation | None:
    """The operation of a block that an operation is in; None where it is in none."""
    at: Operation | None = op
    while at is not None and at.parent is not body:
        at = at.parent_op()
    return at
