"""Gathers: result[i, j] = source[index[i, j], j], along one axis.

Where all elements of a column lie within the warp that asks for them, a lane finds the lane and register of the
element by a product over F2 and reads it with one shuffle for each word the column has in a lane, keeping the one that
is meant (Zhou et al., section 5.5, where each register is shuffled). Where that lane is the one that asks, it chooses
among its registers and nothing is shuffled. Elements of 8 and 16 bits are chosen in words (picking.py), larger ones bit
by bit of the index, so that each choice halves what is left. Otherwise, or where that is dearer, the source goes
through shared memory, swizzled so that storing has no bank conflicts, and each element is loaded by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError
from weft.machines import DEFAULT, Machine, machine_of

from .. import f2
from ..arguments import axis_of, bits_of, shape_of
from ..dims import placed
from ..linear import LinearLayout
from .conversion import DIMS, Cost, Layout, normalised
from .picking import Picking, picking
from .swizzle import memory_basis

__all__ = ["Gather", "plan_gather"]

INDEX = 4.0
"""Cycles to make an address, or a place among lanes and registers, of an index."""


@dataclass(frozen=True)
class Gather:
    """How a gather is done; `kind` is "registers", "shuffles" or "shared".

    >>> from weft.layouts import BlockedLayout, plan_gather
    >>> rows = BlockedLayout([1, 4], [32, 1], [1, 1], [1, 0])
    >>> plan_gather(rows, rows, (32, 4), (32, 4), 1, 32, "cuda:90").cost.scratch_bytes
    0
    """

    kind: str
    source: LinearLayout
    index: LinearLayout
    axis: str
    cost: Cost
    considered: tuple[tuple[str, float, str], ...]
    where: LinearLayout
    """From an element of the source to the place it is read from: (register, lane, warp, block)."""
    memory: tuple[int, ...]
    """For "shared": the element at each power of two of the offset."""
    picking: Picking | None = None
    """How small elements are chosen in words, if they are."""

    def run(self, values: npt.NDArray[Any], index: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Execute on values and indices [warp, lane, register], each in its own layout; the result has the index's.

        LayoutError for an index outside of the axis.
        """
        size = self.source.out_dims[self.axis]
        index = np.asarray(index)
        if index.size and (index.min() < 0 or index.max() >= size):
            raise LayoutError(f"an index is outside of 0 .. {size - 1}, the axis of the source")
        at = self._wanted(index)
        if self.kind == "shared":
            return self._from_memory(values, at)
        place = self.where.apply(at)
        lane, register = np.asarray(place["lane"]), np.asarray(place["register"])
        w = np.arange(index.shape[0])[:, None, None]
        result = np.zeros(index.shape, values.dtype)
        for r in range(values.shape[2]):  # one shuffle each, of which those are kept that are meant
            arrived = values[w, lane, r]
            result = np.where(register == r, arrived, result)
        return result

    def _wanted(self, index: npt.NDArray[Any]) -> dict[str, npt.NDArray[np.int64]]:
        """The coordinates of the element that every place wants."""
        warps, lanes, registers = index.shape
        w, x, r = np.indices((warps, lanes, registers))
        zero = np.zeros_like(w)
        at = self.index.apply(register=r, lane=x, warp=w, block=zero)
        return {**at, self.axis: index.astype(np.int64)}

    def _from_memory(self, values: npt.NDArray[Any], at: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[Any]:
        place = f2.Echelon(self.memory)
        offsets = LinearLayout._make(
            self.source._ins, (("offset", len(self.memory)),), [place.coefficients(c) or 0 for c in self.source.columns]
        )
        memory = np.zeros(1 << len(self.memory), values.dtype)
        memory[offsets.table()[: values.size].reshape(values.shape)] = values
        flat = np.zeros_like(next(iter(at.values())))
        shift = 0
        for name, log in self.source._outs:
            flat |= at[name] << shift
            shift += log
        swizzled = np.zeros_like(flat)
        for i in range(len(self.memory)):
            swizzled ^= (flat >> i & 1) * (place.coefficients(1 << i) or 0)
        return memory[swizzled]

    def explain(self) -> str:
        """Why this kind and not another."""
        lines = [f"{self.kind}: {self.cost.cycles:.0f} cycles a warp"]
        lines += [f"    {n:>4} {name}" for name, n in self.cost.instructions.items()]
        lines.append("considered:")
        for kind, cycles, remark in self.considered:
            price = f"{cycles:.0f} cycles" if cycles != float("inf") else "not open"
            lines.append(f"    {kind}: {price}{', ' + remark if remark else ''}")
        return "\n".join(lines)


def plan_gather(
    source: LinearLayout | Layout,
    index: LinearLayout | Layout,
    source_shape: Sequence[int],
    index_shape: Sequence[int],
    axis: int,
    element_bits: int,
    target: Machine | str = DEFAULT,
) -> Gather:
    """The cheaper way to gather along an axis. The shapes may differ along the axis only; LayoutError otherwise.

    >>> from weft.layouts import BlockedLayout, plan_gather
    >>> rows = BlockedLayout([1, 4], [32, 1], [1, 1], [1, 0])
    >>> plan_gather(rows, rows, (32, 4), (32, 4), 1, 32, "cuda:90").kind
    'registers'
    """
    source_shape, index_shape = shape_of(source_shape, "source_shape"), shape_of(index_shape, "index_shape")
    bits, axis = bits_of(element_bits), axis_of(axis, len(source_shape), "axis")
    if len(source_shape) != len(index_shape) or any(
        a != b for i, (a, b) in enumerate(zip(source_shape, index_shape, strict=True)) if i != axis
    ):
        raise LayoutError(
            f"the source has shape {tuple(source_shape)}, the index {tuple(index_shape)}: they may differ along axis "
            f"{axis} only"
        )
    src, idx = normalised(source, source_shape, "source"), normalised(index, index_shape, "index")
    for dim in ("lane", "warp", "block"):
        if src.in_log(dim) != idx.in_log(dim):
            raise LayoutError(f"the source layout has {src.in_dims[dim]} {dim}s, the index {idx.in_dims[dim]}")
    if src.in_log("block"):
        raise LayoutError(
            "a gather reads within one block", hint="convert the source so that each block holds all of it"
        )
    return _gather(src, idx, list(src.out_dims)[axis], bits, machine_of(target))


@lru_cache(maxsize=1024)
def _gather(src: LinearLayout, idx: LinearLayout, axis: str, bits: int, machine: Machine) -> Gather:
    others = [d for d in src.out_dims if d != axis]
    words = max(1, bits // 32)
    places = 1 << idx.in_log("register")
    registers = 1 << f2.rank(src.in_columns("register")) if src.in_log("register") else 1
    considered: list[tuple[str, float, str]] = []
    local = _stays_in_warp(src, idx, axis, others)
    costs: dict[str, Cost] = {}
    where, chosen = LinearLayout.identity_1d(1, axis, "register"), None
    if local:
        where = LinearLayout._make(src._outs, src._outs, f2.identity(src.total_out_log)).invert_and_compose(src)
        kind, chosen, costs_local = _in_warp(src, idx, where, axis, bits, machine)
        costs[kind] = costs_local
        considered.append((kind, costs_local.cycles, _counted(costs_local)))
    else:
        considered.append(("shuffles", float("inf"), f"a warp does not hold whole columns along {axis}"))
    bytes_log = max(0, bits.bit_length() - 4)
    size = src.total_out_log
    low = [c for c in src.in_columns("register") if c][: max(0, 4 - bytes_log)]
    lanes = [c for c in src.in_columns("lane") if c]
    apart = [*lanes, *(c for c in src.in_columns("warp") if c)]
    low = low if f2.rank([*low, *apart]) == len(low) + f2.rank(apart) else []
    phase = lanes[: max(0, 5 - max(0, len(low) - (2 - bytes_log)))]
    memory = memory_basis(low, phase, phase, apart, [], size, bytes_log, machine)
    stores, loads = max(1, registers >> len(low)), places * words
    passes = max(1, (1 << len(low) + bytes_log) // 4)
    moves = stores * (machine.access + machine.wavefront * passes) + loads * (machine.access + 2 * machine.wavefront)
    cycles = moves + machine.block_barrier + machine.trip + places * INDEX
    instructions = {f"st.shared.b{max(8, bits) << len(low)}": stores, f"ld.shared.b{max(8, bits)}": loads}
    costs["shared"] = Cost(instructions, stores * passes + loads, (max(8, bits) // 8) << size, {"block": 1}, cycles)
    considered.append(("shared", cycles, _counted(costs["shared"])))
    kind = min(costs, key=lambda k: costs[k].cycles)
    return Gather(kind, src, idx, axis, costs[kind], tuple(considered), where, tuple(memory), chosen)


def _counted(cost: Cost) -> str:
    return ", ".join(f"{n} {k}" for k, n in cost.instructions.items())


def _in_warp(
    src: LinearLayout, idx: LinearLayout, where: LinearLayout, axis: str, bits: int, machine: Machine
) -> tuple[str, Picking | None, Cost]:
    """A gather that stays within warps: "registers" or "shuffles", how elements are chosen, and the cost."""
    low, lanes = src.in_log("register"), src.in_dims["lane"] - 1
    to_register = [c & (1 << low) - 1 for c in where.columns]
    to_lane = [c >> low & lanes for c in where.columns]
    along, elements = _elements(src, idx, axis)
    # The lane that asks, of its own warp, may hold the whole column.
    inside = not any(to_lane[i] for i in f2.bits(along)) and all(
        f2.multiply(to_lane, element) == (1 << i if dim == "lane" else 0)
        for dim in ("register", "lane", "warp")
        for i, element in enumerate(elements[dim])
    )
    places, words = 1 << idx.in_log("register"), max(1, bits // 32)
    moving = [f2.multiply(to_register, e) for d in ("lane", "warp") for e in elements[d]]
    spread = [*(to_register[i] for i in f2.bits(along)), *moving]
    chosen = picking(low, spread, bits)
    instructions: dict[str, int] = {}
    if chosen is not None:
        together = chosen.each if inside else 1
        read = f2.span([f2.multiply(to_register, e) for e in elements["register"]])
        results = len(chosen.results(read, together))
        instructions = {"shuffle": 0 if inside else results * chosen.words, **chosen.instructions(results, together)}
    else:
        steps = f2.rank(spread)
        each = 1 << steps
        # A test takes two instructions, and as there are only seven predicates it is made again or kept elsewhere.
        instructions = {"shuffle": 0 if inside else places * each * words, "select": places * words * (each - 1)}
        instructions["integer"] = places * steps * 2
    instructions = {k: n for k, n in instructions.items() if n}
    return (
        "registers" if inside else "shuffles",
        chosen,
        Cost(instructions, 0, 0, {}, machine.instructions(instructions, 0) + places * INDEX),
    )


def _elements(src: LinearLayout, idx: LinearLayout, axis: str) -> tuple[int, dict[str, list[int]]]:
    """The bits of the axis in an element of the source; and what the coordinates that no index gives are.

    These are for each bit of a place of the index, as elements of the source: along the axis both may differ.
    """
    starts, along, at = {}, 0, 0
    for name, log in src._outs:
        starts[name] = at
        if name == axis:
            along = ((1 << log) - 1) << at
        at += log
    beyond = {**starts, axis: at}  # the index may be longer than the source
    elements = {}
    for dim in ("register", "lane", "warp"):
        elements[dim] = [placed(c, idx._outs, beyond) & (1 << at) - 1 for c in idx.in_columns(dim)]
    return along, elements


def _stays_in_warp(src: LinearLayout, idx: LinearLayout, axis: str, others: Sequence[str]) -> bool:
    """Whether the warp that asks for an element holds its whole column: the axis is not spread over warps, and warps
    hold the same columns of the source and of the index.
    """
    if not src.sublayout_is_zero(["warp"], [axis]) or not idx.is_surjective():
        return False
    mine, theirs = src.sublayout(DIMS, others), idx.sublayout(DIMS, others)
    if mine.in_columns("warp") != theirs.in_columns("warp"):
        return False
    spread = f2.Echelon([*mine.in_columns("register"), *mine.in_columns("lane")])
    if any(c not in spread for c in (*theirs.in_columns("register"), *theirs.in_columns("lane"))):
        return False
    # A source found in another warp could be one only where a column's warp bits hold copies.
    return f2.rank(src.columns) == len([c for c in src.columns if c]) and all(src.in_columns("warp"))
