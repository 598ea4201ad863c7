"""Layouts as named constants at the beginning of a kernel: `blocked`, `shared`, `rows_of_blocked`.

A slice or an operand of a layout is written with that layout's name, so that the reader sees what belongs together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass

from weft.layouts import (
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    Layout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
)

STEMS: dict[type, str] = {
    BlockedLayout: "blocked",
    DistributedLinearLayout: "linear",
    SwizzledSharedLayout: "swizzled",
    NVMMASharedLayout: "shared",
    PaddedSharedLayout: "padded",
    SharedLinearLayout: "shared_linear",
}
"""What a layout of a class is called; vendors add theirs."""
PLACES: dict[type, str] = {}
"""Where a class of layouts is in `gl`, if not in `gl` itself; vendors fill it."""
OPERANDS = ("lhs", "rhs")


class Layouts:
    """The layouts of a file, by name, in the order in which they are defined."""

    def __init__(self, unused: Callable[[str], str]) -> None:
        self._unused = unused
        self._names: dict[Layout, str] = {}
        self.definitions: dict[str, str] = {}
        """What makes each, by its name."""

    def text(self, layout: Layout) -> str:
        """How a layout is written where it is used."""
        if isinstance(layout, SliceLayout):
            return f"gl.SliceLayout({layout.dim}, {self.text(layout.parent)})"
        name = self._names.get(layout)
        if name is None:
            definition = self._definition(layout)
            name = self._names[layout] = self._unused(self._stem(layout))
            self.definitions[name] = definition
        return name

    def _stem(self, layout: Layout) -> str:
        if isinstance(layout, DotOperandLayout):
            return f"{OPERANDS[layout.operand_index]}_{self.text(layout.parent)}"
        return STEMS.get(type(layout)) or type(layout).__name__.removesuffix("Layout").lower()

    def _definition(self, layout: Layout) -> str:
        if isinstance(layout, DotOperandLayout):
            parts = f"operand_index={layout.operand_index}, parent={self.text(layout.parent)}, k_width={layout.k_width}"
            return f"gl.DotOperandLayout({parts})"
        return f"gl.{PLACES.get(type(layout), '')}{type(layout).__name__}({arguments(layout)})"


def arguments(layout: Layout) -> str:
    """The arguments that make a layout."""
    assert is_dataclass(layout)
    parts = []
    for field in fields(layout):
        if not field.init:
            continue
        value = getattr(layout, field.name)
        if value == field.default or (field.name in ("cga_layout", "block_bases") and not value and _optional(layout)):
            continue
        parts.append(f"{field.name}={_plain(value)!r}")
    return ", ".join(parts)


def _optional(layout: Layout) -> bool:
    return not isinstance(layout, (DistributedLinearLayout, PaddedSharedLayout))


def _plain(value: object) -> object:
    """Lists in place of tuples, as Gluon's layouts are written."""
    return [_plain(v) for v in value] if isinstance(value, tuple) else value
