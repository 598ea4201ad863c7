"""What the page plans and counts itself, in a real Chromium, against Python; and where it runs."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from layouts.plans import random_conversion
from view.test_page import SHAPE, A, B, Page, S, page_layout
from weft.cli import main
from weft.layouts import BlockedLayout, LinearLayout, PaddedSharedLayout, SwizzledSharedLayout, wavefronts
from weft.layouts.plan import plan_conversion
from weft.view import PageLayout, render_page


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Iterator[Page]:
    """The page of a conversion, with a shared layout."""
    a, b, s = (page_layout(text, SHAPE) for text in (A, B, S))
    plan = plan_conversion(a.linear, b.linear, SHAPE, 16, "cuda:80")
    path = tmp_path / "page.html"
    path.write_text(render_page(a, SHAPE, b=b, shared=s, plan=plan, element_bits=16), encoding="utf-8")
    found = Page(chromium, path)
    found.problems()  # of the pages before
    found.open()
    yield found
    assert found.problems() == []


EQUAL = 239
"""The seed of a conversion between equal layouts with copies in registers: the page renamed registers."""


def steps(page: Page) -> list[str]:
    found: list[str] = page.js(
        "return [...document.querySelectorAll('#steps button')].map(b => b.innerText.split('. ')[1])"
    )
    return found


@pytest.mark.parametrize("seeds", [(*range(40), EQUAL), pytest.param(range(40, 300), marks=pytest.mark.slow)])
def test_conversions_planned_in_the_page(page: Page, seeds: Iterable[int]) -> None:
    """Of any two layouts: what comes out is right, and is done by no more than Python's plan needs."""
    kinds = set()
    for seed in seeds:
        src, dst, bits, target = random_conversion(seed)
        shape = tuple(src.out_dims.values())
        if src.total_in_log > 11 or dst.total_in_log > 11:
            continue
        names = [{n: f"dim{i}" for i, n in enumerate(x.out_dims)} for x in (src, dst)]
        a, b = (repr(x.rename_outs(n)) for x, n in zip((src, dst), names, strict=True))
        page.go(shape="x".join(map(str, shape)), bits=str(bits), a=a, b=b, s="", x="", step="99")
        assert page.text("#conversion-error") == "", seed
        text = page.text("#step-text")
        assert text.endswith("Every element is where B wants it.") or text.startswith("Nothing has to be done"), seed
        kind = page.text("#conversion-hint").split()[0].rstrip(",")
        plan = plan_conversion(src, dst, shape, bits, target)
        considered = {k for k, cycles, _ in plan.considered if cycles != float("inf")}
        assert kind in considered, (seed, kind, considered)
        kinds.add(kind)
    assert {"shuffles", "shared", "cluster"} <= kinds


def test_trips_planned_in_the_page_have_no_conflicts(page: Page) -> None:
    """Where Weft's plan by plain stores and loads has none either: the wavefronts are those that the data need."""
    pairs = [
        ("BlockedLayout([1,8],[4,8],[4,1],[1,0])", "BlockedLayout([8,1],[8,4],[1,4],[0,1])", 16),
        ("BlockedLayout([1,4],[4,8],[4,1],[1,0])", "BlockedLayout([4,1],[8,4],[1,4],[0,1])", 32),
        ("BlockedLayout([1,1],[1,32],[4,1],[1,0])", "BlockedLayout([1,1],[32,1],[1,4],[0,1])", 32),
        ("BlockedLayout([1,16],[8,4],[4,1],[1,0])", "BlockedLayout([16,1],[4,8],[1,4],[0,1])", 8),
    ]
    for a, b, bits in pairs:
        page.go(shape="64x64", bits=str(bits), a=a, b=b, s="", x="", step="1")
        for at in (1, 3):
            page.click(f"#steps [data-step='{at}']")
            text = page.text("#step-text")
            passes, least = int(text.split(" a lane, ")[1].split()[0]), int(text.split("(least ")[1].split(")")[0])
            assert passes == least, (a, b, bits, text)


def test_edits_are_planned_anew_and_the_command_is_ready(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    assert page.text("#conversion-hint") == "shared (block), elements of 16 bits, for cuda:80"
    assert page.js("return document.getElementById('command-line').hidden")
    page.fill("expression-a", "BlockedLayout([2,2],[8,4],[2,2],[1,0])")
    assert page.text("#conversion-hint") == "shuffles, elements of 16 bits, planned in this page"
    assert steps(page) == ["start", "select", "shuffle", "select"]
    page.fill(
        "expression-b",
        "A.compose(LinearLayout({'dim0': [[0,1],[0,2],[0,4],[0,8],[0,16]], 'dim1': "
        "[[1,0],[2,0],[4,0],[8,0],[16,0]]}, {'dim0': 32, 'dim1': 32}))",
    )
    command = page.text("#command")
    assert command.endswith("--shape 32x32 --bits 16 --target cuda:80 --html page.html")
    words = shlex.split(command)[2:-2]  # without `weft layout` and the page
    assert main(["layout", *words[:1], *words[1:]]) == 0
    assert "considered:" in capsys.readouterr().out
    page.fill("expression-a", A)
    page.fill("expression-b", B)
    assert page.text("#conversion-hint").endswith("for cuda:80")
    page.fill("bits", "32")  # the plan was for 16 bits
    assert page.text("#conversion-hint").endswith("planned in this page")


def test_through_a_chosen_layout_of_memory(page: Page) -> None:
    page.fill("via", "s")
    assert page.text("#conversion-hint") == "shared (block), elements of 16 bits, planned in this page"
    page.click("#steps [data-step='3']")
    assert page.text("#step-text").endswith("Every element is where B wants it.")
    page.fill("s", "SwizzledSharedLayout(1,1,1,[0,1])")
    page.click("#steps [data-step='1']")
    columns = SwizzledSharedLayout(1, 1, 1, [0, 1])
    expected = wavefronts(BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]), columns, SHAPE, 16)
    assert expected > 1 and f"a lane, {expected} wavefronts each" in page.text("#step-text")
    assert "via=s" in page.browser.current_url
    page.fill("s", "PaddedSharedLayout.with_identity_for([[32,4]],[32,32],[1,0])")
    assert "not linear" in page.text("#conversion-error")


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (A, "BlockedLayout([1,4],[4,8],[2,1],[1,0])", "A has 4 warps and B 2: a conversion happens within one launch"),
        (A, S, "B is a layout of shared memory, and a tile is stored to it by its accesses"),
        (A, "BlockedLayout([1],[32],[4],[0]).to_linear([32])", "A and B are not layouts of one tile"),
        (
            A,
            "LinearLayout({'lane': [[1,0],[2,0],[4,0],[8,0],[16,0]], 'warp': [[0,1],[0,2]]}, {'dim0': 32, 'dim1': 32}, "
            "False)",
            "B does not hold the whole tile: nothing maps to dim1 = 4, dim1 = 8, dim1 = 16",
        ),
    ],
)
def test_what_cannot_be_converted_says_why(page: Page, a: str, b: str, message: str) -> None:
    page.go(a=a, b=b, s="")
    assert page.text("#conversion-error").startswith(message)
    assert page.js("return document.getElementById('conversion-body').hidden")


def random_padding(rng: random.Random) -> PaddedSharedLayout:
    pairs = [[1 << rng.randrange(4, 8), 1 << rng.randrange(6)]]
    if rng.random() < 0.4:
        pairs.append([pairs[0][0] * 4, 1 << rng.randrange(5)])
    return PaddedSharedLayout.with_identity_for(pairs, [64, 64], rng.choice([[0, 1], [1, 0]]))


@pytest.mark.parametrize("count", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_padding_against_python(page: Page, count: int) -> None:
    """The most wavefronts of an access, for every vector; and where elements lie."""
    rng = random.Random(5)
    seen = set()
    for _ in range(count):
        lanes, size = rng.randrange(6), rng.randrange(4)
        order = rng.choice([[0, 1], [1, 0]])
        registers = BlockedLayout([1, 1 << size], [1 << lanes, 32 >> lanes], [2, 1], order)
        shared, bits = random_padding(rng), rng.choice([8, 16, 32])
        page.go(shape="64x64", bits=str(bits), a=repr(registers), b="", s=repr(shared), x="")
        vectors = page.js(
            "return [...document.getElementById('vector').options].map(o => parseInt(o.text.match(/\\d+/)))"
        )
        for vector in vectors:
            page.fill("vector", "0" if vector == vectors[0] else str(vector))
            text = page.text("#banks-text")
            found = int(text.split("worst instruction takes ")[1][:-1]) if "worst" in text else None
            shown = int(text.split("): ")[1].split()[0])
            expected = wavefronts(registers, shared, [64, 64], bits, vector)
            assert (found or shown) == expected and shown <= expected, (registers, shared, bits, vector, text)
            seen.add((vector, expected))
    assert len(seen) >= 8


def test_padding_is_drawn(page: Page) -> None:
    shared = PaddedSharedLayout.with_identity_for([[64, 8]], [16, 64], [1, 0])
    page.go(shape="16x64", bits="32", a=repr(shared), s=repr(shared), b="", va="hardware", x="")
    for offset in (63, 64, 130, 16 * 64 - 1):
        row, column = offset // 64, offset % 64
        page.fill("choose-a-offset", str(offset))
        assert page.text("#element") == f"Element ({row}, {column})"
        at = int(page.text("#place-a [data-dim=padded] .value"))
        assert at == shared.address(offset)
        assert page.text("#place-a [data-dim=bank] .value") == str(at % 32)
        page.point("#banks", at // 32, at % 32)
        assert f"element ({row}, {column})" in page.text("#word")
        page.point("#panel-a canvas", at // 32, at % 32)
        assert page.text("#element") == f"Element ({row}, {column})"
    page.click("#clear")
    gap = page.pixel("#banks", 2, 4)  # elements 64 to 71 are left out
    assert gap != page.pixel("#banks", 2, 0 + 8) and gap == page.pixel("#banks", 2, 7)


def test_vectors_against_python(page: Page) -> None:
    registers = BlockedLayout([1, 8], [4, 8], [2, 1], [1, 0])
    page.go(shape="64x64", bits="16", a=repr(registers), b="", s="SwizzledSharedLayout(8,1,4,[1,0])", x="")
    expected = [page_layout(t, (64, 64)).linear for t in (repr(registers), "SwizzledSharedLayout(8,1,4,[1,0])")]
    for vector in (8, 4, 2, 1):
        page.fill("vector", "0" if vector == 8 else str(vector))
        count = wavefronts(expected[0], expected[1], [64, 64], 16, vector)
        assert f"({vector} element{'s' if vector > 1 else ''}): {count} wavefront" in page.text("#banks-text")
    assert "vector=1" in page.browser.current_url


def test_small_elements(page: Page) -> None:
    """Elements of 1, 2 and 4 bits can be chosen, and say what they take."""
    for bits in ("1", "2", "4"):
        page.fill("bits", bits)
        assert page.js("return document.getElementById('bits').value") == bits
        page.click("#steps [data-step='3']")
        assert page.text("#step-text").endswith("Every element is where B wants it.")


# -- where the page runs

FRAMES = {
    "file": '<iframe src="{url}#element=70" width="1200" height="900"></iframe>',
    "srcdoc": '<iframe srcdoc="{text}" width="1200" height="900"></iframe>',
    "sandbox": '<iframe sandbox="allow-scripts" srcdoc="{text}" width="1200" height="900"></iframe>',
}


@pytest.mark.parametrize("kind", FRAMES)
def test_in_a_frame(page: Page, tmp_path: Path, kind: str) -> None:
    """In frames, with or without an address and rights, the page works, and complains about nothing."""
    outer = tmp_path / "outer.html"
    text = page.path.read_text(encoding="utf-8")
    body = FRAMES[kind].format(url=page.path.as_uri(), text=escape(text) if "text" in FRAMES[kind] else "")
    outer.write_text(f"<!doctype html><title>frame</title>{body}", encoding="utf-8")
    page.browser.get(outer.as_uri())
    page.browser.switch_to.frame(page.browser.find_element("css selector", "iframe"))
    try:
        page.fill("choose-a-lane", "9")
        assert page.text("#element").startswith("Element (")
        page.fill("expression-a", "BlockedLayout([2,2],[8,4],[2,2],[1,0])")
        assert page.text("#conversion-hint") == "shuffles, elements of 16 bits, planned in this page"
        for button in ("#link", "#copy-command", "#theme", "#forward", "#clear"):
            page.click(button)
        assert page.text("#conversion-error") == "" and page.text("#element") is None
    finally:
        page.browser.switch_to.default_content()
    assert [p for p in page.problems() if "permissions policy" not in p.lower()] == []


def test_nothing_is_asked_from_the_network(page: Page) -> None:
    """Whatever is done on the page, Chromium loads the file itself and nothing else."""
    page.browser.execute_cdp_cmd("Network.enable", {})
    page.open()
    for button in ("#theme", "#link", "#forward", "#copy-command"):
        page.click(button)
    page.fill("x", "A.invert()")
    page.point("#panel-a canvas", 3, 3)
    entries = page.js(
        "return performance.getEntries().filter(e => ['resource', 'navigation'].includes(e.entryType)).map(e => e.name)"
    )
    assert [e.split("#")[0] for e in entries] == [page.path.as_uri()]
    text = page.path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text and "://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_large_tiles_stay_responsive(page: Page) -> None:
    """128x128 over 8 warps: pointing redraws by copies of pictures, well within what an eye takes for immediate."""
    a, b = "BlockedLayout([1,8],[8,4],[8,1],[1,0])", "NVMMADistributedLayout([3,0],[8,1],[16,64,16])"
    page.go(shape="128x128", a=a, b=b, s="SwizzledSharedLayout(8,1,8,[1,0])", x="")
    times = page.js(
        """
        const canvas = document.querySelector("#panel-a canvas");
        const box = canvas.getBoundingClientRect();
        return Array.from({length: 40}, (_, i) => {
          const at = {clientX: box.left + 60 + i * 7, clientY: box.top + 60 + i * 5, bubbles: true};
          const start = performance.now();
          canvas.dispatchEvent(new PointerEvent("pointermove", at));
          return performance.now() - start;
        }).sort((x, y) => x - y);
        """
    )
    assert page.text("#element").startswith("Element (")
    assert times[20] < 100, times


def test_layouts_that_python_makes_of_names(page: Page) -> None:
    """A page without a plan, of one layout, has no conversion to show; a second one makes one."""
    linear = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]).to_linear(SHAPE)
    page.path.write_text(render_page(PageLayout(A, linear), SHAPE), encoding="utf-8")
    page.open()
    assert page.js("return document.getElementById('conversion').hidden")
    page.fill("expression-b", repr(LinearLayout.from_bases(linear.bases, linear.out_dims)))
    assert page.text("#step-text") == "Nothing has to be done: every element is in its place."


def test_conflicts_open_on_the_banks_with_names_of_dimensions(page: Page, tmp_path: Path) -> None:
    """The page of `weft layout conflicts`: banks first, wavefronts in words, dimensions by the names given."""
    path = tmp_path / "banks.html"
    arguments = ("conflicts", A, S, "--shape", "32x32", "--bits", "16", "--dims", "M,N", "--html", str(path))
    assert main(["layout", *arguments]) == 0
    opened = Page(page.browser, path)
    opened.open()
    assert opened.js("return document.querySelector('main').firstElementChild.id") == "memory"
    top = opened.js("return document.getElementById('banks').getBoundingClientRect().top")
    assert 0 < float(top) < 500 and "wavefront" in opened.text("#banks-text")
    opened.point("#panel-a canvas", 3, 4)
    assert opened.text("#inspector").startswith("Element (M 3, N 4)")
    opened.fill("dims", "row column")
    assert "row" in opened.js("return document.getElementById('bases').textContent")
    opened.fill("dims", "row")
    assert "dims must name the 2 dimensions" in opened.text("#shape-error")
    opened.fill("dims", "")
    assert "dim0" in opened.js("return document.getElementById('bases').textContent")
    opened.go(shape="32x32", a=A, b=S, dims="M,N")
    assert "write it as S" in opened.text("#conversion-error")
    own = "LinearLayout({'register': [[0, 1], [0, 2]], 'lane': [[1, 0], [2, 0]]}, {'M': 4, 'N': 4})"
    opened.go(shape="4x4", a=own, b="BlockedLayout([4,1],[1,4],[1,1],[1,0])", s="SwizzledSharedLayout(1,1,1,[1,0])")
    assert opened.text("#conversion-error") == "" and "no bank conflict" in opened.text("#banks-text")
    assert opened.problems() == []
