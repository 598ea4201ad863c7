"""What a kernel needs more of than there is: tiles that are too large, scratch memory."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import CompilationError, LaunchError, OutOfResources, knobs
from weft.backends.cpu import pool


@weft.jit
def twice_sorted(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    first = tl.cumsum(tl.load(x + i), axis=0)
    second = tl.cumsum(first * 2, axis=0)
    tl.store(out + i, first + second)


@weft.jit
def range_of(out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), 1.0)


@weft.jit
def square_of(out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out, tl.sum(i[:, None] + i[None, :]))


@pytest.fixture
def limit() -> Iterator[None]:
    with knobs.weft.scope():
        yield
    knobs.weft.apply()


def _forget() -> None:
    twice_sorted._kernels.clear()


@pytest.mark.usefixtures("limit")
def test_too_much_scratch_memory_is_refused_before_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool.ENGINE, "threads", 4)
    x = np.ones(4096, np.float32)
    out = np.zeros_like(x)
    _forget()
    knobs.weft.scratch_limit = 100_000
    with pytest.raises(OutOfResources) as caught:
        twice_sorted[(1,)](out, x, N=4096)
    error = caught.value
    assert not out.any()
    assert error.limit == 100_000
    assert error.required % 4 == 0
    each = error.required // 4
    assert str(error).startswith(
        f"out of resource: scratch memory of kernel twice_sorted, Required: {error.required}, Hardware limit: 100000.\n"
        f"{each} bytes for each of 4 threads\n"
    )
    assert "         16384 bytes  %first f32[4096]\n" in str(error)
    assert sum(int(line.split()[0]) for line in error.details[1:]) <= each
    assert str(error).endswith(
        "hint: use smaller blocks, so that fewer and smaller tiles are alive at once; "
        f"or run on {100_000 // each} threads (WEFT_NUM_THREADS); "
        "or raise the limit (WEFT_SCRATCH_LIMIT, half of the memory if not set)"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.usefixtures("limit")
def test_enough_scratch_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(4096, np.float32)
    out = np.zeros_like(x)
    _forget()
    twice_sorted[(1,)](out, x, N=4096)
    first = np.cumsum(x)
    np.testing.assert_array_equal(out, first + np.cumsum(2 * first))


@pytest.mark.usefixtures("limit")
def test_the_limit_holds_for_threads_added_later() -> None:
    crew = pool.Pool(3)
    try:
        pool.set_scratch_limit(1 << 20)
        with pytest.raises(OutOfResources, match="1048576 bytes for each of 4 threads"):
            crew.prepare(1 << 20)
        assert not crew._busy.value  # the pool serves the next launch
    finally:
        crew.stop()


def test_memory_that_the_system_refuses() -> None:
    with pytest.raises(OutOfResources, match="which the system refuses"):
        pool.scratch.take(1 << 62)


@pytest.mark.parametrize("count", [1 << 21, 1 << 30])
def test_a_tile_has_at_most_a_million_elements(count: int) -> None:
    with pytest.raises(CompilationError) as caught:
        range_of[(1,)](np.zeros(4, np.float32), N=count)
    text = str(caught.value)
    assert f"error: numel ({count}) exceeds triton maximum tensor numel (1048576)\n" in text
    assert text.endswith("\nhint: use a smaller block, and a loop or more programs over it")


def test_a_tile_that_broadcasting_makes_too_large() -> None:
    with pytest.raises(CompilationError) as caught:
        square_of[(1,)](np.zeros(4, np.int32), N=2048)
    assert "numel (4194304) exceeds triton maximum tensor numel (1048576)" in str(caught.value)
    assert caught.value.hint


def test_the_largest_tile_compiles_and_runs() -> None:
    out = np.zeros(1 << 20, np.float32)
    range_of[(1,)](out, N=1 << 20)
    assert (out == 1).all()


def test_more_threads_than_the_machine_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, started = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(LaunchError) as caught:
        pool.Pool(5)
    assert str(caught.value) == "only 3 of 6 threads could be started\nhint: set WEFT_NUM_THREADS to fewer"
    assert not any(thread.is_alive() for thread in started)
