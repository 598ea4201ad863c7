"""The tables of the linear-layouts paper that need no GPU, computed here and set beside the published figures.

    weft bench layouts

Zhou et al., Linear Layouts (arXiv 2505.23819v5): table 3 (contiguity of loads and stores), table 4 (shared-memory
instructions of reductions over duplicated data), and the conversions of the authors' public micro-benchmark by kind.
The paper does not print every parameter of its cases; what was assumed is said with each table.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.base import progress

from .linear import LinearLayout
from .plan import plan_conversion, plan_reduction, vector_width
from .plan.conversion import forget_plans, normalised
from .zoo import BlockedLayout, DistributedLayout, DotOperandLayout, NVMMADistributedLayout, SliceLayout


@dataclass(frozen=True)
class Table:
    """A title, column names, rows, and what was assumed."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(r) for r in self.rows],
            "note": self.note,
        }

    def __str__(self) -> str:
        widths = [max(len(c), *(len(r[i]) for r in self.rows)) for i, c in enumerate(self.columns)]
        lines = [self.title]
        for row in (self.columns, *self.rows):
            lines.append("  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        return "\n".join([*lines, f"  ({self.note})"])


def published_tables() -> list[Table]:
    """All of them, and how long planning takes, of which the paper says nothing."""
    return [made() for made in TABLES]


# (element type, bits, second extent) -> bits that one access moves, before linear layouts and with them
CONTIGUITY = {
    ("f8", 8, 1): (32, 32),
    ("f8", 8, 2): (16, 128),
    ("f8", 8, 4): (32, 128),
    ("f8", 8, 8): (64, 128),
    ("f8", 8, 16): (128, 128),
    ("f16", 16, 1): (64, 64),
    ("f16", 16, 2): (32, 128),
    ("f16", 16, 4): (64, 128),
    ("f16", 16, 8): (128, 128),
    ("f16", 16, 16): (128, 128),
}


def _contiguity() -> Table:
    rows = []
    for (name, bits, extent), (before, after) in CONTIGUITY.items():
        shape = (512, extent)
        registers = max(1, 512 * extent // 128)
        inner = min(extent, registers)
        lanes = extent // inner
        layout = BlockedLayout([registers // inner, inner], [32 // lanes, lanes], [4, 1], [1, 0])
        ours = bits * vector_width(layout, shape, bits)
        fastest = bits * min(inner, 128 // bits)
        rows.append((f"[512,{extent}]", name, f"{before}", f"{after}", f"{fastest}", f"{ours}"))
    return Table(
        "Table 3: bits that one load or store moves",
        ("shape", "type", "published before", "published linear", "ours, fastest dimension only", "ours"),
        tuple(rows),
        "4 warps, each thread with its share of the tile, along rows; for [512,2] f8 the share is 64 bits, so that 128 "
        "needs copies of the tile or fewer threads",
    )


SHAPES = ((128, 16), (128, 128), (32, 128), (32, 32), (16, 16))
# family -> shared-memory instructions, before linear layouts (None: not supported) and with them
REDUCTIONS = {
    "Blocked": (5888, 1388),
    "MMA": (5914, 3517),
    "MMA Input": (None, 5884),
    "Sliced<Blocked>": (6703, 4687),
    "Sliced<MMA>": (None, 320),
    "Sliced<MMA Input>": (None, 545),
}


def _families() -> Iterator[tuple[str, list[tuple[DistributedLayout, tuple[int, ...]]]]]:
    blocked = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    mma = NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    operand = DotOperandLayout(0, mma, 2)
    for name, layout in (("Blocked", blocked), ("MMA", mma), ("MMA Input", operand)):
        yield name, [(layout, shape) for shape in SHAPES]
    for name, layout in (("Blocked", blocked), ("MMA", mma), ("MMA Input", operand)):
        yield (
            f"Sliced<{name}>",
            [(SliceLayout(dim, layout), (shape[1 - dim],)) for shape in SHAPES for dim in (0, 1)],
        )


def _with_copies(layout: DistributedLayout, shape: Sequence[int], axis: int) -> int:
    """Shared-memory instructions if copies were taken for elements: all registers go, of all warps that differ."""
    linear = normalised(layout, shape, "source")
    dim = list(linear.out_dims)[axis]
    others = [d for d in linear.out_dims if d != dim]
    kept = sum(1 for c in linear.sublayout(["register"], others).columns if c)
    copies = sum(1 for c in linear.in_columns("register") if not c)
    crossing = [c for c in linear.sublayout(["warp"], others).columns if not c]
    return (1 << kept + copies) * (1 + (1 << len(crossing))) if crossing else 0


def _reductions() -> Table:
    rows = []
    for name, cases in _families():
        before = after = 0
        for layout, shape in cases:
            for axis in range(len(shape)):
                cost = plan_reduction(layout, shape, axis, 32).cost.instructions
                after += cost.get("st.shared", 0) + cost.get("ld.shared", 0)
                before += _with_copies(layout, shape, axis)
        published = REDUCTIONS[name]
        rows.append((name, str(published[0] or "not supported"), str(published[1]), str(before), str(after)))
    return Table(
        "Table 4: shared-memory instructions of reductions over duplicated data",
        ("layout", "published before", "published linear", "ours, copies kept", "ours"),
        tuple(rows),
        "shapes [128,16] [128,128] [32,128] [32,32] [16,16], each axis, fp32, 4 warps, instructions of a warp summed; "
        "the paper's counts are of whole kernels whose parameters it does not print: only the ratios compare",
    )


def _cases() -> Iterator[tuple[str, DistributedLayout, DistributedLayout, tuple[int, ...], int]]:
    columns = BlockedLayout([8, 1], [16, 2], [1, 4], [0, 1])
    for n in (128, 256):
        wgmma = NVMMADistributedLayout([3, 0], [4, 1], [16, n, 16])
        for extent in (128, 256):
            yield f"wgmma m16n{n} -> columns", wgmma, columns, (128, extent), 16
    bytes_ = NVMMADistributedLayout([3, 0], [4, 1], [16, 256, 32])
    for width in (16, 8):
        yield (
            f"wgmma m16n256 -> rows of {width}",
            bytes_,
            BlockedLayout([1, width], [2, 16], [4, 1], [1, 0]),
            (128, 256),
            8,
        )
    row, column = BlockedLayout([1, 16], [8, 4], [4, 1], [1, 0]), BlockedLayout([16, 1], [4, 8], [1, 4], [0, 1])
    yield "rows -> columns", row, column, (64, 64), 8
    narrow_row, narrow_column = (
        BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]),
        BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1]),
    )
    yield "rows -> columns", narrow_row, narrow_column, (64, 64), 16
    for bits in (8, 16):
        yield "8 -> 4 a thread", BlockedLayout([8], [32], [4], [0]), BlockedLayout([4], [32], [4], [0]), (1024,), bits


def _conversions() -> Table:
    rows = []
    for name, src, dst, shape, bits in _cases():
        plan = plan_conversion(src, dst, shape, bits, "cuda:90")
        cost = plan.cost
        parts = ", ".join(f"{n} {k}" for k, n in cost.instructions.items())
        kind = f"{plan.kind} ({plan.scope})" if plan.scope else plan.kind
        shown = "x".join(map(str, shape))
        rows.append((name, shown, str(bits), kind, parts, str(cost.wavefronts), str(cost.scratch_bytes)))
    return Table(
        "Conversions by kind, on cuda:90",
        ("conversion", "shape", "bits", "kind", "instructions of a warp", "wavefronts", "scratch bytes"),
        tuple(rows),
        "the families of the authors' public conversion benchmark; before linear layouts all went through padded "
        "shared memory",
    )


def _planned() -> dict[str, DistributedLayout]:
    """Layouts of 128x128 over 8 warps, one or two of each family that moves tiles."""
    mma, wgmma = NVMMADistributedLayout([2, 0], [4, 2], [16, 8]), NVMMADistributedLayout([3, 0], [8, 1], [16, 128, 16])
    return {
        "rows of 4": BlockedLayout([1, 4], [8, 4], [8, 1], [1, 0]),
        "rows of 8": BlockedLayout([1, 8], [2, 16], [8, 1], [1, 0]),
        "rows of 16": BlockedLayout([1, 16], [4, 8], [8, 1], [1, 0]),
        "columns of 4": BlockedLayout([4, 1], [4, 8], [1, 8], [0, 1]),
        "columns of 8": BlockedLayout([8, 1], [16, 2], [1, 8], [0, 1]),
        "columns of 16": BlockedLayout([16, 1], [8, 4], [1, 8], [0, 1]),
        "squares": BlockedLayout([4, 4], [4, 8], [2, 4], [1, 0]),
        "slice": SliceLayout(1, BlockedLayout([1, 2, 4], [8, 1, 4], [2, 2, 2], [2, 1, 0])),
        "mma": mma,
        "mma, left": DotOperandLayout(0, mma, 2),
        "mma, left of 1": DotOperandLayout(0, mma, 1),
        "mma, right": DotOperandLayout(1, mma, 2),
        "wgmma": wgmma,
    }


def planning_times(runs: int = 7) -> Table:
    """Milliseconds of processor time for one conversion that is not in the cache, the least of several runs.

    All conversions are planned before the next run, so that what disturbs one is not there in all its runs.
    """
    shape, rows = (128, 128), []
    layouts = {name: normalised(layout, shape, "source") for name, layout in _planned().items()}
    pairs, sizes = list(itertools.permutations(layouts.items(), 2)), (8, 16, 32, 64)
    times: dict[int, list[list[float]]] = {bits: [] for bits in sizes}
    with progress("planning conversions, rounds", len(sizes) * runs) as told:
        for at, (bits, _) in enumerate(itertools.product(sizes, range(runs))):
            told(at)
            times[bits].append([_planning_time(a, b, shape, bits) for (_, a), (_, b) in pairs])
    for bits in sizes:
        least = [min(each) for each in zip(*times[bits], strict=True)]
        named = [(time, f"{source} -> {to}") for time, ((source, _), (to, _)) in zip(least, pairs, strict=True)]
        slowest, pair = max(named)
        middle = statistics.median(least)
        rows.append((str(bits), str(len(named)), f"{middle:.2f}", f"{slowest:.2f}", pair))
    return Table(
        "Planning one conversion of 128x128 over 8 warps, in milliseconds",
        ("bits", "conversions", "median", "slowest", "which"),
        tuple(rows),
        f"each between two of: {'; '.join(layouts)}; on cuda:90; planned again, a conversion comes from the cache",
    )


def _planning_time(source: LinearLayout, destination: LinearLayout, shape: tuple[int, ...], bits: int) -> float:
    forget_plans()
    begin = time.process_time_ns()
    plan_conversion(source, destination, shape, bits, "cuda:90")
    return (time.process_time_ns() - begin) / 1e6


TABLES = (_contiguity, _reductions, _conversions, planning_times)
