"""Large tiles, long chains, deep nesting: what a kernel costs to compile, and that it compiles at all."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from fuzz.compare import Variant


@weft.jit
def turn_with_a_long_address(out, x, n, TERMS: tl.constexpr):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    place = i + j * 32
    for k in tl.static_range(TERMS):
        place = (place + n) * 1 + (i - i)
    tl.store(out + i * 32 + j, tl.load(x + place))


def test_a_transposed_load_whose_address_is_long() -> None:
    x, out = np.arange(1024 + 40, dtype=np.float32), np.zeros((32, 32), np.float32)
    turn_with_a_long_address[(1,)](out, x, 1, TERMS=40)
    np.testing.assert_array_equal(out, x[40:].reshape(32, 32).T)


@weft.jit
def polynomial(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v * v + 3 * v - 7, mask=i < n)


@weft.jit
def normalised(out, x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v - tl.max(v) + tl.cumsum(v))


@weft.jit
def turned(out, x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out + j * ROWS + i, tl.load(x + i * COLUMNS + j))


def compiled(kernel: Any, *arguments: Any, **values: Any) -> tuple[float, int]:
    """Seconds of this thread to compile a kernel anew, and bytes of its object."""
    with Variant().applied():
        start = time.thread_time()
        binary = weft.jit(kernel.fn)[(1,)](*arguments, **values)
        return time.thread_time() - start, len(binary.kernel)


@pytest.mark.parametrize("kernel", [polynomial, normalised], ids=lambda k: k.fn.__name__)
def test_a_tile_of_a_million_elements(kernel: Any) -> None:
    """The code is a loop, however large the tile."""
    size = 1 << 20
    x = np.random.default_rng(0).integers(-8, 8, size).astype(np.int32)
    out = np.zeros(size, np.int32)
    extra = [size] if kernel is polynomial else []
    compiled(kernel, out, x, *extra, BLOCK=1024)  # what is made once
    seconds, length = compiled(kernel, out, x, *extra, BLOCK=1024)
    more_seconds, more_length = min(compiled(kernel, out, x, *extra, BLOCK=size) for _ in range(2))
    wanted = x * x + 3 * x - 7 if kernel is polynomial else x - x.max() + np.cumsum(x)
    np.testing.assert_array_equal(out, wanted)
    assert more_length < 1.5 * length + 1000
    assert more_seconds < 3 * seconds + 0.1


def test_a_large_tile_turned() -> None:
    x, out = np.arange(1 << 20, dtype=np.int32), np.zeros(1 << 20, np.int32)
    _, length = compiled(turned, out, x, ROWS=32, COLUMNS=32)
    _, more_length = compiled(turned, out, x, ROWS=1024, COLUMNS=1024)
    np.testing.assert_array_equal(out.reshape(1024, 1024), x.reshape(1024, 1024).T)
    assert more_length < 1.5 * length + 1000


# -- long and deep kernels --------------------------------------------------------------------------------------------


def written(lines: list[str], tmp_path: Path) -> Any:
    """A kernel out of lines of source."""
    path = tmp_path / "long_kernel.py"
    head = ["import weft", "import weft.language as tl", "", "@weft.jit", "def kernel(out, x, n, BLOCK: tl.constexpr):"]
    path.write_text("\n".join([*head, *lines]) + "\n")
    spec = importlib.util.spec_from_file_location("long_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def test_a_chain_of_two_thousand_operations(tmp_path: Path) -> None:
    steps = ["v = v + x0", "v = v ^ 85", "v = v - 3", "v = v * 5", "v = tl.where(v > x0, v, v + 1)"]
    lines = ["    i = tl.arange(0, BLOCK)", "    x0 = tl.load(x + i)", "    v = x0"]
    lines += [f"    {steps[k % 5]}" for k in range(2000)]
    lines += ["    tl.store(out + i, v)"]
    x = np.arange(64, dtype=np.int32) - 20
    out, v = np.zeros(64, np.int32), x.copy()
    written(lines, tmp_path)[(1,)](out, x, 3, BLOCK=64)
    for k in range(2000):
        v = [v + x, v ^ 85, v - 3, v * 5, np.where(v > x, v, v + 1)][k % 5].astype(np.int32)
    np.testing.assert_array_equal(out, v)


def test_three_hundred_stores_of_one_value_each(tmp_path: Path) -> None:
    lines = ["    i = tl.arange(0, BLOCK)", "    v = tl.load(x + i)"]
    for k in range(300):
        lines += [f"    v = v + {k}", f"    tl.store(out + {k} * BLOCK + i, v)"]
    x, out = np.arange(16, dtype=np.int32), np.zeros((300, 16), np.int32)
    written(lines, tmp_path)[(1,)](out, x, 3, BLOCK=16)
    np.testing.assert_array_equal(out, x + np.cumsum(np.arange(300))[:, None])


def nested(head: str, depth: int) -> list[str]:
    """Statements within each other, with one in the middle."""
    lines = ["    i = tl.arange(0, BLOCK)", "    v = tl.load(x + i)"]
    for k in range(depth):
        lines += [" " * (4 + k) + head.format(k=k)]
    lines += [" " * (4 + depth) + "v = v + 1", "    tl.store(out + i, v)"]
    return lines


@pytest.mark.parametrize(("head", "depth"), [("if n > {k}:", 90), ("for k{k} in range(n - 999):", 18)])
def test_nesting(head: str, depth: int, tmp_path: Path) -> None:
    """As deep as Python itself nests: 100 levels of indentation, 20 loops."""
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    written(nested(head, depth), tmp_path)[(1,)](out, x, 1000, BLOCK=64)
    np.testing.assert_array_equal(out, x + 1)


def test_three_hundred_branches_after_each_other(tmp_path: Path) -> None:
    lines = ["    i = tl.arange(0, BLOCK)", "    v = tl.load(x + i)"]
    for k in range(300):
        lines += [f"    if n > {k}:", f"        v = v + {k}"]
    lines += ["    tl.store(out + i, v)"]
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    written(lines, tmp_path)[(1,)](out, x, 150, BLOCK=64)
    np.testing.assert_array_equal(out, x + sum(range(150)))


def test_a_chain_of_ninety_else_branches(tmp_path: Path) -> None:
    lines = ["    i = tl.arange(0, BLOCK)", "    v = tl.load(x + i)", "    if n == 0:", "        v = v + 1000"]
    for k in range(1, 90):
        lines += [f"    elif n == {k}:", f"        v = v + {k}"]
    lines += ["    tl.store(out + i, v)"]
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    written(lines, tmp_path)[(1,)](out, x, 77, BLOCK=64)
    np.testing.assert_array_equal(out, x + 77)


@weft.jit
def product_of_bytes(out, a, b, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    acc = tl.zeros([M, N], tl.int32)
    for at in range(0, K, BLOCK):
        left = tl.load(a + m[:, None] * K + at + k[None, :])
        right = tl.load(b + n[None, :] * K + at + k[:, None])  # N x K in memory, as weights of linear layers are
        acc = tl.dot(left, right, acc, out_dtype=tl.int32)
    tl.store(out + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 64, 64), (32, 64, 128), (16, 32, 32), (64, 128, 64)])
def test_bytes_that_are_turned_for_a_product(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (rows, 2 * k), np.int8) for rows in (m, n))
    out = np.zeros((m, n), np.int32)
    seconds, _ = compiled(product_of_bytes, out, a, b, 2 * k, M=m, N=n, BLOCK=k)
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.astype(np.int32).T)
    assert seconds < 4  # it was 25, when every element was written for itself
