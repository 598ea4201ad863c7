"""Pictures as text and as SVG, whole, on small layouts; and `weft layout`."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
import threading
from importlib import metadata
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from weft.cli import main
from weft.cli_layout import ESCAPE
from weft.layouts import AffineLayout, AMDMFMALayout, BlockedLayout, LinearLayout, SliceLayout, SwizzledSharedLayout
from weft.layouts.plan import plan_conversion, plan_gather, plan_local_access, plan_reduction
from weft.view import as_linear, grid_of, natural_shape, parse_layout, render_text, to_html, to_svg
from weft.view.colours import hexadecimal, ink, oklch, place_colour

BLOCKED = BlockedLayout([1, 2], [2, 2], [2, 1], [1, 0])
TEXT = "BlockedLayout([1,2],[2,2],[2,1],[1,0])"

PLAIN = {
    "tile": """\
tile dim0 4 x dim1 4
each element: warp:lane:register

      0     1     2     3
0 0:0:0 0:0:1 0:1:0 0:1:1
1 0:2:0 0:2:1 0:3:0 0:3:1
2 1:0:0 1:0:1 1:1:0 1:1:1
3 1:2:0 1:2:1 1:3:0 1:3:1""",
    "hardware": """\
hardware
a row for each lane, a column for each register
each place: the element (dim0, dim1)

        0   1
w0 t0 0,0 0,1
w0 t1 0,2 0,3
w0 t2 1,0 1,1
w0 t3 1,2 1,3
w1 t0 2,0 2,1
w1 t1 2,2 2,3
w1 t2 3,0 3,1
w1 t3 3,2 3,3""",
    "matrix": """\
matrix over F2
rows are bits of the output, columns bits of the input

        reg.0 lane.0 lane.1 warp.0
dim0.0      .      .      1      .
dim0.1      .      .      .      1
dim1.0      1      .      .      .
dim1.1      .      1      .      .""",
}


@pytest.mark.parametrize("view", PLAIN)
def test_plain(view: str) -> None:
    assert render_text(grid_of(BLOCKED, view=view)) == PLAIN[view]


def test_copies_and_rank_one() -> None:
    assert (
        render_text(grid_of(SliceLayout(1, BLOCKED), (4,)))
        == """\
tile dim0 4
each element: warp:lane
+ the first of 2 places that have the element

     0    1    2    3
0 0:0+ 0:2+ 1:0+ 1:2+"""
    )


def test_elements_that_nothing_has() -> None:
    hole = LinearLayout.from_bases({"lane": [(2,)]}, {"dim0": 4}, require_surjective=False)
    assert (
        render_text(grid_of(hole))
        == """\
tile dim0 4
each element: lane
. no place has the element

  0 1 2 3
0 0 . 1 ."""
    )


def test_shared() -> None:
    shared = SwizzledSharedLayout(2, 1, 2, [1, 0])
    assert (
        render_text(grid_of(shared, (2, 4)))
        == """\
tile dim0 2 x dim1 4
each element: offset

  0 1 2 3
0 0 1 2 3
1 6 7 4 5"""
    )
    assert render_text(grid_of(shared, (8, 16), "hardware", element_bits=64)).splitlines()[4:7] == [
        "       0    1    2    3    4    5    6    7    8    9   10   11   12   13   14   15",
        "  0  0,0  0,1  0,2  0,3  0,4  0,5  0,6  0,7  0,8  0,9 0,10 0,11 0,12 0,13 0,14 0,15",
        "128  1,2  1,3  1,0  1,1  1,6  1,7  1,4  1,5 1,10 1,11  1,8  1,9 1,14 1,15 1,12 1,13",
    ]


def test_three_dimensions_are_rows_of_rows() -> None:
    layout = BlockedLayout([1, 1, 2], [2, 2, 1], [1, 1, 1], [2, 1, 0])
    lines = render_text(grid_of(layout)).splitlines()
    assert lines[4:] == ["0,0 0:0 0:1", "0,1 1:0 1:1", "1,0 2:0 2:1", "1,1 3:0 3:1"]


def test_cut() -> None:
    text = render_text(grid_of(BLOCKED, limit=(2, 3)))
    assert text.splitlines()[3:] == [
        "      0     1     2",
        "0 0:0:0 0:0:1 0:1:0",
        "1 0:2:0 0:2:1 0:3:0",
        "(cut: 2 of 4 rows and 3 of 4 columns are shown)",
    ]


def test_colours() -> None:
    """The register is written, the colour is that of warp and lane, and taking the colours out leaves aligned text."""
    text = render_text(grid_of(BLOCKED), 24)
    r, g, b = place_colour(1, 2, 3, 4)
    assert f"\x1b[97;48;2;{r};{g};{b}m" in text or f"\x1b[30;48;2;{r};{g};{b}m" in text
    assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()][2:] == [
        " warp 0   warp 1",
        "",
        "  0 1 2 3",
        "0 0 1 0 1",
        "1 0 1 0 1",
        "2 0 1 0 1",
        "3 0 1 0 1",
    ]
    assert re.search(r"\x1b\[(30|97);48;5;\d+m", render_text(grid_of(BLOCKED), 8))


def test_contrast() -> None:
    """WCAG AA: what is written on any colour of a place has a contrast of 4.5 or more."""

    def luminance(colour: tuple[int, ...]) -> float:
        r, g, b = (x / 255 / 12.92 if x <= 10 else ((x / 255 + 0.055) / 1.055) ** 2.4 for x in colour)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for warp in range(16):
        for lane in range(32):
            fill = place_colour(warp, 16, lane, 32)
            text = 0.0 if ink(fill) == "#000000" else 1.0
            light, dark = max(text, luminance(fill)), min(text, luminance(fill))
            assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len({place_colour(w, 8, x, 32) for w in range(8) for x in range(32)}) == 256
    assert oklch(0.62796, 0.25768, 29.23) == (255, 0, 0)  # sRGB red


def test_svg() -> None:
    first = SliceLayout(1, BlockedLayout([1, 1], [2, 1], [1, 1], [1, 0]))
    assert (
        to_svg(first).replace("\N{NO-BREAK SPACE}", "_")
        == """\
<svg xmlns="http://www.w3.org/2000/svg" width="419" height="110" viewBox="0 0 419 110" role="img" \
font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="11">
<title>SliceLayout(1, BlockedLayout([1, 1], [2, 1], [1, 1], [1, 0]))</title>
<desc>tile dim0 2; each element: register; shade the lane</desc>
<rect width="419" height="110" fill="#ffffff"/>
<text x="8" y="16" fill="#1b1f27" font-weight="600">SliceLayout(1, BlockedLayout([1, 1], [2, 1], [1, 1], [1, 0]))</text>
<text x="8" y="34" fill="#1b1f27">tile dim0 2, each element: register; shade the lane</text>
<rect x="8" y="44" width="12" height="12" rx="3" fill="#3164a3"/>
<text x="24" y="54" fill="#1b1f27">warp 0</text>
<g transform="translate(21 82) scale(19.8 20)">
<path fill="#b4ecff" d="M0 0h1v1h-1z"><title>lane 0</title></path>
<path fill="#3164a3" d="M1 0h1v1h-1z"><title>lane 1</title></path>
</g>
<g transform="translate(21 82)">
<path stroke="#ffffff" d="M19.8 0v20"/>
<g fill="#5b6472">
<text x="6.6" y="-6" textLength="26.4">0__1</text>
<text x="-6" y="14" text-anchor="end">0</text>
</g>
<g pointer-events="none">
<text x="6.6" y="14" textLength="6.6" fill="#000000">0</text>
<text x="26.4" y="14" textLength="6.6" fill="#ffffff">0</text>
</g>
</g>
</svg>"""
    )


def test_svg_has_every_cell_in_its_colour() -> None:
    """The paths cover every cell once, with the colour that it has in the grid; the texts stand in their columns."""
    rng = random.Random(22)
    for _ in range(20):
        sizes, lanes = [1 << rng.randrange(3) for _ in range(2)], rng.choice([[4, 8], [32, 1], [8, 4]])
        layout = BlockedLayout(sizes, lanes, rng.choice([[2, 2], [1, 4]]), rng.choice([[0, 1], [1, 0]]))
        grid = grid_of(layout, (32, 32))
        root = ElementTree.fromstring(to_svg(layout, (32, 32)))
        cells, texts = root.findall("{*}g")
        drawn: dict[tuple[int, int], tuple[str, str]] = {}
        for path in cells.findall("{*}path"):
            title = path.find("{*}title")
            for c, r, wide, high in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z", path.attrib["d"]):
                for i, j in product(range(int(high)), range(int(wide))):
                    at = int(r) + i, int(c) + j
                    assert at not in drawn
                    drawn[at] = path.attrib["fill"], "" if title is None else str(title.text)
        places = [((r, c), cell) for r, row in enumerate(grid.cells) for c, cell in enumerate(row)]
        expected = {place: (hexadecimal(cell.fill), cell.group) for place, cell in places}
        assert {at: fill for at, (fill, _) in drawn.items()} == {at: fill for at, (fill, _) in expected.items()}
        assert len({g for _, g in expected.values()}) > 300 or drawn == expected
        assert expected[3, 5][1] == place_name(layout, 3, 5)
        rows: dict[int, list[tuple[float, str]]] = {}
        for text in texts.findall("{*}g")[1]:
            rows.setdefault((int(text.attrib["y"]) - 14) // 20, []).append((float(text.attrib["x"]), str(text.text)))
        for r, row in enumerate(grid.cells):
            letters = max(len(c.short) for line in grid.cells for c in line)
            line = [" "] * ((max(letters, 2) + 2) * 32)
            for x, text in rows[r]:
                for i, letter in enumerate(text):
                    if letter != "\N{NO-BREAK SPACE}":
                        line[round(x / 6.6) + i] = letter
            assert "".join(line).split() == [cell.short for cell in row]


def place_name(layout: BlockedLayout, row: int, column: int) -> str:
    """Which warp and lane have an element, by the inverse."""
    place = layout.to_linear((32, 32)).pseudoinvert().apply(dim0=row, dim1=column)
    return f"warp {place['warp']}, lane {place['lane']}"


def test_svg_of_plans_and_pieces_of_html_are_well_formed() -> None:
    other = BlockedLayout([2, 1], [2, 2], [1, 2], [0, 1])
    plan = plan_conversion(BLOCKED, other, (4, 4), 32, "cuda:90")
    for svg in (to_svg(plan), to_svg(BLOCKED, view="matrix"), to_svg(BLOCKED, view="hardware")):
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for thing in (plan, BLOCKED, BLOCKED.to_linear((4, 4))):
        html = to_html(thing)
        ElementTree.fromstring(f"<body>{html}</body>")
        assert "<script" not in html
    assert "1 | " not in to_html(plan) and "considered:" in to_html(plan)


def test_notebooks() -> None:
    """What a notebook asks for is there, and static; of a layout that cannot be drawn the text is shown."""
    linear = BLOCKED.to_linear((4, 4))
    for thing in (BLOCKED, linear, plan_conversion(BLOCKED, BLOCKED, (4, 4), 32)):
        assert "<svg" in thing._repr_html_() and not hasattr(thing, "_repr_svg_")
    assert LinearLayout.identity_1d(1 << 30, "lane", "dim0")._repr_html_() is None


def test_notebooks_show_every_kind_of_plan_and_affine_layouts() -> None:
    flipped = AffineLayout.flip_1d(4, "lane", "dim0")
    assert [[cell.full for cell in row] for row in grid_of(flipped).cells] == [["3", "2", "1", "0"]]
    assert grid_of(flipped, view="matrix").cells == grid_of(flipped.linear, view="matrix").cells
    assert [[cell.full for cell in row] for row in grid_of(flipped, view="hardware").cells] == [
        ["3"],
        ["2"],
        ["1"],
        ["0"],
    ]
    memory = SwizzledSharedLayout(1, 1, 4, [1, 0])
    plans = (
        plan_gather(BLOCKED, BLOCKED, (4, 4), (4, 4), 1, 8),
        plan_reduction(BLOCKED, (4, 4), 0, 32),
        plan_local_access(BLOCKED, memory, (4, 4), 32),
    )
    for thing in (flipped, *plans):
        html = thing._repr_html_()
        ElementTree.fromstring(f"<body>{html}</body>")
        assert "<script" not in html and (thing is flipped or "cycles a warp" in html)


def test_notebooks_that_import_layouts_alone() -> None:
    """The room that draws is found when the first picture is asked for, and is not loaded before."""
    if not metadata.entry_points(group="weft.pictures"):
        pytest.skip("the room that draws is found where Weft is installed, not where its sources are on the path")
    program = """if True:
        import sys
        from weft.layouts import BlockedLayout
        layout = BlockedLayout([1, 2], [2, 2], [2, 1], [1, 0])
        assert "weft.view" not in sys.modules
        assert "<svg" in layout._repr_html_() and "<svg" in layout.to_linear((4, 4))._repr_html_()
        """
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("BlockedLayout([1,4],[8,4],[4,1],[1,0])", (32, 16)),
        ("SliceLayout(1,BlockedLayout([1,4],[8,4],[4,1],[1,0]))", (32,)),
        ("NVMMADistributedLayout([2,0],[2,2],[16,8])", (32, 16)),
        ("NVMMADistributedLayout([3,0],[4,1],[16,64,16])", (64, 64)),
        ("NVMMASharedLayout(128,16)", (8, 64)),
        ("NVMMASharedLayout(128,16,transposed=True)", (64, 8)),
        ("SwizzledSharedLayout(8,1,8,[1,0])", (8, 64)),
        ("SharedLinearLayout([[0,1],[2,0],[1,0]])", (4, 2)),
        ("TensorMemoryLayout([128,64],1,cta_split_num=[1,2])", (128, 128)),
    ],
)
def test_natural_shape(text: str, shape: tuple[int, ...]) -> None:
    layout = parse_layout(text)
    assert natural_shape(layout) == shape
    layout.to_linear(shape)


# -- the command line


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["layout", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(capsys, "show", TEXT) == (0, f"{TEXT}\n{PLAIN['tile']}\n", "")
    assert run(capsys, "show", TEXT, "--hardware", "--shape", "4x4")[1] == f"{TEXT}\n{PLAIN['hardware']}\n"
    assert run(capsys, "show", TEXT, "--matrix")[1] == f"{TEXT}\n{PLAIN['matrix']}\n"
    assert "\x1b[" in run(capsys, "show", TEXT, "--color", "always")[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "48;5;" in run(capsys, "show", TEXT)[1]
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert "48;2;" in run(capsys, "show", TEXT)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(capsys, "show", TEXT)[1]


def test_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real terminal: colours as it can show them, and no line longer than it is wide."""
    for name in ("NO_COLOR", "COLORTERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    plain = on_terminal(80, "show", TEXT, "--shape", "64x128", TERM="dumb")
    assert "\x1b[" not in plain and "each element: warp:lane:register" in plain
    for width in (40, 80, 200):
        for view in ((), ("--hardware",)):
            text = on_terminal(width, "show", TEXT, "--shape", "64x128", *view, TERM="xterm-256color")
            assert "48;5;" in text and "48;2;" not in text
            rows = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n\n")[1].splitlines()
            assert max(len(row) for row in rows if "cut" not in row) <= width
    text = on_terminal(80, "show", TEXT, TERM="xterm", COLORTERM="truecolor")
    assert "48;2;" in text and "each element: register; hue the warp, shade the lane" in text
    assert "\x1b[" not in on_terminal(80, "show", TEXT, TERM="xterm", NO_COLOR="1")
    assert "\x1b[" in on_terminal(80, "show", TEXT, TERM="xterm", NO_COLOR="")  # an empty one counts for nothing
    assert "\x1b[" not in on_terminal(80, "show", TEXT, "--color", "never", TERM="xterm")


def on_terminal(width: int, *arguments: str, **environment: str) -> str:
    """What a command prints on a terminal of that width, in this process."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, width))
    found: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(master, 1 << 16):
                found.append(part)
        except OSError:  # the other side is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with pytest.MonkeyPatch.context() as patch, open(slave, "w", encoding="utf-8") as terminal:
        for stream in ("stdout", "__stdout__", "stderr"):
            patch.setattr(sys, stream, terminal)
        for name, value in environment.items():
            patch.setenv(name, value)
        assert main(["layout", *arguments]) == 0
    reader.join()
    os.close(master)
    return b"".join(found).decode().replace("\r\n", "\n")


def test_tensor_memory(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "show", "TensorMemoryLayout([64,2],1)", "--color", "always")[1]
    lines = [line.rstrip() for line in ESCAPE.sub("", out).splitlines()]
    assert lines[2] == "each element: col:row" and lines[6:8] == [" 0   0:0+   1:0+", " 1   0:1+   1:1+"]


def test_padding(capsys: pytest.CaptureFixture[str]) -> None:
    """Offsets as they are in memory, and the gaps."""
    padded = "PaddedSharedLayout.with_identity_for([[4,2]],[2,8],[1,0])"
    assert (
        run(capsys, "show", padded)[1]
        == f"""\
{padded}
tile dim0 2 x dim1 8
each element: offset (with padding)

   0  1  2  3  4  5  6  7
0  0  1  2  3  6  7  8  9
1 12 13 14 15 18 19 20 21
"""
    )
    assert run(capsys, "show", padded, "--hardware", "--bits", "128")[1].splitlines()[4:] == [
        ". padding",
        "",
        "      0   1   2   3   4   5   6   7",
        "  0 0,0 0,1 0,2 0,3   .   . 0,4 0,5",
        "128 0,6 0,7   .   . 1,0 1,1 1,2 1,3",
        "256   .   . 1,4 1,5 1,6 1,7   .   .",
    ]


def test_show_names_what_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    bases = "LinearLayout({'register': [[0, 1]], 'lane': [[0, 2], [1, 0]], 'warp': [[2, 0]]}, {'dim0': 4, 'dim1': 4})"
    assert run(capsys, "show", bases)[1] == f"{bases}\n= {BLOCKED!r}\n{PLAIN['tile']}\n"
    assert json.loads(run(capsys, "show", bases, "--json")[1])["name"] == repr(BLOCKED)
    out = run(capsys, "show", "Swizzle<2,0,3> o 0 o (8,8):(8,1)")[1]
    assert out.splitlines()[1] == "= SwizzledSharedLayout(1, 1, 4, [1, 0])"
    odd = "{'lane': [[1, 1], [0, 1]]}"
    named = "DistributedLinearLayout([], [[1, 1], [0, 1]], [], [], [2, 2])"
    assert run(capsys, "show", odd)[1].startswith(f"{odd}\n= {named}\ntile dim0 2 x dim1 2\n")
    odd = "{'seat': [[1, 1], [0, 1]]}"  # of no hardware
    assert run(capsys, "show", odd)[1].startswith(f"{odd}\ntile dim0 2 x dim1 2\n")


def test_show_results_of_the_algebra(capsys: pytest.CaptureFixture[str]) -> None:
    """Layouts whose tile is not that of the operands, down to the empty one."""
    code, out, err = run(capsys, "show", f"{TEXT}.invert()", "--shape", "4x4")
    assert (code, err) == (0, "") and out.startswith(f"{TEXT}.invert()\ntile register 2 x lane 4 x warp 2 x block 1\n")
    for view in ((), ("--hardware",), ("--matrix",)):
        assert run(capsys, "show", "LinearLayout.empty()", *view)[0] == 0


def test_show_cuts_large_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "show", TEXT, "--shape", "128x128")[1]
    assert out.endswith("(cut: 64 of 128 rows and 64 of 128 columns are shown)\n")
    assert len(run(capsys, "show", TEXT, "--shape", "128x128", "--all")[1].splitlines()) == 133


def test_show_json_and_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    facts = json.loads(run(capsys, "show", TEXT, "--json")[1])
    assert facts["bases"] == {"register": [[0, 1]], "lane": [[0, 2], [1, 0]], "warp": [[2, 0]], "block": []}
    assert facts["shape"] == [4, 4] and facts["rank"] == 4 and facts["injective"]
    svg, html = tmp_path / "a.svg", tmp_path / "a.html"
    code, out, err = run(capsys, "show", TEXT, "--svg", str(svg), "--html", str(html))
    assert (code, out, err) == (0, "", f"{svg} written\n{html} written\n")
    ElementTree.parse(svg)
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_convert(capsys: pytest.CaptureFixture[str]) -> None:
    transposed = "BlockedLayout([2,1],[2,2],[1,2],[0,1])"
    code, out, _ = run(capsys, "convert", TEXT, transposed, "--bits", "16", "--target", "cuda:90")
    assert code == 0 and out.startswith(f"{TEXT}\n-> {transposed}\n4x4, 16 bits, cuda:90\n  1. store: ")
    found = json.loads(run(capsys, "convert", TEXT, transposed, "--shape", "4x4", "--json")[1])
    assert [s["kind"] for s in found["steps"]] == ["store", "barrier", "load"]
    assert found["kind"] == "shared" and found["cost"]["scratch_bytes"] == 64
    assert "nothing: 0 cycles" in run(capsys, "convert", TEXT, TEXT)[1]


def test_convert_to_shared_memory_and_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    memory = "SwizzledSharedLayout(4, 1, 8, [1, 0])"
    rows, html = "BlockedLayout([1,4],[4,8],[4,1],[1,0])", tmp_path / "a.html"
    code, out, _ = run(capsys, "convert", rows, memory, "--shape", "32x32", "--html", str(html))
    assert code == 0 and out.startswith(f"{rows}\n-> {memory}\n32x32, 32 bits, cuda:90\n  1. store: Each warp stores")
    assert '"opens":"banks"' in html.read_text(encoding="utf-8")
    found = json.loads(run(capsys, "convert", memory, rows, "--shape", "32x32", "--json")[1])
    assert (found["kind"], found["instruction"], found["wavefronts"]) == ("load", "ld.shared", 4)
    assert run(capsys, "convert", rows, "(32,32):(32,1)", "--shape", "32x32")[1].count("st.shared") == 2
    code, _, err = run(capsys, "convert", memory, memory, "--shape", "32x32")
    assert code == 2 and "both layouts are in shared memory" in err and "convert the first to a layout in reg" in err


def test_names_of_dimensions(capsys: pytest.CaptureFixture[str]) -> None:
    """They can be given, and layouts that have names of their own go with those that have none."""
    assert run(capsys, "show", TEXT, "--dims", "M,N")[1].splitlines()[1] == "tile M 4 x N 4"
    own = "LinearLayout({'register': [[0,1],[0,2]], 'lane': [[1,0],[2,0]]}, {'M': 4, 'N': 4})"
    assert run(capsys, "conflicts", own, "SwizzledSharedLayout(1,1,1,[1,0])")[0] == 0
    assert run(capsys, "convert", own, "BlockedLayout([4,1],[1,4],[1,1],[1,0])")[0] == 0
    code, _, err = run(capsys, "show", TEXT, "--dims", "M,N,K")
    assert code == 2 and "dims must name the 2 dimensions of the tile, each once, got ['M', 'N', 'K']" in err
    linear = BlockedLayout([1, 2], [2, 2], [2, 1], [1, 0]).to_linear([4, 4], ["row", "column"])
    assert list(linear.out_dims) == ["row", "column"] == list(as_linear(linear, None, ["M", "N"]).out_dims)


def test_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of 16 words read by columns: xor with more phases spreads them over more banks."""
    columns = "BlockedLayout([1,1],[32,1],[1,1],[1,0])"
    found = {}
    for phases in (1, 8, 16):
        shared = f"SwizzledSharedLayout(1,1,{phases},[1,0])"
        facts = json.loads(run(capsys, "conflicts", columns, shared, "--shape", "32x16", "--json")[1])
        found[phases] = (facts["vector"], facts["instructions"], facts["wavefronts"], facts["least"])
        assert facts["bank_conflicts"] == facts["wavefronts"] // facts["least"] - 1
    assert found == {1: (4, 4, 16, 4), 8: (1, 16, 4, 1), 16: (1, 16, 2, 1)}
    out = run(capsys, "conflicts", columns, "SwizzledSharedLayout(1,1,8,[1,0])", "--shape", "32x16")[1]
    assert out.endswith("     4 wavefronts each, 1 at least: 3 lost to bank conflicts\n")
    assert run(capsys, "conflicts", "SwizzledSharedLayout(1,1,8,[1,0])", columns, "--shape", "32x16")[0] == 2


def test_conflicts_of_waves_of_64_lanes(capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen bytes of each lane are eight times 128 bytes, however they lie."""
    mma = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>"
    arguments = ("SwizzledSharedLayout(8, 1, 8, [1, 0])", "--shape", "64x64", "--bits", "16")
    out = run(capsys, "conflicts", f"#ttg.dot_op<{{opIdx = 0, parent = {mma}, kWidth = 8}}>", *arguments)[1]
    assert out.endswith("     8 wavefronts each, 8 at least: none lost to bank conflicts\n")


def test_conflicts_of_a_chosen_vector(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "BlockedLayout([1,4],[4,8],[1,1],[1,0])"
    for vector, found in ((4, (1, 4, 4)), (2, (2, 4, 2)), (1, (4, 4, 1))):
        arguments = (rows, "SwizzledSharedLayout(1,1,1,[1,0])", "--shape", "4x32", "--vector", str(vector), "--json")
        facts = json.loads(run(capsys, "conflicts", *arguments)[1])
        assert (facts["instructions"], facts["wavefronts"], facts["least"]) == found
    code, _, err = run(
        capsys, "conflicts", rows, "SwizzledSharedLayout(1,1,1,[1,0])", "--shape", "4x32", "--vector", "8"
    )
    assert code == 2 and "a vector of 8 elements was requested, but a lane has only 4 in a row" in err
    lanes = "{'lane': [[0,1],[1,0]]}"  # no registers: an element for each lane
    facts = json.loads(
        run(capsys, "conflicts", lanes, "SwizzledSharedLayout(1,1,1,[1,0])", "--shape", "2x2", "--json")[1]
    )
    assert (facts["vector"], facts["instructions"], facts["wavefronts"]) == (1, 1, 1)


def test_a_second_layout_is_in_all_that_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other, svg = "SwizzledSharedLayout(1,1,2,[1,0])", tmp_path / "a.svg"
    out = run(capsys, "show", TEXT, other)[1]
    assert out.startswith(f"{TEXT}\ntile dim0 4 x dim1 4\n") and f"\n{other}\ntile dim0 4 x dim1 4\n" in out
    facts = json.loads(run(capsys, "show", TEXT, other, "--json", "--svg", str(svg))[1])
    assert facts["expression"] == TEXT and facts["other"]["bases"]["offset"] == [[0, 1], [0, 2], [1, 1], [2, 0]]
    assert len(ElementTree.parse(svg).getroot().findall("{http://www.w3.org/2000/svg}svg")) == 2


def test_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "show", "BlockedLayout([1,2],[2,2],[2,1])")
    assert (code, out) == (2, "") and "missing a required argument: 'order'" in err and "^^^" in err
    assert run(capsys, "convert", TEXT, TEXT, "--target", "cuda:1")[0] == 2
    assert run(capsys, "convert", TEXT, "TensorMemoryLayout([128, 64], 1)", "--shape", "4x4")[0] == 2
    assert run(capsys, "show", TEXT, "--html", str(tmp_path / "none" / "a.html"))[0] == 2
    large = "LinearLayout.identity_1d(1073741824, 'lane', 'dim0')"
    for option in ((), ("--html", str(tmp_path / "a.html")), ("--svg", str(tmp_path / "a.svg"))):
        code, _, err = run(capsys, "show", large, *option)
        assert code == 2 and "2^30" in err
    for wrong in ("3x4", "axb", "0x4", ""):
        with pytest.raises(SystemExit):
            main(["layout", "show", TEXT, "--shape", wrong])
    capsys.readouterr()


BLOCKED_TEXT = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
OLD_TEXT = "#ttg.amd_mfma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16]}>"


def test_what_other_programs_print(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of triton-tensor-layout, of layout IR and of tensor-layouts, and standard input, in every command."""
    blocked = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    product = AMDMFMALayout(2, [16, 16, 16], True, [4, 1])
    head = "Print layout attribute: "
    prints = tmp_path / "prints.txt"
    tile = f"{head}#blocked = {BLOCKED_TEXT}\n{blocked.format_tensor_view([16, 16])}\n"
    prints.write_text(f"{tile}{head}#mfma = {OLD_TEXT}\n{product.format_tensor_view([16, 16])}")
    code, _, err = run(capsys, "show", f"@{prints}")
    assert code == 2 and "has 2 layouts: #blocked, #mfma\nhint: choose one of them: @FILE#blocked" in err
    assert f"{BLOCKED_TEXT}.to_linear([16, 16])\n= Blocked" in run(capsys, "show", f"@{prints}#blocked")[1]
    facts = json.loads(run(capsys, "show", f"@{prints}#mfma", "--lanes", "64", "--json")[1])
    expected = product.to_linear([16, 16])
    assert facts["in_dims"] == expected.in_dims
    assert facts["bases"] == {name: [list(b) for b in bases] for name, bases in expected.bases.items()}
    assert run(capsys, "convert", f"@{prints}#blocked", f"@{prints}#blocked")[1].endswith("the layouts are equal\n")
    assert "has no layout #mma; it has #blocked, #mfma" in run(capsys, "show", f"@{prints}#mma")[2]

    prints.write_text(tile.replace("sizePerThread = [1, 4]", "sizePerThread = [1, 2]"))
    assert "the picture of #blocked is not that of its attribute" in run(capsys, "show", f"@{prints}")[2]
    prints.write_text(f"{head}{BLOCKED_TEXT}\n{blocked.format_hardware_view([16, 32])}")
    assert f"{BLOCKED_TEXT}.to_linear([16, 32])" in run(capsys, "show", f"@{prints}")[1]
    prints.write_text(product.format_tensor_view([16, 16]))
    assert json.loads(run(capsys, "show", f"@{prints}", "--lanes", "64", "--json")[1])["bases"] == facts["bases"]
    prints.write_text(f"#blocked = {BLOCKED_TEXT}\n#rows = #ttg.slice<{{dim = 1, parent = #blocked}}>\n")
    assert "SliceLayout" not in run(capsys, "show", f"@{prints}#rows")[1].splitlines()[0]
    assert run(capsys, "show", f"@{prints}#rows")[1].splitlines()[1] == "tile dim0 16"
    monkeypatch.setattr("sys.stdin", io.StringIO("(Swizzle(3, 3, 3)) o ((8, 64) : (64, 1))\n"))
    assert "tile dim0 8 x dim1 64" in run(capsys, "show", "-")[1]
    prints.write_bytes(b"\xff\xfe")
    assert "is no text" in run(capsys, "show", f"@{prints}")[2]
    assert run(capsys, "show", f"@{tmp_path}/none")[0] == 2
