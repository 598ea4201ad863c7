"""Why a kernel was compiled again: which arguments were of another class than before, and at which launch.

    print(kernel.explain_recompiles())

Each compilation is compared with the earlier one that it differs least from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .noted import Noted

__all__ = ["Changed", "Recompile", "Recompiles", "recompiles_of"]

DIVISORS = {"D": "a multiple of 16", "8": "a multiple of 8", "4": "a multiple of 4", "": "no multiple of a vector"}


@dataclass(frozen=True)
class Changed:
    """An argument, option or target that was another: its values, and what code depends on of them."""

    name: str
    before: str
    after: str
    before_class: str = ""
    after_class: str = ""

    def __str__(self) -> str:
        before, after = (f"{v} ({c})" if c else v for v, c in self._pairs)
        return f"`{self.name}` was {before} and is {after}"

    @property
    def _pairs(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.before, self.before_class), (self.after, self.after_class)


@dataclass(frozen=True)
class Recompile:
    """A compilation that was not the first: where it was asked for, and what was not as it had been."""

    file: str
    line: int
    changes: tuple[Changed, ...]

    def __str__(self) -> str:
        why = "; ".join(map(str, self.changes)) or "nothing that is noted: the kernel, or what it uses, was changed"
        return f"{self.file}:{self.line}: compiled again: {why}"


class Recompiles(tuple[Recompile, ...]):
    """All compilations but the first, in their order."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "it was not compiled more than once"


def recompiles_of(names: Sequence[str], compiled: Sequence[Noted]) -> Recompiles:
    """What each compilation has that none before it had."""
    found = []
    for number, now in enumerate(compiled):
        changes = [tuple(_changes(names, before, now)) for before in compiled[:number]]
        if changes:
            found.append(Recompile(now.file, now.line, min(changes, key=len)))
    return Recompiles(found)


def _changes(names: Sequence[str], before: Noted, now: Noted) -> Iterator[Changed]:
    if before.target != now.target:
        yield Changed("target", before.target, now.target)
    old, new = dict(before.options), dict(now.options)
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield Changed(name, old.get(name, "not given"), new.get(name, "not given"))
    rows = zip(names, before.values, now.values, before.classes, now.classes, strict=True)
    for name, value, now_value, kind, now_kind in rows:
        if kind != now_kind:
            yield Changed(name, value, now_value, _class(kind), _class(now_kind))


def _class(kind: tuple[Any, Any]) -> str:
    """A class in words.

    >>> _class(("i32", "8")), _class(("constexpr", 1)), _class(("*fp32", "D"))
    ('i32, a multiple of 8', 'the constant 1', '*fp32 at a multiple of 16')
    """
    name, known = kind
    if name == "constexpr":
        return f"the constant {known}"
    if not isinstance(known, str) or not isinstance(name, str):
        return str(name)
    if name.startswith("*"):
        return f"{name} at a multiple of 16" if "D" in known else f"{name} anywhere"
    return f"{name}, {DIVISORS.get(known, known)}" if name.startswith(("i", "u")) else name
