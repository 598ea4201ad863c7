"""The page: it needs nothing else, has the source and what is known of each line; in a browser where there is one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

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


@pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="there is no browser")
def test_in_a_browser(explained: Explanation) -> None:
    """The line under the pointer shows what is known of it."""
    from playwright.sync_api import sync_playwright

    line = next(a.remark.span.line for a in explained.accesses if a.remark.span is not None)
    with sync_playwright() as tools:
        try:
            browser = tools.chromium.launch()
        except Exception as error:
            pytest.skip(f"there is no browser: {error}")
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.set_content(explained.to_html())
        page.hover(f".line[data-n='{line}']")
        shown = page.locator(".about.on")
        assert shown.count() == 1 and "access width" in shown.inner_text() and not problems
        browser.close()
