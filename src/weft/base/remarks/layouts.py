"""Remarks about layouts: which was chosen for a tile, which took its place, and which would if an author's might go.

Layouts are told as the text of layout IR has them, `#ttg.blocked<{...}>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .remark import Remark, Site, Wish, in_cycles

__all__ = ["LayoutChanged", "LayoutChosen", "LayoutKept", "LayoutsCompared"]


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
        wishes: dict[tuple[str, float | None], list[str]] = {}
        for wish in self.others:
            wishes.setdefault((wish.layout, wish.cycles), []).append(str(wish.site))
        lost = [f"{' and '.join(sites)} wanted {layout}{_more(cycles)}" for (layout, cycles), sites in wishes.items()]
        return "; ".join((text, *lost))


def _more(cycles: float | None) -> str:
    """What a layout that was not chosen would take more."""
    if cycles is None:
        return ""
    more = in_cycles(cycles)
    return ", which takes as long" if more.startswith("0 ") else f", which takes {more} more"


@dataclass(frozen=True)
class LayoutsCompared(Remark):
    """All layouts of a function, chosen together: what they cost, and what any other choice costs at least."""

    kind: ClassVar[str] = "layouts compared"
    choices: int
    """Groups of tiles, and operations, that have a choice."""
    candidates: int
    """Layouts that they have in all."""
    cycles: float
    """What accesses, conversions, reductions and work on elements take each warp, as far as layouts make a difference;
    iterations counted."""
    least: float
    """What no other choice takes less than; `cycles` if the search was exact."""

    @property
    def message(self) -> str:
        text = f"{self.choices} choices among {self.candidates} layouts take {in_cycles(self.cycles)} of each warp"
        is_exact = self.cycles - self.least <= 1e-9 * abs(self.cycles)
        return f"{text}; any other choice takes {'as many or more' if is_exact else f'{in_cycles(self.least)} or more'}"


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
