"""Which value keeps addresses from being consecutive or aligned, or a mask from being the same for neighbours.

`AxisFacts` says what is known of a tile; this says why no more is: it goes back through what the tile is computed of to
the value that spoils it, and tells that in a sentence. Asked only of accesses that are narrower than they might be.

    x + row * stride + i        with `i` a range of 1024 elements, wanted: 4 elements of 4 bytes at a time
    is aligned to 4 bytes       because `stride` is not known to be a multiple of 4

The way back is taken by operation: sums and differences to the operand that has too little, products to an argument
before anything else, what only changes shapes or types to its operand, what a loop carries to what it begins with.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.base import Span
from weft.ir import argument_name, bit_width, element_of, int_value, ints_of, is_tensor, pointee_of, shape_of, span_of

from .axis import AxisFacts

__all__ = ["PASSING", "Limit", "arguments_that_spoil", "axis_before", "limit_of_run"]


@dataclass(frozen=True)
class Limit:
    """What keeps a run short: alignment, contiguity, stride (neighbours are a number apart), repeat (they have the same
    address), wrap (they begin anew, at a multiple of a number) or mask; the value behind it by name and place, or as a
    number, if it has any."""

    kind: str
    fact: str
    value: str = ""
    span: Span | None = None


MOST = 200
"""Values that are looked at on the way back."""
PASSING = frozenset(
    (
        *("tt.splat", "tt.unsplat", "tt.broadcast", "ttg.convert_layout"),
        *("tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"),
        *("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.bitcast"),
    )
)
SUMS = frozenset(("arith.addi", "arith.subi", "tt.addptr"))
PRODUCTS = frozenset(("arith.muli", "arith.shli"))
REMAINDERS = frozenset(("arith.remsi", "arith.remui"))
WRAPS = REMAINDERS | {"arith.divsi", "arith.divui"}


def limit_of_run(
    facts: AxisFacts, pointer: SSAValue, mask: SSAValue | None, axis: int, run: int, size: int
) -> Limit | None:
    """What is in the way of `run` neighbours along an axis, of `size` bytes each, in one access; None if nothing is."""
    axis_facts = facts.of(pointer)
    if axis_facts.contiguity[axis] < run:
        return _not_consecutive(facts, pointer, axis, run)
    if axis_facts.divisibility[axis] < run * size:
        value, need = _least_aligned(facts, pointer, axis, run * size)
        return _told("alignment", value, f"is not known to be a multiple of {need}")
    if mask is not None and is_tensor(mask.type) and facts.of(mask).constancy[axis] < run:
        return _cut_by_mask(facts, mask, axis, run)
    return None


def _told(kind: str, value: SSAValue, fact: str) -> Limit:
    """The limit that a value is, told by its name or by what it comes from."""
    name, owner = _name(value), value.owner
    if isinstance(owner, Block):
        producer = "what the loop counts" if _is_counter(value) else "what the loop carries"
        return Limit(kind, f"`{name}` {fact}" if name else f"{producer} {fact}", name, _span(value))
    if owner.name == "arith.constant":
        number = _number_of(value)
        subject = "a constant" if number is None else str(number)
        return Limit(kind, f"{subject} {fact.replace('is not known to be', 'is not')}")
    producer = _MADE.get(owner.name, f"the result of {owner.name}")
    return Limit(kind, f"`{name}`, {producer}, {fact}" if name else f"{producer} {fact}", name, _span(value))


_MADE = {
    **dict.fromkeys(("tt.load", "tt.descriptor_load", "ttg.local_load"), "a value loaded from memory"),
    **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas"), "a value from an atomic operation"),
    "tt.get_program_id": "the index of the program",
    "tt.get_num_programs": "the number of programs",
}


def _number_of(value: SSAValue) -> int | None:
    """The number that a constant is."""
    return AxisFacts().of(value).value


def _is_argument(value: SSAValue) -> bool:
    """Whether it is an argument of the kernel."""
    parent = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return parent is not None and parent.name == "tt.func"


def _name(value: SSAValue) -> str:
    if isinstance(value, BlockArgument) and _is_argument(value):
        return argument_name(value)
    return value.name_hint or ""


def _span(value: SSAValue) -> Span | None:
    """Where a value is computed; None for an argument of the kernel."""
    owner = value.owner
    at = owner if isinstance(owner, Operation) else owner.parent_op()
    return span_of(at) if at is not None and at.name != "tt.func" else None


def axis_before(op: Operation, axis: int) -> int | None:
    """The axis of an operand that became this one of the result; None if it came with this operation."""
    if op.name == "tt.expand_dims":
        new = int_value(op.properties["axis"])
        return None if axis == new else axis - (axis > new)
    if op.name == "tt.trans":
        return ints_of(op.properties["order"])[axis]
    return axis if is_tensor(op.operands[0].type) else 0


def _is_counter(value: SSAValue) -> bool:
    """Whether a loop counts with it."""
    loop = value.block.parent_op() if isinstance(value, BlockArgument) and not value.index else None
    return loop is not None and loop.name == "scf.for"


def _carried(value: SSAValue) -> tuple[SSAValue, ...]:
    """Of what a loop or a branch hands on: what it begins with, and what it becomes."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        if loop is None or loop.name != "scf.for" or value.block.last_op is None:
            return ()
        if not value.index:
            return loop.operands[0], loop.operands[2]
        return loop.operands[2 + value.index], value.block.last_op.operands[value.index - 1]
    op = value.owner
    assert isinstance(op, Operation)
    index = list(op.results).index(value)  # type: ignore[arg-type]
    if op.name == "scf.for":
        return (op.regions[0].blocks[0].args[index + 1],)
    if op.name == "scf.if":
        return tuple(r.blocks[0].last_op.operands[index] for r in op.regions if r.blocks and r.blocks[0].last_op)
    return ()


def _blame(facts: AxisFacts, lacking: list[tuple[SSAValue, int, int]]) -> tuple[SSAValue, int, int] | None:
    """Of several that have too little, an argument of the kernel before anything else, for that is what its caller can
    change; what loops count and carry next; constants and programs last. Of results that are alike so far, one that an
    argument is behind: of `rows[:, None] * (R * S * channels)` the second factor, and not the rows."""

    def own(value: SSAValue) -> int:
        root = _root(value)
        if isinstance(root.owner, Block):
            return 0 if _is_argument(root) else 1
        return 3 if root.owner.name in ("arith.constant", "tt.get_program_id") else 2

    def behind(choice: tuple[SSAValue, int, int]) -> int:
        open_, seen, least = [choice], set[SSAValue](), own(choice[0])
        while open_ and least and len(seen) < MOST:
            value, axis, need = open_.pop()
            if value not in seen and facts.of(value).divisibility[axis] < need:
                seen.add(value)
                least = min(least, own(value))
                open_ += _behind(facts, value, axis, need)
        return least

    return min(lacking, key=lambda choice: (own(choice[0]), behind(choice)), default=None)


def _root(value: SSAValue) -> SSAValue:
    """What a value is without changes of shape and type."""
    while isinstance(value.owner, Operation) and (value.owner.name in PASSING or value.owner.name == "tt.expand_dims"):
        value = value.owner.operands[0]
    return value


def _behind(facts: AxisFacts, value: SSAValue, axis: int, need: int) -> list[tuple[SSAValue, int, int]]:
    """What a value is computed of, of which some number would have to divide each, or one factor of a product."""
    owner = value.owner
    if isinstance(owner, Block) or owner.name.startswith("scf."):
        return [(x, axis if is_tensor(x.type) else 0, need) for x in _carried(value)]
    if owner.name in PASSING or owner.name in ("tt.expand_dims", "tt.trans"):
        before = axis_before(owner, axis)
        return [(owner.operands[0], 0 if before is None else before, need)]
    if owner.name == "tt.addptr":
        size = max(1, bit_width(pointee_of(element_of(owner.operands[0].type))) // 8)
        return [(owner.operands[0], axis, need), (owner.operands[1], axis, max(1, need // size))]
    if owner.name == "arith.muli":
        a, b = owner.operands
        of_a, of_b = (facts.of(x).divisibility[axis] for x in (a, b))
        return [(a, axis, max(1, need // of_b)), (b, axis, max(1, need // of_a))]
    if owner.name in SUMS or owner.name in ("arith.ori", "arith.xori", "arith.minsi", "arith.maxsi"):
        return [(x, axis, need) for x in owner.operands]
    if owner.name == "arith.select":
        return [(x, axis, need) for x in owner.operands[1:]]
    return []


def _lacking(
    facts: AxisFacts, value: SSAValue, axis: int, need: int, seen: set[SSAValue]
) -> list[tuple[SSAValue, int, int]]:
    """Those behind a value that lack what they need; none where a loop's counter says more than what it counts by."""
    open_ = _behind(facts, value, axis, need)
    lacking = [(x, a, n) for x, a, n in open_ if facts.of(x).divisibility[a] < n and x not in seen]
    chosen = _blame(facts, lacking)
    if chosen is not None and _is_counter(value) and not isinstance(_root(chosen[0]).owner, Block):
        return []
    return lacking


def _least_aligned(facts: AxisFacts, value: SSAValue, axis: int, need: int) -> tuple[SSAValue, int]:
    """The value behind one that no such number divides, and what would have to divide it."""
    seen: set[SSAValue] = set()
    while value not in seen and len(seen) < MOST:
        seen.add(value)
        chosen = _blame(facts, _lacking(facts, value, axis, need, seen))
        if chosen is None:
            break
        value, axis, need = chosen
    return value, need


def _arguments_behind(facts: AxisFacts, value: SSAValue, axis: int, need: int) -> list[str]:
    """All arguments behind a value that would have to be multiples of something: of each term of a sum, and of one
    factor of a product; "" for what is no argument."""
    if facts.of(value).divisibility[axis] >= need:
        return []
    open_, seen, names = [(value, axis, need)], set[SSAValue](), []
    while open_ and len(seen) < MOST:
        now, axis, need = open_.pop()
        seen.add(now)
        every = _lacking(facts, now, axis, need, set())
        lacking = [each for each in every if each[0] not in seen]
        if not every and not _wraps(facts, now, axis):
            names.append(_name(now) if _is_argument(now) else "")
        is_product = isinstance(now.owner, Operation) and now.owner.name == "arith.muli"
        chosen = _blame(facts, lacking)
        open_ += [chosen] if is_product and chosen is not None else lacking
    return names


def arguments_that_spoil(
    facts: AxisFacts, pointer: SSAValue, mask: SSAValue | None, axis: int, run: int, size: int
) -> tuple[str, ...]:
    """All arguments that would have to be multiples of something for `run` neighbours in one access, by name; "" among
    them if something else would have to be one, too."""
    names = _arguments_behind(facts, pointer, axis, run * size)
    if facts.of(pointer).contiguity[axis] < run and (wrap := _wrapping(facts, pointer, axis, run)) is not None:
        names.append(wrap.value)
    open_ = [(mask, axis)] if mask is not None and is_tensor(mask.type) else []
    while open_:
        now, axis = open_.pop()
        owner = now.owner
        if not isinstance(owner, Operation) or facts.of(now).constancy[axis] >= run:
            continue
        if owner.name in PASSING or owner.name in ("tt.expand_dims", "tt.trans"):
            before = axis_before(owner, axis)
            open_ += [(owner.operands[0], before)] if before is not None else []
        elif owner.name in ("arith.andi", "arith.ori", "arith.xori"):
            open_ += [(x, axis) for x in owner.operands]
        elif owner.name == "arith.cmpi":
            for side in owner.operands:
                names += _arguments_behind(facts, side, axis, run)
    return tuple(dict.fromkeys(names))


def _wraps(facts: AxisFacts, value: SSAValue, axis: int) -> bool:
    """Whether it is a remainder or quotient of what varies along an axis: which begins anew there."""
    owner = value.owner
    return isinstance(owner, Operation) and owner.name in WRAPS and facts.of(owner.operands[0]).contiguity[axis] > 1


def _not_consecutive(facts: AxisFacts, value: SSAValue, axis: int, run: int) -> Limit:
    """What keeps neighbours along an axis from lying side by side."""
    seen: set[SSAValue] = set()
    dim = f"along dimension {axis}" if is_tensor(value.type) and len(shape_of(value.type)) > 1 else "in the tile"
    while value not in seen and len(seen) < MOST:
        seen.add(value)
        owner = value.owner
        following: tuple[SSAValue, int] | None = None
        if isinstance(owner, Block) or owner.name.startswith("scf."):
            short = [x for x in _carried(value) if facts.of(x).contiguity[axis] < run and x not in seen]
            following = (short[0], axis) if short else None
        elif owner.name in PASSING or owner.name in ("tt.expand_dims", "tt.trans"):
            before = axis_before(owner, axis)
            operand = owner.operands[0]
            grown = owner.name == "tt.broadcast" and shape_of(operand.type)[axis] == 1
            if before is None or grown or not is_tensor(operand.type):
                return Limit("repeat", f"neighbours {dim} have the same address")
            following = (operand, before)
        elif owner.name in SUMS:
            a, b = owner.operands
            left, right = facts.of(a), facts.of(b)
            x, y = left.contiguity[axis], right.contiguity[axis]
            if left.constancy[axis] >= run or y < run <= x:
                following = (b, axis)
            elif right.constancy[axis] >= run or x < run <= y:
                following = (a, axis)
            else:
                following = (b if x >= y else a, axis)
            if facts.of(following[0]).contiguity[axis] >= run:  # each alone would do
                break
            if max(x, y) < run and (wrap := _wrapping(facts, value, axis, run)) is not None:
                return wrap
        elif owner.name == "arith.muli":
            a, b = owner.operands
            stride = a if facts.of(a).constancy[axis] >= run else b
            return _apart(facts, stride, axis, dim)
        elif owner.name in REMAINDERS and (wrap := _wrapping(facts, value, axis, run)) is not None:
            return wrap
        elif owner.name in WRAPS - REMAINDERS and facts.of(owner.operands[0]).contiguity[axis] >= run:
            return Limit("repeat", f"neighbours {dim} may have the same address, as they are divided by a number")
        if following is None or following[0] in seen:
            break
        value, axis = following
    return _told("contiguity", value, f"does not step by 1 between neighbours {dim}, as far as is known")


def _apart(facts: AxisFacts, stride: SSAValue, axis: int, dim: str) -> Limit:
    number, root = facts.of(stride).value, _root(stride)
    if number is not None:
        return Limit("stride", f"neighbours {dim} are {number} elements apart", str(number))
    name, span = _name(root), _span(root)
    text = f"`{name}`" if name else "a number of"
    return Limit("stride", f"neighbours {dim} are {text} elements apart, which is not known to be 1", name, span)


def _wrapping(facts: AxisFacts, value: SSAValue, axis: int, run: int) -> Limit | None:
    """The divisor of a remainder or quotient by which neighbours begin anew, perhaps within a run: i % n, with n of
    which no multiple of the run is known. None if there is none behind a value."""
    open_, seen = [(value, axis)], set[tuple[SSAValue, int]]()
    while open_ and len(seen) < MOST:
        now, axis = open_.pop(0)
        if (now, axis) in seen or not is_tensor(now.type):
            continue
        seen.add((now, axis))
        owner = now.owner
        if isinstance(owner, Block) or owner.name.startswith("scf."):
            open_ += [(x, axis) for x in _carried(now)]
        elif owner.name in PASSING or owner.name in ("tt.expand_dims", "tt.trans"):
            operand, before = owner.operands[0], axis_before(owner, axis)
            grown = owner.name == "tt.broadcast" and shape_of(operand.type)[axis] == 1
            if before is not None and not grown:
                open_.append((operand, before))
        elif owner.name in WRAPS:
            dividend, divisor = (facts.of(x) for x in owner.operands)
            varies = dividend.contiguity[axis] >= run and divisor.constancy[axis] >= run
            varies = varies and (owner.name in REMAINDERS or divisor.value is None)
            if varies and divisor.divisibility[axis] < run:
                by, need = _least_aligned(facts, owner.operands[1], axis, run)
                limit = _told("wrap", by, f"is not known to be a multiple of {need}")
                return Limit("wrap", f"the index may begin anew between them: {limit.fact}", limit.value, limit.span)
        elif owner.name in SUMS or owner.name in PRODUCTS:
            open_ += [(x, axis) for x in owner.operands]
    return None


def _cut_by_mask(facts: AxisFacts, mask: SSAValue, axis: int, run: int) -> Limit:
    """What may end a mask between neighbours that one access would take."""
    seen: set[SSAValue] = set()
    while isinstance(mask.owner, Operation) and mask not in seen:
        seen.add(mask)
        owner = mask.owner
        if owner.name in PASSING or owner.name in ("tt.expand_dims", "tt.trans"):
            before = axis_before(owner, axis)
            if before is None:
                break
            mask, axis = owner.operands[0], before
        elif owner.name in ("arith.andi", "arith.ori", "arith.xori"):
            mask = min(owner.operands, key=lambda x: facts.of(x).constancy[axis])
        elif owner.name == "arith.cmpi":
            sides = sorted(owner.operands, key=lambda x: -facts.of(x).constancy[axis])
            for side in sides:
                if facts.of(side).divisibility[axis] < run:
                    value, need = _least_aligned(facts, side, axis, run)
                    limit = _told("mask", value, f"is not known to be a multiple of {need}")
                    return Limit("mask", f"the mask may end between them: {limit.fact}", limit.value, limit.span)
            break
        else:
            break
    limit = _told("mask", mask, f"is not known to be the same for {run} neighbours")
    return Limit("mask", f"the mask may change between them: {limit.fact}", limit.value, limit.span)
