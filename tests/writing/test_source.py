"""What the source looks like, and what it does."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import Unsupported
from weft.compiler import lane_program
from weft.writing import NoWord

N = 512


@weft.jit
def softmax(out, x, width, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < width
    value = tl.load(x + row * stride + column, mask=mask, other=-float("inf"))
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + column, e / tl.sum(e, axis=0), mask=mask)


@weft.jit
def sums(out, x, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    last = total
    for k in range(0, n, BLOCK):
        value = tl.load(x + k + tl.arange(0, BLOCK))
        total, last = total + last, value
    tl.store(out + tl.arange(0, BLOCK), total + last)


@weft.jit
def concatenated(out, x, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    both = tl.cat(value, value * 2, can_reorder=True)
    tl.store(out + tl.arange(0, 2 * BLOCK), both)


def test_it_reads_like_the_kernel() -> None:
    x = weft.like((64, N), "fp32")
    source = softmax.to_gluon(x, x, N, N, BLOCK=N, target="cuda:90")
    line = softmax.starting_line_number
    text = str(source)
    assert text.startswith(f'"""`softmax` of test_source.py:{line} as Weft compiles it for cuda:90, as Gluon source.')
    body = text[text.index("@gluon.jit") :].splitlines()
    assert body == f'''\
@gluon.jit
def softmax(out, x, width, stride, BLOCK: gl.constexpr):
    blocked: gl.constexpr = gl.BlockedLayout(size_per_thread=[4], threads_per_warp=[32], warps_per_cta=[4], order=[0])
    # {line + 2}: row = tl.program_id(0)
    row = gl.program_id(0)
    # {line + 3}: column = tl.arange(0, BLOCK)
    column = gl.arange(0, 512, blocked)
    # {line + 4}: mask = column < width
    mask = column < width
    # {line + 5}: value = tl.load(x + row * stride + column, mask=mask, other=-float("inf"))
    t = row * stride
    value = gl.load(x + t + column, mask=mask, other=float("-inf"))
    # {line + 6}: e = tl.exp(value - tl.max(value, axis=0))
    e = gl.exp(value - gl.max(value, 0))
    # {line + 7}: tl.store(out + row * stride + column, e / tl.sum(e, axis=0), mask=mask)
    gl.store(out + t + column, e / gl.sum(e, 0), mask=mask)'''.splitlines()


def test_its_kernel_runs_with_the_same_arguments() -> None:
    x = np.random.default_rng(0).random((4, N), np.float32)
    source = softmax.to_gluon(x, x, N, N, BLOCK=N, target="cuda:80")
    out = np.zeros_like(x)
    with weft.target("sim:cuda:80"):
        source.kernel[(4,)](out, x, N, N, BLOCK=N, **source.options)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_what_a_loop_carries_is_not_mixed_up() -> None:
    x = np.arange(6 * 128, dtype=np.float32)
    source = sums.to_gluon(x, x, x.size, BLOCK=128, target="cuda:80")
    out, wanted = np.zeros(128, np.float32), np.zeros(128, np.float32)
    with weft.target("sim:cuda:80"):
        source.kernel[(1,)](out, x, x.size, BLOCK=128, **source.options)
        sums[(1,)](wanted, x, x.size, BLOCK=128)
    np.testing.assert_array_equal(out, wanted)


def test_it_imports_gluon_from_triton_if_asked() -> None:
    x = weft.like((64, N), "fp32")
    source = softmax.to_gluon(x, x, N, N, BLOCK=N, target="cuda:90", package="triton.experimental")
    assert "from triton.experimental.gluon import language as gl" in str(source)
    assert source.kernel.__name__ == "softmax"  # which comes from Weft all the same


def test_an_operation_without_a_word_is_named() -> None:
    x = weft.like((128,), "fp32")
    with pytest.raises(NoWord, match="writing `tt.cat` as Gluon source is not supported") as caught:
        concatenated.to_gluon(x, x, BLOCK=128, target="cuda:90")
    assert caught.value.span is not None
    assert caught.value.span.line == concatenated.starting_line_number + 3


def test_there_is_none_for_the_cpu() -> None:
    x = weft.like((128,), "fp32")
    with pytest.raises(Unsupported, match="Gluon source is not supported on target cpu"):
        concatenated.to_gluon(x, x, BLOCK=128, target="cpu")


def test_it_is_saved(tmp_path) -> None:
    x = weft.like((64, N), "fp32")
    source = softmax.to_gluon(x, x, N, N, BLOCK=N, target="cuda:90")
    source.save(tmp_path / "kernel.py")
    assert (tmp_path / "kernel.py").read_text(encoding="utf-8") == str(source)
    assert lane_program is not None


@weft.jit
def doubled(out, x, ROWS: tl.constexpr):
    i = tl.program_id(0) * ROWS
    out.store([i, 0], x.load([i, 0]) * 2)


def test_a_descriptor_is_given_as_it_is() -> None:
    x, out = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
    given = [weft.TensorDescriptor.from_tensor(array, [8, 16]) for array in (out, x)]
    source = doubled.to_gluon(*given, ROWS=8, target="cuda:90")
    assert list(source.arguments) == [*given, 8] and not source.parts
    with weft.target("sim:cuda:90"):
        source.kernel[(2,)](*given, ROWS=8, **source.options)
    np.testing.assert_array_equal(out, 2 * x)


def test_for_triton_a_descriptor_is_given_in_parts() -> None:
    """Whose Gluon does not take one of the Triton language."""
    x = weft.TensorDescriptor.from_tensor(np.zeros((16, 16), np.float32), [8, 16])
    source = doubled.to_gluon(x, x, ROWS=8, target="cuda:90", package="triton.experimental")
    assert source.parts["x"] == ("x", "x_pads_nan", "x_shape_0", "x_shape_1", "x_stride_0", "x_stride_1")
    assert "gl.extra" not in str(source)


def test_calls_stand_in_the_order_of_the_ir() -> None:
    """Gluon computes arguments with a name first: a mask that is computed after the pointers has none."""
    assert "gl.load(x + i, mask=i < n" in str(_loaded(masked_by_name))
    assert "gl.load(x + i, i < n" in str(_loaded(masked_by_place))


@weft.jit
def masked_by_name(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(out + i, tl.load(x + i, mask=i < n, volatile=True))


@weft.jit
def masked_by_place(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(out + i, tl.load(x + i, i < n, volatile=True))


def _loaded(kernel):
    x = weft.like((4096,), "fp32")
    return kernel.to_gluon(x, x, 1 << 40, BLOCK=128, target="cuda:90")


@weft.jit
def product(out, a, b, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    at = i * SIZE + j
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@pytest.mark.parametrize(("target", "word"), [("hip:gfx942", "cdna3.mfma("), ("hip:gfx1100", "rdna3.wmma(")])
def test_products_of_amd(target: str, word: str) -> None:
    a, b = (np.random.default_rng(seed).integers(-3, 4, (32, 32)).astype(np.float16) for seed in (0, 1))
    out = np.zeros((32, 32), np.float32)
    source = product.to_gluon(out, a, b, SIZE=32, target=target)
    assert word in str(source)
    with weft.target(f"sim:{target}"):
        source.kernel[(1,)](*source.arguments, **source.options)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
