"""An explanation put together: the remarks of a compilation, the counts of its lane program, its occupancy.

explanation(kernel, program.remarks.collected(), launch, program)     # a GPU's
explanation(kernel, remarks, launch)                                  # a CPU's, which has no lane program
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.base import Span, WeftError
from weft.base.remarks import (
    AccessWidth,
    BulkCopy,
    Conversion,
    Gathered,
    LayoutChanged,
    LayoutChosen,
    Pipelined,
    Placed,
    Remark,
    Remarks,
    RowAligned,
    SharedAccess,
    VectorAccess,
)
from weft.ir.lane import Block, LaneOp, LaneProgram
from weft.machines import part
from weft.sim import SimulationError

from .costs import costs_of
from .findings import Facts, findings_of
from .gains import with_gains, with_gains_on_cpu
from .grouped import SIDE
from .issued import with_machine_code
from .lengths import most_turns
from .occupancy import occupancy_of
from .processor import Rates, float_kinds, moved_bytes, time_on_cpu, touched_bytes
from .programs import Given, PlacedReport, counted
from .record import Access, Buffer, Converted, Counts, Explanation, Held, Line, Tile, Time
from .registers import held_by_line
from .roofline import CASTS, OPERATIONS
from .supposed import supposing
from .swizzles import best_layout
from .timing import time_of, with_code

__all__ = ["Launch", "explanation"]

OF_TIME = ("_distinct", "_lines", "_boxes", SIDE)
"""How the names of counters end that are for the model of time alone."""
ACCESSES = (AccessWidth, RowAligned, BulkCopy, SharedAccess, VectorAccess)


@dataclass(frozen=True)
class Launch:
    """A kernel and how it is launched."""

    kernel: str
    target: str
    span: Span | None
    grid: tuple[int, int, int]
    arguments: Mapping[str, str]
    options: Mapping[str, int]
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    """Numbers among the arguments of the lane program, by name."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the arrays among them, as far as they are known."""
    registers: int | None = None
    spills: int | None = None
    wrapped: tuple[tuple[Span | None, str], ...] = ()
    """Offsets that are known to wrap: where, and what is said of them."""
    image: bytes = b""
    """Its machine code; nothing where there is no assembler."""
    texts: Mapping[str, Any] = field(default_factory=dict)
    """What it was made of, by stage."""
    device: str = ""
    """The device whose time is predicted, of those that run the target's code; "" for the usual one."""
    data: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    """What arrays hold that are at hand and only read."""

    rates: Rates | None = None
    """Of the CPU, if it is for one that was measured."""
    overlapping: tuple[tuple[str, str], ...] = ()
    """Arrays among its arguments that overlap, though a kernel for the CPU was compiled for arrays that do not."""
    is_gluon: bool = False
    """Whether its source has layouts."""

    def given(self, suppose: bool | None = None, turns: int | None = None) -> Given:
        """What the counter is given of it."""
        return Given(self.grid, self.scalars, self.data, suppose, turns)


def explanation(
    launch: Launch, remarks: Remarks, program: LaneProgram | None = None, like: LaneProgram | None = None
) -> Explanation:
    """What is known of it. Counts need a lane program; `like` is one of the same kernel for another machine, of which
    only what goes to and from memory is told."""
    e, facts, other = _explained(launch, remarks, program or like, program is None)
    if program is None:
        rates = launch.rates
        time = time_on_cpu(facts, launch.sizes, rates) if rates is not None else None
        facts = replace(
            facts, explanation=replace(e, time=time), threads=rates.threads if rates is not None else 0,
            sizes=launch.sizes, overlapping=launch.overlapping,
            touched=touched_bytes(facts) if facts.program is not None else {},
        )  # fmt: skip
        return replace(
            e, time=time, no_time=_no_time(launch, e, time), counts=_on_cpu(e.counts, facts),
            lines=tuple(map(_line_of_memory, e.lines)),
            accesses=tuple(replace(access, counts=_bytes(access.counts)) for access in e.accesses),  # it has no sectors
            findings=with_gains_on_cpu(facts, rates, findings_of(facts)),
        )  # fmt: skip
    time = time_of(facts, launch.sizes)
    if other is not None and time is not None:
        time = _between(time, time_of(other, launch.sizes))
    findings = with_gains(facts, launch.sizes, time, findings_of(facts))
    e = with_machine_code(e, facts)
    return replace(e, time=time, no_time=_no_time(launch, e, time, program), findings=findings)


def _no_time(launch: Launch, e: Explanation, time: Time | None, program: LaneProgram | None = None) -> str:
    """Why there is no time."""
    if time is not None:
        return ""
    if program is None and launch.rates is None:
        return f"not calibrated for this {launch.target}: `weft calibrate` measures it"
    if program is not None and costs_of(program.machine) is None:
        return f"not calibrated for {launch.target}"
    return f"not known, as {e.counts.note}" if e.counts.note else "not known"


def _explained(
    launch: Launch, remarks: Remarks, program: LaneProgram | None, is_other: bool
) -> tuple[Explanation, Facts, Facts | None]:
    """All but the time and findings; the facts for these, and as they would be if programs did the least that they may.
    `is_other` says that the program is for another machine."""
    if program is None:
        made = _Followed(PlacedReport(), 0, f"programs for {launch.target} are not counted", launch.given())
        loops: frozenset[Span] = frozenset()
        moved = loops
    else:
        made = _counted(program, launch)
        loops, moved = spans_in_loops(program.body), spans_in_loops(program.body, moves)
    report = made.report
    counts = _counts(launch, made)
    files = {span.file for span in (launch.span, *(r.span for r in remarks)) if span is not None}
    occupancy = None
    if program is not None and not is_other:
        occupancy = occupancy_of(program, launch.grid, launch.registers, launch.spills, remarks.of(Pipelined))
    explained = Explanation(
        launch.kernel, launch.target, launch.span, launch.grid, dict(launch.arguments), dict(launch.options), counts,
        lines=_lines(report, remarks, files),
        tiles=_tiles(remarks),
        accesses=_with_layouts(_accesses(remarks, report, loops), remarks, program if not is_other else None),
        conversions=tuple(
            Converted(r, r.span in moved) for r in remarks if isinstance(r, Conversion | Gathered)
        ),
        buffers=tuple(Buffer(r) for r in remarks.of(Placed)),
        registers=_held(program, launch.image) if program is not None and not is_other else (),
        occupancy=occupancy,
        time=None,
        findings=(),
        remarks=remarks,
    )  # fmt: skip

    supposed = _supposed(program, counts, made.given)
    facts = Facts(
        explained, program, launch.scalars, report.places, launch.wrapped, supposed,
        is_gluon=launch.is_gluon, device=launch.device,
    )  # fmt: skip
    facts = with_code(facts, launch.image, launch.texts)
    fewer = None
    if made.least is not None:
        less = _counts(launch, replace(made.least, note=made.note))
        fewer = with_code(
            replace(
                facts, explanation=replace(explained, counts=less), places=made.least.report.places,
                supposed=_supposed(program, less, made.least.given),
            ),
            launch.image, launch.texts,
        )  # fmt: skip
    return explained, facts, fewer


def _on_cpu(counts: Counts, facts: Facts) -> Counts:
    """Of counters those that are the same on every machine: bytes that go to and from memory, and arithmetic."""
    total = _bytes(counts.total)
    lanes = facts.program.lanes if facts.program is not None else 0
    if operations := lanes * sum(n for name, n in float_kinds(counts.total) if name not in CASTS):
        total[OPERATIONS] = operations
    return replace(counts, total=total)


def _line_of_memory(line: Line) -> Line:
    return replace(line, counts=_bytes(line.counts))


def _bytes(counts: Mapping[str, int]) -> dict[str, int]:
    return {f"global_{verb}_bytes": n for verb in ("load", "store") if (n := moved_bytes(counts, verb))}


def _held(program: LaneProgram, image: bytes) -> tuple[Held, ...]:
    """What a thread holds by line, and what of it the assembler spills."""
    own = part("explain", program.machine)
    spilled: dict[tuple[str, int], int] = own.spilled_by_line(image) if own is not None and image else {}
    rows = []
    for held in held_by_line(program):
        rows.append(replace(held, spills=spilled.pop((held.span.file, held.span.line), 0)))
    rows += [Held(Span(*place, 0), 0, {}, spills=words) for place, words in sorted(spilled.items()) if place[1]]
    return tuple(rows)


def _supposed(program: LaneProgram | None, counts: Counts, given: Given) -> dict[Span | None, Counter[str]]:
    """Counters by place as if integers from memory were random, where the counts depend on them."""
    if program is None or counts.exact or not counts.counted or costs_of(program.machine) is None:
        return {}
    supposed = supposing(program, given.data)
    if supposed is program:
        return {}
    try:
        return counted(supposed, given)[0].places
    except (SimulationError, WeftError):
        return {}


@dataclass(frozen=True)
class _Followed:
    """What the programs of a launch count."""

    report: PlacedReport
    number: int
    """Programs that were followed."""
    note: str
    """Why it is not exact."""
    given: Given
    """What they were followed with, and what was assumed of branches and loops that depend on data."""
    least: _Followed | None = None
    """The least that there may be instead."""


def _counted(program: LaneProgram, launch: Launch) -> _Followed:
    """Where branches depend on data that are not at hand, programs are followed as if all such conditions held, and as
    if none did. The report is that of more instructions. Loops whose length is not known turn never at least, and at
    most as often as reads all of an array once (lengths.py).
    """
    given = launch.given()
    report, number, note = counted(program, given)
    if number or not prod(launch.grid):
        return _Followed(report, number, note, given)
    ways = [_follow(program, launch.given(suppose)) for suppose in (False, True)]
    possible = [way for way in ways if way.number]
    if not possible:
        return _of_unknown_length(program, launch, note) or _Followed(report, number, note, given)
    least, most = (_by_instructions(pick, possible) for pick in (min, max))
    note = f"{note}: counted as if it were {str(most.given.suppose).lower()} everywhere"
    return replace(most, note=note, least=least)


def _follow(program: LaneProgram, given: Given) -> _Followed:
    return _Followed(*counted(program, given), given)


def _of_unknown_length(program: LaneProgram, launch: Launch, note: str) -> _Followed | None:
    """The same where the length of a loop is not known; None where something else is not, too."""
    never, once = ([_follow(program, launch.given(way, turns)) for way in (False, True)] for turns in (0, 1))
    if not all(way.number for way in (*never, *once)):
        return None
    least, most = _by_instructions(min, never), _by_instructions(max, once)
    turns, array = most_turns(program, most.report.places, least.report.places, launch.sizes)
    often = [_follow(program, launch.given(way, turns)) for way in (False, True)] if turns > 1 else once
    most = _by_instructions(max, often)
    most.report.exact = False
    which = f", which goes through all of `{array}` once" if array else ""
    told = f"{turns:,} iterations" if turns > 1 else "one iteration"
    branches = ""
    if _told(often[0].report.total) != _told(often[1].report.total):
        holds = str(most.given.suppose).lower()
        branches = f", and conditions of branches that depend on data as if they were {holds} everywhere"
    note += f": counted as if it had {told}{which}{branches}; the least is as if it had none"
    return replace(most, note=note, least=least)


def _by_instructions(pick: Callable[..., _Followed], ways: Sequence[_Followed]) -> _Followed:
    """The one of the fewest or the most instructions."""
    return pick(ways, key=lambda way: way.report.total["instructions"])


def _told(counts: Mapping[str, int]) -> dict[str, int]:
    """Without what is for the model of time alone."""
    return {name: n for name, n in counts.items() if not name.endswith(OF_TIME)}


def _counts(launch: Launch, made: _Followed) -> Counts:
    report, exact = made.report, bool(made.number) and made.report.exact
    total = {name: n for name, n in sorted(_told(report.total).items()) if n}
    return Counts(prod(launch.grid), made.number, exact, made.note, total, round(report.longest, 2))


def _between(most: Time, least: Time | None) -> Time:
    """The time where it may be as little as another one."""
    if least is None:
        return most
    return replace(most, low=min(most.low, least.low), high=max(most.high, least.high))


def moves(op: LaneOp) -> bool:
    """Whether an operation may be part of moving a tile: what a loop counts, which has the loop's own place, is not."""
    return op.name in ("shuffle", "instruction", "permute") or op.attrs.get("space") == "shared"


def spans_in_loops(body: Block, which: Callable[[LaneOp], bool] = lambda op: True) -> frozenset[Span]:
    """The places of the source whose operations stand in a loop, or those of some of them. The place of a loop is also
    that of its counter, and of what is done with its results behind it."""
    inside: set[Span] = set()
    for op in body.walk():
        if op.name in ("for", "while"):
            ops = (each for region in op.regions for each in region.walk() if which(each))
            inside.update(each.span for each in ops if each.span is not None)
    return frozenset(inside)


def _lines(report: PlacedReport, remarks: Remarks, files: set[str]) -> tuple[Line, ...]:
    """Those on which something is done or was decided."""
    found = {key: dict(sorted(_told(line).items())) for key, line in report.lines.items() if line}
    for remark in remarks:
        if remark.span is not None:
            found.setdefault((remark.span.file, remark.span.line), {})
    lines = []
    for key, counts in sorted(found.items(), key=lambda item: item[0] or ("", 0)):
        source = linecache.getline(*key).strip() if key else ""
        lines.append(Line(Span(*key, 0) if key else None, source, counts))
    return tuple(lines)


def _tiles(remarks: Remarks) -> tuple[Tile, ...]:
    changes = remarks.of(LayoutChanged)

    def of(remark: LayoutChosen) -> tuple[LayoutChanged, ...]:
        return tuple(c for c in changes if c.tile == remark.tile and c.span == remark.span)

    return tuple(Tile(remark, of(remark)) for remark in remarks.of(LayoutChosen))


def _accesses(remarks: Remarks, report: PlacedReport, loops: frozenset[Span]) -> tuple[Access, ...]:
    """Each with the counts of its place. Of several at one place those of shared memory have their parts, by the
    wavefronts that each of them takes; of others the first has all."""
    told: set[tuple[Span | None, str]] = set()
    passes: Counter[tuple[Span | None, str]] = Counter()
    for r in remarks.of(SharedAccess):
        passes[r.span, _counter(r)] += r.count * r.wavefronts
    accesses = []
    for remark in remarks:
        if not isinstance(remark, ACCESSES):
            continue
        key = remark.span, _counter(remark)
        place, note = report.places.get(remark.span, Counter()), ""
        names: tuple[str, ...] = (key[1],)
        share = Fraction(key not in told)
        if isinstance(remark, SharedAccess):
            names, share = (key[1], "shared_ideal"), Fraction(remark.count * remark.wavefronts, max(1, passes[key]))
        kept = sorted(_told(place).items())
        counts = {name: round(n * share) for name, n in kept if share and name.startswith(names)}
        if isinstance(remark, AccessWidth) and key not in told and not counts and not report.exact:
            note = "its sectors depend on data" if any(name.startswith("kind:") for name in place) else ""
        told.add(key)
        accesses.append(Access(remark, counts, remark.span in loops, note))
    return tuple(accesses)


def _counter(remark: Remark) -> str:
    """How the counters begin in which an access counts."""
    space, verb = _space(remark), _verb(remark)
    return f"{space}_{verb}" if verb else space


def _with_layouts(accesses: tuple[Access, ...], remarks: Remarks, program: LaneProgram | None) -> tuple[Access, ...]:
    """Those with bank conflicts with the layout of the buffer that would have the fewest."""
    if program is None:
        return accesses
    told: list[Access] = []
    for access in accesses:
        r, note = access.remark, access.note
        if isinstance(r, SharedAccess) and r.wavefronts > r.least:
            advice = best_layout(r, remarks, program.machine)
            note = "no swizzle or padding of the buffer has fewer"
            if advice is not None:
                note = f"{advice.expression} would have {advice.then} wavefronts of a warp, not {advice.now}"
        told.append(replace(access, note=note))
    return tuple(told)


def _space(remark: Remark) -> str:
    return "shared" if isinstance(remark, SharedAccess) else "global"


def _verb(remark: Remark) -> str:
    """Which of the counters of a space an access counts in; "" for both."""
    access = str(getattr(remark, "access", ""))
    return access if access in ("load", "store") else ""
