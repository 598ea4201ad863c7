"""Which tiles must have the same layout, and which have no layout of their own.

    %r = tt.make_range {end = 64}        free: it can be computed in any layout
    %x = tt.load %p                      a group: %x, %y and %s are combined element by element
    %y = arith.addf %x, %x
    %v = tt.expand_dims %y               a view: computed again for each user
    %s = scf.for ... iter_args(%a = %y)  %a, the tile that the loop yields, and %s are a group; %y is in another

Tiles of different loops are in different groups: one conversion before a loop can save one in each of its iterations.
Groups are disjoint sets with a leader each; `Choices` has a layout for each leader. Not here: which layout that is
(layout_choices.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.ir import is_tensor, walk
from weft.ops.table import ELEMENTWISE, PACKING, ROWS

ACCESSES = ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store")
VIEWS = ("tt.broadcast", "tt.expand_dims", "tt.splat")
"""Operations that are made anew in every layout that is wanted of their result."""
MOVED_VIEWS = ("tt.trans", "tt.reshape")
"""These are computed again too if their operand repeats the elements of a smaller tile: then the smaller one moves."""
FREE = {
    *("arith.constant", "tt.make_range", "tt.addptr", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int", *VIEWS),
    *(name for name in ELEMENTWISE if ROWS[name].cost == 1 or ROWS[name].kind.source == "int"),
}
LOOPS = ("scf.for", "scf.while")
TOGETHER = ELEMENTWISE | PACKING | {"tt.scan", "arith.constant"}
"""Operations whose operands and results lie alike."""


class TileGroups:
    """The tiles of one function in disjoint sets; made while types are plain."""

    def __init__(self) -> None:
        self._leader: dict[SSAValue, SSAValue] = {}
        self._free: dict[SSAValue, bool] = {}

    def is_free(self, value: SSAValue) -> bool:
        """Whether a tile can be computed in any layout without moving anything."""
        is_free = self._free.get(value)
        if is_free is None:
            is_free = self._free[value] = self._computable(value)
        return is_free

    def _computable(self, value: SSAValue) -> bool:
        if not is_tensor(value.type):
            return True
        op = value.owner
        if not isinstance(op, Operation) or op.name not in FREE:
            return False
        return all(self.is_free(x) for x in op.operands)

    def is_view(self, value: SSAValue) -> bool:
        """Whether a tile is made anew wherever it is wanted, from what is not free."""
        op = value.owner
        if not isinstance(op, Operation):
            return False
        return op.name in VIEWS or (op.name in MOVED_VIEWS and self.is_spread(op.operands[0]))

    def is_spread(self, value: SSAValue) -> bool:
        """Whether a tile repeats the elements of a smaller one, perhaps transposed or reshaped since."""
        op = value.owner
        while isinstance(op, Operation) and op.name in MOVED_VIEWS:
            op = op.operands[0].owner
        return isinstance(op, Operation) and op.name in ("tt.broadcast", "tt.splat")

    def find(self, value: SSAValue) -> SSAValue:
        """The leader of a tile's group."""
        while (leader := self._leader.get(value, value)) is not value:
            self._leader[value] = self._leader.get(leader, leader)
            value = leader
        return value

    def has_layout(self, value: SSAValue) -> bool:
        """Whether a value is a tile with a layout of its own."""
        return is_tensor(value.type) and not self.is_free(value) and not self.is_view(value)

    def is_apart(self, value: SSAValue, op: Operation) -> bool:
        """Whether a tile is made in another loop than where an operation uses it, so that the two may lie otherwise."""
        return self.has_layout(value) and _loop_of(value) is not _loop_around(op)

    def unite(self, values: Sequence[SSAValue]) -> list[tuple[SSAValue, SSAValue]]:
        """Put tiles into one group; for each two groups that became one, their leaders, of which the first leads."""
        tiles, merged = [x for x in values if self.has_layout(x)], []
        for value in tiles[1:]:
            a, b = self.find(tiles[0]), self.find(value)
            if a is not b:
                self._leader[b] = a
                merged.append((a, b))
        return merged

    def stands_for(self, new: SSAValue, old: SSAValue) -> None:
        """A tile takes the place of another, in its group."""
        self._leader[new] = self.find(old)

    def alike(self, block: Block) -> Iterator[list[SSAValue]]:
        """Values that the blocks of a cluster should divide alike: those that have to agree, but for what is free."""
        for op in walk(block):
            if op.name.startswith("scf."):
                groups = carried(op)
            elif op.name in TOGETHER or op.name in ACCESSES:
                groups = [[*op.operands, *op.results]]
            elif op.name in ("tt.dot", "tt.reduce"):
                groups = [[op.operands[2], op.results[0]]] if op.name == "tt.dot" else [list(op.operands)]
            else:
                continue
            for group in groups:
                yield [x for x in group if self.has_layout(x)]


def _loop_of(value: SSAValue) -> Operation | None:
    """The loop to which a tile belongs: around its operation, or that which gives it."""
    op = value.owner
    if isinstance(op, Operation):
        return op if op.name in LOOPS else _loop_around(op)
    around = op.parent_op()
    return around if around is None or around.name in LOOPS else _loop_around(around)


def _loop_around(op: Operation) -> Operation | None:
    around = op.parent_op()
    while around is not None and around.name not in LOOPS:
        around = around.parent_op()
    return around


def entered(op: Operation) -> list[tuple[SSAValue, BlockArgument]]:
    """What a loop is given, each with the argument that begins as that."""
    if op.name not in LOOPS:
        return []
    block = op.regions[0].blocks[0]
    first, arguments = (3, block.args[1:]) if op.name == "scf.for" else (0, block.args)
    return list(zip(op.operands[first:], arguments, strict=True))


def carried(op: Operation) -> list[list[SSAValue]]:
    """The values that have to agree for control flow: given, carried, handed on."""
    ends = [r.blocks[0].last_op for r in op.regions if r.blocks]
    yields = [list(e.operands) for e in ends if e is not None]
    if op.name == "scf.for":
        return [
            list(g) for g in zip(op.operands[3:], op.regions[0].blocks[0].args[1:], yields[0], op.results, strict=True)
        ]
    if op.name == "scf.if":
        return [list(g) for g in zip(op.results, *yields, strict=True)] if op.results else []
    if op.name == "scf.while":
        before, after = (r.blocks[0] for r in op.regions)
        first = [list(g) for g in zip(op.operands, before.args, yields[1], strict=True)]
        return first + [list(g) for g in zip(yields[0][1:], after.args, op.results, strict=True)]
    return []
