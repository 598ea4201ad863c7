"""Registers of loads of shared memory that nobody reads are not loaded."""

from __future__ import annotations

import re

import numpy as np

import weft
import weft.language as tl
from weft.ir.lane import Block, Builder, LaneProgram, verify
from weft.lower.amd.unread import load_what_is_read
from weft.machines import machine_of


@weft.jit
def scanned(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


def test_the_total_of_the_last_warp_is_nobodys_beginning() -> None:
    k = weft.compile(weft.ASTSource(scanned, {"x": "*fp32", "out": "*fp32"}, {"N": 2048}), "hip:gfx942")
    read = re.findall(r"%\d+: f32(?:x(\d))? = load .*space=shared, vector=(\d)", str(k.asm["lane"]))
    totals = [int(vector) for number, vector in read if int(number or 1) == int(vector)]  # others are of the result
    assert sum(totals) == 7  # of two times four warps; the total of the first four is read as well
    x = np.arange(2048, dtype=np.float32) % 7
    out = np.zeros_like(x)
    with weft.target("sim:hip:gfx942"):
        scanned[1,](x, out, N=2048)
    assert (out == np.cumsum(x)).all()


def test_the_last_registers_are_left_out() -> None:
    """The first of an address may be unread: it is loaded with those behind it."""
    program = LaneProgram("kernel", machine_of("hip:gfx1201"), (), Block(), 1)
    program.body.arguments = ()
    b = Builder(program.body)
    loaded = b.load("shared", b.linear((0, 16, 32)), "f32", 4)
    left, right = b.rename(loaded, [0, 1, 4, 5]), b.rename(loaded, [3, 2, 6, 5])
    total = b.op("arith.addf", [left, right], "f32")
    b.store("shared", b.linear((64,)), b.rename(total, [0, 1, 2, 2]), 4)
    load_what_is_read(program)
    verify(program)
    loads = [op for op in program.body.ops if op.name == "load"]
    assert [(op.attrs["vector"], op.result.count) for op in loads] == [(4, 4), (2, 2), (1, 1)]
