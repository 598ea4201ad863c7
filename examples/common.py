"""What the examples share: the description of one piece of work that `run.py` checks and times.

Every example file holds a kernel, a function that launches it on NumPy arrays, and `works()`, which yields a `Work` for
each size or type shown in the table. An example also runs alone:

    python examples/softmax.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)


@dataclass
class Work:
    """One line of the table: how to run it, what is right, and what others need for the same."""

    size: str
    run: Callable[[], object]
    """Launch the kernel on arrays allocated beforehand."""
    result: Callable[[], Array]
    """The array the kernel filled."""
    expected: Callable[[], Array]
    """The same in float64 by NumPy."""
    tolerance: float = 1e-5
    """Largest allowed |result - expected| / max(1, |expected|); 0 asks for equality."""
    numpy: Callable[[], object] | None = None
    """The work as a NumPy user would write it."""
    torch: Callable[[Any], Callable[[], object]] | None = None
    """Given the torch module, prepare tensors and return the work as a PyTorch user would write it."""
    bytes: float = 0
    flops: float = 0

    def error(self) -> float:
        """The largest error of the last run, relative where the value is large."""
        actual = self.result().astype(np.float64)
        expected = np.asarray(self.expected(), np.float64)
        if actual.shape != expected.shape:
            raise ValueError(f"result has shape {actual.shape}, expected {expected.shape}")
        if not np.array_equal(np.isfinite(actual), np.isfinite(expected)):
            return float("inf")
        finite = np.isfinite(expected)
        worst = np.abs(actual - expected)[finite] / np.maximum(1.0, np.abs(expected[finite]))
        return float(worst.max(initial=0.0))


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Normally distributed numbers of any type, the same in every run."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def to_torch(torch: Any, array: Array) -> Any:
    """The array as a tensor over the same memory (bf16 through its bits, which NumPy and PyTorch spell differently)."""
    if array.dtype == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def erf(x: Array) -> Array:
    """The error function in float64: SciPy's where installed, else Python's own, element by element."""
    try:
        from scipy import special
    except ModuleNotFoundError:
        from math import erf as scalar_erf

        return np.vectorize(scalar_erf, otypes=[np.float64])(x)
    result: Array = special.erf(x)
    return result


def main(path: str, works: Callable[[], Iterator[Work]]) -> None:
    """Run one example from the command line."""
    from run import report

    raise SystemExit(report({Path(path).stem: works}))
