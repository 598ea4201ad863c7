"""2D blocks: the layouts and the meaning of each entry against NumPy, and the modules that have them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intel.test_spirv import _validator
from weft.backends.gpu import emit_llvm
from weft.backends.intel import SPIRV, checked, spirv
from weft.ir.lane import Block as LaneBlock, Builder, LaneProgram, Parameter, Value
from weft.machines import machine_of
from weft.sim import run
from weft.sim.intel.meaning import BlockError, unfit
from weft.targets.intel.blocks import INSTRUCTIONS_BY_NAME, PREFETCH, STORE, Block
from weft.targets.meaning import from_matrix, to_matrix

LANES = 16


class Surface:
    """Memory that an instruction sees: rows of elements behind an address."""

    def __init__(self, elements: np.ndarray[Any, Any]) -> None:
        self.bytes = np.ascontiguousarray(elements).view(np.uint8).reshape(-1).copy()

    def read(self, space: str, address: Any, width: int, active: Any) -> Any:
        at = np.where(active, address, 0)[..., None] + np.arange(width)
        assert (at < self.bytes.size).all() and (at >= 0).all(), "nothing is read outside of the surface"
        return np.where(active[..., None], self.bytes[at], 0).astype(np.uint8)

    def write(self, space: str, address: Any, data: Any, active: Any) -> None:
        at = (address[..., None] + np.arange(data.shape[-1]))[active]
        self.bytes[at] = data[active]


def outside_is_zero(matrix: np.ndarray[Any, Any], y: int, x: int, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """A block of a matrix, in plain Python."""
    block = np.zeros((rows, columns), matrix.dtype)
    for i in range(rows):
        for j in range(columns):
            if 0 <= y + i < matrix.shape[0] and 0 <= x + j < matrix.shape[1]:
                block[i, j] = matrix[y + i, x + j]
    return block


def operands(*numbers: int) -> list[np.ndarray[Any, Any]]:
    return [np.full((1, LANES, 1), n, np.int64 if i == 0 else np.int32) for i, n in enumerate(numbers)]


PLACES = [(0, 0), (3, 4), (-2, -8), (35, 60), (100, 0)]
"""(row, column) where blocks begin: inside of the surface, over each of its edges, and outside of it."""


@pytest.mark.parametrize("name", [n for n, e in INSTRUCTIONS_BY_NAME.items() if e.params["block"].kind != PREFETCH])
@pytest.mark.thinned(3)
def test_a_block_is_what_its_layout_says(name: str) -> None:
    entry = INSTRUCTIONS_BY_NAME[name]
    block: Block = entry.params["block"]
    rng = np.random.default_rng(len(name))
    matrix = rng.integers(1, 127, (40, 80)).astype(f"i{block.bytes}")
    width, height, pitch = 72 * block.bytes, 38, 80 * block.bytes
    for y, x in PLACES:
        surface = Surface(matrix)
        given = operands(0, width, height, pitch, x, y)
        layout = block.layout()
        if block.kind != STORE:
            (got,) = entry.run(*given, memory=surface)
            want = outside_is_zero(matrix[:height, :72], y, x, block.rows, block.columns * block.count)
            assert np.array_equal(got, from_matrix(want[None], layout))
            continue
        data = rng.integers(1, 127, (1, block.rows, block.columns)).astype(matrix.dtype)
        entry.run(*given, from_matrix(data, layout), memory=surface)
        want = matrix.copy()
        for i in range(block.rows):
            for j in range(block.columns):
                if 0 <= y + i < height and 0 <= x + j < 72:
                    want[y + i, x + j] = data[0, i, j]
        assert np.array_equal(surface.bytes.view(matrix.dtype).reshape(matrix.shape), want)


def test_blocks_are_within_their_limits_and_hold_each_element_once() -> None:
    for entry in INSTRUCTIONS_BY_NAME.values():
        block: Block = entry.params["block"]
        size, columns, rows, count = block.sizes
        assert size * columns * count <= 64 and rows <= (8 if block.kind == STORE else 32)
        layout = block.layout()
        assert layout.is_invertible() and layout.in_dims["lane"] == LANES
        elements = np.arange(block.rows * block.columns * count).reshape(1, block.rows, -1)
        assert np.array_equal(to_matrix(from_matrix(elements, layout), layout), elements)


def _program(entry: Any, further: int = 0) -> LaneProgram:
    """Load a block, and store what each lane has of it; or store a block of what lanes have loaded. The surface begins
    so many bytes further than its array."""
    body = LaneBlock((Value("i64", 1), Value("i64", 1)))
    b = Builder(body)
    src, out = body.arguments
    src = b.op("arith.addi", [src, b.constant("i64", further)], "i64") if further else src
    block: Block = entry.params["block"]
    elem, size = f"i{8 * block.bytes}", block.bytes
    surface = [b.constant("i32", n) for n in (72 * size, 38, 80 * size, 4, 3)]
    parameters = Parameter("src", "ptr", elem), Parameter("out", "ptr", elem)
    program = LaneProgram("block", machine_of("xpu:pvc"), parameters, body, warps=1)
    if block.kind == PREFETCH:
        b.instruction(entry.name, [src, *surface])
        return program
    count = (entry.operands[6] if block.kind == STORE else entry.results[0]).count
    place = b.linear([i * size for i in range(count)], [count * size << i for i in range(4)])
    places = b.op("arith.extsi", [place], "i64")
    if block.kind == STORE:
        held = b.load("global", b.op("arith.addi", [src, places], "i64"), elem)
        b.instruction(entry.name, [out, *surface, held])
        return program
    held = b.instruction(entry.name, [src, *surface], [(elem, count)]).result
    b.store("global", b.op("arith.addi", [out, places], "i64"), held)
    return program


@pytest.mark.parametrize("name", ["load_block2d.d16.8x16x2", "load_block2d.d8.32x16x4.transform",
                                  "load_block2d.d16.16x16x1.transpose", "store_block2d.d32.8x16x1"])  # fmt: skip
def test_blocks_are_simulated(name: str) -> None:
    entry = INSTRUCTIONS_BY_NAME[name]
    block: Block = entry.params["block"]
    matrix = np.zeros((40, 80), f"i{block.bytes}")
    matrix[:] = np.arange(matrix.size).reshape(matrix.shape) % 125
    layout = block.layout()
    if block.kind == STORE:
        held = np.arange(LANES * 8, dtype=np.int32).reshape(1, LANES, 8)
        run(_program(entry), 1, {"src": held.reshape(-1), "out": matrix})
        assert np.array_equal(matrix[3:11, 4:20], to_matrix(held, layout)[0])
        return
    out = np.zeros(LANES * layout.in_dims["register"], matrix.dtype)
    run(_program(entry), 1, {"src": matrix, "out": out})
    want = outside_is_zero(matrix[:38, :72], 3, 4, block.rows, block.columns * block.count)
    assert np.array_equal(out.reshape(1, LANES, -1), from_matrix(want[None], layout))


PART = ("load_block2d.d8.1x32x1", "load_block2d.d32.32x8x2", "load_block2d.d16.32x16x2.transform",
        "load_block2d.d8.16x32x1.transpose", "store_block2d.d16.8x16x1", "prefetch_block2d.d16.8x16x2")  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in PART else pytest.mark.slow) for n in INSTRUCTIONS_BY_NAME]
)
def test_modules_with_blocks_are_valid(name: str, tmp_path: Path) -> None:
    program = _program(INSTRUCTIONS_BY_NAME[name])
    code = spirv(emit_llvm(program, SPIRV(program.machine), True))
    assert "SPV_INTEL_2d_block_io" in checked(code).extensions
    if (validator := _validator()) is not None:
        file = tmp_path / "block.spv"
        file.write_bytes(code)
        done = subprocess.run([validator, "--target-env", "spv1.2", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("change", "why"), [
    ({"base": 32}, "its address 0x20 is no multiple of 64"),
    ({"width": 32}, "its rows have 32 bytes, not 64 to 16777216"),
    ({"width": 126}, "its rows have 126 bytes, which is no multiple of 4"),
    ({"height": 0}, "it has 0 rows, not 1 to 16777216"),
    ({"pitch": 72, "width": 64}, "its pitch is 72, which is no multiple of 16"),
    ({"width": 144}, "its rows have 144 bytes, more than its pitch, 128"),
    ({"x": 1}, "a block begins at byte 2 of a row, which is no multiple of 4"),
    ({}, ""),
])  # fmt: skip
def test_surfaces_that_the_hardware_does_not_take(change: dict[str, int], why: str) -> None:
    surface = {"base": 0, "width": 128, "height": 4, "pitch": 128, "x": 2, "y": 0, "size": 2} | change
    assert unfit(**surface) == why


def test_a_bad_surface_is_an_error_of_the_simulator() -> None:
    program = _program(INSTRUCTIONS_BY_NAME["load_block2d.d16.8x16x2"], further=16)
    with pytest.raises(BlockError, match="is no multiple of 64"):
        run(program, 1, {"src": np.zeros((41, 80), "i2"), "out": np.zeros(256, "i2")})
