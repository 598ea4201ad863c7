"""The page of an explanation: one HTML file that needs nothing else. Its scripts draw it, from data that it holds.

The source stands on the left, with the share of the time that each line takes; beside it, for the line under the
pointer, is what was decided about it and what it does. A layout opens the layout page (`weft.view`), which is in the
file once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from weft.base import load

from .paged import page_data
from .record import Explanation

__all__ = ["page_html", "rendered"]

SCRIPTS = (
    *("parts.js", "python.js", "layouts.js"),  # what everything is made of
    *("summary.js", "source.js", "line.js", "pictures.js", "tables.js", "whatif.js"),  # the cards
    "app.js",
)


def page_html(explanation: Explanation) -> str:
    """The page of one explanation."""
    return rendered(explanation.kernel, [page_data(explanation)])


def rendered(
    title: str,
    explanations: Sequence[Mapping[str, Any]],
    alternatives: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> str:
    """The page with its data: what `page_data` made of explanations, and of alternatives what is said of each."""
    viewer: Any = load("weft.view")
    parts = {
        "@TITLE@": escape(title),
        "@STYLE@": _file("page.css"),
        "@SCRIPT@": "\n".join(_file(name) for name in SCRIPTS),
        "@DATA@": _json({"explanations": explanations, "alternatives": alternatives, **more}),
        "@VIEWER@": _json(viewer.render_viewer().split(viewer.DATA_MARK)),
    }
    return re.sub("|".join(parts), lambda match: parts[match.group()], _file("page.html"))


def _file(name: str) -> str:
    return (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """JSON that may stand in a script: no text in it can end the element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
