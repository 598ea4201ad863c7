"""wgmma: descriptors and swizzles against a matrix written down element by element."""

from __future__ import annotations

import numpy as np
import pytest

from weft.layouts import DotOperandLayout, NVMMADistributedLayout, NVMMASharedLayout
from weft.targets.meaning import DTYPES
from weft.targets.nvidia import INSTRUCTIONS, Instruction, from_matrix, instruction, to_matrix
from weft.targets.nvidia.wgmma import _chunks, canonical, descriptor, with_columns

from .test_nvidia import Bytes, _random

ENTRIES = [i for i in INSTRUCTIONS.values() if i.name.startswith("wgmma.m64") and i.shape[1] in (8, 64, 256)]


def _stored(memory: Bytes, at: int, matrix: np.ndarray, trans: bool, swizzle: int) -> int:
    """Write a matrix [row, k] tile by tile; its descriptor. Tiles are 8 lines of `swizzle` bytes."""
    lines = np.ascontiguousarray(matrix.T if trans else matrix)
    raw = lines.view(np.uint8).reshape(len(lines), -1)
    tiles_along = max(1, raw.shape[1] // swizzle)
    tile = 8 * swizzle
    for line in range(raw.shape[0]):
        for chunk in range(raw.shape[1] // 16):
            where = (chunk * 16 // swizzle) * tile + (line // 8) * tile * tiles_along
            inside = (chunk * 16 % swizzle // 16) ^ (((line % 8) * swizzle // 128) % (swizzle // 16))
            place = at + where + line % 8 * swizzle + inside * 16
            memory.spaces["shared"][place : place + 16] = raw[line, 16 * chunk : 16 * chunk + 16]
    along, across = tile, tile * tiles_along
    if trans and swizzle == 16:
        along, across = across, along
    return descriptor(at, along, across, swizzle)


def _combinations() -> list[tuple[Instruction, int]]:
    """Entries with swizzles no wider than their lines; narrower lines are parts of wider matrices, tested below."""
    found = []
    for entry in ENTRIES:
        (m, n, k), (ta, tb) = entry.shape, entry.params["trans"]
        size = 32 // k
        shortest = min(n * size if tb else 32, (m * size if ta else 32) if not entry.params["registers"] else 128)
        found += [(entry, swizzle) for swizzle in (16, 32, 64, 128) if swizzle <= shortest]
    return found


@pytest.mark.parametrize(
    "entry,swizzle", _combinations(), ids=lambda x: x.name if isinstance(x, Instruction) else str(x)
)
def test_product_from_shared_memory(entry: Instruction, swizzle: int) -> None:
    rng = np.random.default_rng(0)
    m, n, k = entry.shape
    ta, tb = entry.params["trans"]
    elems = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "tf32": "f32", "s8": "i8"}
    left, right = (elems.get(t, t) for t in entry.params["types"])
    a, b = _random(rng, left, (m, k)), _random(rng, right, (n, k))
    acc = entry.results[0]
    c = _random(rng, acc.elem, (m, n)) if acc.elem != "i32" else rng.integers(-99, 99, (m, n)).astype(np.int32)
    memory = Bytes(1 << 16)
    first = _stored(memory, 0, a, ta, swizzle) if not entry.params["registers"] else None
    second = _stored(memory, 1 << 15, b, tb, swizzle)

    def spread(value: int) -> np.ndarray:
        return np.full((4, 32, 1), value if value < 1 << 63 else value - (1 << 64), np.int64)

    x = spread(first) if first is not None else from_matrix(a[None], entry.operands[0].layout)
    for scale in (0, 1):
        operands = (x, spread(second), from_matrix(c[None], acc.layout), np.full((4, 32, 1), scale, np.int32))
        (got,) = entry.run(*operands, memory=memory)
        want = scale * c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_array_equal(to_matrix(got, acc.layout)[0].astype(np.float64), want.astype(DTYPES[acc.elem]))


@pytest.mark.parametrize("columns", [(128, 64), (16, 8), (64, 64, 32, 8)])
@pytest.mark.parametrize("suffix", ["", ".tb"])
def test_columns_that_are_no_power_of_two(columns: tuple[int, ...], suffix: str) -> None:
    """The registers of the parts, one after the other; each part of B is where the one before ends."""
    rng, total = np.random.default_rng(2), sum(columns)
    memory = Bytes(1 << 16)
    a, b = _random(rng, "f16", (64, 16)), _random(rng, "f16", (total, 16))
    parts = [instruction(f"wgmma.m64n{n}k16.f32.f16.f16{suffix}") for n in columns]
    c = [_random(rng, "f32", (64, n)) for n in columns]

    def spread(value: int) -> np.ndarray:
        return np.full((4, 32, 1), value if value < 1 << 63 else value - (1 << 64), np.int64)

    one = np.full((4, 32, 1), 1, np.int32)
    x, y = (spread(_stored(memory, at, z, t, 16)) for at, z, t in ((0, a, False), (1 << 15, b, bool(suffix))))
    sums = [from_matrix(part[None], entry.results[0].layout) for part, entry in zip(c, parts, strict=True)]
    (got,) = instruction(with_columns(parts[0].name, total)).run(x, y, np.concatenate(sums, 2), one, memory=memory)
    first = 0
    for n, part, entry in zip(columns, c, parts, strict=True):
        own = to_matrix(got[:, :, first // 2 : (first + n) // 2], entry.results[0].layout)[0]
        np.testing.assert_array_equal(own, part + a.astype(np.float32) @ b[first : first + n].astype(np.float32).T)
        first += n


@pytest.mark.parametrize("step", range(4))
def test_a_step_along_k_of_a_swizzled_tile(step: int) -> None:
    """64 x 64 of f16 as NVMMASharedLayout lays it out: the address moves by 32 bytes for each k of 16."""
    rng = np.random.default_rng(1)
    memory = Bytes(1 << 16)
    a, b = rng.integers(-4, 5, (64, 64)).astype(np.float16), rng.integers(-4, 5, (64, 64)).astype(np.float16)
    layout = NVMMASharedLayout(128, 16, 2).to_linear([64, 64])
    offsets = layout.table()
    for at, matrix in ((0, a), (8192, b)):
        flat = np.zeros(64 * 64, np.float16)
        names = list(layout.out_dims)
        strides = {"dim0": 64, "dim1": 1}
        place = layout.apply(
            {d: np.arange(s) for d, s in layout.in_dims.items() if s > 1}
            | {d: 0 for d, s in layout.in_dims.items() if s == 1}
        )
        flat[:] = matrix.ravel()[sum(place[d] * strides[d] for d in names)]
        memory.spaces["shared"][at : at + 8192] = flat.view(np.uint8)
    assert len(offsets) == 64 * 64
    entry = instruction("wgmma.m64n64k16.f32.f16.f16")
    descs = [descriptor(at + 32 * step, 16, 1024, 128) for at in (0, 8192)]
    x, y = (np.full((4, 32, 1), d, np.int64) for d in descs)
    zero = np.zeros((4, 32, 32), np.float32)
    (got,) = entry.run(x, y, zero, np.zeros((4, 32, 1), np.int32), memory=memory)
    part = slice(16 * step, 16 * step + 16)
    np.testing.assert_array_equal(
        to_matrix(got, entry.results[0].layout)[0], a[:, part].astype(np.float32) @ b[:, part].astype(np.float32).T
    )


def test_layouts_are_those_of_the_zoo() -> None:
    for entry in ENTRIES:
        m, n, k = entry.shape
        parent = NVMMADistributedLayout([3, 0], [4, 1], [16, n, k])
        want = parent.to_linear([m, n])
        assert entry.results[0].layout.bases == {d: want.bases[d] for d in ("register", "lane", "warp")}
        if entry.params["registers"]:
            operand = DotOperandLayout(0, parent, entry.operands[0].per_word).to_linear([m, k])
            assert entry.operands[0].layout.bases == {d: operand.bases[d] for d in ("register", "lane", "warp")}


def test_changes_its_accumulator_in_place() -> None:
    _, constraints = instruction("wgmma.m64n8k16.f32.f16.f16").asm()
    assert constraints == "=f,=f,=f,=f,l,l,0,1,2,3,r,~{memory}"
    with pytest.raises(ValueError, match="multiple of 16"):
        descriptor(8, 16, 16)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("swizzle", [16, 32, 64, 128])
def test_the_linear_map_is_what_the_descriptor_says(swizzle: int, trans: bool) -> None:
    rows, k, leading, stride = 64, 16, 8192, 1024
    by_row, by_column = canonical(rows, k, 16, leading, stride, swizzle, trans)
    lines, along = (k, rows * 2) if trans else (rows, k * 2)
    chunks = _chunks(descriptor(0, leading, stride, swizzle), lines, along, not trans)
    for row in range(rows):
        for column in range(k):
            place = 0
            for images, index in ((by_row, row), (by_column, column)):
                for bit, image in enumerate(images):
                    place ^= image * (index >> bit & 1)
            line, byte = (column, 2 * row) if trans else (row, 2 * column)
            assert place == chunks[line, byte // 16] + byte % 16
