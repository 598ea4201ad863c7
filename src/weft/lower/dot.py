"""Products of tiles by matrix instructions.

The operands' layouts were chosen for an instruction: lanes hold what it wants of them. What is left is to find, for
each instance of the instruction, the registers that hold its elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from weft.base import Unsupported
from weft.ir.gpu import name_of
from weft.ir.lane import Value
from weft.layouts import BlockedLayout, LinearLayout
from weft.targets.nvidia import Instruction, instruction

from .context import Context, elem_of, lowering, tile_shape

PTX = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f64": "f64", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8"}
DEPTH = {"f16": 16, "bf16": 16, "f32": 8, "f8E4M3FN": 32, "f8E5M2": 32, "i8": 32}
ACCUMULATOR = {"i32": "s32"}


def _held(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    """The register that holds each element of lane 0 of warp 0; of copies the first."""
    part = layout.sublayout(["register"], layout.out_dims)
    found: dict[tuple[int, ...], int] = {}
    for register, flat in enumerate(part.table().tolist()):
        found.setdefault(part._coordinates(flat), register)
    return found


def _points(layout: LinearLayout) -> list[tuple[int, ...]]:
    """The coordinates of the registers of lane 0 in an instruction's operand."""
    part = layout.sublayout(["register"], layout.out_dims).transpose_outs(["dim0", "dim1"])
    return [part._coordinates(x) for x in part.table().tolist()]


def _fits(layout: LinearLayout, tile: LinearLayout) -> bool:
    """Whether lanes hold what the instruction wants of them."""
    return layout.bases["lane"] == tile.transpose_outs(["dim0", "dim1"]).bases["lane"]


def _by_fma(c: Context, values: Sequence[Value], layouts: Sequence[LinearLayout], depth: int) -> Value:
    """Each lane multiplies what it holds: whole rows of the left operand, whole columns of the right one."""
    left, right = _held(layouts[0]), _held(layouts[1])
    part = layouts[2].sublayout(["register"], layouts[2].out_dims)
    points = [part._coordinates(x) for x in part.table().tolist()]
    running = values[2]
    for k in range(depth):
        x = c.build.rename(values[0], [left[i, k] for i, _ in points])
        y = c.build.rename(values[1], [right[k, j] for _, j in points])
        if running.elem.startswith("i"):
            x, y = (c.build.op("arith.extsi", [v], running.elem) if v.elem != running.elem else v for v in (x, y))
            running = c.build.op("arith.addi", [running, c.build.op("arith.muli", [x, y], running.elem)], running.elem)
            continue
        x, y = (c.build.op("arith.extf", [v], running.elem) if v.elem != running.elem else v for v in (x, y))
        running = c.build.op("math.fma", [x, y, running], running.elem)
    return running


def _choose(c: Context, a: SSAValue, b: SSAValue, accumulator: str) -> Instruction:
    left, right = elem_of(a.type), elem_of(b.type)
    if left == "f64":
        shape = "m8n8k4"
    elif left in DEPTH:
        shape = f"m16n8k{DEPTH[left]}"
    else:
        raise Unsupported(f"a product of {left}", c.program.target, c.build.span)
    acc = ACCUMULATOR.get(accumulator, accumulator)
    return instruction(f"mma.sync.{shape}.{acc}.{PTX[left]}.{PTX[right]}.{acc}")


@lowering("tt.dot")
def _dot(c: Context, op: Operation) -> None:
    a, b, acc = op.operands
    result = op.results[0]
    if len(tile_shape(result)) != 2:
        raise Unsupported("a batched product", c.program.target, c.build.span)
    layouts = [c.layout(x) for x in (a, b, acc)]
    if isinstance(name_of(result.type), BlockedLayout):
        c[result] = _by_fma(c, [c.whole(x) for x in (a, b, acc)], layouts, tile_shape(a)[1])
        return
    entry = _choose(c, a, b, elem_of(result.type))
    tiles = [o.layout for o in entry.operands]
    for layout, tile, what in zip(layouts, tiles, ("left", "right", "accumulator"), strict=True):
        if tile is None or not _fits(layout, tile):
            raise Unsupported(f"a product whose {what} operand is not laid out for {entry.name}", c.program.target)
    held = [_held(x) for x in layouts]
    points = [_points(t) for t in tiles if t is not None]
    m, n, k = entry.shape
    depth = tile_shape(a)[1]
    values = [c.whole(a), c.whole(b), c.whole(acc)]
    parts: dict[int, Value] = {}
    origins = sorted({(i // m * m, j // n * n) for i, j in held[2]})
    for i, j in origins:
        registers = [held[2][i + x, j + y] for x, y in points[2]]
        running = c.build.rename(values[2], registers)
        for at in range(0, depth, k):
            left = c.build.rename(values[0], [held[0][i + x, at + y] for x, y in points[0]])
            right = c.build.rename(values[1], [held[1][at + x, j + y] for x, y in points[1]])
            running = c.build.add(
                "instruction", [left, right, running], [(running.elem, running.count)], {"isa": entry.name}
            ).result
        for position, register in enumerate(registers):
            parts[register] = c.build.rename(running, [position])
    c[result] = _assembled(c, parts, layouts[2], values[2].count)


def _assembled(c: Context, parts: dict[int, Value], layout: LinearLayout, count: int) -> Value:
    """One fragment of registers that were computed in pieces; copies are where what they copy is."""
    order = sorted(parts)
    joined = c.build.add("join", [parts[r] for r in order], [(parts[order[0]].elem, len(order))]).result
    held = _held(layout)
    part = layout.sublayout(["register"], layout.out_dims)
    table: Sequence[int] = [order.index(held[part._coordinates(x)]) for x in part.table().tolist()]
    return c.build.rename(joined, table)
