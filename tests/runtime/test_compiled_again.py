"""A compiled kernel that is launched by itself, again and again: arguments of the same classes take a shorter way."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchError, LaunchOverflowError, LaunchTypeError
from weft.runtime import launch, prepared
from weft.runtime.knobs import HookChain


@weft.jit
def scaled(x, out, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


BEFORE: tuple[Any, ...] = (None, None, None, None, HookChain(), None)
"""What a launcher of Triton's is given between the sizes of the grid and the arguments; a hook, or a list of them."""


@pytest.fixture(params=["run", "a grid", "a grid, without the constants"])
def again(request: pytest.FixtureRequest) -> Any:
    """A launcher that has been called before."""
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    kernel = scaled.warmup(x[1:], out[1:], 99, 1.5, B=64, grid=(2,))

    def launch(*args: Any, grid: Any = (2, 1, 1)) -> None:
        if request.param == "run":
            kernel.run(*grid, *BEFORE, *args)
        else:
            kernel[grid](*(args if request.param == "a grid" else args[:4]))

    launch(x[1:], out[1:], 99, 1.5, 64)
    return launch


def test_values_are_taken_by_their_classes(again: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if prepared.supported():
        monkeypatch.setattr(launch, "plain_value", None)
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    again(x[1:], out[1:], 77, 2.0, 64)
    np.testing.assert_array_equal(out[1:], np.where(np.arange(99) < 77, 2 * x[1:], 0))
    again(x, out, 77, -1.0, 64, grid=(1, 1, 1))
    np.testing.assert_array_equal(out[:64], -x[:64])
    again(x, out, 77, -2.0, 64, grid=(0, 1, 1))
    np.testing.assert_array_equal(out[:64], -x[:64])


@pytest.mark.skipif(not prepared.supported(), reason="objects are laid out otherwise here")
def test_native_launches_are_not_told_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out, told = np.arange(100, dtype=np.float32), np.zeros(100, np.float32), []
    kernel = scaled.warmup(x, out, 99, 1.5, B=64, grid=(2,))
    general = launch.plain_value
    monkeypatch.setattr(launch, "plain_value", lambda *args: (told.append(args), general(*args))[1])
    kernel._init_handles()
    hooks = HookChain()
    between = (None, None, None, None, hooks, None)
    for n in range(3):
        kernel.run(2, 1, 1, *between, x, out, 90 + n, 2.0, 64)
    assert len(told) == 4 and out[91] == 2 * 91 and out[92] == 0
    hooks.add(lambda: None)  # there is one now, which is asked
    with pytest.raises(TypeError):
        kernel.run(2, 1, 1, *between, x, out, 100, 2.0, 64)
    hooks.clear()
    kernel.run(2, 1, 1, *between, x, x[1:], 40, 1.0, 64)  # these overlap
    assert len(told) == 8 and (x[1:41] == np.arange(40)).all()
    copy = pickle.loads(pickle.dumps(kernel.__getstate__()))
    assert copy["_launch"] is None


def test_what_is_of_another_class_takes_the_general_way(again: Any) -> None:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    again(x, out, np.int64(100), np.float64(2), 64)
    np.testing.assert_array_equal(out, 2 * x)
    again(x, out, 100, 3, 64)
    np.testing.assert_array_equal(out, 3 * x)


def test_what_is_wrong_is_refused_as_at_first(again: Any) -> None:
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    with pytest.raises(LaunchTypeError, match="argument `x` was compiled as"):
        again([1.0], out, 100, 1.5, 64)
    with pytest.raises(LaunchOverflowError, match="argument `n` is 8589934592"):
        again(x, out, 1 << 33, 1.5, 64)
    with pytest.raises(LaunchError, match="is negative"):
        again(x, out, 100, 1.5, 64, grid=(-1, 1, 1))
    with pytest.raises(LaunchTypeError, match="takes 5 arguments"):
        again(x, out, 100)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="`out` is read-only"):
        again(x, out, 100, 1.5, 64)


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, out = torch.ones(100), torch.zeros(100)
    kernel = scaled.warmup(x, out, 100, 1.5, B=64, grid=(2,))
    negative = torch.complex(torch.zeros(100), torch.ones(100)).conj().imag
    run = lambda *args: kernel.run(2, 1, 1, *BEFORE, *args)
    for launched in (kernel[(2,)], kernel[(2,)], run, run):
        out.zero_()
        launched(x, out, 100, 1.5, 64)
        assert (out == 1.5).all()
        launched(x[60:], out, 40, 2.5, 64)
        assert (out[:40] == 2.5).all()
        with pytest.raises(LaunchTypeError, match="negative bit"):
            launched(negative, out, 100, 1.5, 64)
        with pytest.raises(LaunchError, match="meta"):
            launched(x.to("meta"), out, 100, 1.5, 64)
