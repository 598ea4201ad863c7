"""A plan as single steps that can be shown one after the other, each a linear map.

rename, select, shuffle   from a place of the result to the place whose value it gets
swap                      the same, of elements within words and between lanes
pack, unpack              the same: every element stays in its place, in a word with others or by itself again
store                     from a place to the offset it is stored at; `masks` are bits of those who store nothing
barrier
load                      from a place to the offset (and block) it is loaded from
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.layouts import LinearLayout
from weft.layouts.plan import Plan
from weft.layouts.plan.access import Access
from weft.layouts.plan.shuffle import Shears
from weft.layouts.plan.swaps import Swaps
from weft.layouts.plan.trip import Trip

__all__ = ["Step", "access_text", "plan_steps"]

DIMS = ("register", "lane", "warp", "block")


@dataclass(frozen=True)
class Step:
    """One step; `map` is None for barriers."""

    kind: str
    text: str
    map: LinearLayout | None = None
    masks: Mapping[str, int] = field(default_factory=dict)


def plan_steps(plan: Plan) -> list[Step]:
    """The steps of a plan, in order."""
    shown: list[Step] = []
    for stage in plan.stages:
        if isinstance(stage.how, Trip):
            shown += _trip(stage.how)
        elif isinstance(stage.how, Shears):
            steps = _shears(stage.how, stage.source, stage.result)
            shown += _packed(steps, 1 << stage.how.packed, stage.source, stage.result)
        elif isinstance(stage.how, Swaps):
            steps = _swaps(stage.how, stage.source)
            shown += _packed(steps, 1 << len(stage.how.within), stage.source, stage.result)
        else:
            moves = stage.result.invert_and_compose(stage.source, prefer=("block", "warp", "lane"))
            shown.append(Step("rename", "Registers get other names; nothing moves.", moves))
    return shown


def _map(parts: Mapping[str, Sequence[Mapping[str, int]]], outs: Mapping[str, int]) -> LinearLayout:
    """A map between places: for each bit of each dimension, what it adds to each dimension."""
    bases = {dim: [tuple(bit.get(out, 0) for out in outs) for bit in bits] for dim, bits in parts.items()}
    return LinearLayout.from_bases(bases, outs, require_surjective=False)


def _units(dim: str, size: int) -> list[dict[str, int]]:
    return [{dim: 1 << i} for i in range(size.bit_length() - 1)]


def _shears(shears: Shears, source: LinearLayout, result: LinearLayout) -> list[Step]:
    ins = source.in_dims
    others = {dim: _units(dim, ins[dim]) for dim in ("lane", "warp", "block")}
    steps = []
    if any(shears.before) or any(shears.before_by_warp):
        lanes = [{"lane": 1 << i, "register": g} for i, g in enumerate(shears.before)]
        warps = [{"warp": 1 << i, "register": h} for i, h in enumerate(shears.before_by_warp)]
        parts = {**others, "lane": lanes, "warp": warps}
        chosen = _map({"register": _units("register", ins["register"]), **parts}, ins)
        steps.append(Step("select", "Each lane chooses among its registers what it will send.", chosen))
    pairs = zip(shears.registers, shears.lanes_by_register, strict=True)
    moved = {
        "register": [{"register": r, "lane": x} for r, x in pairs],
        "lane": [{"lane": x} for x in shears.lanes],
        "warp": [{"warp": 1 << i, "lane": x} for i, x in enumerate(shears.lanes_by_warp)],
        "block": others["block"],
    }
    shuffled = _map(moved, ins)
    if shuffled.sublayout(["register", "lane", "warp"], ["lane"]) != _identity_on_lanes(result):
        steps.append(Step("shuffle", "Each register is read from a lane of the same warp.", shuffled))
    else:
        steps.append(Step("rename", "Registers get other names; nothing moves.", shuffled))
    if any(shears.after):
        lanes = [{"lane": 1 << i, "register": f} for i, f in enumerate(shears.after)]
        registers = _units("register", result.in_dims["register"])
        parts = {"register": registers, **others, "lane": lanes}
        steps.append(
            Step("select", "Each lane puts what it got in order among its registers.", _map(parts, result.in_dims))
        )
    return steps


def _swaps(swaps: Swaps, source: LinearLayout) -> list[Step]:
    steps = []
    for swap in swaps.swaps:
        parts = {dim: _units(dim, source.in_dims[dim]) for dim in DIMS}
        register = swaps.within[swap.bit].bit_length() - 1
        parts["register"][register], parts["lane"][swap.lane] = {"lane": 1 << swap.lane}, {"register": 1 << register}
        text = f"Registers {1 << register} apart change places with lanes {1 << swap.lane} apart: bytes of words are"
        steps.append(Step("swap", f"{text} permuted, one word of two is shuffled.", _map(parts, source.in_dims)))
    return steps


def _packed(steps: list[Step], each: int, source: LinearLayout, result: LinearLayout) -> list[Step]:
    """With the steps before and after that put `each` elements in a word and take them out."""
    if each == 1:
        return steps
    before, after = (_map({d: _units(d, x.in_dims[d]) for d in DIMS}, x.in_dims) for x in (source, result))
    pack = Step("pack", f"{each} elements are packed in each word; what follows moves words.", before)
    return [pack, *steps, Step("unpack", "Elements are taken out of their words.", after)]


def _identity_on_lanes(layout: LinearLayout) -> LinearLayout:
    ins = layout.in_dims
    parts: dict[str, list[dict[str, int]]] = {d: [{} for _ in _units(d, ins[d])] for d in ("register", "lane", "warp")}
    parts["lane"] = _units("lane", ins["lane"])
    return _map(parts, {"lane": ins["lane"]})


def _trip(trip: Trip) -> list[Step]:
    scope = {"warp": "warp", "block": "block", "cluster": "cluster"}[trip.scope]
    rounds = f" In {trip.repetitions} rounds, as the memory is short." if trip.repetitions > 1 else ""
    masked = " One of several copies only." if any(trip.store_masks.values()) else ""
    return [
        Step("store", f"{_access(trip.store, 'stores')}{masked}{rounds}", trip.store_map, dict(trip.store_masks)),
        Step("barrier", f"The {scope} waits until all has been stored."),
        Step("load", _access(trip.load, "loads"), trip.load_map),
    ]


def access_text(access: Access, store: bool) -> str:
    """One access of shared memory by every warp, in a sentence."""
    return _access(access, "stores" if store else "loads")


def _access(access: Access, verb: str) -> str:
    name = {"shared": "ld.shared or st.shared"}.get(access.instruction, access.instruction)
    name = name.replace("ld.shared or st.shared", "st.shared" if verb == "stores" else "ld.shared")
    return (
        f"Each warp {verb} with {access.count} {name} of {1 << access.vector} elements a lane, "
        f"{access.wavefronts} wavefronts each (least {access.ideal})."
    )
