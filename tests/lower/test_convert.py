"""Every kind of conversion through the real lowering and the simulator, against what the layouts say."""

from __future__ import annotations

import random

import numpy as np
import pytest

from layouts.plans import filled, random_conversion
from weft.ir.lane import Block, LaneProgram, Parameter, Value, verify
from weft.layouts import LinearLayout
from weft.layouts.plan import machine_of
from weft.lower import finish
from weft.lower.context import Context
from weft.lower.convert import convert
from weft.sim import Options, run

DIMS = ("block", "warp", "lane", "register")


def numbers(c: Context, layout: LinearLayout) -> Value:
    """The flattened number of the element in each register."""
    flat = layout.flatten_outs()
    return c.coordinates(flat, next(iter(flat.out_dims)))


def program_of(src: LinearLayout, dst: LinearLayout, bits: int, target: str) -> LaneProgram:
    """Numbers in one layout, converted, and stored in the order (warp, lane, register)."""
    elem = f"i{bits}"
    body = Block((Value("i64", 1),))
    warps = src.in_dims["warp"]
    program = LaneProgram("convert", target, (Parameter("out", "ptr", elem),), body, warps)
    c = Context(program, machine_of(target))
    value = numbers(c, src)
    if elem != "i32":
        value = c.build.op("arith.trunci" if bits < 32 else "arith.extsi", [value], elem)
    result = convert(c, value, src, dst)
    count, size = dst.in_dims["register"], bits // 8
    lane = [count * size << i for i in range(5)]
    warp = [count * size << 5 + i for i in range(warps.bit_length() - 1)]
    offsets = c.build.op("arith.extsi", [c.build.linear([r * size for r in range(count)], lane, warp)], "i64")
    c.build.store("global", c.build.op("arith.addi", [body.arguments[0], offsets], "i64"), result)
    finish(program)
    verify(program)
    return program


def conversions() -> list[int]:
    """Seeds whose conversion stays within a block and fits 8, 16, 32 or 64 bits."""
    found = []
    for seed in range(900):
        src, _, bits, _ = random_conversion(seed)
        if src.in_dims["block"] == 1 and bits >= 8 and src.total_in_log <= 12:
            found.append(seed)
    return found[:240]


@pytest.mark.parametrize("seed", conversions())
def test_conversion(seed: int) -> None:
    src, dst, bits, target = random_conversion(seed)
    program = program_of(src, dst, bits, target)
    shape = tuple(dst.in_dims[d] for d in DIMS)
    out = np.zeros(int(np.prod(shape)), f"i{bits // 8}")
    order = random.Random(seed).choice(["forward", "backward"])
    report = run(program, 1, {"out": out}, Options(order=order))
    assert np.array_equal(out.reshape(shape), filled(dst).astype(out.dtype))
    passes = report["shared_load_wavefronts"] + report["shared_store_wavefronts"]
    assert passes == report["shared_ideal"], "bank conflicts"
