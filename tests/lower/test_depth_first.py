"""What a block alone on its multiprocessor loads is used up some registers at a time; nothing moves over an effect."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import weft
import weft.language as tl
from kernels import load_cases
from kernels.case import copy_arguments
from kernels.running import for_weft
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Parameter, Value, verify
from weft.lower.depth_first import depth_first
from weft.machines import machine_of

CASES = load_cases("weft")
module = sys.modules["weft.lower.depth_first"]  # of which the room shows the pass alone


@weft.jit
def divergence(x, y, out, n, N: tl.constexpr):
    total = 0.0
    for start in range(0, n, N):
        i = start + tl.arange(0, N)
        a = tl.load(x + i, mask=i < n, other=1.0)
        b = tl.load(y + i, mask=i < n, other=1.0)
        total += tl.sum(b * (tl.log(b) - a))
    tl.store(out, total)


@weft.jit
def halves(x, y, out, n, N: tl.constexpr):
    """A store between the loads of two arrays: they may not change places with it."""
    i = tl.arange(0, N)
    a = tl.load(x + i, mask=i < n, other=1.0).to(tl.float32)
    tl.store(out + i, tl.log(a), mask=i < n)
    b = tl.load(y + i, mask=i < n, other=1.0).to(tl.float32)
    tl.store(out + N + i, tl.log(b) * a, mask=i < n)


def program_of(kernel: weft.JITFunction, warps: int, size: int) -> LaneProgram:
    types = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    return lane_program(ASTSource(kernel, types, {"N": size}, aligned), "sim:cuda:90", {"num_warps": warps})


@pytest.mark.parametrize(("warps", "before"), [(16, 2), (4, 16)])
def test_large_blocks_use_up_what_they_load(warps: int, before: int) -> None:
    """Of 16 loads of 16 bytes, one of each array comes before the first logarithm, so that both are on their way; all
    do in a small block, which is not alone."""
    ops = list(program_of(divergence, warps, 1024 * warps).body.walk())
    first = next(i for i, op in enumerate(ops) if op.name == "math.log")
    assert sum(op.operands[0].count for op in ops[:first] if op.name == "load") == before


def test_a_block_that_holds_more_than_it_has_registers_uses_up_what_it_loads() -> None:
    """Threads of 1,024 have 64 registers, and 31 too few for 8 words of each array, the sums, and a second block."""
    ops = list(program_of(divergence, 32, 32768).body.walk())
    first = next(i for i, op in enumerate(ops) if op.name == "math.log")
    assert sum(op.operands[0].count for op in ops[:first] if op.name == "load") == 2


@pytest.mark.parametrize(("kernel", "results"), [(divergence, 1), (halves, 2 * 16384)])
def test_results_are_the_same(kernel: weft.JITFunction, results: int) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.random(16384, np.float32) + 0.5 for _ in range(2))
    out = {target: np.zeros(results, np.float32) for target in ("cpu", "sim:cuda:90")}
    for target, found in out.items():
        kernel[(1,)](x, y, found, 16000, N=16384, num_warps=16, target=target)
    np.testing.assert_allclose(out["sim:cuda:90"], out["cpu"], rtol=1e-4)


def straight(count: int, between: Callable[[Builder, Value], object] | None = None, **load: object) -> LaneProgram:
    """Loads of two arrays, all of one first, and a sum of all products that is stored; in blocks of 512 threads."""
    body = Block((Value("i64", 1), Value("i64", 1)))
    program = LaneProgram("f", machine_of("cuda:90"), tuple(Parameter(n, "ptr", "f32") for n in "xy"), body, 16)
    b = Builder(body)
    thread = b.linear([4 * i for i in range(count)], lane=(16, 32, 64, 128, 256))
    x, y = (b.op("arith.addi", [p, b.op("arith.extui", [thread], "i64")], "i64") for p in body.arguments)
    space, more = str(load.pop("space", "global")), dict(load)
    first = b.load(space, x, "f32", **more)  # type: ignore[arg-type]
    if between is not None:
        between(b, x)
    product = b.op("arith.mulf", [first, b.load(space, y, "f32", **more)], "f32")  # type: ignore[arg-type]
    total = b.constant("f32", 0.0)
    for i in range(count):
        total = b.op("arith.addf", [b.rename(product, [i]), total], "f32")
    b.store("global", body.arguments[0], total)
    return program


def order_of(program: LaneProgram) -> list[tuple[str, int]]:
    """Loads, arithmetic and stores in their order, with the registers of each."""
    names = ("load", "arith.mulf", "arith.addf", "store")
    return [(op.name, (op.results or op.operands)[0].count) for op in program.body.ops if op.name in names]


def test_pieces_come_depth_first() -> None:
    program = straight(64)
    depth_first(program)
    verify(program)
    one = [("load", 1), ("load", 1), ("arith.mulf", 1), ("arith.addf", 1)]
    assert order_of(program) == [*one * 64, ("store", 1)]


def test_a_small_block_whose_threads_hold_more_than_they_have_registers() -> None:
    """Other blocks fit beside it, but not even one holds 512 words in 255 registers."""
    program = straight(256)
    program.warps = 4
    depth_first(program)
    verify(program)
    assert order_of(program)[:4] == [("load", 1), ("load", 1), ("arith.mulf", 1), ("arith.addf", 1)]


@weft.jit
def _merged(mean, count, squares, mean_b, count_b, squares_b):
    total = count + count_b
    sums = mean * count, mean_b * count_b
    middle = (sums[0] + sums[1]) / tl.maximum(total, 1.0)
    return middle, total, squares + sums[0] * mean + squares_b + sums[1] * mean_b - total * middle * middle


@weft.jit
def welford(x, y, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    mean, squares = tl.load(x + i, mask=i < n, other=0.0), tl.load(y + i, mask=i < n, other=0.0)
    count = tl.load(out + i, mask=i < n, other=0.0)
    mean, count, squares = tl.reduce((mean, count, squares), 0, _merged)
    tl.store(out, mean)
    tl.store(out + 1, squares)


def test_results_of_a_reduction_that_use_parts_of_each_other() -> None:
    """Of mean and variance the variance comes first: if all of the mean did, its parts were held for the variance."""
    ops = list(program_of(welford, 4, 16384).body.walk())
    first = next(i for i, op in enumerate(ops) if op.name == "arith.divf")
    assert sum(op.operands[0].count for op in ops[:first] if op.name == "load") <= 6


@pytest.mark.parametrize("count", [16, 24])
def test_what_two_blocks_have_room_for_stays(count: int) -> None:
    program = straight(count)
    before = list(program.body.ops)
    depth_first(program)
    assert program.body.ops == before


def test_the_machine_is_asked_for_its_registers() -> None:
    program = straight(24)
    program.machine = replace(program.machine, registers=program.machine.registers // 2)
    depth_first(program)
    assert order_of(program)[:4] == [("load", 1), ("load", 1), ("arith.mulf", 1), ("arith.addf", 1)]


@pytest.mark.parametrize("more", [{"space": "shared"}, {"volatile": True}])
def test_other_loads_stay(more: dict[str, object]) -> None:
    """Those of shared memory, which barriers order, and volatile ones."""
    program = straight(64, **more)
    before = order_of(program)
    depth_first(program)
    assert order_of(program) == before


def test_small_blocks_and_those_with_instructions_stay() -> None:
    small, multiplies = straight(64), straight(64, lambda b, x: b.add("instruction", [], (), {"isa": "mma"}))
    small.warps = 4
    for program in (small, multiplies):
        before = list(program.body.ops)
        depth_first(program)
        assert program.body.ops == before


def test_an_effect_between_is_a_wall() -> None:
    """What was loaded before it stays before it, and what comes after stays after."""
    program = straight(64, lambda b, x: b.store("global", b.rename(x, [0]), b.constant("f32", 0.0)))
    depth_first(program)
    verify(program)
    assert order_of(program)[:2] == [("load", 64), ("store", 1)]
    assert order_of(program)[2:5] == [("load", 1), ("arith.mulf", 1), ("arith.addf", 1)]


def always(monkeypatch: pytest.MonkeyPatch) -> list[LaneOp]:
    """Have every run with a load put depth first; gives the loads of which that was so."""
    answers, seen = itertools.cycle([True, True, False]), list[LaneOp]()
    written = module._Run.written

    def noted(self: module._Run, order: Sequence[module.Piece], kept: Sequence[LaneOp]) -> list[LaneOp]:
        found = written(self, order, kept)
        seen.extend(op for op in found if op.name == "load")
        return found

    monkeypatch.setattr(module, "LEAST_THREADS", 1)
    monkeypatch.setattr(module, "is_crowded", lambda words, program: next(answers))
    monkeypatch.setattr(module._Run, "written", noted)
    return seen


@pytest.mark.parametrize(
    "name", ["softmax", "layer_norm_forward_f16", "cast_float8_e4m3fn_to_float32", "unpack_int4", "join_split"]
)
def test_kernels_in_pieces(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    seen, case = always(monkeypatch), CASES[name]
    before = case.make_inputs()
    after = copy_arguments(before)
    arguments = {name: for_weft(value) for name, value in after.items()}
    monkeypatch.setattr(weft.knobs.compilation, "always_compile", True)  # another test may have compiled it, as it is
    weft.jit(case.kernel.fn)[case.grid](**arguments, **case.constexprs, **case.options, target="sim:cuda:80")
    case.check(before, after)
    assert seen
