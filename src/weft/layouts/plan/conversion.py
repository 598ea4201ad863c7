"""`plan_in_registers`: how a tile goes from one distributed layout to another, with what it costs and why.

The conversion is one linear map, from where an element is wanted to where it is: C = src⁻¹ ∘ dst. If C is the identity
nothing has to be done; if it changes registers only they are renamed; if it stays within warps it can be done by
shuffles (shuffle.py); and always through shared memory (trip.py), of the block or of the cluster. Every way that is
open is priced and the cheapest taken, where Zhou et al., Linear Layouts (arXiv 2505.23819v5), section 5.4, have a fixed
rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError
from weft.machines import DEFAULT, Machine, machine_of

from .. import f2
from ..arguments import bits_of, linear_of, same_names, shape_of
from ..linear import LinearLayout
from .search import Planner
from .shuffle import Shears, shears
from .steps import Words, execute, instructions_of, steps_of, words_of
from .swaps import Swap, Swaps
from .trip import Trip

__all__ = ["Cost", "Layout", "Plan", "forget_plans", "normalised", "plan_in_registers"]

DIMS = ("register", "lane", "warp", "block")
NEAR = ("block", "warp", "lane")


class Layout(Protocol):
    """A named layout."""

    def to_linear(self, shape: Sequence[int]) -> LinearLayout:
        """Its linear layout for tiles of a shape."""


@dataclass(frozen=True)
class Cost:
    """What each warp does: instructions by kind, passes over the banks, bytes of scratch, barriers, and cycles.

    >>> from weft.layouts import BlockedLayout, plan_conversion
    >>> rows, columns = (BlockedLayout(size, [4, 8], [1, 1], [1, 0]) for size in ([1, 4], [4, 1]))
    >>> cost = plan_conversion(rows, columns, (32, 32), 32, "cuda:90").cost
    >>> cost.wavefronts, cost.scratch_bytes
    (64, 4096)
    """

    instructions: Mapping[str, int]
    wavefronts: int
    scratch_bytes: int
    barriers: Mapping[str, int]
    cycles: float

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "instructions": dict(self.instructions),
            "wavefronts": self.wavefronts,
            "scratch_bytes": self.scratch_bytes,
            "barriers": dict(self.barriers),
            "cycles": self.cycles,
        }


FREE = Cost({}, 0, 0, {}, 0.0)


@dataclass(frozen=True)
class Stage:
    """One stage of a plan: a renaming of registers, shuffles, or a trip through shared memory.

    `source` and `result` are the layouts before and after it.
    """

    kind: str
    source: LinearLayout
    result: LinearLayout
    how: Shears | Swaps | Trip | None
    cost: Cost


@dataclass(frozen=True)
class Plan:
    """How a conversion is done.

    `kind` is "nothing", "registers", "shuffles", "shared" (with `scope` "warp" or "block"), "hybrid" (shuffles, then
    shared memory, or the other way round) or "cluster".

    >>> from weft.layouts import BlockedLayout, plan_conversion
    >>> rows, columns = (BlockedLayout(size, [4, 8], [1, 1], [1, 0]) for size in ([1, 4], [4, 1]))
    >>> plan = plan_conversion(rows, columns, (32, 32), 32, "cuda:90")
    >>> plan.kind, plan.scope
    ('shared', 'warp')
    """

    kind: str
    scope: str
    src: LinearLayout
    dst: LinearLayout
    element_bits: int
    machine: Machine
    stages: tuple[Stage, ...]
    considered: tuple[tuple[str, float, str], ...]
    """Every way that was looked at: its kind, its cycles (infinite if it is not open), and a remark."""

    @cached_property
    def cost(self) -> Cost:
        """The sum over the stages."""
        instructions: dict[str, int] = {}
        barriers: dict[str, int] = {}
        for stage in self.stages:
            for name, n in stage.cost.instructions.items():
                instructions[name] = instructions.get(name, 0) + n
            for name, n in stage.cost.barriers.items():
                barriers[name] = barriers.get(name, 0) + n
        return Cost(
            instructions,
            sum(s.cost.wavefronts for s in self.stages),
            max((s.cost.scratch_bytes for s in self.stages), default=0),
            barriers,
            sum(s.cost.cycles for s in self.stages),
        )

    def run(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Execute the plan on values indexed [warp, lane, register], or [block, warp, lane, register].

        Returns the values in the layout `dst`, indexed alike.
        """
        blocks = 1 << self.src.in_log("block")
        flat = np.asarray(values)
        expected = tuple(1 << self.src.in_log(d) for d in ("block", "warp", "lane", "register"))
        if flat.shape not in (expected, expected[1:]) or (flat.ndim == 3 and blocks > 1):
            raise LayoutError(f"values have shape {flat.shape}, the source layout holds {expected}")
        current = flat.reshape(expected)
        for stage in self.stages:
            if isinstance(stage.how, Trip):
                current = stage.how.run(current)
            elif isinstance(stage.how, Swaps):
                current = np.stack([stage.how.run(block) for block in current])
            elif isinstance(stage.how, Shears):
                current = np.stack([execute(stage.how, block) for block in current])
            else:
                current = _renamed(stage, current)
        return current[0] if flat.ndim == 3 else current

    def check(self) -> None:
        """Prove the plan: equal on every basis vector is equal everywhere, as every stage is linear.

        LayoutError, naming the first element that comes out wrong, or where two elements would share a place.
        """
        for stage in self.stages:
            if isinstance(stage.how, Trip):
                stage.how.check()
            if isinstance(stage.how, Shears):
                counted = instructions_of(steps_of(stage.how), max(1, self.element_bits // 32))
                if counted != stage.cost.instructions:
                    raise LayoutError(f"the plan is wrong: its steps are {counted}, not {stage.cost.instructions}")
        elements = _filled(self.src)
        expected, result = _filled(self.dst), self.run(elements)
        for dim, axis in (("block", 0), ("warp", 1), ("lane", 2), ("register", 3)):
            for i in range(self.dst.in_log(dim)):
                at = tuple(1 << i if axis == k else 0 for k in range(4))
                if result[at] != expected[at]:
                    raise LayoutError(
                        f"the plan is wrong: {dim} {1 << i} gets element {result[at]} instead of {expected[at]}"
                    )

    def explain(self) -> str:
        """Why this kind and not another, as text."""
        lines = [
            f"{self.kind}" + (f" ({self.scope})" if self.scope else "") + f": {self.cost.cycles:.0f} cycles a warp"
        ]
        for name, n in self.cost.instructions.items():
            lines.append(f"    {n:>4} {name}")
        for stage in self.stages:
            if isinstance(stage.how, Shears) and stage.how.packed:
                each, bits = 1 << stage.how.packed, max(8, self.element_bits)
                lines.append(f"         words of {each} elements of {bits} bits are packed, shuffled and unpacked")
            if isinstance(stage.how, Swaps):
                each, bits = 1 << len(stage.how.within), max(8, self.element_bits)
                lines.append(f"         elements of {bits} bits change places within words of {each} and between lanes")
        if self.cost.wavefronts:
            lines.append(f"    {self.cost.wavefronts:>4} wavefronts, {self.cost.scratch_bytes} bytes of scratch")
        lines += [f"    {n:>4} {name} barrier" for name, n in self.cost.barriers.items()]
        for stage in self.stages:
            if isinstance(stage.how, Trip) and stage.how.repetitions > 1:
                lines.append(f"         {_short(stage.how)}")
        lines.append("considered:")
        for kind, cycles, remark in self.considered:
            price = f"{cycles:.0f} cycles" if cycles != math.inf else "not open"
            lines.append(f"    {kind}: {price}{', ' + remark if remark else ''}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As plain data: kind, cost, stages, and what was considered."""
        return {
            "kind": self.kind,
            "scope": self.scope,
            "element_bits": self.element_bits,
            "target": self.machine.name,
            "cost": self.cost.to_dict(),
            "stages": [{"kind": s.kind, **(s.how.to_dict() if s.how is not None else {})} for s in self.stages],
            "considered": [
                {"kind": k, "cycles": None if c == math.inf else c, "remark": r} for k, c, r in self.considered
            ],
        }


def _short(trip: Trip) -> str:
    """Why a trip is done in rounds, and how."""
    whole, there = trip.scratch_bytes * trip.repetitions, trip.machine.shared_bytes
    text = f"{trip.repetitions} rounds: at once it would need {whole} bytes of {there}"
    if max(trip.rounds) == 1:
        return text
    parts = [f"{verb} in {n} of them" for verb, n in zip(("stores", "loads"), trip.rounds, strict=True) if n > 1]
    return f"{text}; each register {' and '.join(parts)}, other lanes each time"


def _filled(layout: LinearLayout) -> npt.NDArray[np.int64]:
    """The number of the element that each place holds, indexed [block, warp, lane, register]."""
    sizes = tuple(1 << layout.in_log(d) for d in reversed(DIMS))
    return layout.table().reshape(sizes)


def _renamed(stage: Stage, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    columns = stage.result.sublayout(["register"], stage.result.out_dims).columns
    registers = f2.solve(stage.source.sublayout(["register"], stage.source.out_dims).columns, columns)
    assert registers is not None
    order = [0]
    for column in registers:
        order += [x ^ column for x in order]
    return values[..., order]


def normalised(layout: LinearLayout | Layout, shape: Sequence[int], subject: str) -> LinearLayout:
    """A distributed layout with the input dimensions register, lane, warp and block, in this order."""
    wanted = shape_of(shape, f"the shape of the {subject}")
    linear = linear_of(layout, wanted, f"the {subject} layout")
    unknown = [d for d in linear.in_dims if d not in DIMS]
    if unknown:
        memory = "plan_local_access plans a store of a tile in registers to shared memory, or a load"
        raise LayoutError(
            f"the {subject} layout has the input dimension {unknown[0]!r}; expected {', '.join(DIMS)}",
            hint=memory if linear.has_in("offset") else None,
        )
    sizes = tuple(linear.out_dims.values())
    if sizes != wanted:
        raise LayoutError(f"the {subject} layout is for tiles of shape {sizes}, not {wanted}")
    if tuple(linear.in_dims) == DIMS:
        return linear
    for dim in DIMS:
        if not linear.has_in(dim):
            first = next(iter(linear.out_dims))
            linear = linear * LinearLayout.zeros_1d(1, dim, first)
    return linear.transpose_ins(DIMS)


def plan_in_registers(
    src: LinearLayout | Layout,
    dst: LinearLayout | Layout,
    shape: Sequence[int],
    element_bits: int,
    target: Machine | str = DEFAULT,
) -> Plan:
    """The plan between two layouts in registers; see `plan_conversion`, which is for users."""
    bits = bits_of(element_bits)
    source, result = same_names(normalised(src, shape, "source"), normalised(dst, shape, "destination"))
    for dim in ("lane", "warp", "block"):
        if source.in_log(dim) != result.in_log(dim):
            raise LayoutError(
                f"the source layout has {source.in_dims[dim]} {dim}s, the destination {result.in_dims[dim]}: "
                "a conversion happens within one launch"
            )
    for layout, subject in ((source, "source"), (result, "destination")):
        if not layout.is_surjective():
            raise LayoutError(f"the {subject} layout does not hold the whole tile: {layout._missing()}")
    return _plan(source, result, bits, machine_of(target))


@lru_cache(maxsize=4096)
def _plan(src: LinearLayout, dst: LinearLayout, element_bits: int, machine: Machine) -> Plan:
    def plan(kind: str, scope: str, stages: Sequence[Stage], considered: Sequence[tuple[str, float, str]]) -> Plan:
        return Plan(kind, scope, src, dst, element_bits, machine, tuple(stages), tuple(considered))

    if src == dst:
        return plan("nothing", "", [], [("nothing", 0.0, "the layouts are equal")])
    conversion = dst.invert_and_compose(src, prefer=NEAR)
    if conversion.is_trivial_over(["lane", "warp", "block"]):
        if conversion.is_trivial_over(DIMS):
            return plan("nothing", "", [], [("nothing", 0.0, "every element is in its place")])
        stage = Stage("registers", src, dst, None, FREE)
        return plan("registers", "", [stage], [("registers", 0.0, "lanes and warps stay: registers are renamed")])
    considered: list[tuple[str, float, str]] = []
    options: list[tuple[float, str, str, list[Stage]]] = []
    direct = _by_shuffles(src, dst, conversion, element_bits, machine)
    if isinstance(direct, str):
        considered.append(("shuffles", math.inf, direct))
    else:
        options.append((direct.cost.cycles, "shuffles", "", [direct]))
        considered.append(("shuffles", direct.cost.cycles, _summary(direct)))
    planner = Planner(src, conversion, element_bits, machine)
    way = planner.best()
    assert way is not None
    trip, scope = _by_memory(src, dst, way), way.scope
    kind = "cluster" if scope == "cluster" else "shared"
    options.append((trip.cost.cycles, kind, scope, [trip]))
    considered.append((kind, trip.cost.cycles, _summary(trip)))
    if isinstance(direct, str) and scope != "cluster" and element_bits in (8, 16):
        for exchanged, stages in _hybrids(src, dst, planner, way, element_bits, machine):
            cycles = sum(s.cost.cycles for s in stages)
            considered.append(("hybrid", cycles, exchanged))
            options.append((cycles, "hybrid", scope, stages))
    _, kind, scope, stages = min(options, key=lambda o: o[0])
    return plan(kind, scope, stages, considered)


def forget_plans() -> None:
    """Empty the cache of conversions, to time planning."""
    _plan.cache_clear()


def _summary(stage: Stage) -> str:
    return ", ".join(f"{n} {name}" for name, n in stage.cost.instructions.items() if n)


def _by_shuffles(
    src: LinearLayout, dst: LinearLayout, conversion: LinearLayout, bits: int, machine: Machine
) -> Stage | str:
    """The conversion by shuffles, or why that is not open."""
    registers = src.in_log("register")
    inside = registers + src.in_log("lane")
    parts: dict[str, list[tuple[int, int]]] = {}  # (register, lane) of the source that each bit adds
    low = (1 << registers) - 1
    for dim in ("register", "lane", "warp"):
        columns = conversion.in_columns(dim)
        for i, column in enumerate(columns):
            if column >> inside != (1 << i if dim == "warp" else 0):
                return "elements go from one warp to another"
        lanes = (1 << inside) - 1
        parts[dim] = [(c & low, (c & lanes) >> registers) for c in columns]
    first = inside + src.in_log("warp")
    if any(column != 1 << first + i for i, column in enumerate(conversion.in_columns("block"))):
        return "elements go from one block to another"
    relations = f2.kernel([*src.in_columns("register"), *src.in_columns("lane")])
    copies = [(k & low, k >> registers) for k in relations if k >> registers]
    stages = shears(parts["register"], parts["lane"], parts["warp"], copies)
    if stages is None:
        return "a lane would have to read several registers of one other lane at once"
    return Stage("shuffles", src, dst, *_packed(stages, bits, machine))


def _packed(shears: Shears, bits: int, machine: Machine) -> tuple[Shears, Cost]:
    """With as many elements in a word as is cheapest, and what it costs."""
    words = words_of(shears)
    packed, cost = _cheapest(words, words.shuffles(shears), bits, machine, shears.masks if machine.exchanges else ())
    return replace(shears, packed=packed) if packed else shears, cost


def _cheapest(words: Words, share: int | None, bits: int, machine: Machine, masks: Sequence[int]) -> tuple[int, Cost]:
    """(elements in a word, as a logarithm; the cost): the cheapest, which need not be the fullest word."""
    most = min(len(words.together), max(0, 6 - max(8, bits).bit_length()))
    best: tuple[float, int, dict[str, int]] | None = None
    for packed in range(most + 1):
        instructions = words.instructions(share, packed, max(1, bits // 32))
        cycles = machine.instructions(instructions, packed, masks)
        if best is None or cycles < best[0]:
            best = cycles, packed, instructions
    assert best is not None
    return best[1], Cost(best[2], 0, 0, {}, best[0])


def _by_memory(src: LinearLayout, dst: LinearLayout, trip: Trip) -> Stage:
    """The conversion through shared memory."""
    cost = Cost(trip.instructions, trip.wavefronts, trip.scratch_bytes, trip.barriers, trip.cycles)
    return Stage("shared", src, dst, trip, cost)


def _exchanged(layout: LinearLayout, register: int, lane: int) -> LinearLayout:
    """The layout with one register bit and one lane bit exchanged."""
    columns, at = list(layout.columns), layout.in_log("register") + lane
    columns[register], columns[at] = columns[at], columns[register]
    return LinearLayout._make(layout._ins, layout._outs, columns)


def _exchange(layout: LinearLayout, register: int, lane: int) -> Shears:
    """The shears that exchange a register bit and a lane bit; what is wanted of registers that hold copies is one."""
    columns, lanes = layout.in_columns("register"), layout.in_log("lane")
    choice = tuple(1 << register if i == lane else 0 for i in range(lanes))
    from_lane = tuple(1 << lane if i == register else 0 for i in range(len(columns)))
    named = tuple(1 << i if c else 0 for i, c in enumerate(columns))
    warps = (0,) * layout.in_log("warp")
    return Shears(choice, tuple(f2.identity(lanes)), from_lane, warps, named, choice, warps)


def _hybrids(
    src: LinearLayout, dst: LinearLayout, planner: Planner, trip: Trip, bits: int, machine: Machine
) -> list[tuple[str, list[Stage]]]:
    """Shuffles before or after the trip, where they make its vectors wider."""
    swapped = _swapped(src, dst, planner, trip, bits, machine)
    return swapped or _once_exchanged(src, dst, planner, trip, bits, machine)


def _once_exchanged(
    src: LinearLayout, dst: LinearLayout, planner: Planner, trip: Trip, bits: int, machine: Machine
) -> list[tuple[str, list[Stage]]]:
    """One exchange of a register and a lane bit before or after the trip, where it makes the vectors wider."""
    ways: list[tuple[str, list[Stage]]] = []
    full, best = max(0, machine.vector_bytes.bit_length() - bits.bit_length() + 3), trip.cycles
    if min(trip.store.vector, trip.load.vector) >= full:
        return ways
    least = planner.least(len(planner.common) + 1)
    if least >= best:
        return ways
    for side in ("before", "after"):
        mine, other = (src, dst) if side == "before" else (dst, src)
        columns = mine.in_columns("register")
        nonzero = [c for c in columns if c]
        theirs = set(other.in_columns("register"))
        lane = next((i for i, c in enumerate(mine.in_columns("lane")) if c and c in theirs), None)
        register = next((i for i, c in enumerate(columns) if c and c not in theirs), None)
        if lane is None or register is None:
            continue
        others = tuple(1 << i for i in range(len(nonzero) - 1))
        packed, exchange = _cheapest(Words(len(nonzero), len(nonzero), (), others, 1, 1), 1, bits, machine, [1 << lane])
        left = best - exchange.cycles
        if least >= left:
            continue
        rest = planner.exchanged(side, [(register, lane)]).best(left)
        if rest is None:
            continue
        middle = _exchanged(mine, register, lane)
        first, last = (src, middle) if side == "before" else (middle, dst)
        shears = replace(_exchange(mine, register, lane), packed=packed)
        step = Stage("shuffles", first, last, shears, exchange)
        a, b = (middle, dst) if side == "before" else (src, middle)
        stages = [step, _by_memory(a, b, rest)] if side == "before" else [_by_memory(a, b, rest), step]
        ways.append((f"register bit {register} and lane bit {lane} exchanged {side}", stages))
        best = rest.cycles + exchange.cycles
    return ways


# -- words of which elements change places with lanes ------------------------------------------------------------------


def _swapped(
    src: LinearLayout, dst: LinearLayout, planner: Planner, trip: Trip, bits: int, machine: Machine
) -> list[tuple[str, list[Stage]]]:
    """Elements swapped within words and between lanes, before or after a trip of less than a word on one side.

    Then what is a word on one side of the trip is a word on the other. The first way that is cheaper is taken: both
    sides do the same, as a rule, and looking at both takes longer than planning may.
    """
    if min(trip.store.bytes, trip.load.bytes) >= 4:
        return []
    open_ways = []
    for side, mine, other in (("before", src, dst), ("after", dst, src)):
        swaps = _swaps(mine, other, bits)
        if swaps is not None:
            packed = 0 if swaps.is_natural else len(swaps.within)
            masks = [1 << swap.lane for swap in swaps.swaps] if machine.exchanges else ()
            cycles = machine.instructions(swaps.instructions, packed, masks)
            open_ways.append((cycles, side, mine, swaps))
    for cycles, side, mine, swaps in sorted(open_ways, key=lambda way: way[0]):
        exchanged = [(swaps.within[swap.bit].bit_length() - 1, swap.lane) for swap in swaps.swaps]
        rest = planner.exchanged(side, exchanged).best(trip.cycles - cycles)
        if rest is None:
            continue
        middle = _with(mine, *swaps.exchanged(mine.in_columns("register"), mine.in_columns("lane")))
        cost = Cost(swaps.instructions, 0, 0, {}, cycles)
        if side == "before":
            stages = [Stage("shuffles", src, middle, swaps, cost), _by_memory(middle, dst, rest)]
        else:
            stages = [_by_memory(src, middle, rest), Stage("shuffles", middle, dst, swaps, cost)]
        lanes = ", ".join(str(s.lane) for s in swaps.swaps)
        return [(f"elements within words and lane bits {lanes} exchanged {side}", stages)]
    return []


def _swaps(mine: LinearLayout, other: LinearLayout, bits: int) -> Swaps | None:
    """The swaps that make words of one side of what are registers of the other; None where there are no such."""
    registers, lanes = mine.in_columns("register"), mine.in_columns("lane")
    theirs = other.in_columns("register")
    size = 5 - bits.bit_length() + 1  # bits of an element's place in a word
    if len(registers) <= size or f2.rank(registers) < len(registers):
        return None
    wanted = [c for c in theirs if c and (c in registers or c in lanes)][:size]
    if len(wanted) < size:
        return None
    within = [registers.index(c) if c in registers else -1 for c in wanted]
    swaps = []
    for i, c in enumerate(wanted):
        if within[i] < 0:
            free = [r for r in (i, *range(len(registers))) if r not in within and registers[r] not in theirs]
            if not free:
                return None
            within[i] = free[0]
            swaps.append(Swap(i, lanes.index(c)))
    return Swaps(tuple(1 << r for r in within), len(registers), tuple(swaps)) if swaps else None


def _with(layout: LinearLayout, registers: Sequence[int], lanes: Sequence[int]) -> LinearLayout:
    """The layout with other columns of registers and lanes."""
    columns = [*registers, *lanes, *layout.columns[len(registers) + len(lanes) :]]
    return LinearLayout._make(layout._ins, layout._outs, columns)
