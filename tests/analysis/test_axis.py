"""Facts along axes are sound: random integer programs, every claim compared with the numbers themselves."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue

import weft.ir.gpu  # noqa: F401  (reads layouts in texts)
from weft.analysis import AxisFacts, Facts
from weft.ir import Builder, i8, i32, i32_attr, i64, parse_module, tensor_of, tt

OPERATIONS: dict[str, tuple[Any, Any]] = {
    "add": (arith.AddiOp, lambda a, b: a + b),
    "sub": (arith.SubiOp, lambda a, b: a - b),
    "mul": (arith.MuliOp, lambda a, b: a * b),
    "and": (arith.AndIOp, lambda a, b: a & b),
    "or": (arith.OrIOp, lambda a, b: a | b),
    "xor": (arith.XOrIOp, lambda a, b: a ^ b),
    "min": (arith.MinSIOp, np.minimum),
    "max": (arith.MaxSIOp, np.maximum),
}


def holds(facts: Facts, values: np.ndarray) -> None:
    """AssertionError where a fact is not so."""
    values = np.atleast_1d(values)
    for axis in range(values.ndim):
        rows = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
        size = rows.shape[1]
        run, equal = min(facts.contiguity[axis], size), min(facts.constancy[axis], size)
        for row in rows:
            pieces = row.reshape(-1, run)
            assert (pieces == pieces[:, :1] + np.arange(run)).all(), ("contiguity", axis, facts)
            assert (pieces[:, 0] % facts.divisibility[axis] == 0).all(), ("divisibility", axis, facts)
            steady = row.reshape(-1, equal)
            assert (steady == steady[:, :1]).all(), ("constancy", axis, facts)
    if facts.value is not None:
        assert (values == facts.value).all()


def grown(rng: random.Random) -> list[tuple[SSAValue, np.ndarray, bool]]:
    """(value, its numbers, whether it is a predicate) of a random program."""
    b = Builder(Block())
    made: list[tuple[SSAValue, np.ndarray, bool]] = []
    for n in (16, 64):
        start = rng.choice([0, 0, 8, 24])
        made.append((b.make_range(start, start + n), np.arange(start, start + n), False))
    for _ in range(4):
        n = rng.choice([1, 2, 3, 4, 7, 8, 15, 16, 32, 48, 0, -16])
        made.append((b.constant(n, i32), np.asarray(n), False))
    for _ in range(30):
        value, numbers, predicate = rng.choice(made)
        kind = rng.randrange(9)
        if numbers.ndim == 0:
            shape = rng.choice([(16,), (64,), (16, 64)])
            made.append((b.splat(value, shape), np.broadcast_to(numbers, shape), predicate))
        elif kind == 0 and numbers.ndim == 1:
            axis = rng.randrange(2)
            made.append((b.expand_dims(value, axis), np.expand_dims(numbers, axis), predicate))
        elif kind == 1 and numbers.ndim == 2 and 1 in numbers.shape:
            shape = (16, 64)
            if all(s in (1, t) for s, t in zip(numbers.shape, shape, strict=True)):
                made.append((b.broadcast(value, shape), np.broadcast_to(numbers, shape), predicate))
        elif predicate:
            pairs = [m for m in made if m[1].shape == numbers.shape and not m[2]]
            if pairs:
                (x, p, _), (y, q, _) = rng.choice(pairs), rng.choice(pairs)
                made.append((b.select(value, x, y), np.where(numbers, p, q), False))
        else:
            other, there, _ = rng.choice([m for m in made if m[1].shape == numbers.shape and not m[2]])
            if kind < 5:
                name = rng.choice(list(OPERATIONS))
                op, meaning = OPERATIONS[name]
                result = meaning(numbers, there)
                if np.abs(result).max() < 1 << 30:
                    made.append((b.binary(op, value, other), result, False))
            elif kind == 5 and (there > 0).all() and (numbers >= 0).all():
                made.append((b.binary(arith.DivSIOp, value, other), numbers // there, False))
                made.append((b.binary(arith.RemSIOp, value, other), numbers % there, False))
            elif kind == 6 and there.min() >= 0 and there.max() < 8:
                made.append((b.binary(arith.ShRSIOp, value, other), numbers >> there, False))
                if np.abs(numbers << there).max() < 1 << 30:
                    made.append((b.binary(arith.ShLIOp, value, other), numbers << there, False))
            else:
                name = rng.choice(["slt", "sle", "sgt", "sge", "eq", "ne"])
                meaning = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal,
                           "eq": np.equal, "ne": np.not_equal}[name]  # fmt: skip
                made.append((b.cmpi(name, value, other), meaning(numbers, there), True))
    return made


@pytest.mark.parametrize("seed", range(400))
@pytest.mark.thinned(4)
def test_sound(seed: int) -> None:
    facts = AxisFacts()
    for value, numbers, _ in grown(random.Random(seed)):
        holds(facts.of(value), numbers)


def test_what_vectors_rest_on() -> None:
    """program * 1024 + range, below a multiple of 16: runs of 1024, and masks in runs of 16."""
    b = Builder(Block())
    start = b.binary(arith.MuliOp, b.constant(3, i32), b.constant(1024, i32))
    offsets = b.binary(arith.AddiOp, b.splat(start, (1024,)), b.make_range(0, 1024))
    facts = AxisFacts()
    assert facts.of(offsets).contiguity == (1024,)
    assert facts.of(offsets).divisibility == (1024,)
    mask = b.cmpi("slt", offsets, b.splat(b.constant(4000, i32), (1024,)))
    assert facts.of(mask).constancy == (32,)


def test_what_divides_is_asked_of_the_table() -> None:
    """Whatever row of the table of operations it is: x & -16, the smaller of two multiples, a quotient rounded up."""
    b, facts = Builder(Block()), AxisFacts()
    row = b.binary(arith.MuliOp, b.make_range(0, 64), b.splat(b.constant(48, i32), (64,)))
    for op, number, divisor in ((arith.AndIOp, -64, 64), (arith.MinSIOp, 40, 8), (arith.CeilDivSIOp, 4, 4)):
        of_number = b.splat(b.constant(number, i32), (64,))
        assert facts.of(b.binary(op, row, of_number)).divisibility == (divisor,), op
    one = b.splat(b.constant(7, i32), (64,))
    assert facts.of(b.binary(arith.MaxUIOp, one, one)) == Facts((1,), (1,), (64,), 7)


def test_rows_and_columns() -> None:
    """row[:, None] * 64 + column[None, :] is contiguous along its columns, each row begins at a multiple of 64."""
    b = Builder(Block())
    row = b.broadcast(b.expand_dims(b.make_range(0, 16), 1), (16, 64))
    column = b.broadcast(b.expand_dims(b.make_range(0, 64), 0), (16, 64))
    offsets = b.binary(arith.AddiOp, b.binary(arith.MuliOp, row, b.splat(b.constant(64, i32), (16, 64))), column)
    found = AxisFacts().of(offsets)
    assert found.contiguity == (1, 64) and found.divisibility[1] == 64


def test_a_conversion_changes_no_number() -> None:
    """Rows that are looked up are multiples of 16 in every layout: what vectors of a gathered product rest on."""
    text = """
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%p: !tt.ptr<i32>, %k: i32 {tt.divisibility = 16 : i32}) {
    %0 = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #a>
    %1 = tt.load %0 : tensor<128x!tt.ptr<i32>, #a>
    %2 = tt.splat %k : i32 -> tensor<128xi32, #a>
    %3 = arith.muli %1, %2 : tensor<128xi32, #a>
    %4 = ttg.convert_layout %3 : tensor<128xi32, #a> -> tensor<128xi32, #b>
    tt.return
  }
}"""
    (op,) = (op for op in parse_module(text).walk() if op.name == "ttg.convert_layout")
    assert AxisFacts().of(op.results[0]).divisibility == (16,)


def test_what_is_loaded_from_one_address_is_one_number() -> None:
    """The index of an embedding, for a row of it; not what another thread may write meanwhile."""
    text = """
tt.func public @k(%q: !tt.ptr<i32>) {
  %p = tt.splat %q : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c = arith.constant dense<16> : tensor<64xi32>
  %row = arith.divsi %i, %c : tensor<64xi32>
  %at = tt.addptr %p, %row : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %x = tt.load %at : tensor<64x!tt.ptr<i32>>
  %y = tt.load %at {isVolatile = true} : tensor<64x!tt.ptr<i32>>
  tt.return
}"""
    steady, volatile = (AxisFacts().of(op.results[0]) for op in parse_module(text).walk() if op.name == "tt.load")
    assert steady.constancy == (16,)
    assert volatile.constancy == (1,)


def _program(b: Builder) -> SSAValue:
    return b.create(tt.GetProgramIdOp, (), (i32,), {"axis": i32_attr(0)}).results[0]


def test_quotients_and_remainders_by_multiples() -> None:
    """Runs of 16 divided by half of a multiple of 32, which no one knows: runs of 16 equal and consecutive numbers."""
    b = Builder(Block())
    unknown = b.binary(arith.MuliOp, b.binary(arith.AddiOp, _program(b), b.constant(1, i32)), b.constant(32, i32))
    half = b.splat(b.binary(arith.DivSIOp, unknown, b.constant(2, i32)), (64,))
    offsets, facts = b.make_range(0, 64), AxisFacts()
    assert facts.of(b.binary(arith.DivSIOp, offsets, half)).constancy == (16,)
    assert facts.of(b.binary(arith.RemSIOp, offsets, half)).contiguity == (16,)


def test_shifts_and_masks_are_quotients_and_remainders() -> None:
    b = Builder(Block())
    offsets, facts = b.make_range(0, 64), AxisFacts()
    assert facts.of(b.binary(arith.ShRSIOp, offsets, b.constant(3, tensor_of((64,), i32)))).constancy == (8,)
    assert facts.of(b.binary(arith.AndIOp, offsets, b.constant(7, tensor_of((64,), i32)))).contiguity == (8,)
    rows = b.binary(arith.ShLIOp, b.splat(_program(b), (64,)), b.constant(4, tensor_of((64,), i32)))
    assert facts.of(b.binary(arith.AddiOp, rows, offsets)).divisibility == (16,)


def _checked(value: SSAValue, numbers: np.ndarray) -> None:
    holds(AxisFacts().of(value), numbers)


@pytest.mark.parametrize("less", [16, 32, 48])
def test_quotients_go_towards_zero(less: int) -> None:
    """-16 // 16 and -15 // 16 differ, and -16 % 16 is not one less than -15 % 16: no runs where something is taken."""
    b = Builder(Block())
    sixteen, numbers = b.constant(16, tensor_of((64,), i32)), np.arange(64) - less
    for offsets in (
        b.binary(arith.SubiOp, b.make_range(0, 64), b.constant(less, tensor_of((64,), i32))),
        b.binary(arith.AddiOp, b.make_range(0, 64), b.constant(-less, tensor_of((64,), i32))),
        b.binary(arith.SubiOp, b.make_range(0, 64), b.splat(_program(b), (64,))),  # of which `less` is one
    ):
        quotient = np.trunc(numbers / 16).astype(np.int64)
        _checked(b.binary(arith.DivSIOp, offsets, sixteen), quotient)
        _checked(b.binary(arith.RemSIOp, offsets, sixteen), numbers - 16 * quotient)


def _cast(b: Builder, kind: Any, value: SSAValue, to: Any) -> SSAValue:
    found = value.type
    op = kind(value, TensorType(to, found.get_shape()) if isinstance(found, TensorType) else to)
    b.block.add_op(op)
    return op.results[0]


def test_narrow_numbers_are_no_more_multiples_than_wide_ones() -> None:
    b = Builder(Block())
    _checked(_cast(b, arith.TruncIOp, b.make_range(0, 16), i8), np.arange(16))
    _checked(_cast(b, arith.TruncIOp, b.make_range(256, 512), i8), np.arange(256).astype(np.int8).astype(np.int64))


def test_numbers_without_a_sign() -> None:
    """-1 is large there, and its successor is 0."""
    b = Builder(Block())
    below = b.binary(arith.SubiOp, b.make_range(0, 16), b.constant(3, tensor_of((16,), i32)))
    _checked(_cast(b, arith.ExtUIOp, below, i64), (np.arange(16) - 3) % (1 << 32))
    _checked(_cast(b, arith.ExtUIOp, b.constant(-1, i32), i64), np.asarray((1 << 32) - 1))


def test_known_numbers_wrap_around() -> None:
    b = Builder(Block())
    big = b.constant(1 << 30, i32)
    _checked(b.binary(arith.AddiOp, big, big), np.asarray(-(1 << 31)))
    _checked(b.binary(arith.MuliOp, big, b.constant(6, i32)), np.asarray(-(1 << 31)))
    _checked(b.binary(arith.MuliOp, b.constant(48, i8), b.constant(48, i8)), np.asarray(0))


def test_either_of_two_tiles() -> None:
    """Consecutive numbers or the same ones: what divides the first of a run divides no other of it."""
    both = Facts((64,), (64,), (1,)) | Facts((1,), (64,), (64,))
    for numbers in (np.arange(64, 128), np.full(64, 64)):
        holds(both, numbers)
    holds(Facts((8,), (16,), (1,)) | Facts((4,), (32,), (1,)), np.concatenate([16 + np.arange(8), 64 + np.arange(8)]))


CONTROL = """
module {{
  tt.func public @k(%n: i32, %c: i1, %a: i32 {{tt.divisibility = 16 : i32}}, %b: i32) {{
    %zero = arith.constant {lower} : i32
    %step = arith.constant {step} : i32
    scf.for %i = %zero to %n step %step : i32 {{
      %t = tt.splat %i : i32 -> tensor<16xi32>
    }}
    %x = scf.if %c -> (i32) {{
      scf.yield {first} : i32
    }} else {{
      scf.yield {second} : i32
    }}
    %u = tt.splat %x : i32 -> tensor<32xi32>
    tt.return
  }}
}}"""


def _of_control(shape: int, **texts: object) -> int:
    """What is known to divide a number out of a loop (of the shape 16) or out of a branch (32)."""
    given = {"lower": 0, "step": 16, "first": "%a", "second": "%a", **texts}
    splats = [op for op in parse_module(CONTROL.format(**given)).walk() if op.name == "tt.splat"]
    (value,) = (op.results[0] for op in splats if op.results[0].type.get_shape() == (shape,))  # type: ignore[attr-defined]
    return AxisFacts().of(value).divisibility[0]


@pytest.mark.parametrize(("lower", "step", "divisor"), [(0, 16, 16), (0, 4, 4), (0, 6, 2), (8, 32, 8), (5, 16, 1)])
def test_a_loop_counts_from_its_start_by_its_step(lower: int, step: int, divisor: int) -> None:
    assert _of_control(16, lower=lower, step=step) == divisor


@pytest.mark.parametrize(("first", "second", "divisor"), [("%a", "%a", 16), ("%a", "%b", 1), ("%b", "%a", 1)])
def test_of_a_branch_is_known_what_both_sides_have(first: str, second: str, divisor: int) -> None:
    assert _of_control(32, first=first, second=second) == divisor
