"""Copies in a layout that they are given: a line, a tile by rows, and a tile by columns."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def line(x, out, n, B: gl.constexpr, L: gl.constexpr):
    i = gl.program_id(0) * B + gl.arange(0, B, layout=L)
    gl.store(out + i, gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def tile(x, out, n, M: gl.constexpr, N: gl.constexpr, L: gl.constexpr):
    i = gl.arange(0, M, layout=gl.SliceLayout(1, L))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, L))[None, :]
    at = i * n + j
    gl.store(out + at, gl.load(x + at))


@gluon.jit
def turned(x, out, n, M: gl.constexpr, N: gl.constexpr, L: gl.constexpr):
    i = gl.arange(0, M, layout=gl.SliceLayout(1, L))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, L))[None, :]
    at = j * n + i
    gl.store(out + at, gl.load(x + at))
