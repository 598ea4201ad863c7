"""Arrays whose surroundings are watched.

x = Watched(np.arange(100, dtype=np.float32), misaligned=4)
kernel[(1,)](x.array, ...)
assert x.intact()               # no byte before or behind the array has changed
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LINE, ROOM = 64, 1024


class Watched:
    """An array at an address that is `misaligned` bytes more than a multiple of 64, between bytes that are known."""

    def __init__(self, values: Array, misaligned: int = 0) -> None:
        size = values.nbytes
        raw = np.empty(size + 2 * ROOM + LINE, np.uint8)
        start = -raw.ctypes.data % LINE
        self.whole = raw[start : start + size + 2 * ROOM]
        pattern = np.arange(ROOM, dtype=np.int64)
        self.before = (pattern * 37 + 11).astype(np.uint8)
        self.whole[:] = np.resize(self.before, self.whole.size)
        self.first, self.last = ROOM - LINE + misaligned, ROOM - LINE + misaligned + size
        self.around = self.whole.copy()
        self.array: Array = self.whole[self.first : self.last].view(values.dtype).reshape(values.shape)
        self.array[...] = values

    def intact(self) -> bool:
        """Whether the bytes around the array are what they were."""
        outside = np.ones(self.whole.size, bool)
        outside[self.first : self.last] = False
        return bool((self.whole[outside] == self.around[outside]).all())
