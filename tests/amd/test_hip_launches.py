"""Whole launches for AMD GPUs through a HIP library that is only pretended: compiled to code objects, loaded, given
their arguments as the code objects want them, and run in the simulator on the memory that the arguments point to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.base import LaunchError, NoDevice, OutOfResources, Unsupported
from weft.compiler import GPUTarget
from weft.gluon import language as gl
from weft.runtime import driver
from weft.testing import do_bench

from .fake_hip import GPU, MI300X, RX_9070, FakeHip, forget, pretend
from .rocm_torch import install


@pytest.fixture
def hip(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHip]:
    yield from pretend(monkeypatch)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """GPU 0 is another one in the next test."""
    yield
    for kernel in (add, scalars, product, described, counted):
        kernel.reset()


rng = np.random.default_rng(3)
SIGNATURE = {"bins": "*i32", "x": "*i32", "n": "i32"}


@weft.jit
def add(x, y, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + alpha * tl.load(y + i, mask=mask), mask=mask)


@weft.jit
def scalars(out, flag, tiny, long, pair, nothing, single, double: tl.float64, half: tl.float16, odd: tl.uint8):
    tl.store(out, flag.to(tl.float64))
    tl.store(out + 1, tiny.to(tl.float64))
    tl.store(out + 2, long.to(tl.float64))
    tl.store(out + 3, pair[0].to(tl.float64))
    tl.store(out + 4, pair[1].to(tl.float64))
    tl.store(out + 5, single.to(tl.float64))
    tl.store(out + 6, double)
    tl.store(out + 7, half.to(tl.float64))
    tl.store(out + 8, odd.to(tl.float64))
    if nothing is None:
        tl.store(out + 9, 77.0)


@weft.jit
def product(x, y, out, K, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    i, j, k = tl.arange(0, SIZE), tl.arange(0, SIZE), tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for at in range(0, K, DEPTH):
        a = tl.load(x + i[:, None] * K + at + k)
        b = tl.load(y + (at + k)[:, None] * SIZE + j)
        total = tl.dot(a, b, total)
    tl.store(out + i[:, None] * SIZE + j, tl.softmax(total))


@weft.jit
def described(source, out, M, N, BLOCK: tl.constexpr):
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BLOCK, BLOCK])
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, column], source.load([row, column]) * 2)


@weft.jit
def counted(bins, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + i, mask=i < n, other=0) % 8, 1, mask=i < n)


def test_a_launch_on_arrays_of_the_gpu(hip: FakeHip) -> None:
    x, y = (rng.normal(size=1000).astype(np.float32) for _ in range(2))
    a, b, out = weft.cuda.to_device(x), weft.cuda.to_device(y), weft.cuda.zeros(1000)
    for _ in range(3):
        made = add[(4,)](a, b, out, 1000, 2.5, BLOCK=256)
    assert np.allclose(out.numpy(), x + np.float32(2.5) * y)
    assert [done.grid for done in hip.launched] == [(4, 1, 1)] * 3 and hip.launched[-1].threads == 256
    assert hip.called.count("hipModuleLoadData") == 1
    assert str(made.metadata.target) == "hip:gfx942" and made.n_regs > 0 and made.n_max_threads == 256
    add[(0,)](a, b, out, 0, 2.5, BLOCK=256)
    assert len(hip.launched) == 3
    out.zero_()
    made[(4, 1, 1)](a, b, out, 1000, 1.0, 256)  # compiled, by itself
    assert np.allclose(out.numpy(), x + y)
    assert (out.clone().numpy() == out.numpy()).all()


def test_arguments_of_every_kind_reach_the_kernel(hip: FakeHip) -> None:
    check_arguments_of_every_kind()


def check_arguments_of_every_kind() -> None:
    out = weft.cuda.zeros(10, np.float64)
    given: Any = True, 7, (1 << 40) + 1, (3, -4), None, 1.5, 1e300, -0.375, 250
    scalars[(1,)](out, *given, num_warps=1)
    assert out.numpy().tolist() == [1, 7, (1 << 40) + 1, 3, -4, 1.5, 1e300, -0.375, 250, 77]
    scalars[(1,)](out, False, -(1 << 31), -1, (1 << 33, 0), 1, float("inf"), -0.0, 2.0, 0, num_warps=1)
    assert out.numpy().tolist() == [0, -(1 << 31), -1, 1 << 33, 0, float("inf"), 0, 2, 0, 77]


@pytest.mark.parametrize("gpu", (MI300X, RX_9070), ids=("gfx942", "gfx1201"))
def test_products_reductions_and_local_memory(monkeypatch: pytest.MonkeyPatch, gpu: GPU) -> None:
    for hip in pretend(monkeypatch, gpu):
        x, y = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 64), (64, 32)))
        a, b, out = weft.cuda.to_device(x), weft.cuda.to_device(y), weft.cuda.zeros((32, 32))
        made = product[(1,)](a, b, out, 64, SIZE=32, DEPTH=32, num_warps=2)
        e = np.exp((whole := x.astype(np.float32) @ y.astype(np.float32)) - whole.max(0))
        assert np.allclose(out.numpy(), e / e.sum(0), rtol=1e-5, atol=1e-7)
        assert made.metadata.shared > 0 and hip.launched[-1].threads == 2 * gpu.lanes
        assert hip.launched[-1].shared == 0  # the code object has it
        del a, b, out


def test_descriptors_and_atomics(hip: FakeHip) -> None:
    x = rng.normal(size=(40, 48)).astype(np.float32)
    a, out = weft.cuda.to_device(x), weft.cuda.zeros((40, 48))
    source = weft.TensorDescriptor(a, [40, 48], [48, 1], [32, 32])
    described[(2, 2)](source, out, 40, 48, BLOCK=32)
    assert (out.numpy() == 2 * x).all()
    numbers = rng.integers(0, 100, 300).astype(np.int32)
    bins = weft.cuda.zeros(8, np.int32)
    counted[(3,)](bins, weft.cuda.to_device(numbers), 300, BLOCK=128, num_warps=2)
    assert (bins.numpy() == np.bincount(numbers % 8, minlength=8)).all()


def test_tensors_of_pytorch_for_rocm(hip: FakeHip, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = install(monkeypatch, hip)
    x, y = rng.normal(size=300).astype(np.float32), np.ones(300, np.float32)
    a, b, out = torch.of(x), torch.of(y), torch.of(np.zeros(300, np.float32))
    for stream in (0, hip.stream()):
        torch.streams[0] = stream
        for _ in range(2):
            add[(3,)](a, b, out, 300, 0.5, BLOCK=128)
        assert [done.stream for done in hip.launched[-2:]] == [stream, stream]
    assert np.allclose(torch.to_numpy(out), x + 0.5)
    active = driver.active
    assert active.get_current_target() == GPUTarget("hip", "gfx942", 64)
    assert repr(active) == "GPUDriver(AMD Instinct MI300X)"
    assert active.get_current_stream() == torch.streams[0] and active.get_device_interface() is torch.cuda
    assert vars(active.get_active_torch_device()) == {"type": "cuda", "index": 0}
    assert do_bench(lambda: add[(3,)](a, b, out, 300, 0.5, BLOCK=128), warmup=0, rep=1) > 0
    assert hip.last == 0


def test_the_driver_as_libraries_ask_for_it(hip: FakeHip) -> None:
    with weft.target("hip:gfx942"):
        active = driver.active
        facts, interface = active.utils.get_device_properties(0), active.get_device_interface()
        assert (facts["max_shared_mem"], facts["multiprocessor_count"], facts["warpSize"]) == (64 << 10, 304, 64)
        assert interface.get_device_capability() == (9, 4) and interface.device_count() == 1
        x = weft.cuda.zeros(4)
        assert do_bench(lambda: x.zero_(), warmup=0, rep=1) > 0
        assert active.get_current_target() == GPUTarget("hip", "gfx942", 64)
    made = add.warmup(*[weft.cuda.zeros(64)] * 3, 64, 1.0, BLOCK=64, grid=(1,))
    library, address, registers, spilled, most = active.utils.load_binary("add", made.asm["hsaco"], 0, 0)
    assert address in hip.functions and registers == made.n_regs and spilled == 0 and most == 256 and library


def test_two_gpus_of_two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for hip in pretend(monkeypatch, MI300X, RX_9070):
        for index in (0, 1, 0):
            x = weft.cuda.to_device(np.arange(64, dtype=np.float32), index)
            made = add[(1,)](x, x, x, 64, 1.0, BLOCK=64, num_warps=1)
            assert (x.numpy() == 2 * np.arange(64)).all() and hip.launched[-1].gpu == index
            assert str(made.metadata.target) == ("hip:gfx942", "hip:gfx1201")[index]
        with pytest.raises(LaunchError, match="argument `x` is on GPU 1, argument `y` on GPU 0; a launch runs on one"):
            add[(1,)](weft.cuda.zeros(4, device=1), weft.cuda.zeros(4), x, 4, 1.0, BLOCK=64)
        with pytest.raises(Unsupported) as error:
            with weft.target("hip:gfx942"):
                add[(1,)](*[weft.cuda.zeros(64, device=1)] * 3, 64, 1.0, BLOCK=64, num_warps=1)
        assert str(error.value) == (
            "error: running code for hip:gfx942 is not supported on target hip:gfx1201\n"
            "hint: the AMD Radeon RX 9070 XT takes target hip:gfx1201"
        )
        del x


@gluon.jit
def large(x, out, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    i = gl.arange(0, N, layout)
    first = gl.allocate_shared_memory(gl.float32, [N], shared, gl.load(x + i))
    second = gl.allocate_shared_memory(gl.float32, [N], shared, gl.load(x + N - 1 - i))
    gl.store(out + i, first.load(layout) + second.load(layout))


def test_too_much_local_memory_is_itemised(hip: FakeHip) -> None:
    x = weft.cuda.zeros(16384)
    with pytest.raises(OutOfResources) as error:
        large[(1,)](x, x, N=16384)
    assert error.value.details[1].split()[:2] == ["65536", "0"] and "local_alloc" in error.value.details[2]
    assert not hip.launched
    hip.gpus = (replace(MI300X, shared_bytes=32 << 10),)  # less than others of its kind have
    forget()
    with pytest.raises(OutOfResources, match="shared memory, Required: 65536, Hardware limit: 32768") as error:
        large[(1,)](x, x, N=8192)
    assert [line.partition(":")[0] for line in error.value.details] == ["  shared 0", "  shared 1"]


def test_warps_of_64_lanes_are_at_most_16(hip: FakeHip) -> None:
    x = weft.cuda.zeros(64)
    expected = "num_warps must be a power of 2 from 1 to 16 on hip:gfx942, whose warps have 64 lanes, got 32"
    for launch in (
        lambda: add[(1,)](x, x, x, 64, 1.0, BLOCK=64, num_warps=32),
        lambda: add[(1,)](*[np.zeros(64, np.float32)] * 3, 64, 1.0, BLOCK=64, num_warps=32, target="sim:hip:gfx942"),
        lambda: weft.compile(weft.ASTSource(counted, SIGNATURE, {"BLOCK": 64}), "hip:gfx942", {"num_warps": 32}),
    ):
        with pytest.raises(LaunchError) as error:
            launch()
        assert str(error.value) == f"{expected}\nhint: 1, 2, 4, 8, 16"
    made = weft.compile(weft.ASTSource(counted, SIGNATURE, {"BLOCK": 64}), "hip:gfx1201", {"num_warps": 32})
    assert made.n_max_threads == 1024


def test_a_cooperative_launch(hip: FakeHip) -> None:
    x = weft.cuda.zeros(64)
    add[(2,)](x, x, x, 64, 1.0, BLOCK=32, num_warps=1, launch_cooperative_grid=True, launch_pdl=True)
    assert hip.launched[-1].cooperative
    with pytest.raises(LaunchError, match="launch_cooperative_grid must be True or False, got 'yes'"):
        add[(2,)](x, x, x, 64, 1.0, BLOCK=32, launch_cooperative_grid="yes")


def test_products_of_float32_are_exact_where_nobody_says() -> None:
    """As Triton has it on AMD's GPUs; xf32 is what `input_precision="tf32"` asks for."""
    source = weft.ASTSource(
        product, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "K": "i32"}, {"SIZE": 32, "DEPTH": 32}
    )
    for options in ({}, {"default_dot_input_precision": "tf32"}):
        for target in ("hip:gfx942", "sim:hip:gfx942"):
            lane = weft.compile(source, target, options).asm["lane"]
            assert "mfma.f32" in lane and (".xf32" in lane) == bool(options), (target, options)
    assert "tf32" in weft.compile(source, "cuda:80").asm["ttir"]


def test_the_simulated_gpu_is_asked_as_the_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(64, np.float32)
    with weft.target("sim:hip:gfx1201"):
        made = add[(1,)](x, x, x, 64, 1.0, BLOCK=64, num_warps=1)
        assert driver.active.get_current_target() == GPUTarget("hip", "gfx1201", 32)
        assert driver.active.get_device_interface().get_device_capability() == (12, 0)
    assert set(made.asm) == {"source", "ttir", "ttgir", "lane", "llir", "amdgcn", "hsaco"}
    assert "gfx1201" in made.asm["amdgcn"] and made.asm["hsaco"].startswith(b"\x7fELF")
    with weft.knobs.compilation.scope():
        weft.knobs.compilation.dump, weft.knobs.compilation.always_compile = "amdgcn", True
        weft.compile(weft.ASTSource(counted, SIGNATURE, {"BLOCK": 64}), "hip:gfx942")
    said = capsys.readouterr().err
    assert said.startswith("// ---- counted: amdgcn\n") and "global_atomic" in said


def test_no_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    for hip in pretend(monkeypatch):
        hip.gpus = ()
        with pytest.raises(NoDevice, match="the HIP library sees no AMD GPU"), weft.target("hip:gfx942"):
            add[(1,)](np.zeros(4), np.zeros(4), np.zeros(4), 4, 1.0, BLOCK=64)
