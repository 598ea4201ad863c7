"""The page: it needs nothing else, has the source and what is known of each line; in a browser where there is one."""

from __future__ import annotations

import importlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weft import like
from weft.cli_explain import main
from weft.explain import Explanation

from .kernels import attention, matmul, transpose
from .pages import programs_of


@pytest.fixture(scope="module")
def explained() -> Explanation:
    x = like((4096, 4097), "fp16")
    return transpose.explain(x, x, 4097, SIZE=64, grid=(64, 64), target="cuda:90")


def data_of(page: str) -> Any:
    """What the page holds."""
    return json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def test_the_page_needs_nothing_else(explained: Explanation, tmp_path: Path) -> None:
    explained.save_html(str(tmp_path / "e.html"))
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert page == explained.to_html() and "default-src 'none'" in page
    assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}  # a name
    assert not re.search(r"\bsrc=|@import|url\(", page)
    assert {link[:6] for link in re.findall(r"href=\\?\"(\S+)", page)} <= {"data:,", "#panel"}
    assert len(page) < 400 << 10


def test_the_page_holds_the_source_and_what_is_known(explained: Explanation) -> None:
    (data,) = data_of(explained.to_html())["explanations"]
    lines = {line["number"]: line for line in data["lines"]}
    assert "    tile = tl.load(x + i * stride + j)" in [line["text"] for line in data["lines"]]
    told = {line.span.line for line in explained.lines if line.span is not None}
    assert told == {number for number, line in lines.items() if "counts" in line}
    assert [f["code"] for f in data["findings"]] == [
        f.code for f in sorted(explained.findings, key=lambda f: -(f.microseconds or 0))
    ]
    load = data["accesses"][0]
    assert (load["bytes"], load["most"], load["sectors"]) == (2, 16, [1540096, 1048576])
    tile = data["layouts"][data["tiles"][0]["layout"]]
    assert tile["shape"] == [64, 64] and tile["name"].startswith("BlockedLayout(") and tile["linear"]["columns"]


def test_source_that_is_not_there_any_more(explained: Explanation) -> None:
    """The page has the lines that the explanation itself holds; so it does where the file has been edited since."""
    for name in (str(Path(__file__).with_name("gone.py")), __file__):
        plain = explained.to_json().replace(json.dumps(str(Path(__file__).with_name("kernels.py"))), json.dumps(name))
        (data,) = data_of(Explanation.from_json(plain).to_html())["explanations"]
        texts = [line["text"] for line in data["lines"] if line["text"] is not None]
        assert texts == [line.source for line in explained.lines if line.span is not None]


@pytest.fixture(scope="module")
def large() -> Explanation:
    q = like((32768, 64), "fp16")
    return attention.explain(q, q, q, q, 0.1, 2048, HEAD=64, BM=128, BN=64, grid=(16, 16), target="cuda:90")


def test_the_page_of_a_large_kernel_is_made_quickly(large: Explanation) -> None:
    large.to_html()  # rooms are loaded, and files read
    start = time.perf_counter()
    page = large.to_html()
    assert time.perf_counter() - start < 0.3 and len(page) < 400 << 10


def test_a_cell_of_a_notebook_is_small() -> None:
    a = like((4096, 4096), "fp16")
    e = matmul.explain(a, a, a, 4096, 4096, 4096, BM=128, BN=128, BK=64, grid=(32, 32), target="cuda:90")
    cell = e._repr_html_()
    assert len(cell.encode()) < 60 << 10 and "total += tl.dot(left, right)" in cell and str(e.time) in cell


def test_a_cell_of_a_huge_kernel_is_small(explained: Explanation) -> None:
    """However many lines and findings there are, and however long."""
    (finding, *_), (line, *_) = explained.findings, explained.lines
    assert line.span is not None
    spans = [replace(line.span, line=n) for n in range(1, 2000)]
    lines = tuple(replace(line, span=span, source="<" * 5000) for span in spans)
    huge = replace(explained, lines=lines, findings=(replace(finding, why="&" * 9000),) * 500)
    cell = huge._repr_html_()
    assert len(cell.encode()) < 60 << 10 and "488 findings more" in cell


def test_pages_of_layout_ir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = like((4096, 4096), "fp16")
    (tmp_path / "k.ttgir").write_text(transpose.warmup(x, x, 4096, SIZE=64, grid=(1,), target="cuda:80").asm["ttgir"])
    page = tmp_path / "k.html"
    assert main(["explain", "--html", str(page), "--target", "cuda:80", str(tmp_path / "k.ttgir")]) == 0
    assert capsys.readouterr().err == f"{page} written\n" and page.read_text().startswith("<!doctype html>")


@pytest.fixture
def opened(explained: Explanation, chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of the transposition in a browser, which may not complain of anything."""
    explained.save_html(str(tmp_path / "e.html"))
    chromium.get((tmp_path / "e.html").as_uri())
    yield chromium
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def text(chromium: Any, selector: str) -> str:
    shown: str = chromium.find_element("css selector", selector).text
    return shown


def row_of(chromium: Any, number: int) -> Any:
    return chromium.find_element("css selector", f".row[data-at='0:{number}']")


def test_the_line_under_the_pointer(opened: Any, explained: Explanation) -> None:
    load, store = (a.remark.span.line for a in explained.accesses if a.remark.span is not None)
    from selenium.webdriver import ActionChains

    pointer = ActionChains(opened)
    pointer.move_to_element(row_of(opened, store)).perform()
    assert text(opened, ".detail h2").startswith(f"Line {store}")
    assert "a store of 2 bytes at a time" in text(opened, ".detail")
    row_of(opened, load).click()
    assert "2 bytes at a time, of 16" in text(opened, ".detail") and "1.47 times" in text(opened, ".detail")
    pointer.move_to_element(row_of(opened, store)).perform()
    assert text(opened, ".detail h2").startswith(f"Line {load}")  # it stays where it was put


def test_by_keyboard(opened: Any, explained: Explanation) -> None:
    from selenium.webdriver import Keys

    told = [line.span.line for line in explained.lines if line.span is not None]
    rows = opened.find_element("css selector", ".rows")
    rows.send_keys(Keys.HOME)
    assert text(opened, ".row.pinned .n") == str(told[0])
    rows.send_keys(Keys.ARROW_DOWN)
    assert text(opened, ".row.pinned .n") == str(told[1])
    rows.send_keys("n")
    line = min(f.span.line for f in explained.findings if f.span is not None)
    assert text(opened, ".row.pinned .n") == str(line) and "narrow-access" in text(opened, ".detail")
    rows.send_keys(Keys.ESCAPE)
    assert opened.find_elements("css selector", ".row.pinned") == []


def test_a_finding_opens_its_page(opened: Any) -> None:
    """Both programs of it, as they are in docs/reference/findings, and what is predicted of them."""
    opened.execute_script("document.querySelector('.about').open = true")
    shown = opened.execute_script("return document.querySelector('.about').textContent")
    assert text(opened, ".summary p").startswith("next: bound by DRAM at ")
    assert "What to do." in shown and "is predicted to take" in shown and "predicted -->" not in shown
    assert [program.strip() for program in programs_of("narrow-access")] == [
        program.strip()
        for program in opened.execute_script(
            "return [...document.querySelector('.about').querySelectorAll('pre')].map((p) => p.textContent)"
        )
    ]


def test_a_layout_opens_the_layout_page(opened: Any, explained: Explanation) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    (conversion,) = explained.conversions
    assert conversion.remark.span is not None
    row_of(opened, conversion.remark.span.line).click()
    opened.find_element("css selector", ".detail .pairs .thumb").click()
    wait = WebDriverWait(opened, 60)
    opened.switch_to.frame(wait.until(lambda b: b.find_element("css selector", "#viewer iframe")))
    try:
        wait.until(lambda b: b.find_elements("css selector", "#panel-b canvas"))
        found = opened.execute_script("return ['a', 'b'].map((k) => document.getElementById(`expression-${k}`).value)")
        assert all(name.startswith("BlockedLayout([") for name in found) and found[0] != found[1]
        assert "64x64" in opened.execute_script("return document.getElementById('shape').value")
        assert opened.execute_script("return document.getElementById('s-error').textContent") == ""
        assert not opened.find_element("css selector", "#link").is_displayed()
    finally:
        opened.switch_to.default_content()
    page = opened.current_window_handle
    opened.find_element("css selector", "#viewer-tab").click()
    (tab,) = wait.until(lambda b: set(b.window_handles) - {page})
    opened.switch_to.window(tab)
    try:
        wait.until(lambda b: b.find_elements("css selector", "#panel-b canvas"))
        assert opened.find_element("css selector", "#link").is_displayed()
    finally:
        opened.close()
        opened.switch_to.window(page)
    opened.find_element("css selector", "#viewer-close").click()
    wait.until(lambda b: b.find_elements("css selector", "#viewer iframe") == [])


def test_both_schemes_and_a_small_window(opened: Any) -> None:
    """Text can be told from its ground, and nothing is wider than the window."""
    for _ in range(2):
        ground, ink = opened.execute_script(
            "const s = getComputedStyle(document.querySelector('.card')); return [s.backgroundColor, s.color]"
        )
        light, dark = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink))
        assert abs(light - dark) > 500
        opened.find_element("css selector", "#theme").click()
    opened.set_window_size(520, 800)
    try:
        wide, window = opened.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window
    finally:
        opened.set_window_size(1500, 1400)


def test_pictures(large: Explanation, chromium: Any, tmp_path: Path) -> None:
    """The roofline, shared memory, and an iteration of the loop, whose parts lead to their lines."""
    large.save_html(str(tmp_path / "e.html"))
    chromium.get((tmp_path / "e.html").as_uri())
    took = chromium.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < took < 2000  # milliseconds until it is there
    titles = [node.text for node in chromium.find_elements("css selector", "section > h2")]
    loop = next(line.span.line for line in large.lines if line.span and line.source.startswith("for start in"))
    assert {"Roofline", "Shared memory", f"One iteration of the loop on line {loop}"} <= set(titles)
    lines = "return [...document.querySelectorAll(arguments[0])].map((r) => Number(r.dataset.at.split(':')[1]))"
    drawn = chromium.execute_script(lines, "[aria-label='Shared memory'] rect")
    assert set(drawn) == {b.remark.span.line for b in large.buffers if b.remark.span is not None}
    product = chromium.find_element("css selector", "rect.product[width]")
    product.click()
    assert text(chromium, ".row.pinned .n") == product.get_attribute("data-at").split(":")[1]
    bars = chromium.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((r) => [r.x, r.width].map((v) => v.baseVal.value))",
        "[aria-label^='One iteration'] rect",
    )
    assert len(bars) > 8 and all(x >= 0 and width > 0 and x + width <= 1000 for x, width in bars)
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_source_that_ends_a_script(explained: Explanation, chromium: Any, tmp_path: Path) -> None:
    """Text of a kernel is text, whatever it holds."""
    evil = "</script><script>document.title = 'broken'</script><!-- @DATA@ @SCRIPT@ <b>"
    lines = tuple(replace(line, source=f"{line.source}  # {evil}") for line in explained.lines)
    findings = tuple(replace(f, why=evil) for f in explained.findings)
    page = replace(explained, kernel=f"k{evil}", lines=lines, findings=findings).to_html()
    (tmp_path / "e.html").write_text(page, encoding="utf-8")
    chromium.get((tmp_path / "e.html").as_uri())
    assert chromium.title == f"k{evil}" and evil in text(chromium, ".source") and evil in text(chromium, ".finding")
    assert evil in text(chromium, "#title")
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_helper_in_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines stand under its name, with their own shares of the time."""
    head = "import weft\nimport weft.language as tl\n\n\n@weft.jit\n"
    (tmp_path / "helpers_of_page.py").write_text(f"{head}def part(x):\n    return tl.exp(x) * tl.exp(x + 1.0)\n")
    kernel = "def kernel(p, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(p + i, part(tl.load(p + i)))\n"
    (tmp_path / "kernel_of_page.py").write_text(f"from helpers_of_page import part\n{head}{kernel}")
    monkeypatch.syspath_prepend(str(tmp_path))
    made = importlib.import_module("kernel_of_page").kernel
    e = made.explain(like((4096,), "fp32"), B=4096, grid=(1,), target="cuda:90")
    assert e.time is not None
    (data,) = data_of(e.to_html())["explanations"]
    assert [Path(file).name for file in data["files"]] == ["kernel_of_page.py", "helpers_of_page.py"]
    shares = {(line["file"], line["number"]): line["share"] for line in data["lines"] if "share" in line}
    assert shares[1, 7] == e.time.lines[f"{tmp_path / 'helpers_of_page.py'}:7"] > 0.02
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)
