"""Conversions between layouts: the stages of a plan as operations of the lane program.

`weft.layouts.plan` has decided; here each stage is written down: the steps of a conversion within a warp (elements are
packed in words, selects exchange registers where a parity of the lane index is odd, shuffles move them), and trips
through shared memory.

A trip that needs more memory than there is takes several rounds. The highest bits of an offset are the number of the
round in which its element is moved; the bits below them say where in memory, which is the same memory in each round.
For 8 elements and memory for 4, bit 2 of the offset is the round. Two ways for it to come about:

    register bits add 1 and 4, the lane bit adds 2    registers 0 and 1 are stored in round 0, 2 and 3 in round 1
    the register bit adds 1, lane bits add 2 and 4    both registers are stored in both rounds: in round 0 by lanes
                                                      0 and 1, in round 1 by lanes 2 and 3

In the first case each register has a round of its own, and a round names its registers (`_starts`). In the second one
the round depends on the lane, so the store has a mask, (lane >> 1) == round (`_in_round`). Loads are done alike; a lane
that takes no part in a round keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2
from weft.layouts.plan import plan_conversion
from weft.layouts.plan.access import Access
from weft.layouts.plan.conversion import Stage
from weft.layouts.plan.shuffle import Shears
from weft.layouts.plan.steps import Exchange, Pack, Rename, Shuffle, Unpack, steps_of
from weft.layouts.plan.swaps import Swap, Swaps
from weft.layouts.plan.trip import Trip

from .context import Context
from .grouping import load_in_groups
from .halves import from_halves, to_halves
from .telling import tell_conversion


def convert(
    c: Context, value: Value, src: LinearLayout, dst: LinearLayout, group: Callable[[int], Sequence[int]] | None = None
) -> Value:
    """A tile in another layout, by the cheapest plan; `group` gives the registers of the result, for elements of so
    many bits, that are best loaded together."""
    shape = tuple(src.out_dims.values())
    bits = max(8, ELEMENT_BITS[value.elem])
    plan = plan_conversion(src, dst, shape, bits, c.machine)
    tell_conversion(c, plan, value.elem)
    for stage in plan.stages:
        if isinstance(stage.how, Shears):
            value = _shears(c, value, stage.how)
        elif isinstance(stage.how, Swaps):
            value = _swaps(c, value, stage.how)
        elif isinstance(stage.how, Trip):
            last = stage is plan.stages[-1]
            value = _trip(c, value, load_in_groups(stage.how, group(bits)) if group and last else stage.how)
        else:
            value = c.build.rename(value, _renaming(stage))
    return value


def _renaming(stage: Stage) -> list[int]:
    source, result = stage.source, stage.result
    moved = result.invert_and_compose(source, prefer=("block", "warp", "lane"))
    return f2.span(moved.sublayout(["register"], ["register"]).in_columns("register"))


# -- within a warp ---------------------------------------------------------------------------------------------------


def _shears(c: Context, value: Value, shears: Shears) -> Value:
    elem = value.elem
    if elem == "i1" and shears.packed:  # predicates are packed as bytes
        value = c.build.op("arith.extui", [value], "i8")
    element, bits = value.elem, ELEMENT_BITS[value.elem]
    for step in steps_of(shears):
        if isinstance(step, Rename):
            value = c.build.rename(value, step.table)
        elif isinstance(step, Pack):
            value = c.build.rename(value, step.table)
            words = (f"i{bits * step.each}", value.count // step.each)
            value = c.build.add("pack", [value], [words]).result
        elif isinstance(step, Unpack):
            value = c.build.add("unpack", [value], [(element, value.count * step.each)]).result
        elif isinstance(step, Exchange):
            other = c.build.rename(value, [r ^ step.direction for r in range(value.count)])
            value = c.build.select(c.parity(step.lanes, step.warps), other, value)
        else:
            value = _shuffled(c, value, step)
    return c.build.op("arith.trunci", [value], "i1") if elem != element else value


def _shuffled(c: Context, value: Value, step: Shuffle) -> Value:
    """Each register from its lane; registers that stay in theirs take no instruction."""
    if step.kind == "idx":
        return c.build.shuffle(value, c.build.linear(step.masks, step.lanes, step.warps))
    moved = step.moved
    arrived = c.build.shuffle_xor(c.build.rename(value, moved), [step.masks[r] for r in moved])
    if len(moved) == value.count:
        return arrived
    place = {r: value.count + i for i, r in enumerate(moved)}
    both = c.build.add("join", [value, arrived], [(value.elem, value.count + len(moved))]).result
    return c.build.rename(both, [place.get(r, r) for r in range(value.count)])


def _swaps(c: Context, value: Value, swaps: Swaps) -> Value:
    elem = value.elem
    if elem == "i1":  # predicates are packed as bytes
        value = c.build.op("arith.extui", [value], "i8")
    element, each = value.elem, 1 << len(swaps.within)
    for step in swaps.steps:
        if isinstance(step, Swap):
            value = _swapped(c, value, step, each)
        elif isinstance(step, Pack):
            value = c.build.rename(value, step.table)
            value = c.build.add("pack", [value], [("i32", value.count // each)]).result
        elif isinstance(step, Unpack):
            value = c.build.add("unpack", [value], [(element, value.count * each)]).result
        elif isinstance(step, Rename):
            value = c.build.rename(value, step.table)
    return c.build.op("arith.trunci", [value], "i1") if elem != element else value


def _swapped(c: Context, words: Value, swap: Swap, each: int) -> Value:
    """Elements of words and lanes exchanged: one shuffle and three permutations of bytes for two words."""
    selectors = []
    for even, odd in zip(swap.selectors(each, 0), swap.selectors(each, 1), strict=True):
        selectors.append(c.build.linear([even], [0] * swap.lane + [even ^ odd]))
    half = words.count // 2

    def permuted(a: Value, b: Value, selector: Value) -> Value:
        return c.build.add("permute", [a, b, selector], [("i32", half)], {"each": each}).result

    first, second = (c.build.rename(words, range(i, words.count, 2)) for i in (0, 1))
    received = c.build.shuffle_xor(permuted(first, second, selectors[0]), [1 << swap.lane] * half)
    parts = [permuted(first, received, selectors[1]), permuted(second, received, selectors[2])]
    both = c.build.add("join", parts, [("i32", words.count)]).result
    return c.build.rename(both, [(k & 1) * half + k // 2 for k in range(words.count)])


# -- through shared memory -------------------------------------------------------------------------------------------


def _trip(c: Context, value: Value, trip: Trip) -> Value:
    elem = value.elem
    if elem == "i1":
        value = c.build.op("arith.extui", [value], "i8")
    base = c.allocate(trip.scratch_bytes, "conversion")
    width = max(8, trip.element_bits) // 8
    loaded_in: dict[int, Value] = {}  # what is loaded, by the rounds in which it is
    size = (1 << len(trip.memory)) // trip.repetitions
    for number in range(trip.repetitions):
        _store(c, value, trip, base, width, number, size)
        rounds = min(number ^ x for x in _rounds(trip.load_map, size))
        loaded_in[rounds] = _load(c, value.elem, trip, base, width, number, size, loaded_in.get(rounds))
    parts = [loaded_in[k] for k in sorted(loaded_in)]
    loaded = (
        parts[0] if len(parts) == 1 else c.build.add("join", parts, [(value.elem, sum(p.count for p in parts))]).result
    )
    result = c.build.rename(loaded, _loaded_order(trip, size))
    return c.build.op("arith.trunci", [result], "i1") if elem == "i1" else result


def _registers(access: Access, kept: Sequence[int]) -> list[int]:
    """The layout's register for each of the instruction's registers; `kept` are the bits that hold no copies."""
    return f2.span([sum(1 << kept[i] for i in f2.bits(r)) for r in access.registers])


def _kept(columns: Sequence[int], copies: int) -> list[int]:
    return [i for i in range(len(columns)) if not copies >> i & 1]


def _places(side: LinearLayout) -> list[list[int]]:
    """The offsets that the bits of lane, warp and block add."""
    low = (1 << side.out_log("offset")) - 1
    return [[x & low for x in side.in_columns(d)] if side.has_in(d) else [] for d in ("lane", "warp", "block")]


def _moving(side: LinearLayout, size: int) -> list[list[int]]:
    """What the bits of lane, warp and block add to the round."""
    return [[x // size for x in part] for part in _places(side)]


def _rounds(side: LinearLayout, size: int) -> list[int]:
    """The distances from a register's round to those in which some lane, warp or block moves it."""
    rows = f2.Echelon()
    return f2.span([x for part in _moving(side, size) for x in part if rows.add(x)])


def _starts(side: LinearLayout, offsets: Sequence[int], number: int, size: int, vector: int) -> list[int]:
    """Which groups of `vector` registers are moved in one round, by some lanes at least."""
    rounds = _rounds(side, size)
    return [i for i in range(0, len(offsets), vector) if offsets[i] // size ^ number in rounds]


def _in_round(c: Context, side: LinearLayout, offsets: Sequence[int], number: int, size: int) -> Value | None:
    """For each group of registers which lanes move it in this round; None for all."""
    moving = _moving(side, size)
    if not any(map(any, moving)):
        return None
    mine = c.build.linear([x // size for x in offsets], *moving)
    return c.build.op("arith.cmpi", [mine, c.build.constant("i32", number)], "i1", predicate=0)


def _store(c: Context, value: Value, trip: Trip, base: Value, width: int, number: int, size: int) -> None:
    columns = trip.store_map.in_columns("register")
    order = _registers(trip.store, _kept(columns, trip.store_masks["register"]))
    offsets = [f2.multiply(columns, r) for r in order]
    vector = 1 << trip.store.vector
    starts = _starts(trip.store_map, offsets, number, size, vector)
    ordered = c.build.rename(value, [order[i + k] for i in starts for k in range(vector)])
    if trip.store.instruction != "shared":
        _matrix_store(c, ordered, trip, base, [offsets[i] for i in starts], width, size)
        return
    moving = ([x % size * width for x in part] for part in _places(trip.store_map))
    address = c.build.linear([offsets[i] % size * width for i in starts], *moving)
    conditions = [_in_round(c, trip.store_map, [offsets[i] for i in starts], number, size)]
    conditions += [
        c.build.op("arith.cmpi", [c.index(d, trip.store_masks[d]), c.build.constant("i32", 0)], "i1", predicate=0)
        for d in ("lane", "warp")
        if trip.store_masks[d]
    ]
    c.build.store("shared", c.plus(address, base), ordered, vector, c.all_of(conditions))


def _load(
    c: Context, elem: str, trip: Trip, base: Value, width: int, number: int, size: int, before: Value | None
) -> Value:
    """What is loaded in one round; lanes that take no part in it keep what they had before."""
    order, offsets = _load_order(trip)
    vector = 1 << trip.load.vector
    starts = _starts(trip.load_map, offsets, number, size, vector)
    if trip.load.instruction != "shared":
        return _matrix_load(c, elem, trip, base, [offsets[i] for i in starts], width, size)
    moving = ([x % size * width for x in part] for part in _places(trip.load_map))
    address = c.build.linear([offsets[i] % size * width for i in starts], *moving)
    mask = _in_round(c, trip.load_map, [offsets[i] for i in starts], number, size)
    space = "shared"
    if trip.scope == "cluster":
        space, base = "cluster", _remote(c, trip, base, [order[i] for i in starts])
    return c.build.load(space, c.plus(address, base), elem, vector, mask, before if mask is not None else None)


def _remote(c: Context, trip: Trip, base: Value, registers: Sequence[int]) -> Value:
    """For each register, where the buffer begins in the block that has its element."""
    log = trip.load_map.out_log("offset")
    homes = {d: [x >> log for x in trip.load_map.in_columns(d)] for d in trip.load_map.in_dims}
    ranks = [f2.multiply(homes["register"], r) for r in registers]
    several = sorted(set(ranks))
    addresses = c.build.remote(base, c.build.linear(several, homes["lane"], homes["warp"], homes["block"]))
    return c.build.rename(addresses, [several.index(r) for r in ranks])


def _load_order(trip: Trip) -> tuple[list[int], list[int]]:
    """The registers of the result in the order in which they are loaded, and their offsets."""
    low = (1 << len(trip.memory)) - 1
    columns = [x & low for x in trip.load_map.in_columns("register")]
    copies = set(f2.dependent(trip.load_map.in_columns("register")))
    order = _registers(trip.load, [i for i in range(len(columns)) if i not in copies])
    return order, [f2.multiply(columns, r) for r in order]


def _loaded_order(trip: Trip, size: int) -> list[int]:
    """For each register of the result where among those loaded it is; copies are where the register they copy is."""
    order, offsets = _load_order(trip)
    vector = 1 << trip.load.vector
    first = sorted({min(number ^ x for x in _rounds(trip.load_map, size)) for number in range(trip.repetitions)})
    sequence = [
        order[i + k]
        for number in first
        for i in _starts(trip.load_map, offsets, number, size, vector)
        for k in range(vector)
    ]
    columns = trip.load_map.in_columns("register")
    place = {f2.multiply(columns, r): k for k, r in enumerate(sequence)}
    return [place[x] for x in f2.span(columns)]


# -- matrix instructions -----------------------------------------------------------------------------------------------


def _rows(trip: Trip, access: Access, load: bool) -> tuple[list[int], list[int], list[int]]:
    """The offsets that each bit of lane, warp and block adds to the row that a lane gives the address of.

    Lanes 0 to 7 give the rows of the first matrix, 8 to 15 of the second, and so on.
    """
    side = trip.load_map if load else trip.store_map
    low = (1 << len(trip.memory)) - 1
    columns = [x & low for x in side.in_columns("register")]
    lanes, warps, blocks = _places(side)
    copies = set(f2.dependent(side.in_columns("register"))) if load else set()
    mask = 0 if load else trip.store_masks["register"]
    kept = [i for i in range(len(columns)) if i not in copies and not mask >> i & 1]
    named = [f2.multiply(columns, sum(1 << kept[i] for i in f2.bits(r))) for r in access.registers]
    word = max(0, 5 - max(8, trip.element_bits).bit_length() + 1)
    first = 1 if ".trans" in access.instruction else word
    matrices = named[first : access.vector]
    rows = [named[0], *lanes[:2]] if ".trans" in access.instruction else lanes[2:]
    return [*rows, *matrices], warps, blocks


def _matrix_address(c: Context, trip: Trip, access: Access, base: Value, starts: Sequence[int], width: int, size: int, load: bool) -> Value:  # fmt: skip  # noqa: E501
    moving = ([x % size * width for x in part] for part in _rows(trip, access, load))
    address = c.build.linear([x % size * width for x in starts], *moving)
    return c.plus(address, base)


def _matrix_store(c: Context, value: Value, trip: Trip, base: Value, starts: Sequence[int], width: int, size: int) -> None:  # fmt: skip  # noqa: E501
    address = _matrix_address(c, trip, trip.store, base, starts, width, size, False)
    c.build.add("instruction", [address, to_halves(c, value)], (), {"isa": trip.store.instruction})


def _matrix_load(c: Context, elem: str, trip: Trip, base: Value, starts: Sequence[int], width: int, size: int) -> Value:
    address = _matrix_address(c, trip, trip.load, base, starts, width, size, True)
    count = len(starts) << trip.load.vector
    return from_halves(c, trip.load.instruction, address, elem, count)
