"""Faults put into a lane program, one at a time: what orders its warps is taken out, or is off by one.

    for fault in faults_of(program):
        with fault:                      # the program has it
            run(program, ...)

Faults of values alone (an address, a number of registers) are no matter of order, and are not among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from weft.ir.lane import Block, LaneOp, LaneProgram, Value

ORDERING = ("barrier", "fence")
INSTRUCTIONS = (
    "mbarrier.init",
    "mbarrier.wait.parity",
    "mbarrier.arrive.each",
    "mbarrier.arrive.each.remote",
    "mbarrier.arrive.expect_tx",
    "barrier.cluster.made.arrive",
    "barrier.cluster.wait",
    "wgmma.fence",
    "wgmma.commit_group",
    "cp.async.bulk.tensor.2d.load",
    "cp.async.bulk.tensor.2d.load.multicast",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group.read",
    *(f"turn.{step}" for step in ("begin", "take", "pass", "end")),
)


@dataclass
class Fault:
    """One fault: a context in which a program has it."""

    name: str
    put: Callable[[], Callable[[], None]]
    """Puts it in; gives what takes it out."""

    def __enter__(self) -> None:
        self._undo = self.put()

    def __exit__(self, *_: Any) -> None:
        self._undo()


def blocks_of(block: Block) -> Iterator[Block]:
    """A block and all in it."""
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from blocks_of(region)


def what(op: LaneOp) -> str:
    """An operation in words."""
    attrs = " ".join(f"{k}={v}" for k, v in op.attrs.items() if k in ("isa", "scope", "id", "kind", "pending"))
    return f"{op.name} {attrs}".removeprefix("instruction isa=")


def faults_of(program: LaneProgram) -> list[Fault]:
    """All of a program, in its order."""
    found: list[Fault] = []
    count = Counter[str]()
    for block in blocks_of(program.body):
        for at, op in enumerate(block.ops):
            isa = op.attrs.get("isa")
            count[what(op)] += 1
            place = f"{what(op)} {count[what(op)]}"
            if op.name in ORDERING or isa in INSTRUCTIONS:
                found.append(Fault(f"without {place}", _without(block, op)))
            if op.name == "await":
                found.append(Fault(f"without {place}", _unawaited(program, op)))
                found.append(Fault(f"one group less awaited: {place}", _pending(op, 1)))
            if isa == "mbarrier.init":
                found.append(Fault(f"one arrival more: {place}", _operand(block, op, 1, lambda n: n + 1)))
                found.append(Fault(f"one arrival less: {place}", _operand(block, op, 1, lambda n: n - 1)))
            if isa == "mbarrier.wait.parity":
                found.append(Fault(f"the other phase: {place}", _flipped(block, op)))
                if later := _next(block, at, "mbarrier.arrive"):
                    found.append(Fault(f"after the arrival: {place}", _moved(block, op, later)))
            if isa == "mbarrier.arrive.expect_tx":
                found.append(Fault(f"16 bytes more: {place}", _operand(block, op, 1, lambda n: n + 16)))
                found.append(Fault(f"16 bytes less: {place}", _operand(block, op, 1, lambda n: n - 16)))
            if isa == "mbarrier.arrive.each":
                found.append(Fault(f"twice: {place}", _twice(block, op)))
                if earlier := _awaited_before(block, at):
                    which = "product has ended" if earlier.name == "await" else "tile has been read"
                    found.append(Fault(f"before the {which}: {place}", _moved_up(block, op, earlier)))
    return found


def _without(block: Block, op: LaneOp) -> Callable[[], Callable[[], None]]:
    def put() -> Callable[[], None]:
        ops = list(block.ops)
        block.ops.remove(op)
        return lambda: _set(block, ops)

    return put


def _set(block: Block, ops: list[LaneOp]) -> None:
    block.ops = ops


def _twice(block: Block, op: LaneOp) -> Callable[[], Callable[[], None]]:
    def put() -> Callable[[], None]:
        ops = list(block.ops)
        block.ops.insert(ops.index(op), LaneOp(op.name, op.operands, (), dict(op.attrs), (), op.span))
        return lambda: _set(block, ops)

    return put


def _unawaited(program: LaneProgram, op: LaneOp) -> Callable[[], Callable[[], None]]:
    """What was awaited is used as it is."""

    def put() -> Callable[[], None]:
        instead = dict(zip(op.results, op.operands, strict=True))
        changed = [(x, x.operands) for x in program.body.walk() if any(v in instead for v in x.operands)]
        block = next(b for b in blocks_of(program.body) if op in b.ops)
        ops = list(block.ops)
        block.ops.remove(op)
        for user, operands in changed:
            user.operands = tuple(instead.get(v, v) for v in operands)

        def undo() -> None:
            block.ops = ops
            for user, operands in changed:
                user.operands = operands

        return undo

    return put


def _pending(op: LaneOp, more: int) -> Callable[[], Callable[[], None]]:
    def put() -> Callable[[], None]:
        before = op.attrs["pending"]
        op.attrs["pending"] = before + more
        return lambda: op.attrs.__setitem__("pending", before)

    return put


def _operand(block: Block, op: LaneOp, index: int, change: Callable[[int], int]) -> Callable[[], Callable[[], None]]:
    """Another constant for an operand that is one."""

    def put() -> Callable[[], None]:
        constant = op.operands[index].op
        assert constant is not None and constant.name == "constant", what(op)
        return _given(block, op, index, LaneOp("constant", (), (), {"value": change(constant.attrs["value"])}))

    return put


def _flipped(block: Block, op: LaneOp) -> Callable[[], Callable[[], None]]:
    def put() -> Callable[[], None]:
        one = LaneOp("constant", (), (), {"value": 1}, (), op.span)
        one.results = (Value("i32", 1, one),)
        other = LaneOp("arith.subi", (one.result, op.operands[1]), (), {}, (), op.span)
        return _given(block, op, 1, other, [one])

    return put


def _given(
    block: Block, op: LaneOp, index: int, made: LaneOp, before: list[LaneOp] | None = None
) -> Callable[[], None]:
    """Let an operation have the result of a new one as an operand."""
    ops, operands = list(block.ops), op.operands
    made.results = (Value("i32", 1, made),)
    made.span = op.span
    at = ops.index(op)
    block.ops = [*ops[:at], *(before or []), made, *ops[at:]]
    op.operands = (*operands[:index], made.result, *operands[index + 1 :])

    def undo() -> None:
        block.ops, op.operands = ops, operands

    return undo


def _next(block: Block, at: int, isa: str) -> LaneOp | None:
    return next((x for x in block.ops[at:] if str(x.attrs.get("isa")).startswith(isa)), None)


def _awaited_before(block: Block, at: int) -> LaneOp | None:
    """The last wait for products, or for copies that read shared memory."""
    ops = reversed(block.ops[:at])
    return next((x for x in ops if x.name == "await" or x.attrs.get("isa") == "cp.async.bulk.wait_group.read"), None)


def _moved(block: Block, op: LaneOp, later: LaneOp) -> Callable[[], Callable[[], None]]:
    """Behind a later one."""

    def put() -> Callable[[], None]:
        ops = list(block.ops)
        block.ops.remove(op)
        block.ops.insert(block.ops.index(later) + 1, op)
        return lambda: _set(block, ops)

    return put


def _moved_up(block: Block, op: LaneOp, earlier: LaneOp) -> Callable[[], Callable[[], None]]:
    """Before an earlier one, with what computes its operands."""

    def put() -> Callable[[], None]:
        ops = list(block.ops)
        first, last = ops.index(earlier), ops.index(op)
        wanted = set(op.operands)
        moved = [op]
        for other in reversed(ops[first + 1 : last]):
            if any(r in wanted for r in other.results):
                moved.insert(0, other)
                wanted |= set(other.operands)
        rest = [x for x in ops if x not in moved]
        place = rest.index(earlier)
        block.ops = [*rest[:place], *moved, *rest[place:]]
        return lambda: _set(block, ops)

    return put
