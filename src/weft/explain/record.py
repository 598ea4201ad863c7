"""What is known of a kernel and its launch, as frozen values: what `kernel.explain(...)` returns.

    e = kernel.explain(x, y, out, n, BLOCK=1024, grid=(98,), target="cuda:90")
    print(e)                                   # tables; e.lines, e.tiles, e.accesses ... are what is in them
    e.accesses[0].remark.fact                  # the remark that says why
    Explanation.from_json(e.to_json()) == e

Nothing is found out here, and nothing that another room knows is written down again: rows hold the compiler's remarks
(`weft.remarks`) and put beside them what the counter says of the same place in the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.base import Span, load
from weft.base.remarks import (
    AccessWidth,
    BulkCopy,
    Conversion,
    Gathered,
    LayoutChanged,
    LayoutChosen,
    Placed,
    Remarks,
    RowAligned,
    SharedAccess,
    VectorAccess,
)
from weft.ir.lane import ELEMENT_BITS

__all__ = [
    "Access",
    "Buffer",
    "Converted",
    "Counts",
    "Explanation",
    "Finding",
    "Happening",
    "Held",
    "Iteration",
    "Line",
    "Occupancy",
    "Tile",
    "Time",
]

VERSION = 1
"""Of the JSON; one that is read has to have the same."""


@dataclass(frozen=True)
class Counts:
    """What the programs of a launch do, counted (the counters of `weft.sim`)."""

    programs: int
    counted: int
    """How many of them were followed; the others are taken to be like these."""
    exact: bool
    """Whether every count is known, and the same as if all programs had been followed."""
    note: str
    """Why a count is not exact, or why nothing is counted; empty otherwise."""
    total: Mapping[str, int]
    longest: float = 1.0
    """Instructions of the longest program by the mean of all, where programs go through loops more or less often."""
    machine_instructions: int = 0
    """Instructions that warps are predicted to execute, as the assembler wrote them; 0 where that is not known."""

    def __getitem__(self, name: str) -> int:
        return self.total.get(name, 0)


@dataclass(frozen=True)
class Line:
    """A line of the kernel's source, with its counters over the whole grid."""

    span: Span | None
    """None for what comes from no line."""
    source: str
    counts: Mapping[str, int]


def _sizes(tile: str) -> tuple[int, ...]:
    return tuple(int(size) for size in tile.split("x")[:-1])


@dataclass(frozen=True)
class Tile:
    """The layout of a tile, the operation that wanted it, and who wanted another one."""

    remark: LayoutChosen
    changes: tuple[LayoutChanged, ...] = ()
    """Layouts that took its place later, the last of which it has."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tile: (64, 32) for 64x32xf16."""
        return _sizes(self.remark.tile)

    @property
    def layout(self) -> str:
        """The layout that it has in the end, as layout IR writes it."""
        return self.changes[-1].after if self.changes else self.remark.layout

    @property
    def link(self) -> Any:
        """What shows the layout on the layout page, a `weft.view.LayoutLink`: `print(tile.link)`, `link.to_html()`."""
        name = ", ".join(self.remark.variables)
        bits = ELEMENT_BITS.get(self.remark.tile.split("x")[-1], 32)
        return load("weft.view").link_to(self.layout, self.shape, bits, name)

    def picture(self, kind: str = "tile", limit: tuple[int, int] = (32, 32)) -> str:
        """Who has which element, as text; see `weft layout show`."""
        view: Any = load("weft.view")
        layout = view.as_linear(view.parse_layout(self.layout, self.shape), self.shape)
        text: str = view.render_text(view.grid_of(layout, self.shape, kind, limit=limit))
        return text


@dataclass(frozen=True)
class Access:
    """An access of memory: what the compiler decided about it, and what it does over the whole grid."""

    remark: AccessWidth | RowAligned | BulkCopy | SharedAccess | VectorAccess
    counts: Mapping[str, int] = field(default_factory=dict)
    in_loop: bool = False
    note: str = ""
    """Of an access of shared memory with bank conflicts a layout of the buffer with fewer; of one of global memory
    without sectors, why they are not counted."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tile that is accessed: (64, 32) for 64x32xf16."""
        return _sizes(self.remark.tile)

    @property
    def sectors(self) -> tuple[int, int]:
        """Sectors of 32 bytes of global memory that it touches, and the least that hold the bytes asked for."""
        bytes = self.counts.get("global_load_bytes", 0) + self.counts.get("global_store_bytes", 0)
        sectors = self.counts.get("global_load_sectors", 0) + self.counts.get("global_store_sectors", 0)
        return sectors, min(sectors, -(-bytes // 32))  # lanes may ask for the same bytes

    @property
    def wavefronts(self) -> tuple[int, int]:
        """Passes over the banks of shared memory, and how many there would be without conflicts."""
        passes = self.counts.get("shared_load_wavefronts", 0) + self.counts.get("shared_store_wavefronts", 0)
        if isinstance(self.remark, SharedAccess):  # others at its place have their own least
            return passes, min(passes, round(passes * self.remark.least / max(1, self.remark.wavefronts)))
        return passes, self.counts.get("shared_ideal", 0)


@dataclass(frozen=True)
class Converted:
    """A conversion of a layout, or a gather, and whether it is done again in each iteration of a loop."""

    remark: Conversion | Gathered
    in_loop: bool = False

    @property
    def is_free(self) -> bool:
        """Whether nothing moves, or only names of registers change."""
        return self.remark.plan in ("nothing", "registers") and self.remark.cycles == 0


@dataclass(frozen=True)
class Buffer:
    """A buffer, in shared memory or in the scratch memory of a program."""

    remark: Placed


@dataclass(frozen=True)
class Held:
    """The most that a thread holds at a time on a line, in words of 32 bits, before the assembler has a say."""

    span: Span
    words: int
    values: Mapping[str, int]
    """The largest of what is held, by variable; what has no name, by the operation that makes it, in parentheses."""
    lives: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The lines from which to which these are held."""
    spills: int = 0
    """Words that the machine code stores and loads on the line for want of registers, where there is an assembler."""


@dataclass(frozen=True)
class Occupancy:
    """How many blocks a multiprocessor runs at a time, and what keeps it from more."""

    warps: int
    """Of a block."""
    shared_bytes: int
    registers: int | None
    """Of a thread, as the assembler counts them; None without an assembler."""
    spills: int | None
    """Words of a thread that are in memory for want of registers."""
    blocks: int
    """On a multiprocessor at a time."""
    limit: str
    """What is used up first: "registers", "shared memory", "threads", "blocks", "grid" or "compiler"."""
    next_step: str
    """What would let one more block in; empty where nothing would."""
    most_warps: int
    """That a multiprocessor has room for."""
    multiprocessors: int
    waves: float
    """The programs of the grid by those that run at a time."""
    room: str = ""
    """What is used up first of a multiprocessor, if the grid has too few programs to use it up; "" if it has more."""
    of_grid: int = 0
    """The most programs that a multiprocessor gets then."""

    @property
    def part(self) -> float:
        """The warps that there are at a time by those that a multiprocessor has room for."""
        return self.blocks * self.warps / self.most_warps


@dataclass(frozen=True)
class Happening:
    """Something that goes on in an iteration of a loop, from one cycle of it to another."""

    kind: str
    """"work" and "wait" are the warp's; beside it go on "load" and "copy", on their way, and "product"."""
    what: str
    """The operation with which it began, as the lane program has it."""
    span: Span | None
    start: float
    end: float
    """May be in a later iteration."""


@dataclass(frozen=True)
class Iteration:
    """One iteration of a loop of a warp that is alone on its multiprocessor, as the model of time sees it."""

    span: Span | None
    """Of the loop."""
    cycles: float
    count: float
    """How many there are each time that the loop is entered, in the mean of all programs."""
    happenings: tuple[Happening, ...]


@dataclass(frozen=True)
class Time:
    """The time that a launch is predicted to take on a GPU whose caches are cold, in microseconds."""

    microseconds: float
    low: float
    high: float
    """The interval that it is expected in; wider where sizes of arrays are not known."""
    bound: str
    """The resource that is busy for the largest part of the time, if that is three fifths or more, as the mean of all
    multiprocessors: "DRAM", "L2", "L1", "shared memory", "issue", "floats", "integers and choices", "matrix units",
    "special functions", "double precision", "atomics", "starting blocks"; else "latency", where programs wait for
    themselves, or "launch". On the CPU the longest of "memory", "caches", "arithmetic", "programs" and "launch"."""
    part: float
    """Its share of the time."""
    resources: Mapping[str, float]
    """What each resource takes, in microseconds, if nothing else did."""
    lines: Mapping[str, float]
    """The share of a warp's time that each line of the source takes, by its number; in other files than that of the
    kernel, by file and number, `helpers.py:7`."""
    iterations: tuple[Iteration, ...] = ()
    """One iteration of each loop without further loops in it."""
    device: str = ""
    """The GPU whose rates these are, of those that run the target's code: H100, H200."""
    dram_bytes: float = 0.0
    """Bytes that DRAM reads and writes."""
    utilisation: Mapping[str, float] = field(default_factory=dict)
    """The part of its peak to which Nsight Compute would say that each resource is used, as the mean of all
    multiprocessors. It empties caches before a launch, so that nothing of others has to be written back."""
    resident: float = 0.0
    """The blocks of a multiprocessor at a time, if "latency" has what the warps of a block ask of units; 0 if not."""

    def __str__(self) -> str:
        text = f"{_us(self.microseconds)} us ({_us(self.low)} to {_us(self.high)})"
        return f"{text}, bound by {self.bound} at {self.part:.0%}"


def line_key(e: Explanation, file: str, number: int) -> str:
    """What `Time.lines` calls a line."""
    return str(number) if e.span is None or e.span.file == file else f"{file}:{number}"


def _us(value: float) -> str:
    """Three digits.

    >>> _us(41.23), _us(1240.1), _us(2.345)
    ('41.2', '1,240', '2.35')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


@dataclass(frozen=True)
class Finding:
    """Something that takes time or goes wrong, where, why, and what would fix it."""

    code: str
    """Stable, as `narrow-access`."""
    span: Span | None
    what: str
    why: str
    fix: str
    microseconds: float | None = None
    """What the fix brings by the model of time; None where that is not known."""
    no_figure: str = ""
    """Why not."""
    is_at_most: bool = False
    """Whether it brings that at most: all that is waited for now, of which some may remain."""
    change: Mapping[str, int | float | str] = field(default_factory=dict)
    """The fix as `what_if` takes it, where it is an argument or an option of the launch; empty otherwise."""
    page: str = ""
    """The page in Weft's documentation with a kernel that has it, and the same kernel fixed."""

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        gain = f" ({'at most' if self.is_at_most else 'about'} {self.microseconds:.1f} us)" if self.microseconds else ""
        return f"{place}{self.code}: {self.what}: {self.why}{gain}; fix: {self.fix}"


@dataclass(frozen=True)
class Explanation:
    """What is known of a kernel for one target, with these arguments and this grid."""

    kernel: str
    target: str
    span: Span | None
    """Where the kernel is defined."""
    grid: tuple[int, int, int]
    arguments: Mapping[str, str]
    """By name, as text: an array as its type, a number as such, a constexpr as its value."""
    options: Mapping[str, int]
    counts: Counts
    lines: tuple[Line, ...]
    tiles: tuple[Tile, ...]
    accesses: tuple[Access, ...]
    conversions: tuple[Converted, ...]
    buffers: tuple[Buffer, ...]
    registers: tuple[Held, ...]
    """The lines by what a thread holds there, the most first; empty on a CPU."""
    occupancy: Occupancy | None
    """None on a CPU."""
    time: Time | None
    """None for a machine that the model of time does not know; `no_time` says why."""
    findings: tuple[Finding, ...]
    remarks: Remarks
    """All that the compiler decided, of which the rows above hold some."""
    no_time: str = ""
    """Why no time is predicted: "not calibrated" and for what, or what is not known; empty where there is one."""
    again: Any = field(default=None, compare=False, repr=False, metadata={"plain": False})
    """What explains the same launch with something changed, for `what_if`; None for one that is read from JSON."""

    def __getstate__(self) -> dict[str, Any]:
        """All but the launch, whose arrays and kernel other processes do not have."""
        return {**vars(self), "again": None}

    def line(self, number: int) -> Line:
        """The line of the source with this number. LookupError where the kernel does nothing there."""
        for line in self.lines:
            if line.span is not None and line.span.line == number:
                return line
        numbers = ", ".join(str(line.span.line) for line in self.lines if line.span is not None)
        raise LookupError(f"the kernel does nothing on line {number}; it does on {numbers}")

    @property
    def ncu(self) -> tuple[Any, ...]:
        """What Nsight Compute would say, by the names of its metrics: `weft.explain.ncu.Metric`."""
        metrics: tuple[Any, ...] = load("weft.explain.ncu").metrics_of(self)
        return metrics

    def to_dict(self) -> dict[str, Any]:
        """Plain data; places have file, line and column, counted from 1, and where they end (ends.py)."""
        plain: dict[str, Any] = load("weft.explain.ends").with_ends(load("weft.explain.plain").to_plain(self))
        return {"version": VERSION, **plain}

    def to_json(self, indent: int | None = 1) -> str:
        """`to_dict` as JSON."""
        text: str = load("weft.explain.plain").to_json(self.to_dict(), indent)
        return text

    @staticmethod
    def from_json(text: str | bytes) -> Explanation:
        """What `to_json` wrote. ValueError for anything else."""
        read: Explanation = load("weft.explain.plain").from_json(Explanation, text, VERSION)
        return read

    def what_if(self, **changes: Any) -> Explanation:
        """The explanation of the same launch with other arguments or options: `e.what_if(num_warps=8, stride=4112)`.

        ValueError for an explanation that knows no launch: one that was read from JSON, or is of layout IR.
        """
        if self.again is None:
            raise ValueError(f"the launch of {self.kernel} is not known any more: explain the kernel itself")
        other: Explanation = self.again(changes)
        return other

    def with_fixes(self) -> Explanation:
        """The same explanation, with the gain of each finding whose fix is an argument or an option of the launch
        predicted anew: by explaining the fixed launch, which takes a compilation for each.

        ValueError for an explanation that knows no launch, as `what_if`.
        """
        fixed: Explanation = load("weft.explain.fixing").with_fixes(self)
        return fixed

    def to_html(self, alternatives: bool | Sequence[Mapping[str, Any]] = False) -> str:
        """A page that needs nothing else: the source with the time of each line, and beside it what is known of it.

        `alternatives` are what-ifs that the page offers to choose from, each as `what_if` takes it; True for those that
        suggest themselves. Each takes a compilation, of which a terminal shows the progress.
        """
        if alternatives is False:
            page: str = load("weft.explain.page").page_html(self)
        else:
            wanted = None if alternatives is True else alternatives
            page = load("weft.explain.alternatives").page_with(self, wanted)
        return page

    def save_html(self, path: str, alternatives: bool | Sequence[Mapping[str, Any]] = False) -> None:
        """Write the page to a file; see `to_html`."""
        load("weft.explain.saving").save(path, self.to_html(alternatives))

    def _repr_html_(self) -> str:
        """A compact view for notebooks."""
        view: str = load("weft.explain.notebook").notebook_html(self)
        return view

    def diff(self, other: Explanation) -> Any:
        """What is different in another explanation: another target, configuration, source or version of Weft."""
        return load("weft.explain.difference").difference(self, other)

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """What `rich.print` shows, in colours, as wide as there is room for."""
        yield load("weft.explain.coloured").rich_view(self, options.max_width)

    def __str__(self) -> str:
        text: str = load("weft.explain.text").text_of(self)
        return text

    def __repr__(self) -> str:
        return f"Explanation({self.kernel}, {self.target}, grid={self.grid}, {len(self.findings)} findings)"
