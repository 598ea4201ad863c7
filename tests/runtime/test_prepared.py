"""Launches in native code do what the general way does, and leave to it whatever is not as it was."""

from __future__ import annotations

import enum
import gc
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.backends.cpu import driver
from weft.base import CapturedGlobalError, DeviceAssertionError, LaunchError
from weft.runtime import negatives, prepared

WIDTH = tl.constexpr(3)


def kernel() -> Any:
    @weft.jit
    def scaled(x, out, n, factor, flag=True, BLOCK: tl.constexpr = 64):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        y = tl.load(x + offsets, mask=mask) * factor + WIDTH
        if flag:
            y += tl.program_id(1) + tl.num_programs(2)
        tl.store(out + offsets, y, mask=mask)

    return scaled


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not prepared.supported():
        pytest.skip("launches are not prepared on this Python")
    monkeypatch.setattr(prepared, "AFTER", 1)
    yield
    driver.set_num_threads(None)


class Watched:
    """A kernel whose launches by the general way are counted."""

    def __init__(self, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel, self.general = made, 0
        self._patch = monkeypatch

    def prepare(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Launch twice: the second time natively."""
        self.kernel[grid](*args, **kwargs)
        way = self.kernel._prepared
        before = way.general

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.general += 1
            return before(*args, **kwargs)

        self._patch.setattr(way, "general", counted)
        done = self.kernel[grid](*args, **kwargs)
        assert self.general == 0, "the launch was not prepared"
        return done

    def plan_no_more(self) -> None:
        """Let the plans that there are be all."""
        self._patch.setattr(prepared, "AFTER", 1 << 30)

    def is_native(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> bool:
        before = self.general
        self.kernel[grid](*args, **kwargs)
        return self.general == before


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(kernel(), monkeypatch)


def arrays(n: int = 64, dtype: Any = np.float32) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.arange(n).astype(dtype), np.zeros(n, dtype)


def test_a_launch_like_the_last_is_native(watched: Watched) -> None:
    x, out = arrays()
    done = watched.prepare(x, out, 64, 2.0)
    assert (out == 2 * x + 4).all()
    other, result = arrays()
    assert watched.is_native(other + 1, result, 48, -1.5)
    assert (result[:48] == -1.5 * (x[:48] + 1) + 4).all() and not result[48:].any()
    assert done is watched.kernel[(1,)](x, out, 64, 2.0), "it gives the compiled kernel"


class Size(tuple[int, ...]):
    """As torch.Size is one."""


def test_grids_of_all_kinds(watched: Watched) -> None:
    x, out = arrays(256)
    watched.prepare(x, out, 256, 1.0)
    asked = lambda meta: (weft.cdiv(meta["n"], meta["BLOCK"]),)
    several = ((4,), (4, 1), (4, 1, 1), [4], [4, 1], (np.int64(4),), [np.int32(4), 1], Size((4, 1)))
    for grid in (*several, 4, np.uint8(4), asked, lambda meta: 4, lambda meta: [4]):
        out[:] = 0
        assert watched.is_native(x, out, 256, 1.0, grid=grid)
        assert (out == x + 4).all(), grid
    out[:] = 0
    assert watched.is_native(x, out, 256, 1.0, grid=(4, 0)) and not out.any()
    watched.kernel[(4, 1, 5)](x, out, 256, 1.0)
    assert (out == x + 8).all()
    seen = []
    watched.kernel[lambda meta: seen.append(meta) or (1,)](x, out, 256, 1.0)
    assert list(seen[0]) == ["x", "out", "n", "factor", "flag", "BLOCK"]
    assert seen[0]["x"] is x and seen[0]["flag"] is True and seen[0]["BLOCK"] == 64


@pytest.mark.parametrize(
    ("grid", "told"),
    [
        ((-1,), "grid size -1 on axis 0 is negative"),
        ((1, 70000), "grid size 70000 on axis 1 exceeds 65535, the most on that axis"),
        ((1 << 70,), "grid size 1180591620717411303424 on axis 0 exceeds 2147483647, the most on that axis"),
        ([4.0], r"grid sizes are integers, got 4\.0 of type float on axis 0"),
        ((None,), "grid sizes are integers, got None of type NoneType on axis 0"),
        (("4",), "grid sizes are integers, got '4' of type str on axis 0"),
        ((), r"a grid has 1 to 3 dimensions, got 0: \(\)"),
        (lambda meta: (-1,), "grid size -1 on axis 0 is negative"),
        (lambda meta: None, "a grid is a tuple of 1 to 3 integers or a function that returns one, got a NoneType"),
        (lambda: (1,), "the grid is a function that cannot be called with the arguments of the launch"),
    ],
)
def test_wrong_grids_are_told(watched: Watched, grid: Any, told: str) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    with pytest.raises(LaunchError, match="^" + told):
        watched.kernel[grid](x, out, 64, 1.0)
    assert watched.is_native(x, out, 64, 1.0)


def test_what_a_grid_raises_comes_through_once(watched: Watched) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    asked = []

    def grid(meta: dict[str, Any]) -> Any:
        asked.append(meta)
        return meta["N"]

    with pytest.raises(KeyError) as caught:
        watched.kernel[grid](x, out, 64, 1.0)
    assert len(asked) == 1
    assert caught.value.__notes__ == [
        "hint: the grid is a function that asks for 'N'; it can ask for x, out, n, factor, flag, BLOCK"
    ]


CHANGES: dict[str, Callable[[Any, Any], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "another type": lambda x, out: ((x.astype(np.float64), out, 64, 1.0), {}),
    "another address": lambda x, out: ((np.append(x, x)[1:65], out, 64, 1.0), {}),
    "a number that is 1": lambda x, out: ((x, out, 1, 1.0), {}),
    "a number that is no multiple": lambda x, out: ((x, out, 63, 1.0), {}),
    "a long number": lambda x, out: ((x, out, 1 << 40, 1.0), {}),
    "a negative number that is long": lambda x, out: ((x, out, -(1 << 40), 1.0), {}),
    "an int": lambda x, out: ((x, out, 64, 2), {}),
    "a number of NumPy": lambda x, out: ((x, out, np.int32(64), 1.0), {}),
    "a subclass": lambda x, out: ((x.view(np.recarray), out, 64, 1.0), {}),
    "a bool": lambda x, out: ((x, out, 64, 1.0, 1), {}),
    "a constant": lambda x, out: ((x, out, 64, 1.0), {"BLOCK": 32}),
    "an option": lambda x, out: ((x, out, 64, 1.0), {"num_warps": 2}),
    "another order": lambda x, out: ((x, out), {"factor": 1.0, "n": 64}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_another_key_is_not_taken(watched: Watched, change: str) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    args, more = CHANGES[change](x, out)
    watched.plan_no_more()
    assert not watched.is_native(*args, **more)
    named = {**dict(zip(("x", "out", "n", "factor"), args, strict=False)), **more}
    first = np.asarray(named["x"]) * named["factor"] + 4
    count = max(0, min(int(named["n"]), named.get("BLOCK", 64)))
    assert (out[:count] == first[:count]).all()


class Length(enum.IntEnum):
    LONG = 64


class Pair(NamedTuple):
    source: Any
    to: Any


KINDS: dict[str, tuple[Any, Any]] = {
    "numbers of NumPy": ((np.int32(64), np.float32(2)), (np.int32(48), np.float32(-1.5))),
    "wide numbers of NumPy": ((np.uint64(64), np.float64(2)), (np.uint64(1 << 30), np.float64(1e300))),
    "small numbers of NumPy": ((np.int8(64), np.float16(2)), (np.int8(-128), np.float16(0.5))),
    "bools of NumPy": ((64, 2.0, np.True_), (64, 3.0, np.False_)),
    "a member of an enumeration": ((Length.LONG, 2.0), (Length.LONG, 3.0)),
    "a long number": ((1 << 40, 2.0), ((1 << 63) - 16, 3.0)),
    "a negative number that is long": ((-(1 << 40), 2.0), (-(1 << 63), 3.0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_all_kinds(watched: Watched, kind: str) -> None:
    (n, factor, *flag), (other, with_, *not_) = KINDS[kind]
    x, out = arrays()
    watched.prepare(x, out, n, factor, *flag)
    count = max(0, min(int(n), 64))
    with np.errstate(over="ignore", invalid="ignore"):
        assert (out[:count] == x[:count] * np.float32(factor) + 4).all()
        out[:] = 0
        assert watched.is_native(x, out, other, with_, *not_)
        count, flags = max(0, min(int(other), 64)), 3 + all(not_)
        assert np.array_equal(out[:count], x[:count] * np.float32(with_) + np.float32(flags), equal_nan=True)
    assert not out[count:].any()


def test_numbers_that_do_not_fit_are_refused_as_ever(watched: Watched) -> None:
    x, out = arrays()
    watched.prepare(x, out, np.uint64(1 << 40), 2.0)
    watched.plan_no_more()
    for n in (np.uint64(1), np.uint64((1 << 63) + 16), 1 << 63, (1 << 64) - 1, -(1 << 63)):
        assert not watched.is_native(x, out, n, 2.0)
    for n in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(LaunchError, match=f"the integer {n} does not fit 64 bits"):
            watched.kernel[(1,)](x, out, n, 2.0)


@pytest.mark.parametrize("made", [lambda *pair: pair, Pair])
def test_tuples(monkeypatch: pytest.MonkeyPatch, made: Callable[..., Any]) -> None:
    @weft.jit
    def copy(pair, more, SHAPE: tl.constexpr):
        offsets = tl.arange(0, 64)
        y = tl.load(pair[0] + offsets, mask=offsets < more[0]) + SHAPE[0] + more[1][0]
        tl.store(pair[1] + offsets, y, mask=offsets < more[0])

    watched, (x, out) = Watched(copy, monkeypatch), arrays()
    watched.prepare(made(x, out), (64, (2.0, None)), (int("1"), ("two",)))
    assert (out == x + 3).all()
    x, out = arrays()
    assert watched.is_native(made(x, out), (48, (-1.0, None)), (int("1"), ("two",)))
    assert (out[:48] == x[:48]).all() and not out[48:].any()
    watched.plan_no_more()
    for pair, more, shape in (
        (made(x[1:], out), (32, (2.0, None)), (1, ("two",))),  # another address
        (made(x, out), (33, (2.0, None)), (1, ("two",))),
        (made(x, out), (32, (2, None)), (1, ("two",))),
        (made(x, out), (32, (2.0, None)), (2, ("two",))),
        (made(x, out), (32, (2.0, None)), (1, ("three",))),
        (made(x, out), (32, (2.0, None)), (1.0, ("two",))),
    ):
        assert not watched.is_native(pair, more, shape)
        assert (out[: more[0]] == pair[0][: more[0]] + shape[0] + 2).all()
    with pytest.raises(LaunchError, match="argument `pair\\[1\\]` is read-only"):
        x.flags.writeable = False
        watched.kernel[(1,)](made(out, x), (32, (2.0, None)), (1, ("two",)))
    memory = np.zeros(128, np.float32)
    assert not watched.is_native(made(memory[:64], memory[16:80]), (64, (1.0, None)), (1, ("two",)))
    assert (memory[16:80] == 2).all()


def test_parts_of_tuples_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a plan holds are launched the general way."""

    @weft.jit
    def sums(out, numbers):
        total = 0
        for k in tl.static_range(len(numbers)):
            total += numbers[k]
        tl.store(out, total)

    out = np.zeros(1, np.int64)
    for count in (1, 63, 64, 65, 100):
        for _ in range(5):
            sums[(1,)](out, tuple(range(2, count + 2)))
            assert out[0] == sum(range(2, count + 2))


def test_annotated_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit
    def fill(out, n: tl.int16, value: tl.float32, wide: tl.int64):
        offsets = tl.arange(0, 64)
        tl.store(out + offsets, value + wide, mask=offsets < n)

    watched, out = Watched(fill, monkeypatch), np.zeros(64, np.float32)
    watched.prepare(out, 64, 2.5, 7)
    assert watched.is_native(out, 32, 1.5, 9) and (out[:32] == 10.5).all() and (out[32:] == 9.5).all()
    with pytest.raises(LaunchError, match="argument `n` is annotated i16, 32768 does not fit"):
        watched.kernel[(1,)](out, 1 << 15, 1.5, 9)
    watched.plan_no_more()
    assert not watched.is_native(out, 32, 1, 9) and out[0] == 10


@pytest.mark.parametrize("value", [7, "seven", 2.5, True, None, tl.float32])
def test_constants_are_told_by_value(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    @weft.jit
    def tell(out, which: tl.constexpr):
        tl.store(out, 1 if which == 1000 else 2)

    watched = Watched(tell, monkeypatch)
    out = np.zeros(1, np.int32)
    watched.prepare(out, int("1000"))
    assert watched.is_native(out, int("1000")) and out[0] == 1
    assert not watched.is_native(out, value) and out[0] == 2
    for same in (1000.0, True + 999, 1 << 70):
        watched.kernel[(1,)](out, same)
        assert out[0] == (1 if same == 1000 else 2)


def test_arrays_that_overlap_go_the_other_way(watched: Watched) -> None:
    @weft.jit
    def shifted(x, y, out, n, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < n
        total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
        tl.store(out + offsets, total, mask=mask)

    watched.kernel = shifted
    memory = np.zeros(400, np.float32)
    x, y, out = memory[:64], memory[128:192], memory[256:320]
    watched.prepare(x, y, out, 64, BLOCK=64)
    assert watched.is_native(x, y, x, 64, BLOCK=64)  # the very same is no harm
    memory[:] = np.arange(400)
    expected = memory[:64] + memory[128:192]
    watched.kernel[(1,)](memory[:64], memory[128:192], memory[16:80], 64, BLOCK=64)
    assert watched.general == 1 and (memory[16:80] == expected).all()
    backward = memory[256:320][::-1]
    watched.kernel[(1,)](x, y, backward[60:], 4, BLOCK=64)  # begins elsewhere, and ends apart
    assert (memory[256:260][::-1] != 0).all()


def test_arrays_in_files(watched: Watched, tmp_path: Path) -> None:
    """Those of a class made from NumPy's are where its own are."""
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(64,))
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=(64,))
    x[:] = np.arange(64)
    watched.prepare(x, out, 64, 2.0)
    assert watched.is_native(x, out, 64, 3.0) and (out == 3 * x + 4).all()
    watched.plan_no_more()
    assert not watched.is_native(np.asarray(x), out, 64, 1.0) and (out == x + 4).all()
    with pytest.raises(LaunchError, match="argument `out` is read-only"):
        watched.kernel[(1,)](x, np.memmap(tmp_path / "x", np.float32, "r", shape=(64,)), 64, 1.0)


def test_read_only_arrays_are_refused(watched: Watched) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    x.flags.writeable = False
    assert watched.is_native(x, out, 64, 1.0)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="argument `out` is read-only, and the kernel stores to it"):
        watched.kernel[(1,)](x, out, 64, 1.0)


def test_hooks_are_called_from_when_they_are_there(watched: Watched) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    seen = []
    for hooks in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):

        def hook(metadata: Any) -> None:
            seen.append(metadata)

        hooks.add(hook)
        watched.kernel[(1,)](x, out, 64, 1.0)
        hooks.remove(hook)
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook = seen.append
        watched.kernel[(1,)](x, out, 64, 1.0)
    watched.kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append(args))
    watched.kernel[(1,)](x, out, 64, 1.0)
    assert len(seen) == 4
    watched.kernel.pre_run_hooks.clear()
    assert watched.is_native(x, out, 64, 1.0) and len(seen) == 4


def test_launches_between_hooks_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def describe(grid: Any, metadata: Any, args: Any) -> dict[str, Any]:
        return {"grid": grid, "given": args}

    @weft.jit(launch_metadata=describe)
    def turns(x, n, BLOCK: tl.constexpr = 16):
        total = n
        for i in range(tl.load(x)):
            total = (total * 5) ^ i
        tl.store(x + tl.program_id(0) + 2 * tl.program_id(1), tl.where(total == 123, total, n))

    class Fails(Exception):
        pass

    def fail(*args: Any) -> None:
        raise Fails

    wrong = []

    def tell(when: str) -> Callable[[Any], None]:
        def hook(metadata: Any) -> None:
            told.append((when, metadata))
            if when in wrong:
                raise Fails

        return hook

    watched, x = Watched(turns, monkeypatch), np.ones(4, np.int32)
    runtime = knobs.runtime
    with runtime.scope():
        runtime.launch_enter_hook, runtime.launch_exit_hook = tell("enter"), tell("exit")
        watched.prepare(x, 7, grid=[4])
        told.clear()
        assert watched.is_native(x, 8, grid=lambda meta: (2, 2)) and (x == 8).all()
        (enter, before), (leave, after) = told
        assert (enter, leave) == ("enter", "exit") and before is after
        assert before["name"] == "turns" and before["grid"] == (2, 2, 1)
        assert list(before["given"]) == ["x", "n", "BLOCK"] and before["given"]["x"] is x
        if hasattr(signal, "setitimer"):  # what ends a launch early
            previous = signal.signal(signal.SIGALRM, fail)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Fails):
                watched.is_native(np.full(4, 1 << 30, np.int32), 7)
            signal.signal(signal.SIGALRM, previous)
            assert watched.general == 0 and [kind for kind, _ in told] == ["enter", "exit"] * 2
        for wrong[:] in (["exit"], ["enter"]):
            told.clear()
            with pytest.raises(Fails):
                watched.is_native(x, 9, grid=(4,))
            assert [kind for kind, _ in told] == ["enter", "exit"][: 2 - wrong.count("enter")]
            assert (x[0] == 9) == (wrong == ["exit"])
            x[:] = 1
        assert watched.general == 0


def test_debug_is_looked_at_in_each_launch(watched: Watched) -> None:
    x, out = arrays()
    plain = watched.prepare(x, out, 64, 1.0)
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert watched.kernel[(1,)](x, out, 64, 1.0) is not plain
    assert watched.kernel[(1,)](x, out, 64, 1.0) is plain


def test_what_a_kernel_captures_is_looked_at(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "WIDTH", tl.constexpr(4))
        with pytest.raises(CapturedGlobalError):
            watched.kernel[(1,)](x, out, 64, 1.0)
    assert watched.is_native(x, out, 64, 1.0)
    watched.kernel._unsafe_update_src(watched.kernel.src.replace("* factor", "* 5 * factor"))
    watched.kernel[(1,)](x, out, 64, 1.0)
    assert (out == 5 * x + 4).all()


def test_variables_around_a_kernel_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    width = tl.constexpr(2)

    def change(value: int) -> None:
        nonlocal width
        width = tl.constexpr(value)

    @weft.jit
    def inner(out):
        tl.store(out, width)

    watched = Watched(inner, monkeypatch)
    out = np.zeros(1, np.int32)
    watched.prepare(out)
    change(3)
    with pytest.raises(CapturedGlobalError):
        inner[(1,)](out)


def test_clearing_the_cache_forgets_plans(watched: Watched) -> None:
    x, out = arrays()
    first = watched.prepare(x, out, 64, 1.0)
    watched.kernel.cache.clear()
    again = watched.kernel[(1,)](x, out, 64, 1.0)
    assert again is not first and watched.general == 1


def test_failing_assertions_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit(debug=True)
    def check(x, BLOCK: tl.constexpr):
        tl.device_assert(BLOCK > 0)
        tl.store(x + tl.program_id(0), 1)

    x = np.zeros(4, np.int32)
    for _ in range(4):
        check[(4,)](x, BLOCK=16)
    with pytest.raises(DeviceAssertionError):
        check[(4,)](x[:2], BLOCK=16)


def test_kernels_whose_programs_wait_are_launched_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit
    def for_the_next(flag, out, n, most):
        p = tl.program_id(0)
        if p + 1 < n:
            while tl.load(flag + p + 1, volatile=True) != 1:
                pass
        tl.store(flag + p, 1)
        tl.device_assert(p < most, "too many programs")
        tl.store(out + p, p)

    options = {"debug": True, "sanitize_overflow": False}
    watched = Watched(for_the_next, monkeypatch)
    flag, out = np.zeros(5, np.int32), np.zeros(5, np.int32)
    compiled = watched.prepare(flag, out, 5, 10, grid=(5,), **options)
    assert compiled.metadata.waits and (out == np.arange(5)).all()
    watched.plan_no_more()
    for n in (2, 9, 5):
        flag, out = np.zeros(n, np.int32), np.zeros(n, np.int32)
        assert watched.is_native(flag, out, n, 10, grid=(n,), **options)
        assert (out == np.arange(n)).all()
    with pytest.raises(DeviceAssertionError, match="too many programs"):
        watched.is_native(flag, out, 5, 4, grid=(5,), **options)
    assert watched.general == 0 and watched.is_native(flag, out, 5, 10, grid=(5,), **options)


def test_kernels_as_inductor_compiles_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With assertions that are checks: a check says at which element it failed, in words behind the arguments."""

    @weft.jit
    def gathered(x, index, out, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        i = tl.load(index + offsets)
        tl.device_assert((0 <= i) & (i < n), "index out of bounds")
        tl.store(out + offsets, tl.load(x + i))

    x, out = arrays(64)
    index, wrong = np.arange(64, dtype=np.int32)[::-1].copy(), np.arange(-60, 4, dtype=np.int32)
    options = {"BLOCK": 16, "debug": True, "sanitize_overflow": False}
    with pytest.raises(DeviceAssertionError) as first:
        gathered[(4,)](x, wrong, out, 64, **options)
    kernel = Watched(gathered, monkeypatch)
    kernel.prepare(x, index, out, 64, grid=(4,), **options)
    assert (out == x[::-1]).all()
    for _ in range(2):  # the report of the first is not seen by the second
        with pytest.raises(DeviceAssertionError) as again:
            kernel.is_native(x, wrong, out, 64, grid=(4,), **options)
        assert kernel.general == 0 and str(again.value) == str(first.value)
        assert kernel.is_native(x, index, out, 64, grid=(4,), **options)
    compiled = gathered.warmup(x, index, out, 64, grid=(4,), **options)
    for _ in range(3):
        compiled.run(4, 1, 1, None, None, None, None, None, None, x, index, out, 64, 16)
    with pytest.raises(DeviceAssertionError) as run:
        compiled.run(4, 1, 1, None, None, None, None, None, None, x, wrong, out, 64, 16)
    assert str(run.value) == str(first.value)


def test_launches_of_many_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an optimizer has them: each array that is written must not overlap those that are read later."""

    @weft.jit
    def steps(xs, outs, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        for k in tl.static_range(12):
            tl.store(outs[k] + i, tl.load(xs[k] + i) + k)

    xs, outs = (tuple(np.full(16, k, np.float32) for k in range(12)) for _ in range(2))
    watched = Watched(steps, monkeypatch)
    watched.prepare(xs, outs, BLOCK=16)
    assert all((out == 2 * k).all() for k, out in enumerate(outs))


def test_tensors(watched: Watched) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no exchange functions")
    x, out = torch.arange(64.0), torch.zeros(64)
    watched.prepare(x, out, 64, 2.0)
    assert torch.equal(out, 2 * x + 4)
    assert watched.is_native(torch.nn.Parameter(x).data, out, 64, 1.0)
    watched.plan_no_more()
    for odd in (x.double(), x.to(torch.bfloat16), torch.cat([x, x])[1:65], torch.nn.Parameter(x)):
        assert not watched.is_native(odd, out, 64, 1.0)
        assert torch.equal(out, odd.float() + 4)
    with pytest.raises(LaunchError):
        watched.kernel[(1,)](torch.empty(64, device="meta"), out, 64, 1.0)
    with pytest.raises(LaunchError, match="negative bit"):
        watched.kernel[(1,)](torch._neg_view(x), out, 64, 1.0)
    copy = torch._lazy_clone(x)
    assert watched.is_native(x, copy, 64, 1.0)
    assert torch.equal(copy, torch.arange(64.0) + 4) and torch.equal(x, torch.arange(64.0)), "a copy is made in time"


@pytest.mark.parametrize("read", [True, False])
def test_negatives_of_tensors_are_refused_at_every_launch(monkeypatch: pytest.MonkeyPatch, read: bool) -> None:
    """The views that conjugates have imaginary parts by: the bit is asked before the launch is native, and after it,
    when it is read where PyTorch has it, or asked still where that is not known."""
    torch = pytest.importorskip("torch")
    if read and hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        assert negatives.can_be_read(torch.Tensor) and negatives.can_be_read(torch.nn.Parameter)
        assert not negatives.can_be_read(type("Tensor", (torch.Tensor,), {}))
    elif not read:
        monkeypatch.setattr(prepared, "can_be_read", lambda cls: False)
    x, out = torch.arange(64.0), torch.zeros(64)
    negative = torch.complex(torch.zeros(64), x).conj().imag
    assert negative.is_neg()

    @weft.jit
    def double(x, out, stride, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, 2 * tl.load(x + i * stride))

    for _ in range(40):
        double[(1,)](x, out, 1, 64)
        assert torch.equal(out, 2 * x)
        with pytest.raises(LaunchError, match="negative bit"):
            double[(1,)](negative, out, 2, 64)


def test_many_threads_launch_at_once(watched: Watched) -> None:
    x, out = arrays(4096)
    watched.prepare(x, out, 4096, 1.0, grid=(64,))
    wrong = []

    def work(factor: float) -> None:
        mine = np.zeros(4096, np.float32)
        for _ in range(200):
            watched.kernel[(64,)](x, mine, 4096, factor)
            if not (mine == x * factor + 4).all():
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and watched.general == 0


def test_a_kernel_can_go_and_its_launcher_stay(watched: Watched) -> None:
    x, out = arrays()
    watched.prepare(x, out, 64, 1.0)
    launch = watched.kernel[(1,)]
    gone = weakref.ref(watched.kernel._prepared)
    watched.kernel = None
    gc.collect()
    out[:] = 0
    launch(x, out, 64, 1.0)
    assert (out == x + 4).all() and gone() is not None


def test_each_kind_of_launch_has_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of argument that comes late is prepared as soon as the first was."""
    monkeypatch.setattr(prepared, "AFTER", 4)
    made, x = kernel(), np.arange(64.0)
    for _ in range(300):
        made[(1,)](x.astype(np.float32), np.zeros(64, np.float32), 64, 2.0)
    general, before = [0], made._prepared.general

    def counted(*args: Any, **kwargs: Any) -> Any:
        general[0] += 1
        return before(*args, **kwargs)

    monkeypatch.setattr(made._prepared, "general", counted)
    for dtype in (np.float64, np.int32, np.int16, np.int64, np.float16, np.int8):
        for _ in range(20):
            out = np.zeros(64, dtype)
            made[(1,)](x.astype(dtype), out, 64, 1.0)
        assert (out == (x + 4).astype(dtype)).all()
    assert general[0] <= 6 * 5, "but for four launches of each, and the first"
