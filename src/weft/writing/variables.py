"""Which values of the IR are one variable of the source.

    %total = scf.for %i = ... iter_args(%acc = %zeros) { %next = addf %acc, %x; scf.yield %next }

is `acc = gl.zeros(...)`, `for i in ...: acc = acc + x`, where the value before the loop, the argument of its body, the
value that goes round and the result are all `acc`. Two values can be one variable if neither is read after the other
was assigned. Where they cannot, the writer assigns one to the other (`following = acc`).

Gluon finds out for itself which variables a loop carries, in the order in which they were first assigned. So a value
before the loop is the variable of the loop only where that keeps the order of what the loop carries; likewise the
results of a branch come in the order of variables that were there before it, then of new ones by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

LOOPS = (scf.ForOp, scf.WhileOp)


@dataclass(eq=False)
class Group:
    """Values that are one variable."""

    members: list[SSAValue] = field(default_factory=list)
    name: str = ""
    first: float = 0
    """Where it is assigned first."""


def is_number(value: SSAValue) -> bool:
    """Whether a value is a constant, which is written where it is used."""
    return isinstance(value.owner, arith.ConstantOp)


def single_use(value: SSAValue) -> bool:
    """Whether a value is used once."""
    return value.has_one_use()


class Variables:
    """The variables of a function, or of the function of a reduction."""

    def __init__(self, body: Block, given: Sequence[SSAValue] = ()) -> None:
        """`given` are the function's parameters, in their order."""
        self._given = {value: i - len(given) for i, value in enumerate(given)}
        self._places: dict[Operation, tuple[int, int]] = {}
        """Where each operation begins and ends."""
        self._of: dict[SSAValue, Group] = {}
        self.root = body
        self.early: dict[Operation, list[tuple[SSAValue, SSAValue]]] = {}
        """Before an operation: the numbers that variables of a loop further on begin with, and results of that loop."""
        self.set_early: set[SSAValue] = set()
        self._number(body, 0)
        self._join(body)

    def group(self, value: SSAValue) -> Group:
        """The variable that a value is."""
        group = self._of.get(value)
        if group is None:
            group = self._of[value] = Group([value], first=self._made(value))
        return group

    def is_shared(self, value: SSAValue) -> bool:
        """Whether a value is one variable with others."""
        return len(self.group(value).members) > 1

    def place(self, op: Operation) -> int:
        """Where an operation begins."""
        return self._places[op][0]

    # -- places ----------------------------------------------------------------------------------------------------

    def _number(self, block: Block, at: int) -> int:
        for op in block.ops:
            start = at = at + 1
            for region in op.regions:
                for inner in region.blocks:
                    at = self._number(inner, at + 1)
            at += 1
            self._places[op] = start, at
        return at

    def _made(self, value: SSAValue) -> int:
        """Where a value is first there: results of loops and branches at their end."""
        if value in self._given:
            return self._given[value]
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            return self._places[parent][0] if parent in self._places else 0
        if owner not in self._places:  # it is made outside of the function
            return 0
        start, end = self._places[owner]
        is_late = isinstance(owner, (*LOOPS, scf.IfOp)) or owner.name == "ttg.warp_specialize"
        return end if is_late else start

    def _loop_of(self, op: Operation) -> Operation | None:
        """The innermost loop around an operation."""
        parent = op.parent_op()
        while parent is not None and parent in self._places and not isinstance(parent, LOOPS):
            parent = parent.parent_op()
        return parent if parent in self._places else None

    def _home(self, value: SSAValue) -> Operation | None:
        """The innermost loop in which a value is made."""
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            if parent is None or parent not in self._places:
                return None
            return parent if isinstance(parent, LOOPS) else self._loop_of(parent)
        return self._loop_of(owner)

    def _reads(self, value: SSAValue) -> list[tuple[int, Operation]]:
        """Where a value is read last, as far as loops go round: the place, and the operation there."""
        reads: list[tuple[int, Operation]] = []
        home = self._home(value)
        for use in value.uses:
            op = use.operation
            if op not in self._places:  # in the function of a reduction
                parent = op.parent_op()
                while parent is not None and parent not in self._places:
                    parent = parent.parent_op()
                if parent is None:
                    continue
                op = parent
            reads.append((self._places[op][0], op))
            loop = self._loop_of(op)
            while loop is not None and loop is not home:  # read again in the next iteration
                reads.append((self._places[loop][1], loop))
                loop = self._loop_of(loop)
        return reads

    # -- joining ---------------------------------------------------------------------------------------------------

    def _apart(self, a: Operation, b: Operation) -> bool:
        """Whether two operations are in different branches of one `scf.if`."""
        branches: dict[Operation, object] = {}
        at: Operation | None = a
        while at is not None:
            parent = at.parent_op()
            if isinstance(parent, scf.IfOp):
                branches[parent] = at.parent_region()
            at = parent
        at = b
        while at is not None:
            parent = at.parent_op()
            if parent in branches and branches[parent] is not at.parent_region():
                return True
            at = parent
        return False

    def _meets(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether `a` may be read after `b` was assigned."""
        made = self._made(b)
        owner = b.owner if isinstance(b.owner, Operation) else b.owner.parent_op()
        assert owner is not None
        if self._made(a) > made:
            return False
        return any(place > made and not self._apart(owner, op) for place, op in self._reads(a))

    def _can_join(self, a: SSAValue, b: SSAValue) -> bool:
        if a.type != b.type:
            return False
        one, other = self.group(a), self.group(b)
        return one is other or not any(
            self._meets(x, y) or self._meets(y, x) for x in one.members for y in other.members
        )

    def _unite(self, a: SSAValue, b: SSAValue) -> None:
        one, other = self.group(a), self.group(b)
        if one is other:
            return
        one.members += other.members
        one.first = min(one.first, other.first)
        for member in other.members:
            self._of[member] = one

    def _join(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                inner = op.regions[0].blocks[0]
                self._join_loop(op, list(op.operands)[3:], [inner.args[1:]])
            elif isinstance(op, scf.WhileOp):
                before, after = (region.blocks[0] for region in op.regions)
                self._join_loop(op, list(op.operands), [before.args, after.args])
            elif isinstance(op, scf.IfOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self._join(inner)
                self._join_branch(op)

    def _join_loop(
        self, op: Operation, initial: Sequence[SSAValue], arguments: Sequence[Sequence[BlockArgument]]
    ) -> None:
        for i, result in enumerate(op.results):
            for block in arguments:
                self._unite(block[i], result)
        for before, changed in self._in_order(op, initial):
            self._unite(before, changed)
        for region in op.regions:
            self._join(region.blocks[0])
        last = op.regions[-1].blocks[0].last_op
        assert last is not None
        for left, argument in zip(last.operands, arguments[-1], strict=True):
            if isinstance(left, OpResult) and left.owner.parent is argument.block and self._can_join(left, argument):
                self._unite(argument, left)

    def _in_order(self, op: Operation, initial: Sequence[SSAValue]) -> list[tuple[SSAValue, SSAValue]]:
        """What may be the loop's variable before it, as long as first assignments come in order.

        One that is not is assigned right before the loop, and so are all that come after it; but for numbers, which are
        assigned where the variable that comes next is.
        """
        pairs: list[tuple[SSAValue, SSAValue]] = []
        numbers: list[tuple[SSAValue, SSAValue]] = []
        used: set[Group] = set()
        place = float("-inf")
        for value, result in zip(initial, op.results, strict=True):
            if is_number(value) and not (value.name_hint and list(initial).count(value) == 1 and single_use(value)):
                numbers.append((value, result))
                continue
            group = self.group(value)
            first = next((m.owner for m in group.members if self._made(m) == group.first), None)
            fits = (
                group not in used
                and self._home(value) is self._loop_of(op)
                and list(initial).count(value) == 1
                and self._can_join(value, result)
                and group.first > place
                and (not numbers or (isinstance(first, Operation) and first.parent is op.parent and not first.regions))
            )
            if not fits:
                break
            if numbers:
                assert isinstance(first, Operation)
                self.early.setdefault(first, []).extend(numbers)
                for _, changed in numbers:
                    self.set_early.add(changed)
                    self.group(changed).first = group.first - 0.5
                numbers = []
            pairs.append((value, result))
            used.add(group)
            place = group.first
        return pairs

    def _join_branch(self, op: scf.IfOp) -> None:
        ends = [region.blocks[0].last_op for region in op.regions if region.blocks]
        place = float("-inf")
        for i, result in enumerate(op.results):
            outer = [e.operands[i] for e in ends if e and not self._is_inside(e.operands[i], op)]
            outer.sort(key=lambda value: value.name_hint != result.name_hint)
            joined = next((value for value in outer if self._may_stay(value, result, place)), None)
            if joined is None:
                break
            place = self.group(joined).first
            self._unite(joined, result)
        for i, result in enumerate(op.results):
            for end in filter(None, ends):
                left = end.operands[i]
                if isinstance(left, OpResult) and left.owner.parent is end.parent and self._can_join(left, result):
                    self._unite(left, result)

    def _may_stay(self, outer: SSAValue, result: SSAValue, place: float) -> bool:
        """Whether what a branch leaves as it was may be the variable of the result, which comes after a place."""
        op = result.owner
        assert isinstance(op, Operation)
        return (
            not is_number(outer)
            and self.group(outer).first > place
            and self._home(outer) is self._loop_of(op)
            and self._can_join(outer, result)
        )

    def _is_inside(self, value: SSAValue, op: Operation) -> bool:
        start, end = self._places[op]
        return start < self._made(value) < end
