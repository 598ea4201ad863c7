"""What the counter knows of shared memory: indices and masks that pass through it are known when they come back.

Nothing is run, so that most of what is written is not known; but a tile of addresses may change its layout by way
of shared memory, and where they point must then still be known.
"""

from __future__ import annotations

import numpy as np

from .values import Array


class Remembered:
    """Bytes of the shared memory of all blocks that are counted together, and which of them are known."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros(size, np.uint8)
        self.known = np.zeros(size, np.bool_)
        self._is_any_known = False

    def forget(self) -> None:
        """Something was written that may be anywhere."""
        if self._is_any_known:
            self.known[:] = self._is_any_known = False

    def write(self, flat: Array, active: Array, width: int, data: Array | None) -> None:
        """The bytes uint8 [..., width] to addresses [...], where active; None are not known."""
        if data is None and not self._is_any_known:
            return
        at = self._places(flat, active, width)
        if at is None:
            self.forget()
            return
        self.known[at] = data is not None
        if data is not None:
            self.data[at], self._is_any_known = data[active], True

    def read(self, flat: Array, active: Array, width: int) -> Array | None:
        """uint8 [..., width] with zeros where not active; None if any of it is not known."""
        if not self._is_any_known and active.any():
            return None
        at = self._places(flat, active, width)
        if at is None or not self.known[at].all():
            return None
        data = np.zeros((*active.shape, width), np.uint8)
        data[active] = self.data[at]
        return data

    def _places(self, flat: Array, active: Array, width: int) -> Array | None:
        """The bytes, [access, width]; None if there is one outside."""
        at: Array = flat[active][:, None] + np.arange(width)
        return None if at.size and (at.min() < 0 or at.max() >= len(self.data)) else at
