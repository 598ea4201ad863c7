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
from dataclasses import dataclass
from math import log, prod
from typing import TYPE_CHECKING

from weft.base import Span

from .arrays import arrays_of
from .record import Time, line_key

if TYPE_CHECKING:
    from .findings import Facts

__all__ = ["Rates", "float_kinds", "moved_bytes", "time_on_cpu", "touched_bytes"]

SECTOR, GPU_LINE = 32, 128
SPREAD = 1.5
"""Sectors by the least that there could be, from which on each element is taken to have a cache line of its own."""
TOGETHER = 1.5
"""The power of the mean in which they are combined: two that take the same time take 1.59 of it."""
WORK = ("memory", "caches", "arithmetic")
VERBS = ("load", "store")
WAYS = (*VERBS, "in place")
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
LONG = {"arith.divf": 4, "math.sqrt": 4, "math.rsqrt": 4, "arith.remf": 8}
"""Simple operations that others take as long as."""


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
    again: float
    """Bytes of a microsecond that come from caches."""
    simple: float
    """Operations of arithmetic on elements of 32 bits in a microsecond."""
    special: float
    """Exponentials in a microsecond."""

    def microseconds(self, read: float, written: float, in_place: float = 0.0) -> float:
        """Of so many bytes that come from memory, so many that go there, and so many that go back to where they were
        read."""
        size = read + written
        if in_place:
            return self.microseconds(read, written) + in_place / self._at(self.in_place, in_place)
        if not size:
            return 0.0
        apart = read / self._at(self.read, size) + written / self._at(self.written, size)
        mixed = 4 * read * written / size**2  # 1 for a copy
        return apart * (1 - mixed * (1 - self._at(self.both, size)))

    def _at(self, rates: Sequence[float], size: float) -> float:
        """The rate at a size, between those that were measured."""
        at = bisect_left(self.sizes, size)
        if at == 0 or at == len(self.sizes):
            return rates[min(at, len(rates) - 1)]
        below, above = self.sizes[at - 1], self.sizes[at]
        part = log(size / below) / log(above / below)
        return float(rates[at - 1] ** (1 - part) * rates[at] ** part)


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
    memory = rates.microseconds(first["load"], first["store"], first["in place"])
    programs = prod(e.grid)
    idle = rates.threads / max(1, min(rates.threads, programs))  # rates are those of all threads together
    resources = {
        "memory": idle * memory,
        "caches": idle * sum(again.values()) / rates.again,
        "arithmetic": idle * _arithmetic(facts, rates),
        "programs": programs * rates.program,
        "launch": rates.launch,
    }
    work = float(sum(resources[name] ** TOGETHER for name in WORK) ** (1 / TOGETHER))
    time = rates.launch + resources["programs"] + work
    bound = max(resources, key=lambda name: resources[name])
    low, high = OFF if e.counts.exact else UNKNOWN
    threads = "threads" if rates.threads != 1 else "thread"
    return Time(
        round(time, 2), round(time * low, 2), round(time * high, 2), bound, round(resources[bound] / time, 3),
        {name: round(us, 3) for name, us in sorted(resources.items(), key=lambda item: -item[1]) if us},
        _shares(facts), device=f"{rates.processor}, {rates.threads} {threads}", dram_bytes=sum(first.values()),
    )  # fmt: skip


def _touched(counts: Mapping[str, int], verb: str, lanes: int) -> float:
    """Bytes of cache lines that go to and fro at a place: what is asked for, and where lanes are apart whole lines.

    Where masks or addresses depend on data that was not given, as if all masks held and each element had its line.
    """
    asked, sectors = counts.get(f"global_{verb}_bytes", 0), counts.get(f"global_{verb}_sectors", 0)
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
    simple = special = 0.0
    for name, n in float_kinds(facts.explanation.counts.total):
        if _is_special(name):
            special += n
        else:
            simple += n * LONG.get(name, 1)
    return facts.program.lanes * (special / rates.special + simple / rates.simple)


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
