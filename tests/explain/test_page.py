"""The page: it needs nothing else, has the source and what is known of each line; in a browser where there is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from view.browser import start
from weft import like
from weft.cli_explain import main
from weft.explain import Explanation

from .kernels import matmul, transpose


@pytest.fixture(scope="module")
def explained() -> Explanation:
    x = like((4096, 4097), "fp16")
    return transpose.explain(x, x, 4097, SIZE=64, grid=(64, 64), target="cuda:90")


def test_the_page_needs_nothing_else(explained: Explanation, tmp_path: Path) -> None:
    explained.save_html(str(tmp_path / "e.html"))
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert page == explained.to_html() and not re.search(r"(src|href)=|@import|https?:", page)
    assert "tile = tl.load(x + i * stride + j)" in page and "narrow-access" in page and "bound by DRAM" in page
    assert page.count('class="about"') == len([line for line in explained.lines if line.span is not None])


def test_text_is_escaped(explained: Explanation) -> None:
    assert "#ttg.blocked<{" not in explained.to_html() and "#ttg.blocked&lt;{" in explained.to_html()


def test_a_cell_of_a_notebook_is_small() -> None:
    a = like((4096, 4096), "fp16")
    e = matmul.explain(a, a, a, 4096, 4096, 4096, BM=128, BN=128, BK=64, grid=(32, 32), target="cuda:90")
    assert len(e._repr_html_().encode()) < 60 << 10


def test_pages_of_layout_ir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = like((4096, 4096), "fp16")
    (tmp_path / "k.ttgir").write_text(transpose.warmup(x, x, 4096, SIZE=64, grid=(1,), target="cuda:80").asm["ttgir"])
    page = tmp_path / "k.html"
    assert main(["explain", "--html", str(page), "--target", "cuda:80", str(tmp_path / "k.ttgir")]) == 0
    assert capsys.readouterr().err == f"{page} written\n" and page.read_text().startswith("<!doctype html>")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from start(tmp_path_factory.mktemp("profile"))


def test_in_a_browser(explained: Explanation, browser: Any, tmp_path: Path) -> None:
    """The line under the pointer shows what is known of it."""
    line = next(a.remark.span.line for a in explained.accesses if a.remark.span is not None)
    explained.save_html(str(tmp_path / "e.html"))
    browser.get((tmp_path / "e.html").as_uri())
    browser.execute_script(f"document.querySelector(\".line[data-n='{line}']\").focus()")
    (shown,) = browser.find_elements("css selector", ".about.on")
    assert "access width" in shown.text
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
