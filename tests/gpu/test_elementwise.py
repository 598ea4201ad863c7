"""Element-wise operations on the GPU against their meaning in the simulator, on corners and random bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sim.kit import Kit
from weft.ops.casts import FLOAT_PREDICATES, INTEGER_PREDICATES
from weft.ops.row import FLOATS as OF_FLOATS, FUNCTION, INTEGERS as OF_INTEGERS
from weft.ops.table import ROWS
from weft.sim import run
from weft.targets.instruction import Array
from weft.targets.meaning import DTYPES

from .isa import equal_bits, load, patterns, save
from .run import run_on_gpu

COUNT = 32
INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
SMALL = ("f8E4M3FN", "f8E5M2")
CORNERS = {
    **{f"i{n}": [0, 1, -1, 2, 7, -7, n - 1, n, n + 1, (1 << n - 1) - 1, -(1 << n - 1)] for n in (8, 16, 32, 64)},
    "float": [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, 65504.0, 65520.0, 1e-8],
}
IN_LANES = [row for row in ROWS.values() if not row.lane]
INTEGER = [row.name for row in IN_LANES if row.kind == OF_INTEGERS and row.arity == 2]
FLOAT = [row.name for row in IN_LANES if row.kind == OF_FLOATS and row.arity == 2]
EXACT = [row.name for row in IN_LANES if row.kind == OF_FLOATS and row.arity == 1 and row.cost != FUNCTION]
TRANSCENDENTAL = [row.name for row in IN_LANES if row.kind == OF_FLOATS and row.arity == 1 and row.cost == FUNCTION]
ULPS = {"f32": 4, "f64": 4, "f16": 1, "bf16": 1}
"""What docs/reference/math.md allows functions that are not exact."""


def _values(elem: str, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    values = patterns(rng, elem, (32, COUNT))
    corners = CORNERS.get(elem, CORNERS["float"])
    with np.errstate(over="ignore"):
        chosen = rng.choice(np.array(corners), (32, COUNT // 2))
        values[:, : COUNT // 2] = chosen.astype(DTYPES[elem])
    return values


def _both(name: str, given: list[tuple[str, Array]], result: str, **attrs: Any) -> tuple[Array, Array]:
    kit = Kit(*(f"x{i}:{elem}*" for i, (elem, _) in enumerate(given)), f"out:{result}*", target="cuda:90")
    operands = [load(kit, f"x{i}", COUNT, elem) for i, (elem, _) in enumerate(given)]
    save(kit, "out", kit.op(name, operands, result, **attrs))
    program = kit.program()
    found = []
    for runner in (run_on_gpu, run):
        arguments = {f"x{i}": values.copy() for i, (_, values) in enumerate(given)}
        arguments["out"] = np.zeros((32, COUNT), DTYPES[result] if result != "i1" else np.bool_)
        runner(program, 1, arguments)
        found.append(arguments["out"])
    return found[0], found[1]


def _agree(gpu: Array, sim: Array, given: list[tuple[str, Array]], ulps: Any = 0, but: Array | None = None) -> None:
    """Equal bits, or so many units of the last place apart; `but` says where nothing is asked."""
    if gpu.dtype == np.bool_:
        wrong = gpu != sim
    else:
        wrong = ~equal_bits(gpu, sim)
        if but is not None:
            wrong &= ~but
        if np.any(ulps) and wrong.any():
            a, b = gpu.astype(np.float64), sim.astype(np.float64)
            finfo = ml_dtypes.finfo(sim.dtype)
            with np.errstate(all="ignore"):
                one = np.maximum(np.abs(b) * float(finfo.eps), float(finfo.smallest_subnormal))
                wrong &= ~(np.abs(a - b) <= ulps * one)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        inputs = ", ".join(repr(values[where]) for _, values in given)
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size} differ; for {inputs} the GPU has {gpu[where]!r}, the meaning {sim[where]!r}"
        )


@pytest.mark.parametrize("elem", INTEGERS)
@pytest.mark.parametrize("name", INTEGER)
def test_integers(name: str, elem: str) -> None:
    given = [(elem, _values(elem, 1)), (elem, _values(elem, 2))]
    _agree(*_both(name, given, elem), given)


@pytest.mark.parametrize("elem", INTEGERS)
@pytest.mark.parametrize("predicate", INTEGER_PREDICATES)
def test_comparisons_of_integers(predicate: str, elem: str) -> None:
    given = [(elem, _values(elem, 1)), (elem, _values(elem, 2))]
    _agree(*_both("arith.cmpi", given, "i1", predicate=predicate), given)


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_comparisons_of_floats(predicate: str, elem: str) -> None:
    given = [(elem, _values(elem, 1)), (elem, _values(elem, 2))]
    _agree(*_both("arith.cmpf", given, "i1", predicate=predicate), given)


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", FLOAT)
def test_floats(name: str, elem: str) -> None:
    given = [(elem, _values(elem, 1)), (elem, _values(elem, 2))]
    exact = name.startswith("arith.") or name == "math.copysign"
    quotient = name == "arith.divf" and elem == "f32"  # div.full, as in Triton
    zeros = (given[0][1] == 0) & (given[1][1] == 0)
    either = zeros if "max" in name or "min" in name else None  # of -0.0 and 0.0 either
    _agree(*_both(name, given, elem), given, 2 if quotient else 0 if exact else ULPS[elem], either)


@pytest.mark.parametrize("scaled", [(), ("tiny",), ("huge",), ("tiny", "huge")])
def test_quotients_are_those_of_the_instruction(scaled: tuple[str, ...]) -> None:
    """`div.full` scales for every divisor; the bits are the same where there are none but those scaled for."""
    x, y = _values("f32", 1), _values("f32", 2)
    size = np.abs(y.astype(np.float64))
    y[((size < 2.0**-126) & ("tiny" not in scaled)) | ((size > 2.0**126) & ("huge" not in scaled))] = 3
    given = [("f32", x), ("f32", y)]
    found, _ = _both("arith.divf", given, "f32", scaled=scaled)
    expected, _ = _both("arith.divf", given, "f32")
    np.testing.assert_array_equal(found, expected)


def _flushed(name: str, elem: str, x: Array) -> Array | None:
    """Where sqrt and rsqrt in f32 take an input for zero, as in Triton: what has fewer bits than a normal number."""
    if name not in ("math.sqrt", "math.rsqrt") or elem not in ("f32", "bf16"):
        return None
    return np.asarray((np.abs(x.astype(np.float64)) < 2.0**-126) & (x != 0))


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_functions_that_are_exact(name: str, elem: str) -> None:
    given = [(elem, _values(elem, 1))]
    _agree(*_both(name, given, elem), given, 1 if name == "math.sqrt" else 0, _flushed(name, elem, given[0][1]))


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_functions(name: str, elem: str) -> None:
    given = [(elem, _values(elem, 1))]
    with np.errstate(all="ignore"):
        exponent = np.nan_to_num(np.abs(given[0][1].astype(np.float64)), posinf=0) if name == "math.exp" else 0
    # exp multiplies by log2(e) and rounds before ex2, as in Triton: the error grows with the exponent
    ulps = ULPS[elem] + (exponent if elem == "f32" else 0)
    _agree(*_both(name, given, elem), given, ulps, _flushed(name, elem, given[0][1]))


@pytest.mark.parametrize("source", [*FLOATS, *SMALL])
@pytest.mark.parametrize("result", [*FLOATS, *SMALL])
def test_conversions_of_floats(source: str, result: str) -> None:
    if source == result:
        pytest.skip("nothing to convert")
    bits = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
    name = "arith.extf" if bits.get(result, 8) > bits.get(source, 8) else "arith.truncf"
    if bits.get(result, 8) == bits.get(source, 8):
        pytest.skip("there is no single operation for types of one size")
    given = [(source, _values(source, 1))]
    _agree(*_both(name, given, result), given)


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("name", ["arith.sitofp", "arith.uitofp"])
def test_integers_to_floats(name: str, integer: str, elem: str) -> None:
    given = [(integer, _values(integer, 1))]
    _agree(*_both(name, given, elem), given)


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("name", ["arith.fptosi", "arith.fptoui"])
def test_floats_to_integers(name: str, integer: str, elem: str) -> None:
    given = [(elem, _values(elem, 1))]
    _agree(*_both(name, given, integer), given)
