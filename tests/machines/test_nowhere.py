"""A machine that exists nowhere, defined by rows here: what runs simulated for it agrees with NumPy.

It has warps of 16 lanes, 64 banks of 8 bytes, accesses of 8 bytes at most, and a matrix instruction of another shape
than any: 8 x 16 x 16, whose left operand has k along the lanes and whose right one has columns there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels.simulated import CASES, FILES, Simulated
from weft.ir import parse_module
from weft.layouts import LinearLayout
from weft.layouts.banks import count_wavefronts, passes
from weft.lower import lower
from weft.machines import Machine
from weft.passes.gpu_pipelines import gpu_pipeline, gpu_tile_pipeline
from weft.sim import Options
from weft.sim.memory import count_wavefronts as simulated_wavefronts
from weft.targets.instruction import Instruction, Operand
from weft.targets.nvidia import from_matrix, to_matrix
from weft.targets.table import add_instructions, products

NOWHERE = Machine("nowhere:1", "nowhere", 1, lanes=16, banks=64, bank_bytes=8, vector_bytes=8, shared_bytes=48 << 10)
WIDE = replace(NOWHERE, name="nowhere:64", lanes=64, vector_bytes=16, generation=0)
"""With warps of 64 lanes, and without matrix instructions."""
SHAPE = (8, 16, 16)
NAMES = sorted(n for n in FILES if n.endswith(".ttir") and not n.startswith("sum_lists"))


def powers(axis: int, size: int) -> list[tuple[int, int]]:
    return [(1 << i, 0) if axis == 0 else (0, 1 << i) for i in range(size.bit_length() - 1)]


def tile(rows: int, columns: int, lanes_along: int) -> LinearLayout:
    """A matrix of which lanes have one dimension, and registers the other."""
    sizes = {"dim0": rows, "dim1": columns}
    by_register = powers(1 - lanes_along, (rows, columns)[1 - lanes_along])
    return LinearLayout.from_bases({"register": by_register, "lane": powers(lanes_along, 16)}, sizes)


A, B, C = tile(8, 16, 1), tile(16, 16, 1), tile(8, 16, 1)


def product(dtype: Any) -> Callable[..., Any]:
    def run(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        left, right, total = to_matrix(a, A), to_matrix(b, B), to_matrix(c, C)
        made = total.astype(np.float64) + left.astype(np.float64) @ right.astype(np.float64)
        return (from_matrix(made.astype(dtype), C),)

    return run


def entry(elem: str) -> Instruction:
    return Instruction(
        name=f"nowhere.multiply.{elem}",
        since=1,
        text="",
        operands=(
            Operand("a", elem, 8, "r", A),
            Operand("b", elem, 16, "r", B),
            Operand("c", "f32", 8, "f", C),
        ),
        results=(Operand("d", "f32", 8, "f", C),),
        semantics=product(np.float32),
        params={"shape": SHAPE, "accumulator": "f32", "types": (elem, elem), "multiplies": (elem, elem)},
    )


if not products(NOWHERE, "f16", "f16", "f32"):
    add_instructions("nowhere", [entry("f16"), entry("bf16")])


def simulated(name: str, machine: Machine) -> Simulated:
    path = FILES[name]
    module = parse_module(path.read_text(encoding="utf-8"), path.name)
    module = gpu_pipeline(gpu_tile_pipeline(module, machine.threads(4)), machine)
    return Simulated(CASES[path.stem], lower(module, machine))


def agrees(name: str, machine: Machine) -> list[str]:
    """Run a kernel and check it; the instructions that it has."""
    kernel = simulated(name, machine)
    assert kernel.program.lanes == machine.lanes
    report, after = kernel.run(Options(order="backward"))
    assert not report.errors
    kernel.check(after)
    return [op.attrs["isa"] for op in kernel.program.body.walk() if op.name == "instruction"]


@pytest.mark.parametrize("part", range(4))
def test_kernels_agree_with_numpy(part: int) -> None:
    for name in NAMES[part::16]:
        agrees(name, NOWHERE)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [NOWHERE, WIDE], ids=lambda m: m.name)
@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_agrees_with_numpy(name: str, machine: Machine) -> None:
    agrees(name, machine)


@pytest.mark.parametrize("name", ["rms_norm.ttir", "softmax.ttir", "matmul_f16.ttir"])
def test_warps_of_64_lanes(name: str) -> None:
    assert not agrees(name, WIDE)


@pytest.mark.parametrize("name", ["matmul_f16.ttir", "matmul_bf16_to_f32.ttir"])
def test_products_use_the_machines_own_instruction(name: str) -> None:
    found = agrees(name, NOWHERE)
    assert found and all(isa.startswith("nowhere.multiply.") for isa in found)


@pytest.mark.parametrize("banks,bank_bytes", [(64, 4), (64, 8), (16, 8), (32, 2)])
@pytest.mark.parametrize("stride", [1, 2, 4, 16, 17])
@pytest.mark.thinned(2)
def test_the_simulator_counts_what_the_planner_predicts(banks: int, bank_bytes: int, stride: int) -> None:
    machine = replace(NOWHERE, banks=banks, bank_bytes=bank_bytes)
    for width in (4, 8):
        addresses = np.arange(16) * max(4 * stride, width)
        counted, _ = simulated_wavefronts(addresses[None], np.ones((1, 16), np.bool_), width, False, machine)
        assert counted == count_wavefronts(addresses, width, machine)
        if stride & stride - 1 == 0:
            lanes = [int(x) // 4 for x in addresses[[1, 2, 4, 8]]]
            assert counted == passes(lanes, 5, width // 8, machine)[0]
