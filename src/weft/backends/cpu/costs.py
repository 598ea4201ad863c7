"""What values cost to compute again, and which are worth a buffer.

    %x = tt.load %p           10      an addition is 1
    %y = math.exp %x          10 + 20 for each element that somebody reads, so that reading it back is cheaper
    %i = arith.addi %r, %s    an index: whatever it costs, it is folded into addresses and not kept, also where a part
                              of it, one for each row, was loaded: read back it would address element by element

A scheduler notes each lazy operation when it comes to it; what has a buffer costs nothing any more.
"""

from __future__ import annotations

from collections.abc import Container

from weft.backends.cpu.evaluate import SHAPE_OPS
from weft.backends.cpu.program import Op, Value
from weft.ops.table import ROWS

LOAD = 10
"""The cost of one element that is loaded, where an addition is 1."""
MOST = 1000
"""What a chain costs at the most: more says nothing more."""
WORTH_KEEPING = 3
"""The cost from which reading a value back is cheaper than computing it again."""


class Costs:
    """Costs of the lazy values of one function; `env` has those that are in registers or buffers."""

    def __init__(self, env: Container[Value]) -> None:
        self.env = env
        self._cost: dict[Value, int] = {}
        self._index_like: set[Value] = set()

    def alone(self, value: Value) -> int:
        """The cost of the operation that defines a value, without its operands."""
        op = value.op
        if op is None or op.name in SHAPE_OPS or op.name == "tt.load":
            return 0
        row = ROWS.get(op.name)
        return 1 if row is None else row.cost

    def of(self, value: Value) -> int:
        """The cost of computing one element of a value from buffers and memory."""
        return 0 if value in self.env else self._cost.get(value, 0)

    def index_like(self, value: Value) -> bool:
        """Whether a value is integers or addresses made of indices, scalars and what is spread over a dimension."""
        return not value.is_tile or (value not in self.env and value in self._index_like)

    def note(self, op: Op) -> None:
        """Note the cost and the kind of a lazy operation's results; its operands have been seen."""
        op_cost = LOAD if op.name == "tt.load" else self.alone(op.results[0])
        cost = MOST if op.fused else min(MOST, op_cost + sum(self.of(a) for a in op.args if a.is_tile))
        may_be_index = not op.fused and op.name != "tt.load" and op.results[0].elem[0] in "ip"
        spread = op.name == "tt.broadcast" and op.results[0].numel > op.args[0].numel  # the same for many elements
        is_index = may_be_index and (spread or all(self.index_like(a) for a in op.args))
        for r in op.results:
            self._cost[r] = cost
            if is_index:
                self._index_like.add(r)

    def worth_keeping(self, value: Value) -> bool:
        """Whether reading a value back is cheaper than computing it again."""
        op = value.op
        if op is None or value.elem == "ptr" or op.name in SHAPE_OPS or self.index_like(value):
            return False
        return self.of(value) >= WORTH_KEEPING
