"""Launches among other work on a GPU: streams, graphs, several libraries, options, limits, measuring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.backends.nvidia.driver import api
from weft.backends.nvidia.faults import check
from weft.backends.nvidia.loaded_kernel import LoadedKernel
from weft.backends.nvidia.ptxas import assemble
from weft.base import LaunchError
from weft.compiler import devices
from weft.runtime import driver
from weft.testing import do_bench, do_bench_cudagraph

N = 1 << 16
BLOCK = 1024
GRID = (N // BLOCK,)


@weft.jit
def double(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i))


@gluon.jit
def through_much_shared_memory(x, out, M: gl.constexpr, N: gl.constexpr):  # type: ignore[no-untyped-def]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
    i, j = gl.arange(0, M, layout=gl.SliceLayout(1, layout)), gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    memory = gl.allocate_shared_memory(gl.float32, [M, N], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    memory.store(gl.load(x + i[:, None] * N + j[None, :]))
    gl.thread_barrier()
    gl.store(out + i[:, None] * N + j[None, :], memory.load(layout) + 1.0)


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    return found


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


@weft.jit
def sum_of_row(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    row = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    tl.store(out + row, tl.sum(tl.load(x + row * n + i, i < n, other=0), 0))


@pytest.mark.parametrize("grid", [(1,), (3000,), (1 << 16,), (5, 7), (4225, 3)])
def test_programs_of_which_a_block_executes_several(torch: Any, grid: tuple[int, ...]) -> None:
    """By Python, by native code, frozen, and from a graph; warps wait for each other between programs."""
    rows = int(np.prod(grid))
    x = torch.randint(-1000, 1000, (rows, 100), device="cuda", dtype=torch.int32)
    out, wanted = torch.zeros(rows + 1, device="cuda", dtype=torch.int32), x.sum(1)
    options = {"BLOCK": 128, "num_warps": 2}

    def check_written() -> None:
        torch.cuda.synchronize()
        assert torch.equal(out[:-1], wanted) and not out[-1]
        out.zero_()

    for _ in range(6):
        made = sum_of_row[grid](x, out, 100, **options)
        check_written()
    assert made.metadata.programs_each == (4 if devices.current_device().capability == 90 else 1)
    sum_of_row.bind(x, out, 100, grid=grid, **options)()
    check_written()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sum_of_row[grid](x, out, 100, **options)
    graph.replay()
    check_written()


# -- compiled kernels by themselves -----------------------------------------------------------------------------------


def test_a_compiled_kernel_is_launched_by_itself(torch: Any) -> None:
    """As warmup gives it: all parameters in order, or without the constants; in a stream, if one is named."""
    x = torch.randn(N, device="cuda")
    out = torch.zeros_like(x)
    kernel = double.warmup(x, out, BLOCK=BLOCK, grid=GRID)
    kernel[GRID](x, out, BLOCK)
    assert torch.equal(out, 2 * x)
    kernel[GRID](out, x)
    assert torch.equal(x, 2 * out)
    stream = torch.cuda.Stream()
    _after_a_pause(torch, stream, x, 3.0)
    kernel.run(*GRID, 1, 1, stream.cuda_stream, kernel.function, kernel.packed_metadata, None, None, None, x, out)
    stream.synchronize()
    assert bool((out == 6.0).all())


def test_a_compiled_kernel_out_of_its_attributes(torch: Any) -> None:
    """As PyTorch's Inductor hands kernels between processes."""
    x = torch.randn(N, device="cuda")
    out = torch.zeros_like(x)
    kernel = double.warmup(x, out, BLOCK=BLOCK, grid=GRID)
    state = {**kernel.__dict__, "module": None, "function": None, "run": None, "_loaded": None, "_launch": None}
    again = weft.CompiledKernel.__new__(weft.CompiledKernel)
    again.__dict__.update(state)
    again._init_handles()
    again.run(*GRID, 1, 1, 0, again.function, again.packed_metadata, None, None, None, x, out)
    torch.cuda.synchronize()
    assert torch.equal(out, 2 * x) and again.n_regs > 0


# -- streams ----------------------------------------------------------------------------------------------------------


def _after_a_pause(torch: Any, stream: Any, x: Any, value: float) -> None:
    """In a stream, write an array after a pause that is long beside a launch."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(value)


def test_a_launch_is_ordered_with_pytorchs_current_stream(torch: Any) -> None:
    x, out = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    double[GRID](x, out, BLOCK=BLOCK)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    for value in (3.0, 4.0):  # the general way of a launch, then the quick one
        _after_a_pause(torch, side, x, value)
        with torch.cuda.stream(side):
            double[GRID](x, out, BLOCK=BLOCK)
        side.synchronize()
        assert bool((out == 2 * value).all())


def test_a_frozen_launch_joins_the_current_stream(torch: Any) -> None:
    x, out = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    again = double.bind(x, out, BLOCK=BLOCK, grid=GRID)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    _after_a_pause(torch, side, x, 5.0)
    with torch.cuda.stream(side):
        again()
    side.synchronize()
    assert bool((out == 10).all())


def test_the_current_stream_is_that_of_the_driver_interface(torch: Any) -> None:
    torch.cuda.init()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        assert driver.active.get_current_stream(0) == torch.cuda.current_stream().cuda_stream


def test_a_stream_of_wefts_own() -> None:
    x, out = weft.cuda.to_device(np.ones(N, np.float32)), weft.cuda.zeros(N)
    handle = check(api().cuStreamCreate(1))  # it does not wait for the default stream
    with weft.cuda.stream(int(handle)):
        double[GRID](x, out, BLOCK=BLOCK)
    check(api().cuStreamSynchronize(handle))
    np.testing.assert_array_equal(out.numpy(), 2)
    check(api().cuStreamDestroy(handle))


def test_a_stream_by_protocol(torch: Any) -> None:
    side = torch.cuda.Stream()

    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, side.cuda_stream

    x, out = weft.cuda.to_device(np.ones(N, np.float32)), weft.cuda.zeros(N)
    with weft.cuda.stream(Stream()):
        double[GRID](x, out, BLOCK=BLOCK)
    side.synchronize()
    np.testing.assert_array_equal(out.numpy(), 2)


# -- graphs and libraries ---------------------------------------------------------------------------------------------


def test_a_graph(torch: Any) -> None:
    x, out = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    double[GRID](x, out, BLOCK=BLOCK)
    torch.cuda.synchronize()
    out.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        double[GRID](x, out, BLOCK=BLOCK)
        double[GRID](out, out, BLOCK=BLOCK)
    for value in (3.0, 7.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert bool((out == 4 * value).all())


def test_cupy(cupy: Any) -> None:
    x, out = cupy.arange(N, dtype=cupy.float32), cupy.zeros(N, dtype=cupy.float32)
    double[GRID](x, out, BLOCK=BLOCK)
    assert bool((out == 2 * x).all())
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x.fill(9)
        double[GRID](x, out, BLOCK=BLOCK)
    stream.synchronize()
    assert bool((out == 18).all())


def test_arrays_of_two_libraries(torch: Any) -> None:
    x, out = torch.full((N,), 3.0, device="cuda"), weft.cuda.zeros(N)
    torch.cuda.synchronize()
    double[GRID](x, out, BLOCK=BLOCK)
    np.testing.assert_array_equal(out.numpy(), 6)


class Pointer:
    """An address and a type, and not a word about where that is."""

    def __init__(self, tensor: Any) -> None:
        self.dtype, self._address = np.dtype(np.float32), tensor.data_ptr()

    def data_ptr(self) -> int:
        return int(self._address)


def test_the_driver_knows_where_a_pointer_points_to(torch: Any) -> None:
    x = torch.randn(N, device="cuda")
    out = torch.zeros_like(x)
    for _ in range(3):
        double[GRID](Pointer(x), Pointer(out), BLOCK=BLOCK)
    torch.cuda.synchronize()
    assert torch.equal(out, 2 * x)


def test_a_tensor_of_the_host_is_named(torch: Any) -> None:
    x, out = torch.ones(N, device="cuda"), torch.ones(N)
    with pytest.raises(LaunchError, match="argument `out`: a torch.Tensor lives in host memory"):
        double[GRID](x, out, BLOCK=BLOCK)


# -- options and limits -----------------------------------------------------------------------------------------------


def test_tensors_that_are_not_their_memory_are_refused_at_every_launch(torch: Any) -> None:
    x, out = torch.arange(float(N), device="cuda"), torch.zeros(N, device="cuda")
    compiled = double.warmup(x, out, BLOCK=BLOCK, grid=GRID)
    wrong = {
        "negative bit": torch._neg_view(x),
        "nested": torch.nested.nested_tensor([x, x]),
        "freed": torch._efficientzerotensor(N, device="cuda"),
        "layout": x.to_sparse(),
    }
    for launch in (double[GRID], compiled[GRID]):
        for _ in range(5):
            launch(x, out, BLOCK)
            assert torch.equal(out, 2 * x)
            for told, tensor in wrong.items():
                with pytest.raises(LaunchError, match=told):
                    launch(tensor, out, BLOCK)
            with pytest.raises(LaunchError, match="no memory"):
                torch.func.vmap(lambda row, launch=launch: launch(row, out, BLOCK))(x.reshape(1, N))


@pytest.mark.parametrize("option", ["launch_cooperative_grid", "launch_pdl"])
def test_options_of_the_launch(option: str) -> None:
    x, out = weft.cuda.to_device(np.ones(N, np.float32)), weft.cuda.zeros(N)
    kernel = double[GRID](x, out, BLOCK=BLOCK, **{option: True})
    assert getattr(kernel.metadata, option) is True
    weft.cuda.synchronize()
    np.testing.assert_array_equal(out.numpy(), 2)


def test_a_cooperative_grid_has_to_fit() -> None:
    x, out = weft.cuda.zeros(1024), weft.cuda.zeros(1024)
    with pytest.raises(LaunchError, match="COOPERATIVE_LAUNCH_TOO_LARGE"):
        double[(1 << 20,)](x, out, BLOCK=1024, launch_cooperative_grid=True)


RANKS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_nctaid.x;
  mov.u32 %r3, %cluster_ctarank;
  mul.wide.u32 %rd2, %r1, 8;
  add.u64 %rd3, %rd1, %rd2;
  st.global.v2.u32 [%rd3], {%r2, %r3};
  ret;
}
"""


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_clusters(blocks: int) -> None:
    """Each block writes how many its cluster has, and which of them it is."""
    capability = devices.current_device().capability
    if capability < 90:
        pytest.skip("clusters came with capability 90")
    image = assemble(RANKS, f"sm_{capability}").image
    kernel = LoadedKernel(image, {"name": "ranks", "shared": 0, "num_warps": 1, "num_ctas": blocks})
    out = weft.cuda.zeros((8, 2), np.uint32)
    kernel.launcher("Q", lambda: 0)(8, 1, 1, out.address)
    np.testing.assert_array_equal(out.numpy(), [[blocks, i % blocks] for i in range(8)])


def test_more_shared_memory_than_a_kernel_has_by_itself() -> None:
    host = np.arange(256 * 128, dtype=np.float32).reshape(256, 128)
    x, out = weft.cuda.to_device(host), weft.cuda.zeros((256, 128))
    kernel = through_much_shared_memory[(1,)](x, out, M=256, N=128, num_warps=4)
    assert kernel.metadata.shared >= 128 << 10
    np.testing.assert_array_equal(out.numpy(), host + 1)


def test_too_many_threads() -> None:
    capability = devices.current_device().capability
    image = assemble(RANKS, f"sm_{capability}").image if capability >= 90 else b""
    if not image:
        pytest.skip("the kernel of this test is for capability 90")
    with pytest.raises(weft.OutOfResources, match="threads, Required: 2048, Hardware limit: 1024"):
        LoadedKernel(image, {"name": "ranks", "shared": 0, "num_warps": 64})


def _many_registers(count: int) -> str:
    """A kernel that holds so many values at a time: all are loaded before the first is stored."""
    loads = "\n".join(f"  ld.volatile.global.u32 %r{i}, [%rd1 + {4 * i}];" for i in range(count))
    stores = "\n".join(f"  st.volatile.global.u32 [%rd1 + {4 * i}], %r{count - 1 - i};" for i in range(count))
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry held(.param .u64 out)
{{
  .reg .b32 %r<{count}>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
{loads}
{stores}
  ret;
}}
"""


def test_too_many_registers() -> None:
    """200 registers for each of 512 threads: refused before the launch, and what there is runs."""
    image = assemble(_many_registers(200), f"sm_{devices.current_device().capability}").image
    with pytest.raises(weft.OutOfResources) as caught:
        LoadedKernel(image, {"name": "held", "shared": 0, "num_warps": 16})
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("out of resource: threads, Required: 512, Hardware limit: ")
    assert lines[1].split()[:4] == ["threads", "of", "a", "block"] and "(16 warps)" in lines[1]
    assert lines[2].split()[:2] == ["their", "registers"] and lines[2].endswith("of at most 65536")
    assert lines[3].startswith("hint: num_warps=")
    out = weft.cuda.to_device(np.arange(200, dtype=np.uint32))
    LoadedKernel(image, {"name": "held", "shared": 0, "num_warps": 1}).launcher("Q", lambda: 0)(1, 1, 1, out.address)
    found = out.numpy()
    assert sorted(found.tolist()) == list(range(200))


def test_too_much_shared_memory() -> None:
    """512 KiB, which no GPU has: refused before anything is assembled, with the buffers and their lines."""
    x, out = weft.cuda.zeros((1024, 128)), weft.cuda.zeros((1024, 128))
    with pytest.raises(weft.OutOfResources, match="shared memory, Required: 524288, Hardware limit: ") as caught:
        through_much_shared_memory[(1,)](x, out, M=1024, N=128, num_warps=4)
    details = caught.value.details
    assert details[0].split() == ["bytes", "at", "what", "in", "use"]
    assert details[1].split()[:2] == ["524288", "0"] and "test_launching.py" in details[1]


def test_a_tensor_map_has_to_be_aligned() -> None:
    if devices.current_device().capability < 90:
        pytest.skip("the copy engine came with capability 90")
    base = weft.cuda.to_device(np.zeros(64 * 64 + 8, np.float16))
    with pytest.raises(LaunchError, match=r"`a` .*address.*16"):
        described = weft.TensorDescriptor(base, [64, 64], [64, 1], [64, 64])
        devices.map_maker("a", [("f16", [64, 64], 128, [64, 64], -1)])((described, base.address + 8))


def test_a_grid_beyond_the_limits() -> None:
    x, out = weft.cuda.zeros(1024), weft.cuda.zeros(1024)
    with pytest.raises(LaunchError, match="grid size 70000 on axis 1 exceeds 65535"):
        double[(1, 70000)](x, out, BLOCK=1024)


# -- measuring --------------------------------------------------------------------------------------------------------


def test_do_bench_measures_the_gpu() -> None:
    n = 64 << 20
    x, out = weft.cuda.zeros(n), weft.cuda.empty(n)
    ms = do_bench(lambda: double[(n // 1024,)](x, out, BLOCK=1024), warmup=5, rep=20, return_mode="median")
    least = 2 * x.nbytes / (1.1e6 * weft.testing.get_dram_gbps())
    assert least < ms < 100 * least, "a launch alone takes microseconds"


def test_do_bench_agrees_with_pytorchs_events(torch: Any) -> None:
    n = 64 << 20
    x, out = torch.zeros(n, device="cuda"), torch.empty(n, device="cuda")

    def call() -> None:
        double[(n // 1024,)](x, out, BLOCK=1024)

    def by_events() -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(20):
            call()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 20

    # Others may use the GPU meanwhile: the least of several is what nobody disturbed.
    ms = min(do_bench(call, warmup=5, rep=50, return_mode="median") for _ in range(5))
    assert ms == pytest.approx(min(by_events() for _ in range(5)), rel=0.5)
    graph = min(do_bench_cudagraph(call, rep=20, return_mode="median") for _ in range(5))
    assert graph == pytest.approx(ms, rel=0.5)


def test_autotuning_measures_each_configuration() -> None:
    tuned = weft.autotune([weft.Config({"BLOCK": 1024}, num_warps=w) for w in (1, 4, 8)], key=[])(double)
    x, out = weft.cuda.to_device(np.ones(N, np.float32)), weft.cuda.zeros(N)
    tuned[lambda meta: (N // meta["BLOCK"],)](x, out)
    np.testing.assert_array_equal(out.numpy(), 2)
    timings = list(tuned.configs_timings.values())
    assert len(timings) == 3 and all(0 < t[0] < 100 for t in timings)
    assert len({id(t) for t in timings}) == 3, "num_warps is code of its own on a GPU"


def test_autotuning_restores_arrays_of_the_gpu() -> None:
    configs = [weft.Config({"BLOCK": b}) for b in (256, 1024)]
    tuned = weft.autotune(configs, key=[], restore_value=["x"])(double)
    x = weft.cuda.to_device(np.ones(N, np.float32))
    tuned[lambda meta: (N // meta["BLOCK"],)](x, x)
    np.testing.assert_array_equal(x.numpy(), 2)


def test_the_driver_interface_says_what_is_there() -> None:
    weft.cuda.zeros(4)
    here = devices.current_device()
    active = driver.active
    assert active.get_current_target().backend == "cuda" and active.get_current_target().arch == here.capability
    facts = active.utils.get_device_properties(active.get_current_device())
    assert facts["multiprocessor_count"] == here.multiprocessors and facts["warpSize"] == 32
    interface = active.get_device_interface()
    begin, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    begin.record()
    end.record()
    interface.synchronize()
    assert begin.elapsed_time(end) >= 0
