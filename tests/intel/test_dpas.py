"""DPAS: the layouts of its operands are the published ones, and it multiplies matrices."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from weft.ir.gpu.names import FIELDS, layout_text
from weft.layouts import DotOperandLayout, IntelDPASLayout
from weft.machines import machine_of
from weft.ops.dtypes import DTYPES
from weft.targets.intel import INSTRUCTIONS as ALL
from weft.targets.meaning import from_matrix, shape_of
from weft.targets.table import products

INSTRUCTIONS = {name: entry for name, entry in ALL.items() if entry.products}
DEPTH = 8
Bases = dict[str, list[tuple[int, int]]]


def doubled(step: int, below: int) -> list[int]:
    """step, 2 step, 4 step, ... below a limit."""
    return [n for n in (step << i for i in range(10)) if n < below]


def published(operand: int, rows: int, columns: int, ops: int, threads: int) -> Bases:
    """One instruction's A (0), B (1) or C (2), as Intel's backend of Triton writes them, for 16 and 32 threads."""
    depth, each = DEPTH * ops, threads // columns
    if operand == 0:
        packed = 2 if ops == 4 else 1
        across = depth // packed
        per_register = -(-threads // across)
        return {
            "register": [(0, n) for n in doubled(1, packed)] + [(n, 0) for n in doubled(per_register, rows)],
            "lane": [(0, packed * n) for n in doubled(1, across)] + [(n, 0) for n in doubled(1, per_register)],
        }
    if operand == 1:
        return {
            "register": [(n, 0) for n in doubled(1, ops)] + [(n, 0) for n in doubled(each * ops, depth)],
            "lane": [(0, n) for n in doubled(1, columns)] + [(n * ops, 0) for n in doubled(1, each)],
        }
    return {
        "register": [(n, 0) for n in doubled(each, rows)],
        "lane": [(0, n) for n in doubled(1, columns)] + [(n, 0) for n in doubled(1, each)],
    }


def repeated(operand: int, tile: Bases, size: tuple[int, int], shape: tuple[int, int], cluster: tuple[int, int],
             warps: tuple[int, int]) -> Bases:  # fmt: skip
    """A tile over a tensor: clusters in registers, N before M; warps, N the fastest, which A has alike along N and B
    along M; then again in registers, K before the other dimension for operands, N before M for the result."""
    made: Bases = {"register": list(tile["register"]), "lane": list(tile["lane"]), "warp": []}
    have = list(size)
    summed = {0: 1, 1: 0}.get(operand)

    def grow(place: str, dim: int, count: int) -> None:
        for _ in range(count.bit_length() - 1):
            made[place].append((have[0], 0) if dim == 0 else (0, have[1]))
            have[dim] *= 2

    for dim in (1, 0):
        if dim != summed:
            grow("register", dim, cluster[dim])
    for dim in (1, 0):
        if dim == summed:
            made["warp"] += [(0, 0)] * (warps[dim].bit_length() - 1)
        else:
            grow("warp", dim, warps[dim])
    for dim in (1, 0) if operand != 1 else (0, 1):
        grow("register", dim, shape[dim] // have[dim] if shape[dim] > have[dim] else 1)

    def inside(basis: tuple[int, int]) -> tuple[int, int]:
        """What lies outside of a tensor is a copy."""
        return basis[0] if basis[0] < shape[0] else 0, basis[1] if basis[1] < shape[1] else 0

    return {place: [inside(b) for b in bases] for place, bases in made.items()}


ROWS, OPS, THREADS = (8, 4, 2, 1), (1, 2, 4), (16, 32)


def layouts_of(rows: int, ops: int, threads: int, warps: tuple[int, int] = (1, 1),
               cluster: tuple[int, int] = (1, 1)) -> list[Any]:  # fmt: skip
    result = IntelDPASLayout(rows, DEPTH, 16, ops, list(warps), list(cluster), threads)
    return [DotOperandLayout(0, result, max(1, ops // 2)), DotOperandLayout(1, result, ops), result]


@pytest.mark.parametrize(("rows", "ops", "threads"), list(product(ROWS, OPS, THREADS)))
@pytest.mark.thinned(3)
def test_operands_lie_as_published(rows: int, ops: int, threads: int) -> None:
    """One instruction, of each type and repeat count, in subgroups of 16 and of 32."""
    sizes = [(rows, DEPTH * ops), (DEPTH * ops, 16), (rows, 16)]
    for operand, (layout, size) in enumerate(zip(layouts_of(rows, ops, threads), sizes, strict=True)):
        tile = published(operand, rows, 16, ops, threads)
        wanted = repeated(operand, tile, size, size, (1, 1), (1, 1))
        got = layout.to_linear(list(size)).bases
        assert {place: list(got[place]) for place in wanted} == wanted, (operand, rows, ops, threads)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("warps", "cluster"), [((1, 1), (2, 2)), ((4, 2), (1, 1)), ((2, 4), (4, 2)), ((8, 1), (1, 2))])
def test_tiles_larger_than_one_instruction(warps: tuple[int, int], cluster: tuple[int, int], threads: int) -> None:
    for ops, shape in product(OPS, ((128, 128, 64), (256, 64, 32), (64, 256, 128))):
        m, n, k = shape
        sizes = [(8, DEPTH * ops), (DEPTH * ops, 16), (8, 16)]
        tensors = [(m, k), (k, n), (m, n)]
        layouts = layouts_of(8, ops, threads, warps, cluster)
        for operand, (layout, size, tensor) in enumerate(zip(layouts, sizes, tensors, strict=True)):
            wanted = repeated(operand, published(operand, 8, 16, ops, threads), size, tensor, cluster, warps)
            got = layout.to_linear(list(tensor)).bases
            assert {place: list(got[place]) for place in wanted} == wanted


def test_the_instruction_of_dg2_has_32_bits_of_both_operands_in_each_lane() -> None:
    entry = INSTRUCTIONS["dpas.8x8x16.f32.f16.f16"]
    a, b, c = (dict(o.layout.bases) for o in entry.operands if o.layout is not None)
    assert (a["register"], a["lane"]) == (((0, 1), (1, 0), (2, 0), (4, 0)), ((0, 2), (0, 4), (0, 8)))
    assert (b["register"], b["lane"]) == (((1, 0), (2, 0), (4, 0), (8, 0)), ((0, 1), (0, 2), (0, 4)))
    assert (c["register"], c["lane"]) == (((1, 0), (2, 0), (4, 0)), ((0, 1), (0, 2), (0, 4)))
    assert entry.params["arguments"][1:3] == (("<8 x i32>", "a"), ("<8 x i32>", "b"))


@pytest.mark.parametrize("name", list(INSTRUCTIONS))
@pytest.mark.thinned(3)
def test_it_multiplies_matrices(name: str) -> None:
    entry = INSTRUCTIONS[name]
    rng = np.random.default_rng(1)
    matrices = []
    for operand in entry.operands:
        assert operand.layout is not None
        shape = (3, *shape_of(operand.layout))
        integers = rng.integers(-8 if operand.elem != "i8" else -128, 8 if operand.elem != "i8" else 128, shape)
        matrices.append(integers.astype(DTYPES[operand.elem]))
    views = [
        m.view(np.uint8) if kind == "u8" else m for m, kind in zip(matrices, entry.params["types"], strict=False)
    ]
    left, right = (view.astype(np.float64) for view in views)
    registers = [from_matrix(m, o.layout) for m, o in zip(matrices, entry.operands, strict=True) if o.layout]
    (result,) = entry.run(*registers)
    total = left @ right + matrices[2].astype(np.float64)
    assert entry.results[0].layout is not None
    assert np.array_equal(result, from_matrix(total.astype(result.dtype), entry.results[0].layout))


def test_only_machines_with_dpas_have_it() -> None:
    assert products(machine_of("xpu:pvc"), "bf16", "bf16", "f32")[0].shape == (8, 16, 16)
    assert products(machine_of("xpu:dg2"), "f16", "f16", "f32")[0].shape == (8, 8, 16)
    assert products(machine_of("xpu:dg2"), "f32", "f32", "f32") == ()


def test_tf32_leaves_bits_out() -> None:
    entry = INSTRUCTIONS["dpas.8x16x8.f32.tf32.tf32"]
    assert entry.is_coarse
    one = np.nextafter(np.float32(1), np.float32(2))
    registers = [np.full((1, 16, o.count), one if o.name in "ab" else 0, np.float32) for o in entry.operands]
    assert (entry.run(*registers)[0] == 8).all()


def test_texts_of_intels_backend_are_read() -> None:
    layout = IntelDPASLayout(8, 8, 16, 2, [4, 2], [2, 2], 16)
    assert layout_text(layout) == (
        "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16, "
        "warpsPerCTA = [4, 2], repCluster = [2, 2]}>"
    )
    fields = {
        "repeatCount": 8, "systolicDepth": 8, "executionSize": 16, "opsPerChan": 2, "threadsPerWarp": 16,
        "warpsPerCTA": [4, 2], "repCluster": [2, 2], "A": [16, 16], "B": [16, 32], "C": [16, 32],
    }  # fmt: skip
    assert FIELDS["#ttig.dpas"](fields) == FIELDS["#triton_intel_gpu.dpas"](fields) == layout
