"""Code on single elements: the functions of reductions, scans and maps.

It is lowered once, on whole fragments. Elements may take different branches, but the lane program's control flow is
uniform. So both sides of a branch are computed and one is selected. A loop continues while any element of the warp is
in it, and elements that have left it keep their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block as Region, Operation, SSAValue

from weft.base import Unsupported
from weft.ir import int_value
from weft.ir.lane import Block, Value

from .context import Context, elem_of, lowering


def evaluate(c: Context, body: Region, arguments: Sequence[Value]) -> list[Value]:
    """What a function of one block returns for whole fragments."""
    c.set_all(body.args, arguments)
    before = c.elements, c.width, c.active
    c.elements, c.width, c.active = body, max((v.count for v in arguments), default=1), []
    ops = list(body.ops)
    c.block(ops[:-1])
    c.elements, c.width, c.active = before
    return [c[x] for x in ops[-1].operands]


def branch(c: Context, op: Operation) -> None:
    """scf.if: both sides, of which an element has the one that it would take."""
    condition = c[op.operands[0]]
    sides: list[list[Value]] = []
    for region, chosen in zip(op.regions, (True, False), strict=True):
        ops = list(region.blocks[0].ops) if region.blocks else []
        c.active.append((condition, chosen))
        c.block(ops[:-1])
        c.active.pop()
        sides.append([c[x] for x in ops[-1].operands] if ops else [])
    for result, a, b in zip(op.results, *sides, strict=True):
        c[result] = c.build.select(condition, a, b)


def _is_uniform(c: Context, value: SSAValue) -> bool:
    """Whether a scalar comes from outside of the function, so that it is the same for all elements."""
    block = value.owner if isinstance(value.owner, Region) else value.owner.parent
    while block is not None:
        if block is c.elements:
            return False
        parent = block.parent_op()
        block = parent.parent if parent is not None else None
    return True


def _wide(c: Context, value: Value) -> Value:
    return value if value.count == c.width else c.build.rename(value, [0] * c.width)


def _any(c: Context, mask: Value) -> Value:
    """i1: whether it holds in any register of any lane of the warp."""
    while mask.count > 1:
        half = mask.count // 2
        low, high = c.build.rename(mask, range(half)), c.build.rename(mask, range(half, 2 * half))
        mask = c.build.op("arith.ori", [low, high], "i1")
    return c.build.holds_somewhere(mask, c.program.lanes)


def _active(c: Context) -> Value:
    """Which elements have come here."""
    return _wide(c, c.all_of([c.active_mask(), c.build.constant("i1", 1)]) or c.build.constant("i1", 1))


def _arguments(c: Context, values: Sequence[SSAValue]) -> list[Value]:
    return [Value(elem_of(v.type), c.width) for v in values]


def _masked(c: Context, ops: Sequence[Operation], going: Value) -> None:
    c.active.append((going, True))
    c.block(ops)
    c.active.pop()


def repeated(c: Context, op: Operation) -> None:
    """scf.while: the values that it hands on are those of each element's own last iteration."""
    first, second = (region.blocks[0] for region in op.regions)
    handed = _arguments(c, list(op.results))
    going, carried = Value("i1", c.width), _arguments(c, list(first.args))
    initial = [_active(c), *(_wide(c, c[x]) for x in op.operands)]
    initial += [_wide(c, c.build.constant(v.elem, 0)) for v in handed]
    before = Block((going, *carried, *handed))
    with c.inside(before):
        c.set_all(first.args, carried)
        ops = list(first.ops)
        _masked(c, ops[:-1], going)
        condition, *handed_on = (_wide(c, c[x]) for x in ops[-1].operands)
        onward = c.build.op("arith.andi", [going, condition], "i1")
        results = [c.build.select(going, a, b) for a, b in zip(handed_on, handed, strict=True)]
        c.build.add("condition", [_any(c, onward), onward, *handed_on, *carried, *results])

    after = Block(tuple(Value(v.elem, c.width) for v in (onward, *handed_on, *carried, *results)))
    going, *rest = after.arguments
    handed_on, carried, results = rest[: len(handed_on)], rest[len(handed_on) :][: len(carried)], rest[-len(results) :]
    results = results if handed else []
    with c.inside(after):
        c.set_all(second.args, handed_on)
        ops = list(second.ops)
        _masked(c, ops[:-1], going)
        new = [c.build.select(going, _wide(c, c[x]), old) for x, old in zip(ops[-1].operands, carried, strict=True)]
        c.build.add("yield", [going, *new, *results])
    loop = c.build.add("while", initial, [(v.elem, v.count) for v in after.arguments], {}, [before, after])
    c.set_all(op.results, loop.results[len(loop.results) - len(handed) :])


def counted(c: Context, op: Operation) -> None:
    """scf.for: an element leaves it when its own index has reached its own bound."""
    body = op.regions[0].blocks[0]
    ops = list(body.ops)
    kinds = _arguments(c, list(op.results))
    if all(_is_uniform(c, x) for x in op.operands[:3]):
        block = Block((Value(elem_of(body.args[0].type), 1), *kinds))
        operands = [c[x] for x in op.operands[:3]] + [_wide(c, c[x]) for x in op.operands[3:]]
        with c.inside(block):
            c.set_all(body.args, block.arguments)
            c.block(ops[:-1])
            c.build.add("yield", [_wide(c, c[x]) for x in ops[-1].operands])
        loop = c.build.add("for", operands, [(v.elem, v.count) for v in kinds], {}, [block])
        results = list(loop.results)
    else:
        results = _until_bound(c, op, ops, kinds)
    c.set_all(op.results, results)


def _until_bound(c: Context, op: Operation, ops: Sequence[Operation], kinds: Sequence[Value]) -> list[Value]:
    body = op.regions[0].blocks[0]
    lower, upper, step = (_wide(c, c[x]) for x in op.operands[:3])
    entered = _active(c)
    before = Block((Value(lower.elem, c.width), *kinds))
    with c.inside(before):
        predicate = 6 if "unsignedCmp" in op.properties else 2
        below = c.build.op("arith.cmpi", [before.arguments[0], upper], "i1", predicate=predicate)
        going = c.build.op("arith.andi", [entered, below], "i1")
        c.build.add("condition", [_any(c, going), going, *before.arguments])

    after = Block((Value("i1", c.width), *(Value(v.elem, v.count) for v in before.arguments)))
    going, index, *carried = after.arguments
    with c.inside(after):
        c.set_all(body.args, (index, *carried))
        _masked(c, ops[:-1], going)
        following = c.build.op("arith.addi", [index, step], index.elem)
        new = [_wide(c, c[x]) for x in ops[-1].operands]
        moved = [c.build.select(going, a, b) for a, b in zip((following, *new), (index, *carried), strict=True)]
        c.build.add("yield", moved)
    initial = [lower, *(_wide(c, c[x]) for x in op.operands[3:])]
    loop = c.build.add("while", initial, [(v.elem, v.count) for v in after.arguments], {}, [before, after])
    return list(loop.results[2:])


@lowering("tt.map_elementwise")
def _map(c: Context, op: Operation) -> None:
    """`pack` neighbouring registers are the arguments of one call."""
    pack = int_value(op.properties["pack"])
    bodies = op.regions[0].blocks
    if len(bodies) != 1:
        raise Unsupported("branches between blocks in a map", c.program.target, c.build.span)
    values = [c[x] for x in op.operands]
    if pack > 1 or len({v.count for v in values}) > 1:
        values = [c.whole(x) for x in op.operands]
    count = values[0].count
    arguments = [
        c.build.rename(v, [min(k + i, count - 1) for i in range(0, max(count, pack), pack)])
        for v in values
        for k in range(pack)
    ]
    returned = evaluate(c, bodies[0], arguments)
    each = max(v.count for v in arguments)
    returned = [v if v.count == each else c.build.rename(v, [0] * each) for v in returned]
    for i, result in enumerate(op.results):
        parts = returned[i * pack : (i + 1) * pack]
        if pack == 1:
            c[result] = parts[0]
            continue
        both = c.build.add("join", parts, [(parts[0].elem, pack * each)]).result
        c[result] = c.build.rename(both, [(r % pack) * each + r // pack for r in range(count)])
