"""The table of element types against NumPy and ml_dtypes, which know the formats too."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import weft.language as tl
from weft.ops import BY_LANGUAGE, ELEMENTS, Element
from weft.ops.dtypes import DTYPES, SIGNATURE_DTYPES
from weft.ops.rounding import Array, round_to, toward_zero

FLOATS = [e for e in ELEMENTS.values() if e.is_float]


@pytest.mark.parametrize("element", FLOATS, ids=lambda e: e.name)
def test_formats(element: Element) -> None:
    info = ml_dtypes.finfo(DTYPES[element.name])
    assert (element.bits, element.mantissa, element.exponent) == (info.bits, info.nmant, info.nexp)
    assert element.largest == float(info.max)
    assert float(info.smallest_normal) == 2.0 ** (1 - element.bias)


@pytest.mark.parametrize("element", ELEMENTS.values(), ids=lambda e: e.name)
def test_sizes(element: Element) -> None:
    assert DTYPES[element.name].itemsize == element.bytes


def test_every_name_of_a_signature_is_a_type_of_the_language() -> None:
    assert BY_LANGUAGE.keys() == SIGNATURE_DTYPES.keys()
    for name, element in BY_LANGUAGE.items():
        assert tl.core.get_int_dtype(element.bits, name[0] == "i") if name[0] in "iu" else tl.dtype(name)


@pytest.mark.parametrize("element", [e for e in FLOATS if e.is_small], ids=lambda e: e.name)
@pytest.mark.parametrize("rounded", [round_to, toward_zero])
def test_small_floats_saturate(element: Element, rounded: Callable[[Array, str], Array]) -> None:
    """Every kind of them: float8_e4m3b11fnuz became NaN in the simulator where other targets saturated."""
    got = rounded(np.float32([1e5, -1e6, 3e38, 1.0]), element.name).astype(np.float64)
    np.testing.assert_array_equal(got, [element.largest, -element.largest, element.largest, 1.0])
