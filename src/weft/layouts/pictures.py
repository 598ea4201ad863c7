"""Pictures of layouts in notebooks: classes are given `_repr_html_` and `_repr_svg_`, and who can draw provides them.

Nothing here knows how to draw. The room that does, `weft.view`, says so by the entry point group `weft.pictures` of the
installed package, and is loaded when a notebook asks for the first picture.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

Draw = Callable[[Any], str | None]
KINDS = ("_repr_html_", "_repr_svg_")

_provided: dict[str, Draw] = {}


def provide(html: Draw, svg: Draw) -> None:
    """Draw pictures from now on; None stands for what cannot be drawn, of which the text is shown."""
    _provided.update(zip(KINDS, (html, svg)))


def install(*classes: type) -> None:
    """Give classes the methods that notebooks ask for."""
    for cls in classes:
        for kind in KINDS:
            setattr(cls, kind, _method(kind))


def _method(kind: str) -> Draw:
    def picture(self: Any) -> str | None:
        if not _provided:
            for entry in metadata.entry_points(group="weft.pictures"):
                entry.load()()
        draw = _provided.get(kind)
        return draw(self) if draw else None

    picture.__name__ = kind
    picture.__doc__ = "The picture that a notebook shows; None where there is none."
    return picture
