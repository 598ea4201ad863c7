"""Tiles whose rows begin anywhere, and large pieces, are moved by few blocks at a time, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneProgram, text_of


@weft.jit
def transposed(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.program_id(0) * A + tl.arange(0, A)[:, None], tl.program_id(1) * B + tl.arange(0, B)[None, :]
    tile = tl.load(x + i * n + j, mask=(i < n) & (j < n))
    tl.store(out + tl.trans(j) * n + tl.trans(i), tl.trans(tile), mask=tl.trans((i < n) & (j < n)))


@weft.jit
def added(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.program_id(0) * A + tl.arange(0, A)[:, None], tl.program_id(1) * B + tl.arange(0, B)[None, :]
    mask = (i < n) & (j < n)
    tl.store(out + i * n + j, tl.load(x + i * n + j, mask=mask) + tl.load(y + i * n + j, mask=mask), mask=mask)


@weft.jit
def biased(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    """One vector for all rows: it is no tile of rows."""
    i, j = tl.program_id(0) * A + tl.arange(0, A)[:, None], tl.program_id(1) * B + tl.arange(0, B)[None, :]
    mask = (i < n) & (j < n)
    tl.store(out + i * n + j, tl.load(x + i * n + j, mask=mask) + tl.load(y + j, mask=j < n), mask=mask)


@weft.jit
def dear(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.program_id(0) * A + tl.arange(0, A)[:, None], tl.program_id(1) * B + tl.arange(0, B)[None, :]
    value = tl.load(x + i * n + j, mask=(i < n) & (j < n)).to(tl.float32)
    tl.store(out + i * n + j, tl.sin(tl.exp(tl.exp(value))).to(out.dtype.element_ty), mask=(i < n) & (j < n))


@weft.jit
def summed(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.program_id(0) * A + tl.arange(0, A)[:, None], tl.arange(0, B)[None, :]
    tl.store(out + tl.program_id(0) * A + tl.arange(0, A), tl.sum(tl.load(x + i * n + j, mask=j < n, other=0), 1))


@weft.jit
def looped(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * A + tl.arange(0, A)[:, None]
    for k in range(0, n, B):
        j = k + tl.arange(0, B)[None, :]
        tl.store(out + i * n + j, tl.load(x + i * n + j, mask=j < n), mask=j < n)


@weft.jit
def one_row(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    j = tl.program_id(1) * B + tl.arange(0, B)
    tl.store(out + tl.program_id(0) * n + j, tl.load(x + tl.program_id(0) * n + j, mask=j < n), mask=j < n)


@weft.jit
def gathered(x, y, out, n, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, A)[:, None], tl.arange(0, B)[None, :]
    tl.store(out + i * B + j, tl.load(x + i * n + j * n))


def most(
    kernel: Any, kind: str, rows: int, columns: int, divisor: int, target: str = "sim:cuda:90", **options: Any
) -> int:
    types = {**dict.fromkeys(("x", "y", "out"), f"*{kind}"), "n": "i32", "A": "constexpr", "B": "constexpr"}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    if divisor > 1:
        facts[3,] = [["tt.divisibility", divisor]]
    source = ASTSource(kernel, types, {"A": rows, "B": columns}, facts)
    return lane_program(source, target, options).most_blocks


@pytest.mark.parametrize(
    ("rows", "columns", "kind", "divisor", "blocks"),
    [
        (64, 64, "fp16", 1, 3),
        (64, 64, "bf16", 4, 3),
        (64, 64, "fp16", 8, 4),
        (128, 128, "fp16", 4, 2),
        (32, 32, "fp16", 1, 8),
        (64, 64, "fp32", 1, 2),
        (32, 32, "fp32", 4, 8),
        (64, 64, "fp16", 16, 0),
        (64, 64, "fp32", 8, 0),
        (64, 64, "i8", 1, 0),
    ],
)
def test_lines_that_are_asked_for_fill_a_part_of_the_cache(
    rows: int, columns: int, kind: str, divisor: int, blocks: int
) -> None:
    """Unless rows begin at sectors, or may be taken to."""
    assert most(transposed, kind, rows, columns, divisor) == blocks


@pytest.mark.parametrize(
    ("kernel", "kind", "blocks"),
    [(added, "fp16", 0), (added, "fp32", 4), (biased, "fp16", 4)]
    + [(kernel, "fp16", 0) for kernel in (dear, summed, looped, one_row, gathered)],
)
def test_programs_that_wait_for_something_else_stay_as_they_are(kernel: Any, kind: str, blocks: int) -> None:
    assert most(kernel, kind, 32, 128, 1) == blocks


def test_clusters_stay_as_they_are() -> None:
    assert most(transposed, "fp16", 64, 64, 1, num_ctas=2) == 0


def test_machines_that_nobody_has_measured_stay_as_they_are() -> None:
    assert most(transposed, "fp16", 64, 64, 1, target="sim:cuda:80") == 0


@weft.jit
def copied(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@weft.jit
def added_to(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(out + i))


@weft.jit
def mapped(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@weft.jit
def repeated(x, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))


def of_copy(kernel: Any, block: int, warps: int, kind: str = "fp32", target: str = "sim:cuda:90") -> LaneProgram:
    facts = {(k,): [["tt.divisibility", 16]] for k in range(3)}
    source = ASTSource(kernel, {"x": f"*{kind}", "out": f"*{kind}", "n": "i32"}, {"BLOCK": block}, facts)
    return lane_program(source, target, {"num_warps": warps})


@pytest.mark.parametrize("kernel", [copied, doubled])
@pytest.mark.parametrize(
    ("block", "warps", "kind", "blocks"),
    [
        (4096, 4, "fp32", 8),
        (2048, 4, "fp32", 0),
        (8192, 4, "fp16", 8),
        (2048, 2, "fp32", 16),
        (2048, 1, "fp32", 0),
        (4096, 8, "fp32", 0),
        (1024, 4, "fp32", 0),
        (8192, 4, "fp32", 2),  # 8 KB of each warp: the warps take turns
        (8192, 8, "fp32", 4),
        (16384, 4, "fp32", 0),
        (4096, 4, "fp64", 0),
    ],
)
@pytest.mark.thinned(3)
def test_copies_of_8_to_32_kilobytes(kernel: Any, block: int, warps: int, kind: str, blocks: int) -> None:
    program = of_copy(kernel, block, warps, kind)
    assert program.most_blocks == blocks
    assert (f"  at most {blocks} blocks at a time\n" in text_of(program)) == (blocks > 0)


@gluon.jit
def copied_in_runs(x, out, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out + i, gl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(
    ("block", "run", "kind", "blocks"),
    [(4096, 1, "fp32", 3), (4096, 2, "fp32", 3), (4096, 8, "fp32", 3), (8192, 8, "fp32", 2), (2048, 1, "fp32", 5)]
    + [(8192, 1, "fp32", 3), (8192, 1, "fp16", 0), (8192, 2, "fp16", 3), (1024, 1, "fp32", 0)],
)
def test_copies_in_the_layout_of_a_gluon_kernel(block: int, run: int, kind: str, blocks: int) -> None:
    """By accesses of 4 bytes and more of a lane; those of 2 bytes wait for their instructions."""
    constants = {"BLOCK": block, "layout": gl.BlockedLayout([run], [32], [4], [0])}
    facts = {(k,): [["tt.divisibility", 16]] for k in range(3)}
    source = ASTSource(copied_in_runs, {"x": f"*{kind}", "out": f"*{kind}", "n": "i32"}, constants, facts)
    assert lane_program(source, "sim:cuda:90", {"num_warps": 4}).most_blocks == blocks


@pytest.mark.parametrize("kernel", [added_to, mapped, repeated])
def test_what_does_more_than_copy_stays_as_it_is(kernel: Any) -> None:
    assert of_copy(kernel, 4096, 4).most_blocks == 0


def test_copies_on_machines_that_nobody_has_measured() -> None:
    assert of_copy(copied, 4096, 4, target="sim:cuda:80").most_blocks == 0
