"""Between the lanes of a warp: shuffles, votes, reductions.

The mask of lanes must name those that are there, no more and no fewer: a lane that comes later would wait on a GPU, and
one that is not named may not execute the instruction ("shfl.sync").
"""

from __future__ import annotations

import numpy as np

from .parsing import Instruction
from .state import WARP, Array, Fault, State, Unknown, means

FOLDS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _ballot(lanes: Array) -> int:
    return sum(1 << lane for lane in np.flatnonzero(lanes).tolist())


def _present(s: State, mask: str) -> None:
    """Fault unless each warp's mask names just the lanes that take part."""
    given = s.word(mask) & np.uint64(0xFFFFFFFF)
    for warp in s.warps():
        here = s.active[warp]
        wrong = given[warp][here] != _ballot(here)
        if wrong.any():
            raise Fault(f"the mask is {int(given[warp][here][0]):#x}, the lanes are {_ballot(here):#x}")


@means("shfl")
def _shuffle(s: State, i: Instruction) -> None:
    """Data Movement and Conversion Instructions, shfl.sync: the fourth operand has the clamp and the mask of segments.

    The clamp is in bits 0 to 4, the mask in bits 8 to 12.

    A lane whose source is out of range gets its own value, and false. The value of a lane that takes no part is open.
    """
    _present(s, i.operands[4])
    value = s.word(i.operands[1]) & np.uint64(0xFFFFFFFF)
    lane = np.arange(s.threads) % WARP
    b, c = ((s.word(operand) & np.uint64(0x1FFF)).astype(np.int64) for operand in i.operands[2:4])
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    lowest = lane & segment
    highest = lowest | (clamp & ~segment)
    mode = next(part for part in i.parts if part in ("up", "down", "bfly", "idx"))
    if mode == "up":
        source = lane - b
        inside = source >= highest
    else:
        source = lane + b if mode == "down" else lane ^ b if mode == "bfly" else lowest | (b & ~segment)
        inside = source <= highest
    source = np.arange(s.threads) - lane + np.where(inside, source, lane)
    if not s.active[source[s.active]].all():
        raise Fault("a lane reads one that takes no part")
    register, _, predicate = i.operands[0].partition("|")
    s.write(register, value[source])
    if predicate:
        s.write(predicate, inside)


@means("vote")
def _vote(s: State, i: Instruction) -> None:
    _present(s, i.operands[2])
    true = s.read(i.operands[1], "pred")
    out = s.every(0)
    for warp in s.warps():
        here = true[warp][s.active[warp]]
        known = {
            "any": int(here.any()),
            "all": int(here.all()),
            "uni": int(here.all() or not here.any()),
            "ballot": _ballot(true[warp] & s.active[warp]),
        }
        out[warp] = known[next(part for part in i.parts if part in known)]
    s.write(i.operands[0], out)


@means("redux")
def _reduce(s: State, i: Instruction) -> None:
    if "f" in i.type:
        raise Unknown(i.text)
    _present(s, i.operands[2])
    value = s.read(i.operands[1], i.type)
    out = value.copy()
    fold = FOLDS[next(part for part in i.parts if part in FOLDS)]
    for warp in s.warps():
        out[warp] = fold.reduce(value[warp][s.active[warp]], dtype=value.dtype)
    s.write(i.operands[0], out)


@means("activemask")
def _active(s: State, i: Instruction) -> None:
    out = s.every(0)
    for warp in s.warps():
        out[warp] = _ballot(s.active[warp])
    s.write(i.operands[0], out)


@means("elect")
def _elect(s: State, i: Instruction) -> None:
    """elect.sync: which lane is open; here the lowest."""
    _present(s, i.operands[1])
    out = np.zeros(s.threads, bool)
    register, _, predicate = i.operands[0].partition("|")
    chosen = s.every(0)
    for warp in s.warps():
        first = int(np.flatnonzero(s.active[warp])[0])
        out[warp.start + first] = True
        chosen[warp] = first
    s.write(register, chosen)
    s.write(predicate, out)


@means("bar", "barrier")
def _warp(s: State, i: Instruction) -> None:
    """bar.warp.sync: the lanes are together here."""
