"""A recurrence over chunks of rows, the last one first, as in gradients of linear attention, for the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned, integers
from .specialized import simulated


@weft.jit
def recurrence(q, k, w, v, g, o, final, n, D: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):  # type: ignore[no-untyped-def]
    """u = g v - k h of each chunk, and h += q^T u / 8 - w^T u / 4 after it; each product's result is used at once."""
    rows, inner, columns = tl.arange(0, C), tl.arange(0, D), tl.arange(0, BV)
    h = tl.zeros((D, BV), tl.float32)
    for i in range(tl.cdiv(n, C) - 1, -1, -1):
        at = i * C + rows
        keep = at < n
        gate = tl.load(g + at, keep, 0.0)
        right = tl.load(v + at[:, None] * BV + columns[None, :], keep[:, None], 0.0)
        u = gate[:, None] * right.to(tl.float32)
        u -= tl.dot(tl.load(k + at[:, None] * D + inner[None, :], keep[:, None], 0.0), h.to(k.dtype.element_ty))
        tl.store(o + at[:, None] * BV + columns[None, :], u, keep[:, None])
        u = u.to(k.dtype.element_ty)
        left = tl.load(q + at[None, :] * D + inner[:, None], keep[None, :], 0.0)
        h += tl.dot((left * 0.5).to(left.dtype), u) * 0.25
        h -= tl.dot(tl.load(w + at[None, :] * D + inner[:, None], keep[None, :], 0.0), u) * 0.25
    tl.store(final + inner[:, None] * BV + columns[None, :], h)


@dataclass(frozen=True)
class Recurrence:
    """A recurrence whose buffers leave room for two blocks on a multiprocessor only if some tiles have one."""

    n: int = 360
    stages: int = 2
    warps: int = 4
    made_tensors: bool = True

    def arrays(self) -> list[Any]:
        """q, k, w, v and g: small whole numbers."""
        d, bv = 128, 32
        made = [integers(i, (self.n, size), DTYPES["bf16"], -1, 2) for i, size in enumerate((d, d, d, bv))]
        return [*made, integers(5, (self.n,), np.float32, 0, 2)]

    def run(self, options: Any = None, **more: Any) -> tuple[list[np.ndarray], Any]:
        """What each chunk has, and the state behind the first chunk; and the launch."""
        found = [aligned((self.n, 32), np.float32), aligned((128, 32), np.float32)]
        without = {} if self.made_tensors else {"made_tensors": False}
        made = simulated(
            recurrence, (1,), *self.arrays(), *found, self.n, D=128, BV=32, C=64,
            options=options, **{"num_warps": self.warps, "num_stages": self.stages, **without, **more},
        )  # fmt: skip
        return found, made
