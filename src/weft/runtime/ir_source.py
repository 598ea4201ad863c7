"""Tile IR as a user gives it; loaded when it is first asked for, with the compiler."""

from __future__ import annotations

import os

from weft import compiler

from .files import read_tile_ir


class IRSource(compiler.IRSource):
    """Tile IR: the path of a `.ttir` file, or its text."""

    def __init__(self, source: str | os.PathLike[str], name: str | None = None) -> None:
        text, path = read_tile_ir(source)
        super().__init__(text, name, path=path)
