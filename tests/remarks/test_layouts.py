"""Which layout each tile has, who asked for it and who for another: the whole text."""

from __future__ import annotations

import weft
import weft.language as tl
from weft import gluon
from weft.gluon import language as gl

from .telling import compiled, told


def blocked(*parts: str) -> str:
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    return f"#ttg.blocked<{{{', '.join(f'{n} = [{p}]' for n, p in zip(names, parts, strict=True))}}}>"


ROWS, COLUMNS = blocked("1, 8", "4, 8", "4, 1", "1, 0"), blocked("8, 1", "8, 4", "1, 4", "0, 1")
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"


@weft.jit
def product(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    left = tl.load(a + i * SIZE + j)
    right = tl.load(b + i + j * SIZE)
    total = tl.dot(left, right).to(tl.float16)
    tl.store(out + i * SIZE + j, total)


def test_of_a_product() -> None:
    made = compiled(product, "cuda:80", "*fp16 *fp16 *fp16", {"SIZE": 64}, "a b out")
    assert told(made, "layout") == [
        f"k.py:5:12: layout: 64x64xf16 (`left`) has {ROWS}, for tt.load on line 5",
        f"k.py:6:13: layout: 64x64xf16 (`right`) has {COLUMNS}, for tt.load on line 6",
        f"k.py:7:13: layout: 64x64xf32 (`total`) has {MMA}, for tt.dot on line 7; tt.store on line 8 wanted {ROWS}, "
        f"which takes 72 cycles more",
    ]


@weft.jit
def added(x, y, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    one = tl.load(x + i * SIZE + j)
    other = tl.load(y + i + j * SIZE)
    tl.store(out + i * SIZE + j, one + other)


def test_of_two_loads_that_want_two_layouts() -> None:
    made = compiled(added, "cuda:80", "*fp16 *fp16 *fp16", {"SIZE": 64}, "x y out")
    assert told(made, "layout") == [
        f"k.py:5:11: layout: 64x64xf16 (`one`, `other`) has {ROWS}, for tt.load on line 5; "
        f"tt.load on line 6 wanted {COLUMNS}, which takes 137 cycles more"
    ]
    assert told(made, "layouts compared") == [
        "k.py:2:1: layouts compared: 4 choices among 8 layouts take 382 cycles of each warp; "
        "any other choice takes as many or more"
    ]
    assert len(told(made, "conversion")) == 1


@weft.jit
def copy(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def test_of_one_dimension() -> None:
    made = compiled(copy, "cuda:90", "*fp32 *fp32", {"BLOCK": 4096}, "x out")
    four = blocked("4", "32", "4", "0")
    assert told(made, "layout") == [f"k.py:4:23: layout: 4096xf32 has {four}, for tt.load on line 4"]
    assert told(made, "layout changed") == [
        "k.py:4:23: layout changed: 4096xf32 has #ttg.linear<{register = [[1], [2], [128], [256], [512]], "
        "lane = [[4], [8], [16], [32], [64]], warp = [[1024], [2048]], block = []}> in the place of "
        f"{four}: each access takes a run of 4 elements, and the lanes of a warp lie side by side; "
        "a warp has 1024 elements in a row"
    ]


@gluon.jit
def open_layouts(x, out, SIZE: gl.constexpr):
    fixed: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    i = gl.arange(0, SIZE)[:, None]
    j = gl.set_auto_layout(i + gl.arange(0, SIZE)[None, :], fixed)
    gl.store(out + j, j)
    k = gl.arange(0, SIZE, gl.CoalescedLayout())
    gl.store(out + k, k)


def test_of_layouts_that_an_author_left_open() -> None:
    made = compiled(open_layouts, "cuda:80", "*i32 *i32", {"SIZE": 128}, "x out")
    fixed, coalesced = blocked("1, 1", "1, 32", "1, 4", "1, 0"), blocked("1", "32", "4", "0")
    lines = told(made, "layout")
    assert f"k.py:4:9: layout: 128x1xi32 (`i`) has {fixed}, for gluon.set_auto_layout on line 5" in lines
    assert f"k.py:7:9: layout: 128xi32 (`k`) has {coalesced}, for tt.store on line 8" in lines


@gluon.jit
def copied(x, out, R: gl.constexpr):
    i = gl.arange(0, 4096, gl.BlockedLayout([R], [32], [4], [0]))
    gl.store(out + i, gl.load(x + i))


def test_of_an_authors_layout_that_is_kept() -> None:
    kept = compiled(copied, "cuda:90", "*fp32 *fp32", {"R": 16}, "x out")
    better = (
        "#ttg.linear<{register = [[1], [2], [128], [256], [512]], lane = [[4], [8], [16], [32], [64]], "
        "warp = [[1024], [2048]], block = []}>"
    )
    why = "each access takes a run of 4 elements, and the lanes of a warp lie side by side; "
    why += "a warp has 1024 elements in a row"
    assert told(kept, "layout kept") == [
        f"k.py:4:23: layout kept: 4096xf32 keeps {blocked('16', '32', '4', '0')}, as its author wrote it; "
        f"relayout=True would make it {better}: {why}"
    ]
    changed = compiled(copied, "cuda:90", "*fp32 *fp32", {"R": 16}, "x out", relayout=True)
    assert told(changed, "layout kept") == [] and len(told(changed, "layout changed")) == 1
