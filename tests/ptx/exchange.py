"""Between the lanes of a warp: shuffles, votes, reductions.

The mask of lanes must name those that are there, no more and no fewer: a lane that comes later would wait on a GPU, and
one that is not named may not execute the instruction ("shfl.sync").
"""

from __future__ import annotations

import numpy as np

from weft.sim.nvidia.ptx_table import FOLDS, source_lanes
from weft.sim.nvidia.ptx_values import as_bits, is_float, viewed

from .state import WARP, Array, Fault, Operand, State, Statement, Unknown, means


def _ballot(lanes: Array) -> int:
    return sum(1 << lane for lane in np.flatnonzero(lanes).tolist())


def _present(s: State, mask: Operand) -> None:
    """Fault unless each warp's mask names just the lanes that take part."""
    given = s.full(mask, "b32")
    for warp in s.warps():
        here = s.active[warp]
        wrong = given[warp][here] != _ballot(here)
        if wrong.any():
            raise Fault(f"the mask is {int(given[warp][here][0]):#x}, the lanes are {_ballot(here):#x}")


@means("shfl")
def _shuffle(s: State, i: Statement) -> None:
    """The value of a lane that takes no part is open."""
    _present(s, i.operands[4])
    thread = np.arange(s.threads)
    lane = thread % WARP
    by, control = (s.full(operand, "b32").astype(np.int64) for operand in i.operands[2:4])
    source, inside = source_lanes(i.name, lane, by, control)
    source = thread - lane + source
    if not s.active[source[s.active]].all():
        raise Fault("a lane reads one that takes no part")
    s.write_each(i.operands[0], (s.full(i.operands[1], "b32")[source], inside))


@means("vote")
def _vote(s: State, i: Statement) -> None:
    _present(s, i.operands[2])
    true = s.full(i.operands[1], "pred")
    out = s.every(0)
    for warp in s.warps():
        here = true[warp][s.active[warp]]
        known = {
            "any": int(here.any()),
            "all": int(here.all()),
            "uni": int(here.all() or not here.any()),
            "ballot": _ballot(true[warp] & s.active[warp]),
        }
        out[warp] = known[next(part for part in i.name if part in known)]
    s.write(i.operands[0], out)


@means("redux")
def _reduce(s: State, i: Statement) -> None:
    if is_float(i.name[-1]):
        raise Unknown(str(i))
    _present(s, i.operands[2])
    value = viewed(s.full(i.operands[1], i.name[-1]), i.name[-1])
    out = value.copy()
    fold = FOLDS[next(part for part in i.name if part in FOLDS)]
    for warp in s.warps():
        out[warp] = fold.reduce(value[warp][s.active[warp]], dtype=value.dtype)
    s.write(i.operands[0], as_bits(out))


@means("activemask")
def _active(s: State, i: Statement) -> None:
    out = s.every(0)
    for warp in s.warps():
        out[warp] = _ballot(s.active[warp])
    s.write(i.operands[0], out)


@means("elect")
def _elect(s: State, i: Statement) -> None:
    """elect.sync: which lane is open; here the lowest."""
    _present(s, i.operands[1])
    out = np.zeros(s.threads, bool)
    chosen = s.every(0)
    for warp in s.warps():
        first = int(np.flatnonzero(s.active[warp])[0])
        out[warp.start + first] = True
        chosen[warp] = first
    s.write_each(i.operands[0], (chosen, out))


@means("bar", "barrier")
def _warp(s: State, i: Statement) -> None:
    """bar.warp.sync: the lanes are together here."""
