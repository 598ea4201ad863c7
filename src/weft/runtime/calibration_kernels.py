"""Kernels by which `weft calibrate` measures a CPU: each does one thing that takes time in others."""

from __future__ import annotations

from weft import language as tl

from .jit import jit


@jit
def little(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 0.5)


@jit
def read(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i), 0))


@jit
def read_of_four(x, out, part, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second = tl.load(x + i) + tl.load(x + part + i), tl.load(x + 2 * part + i) + tl.load(x + 3 * part + i)
    tl.store(out + tl.program_id(0), tl.sum(first + second, 0))


@jit
def read_in_a_loop(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + start + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@jit
def scaled(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i) * 0.5
    tl.store(out + i, value * tl.sum(value * value, 0))


@jit
def written(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.full((BLOCK,), 1.5, tl.float32))


@jit
def copied(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@jit
def changed(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(out + i) + 1.0)


@jit
def again(x, out, n, different, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += tl.load(x + (k % different) * BLOCK + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@jit
def simple(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b, c, d = a + 1.0, a + 2.0, a + 3.0
    for _ in tl.static_range(n):
        a = a * 0.5 + 1.0
        b = b * 0.5 + 1.0
        c = c * 0.5 + 1.0
        d = d * 0.5 + 1.0
    tl.store(out + i, (a + b) + (c + d))


@jit
def special(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i) * 0.01
    b = a
    for k in tl.static_range(n):
        a += tl.exp(b - k)
    tl.store(out + i, a)


@jit
def divided(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a + 2.0
    for k in tl.static_range(n):
        a += 1.5 / (b + k)
    tl.store(out + i, a)


@jit
def special_and_divided(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i) * 0.01
    b = a
    c = a + 2.0
    for k in tl.static_range(n):
        a += tl.exp(b - k)
        a += 1.5 / (c + k)
    tl.store(out + i, a)


@jit
def rounded_to(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a
    for k in tl.static_range(n):
        a += (b + k).to(tl.bfloat16).to(tl.float32)
    tl.store(out + i, a)


@jit
def summed(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + i), 0)
    for _ in range(n):
        total += tl.sum(tl.load(x + i) * total, 0)
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.full((BLOCK,), total, tl.float32))


@jit
def both(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(x + i)
    a = b
    for k in tl.static_range(n):
        a += tl.exp(b - k)
    tl.store(out + i, a)


@jit
def turned(x, out, rows, columns, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    j = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + j * rows + i, tl.load(x + i * columns + j))


@jit
def rows_read(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.sum(tl.sum(tl.load(x + i * SIDE + j), 1), 0)
    tl.store(out + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), total)


@jit
def rows_written(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + i * SIDE + j, tl.full((ROWS, COLUMNS), 1.5, tl.float32))


@jit
def product(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(n):
        total += tl.dot(tl.load(x + k % 2 * BLOCK * BLOCK + at), tl.load(x + at), input_precision="ieee")
    tl.store(out + tl.program_id(0) * BLOCK * BLOCK + at, total)
