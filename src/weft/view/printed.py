"""Layouts in texts of other programs, as files have them (`weft layout show @layouts.txt#mma`).

A text has an expression as it would be typed; or definitions as at the top of layout IR, `#mma = #ttg.blocked<{...}>`;
or pictures as `triton-tensor-layout` prints them, after a line that names the attribute:

    Print layout attribute: #blocked = #ttg.blocked<{sizePerThread = [1, 2], ...}>
    [[T0:0, T0:1, T1:0, T1:1]
     ...

What stands for the layout is an expression again. Where picture and attribute are both there, they are compared.
"""

from __future__ import annotations

import re

from weft.base import LayoutError
from weft.layouts import Layout, LinearLayout, read_view

from .expressions import parse_layout

__all__ = ["expression_in"]

HEADER = re.compile(r"^Print layout attribute: (?:#(\w+) = )?(#.*)$", re.MULTILINE)
DEFINITION = re.compile(r"^\s*#(\w+) = (#\w+\.\w.*)$", re.MULTILINE)
PICTURE = re.compile(r"\s*(?:\[|Warp\d+:|Block:? ?\d+:|Offset:)")
ALIAS = re.compile(r"#(\w+)\b(?![.\w])")


def expression_in(text: str, name: str = "", where: str = "the text", lanes: int | None = None) -> str:
    """The expression that stands for a layout in a text; of several, the one with this name.

    `where` is what messages call the text, `lanes` the number of threads of a warp, for pictures that do not say it.

    >>> expression_in("#rows = #ttg.blocked<{...}>\\n")
    '#ttg.blocked<{...}>'
    """
    texts = _printed(text) or {key: (value, None) for key, value in _definitions(text).items()}
    if not texts and PICTURE.match(text):
        return repr(read_view(text, lanes))
    if not texts:
        if name:
            raise LayoutError(f"{where} defines no #{name}: it has no line `#{name} = #ttg. ...`")
        return text.strip()
    if not name and len(texts) > 1:
        names = ", ".join(f"#{key}" for key in texts)
        raise LayoutError(
            f"{where} has {len(texts)} layouts: {names}", hint=f"choose one of them: @FILE#{next(iter(texts))}"
        )
    name = name or next(iter(texts))
    if name not in texts:
        raise LayoutError(f"{where} has no layout #{name}; it has {', '.join(f'#{key}' for key in texts)}")
    attribute, picture = texts[name]
    return attribute if picture is None else _compared(name, attribute, picture, lanes)


def _printed(text: str) -> dict[str, tuple[str, str | None]]:
    """The (attribute, picture) of each layout that triton-tensor-layout printed, by name."""
    headers = list(HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)] * bool(headers)
    return {
        header[1] or f"layout{i}": (header[2].strip(), text[header.end() : end])
        for i, (header, end) in enumerate(zip(headers, ends, strict=True))
    }


def _definitions(text: str) -> dict[str, str]:
    """The layouts that are defined as at the top of layout IR, names in them put in."""
    texts: dict[str, str] = {}
    for name, value in DEFINITION.findall(text):
        texts[name] = ALIAS.sub(lambda found: texts.get(found[1], found[0]), value.strip())
    return texts


def _compared(name: str, attribute: str, picture: str, lanes: int | None) -> str:
    """The attribute for a tile of the picture's shape; the layout of the picture where the attribute is not known."""
    shown = read_view(picture, lanes)
    shape = tuple(shown.out_dims.values())
    try:
        layout = parse_layout(attribute, shape)
        linear = layout if isinstance(layout, LinearLayout) else _linear(layout, shape)
    except LayoutError:  # of another version of Triton, say: the picture tells what it is
        return repr(shown)
    if linear.has_in("lane") and lanes is None:
        shown = read_view(picture, linear.in_dims["lane"])
    if shown != linear:
        raise LayoutError(
            f"the picture of #{name} is not that of its attribute, {attribute}",
            hint="the attribute may have another meaning in that version of Triton: leave out its line",
        )
    return f"{attribute}.to_linear({list(shape)})"


def _linear(layout: Layout, shape: tuple[int, ...]) -> LinearLayout:
    return layout.to_linear(shape)
