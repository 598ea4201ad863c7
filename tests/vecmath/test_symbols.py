"""libdevice's names are all there, functions are defined once, and writing them costs little."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from vecmath.jit import compiled
from weft.backends.llvm import vecmath
from weft.backends.llvm.emit import Module
from weft.backends.llvm.values import FLOAT, VOID, const, vec
from weft.backends.nvidia.dialect import PTX
from weft.machines import machine_of

TABLE = Path(__file__).parents[3] / "shared" / "reference" / "libdevice.tsv"
ELEM = {"fp32": "float", "fp64": "double", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64"}


@pytest.mark.skipif(not TABLE.exists(), reason="the reference folder is not here")
def test_every_libdevice_function() -> None:
    for line in TABLE.read_text().splitlines()[1:]:
        _, _, args, symbol, result = line.split("\t")
        types = tuple(ELEM[a] for a in args.split(","))
        name, elem = vecmath.symbol_to_name[symbol]
        if symbol.startswith("__triton_hip"):  # one symbol for several types
            elem = next((t for t in types if t in ("float", "double")), types[0])
        found = vecmath.definition(name, elem)
        assert (found.args, found.result) == (types, ELEM[result]), line


@pytest.mark.parametrize("name", "exp exp2 log log2 sin cos tan sqrt rsqrt erf floor ceil tanh abs fma div pow".split())
def test_names_of_tl_math(name: str) -> None:
    assert vecmath.has(name, "float") and vecmath.has(name, "double")


def test_a_function_is_defined_once() -> None:
    module = Module()
    f = module.function("f", VOID, [])
    for lanes in (0, 4, 16, 4, 16):
        vecmath.call(f, "exp", [const(vec("float", lanes), 1.0)])
    f.ret()
    text = module.text()
    assert [text.count(f"@weft.exp.{suffix}(") for suffix in ("f32", "v4f32", "v16f32")] == [2, 3, 3]
    assert text.count("define internal") == 3


@pytest.mark.parametrize(("name", "elem"), [n for n in vecmath.names() if n[1] in ("float", "double")])
@pytest.mark.thinned(4)
def test_writing_is_quick(name: str, elem: str) -> None:
    best = math.inf
    for _ in range(3):
        module = Module()
        module.approximation = PTX(machine_of("cuda:90")).approximation  # of names that begin with `gpu.`
        f = module.function("f", VOID, [])
        found = vecmath.definition(name, elem)
        start = time.process_time()
        vecmath.call(f, name, [const(vec(e, 16), 1) for e in found.args])
        f.ret()
        module.text()
        best = min(best, time.process_time() - start)
    assert best < 0.02


def test_unknown_lanes_are_no_matter() -> None:
    """Widths that no register has."""
    for lanes in (3, 5, 24):
        module = Module()
        f = module.function("f", VOID, [])
        result = vecmath.call(f, "sin", [const(vec("float", lanes), 1.0)])
        assert result.type == vec("float", lanes)
    assert vecmath.call(f, "exp", [const(FLOAT, 1.0)]).type == FLOAT


INF, NAN = math.inf, math.nan
SPECIAL_VALUES = {
    "exp10": {0.0: 1.0, INF: INF, -INF: 0.0, NAN: NAN, 2.0: 100.0},
    "lgamma": {0.0: INF, 1.0: 0.0, 2.0: 0.0, -1.0: INF, -2.0: INF, INF: INF, -INF: INF, NAN: NAN},
    "tgamma": {
        0.0: INF,
        1.0: 1.0,
        2.0: 1.0,
        5.0: 24.0,
        -1.0: NAN,
        -2.0: NAN,
        INF: INF,
        -INF: NAN,
        NAN: NAN,
        300.0: INF,
    },
    "j0": {0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "j1": {0.0: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "y0": {0.0: -INF, -1.0: NAN, INF: 0.0, -INF: NAN, NAN: NAN},
    "y1": {0.0: -INF, -1.0: NAN, INF: 0.0, -INF: NAN, NAN: NAN},
    "cyl_bessel_i0": {0.0: 1.0, INF: INF, -INF: INF, NAN: NAN},
    "cyl_bessel_i1": {0.0: 0.0, INF: INF, -INF: -INF, NAN: NAN},
    "erfinv": {0.0: 0.0, 1.0: INF, -1.0: -INF, 1.5: NAN, NAN: NAN},
    "erfcinv": {0.0: INF, 1.0: 0.0, 2.0: -INF, -0.5: NAN, NAN: NAN},
    "normcdfinv": {0.0: -INF, 0.5: 0.0, 1.0: INF, 1.5: NAN, NAN: NAN},
}


@pytest.mark.parametrize("elem", ["float", "double"])
@pytest.mark.parametrize("name", SPECIAL_VALUES)
def test_special_values(name: str, elem: str) -> None:
    points = SPECIAL_VALUES[name]
    got = compiled(name, elem)(np.array([*points]))
    wanted = np.array([*points.values()])
    assert np.allclose(got, wanted, rtol=1e-6 if elem == "float" else 1e-14, atol=0, equal_nan=True), got


@pytest.mark.parametrize("elem", ["float", "double"])
def test_signs_of_zero(elem: str) -> None:
    minus = np.array([-0.0])
    odd = "sin tan asin atan sinh tanh asinh atanh expm1 log1p cbrt erf erfinv sinpi sqrt rint round floor trunc j1"
    for name in odd.split():
        got = compiled(name, elem)(minus)
        assert got[0] == 0 and np.signbit(got[0]), name
    assert compiled("tgamma", elem)(minus)[0] == -INF
