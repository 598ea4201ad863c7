"""Replace every value of some types by the values that it consists of, through control flow.

A block pointer, say, is a base, a shape, strides and offsets. Whoever defines one says what its parts are; then a loop
that carries it

    %r = scf.for ... iter_args(%p = %bp) -> (!tt.ptr<tensor<8x8xf32>>)

becomes one that carries the parts,

    %r:7 = scf.for ... iter_args(%base = ..., %s0 = ..., %o1 = ...) -> (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32)

and the same for `scf.if`, `scf.while`, `arith.select`, `cf.br`, `cf.cond_br` and arguments of blocks. Parts that never
change are dropped by `drop_unchanged`. Not done here: what an operation does with the parts (see the two passes that
use this, `rewrite_block_pointers` and `rewrite_descriptors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, cf, scf, ub
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft.base import CompilationError, postorder
from weft.ir import Builder, segments, span_of, successors, type_text

from .removal import remade, remove

Handler = Callable[["Expander", Operation, Builder], None]

_CARRIERS = (scf.ForOp, scf.IfOp, scf.WhileOp)
_PASSERS = (scf.YieldOp, scf.ConditionOp, cf.BranchOp, cf.ConditionalBranchOp)


class Expander:
    """What is known of the parts of values, and the walk that finds it.

    `part_types` gives the types of the parts of a type that is to be replaced, and None for any other type.
    `handlers` says what happens to the operations that define or use such values, by their class.
    """

    def __init__(
        self,
        part_types: Callable[[Attribute], Sequence[Attribute] | None],
        handlers: Mapping[type[Operation], Handler],
        thing: str,
    ):
        self.part_types = part_types
        self.handlers = handlers
        self.thing = thing
        self.parts: dict[SSAValue, Sequence[SSAValue]] = {}
        self._dead: list[Operation] = []

    def run(self, region: Region) -> None:
        """Rewrite a region and all that it holds."""
        self._region(region)
        for op in reversed(self._dead):
            remove(op)
        self._dead.clear()

    def define(self, op: Operation, parts: Sequence[SSAValue]) -> None:
        """Say what the parts of the one result of `op` are; the operation goes."""
        self.parts[op.results[0]] = parts
        self._dead.append(op)

    def drop(self, op: Operation) -> None:
        """Say that an operation is no longer needed."""
        self._dead.append(op)

    def of(self, value: SSAValue, op: Operation) -> Sequence[SSAValue]:
        """The parts of a value that `op` uses."""
        parts = self.parts.get(value)
        if parts is None:
            raise CompilationError(f"{op.name} uses a {self.thing} of unknown origin", span_of(op))
        return parts

    # -- the walk ----------------------------------------------------------------------------------------------

    def _region(self, region: Region) -> None:
        blocks = list(region.blocks)
        expanded = [self._arguments(block) for block in blocks]
        for block in _in_order(blocks):
            for op in list(block.ops):
                self._operation(op)
        for block, old in zip(blocks, expanded, strict=True):
            for argument in old:
                block.erase_arg(argument, safe_erase=False)

    def _arguments(self, block: Block) -> list[BlockArgument]:
        """Add the parts of a block's arguments as arguments; gives those that they replace."""
        old: list[BlockArgument] = []
        for argument in list(block.args):
            types = self.part_types(argument.type)
            if argument in self.parts:
                old.append(argument)
            elif types is not None:
                old.append(argument)
                arguments = [block.insert_arg(type, argument.index + 1 + i) for i, type in enumerate(types)]
                for part in arguments:
                    part.location = argument.location
                self.parts[argument] = arguments
        return old

    def _operation(self, op: Operation) -> None:
        handler = self.handlers.get(type(op))
        touched = any(self.part_types(v.type) is not None for v in (*op.operands, *op.results))
        if handler is not None and touched:
            handler(self, op, Builder.before(op))
            return
        if not touched:
            for region in op.regions:
                self._region(region)
            return
        if isinstance(op, _CARRIERS):
            self._carrier(op)
        elif isinstance(op, _PASSERS):
            self._passer(op)
        elif isinstance(op, arith.SelectOp):
            self._select(op)
        elif isinstance(op, ub.PoisonOp):
            b = Builder.before(op)
            types = self.part_types(op.results[0].type) or ()
            self.define(op, [b.create(ub.PoisonOp, (), (type,)).results[0] for type in types])
        else:
            wrong = next(v for v in (*op.operands, *op.results) if self.part_types(v.type) is not None)
            raise CompilationError(
                f"{op.name} cannot take a {self.thing} ({type_text(wrong.type)})",
                span_of(op),
                hint=f"a {self.thing} can be carried by loops and branches and used by its own operations only",
            )

    def _spread(self, values: Sequence[SSAValue], op: Operation) -> list[SSAValue]:
        out: list[SSAValue] = []
        for value in values:
            if self.part_types(value.type) is None:
                out.append(value)
            else:
                out.extend(self.of(value, op))
        return out

    def _carrier(self, op: Operation) -> None:
        """A loop or branch: made anew with the parts as operands and results, then its regions in turn."""
        result_types: list[Attribute] = []
        for result in op.results:
            types = self.part_types(result.type)
            result_types.extend([result.type] if types is None else types)
        new = remade(op, self._spread(op.operands, op), result_types)
        block = op.parent
        if block is None:
            raise ValueError("the operation has no place")
        block.insert_op_before(new, op)
        at = 0
        for result in op.results:
            types = self.part_types(result.type)
            if types is None:
                new.results[at].name_hint = result.name_hint
                result.replace_all_uses_with(new.results[at])
                at += 1
            else:
                self.parts[result] = new.results[at : at + len(types)]
                at += len(types)
        self._dead.append(op)
        for region in new.regions:
            self._region(region)

    def _passer(self, op: Operation) -> None:
        """The end of a branch, a loop body or a block: it passes the parts on."""
        if isinstance(op, cf.ConditionalBranchOp):
            then = self._spread(op.then_arguments, op)
            other = self._spread(op.else_arguments, op)
            condition = op.cond
            op.operands = [condition, *then, *other]
            op.properties["operandSegmentSizes"] = segments(1, len(then), len(other))
        else:
            op.operands = self._spread(op.operands, op)

    def _select(self, op: Operation) -> None:
        condition, x, y = op.operands
        b = Builder.before(op)
        pairs = zip(self.of(x, op), self.of(y, op), strict=True)
        self.define(op, [left if left is right else b.select(condition, left, right) for left, right in pairs])


def _in_order(blocks: list[Block]) -> list[Block]:
    """Blocks so that each comes after those that dominate it: in reverse postorder from the first."""
    reached = dict.fromkeys(reversed(postorder(blocks[0], successors)) if blocks else ())
    return [*reached, *(b for b in blocks if b not in reached)]
