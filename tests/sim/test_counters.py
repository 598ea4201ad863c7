"""Counters against plain definitions; how fast a product is."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
import pytest

from weft.layouts import count_wavefronts as one_access
from weft.sim import Options, Uncountable, count, run
from weft.sim.memory import GlobalMemory, count_wavefronts, sectors_of

from .kit import Case, Kit


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_wavefronts_are_those_of_the_layouts(width: int) -> None:
    rng = np.random.default_rng(width)
    for stride in (1, 2, 3, 8, 32, 33):
        address = np.arange(32) * stride * width
        got, ideal = count_wavefronts(address[None], np.ones((1, 32), np.bool_), width)
        assert got == one_access(address, width)
        assert ideal == max(1, width // 4)
    for _ in range(20):
        address = rng.integers(0, 256, 32) * width
        assert count_wavefronts(address[None], np.ones((1, 32), np.bool_), width)[0] == one_access(address, width)


def test_wavefronts_and_sectors_with_lanes_that_take_no_part() -> None:
    address = np.arange(32)[None] * 128
    active = np.arange(32)[None] < 5
    assert count_wavefronts(address, active, 4) == (5, 1)
    assert count_wavefronts(address, active & False, 4) == (0, 0)
    assert sectors_of(address, active).sum() == 5
    assert sectors_of(address // 32, active).sum() == 1
    assert sectors_of(np.array([[64, 0, 32, 64, 95]]), np.ones((1, 5), np.bool_)).sum() == 3


def test_a_line_gets_what_it_does() -> None:
    k = Kit("x:f32*", warps=2)
    k.at(3)
    x = k.load("global", k.place("x", k.mul(k.thread(), 8)), "f32")
    k.at(4)
    x = k.op("arith.addf", [x, k.shuffle_xor(x, [1])], "f32")
    k.at(5)
    k.store("shared", k.add2(k.shared(8192), k.mul(k.thread(), 128)), x)
    k.barrier()
    report = run(k.program(), 3, {"x": np.zeros(512, np.float32)})
    lines = {key[1]: line for key, line in report.lines.items() if key is not None}
    assert lines[3]["global_load_sectors"] == 3 * 64 and lines[3]["global_load_bytes"] == 3 * 256
    assert lines[4]["shuffles"] == 6 and lines[4]["kind:arith.addf"] == 6
    assert lines[5]["shared_store_wavefronts"] == 3 * 64 and lines[5]["shared_ideal"] == 6
    assert lines[5]["barriers"] == 6
    table = str(report).splitlines()
    assert table[0].split()[:2] == ["line", "instructions"] and table[-1].startswith("all")
    assert report.to_dict()["total"]["barriers"] == 6


def product(elem: str, m: int = 128, n: int = 128, depth: int = 64, warps: int = 4) -> Case:
    """C = A B for one block: tiles through shared memory, ldmatrix, mma.sync; warps are 2 x warps / 2."""
    dtype = np.float16 if elem == "f16" else ml_dtypes.bfloat16
    k = Kit(f"a:{elem}*", f"b:{elem}*", "c:f32*", warps=warps)
    threads = 32 * warps

    def tile(name: str, rows: int, columns: int):
        """Rows of `columns`, sixteen bytes swizzled by the row."""
        buffer = k.shared(rows * columns * 2)
        index = k.thread(tuple(range(0, rows * columns, 8 * threads)), 8)
        k.store("shared", swizzled(buffer, index, columns), k.load("global", k.place(name, index), elem, 8), 8)
        return buffer

    def swizzled(buffer, index, columns):
        row = k.op("arith.divui", [index, k.int(columns)], "i32")
        bits = k.mul(k.op("arith.andi", [row, k.int(7)], "i32"), 8)
        return k.add2(buffer, k.mul(k.op("arith.xori", [index, bits], "i32"), 2))

    a_tile, b_tile = tile("a", m, depth), tile("b", depth, n)
    k.barrier()
    across = warps // 2
    wm, wn = m // 2, n // across
    mt, nt = wm // 16, wn // 8
    acc = k.rename(k.constant("f32", 0), (0,) * (4 * mt * nt))
    warp_n = tuple(wn << i for i in range(across.bit_length() - 1))
    for step in range(0, depth, 16):
        lanes = (depth, 2 * depth, 4 * depth, 8 * depth, 8)
        warp_m = (*(0 for _ in warp_n), wm * depth)
        rows = k.linear(tuple(i * 16 * depth + step for i in range(mt)), lane=lanes, warp=warp_m)
        a = k.instruction("ldmatrix.x4", [swizzled(a_tile, rows, depth)], [("i16", 8 * mt)]).results[0]
        lanes = (n, 2 * n, 4 * n, 8 * n, 8)
        rows = k.linear(tuple(step * n + 16 * j for j in range(nt // 2)), lane=lanes, warp=(*warp_n, 0))
        b = k.instruction("ldmatrix.trans.x4", [swizzled(b_tile, rows, n)], [("i16", 4 * nt)]).results[0]
        a, b = (k.op("arith.bitcast", [v], elem) for v in (a, b))
        a = k.rename(a, [8 * i + r for i in range(mt) for _ in range(nt) for r in range(8)])
        b = k.rename(b, [4 * j + r for _ in range(mt) for j in range(nt) for r in range(4)])
        acc = k.instruction(f"mma.sync.m16n8k16.f32.{elem}.{elem}.f32", [a, b, acc], [("f32", 4 * mt * nt)]).results[0]
    registers = [i * 16 * n + j * 8 + half * 8 * n for i in range(mt) for j in range(nt) for half in range(2)]
    place = k.linear(tuple(registers), lane=(2, 4, n, 2 * n, 4 * n), warp=(*warp_n, wm * n))
    k.store("global", k.place("c", place), acc, 2)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 9, (m, depth)).astype(dtype), rng.integers(-8, 9, (depth, n)).astype(dtype)
    want = x.astype(np.float32) @ y.astype(np.float32)
    return Case(k.program(), 1, {"a": x, "b": y, "c": np.zeros((m, n), np.float32)}, {"c": want})


@pytest.mark.parametrize("elem,warps", [("f16", 4), ("bf16", 4), ("bf16", 8)])
def test_product(elem: str, warps: int) -> None:
    """128 x 128 x 64 in less than half a second, without a bank conflict."""
    made = product(elem, warps=warps)
    start = time.process_time()
    report = run(made.program, 1, made.arguments)
    taken = time.process_time() - start
    np.testing.assert_array_equal(made.arguments["c"], made.expected["c"])
    assert taken < 0.5, f"{taken:.2f} s"
    assert report.kinds[f"mma.sync.m16n8k16.f32.{elem}.{elem}.f32"] == 8 * 16 * 4
    assert report["shared_load_wavefronts"] + report["shared_store_wavefronts"] == report["shared_ideal"]
    counted = count(made.program, 1)
    assert counted.exact and counted.lines == report.lines


def test_what_cannot_be_counted_says_so() -> None:
    k = Kit("x:i32*")
    k.at(9)
    x = k.load("global", k.arg("x"), "i32")
    k.loop([k.int(0), x, k.int(1)], [], lambda i: [])
    with pytest.raises(Uncountable, match=r"upper bound.*kernel\.py:9"):
        count(k.program(), 1)
    k = Kit("x:i32*", "y:i32*")
    x = k.load("global", k.place("x", k.thread()), "i32")
    k.store("global", k.place("y", x), x)
    counted = count(k.program(), 1)
    assert not counted.exact and counted["global_load_sectors"] == 4 and counted.kinds["store.global.32"] == 1


def test_scalars_that_are_not_given_are_not_known() -> None:
    k = Kit("x:i32*", "n:i32")
    index = k.thread()
    k.store("global", k.place("x", index), index, mask=k.less(index, k.arg("n")))
    assert not count(k.program(), 1).exact
    counted = count(k.program(), 1, {"n": 9})
    assert counted.exact and counted["global_store_bytes"] == 36 and counted["global_store_sectors"] == 2


def test_memory_of_strange_arrays() -> None:
    """Strides that are negative, arrays without elements, views that are not aligned to their words."""
    raw = np.arange(64, dtype=np.uint8)
    backwards, empty, odd = raw[40:8:-1].view(), np.zeros(0), raw[1:9]
    memory = GlobalMemory({"b": backwards, "e": empty, "o": odd})
    assert memory.read(np.array([memory.addresses["b"] - 31]), 1)[0, 0] == 9
    assert memory.outside(np.array([memory.addresses["e"]]), 1)[0]
    at = np.array([memory.addresses["o"] + 3])
    assert at[0] % 4 == raw[4:].__array_interface__["data"][0] % 4
    np.testing.assert_array_equal(memory.read(at, 4)[0], [4, 5, 6, 7])
    memory.write(at, np.array([[1, 1, 2, 2]], np.uint8))
    np.testing.assert_array_equal(raw[3:9], [3, 1, 1, 2, 2, 8])


def test_prints() -> None:
    k = Kit(warps=1)
    k.add("print", [k.thread()], attrs={"prefix": "t = ", "hex": True})
    printed = run(k.program(), 1, {}).printed
    assert len(printed) == 32 and printed[17] == "lane 17 of warp 0, program (0, 0, 0): t = 0x00000011"


def test_options_are_told() -> None:
    k = Kit()
    assert "seed 4" in run(k.program(), 1, {}, Options(order="random", seed=4)).options
    with pytest.raises(ValueError, match="copies must be"):
        Options(copies="never")


def test_lanes_that_want_the_same_in_pairs_share_phases() -> None:
    """What ncu measured of reductions' partial results on an H200."""
    lane, every = np.arange(32), np.ones((1, 32), np.bool_)
    assert count_wavefronts(np.zeros((1, 32), int), every, 16) == (2, 2)  # all lanes the same 16 bytes
    assert count_wavefronts((lane // 2 * 16)[None], every, 16) == (2, 2)
    assert count_wavefronts((lane // 4 % 2 * 16)[None], every, 16) == (2, 2)
    assert count_wavefronts((lane % 8 * 16)[None], every, 16) == (4, 4)  # eight lanes apart does not count
    assert count_wavefronts((lane * 16)[None], every, 16) == (4, 4)
    assert count_wavefronts(np.zeros((1, 32), int), every, 16, load=False) == (4, 4)
