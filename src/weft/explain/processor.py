"""The time of a launch on the CPU, where memory is what it waits for: bytes by the rates that were measured here.

    time = launch + programs + what memory, caches and arithmetic take together, which go on beside each other in part

What a kernel reads and writes is the same on every machine: it is counted in the lane program of the same kernel for a
GPU with warps of 32 lanes and one warp. Each byte of an array comes from memory once, as caches are taken to be cold,
and from a cache whenever it is touched again. Rates are those of this machine, measured by `weft calibrate`, by the
size of what is moved: there is no time without them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, prod
from typing import TYPE_CHECKING

from weft.base import Span

from .arrays import arrays_of
from .passes import (
    carried_tiles,
    is_turned,
    kept_bytes,
    product_operations,
    reduced_rows,
    reductions,
    roundings,
    runs_of,
    stored_apart,
)
from .record import Time, line_key

if TYPE_CHECKING:
    from .findings import Facts

__all__ = ["Rates", "float_kinds", "moved_bytes", "time_on_cpu", "touched_bytes"]

SECTOR, GPU_LINE = 32, 128
SPREAD = 1.5
"""Sectors by the least that there could be, from which on each element is taken to have a cache line of its own."""
STREAM_BYTES = 24 << 20
"""Bytes that a launch writes from which on its stores go around the caches (`backends/cpu/streaming.py`)."""
NEAR = 1 << 15
"""Bytes of a program that the nearest cache holds."""
PAGE, PAGES = 4096, 1 << 14
"""Bytes of a page, and of rows that are as good as one long run."""
APART = 2048
"""Bytes from one row to the next from which on rows are as if each were on a page of its own."""
WORK = ("memory", "caches", "arithmetic")
VERBS = ("load", "store")
WAYS = (*VERBS, "in place")
TURNED = (128, 256)
"""Bytes of the rows of tiles with which transposing is measured."""
MANY_ROUNDS = 8
"""Programs of a thread from which on it does not matter that some have one more than others."""
MINOR = 0.1
"""The part of the bytes that are read below which an array is not one that is read beside others, and stores of what is
made of rows do not count."""
OFF = (0.75, 1.3)
"""How far the time may be below and above what is predicted, as factors: of nine in ten of explain_cpu.py it is not."""
UNKNOWN = (0.5, 2.0)
"""The same where addresses depend on data that was not given."""
SPECIAL = ("exp", "log", "sin", "cos", "tan", "erf", "pow")
"""Of functions, those that take about as long as an exponential; polynomials on the CPU."""
FLOATS = frozenset(f"arith.{name}" for name in (
    "addf", "subf", "mulf", "divf", "remf", "maxnumf", "minnumf", "maximumf", "minimumf", "negf", "cmpf", "extf",
    "truncf", "sitofp", "uitofp", "fptosi",
))  # fmt: skip
DIVISIONS = frozenset(("arith.divf", "arith.remf", "math.sqrt", "math.rsqrt"))
"""Operations that take about as long as a division."""


@dataclass(frozen=True)
class Rates:
    """What `weft calibrate` measured on a machine, with as many threads as launches use. Caches are cold."""

    processor: str
    threads: int
    launch: float
    """Microseconds of a launch that does nothing."""
    program: float
    """Microseconds of a program that does hardly anything, of one of many."""
    sizes: tuple[int, ...]
    """Bytes that were moved, the fewest first."""
    read: tuple[float, ...]
    """Bytes of a microsecond, for each of the sizes."""
    written: tuple[float, ...]
    both: tuple[float, ...]
    """What a copy of so many bytes takes, by what reading and writing them takes apart."""
    in_place: tuple[float, ...]
    """Bytes of a microsecond that are written where they were read, beside reading them."""
    alone: float
    """The part of what all threads read that one of them reads alone: more than its share of memory."""
    lengths: tuple[int, ...]
    """Bytes of rows on different pages, the fewest first."""
    slow_read: tuple[float, ...]
    """How many times as long such rows take, for each of the lengths, as when one goes on in the next."""
    slow_written: tuple[float, ...]
    of_four: float
    """The part of the time of reading one array that as many bytes of four arrays at a time take."""
    looped: float
    """The same of reading in loops that carry a tile."""
    by_rows: tuple[float, float]
    """How many times as long as a copy it takes to read tiles of 4 KiB and of 16 KiB, reduce them, and store them."""
    turned: tuple[float, float]
    """The same of transposing a matrix by tiles whose rows have 128 and 256 bytes, with rows of the result that begin
    alike in their pages."""
    turned_apart: tuple[float, float]
    """The same with rows that do not: a load waits for a store before it that has the same place in its page."""
    again: float
    """Bytes of a microsecond that the nearest cache moves."""
    far: float
    """The same of the next one."""
    simple: float
    """Operations of arithmetic on elements of 32 bits in a microsecond."""
    special: float
    """Exponentials in a microsecond."""
    divided: float
    """Divisions in a microsecond."""
    beside: float
    """The power of the mean in which divisions and other arithmetic are combined, which is done by other units."""
    rounded: float
    """Elements that are rounded to bfloat16 in a microsecond."""
    reduction: float
    """Microseconds of the reduction of a small tile to a number."""
    together: float
    """The power of the mean in which memory, caches and arithmetic are combined: 1 where one waits for the other."""
    product: float
    """Multiplications and additions of a product of float32 in a microsecond."""
    product_16: float
    """The same of float16."""

    def microseconds(
        self, read: float, written: float, in_place: float = 0.0, slow: tuple[float, float] = (1.0, 1.0)
    ) -> float:
        """Of so many bytes that come from memory, so many that go there, and so many that go back to where they were
        read; reading and writing are so many times as `slow` as of one long run."""
        size = read + written
        if in_place:
            return self.microseconds(read, written, slow=slow) + in_place / self._at(self.in_place, in_place)
        if not size:
            return 0.0
        around = written >= STREAM_BYTES  # stores go around the caches, as they do of the largest size alone
        at = max(size, self.sizes[-1]) if around else min(size, self.sizes[-2])
        apart = slow[0] * read / self._at(self.read, size) + slow[1] * written / self._at(self.written, at)
        mixed = 4 * read * written / size**2  # 1 for a copy
        return apart * (1 - mixed * (1 - self._at(self.both, at)))

    def slow(self, verb: str, length: float) -> float:
        """How many times as long rows of a length take, on different pages."""
        factors = self.slow_read if verb == "load" else self.slow_written
        return _between((*self.lengths, PAGES), (*factors, 1.0), length)

    def _at(self, rates: Sequence[float], size: float) -> float:
        """The rate at a size, between those that were measured."""
        return _between(self.sizes, rates, size)


def _between(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """The value at a place between those that are known; the first or last one beyond them."""
    at = bisect_left(places, place)
    if at == 0 or at == len(places):
        return values[min(at, len(values) - 1)]
    below, above = places[at - 1], places[at]
    part = log(place / below) / log(above / below)
    return float(values[at - 1] ** (1 - part) * values[at] ** part)


def moved_bytes(counts: Mapping[str, int], verb: str) -> int:
    """Bytes that lanes ask for at a place; those that several of them ask for once."""
    asked, sectors = counts.get(f"global_{verb}_bytes", 0), counts.get(f"global_{verb}_sectors", 0)
    return min(asked, sectors * SECTOR)


def time_on_cpu(facts: Facts, sizes: Mapping[str, int], rates: Rates) -> Time | None:
    """The time of a launch; None where nothing was counted. `facts` are those of the lane program."""
    e, program = facts.explanation, facts.program
    if program is None or not e.counts.counted:
        return None
    first, again = _bytes_by_way(facts, sizes)
    slow = slowness_of(replace(facts, sizes=sizes), rates)
    memory = rates.microseconds(first["load"], first["store"], first["in place"], slow)
    programs = prod(e.grid)
    kept, held = kept_bytes(facts)
    own = held + sum(touched_bytes(facts).values()) / max(1, programs)
    idle = _stretched(programs, rates.threads, 1 / rates.threads)  # rates are those of all threads together
    within = 1.0 if carried_tiles(facts) else _within(facts)
    resources = {
        "memory": _stretched(programs, rates.threads, rates.alone) * memory,
        "caches": idle * (sum(again.values()) + within * kept) / (rates.again if own <= NEAR else rates.far),
        "arithmetic": idle * within * _arithmetic(facts, rates),
        "programs": programs * rates.program,
        "launch": rates.launch,
    }
    work = float(sum(resources[name] ** rates.together for name in WORK) ** (1 / rates.together))
    time = rates.launch + resources["programs"] + work
    bound = max(resources, key=lambda name: resources[name])
    low, high = OFF if e.counts.exact else UNKNOWN
    threads = "threads" if rates.threads != 1 else "thread"
    return Time(
        round(time, 2), round(time * low, 2), round(time * high, 2), bound, round(resources[bound] / time, 3),
        {name: round(us, 3) for name, us in sorted(resources.items(), key=lambda item: -item[1]) if us},
        _shares(facts), device=f"{rates.processor}, {rates.threads} {threads}", dram_bytes=sum(first.values()),
    )  # fmt: skip


def _stretched(programs: int, threads: int, alone: float) -> float:
    """How many times as long programs take as if all threads had work up to the end. One thread does the part `alone`
    of what all of them do together, as far as others have nothing to do."""
    rounds, rest = divmod(programs, threads)
    if rounds >= MANY_ROUNDS or not rest:
        return 1.0
    part = float(alone ** (1 - log(rest, threads)))  # of what all threads do: a power of their number
    return (rounds + rest / threads / part) * threads / programs


def _within(facts: Facts) -> float:
    """The part of the elements of loads that are within the bounds: loops end with rows, but for those that carry
    tiles. All of them, where masks depend on data."""
    counts = facts.explanation.counts.total
    if not facts.explanation.counts.exact:
        return 1.0
    held = sum(n for name, n in counts.items() if name.startswith("threads:load.global."))
    every = sum(n for name, n in counts.items() if name.startswith("kind:load.global."))
    return held / every / facts.program.lanes if facts.program is not None and held else 1.0


def _touched(counts: Mapping[str, int], verb: str, lanes: int) -> float:
    """Bytes of cache lines that go to and fro at a place: what is asked for, and where lanes are apart whole lines.

    Where masks or addresses depend on data that was not given, as if all masks held and each element had its line.
    """
    asked = counts.get(f"global_{verb}_bytes", 0)
    sectors = counts.get(f"global_{verb}_distinct", counts.get(f"global_{verb}_sectors", 0))
    if not asked:
        kinds = ((key.rpartition(".")[2], n) for key, n in counts.items() if key.startswith(f"kind:{verb}.global."))
        return sum(n * lanes * int(bits) / 8 for bits, n in kinds if bits.isdigit())
    if sectors * SECTOR < SPREAD * asked:
        return min(asked, sectors * SECTOR)
    return min(2 * SECTOR * sectors, GPU_LINE * counts.get(f"global_{verb}_lines", sectors))


def touched_bytes(facts: Facts) -> dict[tuple[Span | None, str, str], float]:
    """Bytes of the launch by place, array, and "load" or "store"; where it may be several arrays, each has its part."""
    touched: defaultdict[tuple[Span | None, str, str], float] = defaultdict(float)
    for (span, verb), names in arrays_of(facts).items():
        bytes = _touched(facts.places.get(span, Counter()), verb, facts.program.lanes if facts.program else 0)
        for name in names or [""]:
            touched[span, name, verb] += bytes / max(1, len(names))
    return dict(touched)


def slowness_of(facts: Facts, rates: Rates) -> tuple[float, float]:
    """How many times as long loads and stores take as one array that is read, or written, from one end to the other."""
    runs = runs_of(facts, APART)
    slow: dict[str, float] = {}
    touched = touched_bytes(facts)
    for verb in VERBS:
        parts = [(n, runs.get((span, verb))) for (span, _, v), n in touched.items() if v == verb and n]
        total = sum(n for n, _ in parts)
        took = sum(n * (1.0 if length is None else rates.slow(verb, length)) for n, length in parts)
        slow[verb] = took / total if total else 1.0
    loaded: Counter[str] = Counter()
    for (_, name, verb), n in touched.items():
        loaded[name] += int(n) if verb == "load" else 0
    once = {name: min(n, facts.sizes.get(name, n)) for name, n in loaded.items()}
    arrays = sum(n >= MINOR * sum(once.values()) for n in once.values() if n)
    factor = rates.of_four ** min(1.0, log(max(1, arrays), 4))
    factor *= 1 + carried_tiles(facts) * (rates.looped - 1)  # each is read and written between loads
    stored = [(n, runs.get((span, verb)) or 0.0) for (span, _, verb), n in touched.items() if verb == "store"]
    if is_turned(facts) and all(any(runs.get((span, verb)) for span, _, verb in touched if verb == v) for v in VERBS):
        length = max(stored)[1]
        alike = stored_apart(facts) % PAGE == 0
        turned = _between(TURNED, rates.turned if alike else rates.turned_apart, length)
        turned *= max(1.0, rates.slow("store", length) / rates.slow("store", TURNED[0]))
        slow = dict.fromkeys(VERBS, turned)
    stores = sum(n for (_, _, verb), n in touched.items() if verb == "store")
    row = reduced_rows(facts) if stores >= MINOR * sum(once.values()) else 0.0  # a number for each row is no row
    rows = _between((PAGE, PAGES), rates.by_rows, row) if row else 1.0
    return factor * rows * slow["load"], rows * slow["store"]


def _bytes_by_way(facts: Facts, sizes: Mapping[str, int]) -> tuple[dict[str, float], dict[str, float]]:
    """Bytes that go between memory and caches, and those that are touched again: of loads, of stores, and of stores in
    arrays that are loaded as well."""
    touched: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (_, name, verb), bytes in touched_bytes(facts).items():
        touched[name, verb] += bytes
    first: dict[str, float] = dict.fromkeys(WAYS, 0.0)
    again: dict[str, float] = dict.fromkeys(WAYS, 0.0)
    for (name, verb), number in touched.items():
        way = "in place" if verb == "store" and name and (name, "load") in touched else verb
        once = min(number, sizes.get(name, number))
        first[way] += once
        again[way] += number - once
    return first, again


def _arithmetic(facts: Facts, rates: Rates) -> float:
    """Microseconds of operations on floating-point elements, 32 of which are an instruction of the lane program;
    integers are mostly of addresses, which vectors do not have for each element."""
    assert facts.program is not None
    lanes = facts.program.lanes
    simple = special = divided = 0.0
    for name, n in float_kinds(facts.explanation.counts.total):
        if _is_special(name):
            special += n
        elif name in DIVISIONS:
            divided += n
        else:
            simple += n
    others = lanes * (special / rates.special + simple / rates.simple) + roundings(facts) / rates.rounded
    divisions = lanes * divided / rates.divided
    elements = float((others**rates.beside + divisions**rates.beside) ** (1 / rates.beside))
    products = sum(n / (rates.product_16 if is_16 else rates.product) for is_16, n in product_operations(facts).items())
    return elements + products + rates.reduction * reductions(facts)


def float_kinds(total: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The operations of arithmetic on floating-point elements among counters, and how often each is done by a warp."""
    for key, n in total.items():
        name = key.removeprefix("kind:")
        if key.startswith("kind:") and (name.startswith("math.") or name in FLOATS):
            yield name, n


def _is_special(name: str) -> bool:
    return name.removeprefix("math.").startswith(SPECIAL)


def _shares(facts: Facts) -> dict[str, float]:
    """The share of each line of the bytes that are moved."""
    lines: defaultdict[str, float] = defaultdict(float)
    for span, counts in facts.places.items():
        if span is not None:
            lines[line_key(facts.explanation, span.file, span.line)] += sum(moved_bytes(counts, v) for v in VERBS)
    total = sum(lines.values())
    return {line: round(n / total, 4) for line, n in sorted(lines.items()) if n} if total else {}
