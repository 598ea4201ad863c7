"""Loads are copied ahead over atomics that tell the program nothing, and over inline assembly without effects; over
volatile loads they are not.
"""

from __future__ import annotations

import pytest

from weft.ir import parse_module
from weft.ir.gpu.ttg import AsyncCopyGlobalToLocalOp
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

from .test_share_stored import DOT, KERNEL

pytestmark = pytest.mark.usefixtures("copies_by_threads")
ASM = """
%s = tt.elementwise_inline_asm "ex2.approx.ftz.f32 $0, $1;"
    {constraints = "=r,r", packed_element = 1 : i32, pure = PURE} %t : tensor<64x64xf32> -> tensor<64x64xf32>
"""
ADD = """
%old = tt.atomic_rmw fadd, acq_rel, gpu, WHERE, %t, %all
    : (tensor<64x64x!tt.ptr<f32>>, tensor<64x64xf32>, tensor<64x64xi1>) -> tensor<64x64xf32>
%s = arith.addf %t, WHAT : tensor<64x64xf32>
"""
PLACES = """
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
"""


def copies(between: str) -> int:
    """How many copies the loop has; `between` makes %s of %t, the first product."""
    text = KERNEL.replace(PLACES, "").replace("    %k = tt.load", f"{PLACES}    %k = tt.load")
    text = text.replace(
        "    %k = tt.load", "    %all = arith.constant dense<true> : tensor<64x64xi1>\n    %k = tt.load"
    )
    first = "%t " + DOT.format("k", "q", "zero") + between
    text = text.replace("FIRST", first).replace("SECOND", "%d " + DOT.format("w", "q", "acc"))
    module = tile_pipeline(parse_module(text))
    gpu_pipeline(module, machine_of("cuda:90"), stages=3)
    return sum(isinstance(op, AsyncCopyGlobalToLocalOp) for op in module.walk())


@pytest.mark.parametrize("pure", [True, False])
def test_inline_assembly(pure: bool) -> None:
    """Two iterations before the loop, and one in it."""
    assert copies(ASM.replace("PURE", str(pure).lower())) == (3 if pure else 0)


@pytest.mark.parametrize(("what", "found"), [("%t", 3), ("%old", 0)])
def test_atomics(what: str, found: int) -> None:
    """Who reads what was there may wait for others."""
    assert copies(ADD.replace("WHERE", "%op").replace("WHAT", what)) == found


def test_atomics_where_the_loop_loads() -> None:
    text = ADD.replace("WHERE", "%ap").replace("WHAT", "%t")
    where = "\n%as = tt.bitcast %p : tensor<64x64x!tt.ptr<f16>> -> tensor<64x64x!tt.ptr<i16>>\n"
    where += "%ap = tt.bitcast %as : tensor<64x64x!tt.ptr<i16>> -> tensor<64x64x!tt.ptr<f32>>"
    assert copies(where + text) == 0


@pytest.mark.parametrize(("volatile", "found"), [(False, 3), (True, 0)])
def test_volatile_loads(volatile: bool, found: int) -> None:
    """What they load may say that the others may be loaded now."""
    load = f"""
    %one = tt.load %out {{isVolatile = {str(volatile).lower()}}} : !tt.ptr<f32>
    %ones = tt.splat %one : f32 -> tensor<64x64xf32>
    %s = arith.addf %t, %ones : tensor<64x64xf32>
    """
    assert copies(load) == found
