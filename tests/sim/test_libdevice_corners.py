"""libdevice in the simulator gives what the library gives that GPU code is made of, at the ends of the types too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft.runtime.simulate  # noqa: F401  # gives the simulator the library
from weft.backends.llvm import evaluate, vecmath
from weft.sim import libdevice

DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}
SYMBOLS = sorted(s for s in vecmath.symbol_to_name if s.startswith("__nv_"))
Array = np.ndarray[Any, Any]


def ends(elem: str) -> Array:
    """Values where functions differ: zeros, infinities, NaN, the least and the greatest numbers, halves."""
    dtype = DTYPES[elem]
    if elem.startswith("i"):
        i = np.iinfo(dtype)
        return np.array([0, 1, -1, 2, -2, 3, 7, 31, i.max, i.min, i.max - 1, i.min + 1, 1 << 24], dtype)
    f = np.finfo(dtype)
    positive = [0.0, np.inf, f.smallest_subnormal, f.tiny, f.max, 1, 2, 3, 0.5, 1.5, 2.5, 5.3, 0.99, 36, 1e10]
    values = [*positive, 2.0**31, 2.0**32, 2.0**63]
    return np.array([*values, *(-v for v in values), np.nan], dtype)


def operands(symbol: str, count: int = 400) -> list[Array]:
    """Every value of one argument; of several, drawn."""
    name, elem = vecmath.symbol_to_name[symbol]
    tables = [ends(e) for e in vecmath.definition(name, elem).args]
    if len(tables) == 1:
        return tables
    rng = np.random.default_rng(0)
    drawn = [rng.choice(t, count) for t in tables]
    if name in ("jn", "yn"):
        drawn[0] %= 8
    return drawn


@pytest.mark.parametrize("symbol", SYMBOLS)
@np.errstate(all="ignore")
@pytest.mark.thinned(3)
def test_as_in_the_library(symbol: str) -> None:
    given = operands(symbol)
    library = evaluate.find(symbol)
    assert library is not None
    wanted = library(given)
    found = libdevice.run(symbol, given, wanted.dtype)
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind == "i":
        np.testing.assert_array_equal(found, wanted)
        return
    rtol = 1e-6 if wanted.dtype == np.float32 else 4e-15
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), np.signbit(wanted) & ~np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=float(np.finfo(wanted.dtype).tiny))
