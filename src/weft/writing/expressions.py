"""Text of a value, with what Gluon knows of it: its kind, its shape, the name of its layout."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.layouts import DistributedLayout

ATOM, POWER, UNARY, PRODUCT, SUM, SHIFT, AND, XOR, OR, COMPARED = range(10)
"""How tightly a text binds, as in Python; a text in parentheses or a call binds the most."""


@dataclass(frozen=True)
class Text:
    """A value as it is written. `number` is that of a constant, which takes kind, shape and layout of what it meets."""

    text: str
    kind: str
    shape: tuple[int, ...] = ()
    layout: DistributedLayout | None = None
    binds: int = ATOM
    number: int | float | bool | None = None
    spread: bool = False
    """Whether the value has this text only where Gluon makes a tile of a scalar, or a larger one of a smaller, itself:
    where it meets one of this shape."""
    inner: tuple[int, ...] | None = None
    """The shape that the text itself has, where it is to be spread."""
    begun: bool = False
    """Whether it is a product that may still be under way."""

    def within(self, binds: int) -> str:
        """The text where nothing binds it more tightly than that."""
        return f"({self.text})" if self.binds > binds else self.text

    def named(self, name: str) -> Text:
        """The same value under a name."""
        return replace(self, text=name, binds=ATOM, number=None, spread=False, inner=None)

    @property
    def is_tile(self) -> bool:
        """Whether it is one, and not a scalar."""
        return bool(self.shape)
