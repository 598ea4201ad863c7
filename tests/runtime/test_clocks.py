"""Clocks and identities that kernels ask a GPU for, on the CPU and in the simulator."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import Unsupported
from weft.backends.cpu.driver import get_num_threads, set_num_threads

TARGETS = ["cpu", "sim:cuda:80", "sim:cuda:90"]


@weft.jit
def timed(x, times, n, B: tl.constexpr):
    before = tl.extra.cuda.globaltimer()
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + o, tl.exp(tl.load(x + o, mask=o < n)), mask=o < n)
    after = tl.extra.cuda.globaltimer()
    tl.store(times + tl.program_id(0) * 2, before)
    tl.store(times + tl.program_id(0) * 2 + 1, after)


@pytest.mark.parametrize("target", TARGETS)
def test_the_clock_counts_nanoseconds(target: str) -> None:
    x, times = np.zeros(128, np.float32), np.zeros((2, 2), np.int64)
    begin = time.monotonic_ns()
    timed[(2,)](x, times, 128, B=64, target=target)
    end = time.monotonic_ns()
    assert (x == 1).all()
    assert begin <= times.min() and times.max() <= end
    assert (times[:, 0] <= times[:, 1]).all()


@weft.jit
def waits(out, ns):
    end = tl.extra.cuda.globaltimer() + ns
    iterations = 0
    while tl.extra.cuda.globaltimer() < end:
        iterations += 1
    tl.store(out, iterations)


def test_a_loop_may_wait_for_the_clock() -> None:
    out = np.zeros(1, np.int32)
    waits[(1,)](out, 1)
    begin = time.perf_counter()
    waits[(1,)](out, 3_000_000)
    assert time.perf_counter() - begin >= 0.003 and out[0] > 0


@weft.jit
def read(out, TEXT: tl.constexpr, WIDE: tl.constexpr):
    if WIDE:
        value = tl.inline_asm_elementwise(TEXT, "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    else:
        value = tl.inline_asm_elementwise(TEXT, "=r", [], dtype=tl.uint32, is_pure=False, pack=1).to(tl.int64)
    program = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    tl.store(out + program, value)


def register(name: str, target: str, wide: bool = False) -> Any:
    out = np.full(6, -1, np.int64)
    read[(3, 2)](out, TEXT=f"mov.{'u64' if wide else 'u32'} $0, %{name};", WIDE=wide, target=target)
    return out


@pytest.mark.parametrize("target", TARGETS[:2])
def test_registers_by_name(target: str) -> None:
    begin = time.monotonic_ns()
    wide, high, low = (
        register("clock64", target, wide=True), register("globaltimer_hi", target), register("clock", target)
    )  # fmt: skip
    assert (begin <= wide).all() and (wide <= time.monotonic_ns()).all()
    assert (abs(high - (wide >> 32)) <= 1).all() and (0 <= low).all() and (low < 1 << 32).all()
    assert register("ctaid.x", target).tolist() == [0, 1, 2, 0, 1, 2]
    assert register("ctaid.y", target).tolist() == [0, 0, 0, 1, 1, 1]
    assert register("nctaid.x", target).tolist() == [3] * 6
    assert register("tid.x", target).tolist() == [0] * 6
    assert register("laneid", target).tolist() == [0] * 6
    for name, value in {"lanemask_eq": 1, "lanemask_lt": 0, "lanemask_gt": 0xFFFF_FFFE, "cluster_ctarank": 0}.items():
        assert register(name, target).tolist() == [value] * 6


def test_clusters_and_the_grid_on_the_cpu() -> None:
    assert register("clusterid.x", "cpu").tolist() == register("ctaid.x", "cpu").tolist()
    assert register("nclusterid.y", "cpu").tolist() == [2] * 6
    assert register("cluster_nctaid.z", "cpu").tolist() == register("cluster_nctarank", "cpu").tolist() == [1] * 6
    assert register("gridid", "cpu", wide=True).tolist() == [0] * 6


@pytest.mark.parametrize("text", ["mov.u32 $0, %envreg3;", "mov.u32 $0, %smid; add.u32 $0, $0, 1;", "not.b32 $0, $0;"])
def test_other_assembly_is_refused_on_the_cpu(text: str) -> None:
    with pytest.raises(Unsupported, match="inline_asm_elementwise is not supported on target cpu"):
        read[(1,)](np.zeros(1, np.int64), TEXT=text, WIDE=False)


@weft.jit
def who(threads, sizes, iterations):
    total = 0.0
    for i in range(iterations):
        total = tl.exp(total) * 1e-6
    tl.store(threads + tl.program_id(0), tl.extra.cuda.smid() + (total > 1).to(tl.int32))
    tl.store(sizes, tl.extra.cuda.num_warps())
    tl.store(sizes + 1, tl.extra.cuda.num_threads())


@pytest.mark.parametrize("target", TARGETS)
def test_who_runs_a_program(target: str) -> None:
    for programs in (1, 3) if target != "cpu" else (1, 3, 400, 400):
        threads, sizes = np.full(programs, -1, np.int32), np.zeros(2, np.int32)
        who[(programs,)](threads, sizes, 1000 if programs > 3 else 1, num_warps=8, target=target)
        assert (0 <= threads).all() and (threads < get_num_threads()).all()
        assert sizes.tolist() == [8, 256]


def test_two_threads_have_two_numbers() -> None:
    before = get_num_threads()
    set_num_threads(2)
    try:
        for _ in range(20):  # a worker may come too late for one launch
            threads, sizes = np.full(64, -1, np.int32), np.zeros(2, np.int32)
            who[(64,)](threads, sizes, 20_000)
            assert set(threads.tolist()) <= {0, 1}
            if len(set(threads.tolist())) == 2:
                return
    finally:
        set_num_threads(before)
    pytest.fail("one thread ran every program")


@weft.jit
def depends(x):
    tl.extra.cuda.gdc_wait()
    tl.store(x, tl.load(x) + 1)
    tl.extra.cuda.gdc_launch_dependents()


def test_launches_follow_each_other_on_the_cpu() -> None:
    x = np.zeros(1, np.float32)
    depends[(1,)](x)
    depends[(1,)](x, launch_pdl=True)
    assert x[0] == 2
