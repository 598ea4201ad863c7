"""Reductions along an axis: within registers, then between lanes, between warps, between blocks of a cluster.

What has to be combined are places whose elements differ along the axis only: the kernel of the layout without the axis.
Places that hold copies of one element must not be combined: they are the kernel of the whole layout, and everything is
done modulo that, so that duplicates are gone before anything moves. Of each step's directions as few as possible cross
lanes, and of those as few as possible cross warps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError
from weft.machines import DEFAULT, Machine, machine_of

from .. import f2
from ..arguments import axis_of, bits_of
from ..linear import LinearLayout
from .conversion import DIMS, Cost, Layout, normalised

__all__ = ["Reduction", "plan_reduction"]

Direction = tuple[int, int, int, int]
"""What to add to (register, lane, warp, block)."""


@dataclass(frozen=True)
class Reduction:
    """A reduction along one axis; every place of the result that held an element of a row holds the row's result.

    >>> from weft.layouts import BlockedLayout, plan_reduction
    >>> plan = plan_reduction(BlockedLayout([1, 4], [4, 8], [1, 1], [1, 0]), (4, 32), 1, 32)
    >>> len(plan.registers), len(plan.lanes), len(plan.warps)
    (2, 3, 0)
    """

    layout: LinearLayout
    axis: str
    result: LinearLayout
    """The layout of the result: without the axis and without registers that hold copies."""
    registers: tuple[Direction, ...]
    lanes: tuple[Direction, ...]
    warps: tuple[Direction, ...]
    blocks: tuple[Direction, ...]
    kept: tuple[int, ...]
    """For each register bit of the result, the register of the source that it adds."""
    cost: Cost
    machine: Machine

    @property
    def kind(self) -> str:
        """ "registers", "shuffles", "shared" or "cluster": the widest movement that is needed."""
        return "cluster" if self.blocks else "shared" if self.warps else "shuffles" if self.lanes else "registers"

    def run(self, values: npt.NDArray[Any], combine: Callable[[Any, Any], Any] = np.add) -> npt.NDArray[Any]:
        """Execute on values [warp, lane, register] or [block, warp, lane, register]; the result alike.

        `combine` has to be associative and commutative: the order of elements is the plan's.
        """
        sizes = tuple(self.layout.in_dims[d] for d in reversed(DIMS))
        flat = np.asarray(values)
        if flat.shape not in (sizes, sizes[1:]):
            raise LayoutError(f"values have shape {flat.shape}, the layout holds {sizes}")
        current = flat.reshape(sizes)
        b, w, x, r = np.indices(sizes)
        for dr, dx, dw, db in (*self.registers, *self.lanes, *self.warps, *self.blocks):
            current = combine(current, current[b ^ db, w ^ dw, x ^ dx, r ^ dr])
        order = [0]
        for register in self.kept:
            order += [i ^ register for i in order]
        result = current[..., order]
        return result[0] if flat.ndim == 3 else result

    def explain(self) -> str:
        """What is done, in words."""
        lines = [f"{self.kind}: {self.cost.cycles:.0f} cycles a warp"]
        lines += [f"    {n:>4} {name}" for name, n in self.cost.instructions.items()]
        return "\n".join(lines)


def plan_reduction(
    layout: LinearLayout | Layout,
    shape: Sequence[int],
    axis: int,
    element_bits: int,
    target: Machine | str = DEFAULT,
) -> Reduction:
    """How a tile is reduced along an axis, with what it costs each warp. LayoutError where there is no such axis.

    >>> rows = LinearLayout.from_bases({"register": [(0, 1)], "lane": [(1, 0)]}, {"dim0": 2, "dim1": 2})
    >>> plan_reduction(rows, (2, 2), 1, 32).kind, plan_reduction(rows, (2, 2), 0, 32).kind
    ('registers', 'shuffles')
    """
    linear = normalised(layout, shape, "source")
    dim = list(linear.out_dims)[axis_of(axis, len(linear.out_dims), "axis")]
    return _reduction(linear, dim, bits_of(element_bits), machine_of(target))


@lru_cache(maxsize=1024)
def _reduction(layout: LinearLayout, axis: str, bits: int, machine: Machine) -> Reduction:
    logs = [layout.in_log(d) for d in DIMS]
    others = [d for d in layout.out_dims if d != axis]
    rest = layout.sublayout(DIMS, others)
    copies = f2.Echelon(f2.kernel(layout.columns))
    directions: list[list[Direction]] = [[], [], [], []]
    rows = f2.Echelon(f2.kernel(layout.columns))
    for k in f2.kernel(rest.columns):
        nearest, _ = copies.reduce(k)  # of the same direction with copies the one that crosses the least
        if rows.add(nearest):
            parts = _parts(nearest, logs)
            directions[max(i for i in range(4) if parts[i])].append(parts)
    free = set(f2.dependent(rest.in_columns("register")))
    kept = tuple(1 << i for i in range(logs[0]) if i not in free)
    bases = {d: list(rest.bases[d]) for d in DIMS}
    bases["register"] = [b for i, b in enumerate(bases["register"]) if i not in free]
    result = LinearLayout.from_bases(bases, rest.out_dims, require_surjective=False)
    registers, lanes, warps, blocks = directions
    distinct = logs[0] - len(f2.dependent(layout.in_columns("register")))
    left = 1 << distinct - len(registers)
    words = max(1, bits // 32)
    stored = 1 << max(0, f2.rank(rest.in_columns("register")))
    instructions = {
        "combine": (1 << distinct) - left + left * len(lanes) + (stored * ((1 << len(warps)) - 1) if warps else 0),
        "shuffle": left * len(lanes) * words,
        "st.shared": stored * words if warps else 0,
        "ld.shared": (stored << len(warps)) * words if warps else 0,
    }
    if blocks:
        ways = stored << len(blocks)
        instructions["combine"] += ways - stored
        instructions["st.shared"] += stored * words
        instructions["ld.shared"] += ways * words
    moved = instructions["st.shared"] + instructions["ld.shared"]
    cycles = instructions["combine"] * 1.0 + left * words * sum(machine.exchange(lane) for _, lane, _, _ in lanes)
    barriers = {scope: 1 for scope, copies_told in (("block", warps), ("cluster", blocks)) if copies_told}
    cycles += moved * (machine.access + machine.wavefront)
    cycles += sum(machine.waiting(scope) for scope in barriers)
    active = len(layout.in_columns("lane")) - len(lanes)
    scratch = (stored << active + logs[2]) * max(8, bits) // 8 if barriers else 0
    cost = Cost({k: v for k, v in instructions.items() if v}, moved, scratch, barriers, cycles)
    steps = (tuple(registers), tuple(lanes), tuple(warps), tuple(blocks))
    return Reduction(layout, axis, result, *steps, kept, cost, machine)


def _parts(vector: int, logs: Sequence[int]) -> Direction:
    parts = []
    for log in logs:
        parts.append(vector & (1 << log) - 1)
        vector >>= log
    return parts[0], parts[1], parts[2], parts[3]
