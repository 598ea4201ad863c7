"""The pages of findings, docs/reference/findings: each has a kernel with that finding, and the same kernel fixed.

python -m explain.pages        # in tests/: writes what is predicted into the pages anew; then read the difference
"""

from __future__ import annotations

import linecache
import re
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from weft.explain import Explanation
from weft.explain.processor import Rates
from weft.runtime import explaining

__all__ = ["CODES", "FOLDER", "explained", "predicted", "programs_of", "sentence"]

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "findings"
CODES = sorted(page.stem for page in FOLDER.glob("*.md"))
MARK = "<!-- predicted -->\n"
SEEN = 0.95
"""The part of the time below which the fixed kernel is predicted to be faster."""
BLIND = (
    " The model of the CPU's time counts bytes and arithmetic, no instructions, and does not see what the fix brings."
)
RATES = Rates(
    "Intel Xeon (Sapphire Rapids)", 8, launch=3.7, program=0.010,
    sizes=(1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26), read=(5570, 3200, 7720, 24390, 57230, 83240),
    written=(1400, 2490, 7030, 22250, 45020, 98740), both=(1.0,) * 6, in_place=(1e6,) * 6,
    alone=0.16, lengths=(128, 256, 1024, 4096), slow_read=(2.3, 1.7, 1.4, 1.4), slow_written=(1.7, 1.4, 1.4, 1.3),
    of_four=0.8, looped=1.2, by_rows=(1.1, 1.3),
    turned=(1.8, 1.8), turned_apart=(1.8, 1.8), again=578800, far=5e5, simple=4e5, special=1.6e4, divided=3e4,
    beside=2.0, rounded=8e4, reduction=0.002, together=3.0, product=7e5, product_16=7e5,
)  # fmt: skip
"""For pages of the CPU: launch, programs, reading, writing and caches as `weft calibrate` once measured them on such a
machine; the others are of their order."""


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
        with mock.patch.object(explaining, "calibrated", lambda: RATES):
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
    is_cpu = " threads" in failing.device
    comma = "," if is_cpu else ""
    alike = is_cpu and fixed.microseconds > SEEN * failing.microseconds
    return (
        f"On an {failing.device}{comma} the first launch is predicted to take {failing.microseconds:,.1f} us, bound by "
        f"{failing.bound}, and the second {fixed.microseconds:,.1f} us, bound by {fixed.bound}."
        f"{BLIND if alike else ''}"
    )


def _write() -> None:
    for code in CODES:
        head, mark, _ = text_of(code).partition(MARK)
        (FOLDER / f"{code}.md").write_text(f"{head}{mark}{predicted(code)}\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
