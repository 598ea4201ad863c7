"""Products in loops that fetch operands ahead: rings of buffers, groups of copies, phases of mbarriers."""

from __future__ import annotations

from typing import Any

from ..elements import NAMES, bits
from ..operations import product
from ..program import Array1D
from ..scope import Impossible
from . import layouts
from .scope import GluonGenerator


def _arrays(g: GluonGenerator, elem: str, m: int, n: int, k: int) -> tuple[Array1D, Array1D]:
    a, b = (g.array(elem, "in", -4, 4) for _ in range(2))
    for array, size in ((a, m * k), (b, k * n)):
        array.size, array.tight = size, False
    return a, b


def _result(
    g: GluonGenerator, lines: list[str], a: Array1D, b: Array1D, shape: tuple[int, int, int], layout: str
) -> None:
    m, n, k = shape

    def run(s: Any) -> Any:
        x, y = s.memory[a.name][: m * k].reshape(m, k), s.memory[b.name][: k * n].reshape(k, n)
        return product(x, y, "f32")

    g.made("\n".join(lines), run, (m, n), "f32", -16 * k, 16 * k, layout)


def by_threads(g: GluonGenerator) -> None:
    """Copies by cp.async, groups of which are waited for in order, and mma.sync."""
    rng = g.rng
    elem, stages, steps = rng.choice(("f16", "bf16", "f32")), rng.choice((1, 2, 3)), rng.choice((1, 2, 3, 5))
    m, n, k = rng.choice((16, 32)), rng.choice((8, 16)), 256 // bits(elem) * rng.choice((1, 2))
    a, b = _arrays(g, elem, m, n, k * steps)
    parent = g.named(layouts.mma(rng, g.warps))
    names, rows, count = [g.fresh("s"), g.fresh("s")], [(m, k), (k, n)], g.scalar(steps)
    pitches, strides = (k * steps, n), (k, k * n)
    lines, copies, loads = [], [], []
    for x, name, shape, pitch, stride, index in zip((a, b), names, rows, pitches, strides, (0, 1)):
        own = g.named(layouts.blocked(rng, 2, g.warps, last=8))
        shared = g.named(f"gl.SwizzledSharedLayout(8, 1, {rng.choice([1, shape[1] // 8])}, [1, 0])")
        at = (
            f"gl.arange(0, {shape[0]}, gl.SliceLayout(1, {own}))[:, None] * {pitch} + "
            f"gl.arange(0, {shape[1]}, gl.SliceLayout(0, {own}))[None, :]"
        )
        lines += [f"{name}_at = {x.name} + {at}"]
        lines += [f"{name} = gl.allocate_shared_memory({NAMES[elem]}, [{stages}, {shape[0]}, {shape[1]}], {shared})"]
        mask = f"gl.full({list(shape)}, {{j}} < {count}, gl.int1, {own})"
        slot, where = f"{name}.index({{j}} % {stages})", f"{name}_at + {{j}} * {stride}"
        copies.append(f"async_copy.async_copy_global_to_shared({slot}, {where}, {mask})")
        loads.append(f"{name}.index({{i}} % {stages}).load(gl.DotOperandLayout({index}, {parent}, {32 // bits(elem)}))")
    acc, i = g.fresh("v"), g.fresh("i")
    for j in range(stages - 1):
        lines += [*(c.format(j=j) for c in copies), "async_copy.commit_group()"]
    lines += [f"{acc} = gl.zeros([{m}, {n}], gl.float32, {parent})", f"for {i} in range({count}):"]
    ahead = [*(c.format(j=f"({i} + {stages - 1})") for c in copies), "async_copy.commit_group()"]
    iteration = [f"async_copy.wait_group({max(0, stages - 2)})"]
    iteration += [f"{acc} = mma_v2({loads[0].format(i=i)}, {loads[1].format(i=i)}, {acc})"]
    iteration = [*ahead, *iteration] if stages == 1 else [*iteration, *ahead]
    lines += [f"    {line}" for line in iteration]
    lines += ["async_copy.wait_group(0)"]  # those that go beyond the last iteration
    _result(g, [*lines, f"{acc} * 1.0"], a, b, (m, n, k * steps), parent)


def by_engine(g: GluonGenerator) -> None:
    """Copies by the copy engine, for which mbarriers are waited, and wgmma, perhaps one that goes on meanwhile."""
    rng = g.rng
    if not g.hopper or g.warps < 4:
        raise Impossible("no groups of warps")
    elem, stages, steps = rng.choice(("f16", "bf16")), rng.choice((1, 2, 3)), rng.choice((1, 2, 3, 5))
    m, n, k = 64, rng.choice((16, 32)), rng.choice((16, 32))
    a, b = _arrays(g, elem, m, n, k * steps)
    layout, count = g.named(layouts.wgmma(rng, g.warps, n, m)), g.scalar(steps)
    names, descs, bars = [g.fresh("s"), g.fresh("s")], [g.fresh("d"), g.fresh("d")], g.fresh("b")
    lines: list[str] = []
    shapes, wholes = ((m, k), (k, n)), ((m, k * steps), (k * steps, n))
    for x, name, desc, shape, whole in zip((a, b), names, descs, shapes, wholes):
        swizzle = rng.choice([w for w in (32, 64, 128) if w <= 2 * shape[1]])
        shared = g.named(f"gl.NVMMASharedLayout({swizzle}, 16, 2)")
        lines += [
            f"{desc} = tma.make_tensor_descriptor({x.name}, {list(whole)}, [{whole[1]}, 1], {list(shape)}, {shared})",
            f"{name} = gl.allocate_shared_memory({NAMES[elem]}, [{stages}, {shape[0]}, {shape[1]}], {shared})",
        ]
    acc, i, size = g.fresh("v"), g.fresh("i"), 2 * (m * k + k * n)

    def copies(j: str, slot: str, more: str) -> list[str]:
        at = (f"[0, {j} * {k}]", f"[{j} * {k}, 0]")
        return [
            f"mbarrier.expect({bars}.index({slot}), {size}, pred={more})",
            *(
                f"tma.async_copy_global_to_shared({d}, {where}, {bars}.index({slot}), {s}.index({slot}), {more})"
                for d, s, where in zip(descs, names, at)
            ),
        ]

    lines += [f"{bars} = gl.allocate_shared_memory(gl.int64, [{stages}, 1], mbarrier.MBarrierLayout())"]
    lines += [f"mbarrier.init({bars}.index({j}), count=1)" for j in range(stages)]
    for j in range(stages):
        lines += copies(str(j), str(j), f"{j} < {count}")
    slot = f"{i} % {stages}"
    iteration = [f"mbarrier.wait({bars}.index({slot}), ({i} // {stages}) & 1)"]
    call = f"warpgroup_mma({names[0]}.index({slot}), {names[1]}.index({slot}), {acc}"
    if rng.random() < 0.5:
        held = f"{names[0]}.index({slot}), {names[1]}.index({slot})"
        iteration += [f"{acc} = warpgroup_mma_wait(0, deps=({call}, is_async=True), {held}))[0]"]
    else:
        iteration += [f"{acc} = {call})"]
    iteration += copies(f"({i} + {stages})", slot, f"{i} + {stages} < {count}")
    lines += [f"{acc} = gl.zeros([{m}, {n}], gl.float32, {layout})", f"for {i} in range({count}):"]
    lines += [f"    {line}" for line in iteration]
    lines += [f"mbarrier.invalidate({bars}.index({j}))" for j in range(stages)]
    _result(g, [*lines, f"{acc} * 1.0"], a, b, (m, n, k * steps), layout)


PIPELINES: list[tuple[Any, int]] = [(by_threads, 3), (by_engine, 3)]
