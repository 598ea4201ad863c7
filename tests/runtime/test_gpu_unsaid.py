"""What runs on a GPU although no array says so, and what tools see of kernels there: caches, hooks, preloading."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.base import LaunchError, Unsupported
from weft.runtime import compiling, knobs

from .pretended_gpu import Array, PretendedGPU, pretend

LAYOUT_IR = """
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @filled(%x: !tt.ptr<i32>) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
    %p = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #blocked>
    %q = tt.addptr %p, %i : tensor<128x!tt.ptr<i32>, #blocked>, tensor<128xi32, #blocked>
    tt.store %q, %i : tensor<128x!tt.ptr<i32>, #blocked>
    tt.return
  }
}
"""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))  # a library with arrays on it is loaded
    yield from pretend(monkeypatch)


@pytest.fixture
def as_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "as_triton", True)


def counting() -> Any:
    @weft.jit
    def kernel(n, x=None):
        for i in range(n):
            if x is not None:
                tl.store(x + i, i)

    return kernel


def in_gluon() -> Any:
    @gluon.jit
    def kernel(n, x=None):
        i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
        if x is not None:
            gl.store(x + i, i * n)

    return kernel


def test_without_arrays_it_runs_on_the_host(gpu: PretendedGPU) -> None:
    counting()[(1,)](3)
    assert not gpu.launched
    assert "ptx" not in counting().warmup(3, grid=(1,)).asm


def test_under_the_name_triton_on_the_gpu(gpu: PretendedGPU, as_triton: None) -> None:
    kernel = counting()
    for _ in range(3):
        kernel[(2,)](3)
    assert [call.values("i") for call in gpu.launched] == [(3,)] * 3
    assert "ptx" in kernel.warmup(3, weft.MockTensor(tl.int32), grid=(1,)).asm
    x = np.zeros(4, np.int32)
    kernel[(1,)](4, x)
    assert x.tolist() == [0, 1, 2, 3] and len(gpu.launched) == 3  # an array of the host says where
    kernel[(1,)](3)
    kernel[(1,)](3, Array(dtype=np.int32))
    assert len(gpu.launched) == 5
    with weft.target("cpu"):
        kernel[(1,)](3)
    assert len(gpu.launched) == 5


def test_gluon_always(gpu: PretendedGPU) -> None:
    kernel = in_gluon()
    kernel[(1,)](3)
    assert gpu.launched[0].values("i") == (3,)
    assert "ptx" in kernel.warmup(3, weft.MockTensor(tl.int32), grid=(1,)).asm
    assert "ptx" in kernel.warmup(3, np.zeros(128, np.int32), grid=(1,)).asm
    with pytest.raises(
        LaunchError, match="argument `x`: a numpy.ndarray lives in host memory, but the kernel runs on a"
    ):
        kernel[(1,)](3, np.zeros(128, np.int32))


def test_compiling(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "k.ttgir"
    path.write_text(LAYOUT_IR)
    assert "ptx" in weft.compile(str(path)).asm
    assert "ptx" in weft.compile(weft.ASTSource(in_gluon(), {"n": "i32", "x": "*i32"})).asm
    plain = weft.ASTSource(counting(), {"n": "i32", "x": "*i32"})
    assert "ptx" not in weft.compile(plain).asm
    monkeypatch.setattr(compiling, "as_triton", True)
    assert "ptx" in weft.compile(plain).asm
    with weft.target("cpu"):
        assert "ptx" not in weft.compile(plain).asm


def test_caches(gpu: PretendedGPU) -> None:
    kernel = counting()
    for n in (3, 5, 16):
        kernel[(1,)](n, Array(dtype=np.int32))
    kernels = kernel.device_caches[0][0]
    assert len(kernels) == 2 == len(kernel.cache)
    assert all("ptx" in k.asm for k in kernels.values())
    kernel.device_caches.clear()
    assert not kernel.cache
    kernel[(1,)](3, Array(dtype=np.int32))
    assert len(kernel.cache) == 1 and len(gpu.launched) == 4


def test_hooks(gpu: PretendedGPU) -> None:
    kernel, told = counting(), []
    knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts) or len(told) == 2
    knobs.runtime.jit_post_compile_hook = lambda **facts: told.append("compiled")
    try:
        for _ in range(2):
            kernel[(1,)](3, Array(dtype=np.int32))
        assert [t if t == "compiled" else t["fn"].name.rpartition(".")[2] for t in told] == ["kernel", "compiled"]
        told[:] = [told[0]]
        kernel[(1,)](16, Array(dtype=np.int32))  # the hook says not to
        assert len(told) == 2 and len(gpu.launched) == 2
    finally:
        knobs.runtime.jit_cache_hook = knobs.runtime.jit_post_compile_hook = None
    other = counting()
    loaded = other.preload(told[0]["compile"]["specialization_data"])
    assert "ptx" in loaded.asm
    other[(1,)](3, Array(dtype=np.int32))
    assert list(other.cache.values()) == [loaded]


def test_many_at_once(gpu: PretendedGPU) -> None:
    kernel = counting()
    with ThreadPoolExecutor(2) as pool, weft.AsyncCompileMode(pool):
        futures = [kernel.warmup(n, Array(dtype=np.int32), grid=(1,)) for n in (3, 16)]
        assert all(isinstance(f, weft.FutureKernel) for f in futures)
        kernel[(1,)](3, Array(dtype=np.int32))
    assert len(gpu.launched) == 1 and len(kernel.cache) == 2


@pytest.mark.parametrize("arch", ["sm80", "sm_80", "80", 80])
def test_code_for_an_older_gpu(gpu: PretendedGPU, arch: Any) -> None:
    kernel = counting()
    assert kernel.warmup(3, Array(dtype=np.int32), grid=(1,), arch=arch).metadata.arch == "sm_80"
    for _ in range(2):
        kernel[(1,)](3, Array(dtype=np.int32), arch=arch)
        kernel[(1,)](3, Array(dtype=np.int32))
    assert sorted(k.metadata.arch for k in kernel.cache.values()) == ["sm_80", "sm_90a"]
    with pytest.raises(Unsupported, match="cuda:70"):
        kernel[(1,)](3, Array(dtype=np.int32), arch="sm70")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_hooks_of_loading(gpu: PretendedGPU, target: str) -> None:
    """Called once around the loading of a kernel, wherever it is for."""
    told: list[tuple[Any, ...]] = []
    runtime = knobs.runtime
    chains = (runtime.kernel_load_start_hook, runtime.kernel_load_end_hook, runtime.kernel_unload_hook)
    hooks = [lambda *facts, i=i: told.append((i, *facts)) for i in range(3)]
    gc.collect()  # kernels of other tests are unloaded now, not while these hooks are told of it
    for chain, hook in zip(chains, hooks, strict=True):
        chain.add(hook)
    try:
        kernel = counting()
        x = Array(dtype=np.int32) if target == "cuda" else np.zeros(128, np.int32)
        made = kernel[(1,)](3, x)
        kernel[(1,)](3, x)
        assert len(told) == 2
        loader, made._loader = made._loader, -1
        made.__del__()  # as in a process that was forked from the one which loaded it
        assert len(told) == 2 and made.module is not None
        made._loader = loader
        made.__del__()
        assert len(told) == 3 and made.module is None
        made.__del__()
    finally:
        for chain, hook in zip(chains, hooks, strict=True):
            chain.remove(hook)
    found = [(t[0], t[1] is not None, t[2] is not None) for t in told]
    assert found == [(0, False, False), (1, True, True), (2, True, True)]
    assert all(t[3] == made.name and t[5] == made.hash for t in told)
