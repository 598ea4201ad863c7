"""What one ldmatrix loads are the registers that are used together; whichever they are, the result is the same."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from xdsl.ir import Operation

from layouts.plans import filled, random_conversion
from lower.test_convert import DIMS, program_of
from weft.ir import parse_module
from weft.ir.gpu import layout_of
from weft.ir.lane import Block, LaneProgram
from weft.layouts.plan import machine_of, plan_conversion
from weft.layouts.plan.trip import Trip
from weft.lower import lower
from weft.lower.context import Context
from weft.lower.grouping import group_of_users, load_in_groups
from weft.sim import run

LOOP = """
#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %width = arith.constant dense<128> : tensor<128x1xi32, #row>
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #row}>>
    %j = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #row}>>
    %i1 = tt.expand_dims %i {axis = 1 : i32}
      : tensor<128xi32, #ttg.slice<{dim = 1, parent = #row}>> -> tensor<128x1xi32, #row>
    %j1 = tt.expand_dims %j {axis = 0 : i32}
      : tensor<128xi32, #ttg.slice<{dim = 0, parent = #row}>> -> tensor<1x128xi32, #row>
    %i2 = arith.muli %i1, %width : tensor<128x1xi32, #row>
    %i3 = tt.broadcast %i2 : tensor<128x1xi32, #row> -> tensor<128x128xi32, #row>
    %j3 = tt.broadcast %j1 : tensor<1x128xi32, #row> -> tensor<128x128xi32, #row>
    %at = arith.addi %i3, %j3 : tensor<128x128xi32, #row>
    %base = tt.splat %p : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>, #row>
    %place = tt.addptr %base, %at : tensor<128x128x!tt.ptr<f32>, #row>, tensor<128x128xi32, #row>
    %x = tt.load %place : tensor<128x128x!tt.ptr<f32>, #row>
    %y = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> (tensor<128x128xf32, #row>)  : i32 {
      %w = ttg.convert_layout %v : tensor<128x128xf32, #row> -> tensor<128x128xf32, #column>
      %w2 = arith.addf %w, %w : tensor<128x128xf32, #column>
      %u = ttg.convert_layout %w2 : tensor<128x128xf32, #column> -> tensor<128x128xf32, #row>
      scf.yield %u : tensor<128x128xf32, #row>
    }
    tt.store %place, %y : tensor<128x128x!tt.ptr<f32>, #row>
    tt.return
  }
}"""


def conversions(text: str) -> list[Operation]:
    return [op for op in parse_module(text).walk() if op.name == "ttg.convert_layout"]


def test_a_loop_of_conversions_loads_what_the_next_one_stores() -> None:
    """Through the operations between them, and from one iteration of the loop to the next."""
    context = Context(LaneProgram("k", machine_of("cuda:90"), (), Block(()), 4))
    there, back = conversions(LOOP)
    for op in (there, back):
        src, dst = layout_of(op.operands[0].type), layout_of(op.results[0].type)
        how = plan_conversion(src, dst, (128, 128), 32, context.machine).stages[-1].how
        assert isinstance(how, Trip) and how.load.instruction == "ldmatrix.x4"
        group = group_of_users(context, op.results[0], 32)
        assert len(group) == 2 and group != how.load.registers[:2]
        assert load_in_groups(how, group).load.registers[:2] == group


def test_a_loop_of_conversions_runs() -> None:
    x = np.random.default_rng(0).integers(-8, 8, (128, 128)).astype(np.float32)
    out = x.copy()
    report = run(lower(parse_module(LOOP)), 1, {"p": out, "n": 3})
    assert np.array_equal(out, 8 * x)
    assert report["shared_load_wavefronts"] + report["shared_store_wavefronts"] == report["shared_ideal"]


def test_no_conversion_no_group() -> None:
    context = Context(LaneProgram("k", machine_of("cuda:90"), (), Block(()), 4))
    (last,) = (op for op in parse_module(LOOP).walk() if op.name == "tt.load")
    assert group_of_users(context, last.results[0], 32)  # it goes into the loop
    there, _ = conversions(LOOP.replace("scf.yield %u", "scf.yield %v"))
    assert group_of_users(context, there.results[0], 32)
    (_, back) = conversions(LOOP.replace("scf.yield %u", "scf.yield %v"))
    assert group_of_users(context, back.results[0], 32) == ()


def matrix_loads() -> list[int]:
    found = []
    for seed in range(900):
        src, dst, bits, target = random_conversion(seed)
        if src.in_dims["block"] > 1 or bits < 8 or src.total_in_log > 12:
            continue
        plan = plan_conversion(src, dst, tuple(dst.out_dims.values()), bits, machine_of(target))
        how = plan.stages[-1].how if plan.stages else None
        if isinstance(how, Trip) and how.load.instruction.startswith("ldmatrix") and len(how.load.registers) > 3:
            found.append(seed)
    return found[:40]


@pytest.mark.parametrize("seed", matrix_loads())
@pytest.mark.thinned(2)
def test_any_group(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst, bits, target = random_conversion(seed)
    changed = []

    def shuffled(how: Trip, group: object) -> Trip:
        load = how.load
        word = load.vector - (int(load.instruction[-1]).bit_length() - 1)
        rest = list(load.registers[word:])
        random.Random(seed).shuffle(rest)
        found = load_in_groups(how, (*load.registers[:word], *rest[: load.vector - word]))
        same = dataclasses.replace(found, load=load) == how
        changed.append(same and sorted(found.load.registers) == sorted(load.registers))
        return found

    monkeypatch.setattr("weft.lower.convert.load_in_groups", shuffled)
    program = program_of(src, dst, bits, target, group=lambda bits: ())
    shape = tuple(dst.in_dims[d] for d in DIMS)
    out = np.zeros(int(np.prod(shape)), f"i{bits // 8}")
    run(program, 1, {"out": out})
    assert np.array_equal(out.reshape(shape), filled(dst).astype(out.dtype))
    assert changed and all(changed)
