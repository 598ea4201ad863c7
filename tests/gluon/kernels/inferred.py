"""Layouts that the compiler finds: AutoLayout and CoalescedLayout."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from gluon.sources import Sources

SOURCES = source = Sources()


@source(x="*fp32", y="*fp32", n="i32")
@gluon.jit
def auto_through_loops(x, y, n):
    i = gl.arange(0, 64)[:, None]
    j = gl.arange(0, 32)[None, :]
    acc = gl.zeros([64, 32], gl.float32)
    for k in range(n):
        acc += gl.load(x + k * 2048 + i * 32 + j)
    if n > 3:
        acc = acc * 2
    rows = gl.sum(acc, 1)
    acc = gl.set_auto_layout(acc, gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])) + rows[:, None]
    gl.store(y + i * 32 + j, acc)


@source(x="*fp32", y="*fp32")
@gluon.jit
def auto_shapes(x, y):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, 1024)
    value = gl.load(x + i).reshape([32, 32])
    turned = gl.permute(value, [1, 0])
    value = gl.convert_layout(turned, layout) + gl.set_auto_layout(value, layout)
    r = gl.arange(0, 32)[:, None] * 32 + gl.arange(0, 32)[None, :]
    gl.store(y + r, value)


@source(x="*fp16", y="*fp16", n="i32", constexprs={"BLOCK": 2048})
@gluon.jit
def coalesced_copy(x, y, n, BLOCK: gl.constexpr):
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, gl.CoalescedLayout())
    gl.store(y + i, gl.load(x + i, i < n), i < n)


@source(x="*fp32", y="*fp32", columns="i32")
@gluon.jit
def coalesced_tile(x, y, columns):
    i = gl.arange(0, 16, gl.CoalescedLayout())[:, None]
    j = gl.arange(0, 256, gl.CoalescedLayout())[None, :]
    value = gl.load(x + i * columns + j)
    gl.store(y + i * columns + j, value * 2)


@source(x="*fp32", y="*fp32")
@gluon.jit
def coalesced_columns(x, y):
    i = gl.arange(0, 128, gl.CoalescedLayout())[:, None]
    j = gl.arange(0, 16, gl.CoalescedLayout())[None, :]
    value = gl.load(x + j * 128 + i)
    gl.store(y + j * 128 + i, value + 1)
