"""Launches on a GPU in native code hand the driver what Python hands it, and leave to Python what differs."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia import faults
from weft.base import CapturedGlobalError, DeviceLost, LaunchError
from weft.runtime import gpu as launching, knobs, prepared
from weft.runtime.exchange import described

from .pretended_gpu import PretendedGPU, Tensor, forget, pretend

FACTOR = tl.constexpr(3)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    if not prepared.supported():
        pytest.skip("launches are not prepared on this Python")
    monkeypatch.setattr(prepared, "AFTER", 1)
    yield from pretend(monkeypatch)


def kernel() -> Any:
    @weft.jit
    def fill(x, y, n, scale, flag=True, BLOCK: tl.constexpr = 64):
        tl.store(x, tl.load(y + n) * scale * FACTOR + flag)

    return fill


class Watched:
    """A kernel and the GPU it is launched on."""

    def __init__(self, made: Any, gpu: PretendedGPU) -> None:
        self.kernel, self.gpu = made, gpu

    def is_native(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> bool:
        """Launch, and say whether native code handed it to the driver."""
        before, launched = self.gpu.native, len(self.gpu.launched)
        self.kernel[grid](*args, **kwargs)
        assert len(self.gpu.launched) == launched + 1
        return self.gpu.native > before

    def prepare(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> None:
        """Launch until it is native."""
        assert any(self.is_native(*args, grid=grid, **kwargs) for _ in range(4)), "the launch was not prepared"


@pytest.fixture
def watched(gpu: PretendedGPU) -> Watched:
    return Watched(kernel(), gpu)


def plan_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the plans that there are be all."""
    monkeypatch.setattr(prepared, "AFTER", 1 << 30)


def test_the_driver_is_handed_the_same(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a kernel that Python launches."""
    x, y = Tensor(1 << 40), Tensor(1 << 41)
    options = {"num_warps": 8, "launch_cooperative_grid": True}
    watched.prepare(x, y, 64, 0.5, False, BLOCK=128, **options)
    with monkeypatch.context() as patch:
        patch.setattr(launching, "supported", lambda: False)
        other = Watched(kernel(), watched.gpu)
        assert not any(other.is_native(x, y, 64, 0.5, False, BLOCK=128, **options) for _ in range(5))
    for array, n, scale, grid, stream in (
        (Tensor(1 << 42), 48, -1.5, (5, 2), 7),
        (Tensor(0, size=0), 1 << 20, 1e300, (3, 1, 65535), 0),
        (x, 32, 1e-60, [np.int32(6)], (1 << 64) - 16),
    ):
        with weft.cuda.stream(stream):
            assert watched.is_native(array, y, n, scale, False, BLOCK=128, grid=grid, **options)
            assert not other.is_native(array, y, n, scale, False, BLOCK=128, grid=grid, **options)
        native, by_python = watched.gpu.launched[-2:]
        assert native.values("QQqQq") == by_python.values("QQqQq")
        for fact in ("kernel", "grid", "block", "shared", "stream", "attributes"):
            assert getattr(native, fact) == getattr(by_python, fact)
    assert struct.unpack_from("<I4xi", watched.gpu.launched[-1].attributes) == (2, 1), "it is cooperative"


def test_the_compiled_kernel_is_given_back(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    assert watched.kernel[(1,)](x, x, 64, 0.5) is watched.kernel.warmup(x, x, 64, 0.5, grid=(1,))


def test_grids(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    asked: list[Any] = []
    for grid in (lambda meta: asked.append(meta) or (meta["n"] // 16, 2), lambda meta: 4, [4, 2], 4, np.int64(4)):
        assert watched.is_native(x, x, 64, 0.5, grid=grid)
        assert watched.gpu.launched[-1].grid[0] == 4
    assert asked[0]["x"] is x and asked[0]["BLOCK"] == 64
    launched = len(watched.gpu.launched)
    for nothing in ((0,), (3, 0), lambda meta: 0):
        watched.kernel[nothing](x, x, 64, 0.5)
    assert len(watched.gpu.launched) == launched, "the driver takes no grid of 0"
    for wrong, told in (((-1,), "grid size -1 on axis 0 is negative"), ((1, 70000), "grid size 70000 on axis 1")):
        with pytest.raises(LaunchError, match=told):
            watched.kernel[wrong](x, x, 64, 0.5)


CHANGES: dict[str, Callable[[Tensor], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "another type": lambda x: ((x, Tensor(dtype=np.float16), 64, 0.5), {}),
    "another address": lambda x: ((Tensor((1 << 40) + 4), x, 64, 0.5), {}),
    "a number that is 1": lambda x: ((x, x, 1, 0.5), {}),
    "a multiple of 8": lambda x: ((x, x, 8, 0.5), {}),
    "a multiple of 4": lambda x: ((x, x, 12, 0.5), {}),
    "an odd number": lambda x: ((x, x, 17, 0.5), {}),
    "a long number": lambda x: ((x, x, 1 << 40, 0.5), {}),
    "a number for a float": lambda x: ((x, x, 64, 1), {}),
    "a constant": lambda x: ((x, x, 64, 0.5), {"BLOCK": 32}),
    "an option": lambda x: ((x, x, 64, 0.5), {"num_warps": 8}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_another_key_is_not_taken(watched: Watched, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    args, more = CHANGES[change](x)
    plan_no_more(monkeypatch)
    assert not watched.is_native(*args, **more)
    assert watched.gpu.launched[-1].values("QQ") == (args[0].data_ptr(), args[1].data_ptr())


@pytest.mark.parametrize(
    ("n", "others", "another"), [(24, (8, 40, -24), 16), (20, (4, 12, 28), 24), (17, (18, 3, -1), 20)]
)
def test_what_divides_a_number_is_told_as_keys_do(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, n: int, others: tuple[int, ...], another: int
) -> None:
    x = Tensor()
    watched.prepare(x, x, n, 0.5)
    plan_no_more(monkeypatch)
    assert all(watched.is_native(x, x, other, 0.5) for other in others)
    assert not watched.is_native(x, x, another, 0.5)


def test_arrays_in_other_memory_are_refused(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    for _ in range(3):
        with pytest.raises(LaunchError, match=r"argument `y`: a numpy\.ndarray lives in host memory"):
            watched.kernel[(1,)](x, np.zeros(64, np.float32), 64, 0.5)
        assert watched.is_native(x, x, 64, 0.5)


def test_each_gpu_has_its_context(watched: Watched) -> None:
    """Whichever the thread has, which it has afterwards."""
    watched.gpu.count = 2
    forget()
    arrays = [Tensor(device=device) for device in (0, 1)]
    for x in arrays:
        watched.prepare(x, x, 64, 0.5)
    for current in (0, 1):
        watched.gpu.current = current
        for device, x in enumerate(arrays):
            assert watched.is_native(x, x, 64, 0.5)
            assert (watched.gpu.launched[-1].gpu, watched.gpu.current) == (device, current)
    with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `y` on GPU 1"):
        watched.kernel[(1,)](*arrays, 64, 0.5)


def test_a_lost_gpu_names_native_launches(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    faults.launches.clear()
    for grid in ((2,), (2,), (3, 4)):
        watched.kernel[grid](x, x, 64, 0.5)
    watched.gpu.answers["cuLaunchKernelEx"] = 700
    native = watched.gpu.native
    with pytest.raises(DeviceLost) as caught:
        watched.kernel[(5,)](x, x, 64, 0.5)
    assert watched.gpu.native == native + 1
    expected = [("fill", grid) for grid in ((5, 1, 1), (3, 4, 1), (2, 1, 1), (2, 1, 1))]
    assert list(caught.value.recent) == expected
    frames = [entry.frame.f_globals["__name__"] for entry in caught.traceback]
    assert all(not name.startswith("weft.") for name in frames), "the traceback ends at the user's line"


def test_a_thread_without_a_context_gets_one(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    answers = iter((201, 0))
    watched.gpu.launch_answers = lambda: next(answers, 201)
    before = watched.gpu.native
    watched.kernel[(1,)](x, x, 64, 0.5)
    assert watched.gpu.native == before + 2, "it is tried once more"
    with pytest.raises(LaunchError, match="CUDA_ERROR_201"):
        watched.kernel[(1,)](x, x, 64, 0.5)
    assert watched.gpu.native == before + 4


def test_hooks_and_settings(watched: Watched) -> None:
    x, told = Tensor(), list[str]()
    watched.prepare(x, x, 64, 0.5)
    knobs.runtime.launch_enter_hook = lambda data: told.append("enter")
    knobs.runtime.launch_exit_hook = lambda data: told.append("exit")
    for count in range(1, 4):
        watched.kernel[(1,)](x, x, 64, 0.5)
        assert told == ["enter", "exit"] * count
    assert watched.is_native(x, x, 64, 0.5), "hooks are called by native code too"
    knobs.runtime.launch_enter_hook = knobs.runtime.launch_exit_hook = None
    watched.prepare(x, x, 64, 0.5)
    assert len(told) == 8
    knobs.runtime.debug = True
    assert watched.kernel[(1,)](x, x, 64, 0.5).metadata.debug
    knobs.runtime.debug = False
    assert not watched.kernel[(1,)](x, x, 64, 0.5).metadata.debug
    heard: list[Any] = []
    watched.kernel.add_pre_run_hook(lambda *args, **more: heard.append(args))
    assert not watched.is_native(x, x, 64, 0.5) and len(heard) == 1


def test_captures_are_looked_at(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    monkeypatch.setitem(watched.kernel.fn.__globals__, "FACTOR", tl.constexpr(4))
    with pytest.raises(CapturedGlobalError):
        watched.kernel[(1,)](x, x, 64, 0.5)


def test_forgotten_kernels_are_compiled_again(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    watched.kernel.cache.clear()
    assert not watched.is_native(x, x, 64, 0.5)
    watched.prepare(x, x, 64, 0.5)


def test_kernels_with_needs_of_their_own_are_left_to_python(watched: Watched) -> None:
    x = Tensor()
    for _ in range(5):
        assert not watched.is_native(x, x, 64, 0.5, num_ctas=2)
        assert watched.gpu.launched[-1].grid == (2, 1, 1)


def test_a_kernel_without_plans_is_launched_by_python_alone(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "VAIN", 4)
    x = Tensor()
    for _ in range(8):
        watched.kernel[(1,)](x, x, 64, 0.5, num_ctas=2)
    assert watched.kernel._launcher is watched.kernel._on_gpu().quickest
    for n in (17, 17, 17, 64):
        watched.kernel[(1,)](x, x, n, 0.5, num_ctas=2)
        assert watched.kernel._launcher is watched.kernel._on_gpu().quickest


def test_many_kinds_in_turn_are_launched_by_python(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at all plans in vain took longer than a launch in Python: twice as long with 40 kinds."""
    monkeypatch.setattr(prepared, "MOST_PLANS", 2)
    monkeypatch.setattr(prepared, "MOST_RETURNS", 8)
    x, kept = Tensor(), watched.kernel[(1,)]
    for warps in (1, 2) * 8:
        watched.kernel[(1,)](x, x, 64, 0.5, num_warps=warps)
    assert watched.is_native(x, x, 64, 0.5, num_warps=1) and watched.is_native(x, x, 64, 0.5, num_warps=2)
    early = watched.kernel[(1,)]
    for warps in (1, 2, 4) * 40:
        watched.kernel[(1,)](x, x, 64, 0.5, num_warps=warps)
    assert watched.kernel._launcher is watched.kernel._on_gpu().quickest
    native = watched.gpu.native
    for launch in (kept, early, watched.kernel[(1,)]) * 4:
        launch(x, x, 64, 0.5, num_warps=1)
    assert watched.gpu.native == native


def test_nothing_keeps_a_kernel(watched: Watched) -> None:
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    compiled = weakref.ref(watched.kernel[(1,)](x, x, 64, 0.5))
    del watched.kernel
    gc.collect()
    assert compiled() is None


def test_no_plan_keeps_an_array(watched: Watched) -> None:
    """Plans kept the arguments that they were written of, and so gigabytes of a GPU's memory."""
    x, y = Tensor(), Tensor()
    watched.prepare(x, y, 64, 0.5)
    kept = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [array() for array in kept] == [None, None]


def test_an_array_that_dlpack_cannot_describe_has_no_plan() -> None:
    """The function that describes arrays raises then, and the error came out of a launch that was right."""
    raises = ctypes.cast(ctypes.pythonapi.PyErr_SetString, ctypes.c_void_p).value or 0
    assert described(raises, ValueError) is None


def test_many_threads(watched: Watched) -> None:
    """Each launch has its own grid and numbers, whoever has the interpreter's lock while the driver is called."""
    x = Tensor()
    watched.prepare(x, x, 64, 0.5)
    before = len(watched.gpu.launched)

    def work(number: int) -> None:
        for k in range(50):
            watched.kernel[(number, k + 1)](x, x, 16 * number, 0.5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launched = watched.gpu.launched[before:]
    assert sorted(call.grid for call in launched) == sorted((n, k + 1, 1) for n in range(2, 6) for k in range(50))
    assert all(call.values("QQq")[2] == 16 * call.grid[0] for call in launched)
