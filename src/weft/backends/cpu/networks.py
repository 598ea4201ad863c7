"""Networks: chains of exchanges between neighbours, found in the program and made one operation.

A sorting network in tile IR is a long chain of small steps, each on the whole tile. Two keys whose positions differ in
one bit are compared by two reductions along an axis of two, and put back by a `join`:

    %lo = reduce min %x along axis 1 : 8x2x4          every key, with the one 4 positions on
    %hi = reduce max %x along axis 1 : 8x2x4
    %y  = trans (join %lo, %hi)      : 8x2x4

Each step by itself reads the tile from memory and writes it. Together they are the operation `weft.network`, which
exchange.py emits with many steps in registers. What is looked for is not a sort, but any chain of

    Exchange   two reductions of one tile along an axis of two, joined: bit b of the position says which result stays
    Keep       one such reduction: bit b of the position is gone
    Pointwise  an operation on integers whose other operands do not come from the chain

and of operations that rename positions (reshape, trans, expand_dims), where nobody looks at what is between. Other
butterflies than those of sorts are chains of this kind, too.

Positions are numbered by bits, as in coords.py: bit k of the row-major position in the chain's first tile.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.backends.cpu.coords import Coords, reshaped, row_major, trans_coords
from weft.backends.cpu.elementwise import EMITTERS
from weft.backends.cpu.program import Block, FunctionProgram, Op, Value, element_bits

NETWORK = "weft.network"
INTEGERS = ("i8", "i16", "i32", "i64")
LEAST = 3  # exchanges from which a chain is worth an operation of its own


@dataclass(frozen=True)
class Exchange:
    """Of two elements that differ in a bit of the position, one combination goes to bit 0 and another to bit 1."""

    bit: int
    low: Op
    high: Op


@dataclass(frozen=True)
class Keep:
    """Two elements that differ in a bit of the position become one."""

    bit: int
    op: Op


@dataclass(frozen=True)
class Pointwise:
    """An elementwise operation on `chain`, at coordinates that are bits of the position."""

    op: Op
    chain: Value
    coords: Coords


Step: TypeAlias = Exchange | Keep | Pointwise


@dataclass
class Network:
    """A chain: from a tile, by steps, to a tile whose coordinates are these bits of the position."""

    source: Value
    steps: list[Step]
    result: Value
    coords: Coords
    ops: list[Op]  # that it is made of, in order


def gather_networks(program: FunctionProgram) -> None:
    """Make chains of exchanges one operation each, in the place of the last of theirs."""

    def visit(blocks: Sequence[Block]) -> None:
        for block in blocks:
            taken: set[Op] = set()
            for op in block.ops:
                for region in op.regions if op.name != "tt.reduce" else ():
                    visit(region)
                if op not in taken and _is_pair(op):
                    network = _chain_from(op)
                    if network is not None:
                        taken.update(network.ops)
                        _put_in_place(network)
            if taken:
                block.ops = [op for op in block.ops if op not in taken or op.name == NETWORK]

    visit(program.blocks)


def _is_pair(op: Op) -> bool:
    """Whether an operation combines pairs of elements, by scalar operations that cannot fail."""
    if op.name != "tt.reduce" or len(op.args) != 1 or len(op.regions[0]) != 1:
        return False
    tile, block = op.args[0], op.regions[0][0]
    if tile.shape[op.attrs["axis"]] != 2 or tile.elem == "i1" or tile.elem.startswith("f8") or tile.elem == "ptr":
        return False
    known = set(block.args)
    for inner in block.ops[:-1]:
        if inner.name not in EMITTERS or not known.issuperset(inner.args):
            return False
        known.update(inner.results)
    # Halves are summed in single precision by reductions, which round once.
    return tile.elem not in ("f16", "bf16")


def _chain_from(first: Op) -> Network | None:
    """The longest chain that begins with a reduction of pairs, if it is long enough."""
    source = first.args[0]
    coords = row_major(source.shape)
    network = Network(source, [], source, coords, [])
    value, steps, ops = source, list[Step](), list[Op]()
    while True:
        following = _after(value, coords)
        if following is None:
            break
        value, coords, step, made_of = following
        ops += made_of
        if step is not None:
            steps.append(step)
        if isinstance(step, (Exchange, Keep)):  # what follows the last of them is left to the loops that read it
            network = Network(source, list(steps), value, coords, list(ops))
    count = sum(isinstance(step, (Exchange, Keep)) for step in network.steps)
    exchanges = sum(isinstance(step, Exchange) for step in network.steps)
    return network if count >= LEAST and exchanges else None


def _after(value: Value, coords: Coords) -> tuple[Value, Coords, Step | None, list[Op]] | None:
    """The next link of a chain: what it gives, its coordinates, the step, and the operations it is made of."""
    users = value.users
    home = users[0].block if users else None
    if any(user.block is not home for user in users) or len(users) > 2:
        return None
    if len(users) == 2:
        return _exchange(value, coords)
    op = users[0] if users else None
    if op is None or len(op.results) != 1 or not op.result.is_tile:
        return None
    if _is_pair(op):
        axis = op.attrs["axis"]
        return op.result, coords[:axis] + coords[axis + 1 :], Keep(coords[axis][0], op), [op]
    if op.name == "tt.reshape":
        return op.result, reshaped(coords, op.result.shape), None, [op]
    if op.name == "tt.trans":
        return op.result, trans_coords(op.attrs["order"], coords), None, [op]
    if op.name == "tt.expand_dims":
        axis = op.attrs["axis"]
        return op.result, (*coords[:axis], (), *coords[axis:]), None, [op]
    # A product and a sum of floats are rounded together or not, whatever fits in the registers: those end a chain.
    if op.name in EMITTERS and op.result.elem in INTEGERS and element_bits(op.result.elem) == element_bits(value.elem):
        return op.result, coords, Pointwise(op, value, coords), [op]
    return None


def _exchange(value: Value, coords: Coords) -> tuple[Value, Coords, Step | None, list[Op]] | None:
    """Two reductions of one tile along the same axis whose results are joined, and nothing else."""
    first, second = value.users
    if first is second or not (_is_pair(first) and _is_pair(second)) or first.attrs["axis"] != second.attrs["axis"]:
        return None
    joins = {user for op in (first, second) for user in op.result.users}
    if len(joins) != 1 or any(len(op.result.users) != 1 for op in (first, second)):
        return None
    join = joins.pop()
    if join.name != "tt.join" or join.block is not first.block:
        return None
    axis = first.attrs["axis"]
    low, high = (first, second) if join.args[0] is first.result else (second, first)
    bit = coords[axis][0]
    rest = coords[:axis] + coords[axis + 1 :]
    return join.result, (*rest, (bit,)), Exchange(bit, low, high), [first, second, join]


def _put_in_place(network: Network) -> None:
    """Exchange the operations of a chain for one, where the last of them is."""
    last = max(network.ops, key=lambda op: op.index)
    inside, made = set(network.ops), {v for op in network.ops for v in op.results}
    args = [network.source]
    args += [a for op in network.ops for a in op.args if a not in made and a is not network.source]
    args = list(dict.fromkeys(args))
    block = last.block
    op = Op(NETWORK, args, {"network": network}, block, last.index, last.source)
    op.span = next((o.span for o in network.ops if o.span is not None), None)
    op.results = [network.result]
    network.result.op, network.result.index = op, 0
    for a in args:
        a.users = [user for user in a.users if user not in inside]
        insort(a.users, op, key=lambda user: user.index)
    block.ops[block.ops.index(last)] = op
    network.ops.append(op)
