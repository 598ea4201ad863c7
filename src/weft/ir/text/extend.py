"""What other dialects add to the reader: `weft.ir.gpu` fills this in when it is imported.

Tile IR has no layouts, and compilations for the CPU need not load what reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

if TYPE_CHECKING:
    from .values import ValueReader

__all__ = ["EXTENSIONS"]


@dataclass
class Extensions:
    """Readers of types and attributes."""

    laid_type: Callable[[ValueReader, str], Attribute] | None = None
    """Reads the text of a type that names a layout, or of a kind of its own; BadType where it is none."""
    types: dict[str, Attribute] = field(default_factory=dict)
    """Types that are one word."""
    attributes: dict[str, Callable[[ValueReader, str], Attribute]] = field(default_factory=dict)
    """Reads what follows the name of an attribute."""


EXTENSIONS = Extensions()
