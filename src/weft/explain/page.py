"""The page of an explanation: one HTML file that needs nothing else. Its scripts draw it, from data that it holds.

The source stands on the left, with the share of the time that each line takes; beside it, for the line under the
pointer, is what was decided about it and what it does. A layout opens the layout page (`weft.view`), which is in the
file once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from importlib import resources
from typing import Any

from weft.base import load

from .difference import Difference, told
from .paged import page_data
from .record import Explanation

__all__ = ["difference_data", "page_html", "pair_html", "rendered"]

SCRIPTS = (
    *("parts.js", "python.js", "layouts.js"),  # what everything is made of
    *("summary.js", "source.js", "line.js", "pictures.js", "tables.js", "whatif.js"),  # the cards
    "app.js",
)


def page_html(explanation: Explanation) -> str:
    """The page of one explanation."""
    return rendered(explanation.kernel, [page_data(explanation)])


def pair_html(difference: Difference) -> str:
    """The page of two explanations beside each other."""
    if difference.explanations is None:
        raise ValueError("a difference that does not hold its explanations has no page")
    before, after = map(page_data, difference.explanations)
    title = " -> ".join(dict.fromkeys(difference.kernels))
    return rendered(title, [before, after], pairs=_pairs(before, after), difference=difference_data(difference))


def difference_data(difference: Difference) -> list[dict[str, Any]]:
    """Changes as the page shows them."""
    rows = []
    for change in difference.changes:
        both = change.before, change.after
        row = {"where": change.where, "what": change.what, "before": told(both[0]), "after": told(both[1])}
        if isinstance(both[0], (int, float)) and isinstance(both[1], (int, float)) and both[0]:
            row["times"] = f"{both[1] / both[0]:.2f} times"
        rows.append(row)
    return rows


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The places of lines that are in both, by their text."""
    lines = [[line for line in data["lines"] if line["text"] is not None] for data in (before, after)]
    texts = [[line["text"].strip() for line in each] for each in lines]
    found = []
    for tag, i, j, k, m in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and j - i == m - k):
            found += [(a["at"], b["at"]) for a, b in zip(lines[0][i:j], lines[1][k:m], strict=True)]
    return found


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
