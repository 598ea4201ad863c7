"""Products by the matrix units, and by single multiplications; bulk copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..elements import DTYPES, NAMES, Array, bits
from ..operations import product
from ..scope import Impossible, Shape, Var
from . import layouts
from .scope import GluonGenerator

RESULTS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32", "f64": "f64"}
BOUNDS = {"f16": 16, "bf16": 16, "f32": 16, "i8": 100, "f64": 100}


def operand(g: GluonGenerator, shape: Shape, elem: str) -> Var:
    """A tile of this shape and element: one that there is, or a new one from memory."""
    have = [v for v in g.visible() if v.shape == shape and v.elem not in ("i1", "u32", "i64")]
    if have and g.rng.random() < 0.4:
        v = g.rng.choice(have)
        return g.converted(g.clamp(v, -min(BOUNDS[elem], 8) if v.elem[0] != "u" else 0, 8), elem)
    array = g.array(elem, "in", -4, 4)
    rows, columns = shape
    layout = g.layout(shape)
    turned = g.rng.random() < 0.4
    down, right = (1, rows) if turned else (columns, 1)
    array.size = max(array.size, rows * columns)
    at = (
        f"gl.arange(0, {rows}, gl.SliceLayout(1, {layout}))[:, None] * {down} + "
        f"gl.arange(0, {columns}, gl.SliceLayout(0, {layout}))[None, :] * {right}"
    )
    index = np.arange(rows)[:, None] * down + np.arange(columns)[None, :] * right
    return g.made(f"gl.load({array.name} + {at})", lambda s: s.memory[array.name][index], shape, elem, -4, 4, layout)


def _addend(g: GluonGenerator, shape: Shape, elem: str, layout: str) -> tuple[str, Any, int]:
    """What a product is added to, as text, as a value, and how large it is."""
    have = [v for v in g.visible() if v.shape == shape and v.elem == elem and max(-v.lo, v.hi) < 1 << 16]
    if have and g.rng.random() < 0.7:
        v = g.rng.choice(have)
        return f"gl.convert_layout({v.name}, {layout})", lambda s: s[v.name], max(-v.lo, v.hi)
    zero = "0.0" if elem[0] == "f" else "0"
    return f"gl.full({list(shape)}, {zero}, {NAMES[elem]}, {layout})", lambda s: np.zeros(shape, DTYPES[elem]), 0


def _result(a: Var, b: Var, most: int) -> int:
    return a.shape[1] * max(-a.lo, a.hi) * max(-b.lo, b.hi) + most


def _run(a: Var, b: Var, out: str, addend: Any) -> Any:
    return lambda s: (product(s[a.name], s[b.name], out) + addend(s)).astype(DTYPES[out])


def mma(g: GluonGenerator) -> None:
    """A product by mma.sync, operands from registers or from shared memory."""
    elem = g.rng.choice(("f16", "f16", "bf16", "f32", "i8"))
    depth = g.rng.choice((1, 2)) * 256 // bits(elem)
    m, n = g.rng.choice((16, 16, 32, 64)), g.rng.choice((8, 16, 32))
    a, b = operand(g, (m, depth), elem), operand(g, (depth, n), elem)
    parent = g.named(layouts.mma(g.rng, g.warps))
    width = max(1, 32 // bits(elem)) * g.rng.choice((1, 1, 2))
    before, texts = [], []
    for k, v in enumerate((a, b)):
        wanted = f"gl.DotOperandLayout({k}, {parent}, {width})"
        if g.rng.random() < 0.5:
            texts.append(f"gl.convert_layout({v.name}, {wanted})")
            continue
        name, shared = g.fresh("s"), g.named(layouts.shared(g.rng, v.shape, bits(elem)))
        before.append(f"{name} = gl.allocate_shared_memory({NAMES[elem]}, {list(v.shape)}, {shared}, {v.name})")
        texts.append(f"{name}.load({wanted})")
    out = RESULTS[elem]
    text, value, most = _addend(g, (m, n), out, parent)
    top = _result(a, b, most)
    g.made(
        "\n".join([*before, f"mma_v2({texts[0]}, {texts[1]}, {text})"]),
        _run(a, b, out, value), (m, n), out, -top, top, parent,
    )  # fmt: skip


def fma(g: GluonGenerator) -> None:
    """A product by single multiplications, in a blocked layout."""
    elem = g.rng.choice(("f32", "f32", "f16", "f64"))
    out = RESULTS[elem] if elem != "f16" else "f16"
    m, n, k = (g.rng.choice((1, 2, 4, 8, 16)) for _ in range(3))
    a, b = operand(g, (m, k), elem), operand(g, (k, n), elem)
    parent = g.named(layouts.blocked(g.rng, 2, g.warps))
    operands = [f"gl.convert_layout({v.name}, gl.DotOperandLayout({i}, {parent}, 0))" for i, v in enumerate((a, b))]
    text, value, most = _addend(g, (m, n), out, parent)
    top = _result(a, b, most)
    if top > 1 << 11:
        raise Impossible("too large")
    g.made(f"gl.dot_fma({operands[0]}, {operands[1]}, {text})", _run(a, b, out, value), (m, n), out, -top, top, parent)


def wgmma(g: GluonGenerator) -> None:
    """A product by wgmma, the left operand from registers or from shared memory, the right one as it is or turned."""
    if not g.hopper or g.warps < 4:
        raise Impossible("no groups of warps")
    elem = g.rng.choice(("f16", "bf16"))
    m, n, k = g.rng.choice((64, 128)), g.rng.choice((8, 16, 32, 64)), g.rng.choice((16, 32, 64))
    a, b = operand(g, (m, k), elem), operand(g, (k, n), elem)
    layout = g.named(layouts.wgmma(g.rng, g.warps, n, m))
    lines, names = [], []
    for i, v in enumerate((a, b)):
        if i == 0 and g.rng.random() < 0.4:
            names.append(f"gl.convert_layout({v.name}, gl.DotOperandLayout(0, {layout}, 2))")
            continue
        turned = g.rng.random() < 0.4
        row = v.shape[0 if turned else 1] * 2
        swizzle = g.rng.choice([w for w in (32, 64, 128) if w <= row] or [0])
        shared = g.named(f"gl.NVMMASharedLayout({swizzle}, 16, 2, {turned})")
        name = g.fresh("s")
        lines.append(f"{name} = gl.allocate_shared_memory({NAMES[elem]}, {list(v.shape)}, {shared}, {v.name})")
        names.append(name)
    lines.append("fence_async_shared()")
    text, value, most = _addend(g, (m, n), "f32", layout)
    top = _result(a, b, most)
    call = f"warpgroup_mma({names[0]}, {names[1]}, {text}"
    if g.rng.random() < 0.5:
        kept = ", ".join(name for name in names if name.startswith("s"))
        last = f"warpgroup_mma_wait(0, deps=({call}, is_async=True), {kept}))[0]"
    else:
        last = f"{call})"
    g.made("\n".join([*lines, last]), _run(a, b, "f32", value), (m, n), "f32", -top, top, layout)


def bulk(g: GluonGenerator) -> None:
    """A block that the copy engine brings, part of which may lie outside of the array; perhaps one that it takes."""
    if not g.hopper:
        raise Impossible("no copy engine")
    rng = g.rng
    elem = rng.choice(("f16", "bf16", "i32", "f32", "i8", "u16"))
    width = bits(elem) // 8
    block = (rng.choice((8, 16, 32)), rng.choice([n for n in (8, 16, 32, 64) if n * width >= 16]))
    rows, columns = (n + rng.choice((0, 0, 16, -5)) for n in block)
    pitch = -(-columns * width // 16) * 16 // width + rng.choice((0, 0, 16 // width))
    array = g.array(elem, "in", *((-8, 8) if elem[0] in "fb" else (-100, 100) if elem[0] == "i" else (0, 100)))
    array.size, array.tight = rows * pitch, False
    y, x = rng.choice((0, 0, 3, -2)), rng.choice((0, 0, 16 // width, -16 // width))
    swizzle = rng.choice([0, *(w for w in (32, 64, 128) if w <= block[1] * width)])
    shared = g.named(f"gl.NVMMASharedLayout({swizzle}, {8 * width}, 2)")
    layout, d, s_, bar = g.layout(block), g.fresh("d"), g.fresh("s"), g.fresh("b")
    lines = [
        f"{d} = tma.make_tensor_descriptor({array.name}, [{rows}, {columns}], [{pitch}, 1], {list(block)}, {shared})",
        f"{s_} = gl.allocate_shared_memory({NAMES[elem]}, {list(block)}, {shared})",
        f"{bar} = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())",
        f"mbarrier.init({bar}, count=1)",
        f"mbarrier.expect({bar}, {d}.block_type.nbytes)",
        f"tma.async_copy_global_to_shared({d}, [{y}, {x}], {bar}, {s_})",
        f"mbarrier.wait({bar}, 0)",
        f"mbarrier.invalidate({bar})",
    ]

    def run(s: Any) -> Array:
        whole = s.memory[array.name][: rows * pitch].reshape(rows, pitch)[:, :columns]
        result = np.zeros(block, DTYPES[elem])
        top, left = max(0, y), max(0, x)
        part = whole[top : y + block[0], left : x + block[1]]
        result[top - y : top - y + part.shape[0], left - x : left - x + part.shape[1]] = part
        return result

    g.made("\n".join([*lines, f"{s_}.load({layout})"]), run, block, elem, min(0, array.lo), max(0, array.hi), layout)


def bulk_store(g: GluonGenerator) -> None:
    """A tile that the copy engine takes to an array of each program's own, except for what lies outside of it.

    It writes whole runs of 16 bytes: also what follows the last column in its run.
    """
    rng = g.rng
    x = g.pick(
        lambda v: (
            len(v.shape) == 2 and v.elem in ("f16", "bf16", "i32", "f32", "i8", "u16", "u32")
            and v.shape[1] * bits(v.elem) >= 128 and v.shape[0] <= 256
        )
    )  # fmt: skip
    if not g.hopper or g.program.programs > 1 or len(g.blocks) > 1:
        raise Impossible("not here")
    width, block = bits(x.elem) // 8, x.shape
    if block[1] > 256:
        raise Impossible("too wide")
    rows, columns = (max(1, n + rng.choice((0, 0, -3))) for n in block)
    pitch = -(-columns * width // 16) * 16 // width
    bound = (-8, 8) if x.elem[0] in "fb" else (x.lo, x.hi)
    x = g.clamp(x, *bound)
    array = g.array(x.elem, "sunk", *bound)
    array.size, array.tight = rows * pitch, False
    swizzle = rng.choice([0, *(w for w in (32, 64, 128) if w <= block[1] * width and block[0] >= 8)])
    shared, d, s_ = g.named(f"gl.NVMMASharedLayout({swizzle}, {8 * width}, 2)"), g.fresh("d"), g.fresh("s")
    lines = [
        f"{d} = tma.make_tensor_descriptor({array.name}, [{rows}, {columns}], [{pitch}, 1], {list(block)}, {shared})",
        f"{s_} = gl.allocate_shared_memory({NAMES[x.elem]}, {list(block)}, {shared}, {x.name})",
        "fence_async_shared()",
        f"tma.async_copy_shared_to_global({d}, [0, 0], {s_})",
        "tma.store_wait(0)",
    ]

    written = min(block[1], -(-columns * width // 16) * 16 // width)

    def run(s: Any) -> None:
        s.memory[array.name][: rows * pitch].reshape(rows, pitch)[:, :written] = s[x.name][:rows, :written]

    g.put("\n".join(lines), run)


PRODUCTS: list[tuple[Any, int]] = [(mma, 4), (fma, 2), (wgmma, 4), (bulk, 3), (bulk_store, 2)]
