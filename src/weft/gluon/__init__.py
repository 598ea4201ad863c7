"""Gluon: kernels in which you choose where every element is.

    from weft import gluon
    from weft.gluon import language as gl

    @gluon.jit
    def copy(x, y, n, BLOCK: gl.constexpr, layout: gl.constexpr):
        i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
        gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)

    with weft.target("sim:cuda:80"):
        copy[(weft.cdiv(n, 1024),)](x, y, n, BLOCK=1024, layout=gl.BlockedLayout([1], [32], [4], [0]), num_warps=4)

A Gluon kernel is traced as a Triton kernel is, by the same frontend, to layout IR instead of tile IR.

types, memory     types with layouts; descriptors of shared memory
semantic          what operations mean
mismatch          errors about layouts, with pictures
language          the names of `gl`
nvidia, amd       descriptors made on the host

>>> @gluon.jit
... def double(x, layout: gl.constexpr):
...     i = gl.arange(0, 128, layout)
...     gl.store(x + i, gl.load(x + i) * 2)
>>> x = np.arange(128)
>>> _ = double[(1,)](x, gl.BlockedLayout([1], [32], [4], [0]), target="sim:cuda:80")
>>> x[:4]
array([0, 2, 4, 6])
"""

from __future__ import annotations

from typing import Any

from weft.base import load as _load
from weft.language.callable import constexpr_function
from weft.language.core import _aggregate as aggregate, must_use_result

__all__ = ["aggregate", "amd", "constexpr_function", "jit", "must_use_result", "nvidia"]

# What makes launches, and what takes arrays, is in rooms below this one: it is found when it is first asked for.
_BELOW = {"jit": "weft.runtime.gluon", "GluonJITFunction": "weft.runtime.gluon", "GluonASTSource": "weft.runtime.gluon"}


def __getattr__(name: str) -> Any:
    if name in _BELOW:
        value: Any = getattr(_load(_BELOW[name]), name)
    elif name in ("language", "nvidia", "amd"):
        value = _load(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
