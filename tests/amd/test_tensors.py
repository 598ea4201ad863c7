"""Copies of gfx1250 past registers: `tdm` by the tensor data mover, `async_copy` lane by lane."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.sim
from weft import gluon
from weft.base import CompilationError, LaunchError, LayoutError, Unsupported
from weft.gluon import language as gl
from weft.gluon.amd.gfx1250 import TensorDescriptor
from weft.targets.amd import Tile

amd = gl.amd.gfx1250
PLAIN = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
PADDED = gl.PaddedSharedLayout.with_identity_for([[128, 8]], [64, 64], [1, 0])
ROWS = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
ONE_WARP = gl.BlockedLayout([1, 8], [4, 8], [1, 1], [1, 0])
TARGET = "sim:hip:gfx1250"


@gluon.jit
def doubled(x, y, M, N, R, C, S: gl.constexpr, L: gl.constexpr, PRED: gl.constexpr):
    source = amd.tdm.make_tensor_descriptor(x, [M, N], [N, 1], [64, 64], S)
    target = amd.tdm.make_tensor_descriptor(y, [M, N], [N, 1], [64, 64], PLAIN)
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], S)
    out = gl.allocate_shared_memory(gl.float16, [64, 64], PLAIN)
    memory.store(gl.full((64, 64), 7, gl.float16, L))
    amd.tdm.async_load(source, [R, C], memory, pred=PRED)
    amd.tdm.async_wait(0)
    out.store(memory.load(L) * 2)
    amd.tdm.async_store(target, [R, C], out)
    amd.tdm.async_wait(0)


@pytest.mark.parametrize(
    ("layout", "row", "column", "warps"),
    [(PLAIN, 0, 0, 4), (PLAIN, 64, 40, 4), (PADDED, 50, 64, 4), (PLAIN, 30, 8, 1)],
)
@pytest.mark.parametrize("copies", ["earliest", "latest"])
def test_a_block_there_and_back(layout: Any, row: int, column: int, warps: int, copies: str) -> None:
    """Also one that sticks out of the tensor: zeros come, and nothing goes."""
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, (100, 96)).astype(np.float16)
    y = np.full_like(x, 3)
    with weft.target(TARGET), weft.sim.options(copies=copies):
        doubled[(1,)](x, y, 100, 96, row, column, layout, ROWS if warps == 4 else ONE_WARP, True, num_warps=warps)
    want = np.full_like(x, 3)
    part = np.s_[row : row + 64, column : column + 64]
    want[part] = 2 * x[part]
    np.testing.assert_array_equal(y, want)


def test_a_predicate_that_does_not_hold() -> None:
    """Nothing is copied: what was there stays."""
    x, y = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)
    with weft.target(TARGET):
        doubled[(1,)](x, y, 64, 64, 0, 0, PLAIN, ROWS, False, num_warps=4)
    assert (y == 14).all()


@gluon.jit
def copied(x, y, SIZES: gl.constexpr, AT: gl.constexpr, BLOCK: gl.constexpr, S: gl.constexpr):
    source = amd.tdm.make_tensor_descriptor(x, SIZES, _strides(SIZES), BLOCK, S)
    target = amd.tdm.make_tensor_descriptor(y, SIZES, _strides(SIZES), BLOCK, S)
    memory = gl.allocate_shared_memory(x.dtype.element_ty, BLOCK, S)
    amd.tdm.async_load(source, AT, memory)
    amd.tdm.async_wait(0)
    amd.tdm.async_store(target, AT, memory)
    amd.tdm.async_wait(0)


@gluon.constexpr_function
def _strides(sizes):  # type: ignore[no-untyped-def]
    return [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]


@pytest.mark.parametrize(
    ("elem", "sizes", "at", "block", "warps"),
    [
        (np.float32, (300,), (100,), (256,), 4),
        (np.int8, (5, 100), (3, 64), (2, 64), 4),  # two warps for each row
        (np.int16, (2, 2), (0, 0), (1, 2), 4),  # two warps have nothing to do
        (np.int64, (5, 6, 40), (1, 4, 8), (2, 4, 32), 2),
        (np.float16, (3, 6, 5, 10, 72), (1, 2, 3, 4, 8), (2, 4, 2, 8, 64), 4),
    ],
)
def test_tensors_of_other_ranks(elem: Any, sizes: Any, at: Any, block: Any, warps: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, sizes).astype(elem)
    y = np.zeros_like(x)
    layout = gl.SwizzledSharedLayout(1, 1, 1, list(reversed(range(len(sizes)))))
    with weft.target(TARGET):
        copied[(1,)](x, y, sizes, at, block, layout, num_warps=warps)
    part = tuple(np.s_[a : a + b] for a, b in zip(at, block, strict=True))
    np.testing.assert_array_equal(y[part], x[part])
    y[part] = 0
    assert not y.any()


@gluon.jit
def hasty(x, y, WAIT: gl.constexpr, AGAIN: gl.constexpr, END: gl.constexpr):
    source = amd.tdm.make_tensor_descriptor(x, [64, 64], [64, 1], [64, 64], PLAIN)
    target = amd.tdm.make_tensor_descriptor(y, [64, 64], [64, 1], [64, 64], PLAIN)
    first = gl.allocate_shared_memory(gl.float16, [64, 64], PLAIN)
    second = gl.allocate_shared_memory(gl.float16, [64, 64], PLAIN)
    amd.tdm.async_load(source, [0, 0], first)
    amd.tdm.async_load(source, [0, 0], second)
    amd.tdm.async_wait(WAIT)
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, ROWS))[:, None] * 64
    gl.store(y + rows + gl.arange(0, 64, layout=gl.SliceLayout(0, ROWS))[None, :], first.load(ROWS))
    amd.tdm.async_wait(0)
    if END:
        amd.tdm.async_store(target, [0, 0], second)
        if AGAIN:
            second.store(gl.full((64, 64), 0, gl.float16, ROWS))
            amd.tdm.async_wait(0)


@pytest.mark.parametrize(
    ("wait", "again", "end", "found"),
    [
        (1, False, False, ""),  # the copies of a warp end in their order
        (2, False, False, "reads byte .* of shared memory"),
        (1, False, True, "a copy by the tensor data mover that is never waited for may be in flight when"),
        (1, True, True, "writes byte .* of shared memory while it is read asynchronously"),
    ],
)
def test_what_is_not_waited_for_is_found(wait: int, again: bool, end: bool, found: str) -> None:
    x, y = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)
    with weft.target(TARGET):
        if not found:
            hasty[(1,)](x, y, wait, again, end)
            assert (y == 1).all()
            return
        with pytest.raises(weft.sim.SimulationError, match=found):
            hasty[(1,)](x, y, wait, again, end)


def _compiled(kernel: Any, types: dict[str, str], constants: dict[str, Any], target: str = "hip:gfx1250") -> str:
    return str(weft.compile(weft.ASTSource(kernel, types, constants), target).asm["amdgcn"])


TYPES = {"x": "*fp16", "y": "*fp16", **dict.fromkeys("MNRC", "i32")}


def test_code() -> None:
    """The instructions of Triton 3.6.0, which has one load, one store and two waits too."""
    text = _compiled(doubled, TYPES, {"S": PADDED, "L": ROWS, "PRED": True})
    assert re.findall(r"tensor_\w+|s_wait_tensorcnt \w+", text) == [
        "tensor_load_to_lds", "s_wait_tensorcnt 0x0", "tensor_store_from_lds", "s_wait_tensorcnt 0x0"
    ]  # fmt: skip
    sizes = (3, 6, 5, 10, 72)
    constants = {"SIZES": sizes, "AT": (1, 2, 3, 4, 8), "BLOCK": (2, 4, 2, 8, 64)}
    layout = gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    text = _compiled(copied, {"x": "*fp16", "y": "*fp16"}, {**constants, "S": layout})
    assert re.search(r"tensor_load_to_lds s\[\d+:\d+\], s\[\d+:\d+\], s\[\d+:\d+\], s\[\d+:\d+\]", text)


def test_a_descriptor_as_triton_fills_it_in() -> None:
    """Of 64 x 64 f16 in [[128, 8]] at row 7, column 8 of 100 x 200, second warp of four: read off its LLVM IR."""
    second = [122748928, (200 - 8) << 16, (100 - 23) << 16, 4194304, 16, 200, 0, 0]
    tile = Tile.decoded([1, 2176, 1 << 20, -(1 << 31)], second)
    assert (tile.sizes, tile.tensor, tile.strides, tile.gap) == ((64, 16), (192, 77), (1, 200), (256, 16))
    assert tile.elements()[2][[0, 127, 128]].tolist() == [2176, 2430, 2448]


@gluon.jit
def in_turns(x, y, n, L: gl.constexpr, S: gl.constexpr):
    rows, columns = gl.arange(0, 64, layout=gl.SliceLayout(1, L)), gl.arange(0, 64, layout=gl.SliceLayout(0, L))
    at = rows[:, None] * 64 + columns[None, :]
    memory = gl.allocate_shared_memory(gl.float16, [2, 64, 64], S)
    x = gl.multiple_of(x, 16)
    amd.async_copy.global_to_shared(memory.index(0), x + at, mask=rows[:, None] < n)
    amd.async_copy.commit_group()
    amd.async_copy.global_to_shared(memory.index(1), x + 4096 + at, mask=rows[:, None] < n)
    amd.async_copy.commit_group()
    amd.async_copy.wait_group(1)
    first = memory.index(0).load(L)
    amd.async_copy.wait_group(0)
    gl.store(y + at, first + memory.index(1).load(L))


@pytest.mark.parametrize("layout", [gl.SwizzledSharedLayout(8, 1, 8, [1, 0]), PADDED])
def test_asynchronous_copies(layout: Any) -> None:
    """16 bytes of a lane to wherever it says: swizzles and gaps within a warp are no matter."""
    x = np.arange(8192, dtype=np.float32).astype(np.float16)
    y = np.zeros(4096, np.float16)
    with weft.target(TARGET):
        in_turns[(1,)](x, y, 40, ROWS, layout, num_warps=4)
    want = np.where(np.arange(4096) < 40 * 64, x[:4096] + x[4096:], 0)
    np.testing.assert_array_equal(y, want)
    text = _compiled(in_turns, {"x": "*fp16", "y": "*fp16", "n": "i32"}, {"L": ROWS, "S": layout})
    assert text.count("global_load_async_to_lds_b128") == 8
    assert re.findall(r"s_wait_asynccnt (\w+)", text) == ["0x4", "0x0"]


def test_what_is_refused() -> None:
    swizzled = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    with pytest.raises(CompilationError, match="a swizzled layout must have a max_phase of 1"):
        _compiled(doubled, TYPES, {"S": swizzled, "L": ROWS, "PRED": True})
    with pytest.raises(LayoutError, match="copies blocks that lie row by row in shared memory"):
        _compiled(doubled, TYPES, {"S": gl.SwizzledSharedLayout(1, 1, 1, [0, 1]), "L": ROWS, "PRED": True})
    with pytest.raises(LayoutError, match="leaves one kind of gap, after 8 to 1024 bytes"):
        wide = gl.PaddedSharedLayout.with_identity_for([[1024, 8]], [64, 64], [1, 0])
        _compiled(doubled, TYPES, {"S": wide, "L": ROWS, "PRED": True})
    with pytest.raises(Unsupported, match="the instruction tensor_load_to_lds is not supported on .*gfx1201") as raised:
        _compiled(doubled, TYPES, {"S": PLAIN, "L": ROWS, "PRED": True}, "hip:gfx1201")
    assert raised.value.hint == "it works on hip:gfx1250"
    with pytest.raises(Unsupported, match="out of a PaddedSharedLayout, as tensor_store_from_lds skips no gaps"):
        constants = {"SIZES": (64, 64), "AT": (0, 0), "BLOCK": (64, 64), "S": PADDED}
        _compiled(copied, {"x": "*fp16", "y": "*fp16"}, constants)
    with pytest.raises(Unsupported, match="global_store_async_from_lds"):
        amd.async_copy.shared_to_global()


@gluon.jit
def given(source, target, R, C, PRED: gl.constexpr, L: gl.constexpr):
    """Descriptors of the host, also in a function that is called."""
    memory = gl.allocate_shared_memory(source.dtype, source.block_shape, source.layout)
    out = gl.allocate_shared_memory(target.dtype, target.block_shape, target.layout)
    memory.store(gl.full((64, 64), 7, gl.float16, L))
    fetch(source, memory, R, C, PRED)
    out.store(memory.load(L) * 2 + (source.shape[0] + source.strides[0]).to(gl.float16))
    amd.tdm.async_store(target, [R, C], out)
    amd.tdm.async_wait(0)


@gluon.jit
def fetch(source, memory, R, C, PRED: gl.constexpr):
    amd.tdm.async_load(source, [R, C], memory, pred=PRED)
    amd.tdm.async_wait(0)


@pytest.mark.parametrize("layout", [PLAIN, PADDED])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (50, 40)])
def test_descriptors_of_the_host(layout: Any, row: int, column: int) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (100, 96)).astype(np.float16)
    y = np.full_like(x, 3)
    with weft.target(TARGET):
        source, target = (TensorDescriptor.from_tensor(a, [64, 64], b) for a, b in ((x, layout), (y, PLAIN)))
        given[(1,)](source, target, row, column, True, ROWS, num_warps=4)
    want = np.full_like(x, 3)
    part = np.s_[row : row + 64, column : column + 64]
    want[part] = 2 * x[part] + 196
    np.testing.assert_array_equal(y, want)


@gluon.jit
def chosen(source, target, n, L: gl.constexpr):
    memory = gl.allocate_shared_memory(source.dtype, source.block_shape, source.layout)
    desc = source
    if n > 3:
        desc = target
    amd.tdm.async_load(desc, [0, 0], memory)
    amd.tdm.async_wait(0)


def test_a_descriptor_of_the_host_in_a_signature() -> None:
    """Handed over as pointer, padding, sizes and strides: 8 bytes each."""
    kind = f"tensordesc<fp16[64,64],{PLAIN!r}>"
    types = {"source": kind, "target": kind, "R": "i32", "C": "i32"}
    made = weft.compile(weft.ASTSource(given, types, {"PRED": True, "L": ROWS}), "hip:gfx1250")
    assert len(re.findall("tensor_load_to_lds|tensor_store_from_lds", str(made.asm["amdgcn"]))) == 2
    arguments = made.metadata.taken["arguments"]
    assert [(a[0], a[1]) for a in arguments] == [*((8 * i, 8) for i in range(12)), (96, 4), (100, 4)]
    with pytest.raises(Unsupported, match="a tensor descriptor that a loop or a branch chooses"):
        _compiled(chosen, {"source": kind, "target": kind, "n": "i32"}, {"L": ROWS})


@pytest.mark.parametrize(
    ("layout", "padding", "said"),
    [
        (gl.SwizzledSharedLayout(8, 1, 8, [1, 0]), "zero", "a max_phase of 1"),
        (gl.NVMMASharedLayout(128, 16), "zero", "must be a PaddedSharedLayout or a SwizzledSharedLayout"),
        (PLAIN, "nan", 'the padding of a tensor descriptor for gfx1250 is "zero"'),
    ],
)
def test_descriptors_of_the_host_that_cannot_be(layout: Any, padding: str, said: str) -> None:
    x = np.zeros((64, 64), np.float16)
    with pytest.raises(LaunchError, match=said):
        TensorDescriptor(x, [64, 64], [64, 1], [64, 64], layout, padding)
