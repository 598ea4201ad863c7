"""Report undefined values where they take effect; only with `debug`, in tile IR.

    %q = arith.divsi %x, %y
    tt.store %p, %q, %m
becomes
    %q = arith.divsi %x, %y
    %zero = arith.cmpi eq, %y, 0
    %n, %t = (1 where %zero else 0), %x in 64 bits          # the shadow of %q: what was wrong, and a number to tell
    "weft.check"(%n == 0 or not %m, %t, %n) <{what = "found", sources = [[1, "divide", ...]]}>
    tt.store %p, %q, %m

A division by 0 (and whatever else `doubtful` lists) is no fault in a place that a mask leaves out, so it is not told
where it is done but where it matters: at a store, an address, a mask, a condition, a bound of a loop. On the way a
shadow goes along with the value, through arithmetic, shapes, reductions, loops and branches; `tl.where` drops the one
that is not chosen, and `a & b` that of b where a is false. A value without doubtful origin has no shadow.

In layout IR (Gluon's kernels) shadows are not kept in shared memory, nor in what a matrix unit multiplies: there, and
in partitions of warps, a value counts as right. Not done here: operations inside of the functions of reductions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.ir import Builder, CheckOp, find, i1, i32, i32_attr, i64, is_tensor, like, shape_of, str_attr, tensor_of, tt
from weft.ir.findings import Source
from weft.ops.table import ELEMENTWISE, PACKING

from .doubtful import doubt_of, source_of
from .removal import remade, remove

Shadow = tuple[SSAValue, SSAValue]
"""For each element the number of the source that is wrong there, or 0, and what to tell of it."""

_SHAPES = (
    *(tt.SplatOp, tt.UnsplatOp, tt.ExpandDimsOp, tt.BroadcastOp, tt.ReshapeOp, tt.TransOp),
    *(tt.CatOp, tt.JoinOp, tt.SplitOp),
)
_MASKED = (tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicLoadOp, tt.AtomicStoreOp)
_ACCESSES = (*_MASKED, tt.AtomicCASOp, tt.AtomicPollOp)
_LOOPS = (scf.ForOp, scf.WhileOp)


def check_values(root: Operation) -> None:
    """Rewrite every function with a body."""
    for function in [op for op in find(root, tt.FuncOp) if op.body.blocks]:
        flow = _Flow()
        inside = [op for op in function.walk() if op is not function and not _in_function(op)]
        for op in inside:
            source = source_of(op, len(flow.sources) + 1)
            if source is not None:
                flow.sources[op] = source
        if flow.sources:
            flow.spread(inside)
            flow.block(function.body.blocks[0])


def _in_function(op: Operation) -> bool:
    """Whether it is inside of the function of a reduction, scan or map."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tt.ReduceOp | tt.ScanOp | tt.MapElementwiseOp):
        parent = parent.parent_op()
    return parent is not None


def _is_elementwise(op: Operation) -> bool:
    return op.name in ELEMENTWISE or op.name in PACKING or op.name == "arith.constant"


def _is_move(op: Operation) -> bool:
    return isinstance(op, _SHAPES) or op.name == "ttg.convert_layout"


@dataclass
class _Flow:
    """What goes from where to where in one function."""

    sources: dict[Operation, Source] = field(default_factory=dict)
    reach: dict[SSAValue, set[int]] = field(default_factory=dict)
    """The numbers of the sources that a value may come from; of values without any there is nothing here."""
    shadows: dict[SSAValue, Shadow] = field(default_factory=dict)

    # -- what comes from where -----------------------------------------------------------------------------------------

    def spread(self, ops: Sequence[Operation]) -> None:
        """Fill `reach`, until nothing is added."""
        changed = True
        while changed:
            changed = False
            for op in ops:
                for values, targets in self._steps(op):
                    reaching: set[int] = set().union(*(self.reach.get(v, ()) for v in values))
                    if op in self.sources:
                        reaching.add(self.sources[op].number)
                    for target in targets if reaching else ():
                        reached = self.reach.setdefault(target, set())
                        changed = changed or not reaching <= reached
                        reached |= reaching

    def _steps(self, op: Operation) -> list[tuple[Iterable[SSAValue], Iterable[SSAValue]]]:
        """From which values to which something goes in an operation."""
        if isinstance(op, scf.ForOp):
            body = op.body.block
            end = body.last_op
            assert end is not None
            each = zip(op.operands[3:], end.operands, body.args[1:], op.results, strict=True)
            return [((start, back), (inner, result)) for start, back, inner, result in each]
        if isinstance(op, scf.WhileOp):
            before, after = (region.blocks[0] for region in op.regions)
            goes, again = before.last_op, after.last_op
            assert goes is not None and again is not None
            steps: list[tuple[Iterable[SSAValue], Iterable[SSAValue]]] = []
            for start, value, inner in zip(op.operands, again.operands, before.args, strict=True):
                steps.append(((start, value), (inner,)))
            for value, inner, result in zip(goes.operands[1:], after.args, op.results, strict=True):
                steps.append(((value,), (inner, result)))
            return steps
        if isinstance(op, scf.IfOp):
            ends = [region.blocks[0].last_op for region in op.regions if region.blocks]
            return [([e.operands[k] for e in ends if e is not None], (r,)) for k, r in enumerate(op.results)]
        if isinstance(op, tt.LoadOp):
            return [([] if op.other is None else [op.other], op.results)]
        if _is_elementwise(op) or _is_move(op) or isinstance(op, tt.ReduceOp | tt.ScanOp | tt.GatherOp | tt.DotOp):
            return [(op.operands, op.results)]
        return []

    # -- the shadows ---------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Make the shadows of what a block computes, and the checks."""
        for op in list(block.ops):
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        b = Builder.before(op)
        if isinstance(op, _ACCESSES):
            self._access(b, op)
        elif isinstance(op, scf.ForOp | scf.WhileOp | scf.IfOp):
            self._control(b, op)
        elif isinstance(op, scf.ConditionOp):
            self._check(b, op.operands[0], None)
        elif isinstance(op, tt.HistogramOp):
            self._check(b, op.operands[0], op.mask)
        elif any(r in self.reach for r in op.results):
            after = Builder.after(op)
            shadows = self._through(after, op)
            source = self.sources.get(op)
            if source is not None:
                wrong, told = doubt_of(after, op, source)
                number = after.constant(source.number, like(wrong.type, i32))
                fresh = after.select(wrong, number, after.constant(0, number.type)), told
                shadows = [_either(after, fresh, old) if old is not None else fresh for old in shadows]
            for result, shadow in zip(op.results, shadows, strict=True):
                if shadow is not None:
                    self.shadows[result] = shadow

    def _through(self, b: Builder, op: Operation) -> list[Shadow | None]:
        """The shadows of the results by those of the operands."""
        shadows = [self.shadows.get(v) for v in op.operands]
        none: list[Shadow | None] = [None] * len(op.results)
        if not any(shadows):
            return none
        if isinstance(op, arith.SelectOp):
            return [self._chosen(b, op)]
        if isinstance(op, arith.AndIOp | arith.OrIOp) and like(op.results[0].type, i1) == op.results[0].type:
            return [self._decided(b, op)]
        if _is_move(op):
            return self._moved(b, op)
        if isinstance(op, tt.ReduceOp | tt.ScanOp):
            whole = _merged(b, shadows)
            return [None if whole is None else _collected(b, op, whole, op.results[0].type)] * len(op.results)
        if isinstance(op, tt.GatherOp):
            picked = None if shadows[0] is None else self._alike(b, op, (shadows[0][0], op.operands[1]), shadows[0])
            return [_merged(b, [shadows[1], picked])]
        if isinstance(op, tt.DotOp):
            return [self._product(b, op)]
        return [_merged(b, shadows)] * len(op.results)

    def _chosen(self, b: Builder, op: Operation) -> Shadow | None:
        """Of `select`: that of the side which is chosen."""
        condition, *sides = op.operands
        shadows = [self.shadows.get(v) for v in sides]
        picked: Shadow | None = None
        if any(shadows):
            condition = _spread(b, condition, op.results[0].type)
            left, right = (s or _clean(b, op.results[0].type) for s in shadows)
            picked = b.select(condition, left[0], right[0]), b.select(condition, left[1], right[1])
        shadow = self.shadows.get(op.operands[0])
        if shadow is not None:
            shadow = _spread(b, shadow[0], op.results[0].type), _spread(b, shadow[1], op.results[0].type)
        return _merged(b, [shadow, picked])

    def _decided(self, b: Builder, op: Operation) -> Shadow | None:
        """Of `and` and `or`: where the other side is right and decides, nothing is wrong."""
        decided: list[Shadow | None] = []
        for mine, other in (op.operands, tuple(reversed(op.operands))):
            shadow, beside = self.shadows.get(mine), self.shadows.get(other)
            if shadow is None:
                continue
            matters = other if isinstance(op, arith.AndIOp) else _not(b, other)
            if beside is not None:
                wrong = b.cmpi("ne", beside[0], b.constant(0, beside[0].type))
                matters = b.binary(arith.OrIOp, matters, wrong)
            decided.append((b.select(matters, shadow[0], b.constant(0, shadow[0].type)), shadow[1]))
        return _merged(b, decided)

    def _moved(self, b: Builder, op: Operation) -> list[Shadow | None]:
        """Of an operation on shapes: the same operation on shadows."""
        parts = [self.shadows.get(v) or _clean(b, v.type) for v in op.operands]
        both = []
        for k, element in enumerate((i32, i64)):
            types = [like(r.type, element) for r in op.results]
            moved = b.create(type(op), [p[k] for p in parts], types, dict(op.properties), dict(op.attributes))
            both.append(moved.results)
        return list(zip(*both, strict=True))

    def _alike(self, b: Builder, op: Operation, first: Sequence[SSAValue], shadow: Shadow) -> Shadow:
        """Of a gather: the same elements of the shadow."""
        pair = []
        for part in shadow:
            type_ = like(op.results[0].type, i32 if part is shadow[0] else i64)
            pair.append(b.create(type(op), (part, *first[1:]), (type_,), dict(op.properties)).results[0])
        return pair[0], pair[1]

    def _product(self, b: Builder, op: Operation) -> Shadow | None:
        """Of a product of matrices: an element is wrong by its row, by its column, or by what it is added to."""
        result = op.results[0].type
        shape = shape_of(result)
        shadows = [self.shadows.get(op.operands[2])] if len(op.operands) > 2 else []
        for operand, axis in zip(op.operands[:2], (len(shape) - 1, len(shape) - 2), strict=True):
            shadow = self.shadows.get(operand)
            if shadow is not None:
                line = _reduced(b, shadow, axis)
                ids, told = (b.broadcast(b.expand_dims(part, axis), shape) for part in line)
                shadows.append((ids, told))
        return _merged(b, shadows)

    # -- where it matters ----------------------------------------------------------------------------------------------

    def _access(self, b: Builder, op: Operation) -> None:
        mask = op.mask if isinstance(op, _MASKED) else None
        if mask is not None:
            self._check(b, mask, None)
        other = op.other if isinstance(op, tt.LoadOp) else None
        for value in op.operands:
            if value is not mask and value is not other:
                self._check(b, value, mask)
        if other is not None and (shadow := self.shadows.get(other)) is not None and mask is not None:
            zero = b.constant(0, shadow[0].type)
            self.shadows[op.results[0]] = b.select(mask, zero, shadow[0]), shadow[1]

    def _check(self, b: Builder, value: SSAValue, mask: SSAValue | None) -> None:
        """End the launch where a value is wrong, in places that a mask lets through."""
        shadow = self.shadows.get(value)
        if shadow is None:
            return
        right = b.cmpi("eq", shadow[0], b.constant(0, shadow[0].type))
        if mask is not None:
            right = b.binary(arith.OrIOp, right, _not(b, mask))
        wanted = self.reach[value]
        listed = [_plain(source) for source in self.sources.values() if source.number in wanted]
        properties: dict[str, Attribute] = {
            "what": str_attr("found"),
            "message": str_attr(""),
            "sources": ArrayAttr(listed),
        }
        b.create(CheckOp, (right, shadow[1], b.cast(arith.ExtUIOp, shadow[0], i64)), (), properties)

    # -- loops and branches --------------------------------------------------------------------------------------------

    def _control(self, b: Builder, op: Operation) -> None:
        conditions = op.operands[:3] if isinstance(op, scf.ForOp) else op.operands[: isinstance(op, scf.IfOp)]
        for value in conditions:
            self._check(b, value, None)
        starts = [] if isinstance(op, scf.IfOp) else list(op.operands[len(conditions) :])
        added = [self.shadows.get(v) or _clean(b, v.type) for v in self._of(op, starts)]
        for region in op.regions:
            self._enter(op, region, added if region is op.regions[0] else None)
        carried = [k for k, r in enumerate(op.results) if r in self.reach]
        for region in op.regions:
            if region.blocks:
                self._leave(op, region, carried)
        types = [t for k in carried for t in (like(op.results[k].type, i32), like(op.results[k].type, i64))]
        shadows = [part for shadow in added for part in shadow]
        new = remade(op, [*op.operands, *shadows], [*(r.type for r in op.results), *types])
        Builder.before(op).insert(new)
        for old, result in zip(op.results, new.results, strict=False):
            result.name_hint = old.name_hint
            if old in self.reach:
                self.reach[result] = self.reach[old]
            old.replace_all_uses_with(result)
        for place, k in enumerate(carried):
            first = len(op.results) + 2 * place
            self.shadows[new.results[k]] = new.results[first], new.results[first + 1]
        remove(op)

    def _of(self, op: Operation, starts: list[SSAValue]) -> list[SSAValue]:
        """The initial values of what a loop carries with a shadow."""
        skip = isinstance(op, scf.ForOp)
        inner = op.regions[0].blocks[0].args[skip:] if starts else ()
        return [start for start, argument in zip(starts, inner, strict=True) if argument in self.reach]

    def _enter(self, op: Operation, region: Region, added: list[Shadow] | None) -> None:
        """Give the block of a region the shadows that it is passed, and go through it."""
        if not region.blocks:
            return
        block = region.blocks[0]
        passed = [a for a in block.args if a in self.reach] if isinstance(op, _LOOPS) else []
        for argument in passed:
            parts = [block.insert_arg(like(argument.type, e), len(block.args)) for e in (i32, i64)]
            self.shadows[argument] = parts[0], parts[1]
        self.block(block)

    def _leave(self, op: Operation, region: Region, carried: list[int]) -> None:
        """Let the end of a block pass on the shadows, too."""
        end = region.blocks[0].last_op
        assert end is not None
        b = Builder.before(end)
        values = list(end.operands)
        if isinstance(op, scf.WhileOp) and region is op.regions[1]:  # which passes to the first block
            arguments = op.regions[0].blocks[0].args
            chosen = [v for v, a in zip(values, arguments, strict=False) if a in self.reach]
        else:
            skip = isinstance(end, scf.ConditionOp)
            chosen = [values[k + skip] for k in carried]
        for value in chosen:
            values += self.shadows.get(value) or _clean(b, value.type)
        end.operands = values


def _plain(source: Source) -> Attribute:
    return ArrayAttr([str_attr(x) if isinstance(x, str) else i32_attr(x) for x in source.plain()])


def _not(b: Builder, truth: SSAValue) -> SSAValue:
    return b.binary(arith.XOrIOp, truth, b.constant(1, truth.type))


def _spread(b: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    """A scalar as a tile of a type's shape and layout, where that is a tile."""
    if is_tensor(value.type) or not is_tensor(type):
        return value
    return b.create(tt.SplatOp, (value,), (like(type, value.type),)).results[0]


def _clean(b: Builder, type: Attribute) -> Shadow:
    """The shadow of what is right."""
    return b.constant(0, like(type, i32)), b.constant(0, like(type, i64))


def _either(b: Builder, first: Shadow, second: Shadow) -> Shadow:
    """The first where it says something, else the second."""
    says = b.cmpi("ne", first[0], b.constant(0, first[0].type))
    return b.select(says, first[0], second[0]), b.select(says, first[1], second[1])


def _merged(b: Builder, shadows: Sequence[Shadow | None]) -> Shadow | None:
    whole: Shadow | None = None
    for shadow in shadows:
        if shadow is not None:
            whole = shadow if whole is None else _either(b, whole, shadow)
    return whole


def _collected(b: Builder, op: Operation, shadow: Shadow, result: Attribute) -> Shadow:
    """Through a reduction or scan: the first that says something, of what is combined."""
    body = Block(arg_types=(i32, i64, i32, i64))
    inner = Builder.at_end(body, op.location)
    pair = _either(inner, (body.args[0], body.args[1]), (body.args[2], body.args[3]))
    inner.create(tt.ScanReturnOp if isinstance(op, tt.ScanOp) else tt.ReduceReturnOp, pair)
    types = [like(result, i32), like(result, i64)]
    collected = b.create(type(op), shadow, types, dict(op.properties), regions=(Region(body),))
    return collected.results[0], collected.results[1]


def _reduced(b: Builder, shadow: Shadow, axis: int) -> Shadow:
    """Along an axis: whether anything is wrong there."""
    from_shape = shape_of(shadow[0].type)
    body = Block(arg_types=(i32, i64, i32, i64))
    inner = Builder.at_end(body, b.loc)
    pair = _either(inner, (body.args[0], body.args[1]), (body.args[2], body.args[3]))
    inner.create(tt.ReduceReturnOp, pair)
    left = [n for k, n in enumerate(from_shape) if k != axis]
    types = [tensor_of(left, element) if left else element for element in (i32, i64)]
    reduced = b.create(tt.ReduceOp, shadow, types, {"axis": i32_attr(axis)}, regions=(Region(body),))
    return reduced.results[0], reduced.results[1]
