"""Copies from global memory to LDS in Gluon: simulated, as instructions, and what layouts cannot be copied."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.base import Unsupported
from weft.gluon import language as gl

from .assembly import parse
from .local import run
from .test_local import without_barriers
from .waits import check, faults, weakened

copy = gl.amd.cdna4.async_copy
BLOCKED = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])


@gluon.jit
def through(x, y, n, L: gl.constexpr, S: gl.constexpr, BUFFER: gl.constexpr):
    """A tile of 128 rows, of which n are there, through shared memory."""
    rows, columns = gl.arange(0, 128, layout=gl.SliceLayout(1, L)), gl.arange(0, 64, layout=gl.SliceLayout(0, L))
    offsets = rows[:, None] * 64 + columns[None, :]
    memory = gl.allocate_shared_memory(x.dtype.element_ty, [128, 64], S)
    if BUFFER:
        copy.buffer_load_to_shared(memory, x, offsets, mask=(rows < n)[:, None])
    else:
        copy.global_load_to_shared(memory, x + offsets, mask=(rows < n)[:, None])
    copy.commit_group()
    copy.wait_group(0)
    gl.store(y + offsets, copy.load_shared_relaxed(memory, L))


def padded(interval: int, padding: int) -> Any:
    return gl.PaddedSharedLayout.with_identity_for([[interval, padding]], [128, 64], [1, 0])


FITTING: dict[str, tuple[str, Any, Any, int, int]] = {
    "plain": ("gfx950", BLOCKED, gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), 16, 0),
    "swizzled": ("gfx950", BLOCKED, gl.SwizzledSharedLayout(8, 1, 8, [1, 0]), 16, 2),
    "swizzled by warps": ("gfx950", BLOCKED, gl.SwizzledSharedLayout(8, 16, 8, [1, 0]), 16, 2),
    "padded": ("gfx950", BLOCKED, padded(512, 16), 16, 0),
    "words": ("gfx942", gl.BlockedLayout([1, 2], [2, 32], [4, 1], [1, 0]), padded(128, 2), 4, 0),
    "swizzled words": ("gfx942", gl.BlockedLayout([1, 2], [2, 32], [4, 1], [1, 0]),
                       gl.SwizzledSharedLayout(2, 1, 8, [1, 0]), 4, 2),
    "words of gfx90a": ("gfx90a", gl.BlockedLayout([1, 2], [2, 32], [4, 1], [1, 0]),
                        gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), 4, 0),
    "other lanes": ("gfx950", gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0]),
                    gl.SharedLinearLayout([[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [0, 8], [0, 16], [0, 32],
                                           [8, 0], [16, 0], [32, 0], [64, 0]]), 16, 2),
}  # fmt: skip


def compiled(kernel: Any, signature: dict[str, str], constants: dict[str, Any], processor: str) -> Any:
    facts = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(signature.values()) if kind[0] == "*" or i == 3}
    return weft.compile(weft.ASTSource(kernel, signature, constants, facts), target=f"hip:{processor}")


def variants() -> list[Any]:
    """Each layout by both accesses: of most, one is slow."""
    found = []
    for name in FITTING:
        for buffer, how in enumerate(("global", "buffer")):
            always = buffer or name in ("plain", "swizzled")
            found.append(pytest.param(name, buffer, id=f"{name}-{how}", marks=() if always else pytest.mark.slow))
    return found


@pytest.mark.parametrize(("name", "buffer"), variants())
def test_tiles_go_through_shared_memory(name: str, buffer: int) -> None:
    processor, layout, memory, size, exchanged = FITTING[name]
    x, y = np.arange(128 * 64, dtype=np.float16).reshape(128, 64), np.ones((128, 64), np.float16)
    with weft.target(f"sim:hip:{processor}"):
        through[(1,)](x, y, 99, L=layout, S=memory, BUFFER=buffer)
    assert (y[:99] == x[:99]).all() and not y[99:].any()
    kernel = compiled(through, {"x": "*fp16", "y": "*fp16", "n": "i32"},
                      {"L": layout, "S": memory, "BUFFER": buffer}, processor)  # fmt: skip
    text = kernel.asm["amdgcn"]
    width = {4: "dword", 16: "dwordx4"}[size]
    wanted = rf"buffer_load_{width} .* lds" if buffer else rf"global_load_lds_{width}\b|global_load_{width} .* lds"
    assert len(re.findall(wanted, text)) == 128 * 64 * 2 // (256 * size)
    assert bool(re.search(r"ds_bpermute|ds_swizzle|_dpp|permlane", text)) == bool(exchanged)
    assert check(text) == []
    (function,) = parse(text).values()
    arguments = struct.pack("<2Qi", 1 << 20, 1 << 21, 99).ljust(64, b"\0")
    assert exchanged or run(function, text, arguments, 4) == []


UNFIT: dict[str, tuple[str, Any, Any, str]] = {
    "lanes in another order": ("gfx950", gl.BlockedLayout([1, 8], [16, 4], [4, 1], [1, 0]),
                               gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), "addresses and masks the layout"),
    "16 bytes of a lane": ("gfx942", BLOCKED, gl.SwizzledSharedLayout(8, 1, 8, [1, 0]),
                           "addresses and masks the layout"),
    "gaps within a run": ("gfx950", BLOCKED, padded(64, 8), "allocate the memory with"),
    "columns": ("gfx950", BLOCKED, gl.SwizzledSharedLayout(8, 1, 8, [0, 1]), "allocate the memory with"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_told(name: str) -> None:
    """And what the hint proposes does."""
    processor, layout, memory, text = UNFIT[name]
    constants = {"L": layout, "S": memory, "BUFFER": 1}
    signature = {"x": "*fp16", "y": "*fp16", "n": "i32"}
    with pytest.raises(Unsupported, match="of which a wave's lanes do not fill one run") as told:
        compiled(through, signature, constants, processor)
    assert told.value.hint is not None and text in told.value.hint
    named = re.search(r"gl\.\w+\([^()]*\)", told.value.hint)
    assert named is not None
    constants["L" if "addresses" in text else "S"] = eval(named[0], {"gl": gl})
    compiled(through, signature, constants, processor)


def test_processors_without_copies_are_told() -> None:
    layout = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    constants = {"L": layout, "S": gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), "BUFFER": 0}
    with pytest.raises(Unsupported, match="hip:gfx90a, hip:gfx942, hip:gfx950"):
        compiled(through, {"x": "*fp16", "y": "*fp16", "n": "i32"}, constants, "gfx1201")


@gluon.jit
def product(a, b, c, K, M: gl.constexpr, N: gl.constexpr, BK: gl.constexpr, BUFFERS: gl.constexpr):
    """Both operands are copied BUFFERS - 1 iterations ahead; every iteration is a group of several copies."""
    tile: gl.constexpr = gl.amd.AMDMFMALayout(4, [32, 32, 16], True, [2, 2])
    left: gl.constexpr = gl.BlockedLayout([1, 8], [16, 4], [4, 1], [1, 0])
    right: gl.constexpr = gl.BlockedLayout([8, 1], [4, 16], [1, 4], [0, 1])
    memory_a: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[512, 16]], [M, BK], [1, 0])
    memory_b: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[512, 16]], [BK, N], [0, 1])
    m, k = gl.arange(0, M, layout=gl.SliceLayout(1, left)), gl.arange(0, BK, layout=gl.SliceLayout(0, left))
    k2, n = gl.arange(0, BK, layout=gl.SliceLayout(1, right)), gl.arange(0, N, layout=gl.SliceLayout(0, right))
    at_a, at_b = m[:, None] * K + k[None, :], k2[:, None] + n[None, :] * K
    at_a, at_b = gl.multiple_of(at_a, [1, 8]), gl.multiple_of(at_b, [8, 1])
    smem_a = gl.allocate_shared_memory(gl.float16, [BUFFERS, M, BK], memory_a)
    smem_b = gl.allocate_shared_memory(gl.float16, [BUFFERS, BK, N], memory_b)
    for i in gl.static_range(BUFFERS - 1):
        copy.buffer_load_to_shared(smem_a.index(i), a + i * BK, at_a, mask=(k + i * BK < K)[None, :])
        copy.buffer_load_to_shared(smem_b.index(i), b + i * BK, at_b, mask=(k2 + i * BK < K)[:, None])
        copy.commit_group()
    total = gl.zeros((M, N), gl.float32, layout=tile)
    for i in range(gl.cdiv(K, BK)):
        ahead = i + BUFFERS - 1
        copy.wait_group(BUFFERS - 2)
        x = copy.load_shared_relaxed(smem_a.index(i % BUFFERS), gl.DotOperandLayout(0, tile, 8))
        y = copy.load_shared_relaxed(smem_b.index(i % BUFFERS), gl.DotOperandLayout(1, tile, 8))
        copy.buffer_load_to_shared(
            smem_a.index(ahead % BUFFERS), a + ahead * BK, at_a, mask=(k + ahead * BK < K)[None, :]
        )
        copy.buffer_load_to_shared(
            smem_b.index(ahead % BUFFERS), b + ahead * BK, at_b, mask=(k2 + ahead * BK < K)[:, None]
        )
        copy.commit_group()
        total = gl.amd.cdna4.mfma(x, y, total)
    rows, columns = gl.arange(0, M, layout=gl.SliceLayout(1, tile)), gl.arange(0, N, layout=gl.SliceLayout(0, tile))
    gl.store(c + rows[:, None] * N + columns[None, :], total)


@pytest.mark.parametrize("buffers", [2, 3])
def test_a_pipelined_product(buffers: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((128, 160), (128, 160)))
    c = np.zeros((128, 128), np.float32)
    constants = {"M": 128, "N": 128, "BK": 32, "BUFFERS": buffers}
    with weft.target("sim:hip:gfx950"):
        product[(1,)](a, b, c, 160, **constants)
    assert (c == a.astype(np.float32) @ b.T).all()


@pytest.mark.slow
def test_waits_of_a_pipelined_product_count_copies() -> None:
    """Three buffers, four copies an iteration: the wait leaves those of one group on their way. Each wait that is
    weakened, and each barrier that is left out, is a fault."""
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}
    constants = {"M": 128, "N": 128, "BK": 32, "BUFFERS": 3}
    text = compiled(product, signature, constants, "gfx950").asm["amdgcn"]
    assert len(re.findall(r"buffer_load_dwordx4 .* lds", text)) == 12
    assert re.findall(r"s_waitcnt vmcnt\((\d+)\)", text)[0] == "4"
    assert check(text) == []
    (function,) = parse(text).values()
    arguments = struct.pack("<3Qi", 1 << 20, 1 << 21, 1 << 22, 160).ljust(64, b"\0")
    assert run(function, text, arguments, 4) == []
    of_copies = [w for w in weakened(function) if w.what.startswith("vmcnt") and not faults(w.kernel)]
    assert of_copies and all(run(weak.kernel, text, arguments, 4) for weak in of_copies[:2])
    assert any(run(changed, text, arguments, 4) for changed in without_barriers(function))
