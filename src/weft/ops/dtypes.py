"""NumPy's types of elements, by the name in the IR and by the name in a signature.

>>> DTYPES["bf16"], SIGNATURE_DTYPES["u8"]
(dtype(bfloat16), dtype('uint8'))
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .elements import BY_LANGUAGE, ELEMENTS

DTYPES: dict[str, np.dtype[Any]] = {e.name: np.dtype(getattr(ml_dtypes, e.numpy, e.numpy)) for e in ELEMENTS.values()}
"""By the name of the element; integers as signed."""

SIGNATURE_DTYPES: dict[str, np.dtype[Any]] = {
    **{name: DTYPES[e.name] for name, e in BY_LANGUAGE.items()},
    **{f"u{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    "fp8e4b15": np.dtype(np.uint8),
}
"""By the name in a signature."""
