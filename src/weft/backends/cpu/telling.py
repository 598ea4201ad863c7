"""Remarks about loop nests: along what they are vectorised, and how each access goes with these lanes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set

from weft.backends.cpu.arena import Arena
from weft.backends.cpu.evaluate import SHAPE_OPS
from weft.backends.cpu.loops import all_ops
from weft.backends.cpu.nest import Nest, Root, access_form
from weft.backends.cpu.program import FunctionProgram, Op, Value, element_bits
from weft.backends.cpu.questions import Steps
from weft.backends.cpu.roots import AtomicRoot, WriteRoot
from weft.backends.cpu.strides import between_runs, per_turn
from weft.backends.cpu.versions import mask_conditions
from weft.base import each_once
from weft.base.remarks import LoopNest, RemarkCollector, ScratchBuffer, Site, VectorAccess

SPREADING = ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi")
ENDS = ("scf.yield", "scf.condition", "tt.return")


def site_of(op: Op | None) -> Site:
    """An operation by its name, with its place."""
    return Site(op.name, op.span) if op is not None else Site("what comes before")


def tile_text(value: Value) -> str:
    """A tile's shape and elements: 64x32xf16."""
    return "x".join((*map(str, value.shape), value.elem))


def variable(value: Value) -> str:
    """What a value is called in the source; empty if nothing."""
    return (value.op.source.results[value.index].name_hint or "") if value.op is not None else ""


def _done_by(root: Root) -> Site:
    if isinstance(root, WriteRoot):
        maker = root.value.op
        return Site("a carried tile", None) if maker is None else Site(f"the tile of {maker.name}", maker.span)
    return site_of(root.op)


def tell_loop(remarks: RemarkCollector, op: Op, tile: Value, lanes: int = 1, along: int = 0, scalar: str = "") -> None:
    """A loop over a tile that is no nest: by so many lanes along a dimension, or why by none."""
    if remarks:
        bits, axes = element_bits(tile.elem), (along,) if lanes > 1 else ()
        size = tile.shape, (site_of(op),), 0, lanes, bits, axes, 1, max(1, tile.numel // lanes)
        remarks.add(LoopNest(op.span, *size, scalar=scalar))


def tell_buffers(arena: Arena, program: FunctionProgram, remarks: RemarkCollector) -> None:
    """The buffers of scratch memory, now that it is known for how long each is in use."""
    if not remarks:
        return
    places = {op.index: op.span for op in all_ops(program.blocks) if op.span is not None and op.name not in ENDS}
    order = sorted(places)
    for value, begin, buffer in arena.made:
        name = f" (`{variable(value)}`)" if variable(value) else ""
        ends = bisect_left(order, begin), bisect_right(order, buffer.last) - 1
        used = [places[order[at]] for at in ends] if ends[0] <= ends[1] else []
        spans = [*sorted(used, key=lambda span: span.line), *([] if used else (None, None))]
        span = value.op.span if value.op is not None else spans[0]
        what = f"tile of {'x'.join((*map(str, value.shape), buffer.elem))}{name}"
        remarks.add(ScratchBuffer(span, buffer.size, buffer.offset, what, *spans))


def tell_nest(nest: Nest, roots: Sequence[Root], program: FunctionProgram, remarks: RemarkCollector) -> None:
    """Say what a nest does and how, and how each of its loads and stores goes with its lanes."""
    axes = [axis for axis in reversed(range(len(nest.shape))) for _ in range(nest.shape[axis].bit_length() - 1)]

    def along(bits: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({axes[b] for b in bits}))

    does = tuple(dict.fromkeys(_done_by(root) for root in roots if root.op is not None or isinstance(root, WriteRoot)))
    pulled = {v.op for v, _ in nest.visited if v not in nest.env and v.op is not None and v.is_tile}
    fused = sum(op.name not in SHAPE_OPS and op.name not in ("arith.constant", "tt.make_range") for op in pulled)
    span = next((site.span for site in does if site.span is not None), None)
    loops = 1 << len(nest.inner_bits) + len(nest.outer_bits) - len(nest.group.bits)
    prices = tuple((" and ".join(map(str, along(lanes))), round(price, 3)) for lanes, price in nest.prices.items())
    lanes, unrolled = 1 << len(nest.lane_bits), 1 << len(nest.unroll or nest.group.bits)
    size = nest.shape, does, fused, lanes, nest.data_bits, along(nest.lane_bits), unrolled, loops
    least = {name: min(p for n, p in prices if n == name) for name, _ in prices}
    scalar = nest.data_bits > nest.vector_bits // 2 or not nest.count
    why = f"an element of {nest.data_bits} bits fills a vector of {nest.vector_bits}" if nest.count and scalar else ""
    remarks.add(LoopNest(span, *size, tuple(least.items()), why, tuple(nest.versions), nest.vector_bits))
    if not nest.lane_bits:
        return
    accesses = []
    for value, coords in nest.visited:
        op = value.op
        if op is not None and op.name == "tt.load" and value not in nest.env:
            accesses.append((op, value, op.args[0], coords, id(value) in nest.transposes))
    for root in roots:
        op = root.op
        if op is not None and op.name.startswith("tt.atomic"):
            tile, count = (*op.results, *op.args[1:])[0], root.together if isinstance(root, AtomicRoot) else 1
            form, fact = "one after the other", "no instruction changes several places at once"
            if count > 1:
                form, fact = f"{count} at a time", "they are neighbours, where their addresses are aligned for that"
            remarks.add(VectorAccess(op.span, "atomic", tile_text(tile), form, lanes, fact))
        if op is not None and op.name == "tt.gather":
            fact = "places are indices of the tile, which are data"
            remarks.add(VectorAccess(op.span, "gather", tile_text(op.result), "element by element", lanes, fact))
        if op is not None and op.name == "tt.store":
            stored = ((target, coords) for target, coords, _ in root.accesses() if isinstance(target, Value))
            accesses += [(op, op.args[1], target, coords, False) for target, coords in stored]
    bounds = mask_conditions(nest).keys()
    for op, tile, pointer, coords, transposed in accesses:
        steps, fact, name = nest.analysis.steps(pointer, coords), "", ""
        form = access_form(steps, nest.lane_bits, element_bits(tile.elem), transposed)[1]
        if form not in ("whole vectors", "one value"):
            at = next(i for i, b in enumerate(nest.lane_bits) if steps.get(b, 0) != 1 << i)
            step, axis = steps.get(nest.lane_bits[at], 0), axes[nest.lane_bits[at]]
            name = _factor(pointer, axis, program) if step is None else ""
            distance = "neighbours" if at == 0 else f"runs of {1 << at} elements"
            fact = f"{distance} along dimension {axis} are {_apart(step, name, pointer)}"
        mask = _mask_for_each(op, bounds, nest)
        runs = between_runs(steps, _row_factor(pointer, steps, axes, program))
        where = mask, runs.length, runs.apart, per_turn(op, program)
        remarks.add(VectorAccess(op.span, op.name[3:], tile_text(tile), form, lanes, fact, name, *where))


def _row_factor(pointer: Value, steps: Steps, axes: Sequence[int], program: FunctionProgram) -> str:
    """The argument by which the runs of an access are apart; empty if that is a number, or not known."""
    unknown = {axes[bit] for bit, step in steps.items() if step is None and bit < len(axes)}
    names = {_factor(pointer, axis, program) for axis in unknown}
    return names.pop() if len(names) == 1 else ""


def _mask_for_each(op: Op, bounds: Set[Value], nest: Nest) -> str:
    """Why the mask of a load or store is computed for each vector, also of tiles that lie wholly within their bounds;
    empty where it is not.
    """
    at = 1 if op.name == "tt.load" else 2
    mask = op.args[at] if len(op.args) > at else None
    if mask is None or not mask.is_tile or mask in bounds or mask.is_inside:
        return ""
    if mask in nest.env:
        return "it is in memory"
    return "it depends on what is loaded" if _is_loaded(mask) else "it is no comparison of indices with bounds"


def _apart(step: int | None, name: str, pointer: Value) -> str:
    """How far neighbours are from each other."""
    if step is not None:
        return f"{step} elements apart" if step else "at one address"
    if name:
        return f"`{name}` elements apart, which is known only at a launch"
    return "at addresses that are loaded" if _is_loaded(pointer) else "a distance apart that is not known"


def _computed_of(value: Value) -> list[Value]:
    """All that an address is computed of, itself included; no further than what is loaded."""
    values, todo = list[Value](), [value]
    for v in each_once(todo):
        values.append(v)
        if v.op is not None and v.op.name != "tt.load":
            todo += v.op.args
        elif v.op is None and v.block is not None and v.block.parent is not None:  # what a loop begins with
            loop, number = v.block.parent, v.block.args.index(v)
            todo += loop.args[number + 2 : number + 3] if loop.name == "scf.for" and number else []
    return values


def _is_loaded(pointer: Value) -> bool:
    """Whether an address is made of what is loaded."""
    return any(v.op is not None and v.op.name == "tt.load" for v in _computed_of(pointer))


def _factor(pointer: Value, axis: int, program: FunctionProgram) -> str:
    """The name of the argument by which indices along an axis are multiplied; empty if there is none, or several."""
    names: set[str] = set()
    for v in _computed_of(pointer):
        if v.op is not None and v.op.name == "arith.muli" and (v.shape[axis : axis + 1] or (1,))[0] > 1:
            for factor in v.op.args:
                while factor.op is not None and factor.op.name in SPREADING:
                    factor = factor.op.args[0]
                if factor.op is None and factor in program.params:
                    names.add(program.names[program.params.index(factor)])
    return names.pop() if len(names) == 1 else ""
