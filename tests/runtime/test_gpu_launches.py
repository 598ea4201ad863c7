"""Launches on a GPU as far as the host goes: what the driver is handed, by the quickest way and by the general one."""

from __future__ import annotations

import itertools
import random
import struct
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.backends.nvidia import driver as backend
from weft.base import CapturedGlobalError, LaunchError, LaunchTypeError, NoDevice
from weft.compiler import devices
from weft.runtime import gpu as launching, knobs

from .pretended_gpu import Array, PretendedGPU, Tensor, forget, pretend

FACTOR = tl.constexpr(3)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


def kernels() -> tuple[Any, Any]:
    """New ones, which no launcher was made for."""

    @weft.jit
    def fill(x, y, n, scale, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(y + i, mask=i < n) * scale, mask=i < n)

    @weft.jit
    def captured(x, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, i * FACTOR, mask=i < n)

    return fill, captured


def test_what_the_driver_is_handed(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x, y = Array(1 << 40), Array(1 << 41)
    for _ in range(3):  # the first time, the first time with its launcher, and the quickest way
        fill[(5, 2)](x, y, 64, 0.5, BLOCK=128, num_warps=8)
    for call in gpu.launched:
        assert (call.grid, call.block, call.stream) == ((5, 2, 1), (256, 1, 1), 0)
        address, other, n, scale = call.values("QQqf")
        assert (address, other, n, scale) == (1 << 40, 1 << 41, 64, 0.5)
    assert len(gpu.launched) == 3
    fill[(0,)](x, y, 64, 0.5, BLOCK=128, num_warps=8)
    assert len(gpu.launched) == 3  # a grid without programs


def test_a_compiled_kernel_by_itself(gpu: PretendedGPU) -> None:
    """With all parameters or without the constants, in the current stream or in one that is named, checked."""
    fill, _ = kernels()
    x, y = Array(1 << 40), Array(1 << 41)
    kernel = fill.warmup(x, y, 64, 0.5, BLOCK=128, grid=(1,), num_warps=8)
    assert kernel.metadata.target.arch == 90
    assert fill.warmup(x, y, 64, 0.5, BLOCK=128, grid=(1,), num_warps=8, target="cuda:80").metadata.target.arch == 80
    kernel[5, 2](x, y, 64, 0.5, 128)
    kernel[(5, 2)](x, y, 64, 0.5)
    kernel.run(5, 2, 1, 7, kernel.function, kernel.packed_metadata, None, None, None, x, y, 64, 0.5)
    assert [call.stream for call in gpu.launched] == [0, 0, 7]
    for call in gpu.launched:
        assert (call.grid, call.block) == ((5, 2, 1), (256, 1, 1))
        assert call.values("QQqf") == (1 << 40, 1 << 41, 64, 0.5)
    with pytest.raises(LaunchTypeError, match="`n` was compiled as i32, so it must be an integer, got a str"):
        kernel[(1,)](x, y, "64", 0.5)
    with pytest.raises(LaunchTypeError, match="fill takes 5 arguments, 2 were given"):
        kernel[(1,)](x, y)


def test_a_compiled_kernel_out_of_its_attributes(gpu: PretendedGPU) -> None:
    """As PyTorch's Inductor hands kernels on: attributes that can be pickled, then `_init_handles`."""
    fill, _ = kernels()
    x = Array(1 << 40)
    kernel = fill.warmup(x, x, 64, 0.5, BLOCK=128, grid=(1,), target="cuda:90")
    again = weft.CompiledKernel.__new__(weft.CompiledKernel)
    again.__dict__.update({**kernel.__dict__, "module": None, "function": None, "run": None})
    again._init_handles()
    again.run(3, 1, 1, 9, again.function, again.packed_metadata, None, None, None, x, x, 64, 0.5, 128)
    assert (gpu.launched[-1].grid, gpu.launched[-1].stream) == ((3, 1, 1), 9)


def test_streams_and_attributes(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x = Tensor()
    for stream in (0, 7, 7, 0, 9):
        with weft.cuda.stream(stream):
            fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    assert [call.stream for call in gpu.launched] == [0, 7, 7, 0, 9]
    frozen = fill.bind(x, x, 64, 1.0, BLOCK=64, grid=(2,))
    for stream in (0, 5, 0):
        with weft.cuda.stream(stream):
            frozen()
    assert [(call.stream, call.grid) for call in gpu.launched[5:]] == [(0, (2, 1, 1)), (5, (2, 1, 1)), (0, (2, 1, 1))]
    assert gpu.launched[-1].values("QQqf") == (1 << 40, 1 << 40, 64, 1.0)
    fill[(1,)](x, x, 64, 1.0, BLOCK=64, launch_cooperative_grid=True, launch_pdl=True)
    raw = gpu.launched[-1].attributes
    assert [struct.unpack_from("<I4xi", raw, at) for at in (0, 72)] == [(2, 1), (6, 1)]


def test_a_stream_is_that_of_a_thread(gpu: PretendedGPU) -> None:
    """Threads that each launch into a stream of their own got each other's."""
    fill, _ = kernels()
    x = Array(1 << 40)
    fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    inside, outside = threading.Barrier(2), threading.Barrier(2)

    def other() -> None:
        with weft.cuda.stream(9):
            inside.wait()
            outside.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    fill[(2,)](x, x, 64, 1.0, BLOCK=64)
    with weft.cuda.stream(5):
        outside.wait()
        thread.join()
        fill[(3,)](x, x, 64, 1.0, BLOCK=64)
    assert [call.stream for call in gpu.launched] == [0, 0, 5]


ADDRESSES = 1 << 40, (1 << 40) + 4
NUMBERS = 0, 1, 16, 17, -16, -1, (1 << 31) - 1, (1 << 31) - 16, 1 << 31, -(1 << 31), (1 << 40) + 1, 1 << 63


def test_the_quickest_way_is_the_general_one(gpu: PretendedGPU) -> None:
    """Whatever was launched before: the same code, the same values."""
    fill, _ = kernels()
    rng = random.Random(1)
    choices = list(itertools.product(ADDRESSES, (np.float32, np.float16), NUMBERS, (0.25, 2, 32), (64, 128), (4, 8)))
    chosen = rng.sample(choices, 60)
    x = Tensor()
    fill[(1,)](x, x, 16, 0.5, BLOCK=64)
    launches = fill._on_gpu()
    assert launches.quickest is not launches._general
    for address, dtype, n, scale, block, warps in [c for c in chosen for _ in range(rng.randint(1, 3))]:
        y = Tensor(address, dtype)
        expected = launches._general((3,), x, y, n, scale, block, num_warps=warps)
        before = len(gpu.launched)
        found = fill[(3,)](x, y, n, scale, BLOCK=block, num_warps=warps)
        assert found is expected
        general, quick = gpu.launched[before - 1 :]
        slots = len(general.copies) - (expected.metadata.programs_each > 1)  # the number of programs lies elsewhere
        assert quick.copies[:slots] == general.copies[:slots]
        assert quick.block == general.block == (32 * warps, 1, 1)


def test_kinds_of_arguments_have_kernels_of_their_own(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x = Tensor()
    for n in (64, 64, 64, 17, 17, 64, 1, 1, 64):
        for array in (x, Tensor((1 << 40) + 4), Tensor(1 << 42, np.float16)):
            kernel = fill[(1,)](x, array, n, 0.5, BLOCK=64)
            assert gpu.launched[-1].values("QQ") == (1 << 40, array.data_ptr())
            assert n == 1 or gpu.launched[-1].values("QQq")[2] == n
            assert (kernel.src.signature["y"] == "*fp16") == (array.dtype == np.float16)
            assert kernel.src.signature["n"] == ("constexpr" if n == 1 else "i32")
            assert ((1,) in kernel.src.attrs) == (array.data_ptr() % 16 == 0)
            assert ((2,) in kernel.src.attrs) == (n % 16 == 0)
    assert "_w_last" in fill._on_gpu().quickest.__globals__


def test_parameters_of_modules_take_the_quickest_way_too(gpu: PretendedGPU) -> None:
    class Parameter(Tensor):
        pass

    Parameter.__module__ = "torch.nn.parameter"
    fill, _ = kernels()
    weight, x = Parameter(1 << 42), Tensor()
    for n in (64, 64, 64):
        fill[(1,)](x, weight, n, 0.5, BLOCK=64)
    assert fill._on_gpu().quickest.__globals__["_w_c1"] is Parameter
    fill[(1,)](x, x, 64, 0.5, BLOCK=64)
    assert [call.values("QQ")[1] for call in gpu.launched] == [1 << 42, 1 << 42, 1 << 42, 1 << 40]


def test_constants_and_options_have_kernels_of_their_own(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x = Tensor()
    for block, warps in ((64, 4), (64, 4), (128, 4), (128, 4), (128, 8), (128, 8), (64, 8), (64, 4)):
        kernel = fill[(1,)](x, x, 64, 0.5, BLOCK=block, num_warps=warps)
        assert gpu.launched[-1].block == (32 * warps, 1, 1)
        assert kernel.src.constants[(4,)] == block
    for debug in (True, True, False):
        knobs.runtime.debug = debug
        try:
            assert fill[(1,)](x, x, 64, 0.5, BLOCK=64).metadata.debug == debug
        finally:
            knobs.runtime.debug = False


@weft.jit
def padded(x, n, PAD: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, PAD, mask=i < n)


def test_a_constant_below_zero_is_expected_again(gpu: PretendedGPU) -> None:
    """Only integers that are handed on are held to be small: a constant is compared."""
    x = Tensor(dtype=np.int32)
    for pad in (-1, -1, -1, -2, -1, 1 << 40, -1):
        kernel = padded[(1,)](x, 16, PAD=pad, BLOCK=64)
        assert kernel.src.constants[(2,)] == pad
        assert gpu.launched[-1].values("Q") == (1 << 40,)
    assert "_w_last" in padded._on_gpu().quickest.__globals__


def test_captured_constants_are_looked_at(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    _, captured = kernels()
    x = Tensor(dtype=np.int32)
    for _ in range(3):
        captured[(1,)](x, 16, BLOCK=64)
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    with pytest.raises(CapturedGlobalError, match="FACTOR"):
        captured[(1,)](x, 16, BLOCK=64)
    captured.reset()
    kernel = captured[(1,)](x, 16, BLOCK=64)
    assert "dense<4>" in kernel.asm["ttir"], "what was compiled before has been forgotten"


@weft.jit
def twice(v):
    return v * 2


@weft.jit
def thrice(v):
    return v * 3


@weft.jit
def calling(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, twice(i), mask=i < n)


def test_a_function_that_is_replaced_is_compiled_anew(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(dtype=np.int32)
    for _ in range(3):
        assert "dense<2>" in calling[(1,)](x, 16, BLOCK=64).asm["ttir"]
    monkeypatch.setitem(globals(), "twice", thrice)
    for _ in range(3):
        assert "dense<3>" in calling[(1,)](x, 16, BLOCK=64).asm["ttir"]


def test_hooks_hear_of_launches_that_went_the_quickest_way_before(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x, heard = Tensor(), list[str]()
    for _ in range(3):
        fill[(1,)](x, x, 64, 1.0, BLOCK=64)

    def hook(metadata: Any) -> None:
        heard.append(metadata.get()["name"])

    knobs.runtime.launch_enter_hook.add(hook)
    try:
        fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    finally:
        knobs.runtime.launch_enter_hook.remove(hook)
    fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    assert heard == ["fill"] and len(gpu.launched) == 5


@pytest.mark.parametrize(
    "grid",
    [(4,), 4, [4], (4, 1), (4, 1, 1), (np.int64(4),), np.array([4, 1]), lambda meta: (meta["BLOCK"] // 16,)],
    ids=range(8),
)
def test_grids(gpu: PretendedGPU, grid: Any) -> None:
    fill, _ = kernels()
    x = Tensor()
    for _ in range(3):
        fill[grid](x, x, 64, 1.0, BLOCK=64)
    assert [call.grid for call in gpu.launched] == [(4, 1, 1)] * 3


def test_grids_that_there_are_not(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x = Tensor()
    for _ in range(3):
        for grid, found in (
            ((1 << 31,), "grid size 2147483648 on axis 0 exceeds 2147483647, the most on that axis"),
            ((1, 65536), "grid size 65536 on axis 1 exceeds 65535, the most on that axis"),
            ((-1,), "grid size -1 on axis 0 is negative"),
            ((1, 1, 1, 2), "a grid has 1 to 3 dimensions, got 4"),
        ):
            with pytest.raises(LaunchError, match=found):
                fill[grid](x, x, 64, 1.0, BLOCK=64)
        for grid in (None, (2.0,), ("x",)):
            with pytest.raises(LaunchTypeError):
                fill[grid](x, x, 64, 1.0, BLOCK=64)
        with pytest.raises(LaunchTypeError, match="cannot be called with the arguments of the launch"):
            fill[lambda: (1,)](x, x, 64, 1.0, BLOCK=64)
        fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    assert len(gpu.launched) == 3


def test_threads_launch_at_the_same_time(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    fill[(1,)](Tensor(), Tensor(), 64, 1.0, BLOCK=64)

    def work(number: int) -> None:
        for k in range(200):
            fill[(number + 1,)](Tensor(16 * number + (1 << 40)), Tensor(1 << 41), 16 * k, 1.0, BLOCK=64)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = sorted((call.grid[0], *call.values("QQq")) for call in gpu.launched[1:])
    wanted = sorted((i + 1, 16 * i + (1 << 40), 1 << 41, 16 * k) for i in range(4) for k in range(200))
    assert found == wanted


def test_where_the_arrays_are(gpu: PretendedGPU) -> None:
    gpu.count = 2
    devices.device_count.cache_clear()
    fill, _ = kernels()
    here, there, host = Tensor(), Tensor(device=1), np.zeros(64, np.float32)
    for _ in range(3):
        with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `y` on GPU 1; a launch runs on one"):
            fill[(1,)](here, there, 64, 1.0, BLOCK=64)
        with pytest.raises(LaunchError, match=r"argument `y`: a numpy.ndarray lives in host memory") as caught:
            fill[(1,)](here, host, 64, 1.0, BLOCK=64)
        assert caught.value.argument == "y" and "weft.cuda.to_device" in str(caught.value)
        fill[(1,)](there, there, 64, 1.0, BLOCK=64)
        fill[(1,)](here, here, 64, 1.0, BLOCK=64)
    assert launching.on_gpu((1, (here,))) and launching.on_gpu([there]) and not launching.on_gpu((host, 1, None, "x"))
    assert launching.device_of(["a", "b"], (3, (host, there))) == 1
    assert launching.device_of(["a"], (host,)) is None
    assert launching.device_of(["a", "b"], (Array(device=1), Tensor(device=1))) == 1


class Meta:
    """Like a tensor of PyTorch that has no memory."""

    device, dtype, shape = "meta", np.dtype(np.float32), (4,)

    def data_ptr(self) -> int:
        return 0


def test_an_array_without_memory_is_refused_by_name() -> None:
    """Also where it is first asked on which GPU it is: by a launch after one whose launcher knew the class."""
    said = r"^argument `y`: Meta on meta is a meta tensor: it has no memory\nhint: allocate it, or use kernel.warmup"
    fill, _ = kernels()
    host = np.zeros(64, np.float32)
    with pytest.raises(LaunchError, match=said):
        launching.GPULaunches(fill).wanted((host, Meta(), 64, 1.0, 64))
    with pytest.raises(LaunchError, match=said):
        launching.device_of(["x", "y"], (host, (1, Meta())))


@gluon.jit
def through_shared_memory(x, out, M: gl.constexpr, N: gl.constexpr):  # type: ignore[no-untyped-def]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
    i, j = gl.arange(0, M, layout=gl.SliceLayout(1, layout)), gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    memory = gl.allocate_shared_memory(gl.float32, [M, N], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    memory.store(gl.load(x + i[:, None] * N + j[None, :]))
    gl.thread_barrier()
    gl.store(out + i[:, None] * N + j[None, :], memory.load(layout) + 1.0)


def test_shared_memory_that_no_block_has_is_itemised_before_the_launch(gpu: PretendedGPU) -> None:
    x = Tensor()
    with pytest.raises(weft.OutOfResources, match="shared memory, Required: 524288, Hardware limit: 232448") as caught:
        through_shared_memory[(1,)](x, x, M=1024, N=128, num_warps=4)
    details = caught.value.details
    assert details[0].split() == ["bytes", "at", "what", "in", "use"]
    assert details[1].split()[:2] == ["524288", "0"] and "test_gpu_launches.py" in details[1]
    assert not gpu.launched


def test_shared_memory_that_this_gpu_does_not_have_is_itemised_too(gpu: PretendedGPU) -> None:
    """Code for a target runs on GPUs of that target that have less."""
    gpu.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] = 101376
    x = Tensor()
    with pytest.raises(weft.OutOfResources, match="shared memory, Required: 131072, Hardware limit: 101376") as caught:
        through_shared_memory[(1,)](x, x, M=256, N=128, num_warps=4)
    assert caught.value.details == ("  shared 0: 131072 bytes at 0 local_alloc",)
    assert not gpu.launched
    gpu.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] = 232448
    forget()
    through_shared_memory[(1,)](x, x, M=256, N=128, num_warps=4)
    assert gpu.launched[-1].shared == 131072
    assert gpu.set == {"MAX_DYNAMIC_SHARED_SIZE_BYTES": 131072}  # and L1 has what no block needs


def test_a_lost_gpu_names_the_last_launches(gpu: PretendedGPU) -> None:
    fill, captured = kernels()
    x = Tensor()
    captured[(2,)](Tensor(dtype=np.int32), 16, BLOCK=64)
    gpu.answers["cuLaunchKernelEx"] = 700
    with pytest.raises(weft.base.DeviceLost) as caught:
        fill[(3,)](x, x, 64, 1.0, BLOCK=64)
    assert caught.value.recent == (("fill", (3, 1, 1)), ("captured", (2, 1, 1)))
    assert "  fill over (3, 1, 1)\n  captured over (2, 1, 1)\n" in str(caught.value)


def test_a_thread_without_a_context_gets_one(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x, answers = Tensor(), iter((0, 201, 0))
    gpu.launch_answers = lambda: next(answers, 0)
    fill[(3,)](x, x, 64, 1.0, BLOCK=64)
    fill[(3,)](x, x, 64, 1.0, BLOCK=64)
    assert len(gpu.launched) == 3  # the second one twice


def test_a_launch_takes_place_on_the_gpu_of_its_arrays(gpu: PretendedGPU) -> None:
    """Whichever is the thread's, which stays what it was: kernels on arrays of GPU 1 ran on GPU 0."""
    gpu.count = 2
    forget()
    fill, _ = kernels()
    here, there = Tensor(), Tensor(device=1)
    for x in (here, there, there, here, there):
        fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    for current in (0, 1):
        gpu.current = current
        fill.bind(there, there, 64, 1.0, BLOCK=64, grid=(1,))()
        fill.warmup(there, there, 64, 1.0, BLOCK=64, grid=(1,))[(1,)](Array(device=1), Array(device=1), 64, 1.0)
        assert gpu.current == current
    assert [call.gpu for call in gpu.launched] == [0, 1, 1, 0, 1, 1, 1, 1, 1]


def test_arrays_of_another_gpu_leave_a_thread_its_own(gpu: PretendedGPU) -> None:
    gpu.count = 2
    forget()
    host = np.arange(64, dtype=np.float32)
    x = weft.cuda.to_device(host, device=1)
    assert gpu.current == 0
    np.testing.assert_array_equal(x.numpy(), host)
    weft.cuda.synchronize(1)
    assert gpu.current == 0
    del x
    assert gpu.current == 0


def test_a_grid_of_clusters_has_a_limit(gpu: PretendedGPU) -> None:
    """It counts programs, the driver's blocks: what did not fit its 32 bits was an error of `struct`."""
    fill, _ = kernels()
    x = Tensor()
    fill[(1 << 29,)](x, x, 64, 1.0, BLOCK=64, num_ctas=2)
    assert gpu.launched[-1].grid == (1 << 30, 1, 1)
    for launch in (fill[(1 << 30,)], lambda *a, **k: fill.bind(*a, grid=(1 << 30,), **k)):
        with pytest.raises(LaunchError, match="grid size 1073741824 on axis 0 exceeds 536870911, the most with clus"):
            launch(x, x, 64, 1.0, BLOCK=64, num_ctas=4)


def test_a_frozen_launch_of_nothing(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x = Tensor()
    for grid in ((0,), (3, 0), lambda meta: (meta["n"] - 64, 1)):
        fill.bind(x, x, 64, 1.0, BLOCK=64, grid=grid)()
    assert not gpu.launched, "the driver takes no grid of 0"


def test_the_target_that_was_asked_for_decides(gpu: PretendedGPU) -> None:
    """Also for kernels that were launched elsewhere before, and for frozen launches."""
    fill, _ = kernels()
    x, host = Array(), np.zeros(64, np.float32)

    def launch(**more: Any) -> Any:
        return fill[(1,)](x, x, 64, 1.0, BLOCK=64, **more)

    def frozen(**more: Any) -> Any:
        return fill.bind(x, x, 64, 1.0, BLOCK=64, grid=(1,), **more)()

    assert launch().metadata.target.arch == 90
    assert launch(target="cuda:80").metadata.target.arch == 80
    for way in (launch, frozen):
        for target in ("cpu", "sim:cuda:90"):
            with pytest.raises(LaunchError, match="argument `x`: .* lives in the memory of GPU"):
                way(target=target)
            with pytest.raises(LaunchError, match="argument `x`: .* lives in the memory of GPU"), weft.target(target):
                way()
    fill[(1,)](host, host, 64, 1.0, BLOCK=64)  # and now on the host
    knobs.weft.target = "cuda:80"
    try:
        assert launch().metadata.target.arch == 80
        assert [call.stream for call in gpu.launched] == [0, 0, 0]
        frozen()
        knobs.weft.target = "cpu"
        with pytest.raises(LaunchError, match="argument `x`: .* lives in the memory of GPU"):
            launch()
    finally:
        knobs.weft.target = knobs.env
    assert launch().metadata.target.arch == 90


def test_a_compiled_kernel_by_itself_refuses_what_does_not_fit(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x, host = Array(), np.zeros(64, np.float32)
    kernel = fill.warmup(x, x, 64, 1.0, BLOCK=64, grid=(1,))
    with pytest.raises(LaunchError, match="argument `y`: a numpy.ndarray lives in host memory"):
        kernel[(1,)](x, host, 64, 1.0)
    with pytest.raises(LaunchError, match="argument `x`: a numpy.ndarray lives in host memory"):
        kernel[(1,)](host, host, 64, 1.0)
    for wrong in (None, -1):
        with pytest.raises(LaunchTypeError, match=r"`y` was compiled as \*fp32, so it must be an array, got a "):
            kernel[(1,)](x, wrong, 64, 1.0)
    for grid in (None, lambda meta: (1,)):
        with pytest.raises(LaunchTypeError, match="the grid of a compiled kernel is a tuple of 1 to 3 integers"):
            kernel[grid](x, x, 64, 1.0)
    with pytest.raises(LaunchTypeError, match="a stream is a handle"):
        kernel[(1,)](x, x, 64, 1.0, stream="first")
    assert not gpu.launched


@weft.jit
def first_block(described, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], described.load([0, 0]))


def test_a_descriptor_of_an_array_of_the_host(gpu: PretendedGPU) -> None:
    described = weft.TensorDescriptor.from_tensor(np.zeros((16, 16), np.float32), [16, 16])
    for arguments in ((described, Tensor()), ((described,), Tensor())):
        with pytest.raises(LaunchError, match="argument `described`: a numpy.ndarray lives in host memory"):
            first_block[(1,)](*arguments, BLOCK=16)
    with pytest.raises(LaunchError, match="argument `described`: a numpy.ndarray lives in host memory"):
        first_block.bind(described, Tensor(), BLOCK=16, grid=(1,))


def test_arrays_that_may_not_be_written(gpu: PretendedGPU) -> None:
    """The first time and later, whatever of the same kind was launched before."""
    fill, _ = kernels()
    x, locked = Array(), Array()
    locked.__cuda_array_interface__ = {**locked.__cuda_array_interface__, "data": (1 << 40, True)}
    for _ in range(2):
        with pytest.raises(LaunchError, match="argument `x` is read-only, and the kernel stores to it"):
            fill[(1,)](locked, x, 64, 1.0, BLOCK=64)
        with pytest.raises(LaunchError, match="argument `x` is read-only, and the kernel stores to it"):
            fill.bind(locked, x, 64, 1.0, BLOCK=64, grid=(1,))
        fill[(1,)](x, locked, 64, 1.0, BLOCK=64)
    assert len(gpu.launched) == 2


@pytest.mark.parametrize(
    "wrong,said",
    [
        ({"data": None}, "its data is None, not an address and whether it is read-only"),
        ({"data": ("x", False)}, "the address 'x' is no integer"),
        ({"data": (-16, False)}, "the address -16 is outside of memory"),
        ({"data": (0, False)}, "has been freed"),
        ({"typestr": "<q9"}, "its typestr '<q9' names no type of elements"),
        ({"typestr": "<f8"}, "has elements of type fp32, its interface says float64"),
        ({"shape": None}, "its shape is None, not a tuple of sizes"),
        ({"shape": (-1,)}, "its shape (-1,) has a negative size"),
        ({"strides": (4, 4)}, "its strides (4, 4) are not as many as the sizes of its shape"),
    ],
)
def test_an_interface_that_is_none(gpu: PretendedGPU, wrong: dict[str, Any], said: str) -> None:
    fill, _ = kernels()
    x, liar = Array(), Array()
    liar.__cuda_array_interface__ = {**liar.__cuda_array_interface__, **wrong}
    with pytest.raises(LaunchError, match="argument `y`: .*Array") as caught:
        fill[(1,)](x, liar, 64, 1.0, BLOCK=64)
    assert said in str(caught.value)


@pytest.mark.parametrize("device,capsule", [(None, None), ((2, 0), 5), ((2, 0), None)])
def test_dlpack_that_is_none(gpu: PretendedGPU, device: Any, capsule: Any) -> None:
    class Liar:
        def __dlpack_device__(self) -> Any:
            return device

        def __dlpack__(self, **more: Any) -> Any:
            return capsule

    fill, _ = kernels()
    with pytest.raises(LaunchTypeError, match="argument `y`: __dlpack.* of a .*Liar is not what it should be"):
        fill[(1,)](Array(), Liar(), 64, 1.0, BLOCK=64)


def test_an_array_on_a_gpu_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has CUDA tensors and no cuda-bindings was told to copy them to the host."""

    def missing() -> Any:
        raise NoDevice("the package cuda-bindings is not installed", hint="pip install 'weft[cuda]'")

    monkeypatch.setattr(backend, "api", missing)
    forget()
    fill, _ = kernels()
    x = Array()
    said = (
        "argument `x` lives in the memory of a GPU, and the package cuda-bindings is not installed\nhint: pip install"
    )
    for launch in (fill[(1,)], lambda *a, **k: fill.bind(*a, grid=(1,), **k)):
        with pytest.raises(NoDevice) as caught:
            launch(x, x, 64, 1.0, BLOCK=64)
        assert str(caught.value).startswith(said) and caught.value.argument == "x"
    with pytest.raises(LaunchError, match="argument `x`: .* lives in the memory of GPU .* arrays in host memory"):
        fill[(1,)](x, x, 64, 1.0, BLOCK=64, target="cpu")
    forget()


def test_streams_of_libraries(gpu: PretendedGPU) -> None:
    fill, _ = kernels()
    x = Array()
    kinds = (SimpleNamespace(cuda_stream=3), SimpleNamespace(ptr=4), SimpleNamespace(__cuda_stream__=lambda: (0, 5)), 6)
    for stream in kinds:
        with weft.cuda.stream(stream):
            fill[(1,)](x, x, 64, 1.0, BLOCK=64)
    assert [call.stream for call in gpu.launched] == [3, 4, 5, 6]
    for wrong in ("first", None, 2.0, object()):
        with pytest.raises(LaunchTypeError, match="a stream is a handle"), weft.cuda.stream(wrong):
            pass


def test_few_blocks_at_a_time(gpu: PretendedGPU) -> None:
    """For eight blocks at a time, each requests an eighth of 16 KB."""

    @weft.jit
    def copied(x, out, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))

    kernel = copied[(4,)](Tensor(1 << 40, size=1 << 14), Tensor(1 << 41, size=1 << 14), BLOCK=4096)
    assert kernel.metadata.most_blocks == 8 and kernel.metadata.shared == 0
    assert gpu.launched[-1].shared == 1024
    assert gpu.set["PREFERRED_SHARED_MEMORY_CARVEOUT"] == 7  # of 100: 16 KB of 228


@pytest.mark.parametrize(("clock", "blocks", "share"), [(2619000, 3, 100), (3201000, 4, 132)])
def test_few_blocks_that_have_shared_memory_of_their_own(
    gpu: PretendedGPU, clock: int, blocks: int, share: int
) -> None:
    """For three blocks at a time, each requests a third of 100 KB: four do not fit into the 132 KB that a driver may
    give.

    Memory that is a third faster wants a third more of them.
    """
    gpu.attributes |= {"MEMORY_CLOCK_RATE": clock, "GLOBAL_MEMORY_BUS_WIDTH": 5120 if blocks == 3 else 6144}

    @weft.jit
    def transposed(x, out, n, B: tl.constexpr):
        i, j = tl.program_id(0) * B + tl.arange(0, B)[:, None], tl.program_id(1) * B + tl.arange(0, B)[None, :]
        tile = tl.load(x + i * n + j, mask=(i < n) & (j < n))
        tl.store(out + tl.trans(j) * n + tl.trans(i), tl.trans(tile), mask=tl.trans((i < n) & (j < n)))

    x, out = (Tensor(1 << where, np.float16, size=100 * 100) for where in (40, 41))
    kernel = transposed[(2, 2)](x, out, 100, B=64)
    assert kernel.metadata.most_blocks == 3 and 8 << 10 <= kernel.metadata.shared < 13 << 10
    assert gpu.launched[-1].shared == (share << 10) // blocks // 128 * 128 - 1024
    assert gpu.set["PREFERRED_SHARED_MEMORY_CARVEOUT"] == share * 100 // 228


def test_each_pattern_of_classes_has_a_quick_way(gpu: PretendedGPU) -> None:
    """A kernel that is called with and without some arrays does not look at each argument again and again."""

    @weft.jit
    def optional(x, y, out, flag, n: tl.int64, scale: tl.float32, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        i = tl.arange(0, BLOCK)
        value = tl.zeros((BLOCK,), tl.float32)
        if x is not None:
            value += tl.load(x + i, mask=i < n)
        if y is not None:
            value += 2 * tl.load(y + i, mask=i < n)
        tl.store(out + i, tl.where(flag, value * scale, value), mask=i < n)

    a, out = Tensor(1 << 40), Tensor(1 << 41)
    patterns = [(a, None, out), (None, a, out), (a, a, out), (None, None, out)]

    def launch(given: tuple[Any, ...], n: int, scale: float) -> tuple[Any, ...]:
        optional[(1,)](*given, True, n, scale, BLOCK=64, EVEN=False)
        return gpu.launched[-1].values("Q" * sum(x is not None for x in given) + "qqf")

    for given in patterns * 2:
        launch(given, 1 << 40, 0.5)
    mine = optional._on_gpu()
    ways = list(mine._ways.values())
    assert len(ways) == 4 and mine.quickest is ways[0]
    ways[-1].__globals__["_w_general"] = None  # which would be called where no quick way knows the classes
    for given in patterns:
        addresses = tuple(x.data_ptr() for x in given if x is not None)
        assert launch(given, 1 << 41, 1.5) == (*addresses, 1, 1 << 41, 1.5)


def test_a_gpu_of_ones_own_though_not_specialised(gpu: PretendedGPU) -> None:
    """An array that a kernel is not specialised on still says which GPU it is on."""
    gpu.count = 2

    @weft.jit(do_not_specialize=["x"])
    def fill(x, n: tl.int32):
        tl.store(x, n)

    for device in (0, 1, 0, 1):
        fill[(1,)](Tensor(1 << 40, device=device), 5)
        assert gpu.launched[-1].gpu == device


def test_what_was_kept_for_one_gpu_is_not_for_another(gpu: PretendedGPU) -> None:
    """The launcher of the kernel that two GPUs have alike is found by GPU."""
    gpu.count = 2
    fill, _ = kernels()
    for device in (0, 1, 0, 0, 1, 1, 0):
        fill[(1,)](Tensor(1 << 40, device=device), Tensor(1 << 41, device=device), 64, 0.5, BLOCK=128)
        assert gpu.launched[-1].gpu == device


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, np.float64])
def test_zeros_of_two_signs_are_two_constants(gpu: PretendedGPU, kind: Any) -> None:
    @weft.jit
    def fill(x, VALUE: tl.constexpr):
        tl.store(x, VALUE)

    given = [kind(0.0), kind(-0.0), kind(0.0), kind(-0.0)]
    made = [fill[(1,)](Tensor(), value) for value in given]
    assert made[0] is made[2] and made[1] is made[3] and made[0] is not made[1]


def test_parameters_that_are_given_by_name_only(gpu: PretendedGPU) -> None:
    """What follows a `*` among the parameters is handed on by name: by the first launch, and by the quickest way."""

    @weft.jit
    def fill(x, *, n, scale=2.0, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, i * scale, mask=i < n)

    for number in (5, 7, 1 << 40, 9):
        fill[(2,)](Tensor(1 << 40), n=number, BLOCK=64)
        assert gpu.launched[-1].values("Qqf") == (1 << 40, number, 2.0)
        fill[(2,)](Tensor(1 << 41), scale=0.5, BLOCK=128, n=number)
        assert gpu.launched[-1].values("Qqf") == (1 << 41, number, 0.5)
    assert len(fill._on_gpu()._ways) == 1, "they have a quick way"
    heard: list[Any] = []
    fill.add_pre_run_hook(lambda x, *, n, **more: heard.append((n, *more)))
    fill[(2,)](Tensor(), n=5, BLOCK=64)
    assert heard == [(5, "scale", "BLOCK")]
    with pytest.raises(LaunchTypeError, match="2 arguments were given by position, the kernel has 1: x"):
        fill[(1,)](Tensor(), 5, n=5, BLOCK=64)


def _gone() -> int:
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"is_negative": True}, "a Tensor with its negative bit set is not what its memory says"),
    "nested": ({"is_nested": True}, "a nested Tensor has no single shape"),
    "without storage": ({"data_ptr": _gone}, "a Tensor has no memory: Cannot access data pointer of Tensor"),
    "without memory": ({"address": 0}, r"the memory of the Tensor has been freed \(its address is 0\)"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_tensors_that_are_not_their_memory_are_refused_at_every_launch(gpu: PretendedGPU, kind: str) -> None:
    """By kernels, by compiled ones, and in descriptors: after launches with tensors of the same class and elements."""
    facts, told = REFUSED[kind]

    @weft.jit
    def copy(x, out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n))

    def compiled(x: Any, out: Any) -> None:
        kernel.run(1, 1, 1, 0, None, None, None, None, None, x, out, 64)

    kernel = copy.warmup(Tensor(), Tensor(), 64, BLOCK=64, grid=(1,))
    ways = (lambda x, out: copy[(1,)](x, out, 64, BLOCK=64), lambda x, out: kernel[1,](x, out, 64), compiled)
    for launch in ways:
        launched = len(gpu.launched)
        for count in range(5):
            wrong, right = Tensor(), Tensor(1 << 41)
            wrong.__dict__.update(facts)
            for pair in ((wrong, right), (right, wrong)):
                with pytest.raises(LaunchError, match="argument `(x|out)`: " + told):
                    launch(*pair)
            launch(Tensor(), right)
            launch(Tensor(0, size=0), right)
            assert len(gpu.launched) == launched + 2 * count + 2
            assert gpu.launched[-2].values("QQ") == (1 << 40, 1 << 41)


@pytest.mark.parametrize("kind", [*REFUSED][:3])
def test_descriptors_of_tensors_that_are_not_their_memory(gpu: PretendedGPU, kind: str) -> None:
    facts, told = REFUSED[kind]

    @weft.jit
    def copy(source, out):
        tl.store(out + tl.arange(0, 16), source.load([0]))

    def described() -> Any:
        return weft.TensorDescriptor(Tensor(), [16], [1], [16])

    kernel = copy.warmup(described(), Tensor(), grid=(1,))
    for launch in (copy[1,], kernel[1,]):
        for count in range(4):
            descriptor = described()
            descriptor.base.__dict__.update(facts)
            with pytest.raises(LaunchError, match=told):
                launch(descriptor, Tensor())
            with pytest.raises(LaunchError, match=told):
                weft.TensorDescriptor(descriptor.base, [16], [1], [16])
            before = len(gpu.launched)
            launch(described(), Tensor())
            assert len(gpu.launched) == before + 1
