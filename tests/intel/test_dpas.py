"""DPAS: the layouts of its operands are the published ones, and it multiplies matrices."""

from __future__ import annotations

import numpy as np
import pytest

from weft.ir.gpu.names import FIELDS, layout_text
from weft.layouts import IntelDPASLayout
from weft.machines import machine_of
from weft.ops.dtypes import DTYPES
from weft.targets.intel import INSTRUCTIONS as ALL
from weft.targets.meaning import from_matrix, shape_of
from weft.targets.table import products

LANES = 16
INSTRUCTIONS = {name: entry for name, entry in ALL.items() if entry.products}


def bases(rows: int, depth: int, packed: int) -> dict[str, list[tuple[int, int]]]:
    """A, as Intel's backend writes it: lanes along K, then as many rows as they reach."""
    columns = depth // packed
    per_register = LANES // columns
    register = [(0, 1)] if packed == 2 else []
    lane = [(0, packed << i) for i in range(columns.bit_length() - 1)]
    lane += [(1 << i, 0) for i in range(per_register.bit_length() - 1)]
    step = per_register
    while step < rows:
        register.append((step, 0))
        step *= 2
    return {"register": register, "lane": lane}


@pytest.mark.parametrize("name", list(INSTRUCTIONS))
def test_operands_lie_as_published(name: str) -> None:
    entry = INSTRUCTIONS[name]
    m, n, k = entry.shape
    a, b, c = (operand.layout for operand in entry.operands)
    assert a is not None and b is not None and c is not None
    per_word = k // 8
    wanted = bases(m, k, max(1, per_word // 2))
    kept = [base for base in wanted["lane"] if base[0] < m]
    assert [base for base in a.bases["lane"] if base != (0, 0)] == kept
    assert list(a.bases["register"]) == wanted["register"]
    assert list(b.bases["lane"]) == [(0, 1), (0, 2), (0, 4), (0, 8)]
    assert list(b.bases["register"]) == [(1 << i, 0) for i in range(k.bit_length() - 1)]
    assert list(c.bases["lane"]) == [(0, 1), (0, 2), (0, 4), (0, 8)]
    assert list(c.bases["register"]) == [(1 << i, 0) for i in range(m.bit_length() - 1)]
    assert n == 16


@pytest.mark.parametrize("name", list(INSTRUCTIONS))
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
    assert products(machine_of("xpu:dg2"), "f16", "f16", "f32") == ()


def test_tf32_leaves_bits_out() -> None:
    entry = INSTRUCTIONS["dpas.8x16x8.f32.tf32.tf32"]
    assert entry.is_coarse
    one = np.nextafter(np.float32(1), np.float32(2))
    registers = [np.full((1, LANES, o.count), one if o.name in "ab" else 0, np.float32) for o in entry.operands]
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
