"""gfx1250's barriers in local memory: copies and threads that arrive, who waits, what is wrong when they do not fit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.sim
from weft import gluon
from weft.base import CompilationError, Unsupported
from weft.gluon import language as gl
from weft.sim import SimulationError
from weft.targets.amd import Tile

from .assembly import parse
from .container import problems
from .waits import check

amd = gl.amd.gfx1250
PLAIN = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
ROWS = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
COLUMNS = gl.BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1])
TARGET = "sim:hip:gfx1250"
COPIES = pytest.mark.parametrize("copies", ["earliest", "latest"])


@gluon.jit
def barriers(N: gl.constexpr, COUNT: gl.constexpr):
    bars = gl.allocate_shared_memory(gl.int64, [N, 1], amd.mbarrier.MBarrierLayout())
    for i in gl.static_range(N):
        amd.mbarrier.init(bars.index(i), count=COUNT)
    return bars


@gluon.jit
def rows_of_tiles(x, y, tiles, COUNT: gl.constexpr, AHEAD: gl.constexpr, L: gl.constexpr, SKEW: gl.constexpr):
    """Tiles come two ahead, each announced at the mbarrier of its buffer; they are read in other threads."""
    source = amd.tdm.make_tensor_descriptor(x, [tiles * 64, 64], [64, 1], [64, 64], PLAIN)
    memory = gl.allocate_shared_memory(gl.float16, [2, 64, 64], PLAIN)
    full = barriers(2, COUNT)
    rows, columns = gl.arange(0, 64, layout=gl.SliceLayout(1, L)), gl.arange(0, 64, layout=gl.SliceLayout(0, L))
    sums = gl.zeros((64, 64), gl.float32, L)
    for i in gl.static_range(AHEAD):
        amd.tdm.async_load(source, [i * 64, 0], memory.index(i), mbarrier=full.index(i))
    for i in range(tiles):
        amd.mbarrier.wait(full.index(i % 2), (i // 2 + SKEW) & 1)
        sums += memory.index(i % 2).load(L).to(gl.float32)
        more, bar = i + 2 < tiles, full.index(i % 2)
        amd.tdm.async_load(source, [(i + 2) * 64, 0], memory.index(i % 2), pred=more, mbarrier=bar)
    gl.store(y + rows[:, None] * 64 + columns[None, :], sums)


def _run(order: str = "", copies: str = "latest", count: int = 4, skew: int = 0, ahead: int = 2) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5 * 64, 64)).astype(np.float16)
    y = np.zeros((64, 64), np.float32)
    options = {"copies": copies, **({"order": order} if order else {})}
    with weft.target(TARGET), weft.sim.options(**options):
        rows_of_tiles[(1,)](x, y, 5, count, ahead, COLUMNS, skew, num_warps=4)
    np.testing.assert_array_equal(y, x.astype(np.float32).reshape(5, 64, 64).sum(axis=0))


@COPIES
def test_tiles_are_read_when_their_phase_is_over(copies: str) -> None:
    _run(copies=copies)
    _run(copies=copies, order="random")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"count": 5}, r"phase 0 of an mbarrier: 4 of 5 arrivals have come"),
        ({"ahead": 0}, r"phase 0 of an mbarrier: 0 of 4 arrivals have come"),
        ({"skew": 1}, r"reads byte \d+ of shared memory"),
        ({"count": 2, "copies": "earliest"}, r"phase 2 of an mbarrier never ends: 0 of 2"),
    ],
)
def test_what_does_not_fit_is_found(changed: Any, said: str) -> None:
    """Arrivals that do not come, a wait for the other parity, a phase that ends by half of a tile."""
    with pytest.raises(SimulationError, match=said):
        _run(**changed)


@gluon.jit
def lane_by_lane(x, y, prior, n, COUNT: gl.constexpr, EACH: gl.constexpr, L: gl.constexpr):
    """Copies of threads, which arrive for themselves; the phase before an arrival."""
    rows, columns = gl.arange(0, 64, layout=gl.SliceLayout(1, L)), gl.arange(0, 64, layout=gl.SliceLayout(0, L))
    at = rows[:, None] * 64 + columns[None, :]
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], PLAIN)
    bar = gl.allocate_shared_memory(gl.int64, [1], amd.mbarrier.MBarrierLayout())
    amd.mbarrier.init(bar, count=COUNT)
    for i in range(n):
        amd.async_copy.global_to_shared(memory, gl.multiple_of(x, 16) + i * 4096 + at)
        amd.async_copy.mbarrier_arrive(bar)
        phase = amd.mbarrier.arrive(bar, count=EACH)
        amd.mbarrier.wait(bar, phase)
        gl.store(y + i * 4096 + at, memory.load(L))
        gl.store(prior + i, phase)


def _lanes(count: int = 256, each: int = 1, copies: str = "latest") -> None:
    x = np.arange(3 * 4096, dtype=np.float32).astype(np.float16)
    y, prior = np.zeros_like(x), np.full(3, 7, np.int32)
    with weft.target(TARGET), weft.sim.options(copies=copies):
        lane_by_lane[(1,)](x, y, prior, 3, count, each, ROWS, num_warps=4)
    np.testing.assert_array_equal(y, x)
    assert prior.tolist() == [0, 1, 0]


@COPIES
def test_threads_and_their_copies_arrive_for_themselves(copies: str) -> None:
    _lanes(copies=copies)
    _lanes(count=384, each=2, copies=copies)


def test_an_mbarrier_for_fewer_than_the_threads_of_a_warp() -> None:
    """As it would be written where one thread of a block arrives."""
    with pytest.raises(SimulationError, match="a warp of 32 threads arrives, 1 times each") as raised:
        _lanes(count=2)
    assert "every thread of a warp arrives for itself" in str(raised.value)


@gluon.jit
def unmade(y):
    bar = gl.allocate_shared_memory(gl.int64, [1], amd.mbarrier.MBarrierLayout())
    amd.mbarrier.wait(bar, 0)
    gl.store(y, 1)


def test_an_mbarrier_that_was_not_made() -> None:
    with weft.target(TARGET), pytest.raises(SimulationError, match="there is no mbarrier at byte 0"):
        unmade[(1,)](np.zeros(1, np.int32))


def _compiled(kernel: Any, types: dict[str, str], constants: dict[str, Any], target: str = "hip:gfx1250") -> Any:
    return weft.compile(weft.ASTSource(kernel, types, constants), target)


TILES = {"x": "*fp16", "y": "*fp32", "tiles": "i32"}, {"COUNT": 4, "AHEAD": 2, "L": COLUMNS, "SKEW": 0}
LANES = {"x": "*fp16", "y": "*fp16", "prior": "*i32", "n": "i32"}, {"COUNT": 256, "EACH": 1, "L": ROWS}


@pytest.mark.parametrize(("kernel", "source"), [(rows_of_tiles, TILES), (lane_by_lane, LANES)])
def test_code(kernel: Any, source: Any) -> None:
    """Triton 3.6.0's instructions; a wait sleeps between its looks."""
    made = _compiled(kernel, *source)
    text = made.asm["amdgcn"]
    wanted = {
        "rows_of_tiles": {"tensor_load_to_lds": 3, "s_sleep": 1},
        "lane_by_lane": {
            "ds_atomic_barrier_arrive_rtn_b64": 1, "ds_atomic_async_barrier_arrive_b64": 1, "s_sleep": 1,
            "global_load_async_to_lds_b128": 4,
        },
    }[kernel.__name__]  # fmt: skip
    assert {name: len(re.findall(rf"^\s+{name}\b", text, re.M)) for name in wanted} == wanted
    assert not check(text) and not problems(made.asm["hsaco"], "gfx1250")
    names = [i.name for i in next(iter(parse(text).values())).instructions]
    if kernel is lane_by_lane:  # nothing has moved behind the arrival of copies, and nothing of them before it
        arrival = names.index("ds_atomic_async_barrier_arrive_b64")
        assert max(i for i, n in enumerate(names) if n.startswith("global_load_async")) < arrival
        assert names.index("ds_atomic_barrier_arrive_rtn_b64") > arrival


def test_the_descriptor_says_which_barrier() -> None:
    """By Triton 3.6.0's LLVM IR for a barrier at byte 8192: bit 18 of a word, 1024 in the lower half of the next."""
    tile = Tile.decoded([1, 0, 0, 0], [1 << 18 | 1 << 16, 64 << 16 | 8192 >> 3, 64 << 16, 16 << 16, 64, 64, 0, 0])
    assert (tile.barrier, tile.tensor, tile.sizes) == (8192, (64, 64), (16, 64))
    assert Tile.decoded([1, 0, 0, 0], [1 << 16, 64 << 16 | 5, 64 << 16, 16 << 16, 64, 64, 0, 0]).barrier == -1


@pytest.mark.parametrize(
    ("changed", "target", "error", "said"),
    [
        ({}, "hip:gfx1201", Unsupported, r"ds_atomic_barrier_arrive_rtn_b64 is not(.|\n)*it works on hip:gfx1250"),
        ({}, "cuda:90", Unsupported, "amd.mbarrier.init, which is for hip:gfx1250, is not supported on target cuda:90"),
        ({"COUNT": 70000}, "hip:gfx1250", CompilationError, "is for 1 to 65536 arrivals, got 70000"),
        ({"COUNT": 0}, "hip:gfx1250", CompilationError, "mbarrier.init: count"),
    ],
)
def test_what_is_refused(changed: Any, target: str, error: Any, said: str) -> None:
    types, constants = LANES
    with pytest.raises(error, match=said) as raised:
        _compiled(lane_by_lane, types, {**constants, **changed}, target)
    assert "amd.mbarrier.init(bar, count=COUNT)" in str(raised.value)
