"""How operations are written: a table by the operation's name, which the families fill; and the error for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from weft.base import Unsupported
from weft.ir import span_of
from weft.layouts import Layout

__all__ = ["WORDS", "NoWord"]

TL = "language"
"""What is imported as `tl`: the language without layouts, for a name that Gluon does not have."""
HOMES: dict[str, str] = {}
"""The modules of Gluon in which functions and modules of one vendor are, by their names; vendors fill it."""
PRODUCTS: dict[type, str] = {}
"""The function that multiplies into a result of this class of layouts; vendors fill it."""
WHOLE: set[str] = set()
"""Vendors whose kernels can take a descriptor of the Triton language as one parameter; they enter themselves."""
OF_LAYOUTS: dict[type, Callable[[Any], str]] = {}
"""Such functions of which there are several: what is written, by the layout of the result; vendors fill it."""
COPIES: set[str] = {"ttg.async_copy_global_to_local"}
"""Operations that begin to fill shared memory; vendors add theirs."""
UNDER_WAY: dict[str, str] = {}
"""Operations whose product may be under way, with the function that makes any value one; vendors fill it."""

ABSORBED: dict[str, Callable[[Operation], bool]] = {}
"""Operations that the word of another one writes as well, by their names, where this holds; vendors fill it."""


@dataclass(frozen=True)
class Special:
    """Memory that is for something special: the module that has its layout, how that is written there, a name."""

    module: str
    text: str
    stem: str


SPECIAL: dict[tuple[str, Layout], Special] = {}
"""By the kind of its elements and its layout; vendors fill it."""

Word = Callable[[Any, Any], None]
"""Takes the writer and an operation."""
WORDS: dict[str, Word] = {}
"""What writes an operation."""


def writes(*names: str) -> Callable[[Word], Word]:
    """Enter a function that writes operations of these names."""

    def enter(word: Word) -> Word:
        for name in names:
            assert name not in WORDS, name
            WORDS[name] = word
        return word

    return enter


class NoWord(Unsupported):
    """Gluon has no word for an operation."""


def no_word(op: Operation, what: str = "", hint: str = "") -> NoWord:
    """The error for an operation, or for something about it."""
    return NoWord(
        f"writing `{op.name}`{' ' + what if what else ''} as Gluon source",
        span=span_of(op),
        hint=hint or "call to_gluon on the kernel without that line, and put what it does into the source by hand",
    )
