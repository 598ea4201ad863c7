"""Bulk copies of every rank, swizzle and element size; and what the copy engine cannot do."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from weft.base import LayoutError
from weft.ir import parse_module
from weft.layouts import NVMMASharedLayout, SwizzledSharedLayout
from weft.lower import lower
from weft.lower.nvidia.boxes import Boxes, boxes_of
from weft.sim import BulkCopyError, Options, OutOfBoundsError

from .running import DTYPES, Described, aligned, integers, launch, program_of, read

ELEMENTS = {"i8": "i8", "f16": "f16", "bf16": "bf16", "f32": "f32", "i32": "i32", "f64": "f64", "i64": "i64",
            "fp8": "f8E4M3FN", "i16": "i16"}  # fmt: skip


def copy_kernel(block: Sequence[int], elem: str, swizzle: int, bits: int, bytes: int | None = None) -> str:
    """Layout IR: one block of x, from coordinates c on, to coordinates d of y."""
    rank = len(block)
    shape = "x".join(map(str, block))
    size = int(np.prod(block)) * bits // 8
    extra = f", rank = {rank}" if rank != 2 else ""
    layout = f"swizzlingByteWidth = {swizzle}, transposed = false, elementBitWidth = {max(8, bits)}{extra}"
    desc = f"!tt.tensordesc<tensor<{shape}x{elem}, #shared>>"
    memory = f"!ttg.memdesc<{shape}x{elem}, #shared, #smem, mutable>"
    bar = "!ttg.memdesc<1xi64, #bar, #smem, mutable>"
    parts = [f"%{n}{i}: {t}" for n in "xy" for i, t in enumerate(["i32"] * rank + ["i64"] * rank)]
    starts = [f"%{n}{i}: i32" for n in "cd" for i in range(rank)]
    given = [f"%x: {desc}", *parts[: 2 * rank], f"%y: {desc}", *parts[2 * rank :], *starts]
    at, to = (", ".join(f"%{n}{i}" for i in range(rank)) for n in "cd")
    return f"""
#shared = #ttg.nvmma_shared<{{{layout}}}>
#bar = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module attributes {{"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @copy({", ".join(given)}) attributes {{noinline = false}} {{
    %true = arith.constant true
    %zero = arith.constant 0 : i32
    %m = ttg.local_alloc : () -> {memory}
    %b = ttg.local_alloc : () -> {bar}
    ttng.init_barrier %b, 1 : {bar}
    ttng.barrier_expect %b, {size if bytes is None else bytes}, %true : {bar}
    ttng.async_tma_copy_global_to_local %x[{at}] %m, %b, %true : {desc}, {bar} -> {memory}
    ttng.wait_barrier %b, %zero, %true : {bar}
    ttng.async_tma_copy_local_to_global %y[{to}] %m : {desc}, {memory}
    ttng.async_tma_store_wait {{pendings = 0 : i32}}
    tt.return
  }}
}}
"""


def check_copy(block: Sequence[int], name: str, swizzle: int, copies: str = "latest") -> None:
    """Blocks that lie inside of the tensor; that are read from before its beginning and written behind its end."""
    dtype = np.dtype(DTYPES[name])
    program = program_of(copy_kernel(block, ELEMENTS[name], swizzle, dtype.itemsize * 8))
    shape = [n + 3 for n in block]
    shape[-1] = block[-1] + 16
    x = integers(0, shape, dtype, 1, 9)
    chunk = 16 // dtype.itemsize
    before = [2, -1, 1, 3, -2][: len(block) - 1]
    behind = [1, 2, 0, 1, 2][: len(block) - 1]
    for start, to in (
        ([0] * len(block), [0] * len(block)),
        ([*before, chunk], [*behind, 0]),
        ([*before, -chunk], [*behind, max(1, 16 // chunk) * chunk]),
    ):
        y = aligned(shape, dtype)
        values: dict[str, object] = {"x": Described(x, block), "y": Described(y, block)}
        values |= {f"{n}{i}": c for n, at in (("c", start), ("d", to)) for i, c in enumerate(at)}
        launch(program, 1, values, Options(copies=copies))
        tile = np.zeros(block, dtype)
        put, take = [], []
        for s, b, n in zip(start, block, shape, strict=True):
            put.append(slice(max(0, -s), min(b, n - s)))
            take.append(slice(max(0, s), min(n, s + b)))
        tile[tuple(put)] = x[tuple(take)]
        want = np.zeros(shape, dtype)
        room = [min(b, n - t) for b, n, t in zip(block, shape, to, strict=True)]
        want[tuple(slice(t, t + r) for t, r in zip(to, room, strict=True))] = tile[tuple(slice(r) for r in room)]
        np.testing.assert_array_equal(y, want)


BLOCKS = {1: (256,), 2: (16, 64), 3: (4, 8, 64), 4: (2, 2, 8, 32), 5: (2, 2, 2, 8, 16)}


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.thinned(3)
def test_every_swizzle_and_type(swizzle: int, name: str) -> None:
    size = np.dtype(DTYPES[name]).itemsize
    check_copy((16, max(128, swizzle) // size), name, swizzle)


@pytest.mark.parametrize("copies", ["earliest", "latest"])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("rank", BLOCKS)
@pytest.mark.thinned(3)
def test_every_rank(rank: int, swizzle: int, copies: str) -> None:
    block = list(BLOCKS[rank])
    if rank == 1 and swizzle:
        return
    block[-1] = max(block[-1], swizzle // 2)
    check_copy(block, "f16", swizzle, copies)


@pytest.mark.parametrize("block", [(64, 256), (512, 32), (1, 64), (8, 512), (1, 8)])
def test_several_boxes(block: tuple[int, int]) -> None:
    """Wider than the swizzle, longer than a box may be, a single row."""
    widest = 128 if block[1] >= 64 and block[0] >= 8 else 0
    check_copy(block, "f16", widest)


def test_boxes_by_division() -> None:
    assert boxes_of(NVMMASharedLayout(64, 8, 2).to_linear([512, 128]), 1) == Boxes(
        (256, 64), 64, (0, 16384, 32768, 49152), ((0, 0), (256, 0), (0, 64), (256, 64))
    )
    plain = SwizzledSharedLayout(1, 1, 1, [1, 0]).to_linear([8, 32])
    assert boxes_of(plain, 4) == Boxes((8, 32), 16, (0,), ((0, 0),))
    same = SwizzledSharedLayout(8, 1, 8, [1, 0]).to_linear([16, 64])  # 128 bytes by another name
    assert boxes_of(same, 2) == Boxes((16, 64), 128, (0,), ((0, 0),))
    assert boxes_of(SwizzledSharedLayout(4, 1, 8, [1, 0]).to_linear([16, 64]), 2) is None
    assert boxes_of(NVMMASharedLayout(128, 16, 2, True).to_linear([64, 64]), 2) is None


ORIGIN = {"c0": 0, "c1": 0, "d0": 0, "d1": 0}


def compiled(text: str) -> str:
    with pytest.raises(LayoutError) as found:
        lower(parse_module(text, "kernel.ttgir"))
    return str(found.value)


def test_a_layout_that_no_mode_gives() -> None:
    text = copy_kernel((64, 64), "f16", 128, 16).replace("transposed = false", "transposed = true")
    assert (
        compiled(text)
        .splitlines()[0]
        .endswith(
            "error: a bulk copy cannot fill a tile of 64x64 elements of 2 bytes that lies as #ttg.nvmma_shared<"
            "{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}> says: no swizzle of the copy engine "
            "(none, 32, 64 or 128 bytes) puts the rows of a box so"
        )
    )


def test_a_buffer_unlike_its_descriptor() -> None:
    text = copy_kernel((64, 64), "f16", 128, 16)
    other = "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>"
    text = text.replace("#smem =", f"#other = {other}\n#smem =")
    text = text.replace("memdesc<64x64xf16, #shared", "memdesc<64x64xf16, #other")
    message = (
        "the descriptor moves boxes of [64, 64] with a swizzle of 128 bytes, the buffer has boxes of [64, 32] with 64"
    )
    assert message in compiled(text)


def test_an_array_that_is_too_small() -> None:
    """The descriptor says more than there is."""
    program = program_of(copy_kernel((16, 64), "f16", 128, 16))
    x, y = integers(0, (15, 64), np.float16), aligned((16, 64), np.float16)
    values = {"x": Described(x, (16, 64), shape=(16, 64)), "y": Described(y, (16, 64)), **ORIGIN}
    with pytest.raises(OutOfBoundsError, match="a bulk copy of elements outside of every array"):
        launch(program, 1, values)


@pytest.mark.parametrize("filled,message", [(0, "these 128 bytes are zero"), (7, "these 128 bytes are no tensor map")])
def test_what_is_no_tensor_map(filled: int, message: str) -> None:
    """A descriptor is taken from memory in which nobody has made one."""
    text = copy_kernel((16, 64), "f16", 128, 16)
    desc = "!tt.tensordesc<tensor<16x64xf16, #shared>>"
    text = text.replace(f"%x: {desc}, %x0: i32, %x1: i32, %x2: i64, %x3: i64", "%p: !tt.ptr<i8>")
    made = f"%x = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to {desc}"
    text = text.replace("    %true =", f"    {made}\n    %true =")
    raw = np.full(256, filled, np.uint8)
    raw = raw[-int(raw.__array_interface__["data"][0]) % 64 :][:128]
    program = program_of(text)
    values = {"p": raw, "y": Described(aligned((16, 64), np.float16), (16, 64)), **ORIGIN}
    with pytest.raises(
        BulkCopyError, match=f"the tensor map at byte 0 of `p`, which has 128 bytes is not valid: {message}"
    ):
        launch(program, 1, values)


def test_a_map_for_other_boxes() -> None:
    """The kernel makes a map whose swizzle is not that of the descriptor's layout."""
    text = read("triton_matmul_of_made_descriptors")
    assert "swizzle_mode = 3" in text
    found = compiled(text.replace("swizzle_mode = 3", "swizzle_mode = 2", 1))
    assert "the tensor map is for boxes of [64, 64] with a swizzle of 64 bytes, the layout of the descriptor's" in found
    assert "note: the tensor map is made here" in found


@pytest.mark.parametrize(
    "at,message",
    [
        (
            {"c1": 5},
            "a bulk copy begins at element 5 of the innermost dimension, at byte 10: that must be a multiple of 16",
        ),
        (
            {"d1": 4},
            "a bulk copy begins at element 4 of the innermost dimension, at byte 8: that must be a multiple of 16",
        ),
        ({"d0": -1}, "a bulk copy to global memory begins at (-1, 0): no coordinate may be negative"),
        ({"d1": -8}, "a bulk copy to global memory begins at (0, -8): no coordinate may be negative"),
    ],
)
def test_where_a_box_may_begin(at: dict[str, int], message: str) -> None:
    """What an H200 answers with an illegal instruction."""
    x, y = integers(0, (16, 64), np.float16), aligned((16, 64), np.float16)
    values = {"x": Described(x, (16, 64)), "y": Described(y, (16, 64)), **ORIGIN, **at}
    with pytest.raises(BulkCopyError, match=re.escape(message)):
        launch(program_of(copy_kernel((16, 64), "f16", 128, 16)), 1, values)
