"""Pictures of layouts in notebooks: classes are given `_repr_html_`, and the room that can draw provides it.

A notebook keeps everything that an object shows of itself, so there is one picture, in HTML, and none as SVG besides.

Nothing here knows how to draw. The room that does, `weft.view`, says so by the entry point group `weft.pictures` of the
installed package, and is loaded when a notebook asks for the first picture.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

Draw = Callable[[Any], str | None]

_provided: list[Draw] = []


def provide(html: Draw) -> None:
    """Draw pictures from now on; None stands for what cannot be drawn, of which the text is shown."""
    _provided[:] = [html]


def install(*classes: type) -> None:
    """Give classes the method that notebooks ask for."""
    for cls in classes:
        cls._repr_html_ = _repr_html_  # type: ignore[attr-defined]


def _repr_html_(self: Any) -> str | None:
    """The picture that a notebook shows; None where there is none."""
    if not _provided:
        for entry in metadata.entry_points(group="weft.pictures"):
            entry.load()()
    return _provided[0](self) if _provided else None
