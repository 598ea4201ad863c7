"""The page in a real Chromium: pointing, choosing, comparing, playing, computing, and the link that brings it back."""

from __future__ import annotations

import random
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from layouts.plans import random_conversion
from weft.layouts import (
    BlockedLayout,
    LayoutError,
    LinearLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    SwizzledSharedLayout,
    wavefronts,
)
from weft.layouts.plan import Plan, plan_conversion
from weft.view import PageLayout, as_linear, parse_layout, render_page
from weft.view.colours import place_colour

A = "BlockedLayout([1,4],[4,8],[4,1],[1,0])"
B = "NVMMADistributedLayout([2,0],[2,2],[16,8])"
S = "SwizzledSharedLayout(4,1,8,[1,0])"
SHAPE = (32, 32)


class Page:
    """One page in the browser."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser, self.path = browser, path

    def open(self, fragment: str = "") -> None:
        self.browser.get("about:blank")
        self.browser.get(f"{self.path.as_uri()}{'#' + fragment if fragment else ''}")

    def go(self, **state: str) -> None:
        """Follow a link within the page; parts that are not given are as at the start."""
        self.browser.execute_async_script(
            "addEventListener('hashchange', () => arguments[1](), {once: true}); location.hash = arguments[0];",
            urllib.parse.urlencode(state),
        )

    def js(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        found: str = self.js("return document.querySelector(arguments[0])?.innerText ?? null", selector)
        return found

    def fill(self, identifier: str, value: str) -> None:
        self.js(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, {bubbles: true}))",
            identifier,
            value,
        )

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    def cell(self, selector: str, row: int, column: int) -> tuple[float, float]:
        """Where the middle of a cell of a canvas is, from the canvas's own corner."""
        left, top, w, h = map(
            float, self.js("return document.querySelector(arguments[0]).dataset.cells", selector).split(",")
        )
        return left + (column + 0.5) * w, top + (row + 0.5) * h

    def point(self, selector: str, row: int, column: int, click: bool = False) -> None:
        """Move a real pointer over a cell."""
        from selenium.webdriver import ActionChains

        actions = ActionChains(self.browser, duration=20)
        actions.w3c_actions.pointer_action.move_to_location(*self.spot(selector, row, column))
        (actions.click() if click else actions).perform()

    def spot(self, selector: str, row: int, column: int) -> tuple[int, int]:
        """Where in the window the middle of a cell is, once it has been scrolled there."""
        x, y = self.cell(selector, row, column)
        at = self.js(
            """
            const [canvas, x, y] = [document.querySelector(arguments[0]), arguments[1], arguments[2]];
            const box = canvas.parentElement;
            box.scrollTo(x - box.clientWidth / 2, y - box.clientHeight / 2);
            window.scrollBy({top: canvas.getBoundingClientRect().top + y - innerHeight / 2, behavior: "instant"});
            const corner = canvas.getBoundingClientRect();
            return [corner.left + x, corner.top + y];
            """,
            selector,
            x,
            y,
        )
        return round(at[0]), round(at[1])

    def pixel(self, selector: str, row: int, column: int) -> tuple[int, ...]:
        """The colour near a corner of a cell, beside what is written in it."""
        left, top, w, h = map(
            float, self.js("return document.querySelector(arguments[0]).dataset.cells", selector).split(",")
        )
        return tuple(
            self.js(
                "const c = document.querySelector(arguments[0]);"
                "return [...c.getContext('2d').getImageData(arguments[1], arguments[2], 1, 1).data].slice(0, 3)",
                selector,
                int(left + column * w + 2),
                int(top + row * h + 2),
            )
        )

    def place(self, key: str) -> dict[str, int]:
        """What the inspector says of a panel."""
        rows = self.js(
            "const rows = [...document.querySelectorAll(arguments[0])];"
            "return rows.map(r => [r.dataset.dim, r.querySelector('.value').innerText])",
            f"#place-{key} tr",
        )
        return {dim: int(value) for dim, value in rows}

    def problems(self) -> list[str]:
        """What Chromium complains about, but for the pixels that these tests read."""
        log = [e["message"] for e in self.browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
        return [message for message in log if "willReadFrequently" not in message]


def page_layout(text: str, shape: tuple[int, ...]) -> PageLayout:
    return PageLayout(text, as_linear(parse_layout(text, shape), shape))


def conversion_page(plan: Plan, a: PageLayout, b: PageLayout, shape: tuple[int, ...]) -> str:
    return render_page(a, shape, b=b, plan=plan, element_bits=plan.element_bits)


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Iterator[Page]:
    """Two layouts, a shared layout and a plan."""
    a, b, s = (page_layout(text, SHAPE) for text in (A, B, S))
    plan = plan_conversion(a.linear, b.linear, SHAPE, 16, "cuda:90")
    path = tmp_path / "page.html"
    path.write_text(render_page(a, SHAPE, b=b, shared=s, plan=plan, element_bits=16), encoding="utf-8")
    found = Page(chromium, path)
    found.problems()  # of the pages before
    found.open()
    yield found
    assert found.problems() == []


def found_in(layout: LinearLayout, row: int, column: int) -> dict[str, int]:
    inverse = layout.transpose_outs(["dim0", "dim1"]).pseudoinvert()
    return inverse.apply(dim0=row, dim1=column)


LINEAR_A = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]).to_linear(SHAPE)
LINEAR_B = NVMMADistributedLayout([2, 0], [2, 2], [16, 8]).to_linear(SHAPE)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (2, 13), (17, 30), (31, 31)])
def test_pointing_shows_place_and_bases_in_both_layouts(page: Page, row: int, column: int) -> None:
    page.point("#panel-a canvas", row, column)
    assert page.text("#element") == f"Element ({row}, {column})"
    assert page.place("a") == found_in(LINEAR_A, row, column)
    assert page.place("b") == found_in(LINEAR_B, row, column)
    for key, layout in (("a", LINEAR_A), ("b", LINEAR_B)):
        place = found_in(layout, row, column)
        expected = [
            [f"{dim} {1 << i}", f"({', '.join(map(str, layout.basis(dim, i)))})"]
            for dim in layout.in_dims
            for i in range(layout.in_log(dim))
            if place[dim] >> i & 1
        ]
        rows = page.js(
            "return [...document.querySelectorAll(arguments[0])].map(r => [...r.children].map(c => c.innerText))",
            f"#made-{key} tr",
        )
        assert rows[:-1] == expected and rows[-1][1] == f"({row}, {column})"


def test_colours_of_cells(page: Page) -> None:
    page.click("#clear")
    for row, column in ((1, 1), (4, 6), (9, 20), (31, 31), (18, 5)):
        place = found_in(LINEAR_A, row, column)
        assert page.pixel("#panel-a canvas", row, column) == place_colour(place["warp"], 4, place["lane"], 32)


def test_selection_is_linked(page: Page) -> None:
    """What is pointed at in one layout is outlined in the other, in shared memory, and among the registers."""
    unmarked = {s: page.js("return document.querySelector(arguments[0]).toDataURL()", s) for s in ("#banks", "#before")}
    other = page.pixel("#panel-b canvas", 20, 20)
    page.point("#panel-a canvas", 2, 13)
    assert page.pixel("#panel-b canvas", 20, 20) != other  # other threads are dimmed
    for selector, before in unmarked.items():
        assert page.js("return document.querySelector(arguments[0]).toDataURL()", selector) != before
    page.point("#panel-b canvas", 9, 20)
    assert page.place("a") == found_in(LINEAR_A, 9, 20)


def test_hardware_and_matrix_views(page: Page) -> None:
    page.click("#panel-a input[value=hardware]")
    page.point("#panel-a canvas", 32 + 5, 6)  # warp 1, lane 5, register 6
    element = LINEAR_A.apply(register=6, lane=5, warp=1, block=0)
    assert page.text("#element") == f"Element ({element['dim0']}, {element['dim1']})"
    assert page.place("a") == {"register": 6, "lane": 5, "warp": 1, "block": 0}
    page.click("#panel-a input[value=matrix]")
    label = page.js("return document.querySelector('#panel-a canvas').getAttribute('aria-label')")
    assert label.startswith("matrix over F2")


def test_from_a_place_to_its_element(page: Page) -> None:
    for dim, value in (("register", 3), ("lane", 21), ("warp", 2)):
        page.fill(f"choose-b-{dim}", str(value))
    element = LINEAR_B.apply(register=3, lane=21, warp=2, block=0)
    row, column = element["dim0"], element["dim1"]
    assert page.text("#element") == f"Element ({row}, {column})"
    assert page.place("a") == found_in(LINEAR_A, row, column)


def test_touch(page: Page) -> None:
    x, y = page.spot("#panel-a canvas", 5, 8)
    touch = {"touchPoints": [{"x": x, "y": y}]}
    page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", **touch})
    page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert page.text("#element") == "Element (5, 8)" and page.place("b") == found_in(LINEAR_B, 5, 8)


def test_access_by_what_there_is(page: Page) -> None:
    """Without a second layout the first one is shown, and the other cannot be chosen."""
    page.go(b="", access="b")
    assert page.js("return document.getElementById('access').value") == "a"
    assert "wavefronts" in page.text("#banks-text")
    page.go(a=S, b=B, s=S, access="a")
    assert page.js("return document.getElementById('access').value") == "b"


def test_keyboard(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    canvas = page.browser.find_element("css selector", "#panel-a canvas")
    page.js("arguments[0].focus()", canvas)
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.text("#element") == "Element (1, 2)"
    canvas.send_keys(Keys.ENTER)
    assert "element=34" in page.browser.current_url
    canvas.send_keys(Keys.END, Keys.ESCAPE)
    assert page.text("#element") is None and "element" not in page.browser.current_url


def test_conversion_step_by_step(page: Page) -> None:
    kinds = page.js("return [...document.querySelectorAll('#steps button')].map(b => b.innerText)")
    assert kinds == ["0. start", "1. store", "2. barrier", "3. load"]
    page.click("#forward")
    assert page.text("#step-text").startswith("Each warp stores with 2 st.shared of 4 elements")
    page.point("#after", 0, 3)
    assert page.text("#moved") == "(0, 3) in offset 3, from register 3 of lane 0, warp 0"
    page.click("#forward")
    page.click("#forward")
    assert page.text("#step-text").endswith("Every element is where B wants it.")
    assert page.js("return document.querySelector('#forward').disabled")
    page.point("#after", 4, 1)
    element = LINEAR_B.apply(register=1, lane=4, warp=0, block=0)
    assert page.text("#moved").startswith(
        f"({element['dim0']}, {element['dim1']}) in register 1 of lane 4, warp 0, from offset"
    )
    page.fill("plan-warp", "3")
    page.point("#after", 4, 1)
    element = LINEAR_B.apply(register=1, lane=4, warp=3, block=0)
    assert page.text("#moved").startswith(f"({element['dim0']}, {element['dim1']}) in register 1 of lane 4, warp 3")


def test_every_kind_of_plan_ends_where_it_should(chromium: Any, tmp_path: Path) -> None:
    kinds = set()
    for seed in range(60):
        src, dst, bits, target = random_conversion(seed)
        shape = tuple(src.out_dims.values())
        if src.total_in_log > 12 or len(shape) != 2:
            continue
        plan = plan_conversion(src, dst, shape, bits, target)
        if (plan.kind, plan.src.in_dims["block"]) in kinds:
            continue
        kinds.add((plan.kind, plan.src.in_dims["block"]))
        path = tmp_path / f"{seed}.html"
        path.write_text(conversion_page(plan, PageLayout("A", src), PageLayout("B", dst), shape), encoding="utf-8")
        page = Page(chromium, path)
        page.open("step=99")
        text = page.text("#step-text")
        nothing = "Nothing has to be done: every element is in its place."
        assert text == nothing if plan.kind == "nothing" else text.endswith("Every element is where B wants it."), seed
        assert page.problems() == []
    assert {"shuffles", "shared", "cluster"} <= {kind for kind, _ in kinds}


EXPRESSIONS = [
    "A",
    "B",
    "S",
    "A.invert()",
    "A.compose(B.invert())",
    "B.invert_and_compose(A)",
    "A.invert_and_compose(S)",
    "A.transpose_outs(['dim1', 'dim0'])",
    "A.transpose_ins(['warp', 'lane', 'register', 'block'])",
    "A.flatten_ins().flatten_outs()",
    "A.reshape_outs({'x': 16, 'y': 64})",
    "A.reshape_ins({'place': 64, 'rest': 16})",
    "A.sublayout(['lane', 'warp'], ['dim1'])",
    "A.sublayout(['lane'], ['dim0', 'dim1']).remove_zero_bases('lane')",
    "A.resize_in('warp', 16)",
    "A.resize_in('register', 2)",
    "A.resize_out('dim0', 128)",
    "A.rename_ins({'lane': 'thread'}).rename_outs({'dim0': 'row'})",
    "A.unsqueeze_in('block')",
    "A.concat_ins("
    "LinearLayout.zeros_1d(2, 'more', 'dim0', 32).concat_outs(LinearLayout.zeros_1d(2, 'more', 'dim1', 32)))",
    "A * LinearLayout.identity_1d(4, 'register', 'dim0')",
    "LinearLayout.strided_1d(4, 8, 'lane', 'dim0') * LinearLayout.identity_1d(2, 'lane', 'dim1')",
    "LinearLayout.identity_1d(4, 'lane', 'dim0') * LinearLayout.zeros_1d(2, 'lane', 'dim0')",
    "(LinearLayout.identity_1d(4, 'lane', 'dim0') * LinearLayout.zeros_1d(2, 'lane', 'dim0')).pseudoinvert()",
    "(A * LinearLayout.identity_1d(4, 'register', 'dim0')).divide_left(A)",
    "(LinearLayout.identity_1d(4, 'register', 'dim0') * A).divide_right(A)",
    "LinearLayout({'register': [[0, 1]], 'lane': [[1, 1], [2, 0]]}, {'dim0': 4, 'dim1': 2})",
    "LinearLayout.from_bases({'register': [[0, 1]], 'lane': [[1, 1], [2, 0]]}, ['dim0', 'dim1'])",
    "{'register': [[0, 1], [0, 2]], 'lane': [[1, 0]]}",
    "LinearLayout.empty()",
    "(8,(4,2)):(4,(1,32)).flatten_ins()",
    "Swizzle<3,3,3> o (8,64):(64,1)",
    "Swizzle<2,0,3> o 0 o (8,8):(8,1)",
    "A.compose((32,32):(32,1))",
    "SliceLayout(1, BlockedLayout([1,4],[4,8],[4,1],[1,0])).to_linear([64])",
    "SliceLayout(0, NVMMADistributedLayout([2,0],[2,2],[16,8])).to_linear([16])",
    "BlockedLayout([2,2],[8,4],[1,4],[0,1]).to_linear([128, 64])",
    "BlockedLayout([1,4],[8,4],[4,1],[1,0]).to_linear([4, 8])",
    "BlockedLayout([1,2,1],[2,4,4],[1,2,2],[2,0,1]).to_linear([8, 16, 16])",
    "BlockedLayout([1,4],[8,4],[4,1],[1,0],[[1,0],[0,0],[0,1]]).to_linear([128, 64])",
    "gl.NVMMADistributedLayout(version=[3,0], warps_per_cta=[4,1], instr_shape=[16,64,16]).to_linear([128, 128])",
    "NVMMADistributedLayout([2,0],[1,2,2],[1,16,8]).to_linear([4, 64, 64])",
    "DotOperandLayout(0, NVMMADistributedLayout([2,0],[2,2],[16,8]), 2).to_linear([64, 64])",
    "DotOperandLayout(1, NVMMADistributedLayout([2,0],[2,2],[16,8]), 4).to_linear([64, 64])",
    "DotOperandLayout(1, BlockedLayout([1,4],[8,4],[4,1],[1,0]), 0).to_linear([32, 32])",
    "SwizzledSharedLayout(8, 2, 4, [0, 1]).to_linear([64, 32])",
    "SwizzledSharedLayout(4, 1, 8, [2, 1, 0]).to_linear([4, 32, 64])",
    "SwizzledSharedLayout(1, 1, 1, [0]).to_linear([64])",
    "NVMMASharedLayout(128, 16).to_linear([64, 128])",
    "NVMMASharedLayout(64, 8, transposed=True).to_linear([128, 64])",
    "NVMMASharedLayout(32, 32, rank=3).to_linear([4, 16, 32])",
    "NVMMASharedLayout(0, 16).to_linear([512, 64])",
    "NVMMASharedLayout(128, 8, fp4_padded=True).to_linear([64, 128])",
    "SharedLinearLayout([[0,1],[1,1],[2,0]]).to_linear([4, 2])",
    "DistributedLinearLayout([[0,1]],[[1,0],[0,2]],[],[],[2,4]).to_linear([2, 4])",
    "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
    "(Swizzle(3, 3, 3)) o ((8, 64) : (64, 1))",
    "ComposedLayout(Swizzle(2, 3, 3), Layout((8, (32, 2)), (32, (1, 256))), offset=0)",
    "((4, 8) : (8, 1)) o ((8, 4) : (4, 1))",
    "Layout((4, (2, 8)))",
    "(32,32):(33,1)",
    "((2,2),4):((4,8),1).flatten_ins()",
    "SW_0_0_0 o 0 o 4:1",
    "(4,2):(2,1) o 8:1",
]


def test_expressions_agree_with_python(page: Page) -> None:
    names = {k: as_linear(parse_layout(text), SHAPE) for k, text in (("A", A), ("B", B), ("S", S))}
    for text in EXPRESSIONS:
        linear = as_linear(parse_layout(text, SHAPE, names), SHAPE)
        page.fill("x", text)
        assert page.text("#x-error") == "", text
        assert page.js("return document.getElementById('bases').textContent") == str(linear)[1:], text


def changed_expressions(seed: int, count: int) -> list[str]:
    """Expressions with one or two words exchanged, added or left out."""
    rng = random.Random(seed)
    word = re.compile(r"\w+|'[^']*'|[^\w\s]")
    words = [*sorted({w for text in EXPRESSIONS for w in word.findall(text)}), "-1", "''", "constructor", "length"]
    found = []
    for _ in range(count):
        text = word.findall(rng.choice(EXPRESSIONS))
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(2)] = rng.choice([[], [rng.choice(words)], [rng.choice(words)]])
            text = text or ["A"]
        found.append("".join(text))
    return found


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.slow)])
def test_changed_expressions_agree_with_python(page: Page, count: int) -> None:
    """What is a layout here is the same one there, what is an error there is one here, and nothing else happens."""
    names = {k: as_linear(parse_layout(text), SHAPE) for k, text in (("A", A), ("B", B), ("S", S))}
    texts = changed_expressions(3, count)
    found = page.js(
        """
        const [x, bases, error] = ["x", "bases", "x-error"].map((id) => document.getElementById(id));
        return arguments[0].map((text) => {
          x.value = text;
          x.dispatchEvent(new Event("change"));
          return [bases.textContent, error.textContent];
        });
        """,
        texts,
    )
    layouts = 0
    for text, (bases, error) in zip(texts, found, strict=True):
        try:
            expected = str(as_linear(parse_layout(text, SHAPE, names), SHAPE))[1:]
            layouts += 1
        except LayoutError:
            expected = ""
        assert bases == expected and bool(error) == (not expected), text
    assert layouts > count // 25


WRONG = [
    "A.compose(A)",
    "A.sublayout(['lane'], ['dim0']).invert()",
    "A * B.rename_ins({'lane': 'warp', 'warp': 'lane'})",
    "A.divide_left(S)",
    "BlockedLayout([1,3],[4,8],[4,1],[1,0])",
    "BlockedLayout([1,4],[4,8],[4,1])",
    "BlockedLayout([1,4],[4,8],[4,1],[1,1])",
    "SliceLayout(1, A",
    "alert(1)",
    "A.constructor('return 1')()",
    "A.toString()",
    "constructor.constructor('return 1')()",
    "LinearLayout.prototype.x()",
    "__proto__",
    "A + B",
    "(4,8):(4,1)",
    "Swizzle<0,0,0> o 3 o 4:-1",
    "(4,8):(9",
    "Swizzle<3,3,2> o 0 o 8:1",
    "Swizzle<3,3,3>",
    "(4,8):(0,1)",
    "(4,4):(32,1)",
    "(4,8):(1@0,1@1)",
    "A o 4:1",
]


def test_wrong_expressions_are_errors_with_a_place(page: Page) -> None:
    for text in WRONG:
        page.fill("x", "A")
        assert page.text("#bases") != ""
        page.fill("x", text)
        lines = page.js("return document.getElementById('x-error').textContent").splitlines()
        assert lines[0] == text and set(lines[1]) <= {" ", "^"} and "^" in lines[1]
        assert len(lines) == 3 or (len(lines) == 4 and lines[3].startswith("hint: ")), text
        assert page.text("#bases") == "", text


@pytest.mark.parametrize("count", [15, pytest.param(80, marks=pytest.mark.slow)])
def test_wavefronts_agree_with_python(page: Page, count: int) -> None:
    rng = random.Random(7)
    seen = set()
    for _ in range(count):
        registers: Any
        if rng.random() < 0.6:
            lanes, size = rng.randrange(6), rng.randrange(5)
            registers = BlockedLayout([1, 1 << size], [1 << lanes, 32 >> lanes], [2, 1], rng.choice([[0, 1], [1, 0]]))
        else:
            registers = NVMMADistributedLayout([2, 0], [2, 1], [16, 8])
        bits = rng.choice([8, 16, 32, 64])
        shared: Any = SwizzledSharedLayout(
            1 << rng.randrange(5), 1 << rng.randrange(3), 1 << rng.randrange(4), rng.choice([[0, 1], [1, 0]])
        )
        if rng.random() < 0.2:
            shared = NVMMASharedLayout(rng.choice([32, 64]), bits)
        expected = wavefronts(registers, shared, [64, 64], bits)
        page.go(shape="64x64", bits=str(bits), a=repr(registers), b="", s=repr(shared), x="")
        assert f" {expected} wavefront{'s' if expected > 1 else ''}, least " in page.text("#banks-text"), (
            registers,
            shared,
            bits,
        )
        seen.add(expected)
    assert len(seen) > 4


def test_banks_show_who_reads_what(page: Page) -> None:
    for identifier, value in (
        ("shape", "32x16"),
        ("bits", "32"),
        ("expression-a", "BlockedLayout([1,1],[32,1],[1,1],[1,0])"),
        ("s", "SwizzledSharedLayout(1,1,8,[1,0])"),
    ):
        page.fill(identifier, value)
    assert page.text("#banks-text") == (
        "32 bits a lane (1 element): 4 wavefronts, least 1; 3 lost to bank conflicts. "
        "16 instructions a warp, 64 wavefronts."
    )
    page.point("#banks", 4, 0)
    assert page.text("#word") == "byte 512, bank 0, element (8, 0): lane 8 in wavefront 1"
    page.point("#banks", 4, 1)
    assert page.text("#word") == "byte 516, bank 1, element (8, 1): not accessed by this instruction"
    page.fill("wavefront", "1")
    page.point("#banks", 0, 0)
    assert page.text("#word").endswith("not accessed by this instruction")


def test_link_brings_back_what_is_shown(page: Page) -> None:
    for identifier, value in (
        ("shape", "64x32"),
        ("expression-b", "BlockedLayout([4,1],[8,4],[1,4],[0,1])"),
        ("x", "A.invert()"),
        ("vector", "1"),
        ("warp", "1"),
        ("instruction", "1"),
        ("via", "s"),
    ):
        page.fill(identifier, value)
    page.click("#panel-b input[value=hardware]")
    page.click("#steps [data-step='2']")
    page.point("#panel-a canvas", 33, 9, click=True)
    page.click("#link")

    def shown() -> list[Any]:
        fields = [
            "shape",
            "bits",
            "expression-a",
            "expression-b",
            "s",
            "x",
            "access",
            "warp",
            "instruction",
            "wavefront",
        ]
        values = page.js("return arguments[0].map(i => document.getElementById(i).value)", fields)
        pictures = page.js(
            "return [...document.querySelectorAll('canvas')].map(c => [c.id || c.closest('article').id, c.toDataURL()])"
        )
        texts = [page.text(s) for s in ("#inspector", "#step-text", "#banks-text", "#bases")]
        return [values, texts, pictures]

    page.js("document.activeElement.blur()")
    before, address = shown(), page.browser.current_url
    assert "vector=1" in address and "via=s" in address
    assert before[0][0] == "64x32" and "Element (33, 9)" in before[1][0]
    page.browser.get("about:blank")
    page.browser.get(address)
    after = shown()
    assert [a[0] for a, b in zip(after[2], before[2], strict=True) if a != b] == []
    assert after == before


def test_nothing_is_loaded_and_names_are_there(page: Page) -> None:
    assert page.js("return performance.getEntriesByType('resource').map(e => e.name)") == []
    unnamed = page.js(
        "const named = e => e.getAttribute('aria-label') || e.labels?.length || e.innerText?.trim() || e.title;"
        "const all = [...document.querySelectorAll('input, select, button, canvas')];"
        "return all.filter(e => e.checkVisibility() && !named(e)).map(e => e.outerHTML)"
    )
    assert unnamed == []


POOR_CONTRASTS = """
const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
const linear = (x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
};
const written = (e) =>
  !e.disabled && e.checkVisibility() && !['SCRIPT', 'STYLE', 'OPTION'].includes(e.tagName) &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
const found = [...document.querySelectorAll('body *')].filter(written).map((e) => {
  const both = [luminance(parse(getComputedStyle(e).color)), luminance(ground(e))];
  return [(Math.max(...both) + 0.05) / (Math.min(...both) + 0.05), e.tagName + ' ' + e.textContent.trim().slice(0, 30)];
});
if (found.length < 40) return ['nothing was looked at'];
return found.filter(([ratio]) => ratio < 4.5);
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_of_texts(page: Page, theme: str) -> None:
    """WCAG AA in both themes: every visible text against the background it stands on."""
    page.js("document.documentElement.dataset.theme = arguments[0]", theme)
    page.js("document.querySelectorAll('*').forEach(e => (e.style.transition = 'none'))")
    page.point("#panel-a canvas", 2, 13)
    page.fill("x", "A.compose(A)")
    assert page.js(POOR_CONTRASTS) == []
