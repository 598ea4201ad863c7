"""Tile IR as a user gives it; loaded when it is first asked for, with the compiler."""

from __future__ import annotations

import os

from weft import compiler
from weft.base import shortened

from .files import read_tile_ir


class IRSource(compiler.IRSource):
    """Tile IR: the path of a `.ttir` file, or its text.

    >>> @weft.jit
    ... def double(x):
    ...     tl.store(x, tl.load(x) * 2)
    >>> text = double.warmup(weft.like((1,), "fp32"), grid=(1,)).asm["ttir"]
    >>> kernel = weft.compile(IRSource(text))
    >>> x = np.full(1, 21, np.float32)
    >>> _ = kernel[(1,)](x)
    >>> x
    array([42.], dtype=float32)
    """

    @shortened
    def __init__(self, source: str | os.PathLike[str], name: str | None = None) -> None:
        text, path = read_tile_ir(source)
        super().__init__(text, name, path=path)
