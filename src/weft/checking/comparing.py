"""How near an output has to be to what is expected, by its type.

An element is right if |output - expected| <= atol * scale + rtol * |expected|, where the scale is the root mean square
of all that is expected. An absolute bound would take zeros for a softmax over many columns; this one does not. NaN and
infinities have to be where they are expected, integers and booleans have to be equal.

    float64            rtol 1e-9     atol 1e-10
    float32            rtol 1e-4     atol 1e-5     sums in another order, fast exponentials
    float16            rtol 2e-3     atol 1e-3     two roundings; one of the scale
    bfloat16           rtol 1.6e-2   atol 8e-3
    8 bits and fewer   two roundings of the type, and one of the scale

A product that uses `tf32`, which is the default of `tl.dot` on GPUs, needs more: TOLERANCE = 2e-3 in the reference.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .frames import Array

__all__ = ["Compared", "compared", "tolerance_of"]

TOLERANCES = {"float64": (1e-9, 1e-10), "float32": (1e-4, 1e-5), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 8e-3)}


@dataclass(frozen=True)
class Compared:
    """An output beside what is expected."""

    ok: bool
    text: str
    """What is wrong; "" where nothing is."""
    error: float
    """The largest error as a part of what is allowed; 1 or less is right, infinite where none is allowed."""
    wrong: int
    """Elements that are."""
    rtol: float
    atol: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an infinite error is null, as JSON has no number for it."""
        return {**asdict(self), "error": self.error if np.isfinite(self.error) else None}


def tolerance_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """(rtol, atol) of outputs of a type.

    >>> tolerance_of(np.dtype(np.float16)), tolerance_of(np.dtype(ml_dtypes.float8_e4m3fn)), tolerance_of(np.dtype(int))
    ((0.002, 0.001), (0.25, 0.125), (0.0, 0.0))
    """
    if dtype.name in TOLERANCES:
        return TOLERANCES[dtype.name]
    if dtype.kind in "iub":
        return 0.0, 0.0
    step = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    return 2 * step, step


def compared(output: Array, expected: Array, given: tuple[float, float] | None = None) -> Compared:
    """Compare an output; `given` takes the place of the tolerance of its type.

    >>> one = np.ones(4, np.float32)
    >>> compared(one * 1.00001, one).ok, compared(one * 1.5, one).text
    (True, 'element 0 is 1.5, expected 1.0; 4 of 4 elements are wrong')
    """
    rtol, atol = tolerance_of(expected.dtype) if given is None or expected.dtype.kind in "iub" else given
    if output.shape != expected.shape:
        text = f"its shape is {_shape(output)}, expected {_shape(expected)}"
        return Compared(False, text, np.inf, expected.size, rtol, atol)
    if output.dtype != expected.dtype:
        return Compared(
            False, f"its type is {output.dtype}, expected {expected.dtype}", np.inf, expected.size, rtol, atol
        )
    if expected.dtype.kind in "iub":
        wrong = output != expected
        error = np.where(wrong, np.inf, 0.0)
    else:
        error = _error(output.astype(np.float64), expected.astype(np.float64), rtol, atol)
        wrong = error > 1
    worst, count = float(error.max(initial=0.0)), int(np.count_nonzero(wrong))
    text = ""
    if count:
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        place = ", ".join(map(str, at)) if at else "0"
        text = f"element {place} is {output[at]}, expected {expected[at]}; {count} of {wrong.size} elements are wrong"
    return Compared(not count, text, worst, count, rtol, atol)


def _error(output: Array, expected: Array, rtol: float, atol: float) -> Array:
    """Each error as a part of what is allowed."""
    finite = np.isfinite(expected)
    same = (output == expected) | (np.isnan(output) & np.isnan(expected))
    values = np.abs(expected[finite])
    largest = values.max(initial=0.0)
    scale = largest * np.sqrt(np.mean((values / largest) ** 2)) if largest > 0 else 0.0
    with np.errstate(all="ignore"):
        allowed = atol * scale + rtol * np.abs(expected)
        error = np.abs(output - expected) / allowed
    bad = ~finite | ~np.isfinite(output) | (allowed == 0)
    found: Array = np.where(same, 0.0, np.where(bad, np.inf, error))
    return found


def _shape(array: Array) -> str:
    return "x".join(map(str, array.shape)) or "that of a number"
