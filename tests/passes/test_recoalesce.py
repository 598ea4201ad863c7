"""Tiles of one dimension in runs of 16 bytes: which are laid out anew, and that they hold the same."""

from __future__ import annotations

import numpy as np
import pytest

from weft.ir import parse_module, print_module, verify
from weft.lower import lower
from weft.passes.gpu_pipelines import layout_pipeline
from weft.passes.recoalesce import recoalesce
from weft.sim import run

SIZE = 2048
UNKNOWN = "%n: i32"
KNOWN = "%n: i32 {tt.divisibility = 16 : i32}"


def text_of(each: int, elem: str = "f32", inside: str = "", stride: int = 1, row: bool = False, n: str = KNOWN) -> str:
    """out = x + x where the index is below n: in a part of an array, by the program's number, or in a row from 0 on."""
    return f"""
#b = #ttg.blocked<{{sizePerThread = [{each}], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}}>
#other = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%x: !tt.ptr<{elem}> {{tt.divisibility = 16 : i32}},
                    %out: !tt.ptr<{elem}> {{tt.divisibility = 16 : i32}}, {n}) {{
    %r = tt.make_range {{end = {SIZE} : i32, start = 0 : i32}} : tensor<{SIZE}xi32, #b>
    %k = arith.constant dense<{stride}> : tensor<{SIZE}xi32, #b>
    %i = arith.muli %r, %k : tensor<{SIZE}xi32, #b>
    %m = tt.splat %n : i32 -> tensor<{SIZE}xi32, #b>
    %program = tt.get_program_id x : i32
    %size = arith.constant {SIZE} : i32
    %start = arith.muli %program, %size : i32
    %first = tt.splat %start : i32 -> tensor<{SIZE}xi32, #b>
    %place = arith.addi %first, %r : tensor<{SIZE}xi32, #b>
    %mask = arith.cmpi slt, {"%r" if row else "%place"}, %m : tensor<{SIZE}xi32, #b>
    %p = tt.splat %x : !tt.ptr<{elem}> -> tensor<{SIZE}x!tt.ptr<{elem}>, #b>
    %q = tt.splat %out : !tt.ptr<{elem}> -> tensor<{SIZE}x!tt.ptr<{elem}>, #b>
    %from = tt.addptr %p, %i : tensor<{SIZE}x!tt.ptr<{elem}>, #b>, tensor<{SIZE}xi32, #b>
    %to = tt.addptr %q, %r : tensor<{SIZE}x!tt.ptr<{elem}>, #b>, tensor<{SIZE}xi32, #b>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %v = tt.load %from, %mask : tensor<{SIZE}x!tt.ptr<{elem}>, #b>
    %s = scf.for %t = %zero to %one step %one iter_args(%a = %v) -> (tensor<{SIZE}x{elem}, #b>) : i32 {{
      %w = arith.addf %a, %v : tensor<{SIZE}x{elem}, #b>
      scf.yield %w : tensor<{SIZE}x{elem}, #b>
    }}
    {inside}
    tt.store %to, %s, %mask : tensor<{SIZE}x!tt.ptr<{elem}>, #b>
    tt.return
  }}
}}"""


CONVERTED = f"%c = ttg.convert_layout %s : tensor<{SIZE}xf32, #b> -> tensor<{SIZE}xf32, #other>"

CALLED = (
    '%c = tt.extern_elementwise %s {libname = "", libpath = "", pure = true, symbol = "__nv_tanf"} : '
    f"(tensor<{SIZE}xf32, #b>) -> tensor<{SIZE}xf32, #b>"
)

REDUCED = f"""%c = "tt.reduce"(%s) ({{
    ^bb0(%y: f32, %z: f32):
      %yz = arith.maxnumf %y, %z : f32
      tt.reduce.return %yz : f32
    }}) {{axis = 0 : i32}} : (tensor<{SIZE}xf32, #b>) -> f32"""


@pytest.mark.parametrize(
    ("each", "elem", "inside", "n", "run_of"),
    [
        (1, "f32", "", UNKNOWN, 1),  # the mask may end within a run
        (4, "f32", "", UNKNOWN, 1),  # and would make four accesses of it, each with gaps
        (16, "f16", "", UNKNOWN, 1),
        (4, "f32", "", KNOWN, 4),
        (8, "f32", "", KNOWN, 4),
        (16, "f32", "", KNOWN, 4),
        (64, "f32", "", KNOWN, 4),  # with copies: 64 elements for each of 64 threads are more than there are
        (16, "f16", "", KNOWN, 8),
        (8, "f16", "", KNOWN, 8),
        (8, "f64", "", KNOWN, 2),
        (16, "f32", CONVERTED, KNOWN, 16),  # a conversion sees the layout
        (4, "f32", REDUCED, KNOWN, 4),
        (16, "f32", CALLED, KNOWN, 4),  # a function of a library does not
    ],
)
@pytest.mark.thinned(2)
def test_runs(each: int, elem: str, inside: str, n: str, run_of: int) -> None:
    module = parse_module(text_of(each, elem, inside, n=n))
    recoalesce(module)
    verify(module, "layout")
    text = print_module(module)
    if inside == CONVERTED:
        assert f"sizePerThread = [{run_of}]" in text
    else:
        piece = min(SIZE // 2, 4096 // np.dtype(f"f{int(elem[1:]) // 8}").itemsize)  # of a warp, at most 4 KB in a row
        assert f"lane = {[[run_of << i] for i in range(5)]}, warp = [[{piece}]]" in text
        assert "#ttg.blocked" not in text
    program = lower(layout_pipeline(module))
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[elem]
    x, out = np.arange(SIZE).astype(dtype), np.zeros(SIZE, dtype)
    run(program, 1, {"x": x, "out": out, "n": SIZE - 16})
    assert np.array_equal(out[:-16], (x + x)[:-16])
    assert not out[-16:].any()


def test_short_runs_become_long_ones_where_masks_let_them() -> None:
    module = parse_module(text_of(1))
    recoalesce(module)
    assert "lane = [[4], [8], [16], [32], [64]], warp = [[1024]]" in print_module(module)


@pytest.mark.parametrize(
    ("each", "elem", "piece"), [(4, "f32", 128), (8, "f32", 128), (8, "f16", 256), (8, "f64", 128)]
)
def test_a_row_is_dealt_out_in_rounds(each: int, elem: str, piece: int) -> None:
    """It may end early: then all warps have something to do."""
    module = parse_module(text_of(each, elem, row=True))
    recoalesce(module)
    text = print_module(module)
    assert f"warp = [[{piece}]]" in text or f"sizePerThread = [{piece // 32}], threadsPerWarp = [32]" in text
    out, x = np.zeros(SIZE, dtype := f"f{int(elem[1:]) // 8}"), np.arange(SIZE).astype(dtype)
    run(lower(layout_pipeline(module)), 1, {"x": x, "out": out, "n": 208})
    assert np.array_equal(out[:208], (x + x)[:208]) and not out[208:].any()


def test_a_row_in_a_loop_is_dealt_out_in_rounds() -> None:
    """What a loop counts from 0 on says as little as a range of where a row ends."""
    counted = """%begin = tt.splat %t : i32 -> tensor<2048xi32, #b>
      %at = arith.addi %begin, %r : tensor<2048xi32, #b>
      %in = arith.cmpi slt, %at, %m : tensor<2048xi32, #b>
      %u = tt.load %from, %in : tensor<2048x!tt.ptr<f32>, #b>
      %w = arith.addf %a, %u"""
    module = parse_module(text_of(4).replace("%w = arith.addf %a, %v", counted))
    recoalesce(module)
    assert "warp = [[128]]" in print_module(module)


def test_one_run_of_each_thread_stays() -> None:
    """As many elements as all threads have runs of: there is nothing to deal out."""
    module = parse_module(text_of(4).replace(str(SIZE), "256"))
    before = print_module(module)
    recoalesce(module)
    assert print_module(module) == before


def test_places_apart_stay() -> None:
    """Every third element is loaded, and nothing stored: no run is long."""
    text = "\n".join(line for line in text_of(16, stride=3).splitlines() if "tt.store" not in line)
    module = parse_module(text)
    before = print_module(module)
    recoalesce(module)
    assert print_module(module) == before


@pytest.mark.parametrize("relayout", [False, True])
def test_a_layout_that_was_given_stays_unless_its_author_lets_it_go(relayout: bool) -> None:
    module = parse_module(text_of(1))
    layout_pipeline(module, relayout=relayout)
    assert ("sizePerThread = [1]" in print_module(module)) == (not relayout)
