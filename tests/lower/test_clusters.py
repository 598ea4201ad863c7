"""Conversions between the blocks of a cluster: through the real lowering, in the simulator, and as PTX."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from layouts.plans import filled, random_conversion
from weft.ir.lane import Block, LaneOp, LaneProgram, Parameter, Value, verify
from weft.layouts import BlockedLayout, LinearLayout
from weft.layouts.plan import Machine, machine_of
from weft.lower import finish
from weft.lower.context import Context
from weft.lower.convert import convert
from weft.sim import Options, RaceError, count, run

DIMS = ("block", "warp", "lane", "register")


def program_of(src: LinearLayout, dst: LinearLayout, bits: int, machine: Machine | None = None) -> LaneProgram:
    """Numbers of elements in one layout, converted, and stored in the order (block, warp, lane, register)."""
    elem = f"i{bits}"
    body = Block((Value("i64", 1),))
    parameters = (Parameter("out", "ptr", elem),)
    machine = machine or machine_of("cuda:90")
    program = LaneProgram("convert", machine, parameters, body, src.in_dims["warp"], src.in_dims["block"])
    c = Context(program)
    flat = src.flatten_outs()
    value = c.coordinates(flat, next(iter(flat.out_dims)))
    if elem != "i32":
        value = c.build.op("arith.trunci" if bits < 32 else "arith.extsi", [value], elem)
    result = convert(c, value, src, dst)
    size = dst.in_dims["register"] * bits // 8
    steps = []
    for dim in ("lane", "warp", "block"):
        steps.append([size << i for i in range(dst.in_log(dim))])
        size *= dst.in_dims[dim]
    registers = [r * bits // 8 for r in range(dst.in_dims["register"])]
    offsets = c.build.op("arith.extsi", [c.build.linear(registers, *steps)], "i64")
    c.build.store("global", c.build.op("arith.addi", [body.arguments[0], offsets], "i64"), result)
    finish(program)
    verify(program)
    return program


def shape_of(layout: LinearLayout) -> tuple[int, ...]:
    """Of all that the threads of a cluster hold."""
    return tuple(layout.in_dims[d] for d in DIMS)


def conversions() -> list[int]:
    """Seeds of conversions in clusters."""
    found = []
    for seed in range(1300):
        src, _, bits, _ = random_conversion(seed)
        if src.in_dims["block"] > 1 and 8 <= bits <= 64 and src.total_in_log <= 12 and src.in_dims["lane"] == 32:
            found.append(seed)
    return found[:120]


def machine_for(seed: int, src: LinearLayout, bits: int) -> Machine | None:
    """The GPU itself, or one with little memory, where elements go in turns."""
    if seed % 2:
        return None
    matrix = bool(seed & 2)
    small = max(64, (bits // 8 << src.total_out_log) >> 3)
    whole = machine_of("cuda:90")
    loads, stores = "ldmatrix" * matrix, "stmatrix" * matrix
    return replace(whole, name="small", matrix_loads=loads, matrix_stores=stores, shared_bytes=small)


@pytest.mark.parametrize("seed", conversions())
@pytest.mark.thinned(3)
def test_conversion(seed: int) -> None:
    """Every element where it belongs, no race, nobody ends too early; and the counter predicts what is counted."""
    src, dst, bits, _ = random_conversion(seed)
    program = program_of(src, dst, bits, machine_for(seed, src, bits))
    out = np.zeros(int(np.prod(shape_of(dst))), f"i{bits // 8}")
    report = run(program, 3, {"out": out}, Options(order=random.Random(seed).choice(["forward", "backward", "random"])))
    assert np.array_equal(out.reshape(shape_of(dst)), filled(dst).astype(out.dtype))
    counted = count(program, 3)
    assert counted.kinds == report.kinds
    for name in ("shared_load_wavefronts", "shared_store_wavefronts", "cluster_load_bytes", "barriers"):
        assert counted[name] == report[name], name


def barriers(program: LaneProgram) -> list[LaneOp]:
    """The barriers of the cluster, in order."""
    return [op for op in program.body.ops if op.name == "barrier" and op.attrs["scope"] == "cluster"]


ROWS = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0], [[1, 0]]).to_linear([64, 64])
COLUMNS = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0], [[0, 1]]).to_linear([64, 64])
COPIES = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0], [[0, 0]]).to_linear([64, 64])


def test_barriers_of_a_conversion() -> None:
    """One before the others' elements are read, and one at the end: a block's memory is there as long as the block."""
    program = program_of(ROWS, COLUMNS, 32)
    names = [(op.name, op.attrs.get("space", op.attrs.get("scope"))) for op in program.body.ops]
    names = [x for x in names if x[0] in ("load", "store", "barrier")]
    expected = [("store", "shared"), ("barrier", "cluster"), ("load", "cluster"), ("store", "global")]
    assert names == [*expected, ("barrier", "cluster")]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("pair", [(ROWS, COLUMNS), (ROWS, COPIES)])
def test_no_barrier_can_be_left_out(pair: tuple[LinearLayout, LinearLayout], which: int) -> None:
    program = program_of(*pair, 32)
    removed = barriers(program)[which]
    program.body.ops[:] = [op for op in program.body.ops if op is not removed]
    out = np.zeros(int(np.prod(shape_of(pair[1]))), "i4")
    text = "of block [01] of the cluster, which is not ordered" if which == 0 else "a block of a cluster may end"
    with pytest.raises(RaceError, match=text):
        run(program, 1, {"out": out})


def test_what_a_block_has_itself_is_not_fetched() -> None:
    """From copies in all blocks, each block takes its part of its own."""
    program = program_of(COPIES, ROWS, 32)
    assert not barriers(program)
    assert not any(op.attrs.get("space") == "cluster" for op in program.body.walk())
    out = np.zeros(int(np.prod(shape_of(ROWS))), "i4")
    run(program, 1, {"out": out})
    assert np.array_equal(out.reshape(shape_of(ROWS)), filled(ROWS))
