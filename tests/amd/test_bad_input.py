"""What a user is told of input that AMD's processors cannot take, whole."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.base import LaunchError, LayoutError, OptionError, Unsupported
from weft.compiler import GPUTarget
from weft.gluon import language as gl


@weft.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


ADD_ONE = weft.ASTSource(add_one, {"x": "*fp32", "n": "i32"}, {"BLOCK": 1024})


@pytest.mark.parametrize(
    ("target", "options", "kind", "text"),
    [
        (
            "hip:gfx942", {"num_warps": 32}, OptionError,
            "num_warps must be a power of 2 from 1 to 16 on hip:gfx942, whose warps have 64 lanes, got 32\n"
            "hint: 1, 2, 4, 8, 16",
        ),
        (
            "hip:gfx942", {"matrix_instr_nonkdim": 17}, LaunchError,
            "matrix_instr_nonkdim must be one of 0, 4, 16, 32, got 17",
        ),
        ("hip:gfx942", {"warp_size": 32}, OptionError, "warp_size must be 64 on hip:gfx942, got 32\nhint: 64"),
        (
            "hip:gfx1201", {"num_ctas": 2}, Unsupported,
            "error: a cluster of 2 blocks (num_ctas=2) is not supported on target hip:gfx1201\n"
            "hint: num_ctas > 1 not supported on hip:gfx1201: launch with num_ctas=1",
        ),
        (
            GPUTarget("hip", "gfx1201", 64), {}, Unsupported,
            "error: a warp of 64 threads is not supported on target hip:gfx1201\n"
            "hint: its warps have 32: GPUTarget('hip', 'gfx1201', 32)",
        ),
    ],
)  # fmt: skip
def test_options(target: Any, options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        weft.compile(ADD_ONE, target, options)
    assert str(caught.value) == text


@gluon.jit
def product(x, layout: gl.constexpr, width: gl.constexpr):
    a = gl.full([32, 32], 1.0, gl.float16, gl.DotOperandLayout(0, layout, width))
    b = gl.full([32, 32], 1.0, gl.float16, gl.DotOperandLayout(1, layout, width))
    gl.amd.rdna3.wmma(a, b, gl.zeros([32, 32], gl.float32, layout))


@pytest.mark.parametrize(
    ("layout", "width", "target", "said", "hint"),
    [
        (
            gl.amd.AMDMFMALayout(3, [16, 16, 16], True, [2, 2]), 4, "gfx1201",
            "is for 64 threads in a warp, and a warp has 32\n",
            "where a warp has 32 threads, the result of a matrix instruction is in AMDWMMALayout or "
            "NVMMADistributedLayout",
        ),
        (
            gl.amd.AMDWMMALayout(2, True, [2, 2]), 8, "gfx942",
            "is for 32 threads in a warp, and a warp has 64\n",
            "where a warp has 64 threads, the result of a matrix instruction is in AMDMFMALayout",
        ),
        (
            gl.amd.AMDWMMALayout(1, True, [2, 2]), 16, "gfx1201",
            "wmma.f32.16x16x16.f16.v8f32.v8f16.transposed does not divide the layout of the left operand: ",
            "use gl.DotOperandLayout(0, AMDWMMALayout(2, True, warps_per_cta, [16, 16, 16]), k_width), and that layout "
            "for the result: gl.convert_layout moves a tile to it",
        ),
    ],
)  # fmt: skip
def test_products_of_other_processors(layout: Any, width: int, target: str, said: str, hint: str) -> None:
    source = weft.ASTSource(product, {"x": "*fp32"}, {"layout": layout, "width": width})
    with pytest.raises(LayoutError) as caught:
        weft.compile(source, f"hip:{target}")
    text = str(caught.value)
    assert said in text and f"hint: {hint}\n" in text + "\n" and "test_bad_input.py" in text
