"""Remarks about layouts: which was chosen for a tile, which took its place, and which would if an author's might go.

Layouts are told as the text of layout IR has them, `#ttg.blocked<{...}>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .remark import Remark, Site, Wish

__all__ = ["LayoutChanged", "LayoutChosen", "LayoutKept"]


@dataclass(frozen=True)
class LayoutChosen(Remark):
    """The layout of tiles that have to agree: operands and results of operations on elements, what a loop carries."""

    kind: ClassVar[str] = "layout"
    tile: str
    """The first of them, as the text of the IR has it: 64x32xf16."""
    variables: tuple[str, ...]
    """Their names in the source."""
    layout: str
    chosen_by: Site | None
    """The operation that wanted it; None if none asked for any layout, and it is the default."""
    others: tuple[Wish, ...]
    """Who wanted another one."""

    @property
    def message(self) -> str:
        names = f" ({', '.join(f'`{name}`' for name in self.variables)})" if self.variables else ""
        by = f"for {self.chosen_by}" if self.chosen_by is not None else "the default, as no operation asked for any"
        text = f"{self.tile}{names} has {self.layout}, {by}"
        return "; ".join((text, *(f"{wish.site} wanted {wish.layout}" for wish in self.others)))


@dataclass(frozen=True)
class LayoutChanged(Remark):
    """A layout that takes the place of another in the whole kernel."""

    kind: ClassVar[str] = "layout changed"
    tile: str
    before: str
    after: str
    why: str

    @property
    def message(self) -> str:
        return f"{self.tile} has {self.after} in the place of {self.before}: {self.why}"


@dataclass(frozen=True)
class LayoutKept(Remark):
    """A layout that the kernel's author chose, and what the compiler would take in its place."""

    kind: ClassVar[str] = "layout kept"
    tile: str
    layout: str
    better: str
    why: str
    """What the other layout would bring."""

    @property
    def message(self) -> str:
        return (
            f"{self.tile} keeps {self.layout}, as its author wrote it; relayout=True would make it {self.better}: "
            f"{self.why}"
        )
