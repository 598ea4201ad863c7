"""Turn branches between blocks into `scf.if`, so that a function (also that of a `tt.map_elementwise`) is one block.

    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.return %x : i32
  ^bb2:
    %y = arith.addi %x, %x : i32
    tt.return %y : i32
becomes
    %r = scf.if %c -> (i32) {
      scf.yield %x : i32
    } else {
      %y = arith.addi %x, %x : i32
      scf.yield %y : i32
    }
    tt.return %r : i32

Triton writes an early return as branches; Weft's frontend never does. A block that is reached from both sides of a
branch although one of them may return is copied to both; where that would make the function several times larger it is
`Unsupported`, and so is a loop made of branches (Triton's loops are `scf.for` and `scf.while`). Blocks that nothing
reaches are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import cf, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.base import Unsupported
from weft.ir import Builder, find, span_of, successors, tt

MAX_GROWTH = 8
"""How many times more operations a function may have afterwards."""

_END = object()
"""Stands for the place where all returns meet."""


def structure_branches(root: Operation) -> bool:
    """Rewrite every function in `root`, or `root` itself. Gives whether there was anything to do."""
    holders = find(root, tt.FuncOp, tt.MapElementwiseOp)
    todo = [op for op in holders if len(op.regions[0].blocks) > 1]
    for op in reversed(todo):  # the inner ones first
        _Structure(op).run()
    return bool(todo)


class _Structure:
    """One function (or the function of a `tt.map_elementwise`), being rebuilt in a new block."""

    def __init__(self, function: Operation):
        self.function = function
        self.region = function.regions[0]
        self.order = self._topological()
        self.place = {block: i for i, block in enumerate(self.order)}
        self.join = self._joins()
        self.left = MAX_GROWTH * (sum(1 for block in self.order for _ in block.ops) + 64)
        ends = [b.last_op for b in self.order if b.last_op is not None]
        returns = [op for op in ends if isinstance(op, tt.ReturnOp | tt.MapElementwiseReturnOp)]
        if not returns:
            raise Unsupported("a function that never returns", span=span_of(function))
        self.end = type(returns[0])
        self.results = [v.type for v in returns[0].operands]

    def run(self) -> None:
        """Rebuild the function."""
        function = self.function
        first = self.order[0]
        block = Block(arg_types=[a.type for a in first.args])
        mapped: dict[SSAValue, SSAValue] = {}
        for old, new in zip(first.args, block.args, strict=True):
            new.name_hint, new.location = old.name_hint, old.location
            mapped[old] = new
        b = Builder.at_end(block)
        values = self._emit(first, _END, b, mapped)
        b.loc = function.location
        b.create(self.end, values)
        old_region = function.detach_region(self.region)
        function.add_region(Region(block))
        for old_block in old_region.blocks:
            for op in old_block.ops:
                op.drop_all_references()

    def _topological(self) -> list[Block]:
        first = next(iter(self.region.blocks))
        done: list[Block] = []
        state: dict[Block, bool] = {first: False}
        stack = [(first, iter(successors(first)))]
        while stack:
            block, rest = stack[-1]
            for successor in rest:
                seen = state.get(successor)
                if seen is False:
                    raise Unsupported(
                        "a loop made of branches (cf.br back to an earlier block)",
                        span=span_of(block.last_op or self.function),
                        hint="write the loop with scf.for or scf.while",
                    )
                if seen is None:
                    state[successor] = False
                    stack.append((successor, iter(successors(successor))))
                    break
            else:
                state[block] = True
                done.append(block)
                stack.pop()
        return done[::-1]

    def _joins(self) -> dict[Block, Block | object]:
        """For each block, where all ways from it meet again (its immediate postdominator)."""
        joins: dict[Block, Block | object] = {}

        def meet(x: Block | object, y: Block | object) -> Block | object:
            while x is not y:
                if x is _END or y is _END:
                    return _END
                if self.place[x] < self.place[y]:  # type: ignore[index]
                    x = joins[x]  # type: ignore[index]
                else:
                    y = joins[y]  # type: ignore[index]
            return x

        for block in reversed(self.order):
            after: Block | object = _END
            for i, successor in enumerate(successors(block)):
                after = successor if i == 0 else meet(after, successor)
            joins[block] = after
        return joins

    def _emit(
        self, block: Block, until: Block | object, b: Builder, mapped: dict[SSAValue, SSAValue]
    ) -> Sequence[SSAValue]:
        """Copy from `block` on, up to `until`; gives the values that it is reached with."""
        while True:
            last = block.last_op
            for op in block.ops:
                if op is not last:
                    self._copy(op, b, mapped)
            if last is None or not last.successors:
                return [mapped.get(v, v) for v in last.operands] if last is not None else ()
            b.loc = last.location
            target: Block | object
            if isinstance(last, cf.ConditionalBranchOp):
                target = self.join[block]
                values = self._branch(last, target, b, mapped)
            elif isinstance(last, cf.BranchOp):
                target = last.successors[0]
                values = [mapped.get(v, v) for v in last.operands]
            else:
                raise Unsupported(f"a function that ends a block with {last.name}", span=span_of(last))
            if target is until or not isinstance(target, Block):
                return values
            for argument, value in zip(target.args, values, strict=True):
                mapped[argument] = value
            block = target

    def _copy(self, op: Operation, b: Builder, mapped: dict[SSAValue, SSAValue]) -> None:
        self.left -= 1
        if self.left < 0:
            raise Unsupported(
                "so many returns inside of nested branches",
                span=span_of(self.function),
                hint="return once, at the end of the function",
            )
        b.insert(op.clone(mapped))

    def _branch(
        self, op: cf.ConditionalBranchOp, target: Block | object, b: Builder, mapped: dict[SSAValue, SSAValue]
    ) -> Sequence[SSAValue]:
        types: Sequence[Attribute]
        types = [a.type for a in target.args] if isinstance(target, Block) else self.results
        condition = mapped.get(op.cond, op.cond)
        branch = b.if_(condition, types)
        sides = zip(branch.regions, op.successors, (op.then_arguments, op.else_arguments), strict=True)
        for region, successor, arguments in sides:
            values: Sequence[SSAValue] = [mapped.get(v, v) for v in arguments]
            inner = Builder.at_end(region.block, op.location)
            if successor is not target:
                inner_map = dict(mapped)
                inner_map.update(zip(successor.args, values, strict=True))
                values = self._emit(successor, target, inner, inner_map)
            inner.loc = op.location
            inner.create(scf.YieldOp, values)
        return branch.results
