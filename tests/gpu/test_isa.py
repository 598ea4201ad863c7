"""The proof of the simulator: each instruction alone on the GPU, against its meaning in NumPy.

Both sides are readers of one lane program: the emitter and the simulator. Bit for bit where the hardware is exact;
products of floats are compared on whole numbers, where every sum is exact, and on random ones within the rounding that
docs/explanation/simulator.md states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.compiler import devices
from weft.ir.lane import LaneProgram
from weft.machines import closest
from weft.sim import Options, run
from weft.targets.instruction import Array
from weft.targets.nvidia import INSTRUCTIONS, Instruction
from weft.targets.nvidia.wgmma import descriptor

from .isa import BYTES, equal_bits, group_product, moves, on_registers, patterns, random_operand
from .isa_memory import FAMILIES, cases
from .run import run_on_gpu

ENTRIES = list(INSTRUCTIONS.values())
PRODUCTS = [i for i in ENTRIES if i.name.startswith("mma.sync")]
PLAIN = [i for i in ENTRIES if not i.touches and i not in PRODUCTS and all(o.constraint != "n" for o in i.operands)]
MOVES = [i for i in ENTRIES if "matrix." in i.name]
GROUPS = [i for i in ENTRIES if i.name.startswith("wgmma.m64")]
TRIED = [i for i in GROUPS if i.shape[1] in (8, 16, 32, 64, 128, 256, 40, 192)]
"""All tiles, and two of the widths between them, of which there are many."""
AROUND = [INSTRUCTIONS[f"wgmma.{name}"] for name in ("fence", "commit_group", "wait_group")]
"""What every product of four warps is between."""
REST = [INSTRUCTIONS[name] for names, _ in FAMILIES.values() for name in names]


def _target(entry: Instruction) -> str:
    here = closest("nvidia", devices.current_device().capability)
    if here is None or not entry.works_on(here):
        pytest.skip("this GPU does not have it")
    return "cuda:80" if entry.since <= 80 else "cuda:90"


def _both(program: LaneProgram, arguments: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
    """The arrays after the GPU and after the simulator."""
    gpu = {name: value.copy() for name, value in arguments.items()}
    sim = {name: value.copy() for name, value in arguments.items()}
    run_on_gpu(program, 1, gpu)
    run(program, 1, sim)
    return gpu, sim


def _same(gpu: dict[str, Array], sim: dict[str, Array]) -> None:
    for name, value in sim.items():
        wrong = ~equal_bits(gpu[name], value)
        if wrong.any():
            where = np.argwhere(wrong)[0]
            place = tuple(where)
            raise AssertionError(
                f"{name}: {wrong.sum()} of {wrong.size} differ; at {place} the GPU has {gpu[name][place]!r}, "
                f"the meaning says {value[place]!r}"
            )


def _outputs(entry: Instruction, warps: int = 1) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {f"{r.name}_out": random_operand(rng, r.elem, (32 * warps, r.count), True) for r in entry.results}


@pytest.mark.parametrize("entry", PLAIN, ids=lambda i: i.name)
def test_on_registers(entry: Instruction) -> None:
    program = on_registers(entry, _target(entry))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        given = {o.name: patterns(rng, o.elem, (32, o.count)) for o in entry.operands}
        if entry.name.startswith("shfl"):
            given["b"] = rng.integers(0, 32, given["b"].shape, np.int32)
        _same(*_both(program, {**given, **_outputs(entry)}))


@pytest.mark.parametrize("entry", PRODUCTS, ids=lambda i: i.name)
def test_products_of_whole_numbers_are_exact(entry: Instruction) -> None:
    rng = np.random.default_rng(1)
    given = {o.name: random_operand(rng, o.elem, (32, o.count), True) for o in entry.operands}
    _same(*_both(on_registers(entry, _target(entry)), {**given, **_outputs(entry)}))


def _close(entry: Instruction, gpu: Array, sim: Array) -> None:
    """Within what a tensor core may lose: sums are kept in f32 or a little less, fp8 products in fewer bits."""
    acc = entry.params["accumulator"]
    kind = entry.params["types"][0]
    if acc == "i32" or acc == "f64":
        tolerance = 0.0 if acc == "i32" else 1e-14
    else:
        tolerance = 2e-3 if kind.startswith("e") or acc == "f16" else 2e-6
    error = np.abs(gpu.astype(np.float64) - sim.astype(np.float64)).max()
    scale = np.abs(sim.astype(np.float64)).max()
    assert error <= tolerance * scale, f"error {error:.3g} with values up to {scale:.3g}: {error / scale:.3g}"


@pytest.mark.parametrize("entry", PRODUCTS, ids=lambda i: i.name)
def test_products_of_random_numbers_are_close(entry: Instruction) -> None:
    rng = np.random.default_rng(2)
    given = {o.name: random_operand(rng, o.elem, (32, o.count), False) for o in entry.operands}
    gpu, sim = _both(on_registers(entry, _target(entry)), {**given, **_outputs(entry)})
    _close(entry, gpu["d_out"], sim["d_out"])


@pytest.mark.parametrize("entry", MOVES, ids=lambda i: i.name)
def test_matrices_move_as_the_table_says(entry: Instruction) -> None:
    rng = np.random.default_rng(3)
    given: dict[str, Array] = {
        "memory": rng.integers(0, 1 << 30, 1024, np.int32),
        "rows": rng.permutation(256)[:32].astype(np.int32),
        "after": np.zeros(1024, np.int32),
    }
    for o in entry.operands:
        if o.name == "value":
            given["value"] = patterns(rng, o.elem, (32, o.count))
    outputs = _outputs(entry)
    _same(*_both(moves(entry, _target(entry)), {**given, **outputs}))


def _layout_strides(trans: bool, swizzle: int) -> tuple[int, int]:
    """Leading and stride distances of matrices stored tile after tile, 8 lines of `swizzle` bytes each."""
    return (1024, 128) if swizzle == 16 else (4096, 8 * swizzle)


@pytest.mark.parametrize("swizzle", [128, 32])
@pytest.mark.parametrize("entry", TRIED, ids=lambda i: i.name)
def test_products_of_four_warps(entry: Instruction, swizzle: int) -> None:
    """Any descriptor names some bytes: both sides have to find the same ones."""
    if swizzle != 128 and entry.shape[1] not in (8, 64, 256):
        pytest.skip("the swizzle is tried on three widths")
    leading, stride = _layout_strides(False, swizzle)
    bits = descriptor(0, leading, stride, swizzle)
    rng = np.random.default_rng(4)
    elem = next((o.elem for o in entry.operands if o.name == "a" and o.elem != "i64"), None) or {
        "bf16": "bf16", "f16": "f16", "tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "s8": "i8", "u8": "i8",
    }[entry.params["types"][0]]  # fmt: skip
    size = 4 if elem == "f32" else 2 if elem in ("f16", "bf16") else 1
    memory = random_operand(rng, elem, (BYTES // size,), True).view(np.int32)
    c = entry.results[0]
    given: dict[str, Array] = {"memory": memory, "c": random_operand(rng, c.elem, (128, c.count), True)}
    if c.elem == "i32":
        given["c"] //= 1 << 8
    if entry.params["registers"]:
        given["a"] = random_operand(rng, elem, (128, entry.operands[0].count), True)
    program = group_product(entry, _target(entry), bits, bits)
    _same(*_both(program, {**given, **_outputs(entry, 4)}))


@pytest.mark.parametrize("entry", REST, ids=lambda i: i.name)
def test_what_touches_memory_or_waits(entry: Instruction) -> None:
    """The table's own text on the GPU, and what means the same in the simulator."""
    if devices.current_device().capability < 90:
        pytest.skip("the programs are for capability 90")
    _target(entry)
    for here, there in zip(cases(entry.name, True), cases(entry.name, False), strict=True):
        run_on_gpu(here.program, here.grid, here.arguments)
        run(there.program, there.grid, there.arguments, Options(copies="earliest"))
        _same(_arrays(here.arguments), _arrays(there.arguments))


def _arrays(arguments: dict[str, Any]) -> dict[str, Array]:
    """All but tensor maps, which each side packs in its own way."""
    found = {name: value if isinstance(value, np.ndarray) else value.base for name, value in arguments.items()}
    return {name: value for name, value in found.items() if name != "map"}
