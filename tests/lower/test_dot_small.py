"""Products in the layouts of matrix instructions that are larger than the tiles: Triton writes them for M or N below
16 and 8. Lanes and registers then hold copies, and so does what the instruction gives."""

from __future__ import annotations

import numpy as np
import pytest

from lower.tile_text import launched, loaded, program_of, stored, tile

KIND = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32}
MMA = "#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = {}, instrShape = [16, 8]}}>"


def product(m: int, n: int, k: int, elem: str, out: str, warps: list[int], width: int) -> tuple[np.ndarray, np.ndarray]:
    mma = MMA.format(warps)
    layouts = {
        "mma": mma,
        "left": f"#ttg.dot_op<{{opIdx = 0, parent = {mma}, kWidth = {width}}}>",
        "right": f"#ttg.dot_op<{{opIdx = 1, parent = {mma}, kWidth = {width}}}>",
        "rows": "#ttg.blocked<{sizePerThread=[1, 1], threadsPerWarp=[2, 16], warpsPerCTA=[4, 1], order=[1, 0]}>",
    }
    a, b, c = tile((m, k), elem, "#left"), tile((k, n), elem, "#right"), tile((m, n), out, "#mma")
    body = f"""{loaded("a0", "a", (m, k), elem, "#rows")}{loaded("b0", "b", (k, n), elem, "#rows")}
    %a1 = ttg.convert_layout %a0 : {tile((m, k), elem, "#rows")} -> {a}
    %b1 = ttg.convert_layout %b0 : {tile((k, n), elem, "#rows")} -> {b}
    %zero = arith.constant dense<{"0" if out[0] == "i" else "0.0"}> : {c}
    %d = tt.dot %a1, %b1, %zero, inputPrecision = tf32 : {a} * {b} -> {c}
    %e = ttg.convert_layout %d : {c} -> {tile((m, n), out, "#rows")}{stored("e", "c", (m, n), out, "#rows")}"""
    program = program_of(layouts, [("a", elem), ("b", elem), ("c", out)], body)
    assert any("mma.sync" in op.attrs.get("isa", "") for op in program.body.walk())
    rng = np.random.default_rng(m + n + k)
    x, y = (rng.integers(-8, 9, s).astype(KIND[elem]) for s in ((m, k), (k, n)))
    found = np.zeros((m, n), KIND[out])
    launched(program, a=x, b=y, c=found)
    return found.astype(np.float64), x.astype(np.float64) @ y.astype(np.float64)


@pytest.mark.parametrize("warps", [[1, 4], [4, 1], [2, 2]], ids=str)
@pytest.mark.parametrize("shape", [(4, 16), (1, 64), (32, 1), (16, 4), (8, 2), (1, 1), (64, 64)], ids=str)
@pytest.mark.parametrize(
    ("elem", "out", "k", "width"), [("f16", "f32", 32, 2), ("f32", "f32", 16, 1), ("i8", "i32", 32, 4)]
)
@pytest.mark.thinned(4)
def test_tiles_that_are_smaller_than_the_instruction(
    shape: tuple[int, int], warps: list[int], elem: str, out: str, k: int, width: int
) -> None:
    found, wanted = product(*shape, k, elem, out, warps, width)
    assert np.array_equal(found, wanted)
