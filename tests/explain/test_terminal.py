"""What a terminal shows: colours where `rich` is, plain text otherwise and in a pipe; and the places in JSON."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft import like
from weft.explain import Explanation
from weft.explain.coloured import short, shown
from weft.explain.ends import Ends
from weft.explain.text import tables_of

from .kernels import transpose

ESCAPE = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture(scope="module")
def explained() -> Explanation:
    x = like((4096, 4112), "fp16")
    return transpose.explain(x, x, 4097, SIZE=64, grid=(64, 64), target="cuda:90")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_colours(explained: Explanation) -> None:
    """All that the plain text says is said."""
    console = pytest.importorskip("rich.console", reason="rich is not installed (the extra `cli`)")
    out = _Terminal()
    console.Console(file=out, width=400, force_terminal=True).print(explained)
    text = ESCAPE.sub("", out.getvalue())
    assert "\x1b[" in out.getvalue() and str(explained.time) in text
    for finding in explained.findings:
        assert f"{finding.what}: {finding.why}" in text and finding.fix in text
    for title, rows in tables_of(explained):
        assert not rows or title in text
        cells = {cell if title != "Lines" else short(cell) for row in rows[1:] for cell in row}
        assert {cell for cell in cells if cell not in text} == set()


def test_a_kernel_has_no_markup(explained: Explanation) -> None:
    """Brackets of a kernel's source are text, not markup of rich."""
    console = pytest.importorskip("rich.console", reason="rich is not installed (the extra `cli`)")
    out = _Terminal()
    console.Console(file=out, width=400, force_terminal=True).print(explained)
    assert "tl.arange(0, SIZE)[:, None]" in ESCAPE.sub("", out.getvalue())


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_narrow_terminal_cuts_no_number(explained: Explanation, width: int) -> None:
    """Counters for which there is no room are left out whole, and named."""
    console = pytest.importorskip("rich.console", reason="rich is not installed (the extra `cli`)")
    out = _Terminal()
    console.Console(file=out, width=width, force_terminal=True).print(explained)
    text = ESCAPE.sub("", out.getvalue())
    assert all(len(line) <= width for line in text.splitlines())
    (rows,) = (rows for title, rows in tables_of(explained) if title == "Lines")
    kept = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])]
    named = " ".join(text.partition("no room for: ")[2].split())
    left_out = {i for i in kept if re.search(rf"(^|, ){rows[0][i]}\b", named.partition(" Layouts")[0])}
    for i in set(kept) - left_out - {rows[0].index("source")}:
        assert all(short(row[i]) in text for row in rows[1:])
    assert bool(left_out) == (width < 140)


def test_without_rich_the_text_is_plain(explained: Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    out = _Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setitem(sys.modules, "rich.console", None)  # what an import then says: there is no such module
    assert not shown([explained]) and out.getvalue() == ""


def test_a_pipe_gets_plain_text(explained: Explanation, tmp_path: Path) -> None:
    """Whatever colours the environment asks for."""
    x = like((16, 16), "fp16")
    kernel = transpose.warmup(x, x, 16, SIZE=16, grid=(1,), target="cuda:80")
    (tmp_path / "k.ttgir").write_text(kernel.asm["ttgir"])
    command = [sys.executable, "-m", "weft", "explain", "--target", "cuda:80", str(tmp_path / "k.ttgir")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout and "transpose" in done.stdout and done.stdout == done.stdout.rstrip() + "\n"


def test_places_say_where_they_end(explained: Explanation) -> None:
    """As an editor marks them: an access is its call, a line all of it."""
    plain = explained.to_dict()
    source = Path(__file__).with_name("kernels.py").read_text().splitlines()

    def marked(span: dict[str, Any]) -> str:
        assert span["line"] == span["end_line"]
        return source[span["line"] - 1][span["column"] - 1 : span["end_column"] - 1]

    load, store = (access["remark"]["span"] for access in plain["accesses"])
    assert marked(load) == "tl.load(x + i * stride + j)" and marked(store) == "tl.store(out + j * stride + i, tile)"
    assert all(marked(line["span"]).strip() == line["source"] for line in plain["lines"] if line["span"])
    assert {marked(finding["span"]) for finding in plain["findings"]} == {marked(load), marked(store)}
    assert Explanation.from_json(explained.to_json()) == explained


@pytest.mark.parametrize(
    "text, column, marked",
    [
        ("x = a.b(c)[0].d + e", 5, "a.b(c)[0].d"),
        ("x = f(a, (b + 1) * [2][0]) * 2", 5, "f(a, (b + 1) * [2][0])"),
        ("while x > 0:", 1, "while x > 0:"),
        ("y = (a + b).c(1) - 2", 5, "(a + b).c(1)"),
        ("y = 3.5 * x", 5, "3.5"),
        ("é = load(x) + 1", 6, "load(x)"),  # columns are bytes
        ("y = 'open", 5, "'open"),
        ("y = f(", 5, "f"),
    ],
)
def test_what_a_place_means(text: str, column: int, marked: str) -> None:
    end = Ends({"k.py": [text]}).of("k.py", 1, column)
    assert end is not None and end[0] == 1
    assert text.encode()[column - 1 : end[1] - 1].decode() == marked


def test_a_call_of_several_lines() -> None:
    lines = ["    tl.store(", "        p + i,", "        x)", "", "    y = 1"]
    assert Ends({"k.py": lines}).of("k.py", 1, 5) == (3, 11)
    assert Ends({"k.py": lines}).of("k.py", 9, 1) is None
