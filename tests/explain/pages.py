"""The pages of findings, docs/reference/findings: each has a kernel with that finding, and the same kernel fixed.

    python -m explain.pages        # in tests/: writes what is predicted into the pages anew; then read the difference
"""

from __future__ import annotations

import linecache
import re
from functools import cache
from pathlib import Path
from typing import Any

from weft.explain import Explanation

__all__ = ["CODES", "FOLDER", "explained", "predicted", "programs_of", "sentence"]

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "findings"
CODES = sorted(page.stem for page in FOLDER.glob("*.md"))
MARK = "<!-- predicted -->\n"


def text_of(code: str) -> str:
    return (FOLDER / f"{code}.md").read_text(encoding="utf-8")


def programs_of(code: str) -> tuple[str, str]:
    """The sources of the two programs of a page: the one that fails, and the one that is fixed."""
    failing, fixed = re.findall(r"^```python\n(.*?)^```$", text_of(code), flags=re.DOTALL | re.MULTILINE)
    return failing, fixed


@cache
def explained(code: str) -> tuple[Explanation, Explanation]:
    """What the two programs explain: each is run as a script of its own, whose `e` it is."""
    explanations = []
    for which, source in zip(("failing", "fixed"), programs_of(code), strict=True):
        name = f"{code}-{which}.py"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(source, name, "exec", dont_inherit=True), space)
        explanations.append(space["e"])
    failing, fixed = explanations
    return failing, fixed


def sentence(code: str) -> str:
    """What the page says is predicted, in its last paragraph."""
    return text_of(code).partition(MARK)[2].strip()


def predicted(code: str) -> str:
    """What is predicted now, as the page says it."""
    failing, fixed = (e.time for e in explained(code))
    assert failing is not None and fixed is not None
    return (
        f"On an {failing.device} the first launch is predicted to take {failing.microseconds:,.1f} us, bound by "
        f"{failing.bound}, and the second {fixed.microseconds:,.1f} us, bound by {fixed.bound}."
    )


def _write() -> None:
    for code in CODES:
        head, mark, _ = text_of(code).partition(MARK)
        (FOLDER / f"{code}.md").write_text(f"{head}{mark}{predicted(code)}\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
