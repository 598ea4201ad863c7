"""wgmma.mma_async: four warps multiply matrices of which B, and mostly A, are in shared memory.

Where a matrix lies is said by a descriptor of 64 bits, the same in all lanes: the address of its first element, two
distances and a swizzle, all in units of 16 bytes:

    bits 0-13   the address            bits 32-45  the stride distance
    bits 16-29  the leading distance   bits 62-63  the swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32

Seen in chunks of 16 bytes (T elements), a matrix of rows along M or N whose columns are K is laid out as follows; these
are the canonical layouts of CUTLASS, written as coordinate -> distance.

    K-major (K contiguous)     row r, chunk c    (r / 8) * stride + (r % 8) * pitch + c * 16
                               pitch is the swizzle's width; without one it is 16, and chunks are c * leading apart
    M-major (transposed)       chunk m, column k (m % n) * 16 + (m / n) * leading + (k % 8) * pitch + (k / 8) * stride
                               n is the swizzle's width in chunks; without one, leading and stride change places

A swizzle xors the chunk's number within its row of 128 bytes with the row's, in as many bits as it has: bits 4-6 of the
address with bits 7-9 for 128 bytes.

A product has any multiple of 8 columns up to 256. Tiles of a layout have a power of two of them; the others are for
several tiles side by side (`lower/nvidia/warpgroup.py`), and no choice among `products`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from weft.layouts import LinearLayout, NVMMADistributedLayout
from weft.machines import Machine

from ..instruction import BITS, Array, Instruction, Memory, Operand
from ..meaning import DTYPES, from_matrix, multiply, tf32, to_matrix
from .mma import fragment

__all__ = ["canonical", "descriptor", "wgmma_instructions", "with_columns"]

WIDTHS = {0: 16, 1: 128, 2: 64, 3: 32}
MODES = {16: 0, 128: 1, 64: 2, 32: 3}
COLUMNS = tuple(range(8, 257, 8))
WIDE = 32
"""From so many columns on, products of integers have multiples of 16."""
# accumulator, operand types as PTX names them, element types, K
KINDS: list[tuple[str, tuple[str, str], tuple[str, str], int]] = [
    ("f32", ("f16", "f16"), ("f16", "f16"), 16),
    ("f16", ("f16", "f16"), ("f16", "f16"), 16),
    ("f32", ("bf16", "bf16"), ("bf16", "bf16"), 16),
    ("f32", ("tf32", "tf32"), ("f32", "f32"), 8),
    ("f32", ("e4m3", "e4m3"), ("f8E4M3FN", "f8E4M3FN"), 32),
    ("f32", ("e5m2", "e5m2"), ("f8E5M2", "f8E5M2"), 32),
    ("f32", ("e4m3", "e5m2"), ("f8E4M3FN", "f8E5M2"), 32),
    ("f32", ("e5m2", "e4m3"), ("f8E5M2", "f8E4M3FN"), 32),
    ("i32", ("s8", "s8"), ("i8", "i8"), 32),
]


def descriptor(address: int, leading: int, stride: int, swizzle: int = 16) -> int:
    """The descriptor of a matrix; `swizzle` is 16 (none), 32, 64 or 128 bytes, the others are bytes.

    >>> hex(descriptor(0x400, 16, 1024, 128))
    '0x4000004000010040'
    """
    for name, value in (("address", address), ("leading", leading), ("stride", stride)):
        if value % 16 or not 0 <= value < 1 << 18:
            raise ValueError(f"{name} must be a multiple of 16 below {1 << 18}, got {value}")
    return address >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | MODES[swizzle] << 62


def canonical(
    rows: int, k: int, bits: int, leading: int, stride: int, swizzle: int = 16, trans: bool = False
) -> tuple[list[int], list[int]]:
    """The bytes at which rows 1, 2, 4, ... and columns 1, 2, 4, ... of a matrix lie; those of others are their xor.

    It is what a descriptor with these distances says, for distances that are powers of two, as a linear map.

    >>> canonical(16, 16, 16, 16, 1024, 128)          # a swizzle of 128 bytes, K contiguous: row 1 is xored with 16
    ([144, 288, 576, 1024], [2, 4, 8, 16])
    """
    size, pitch = bits // 8, swizzle
    along, across = (rows, k) if trans else (k, rows)  # contiguous, and line after line
    far, near = (stride, leading) if trans and swizzle == 16 else (leading, stride)
    inside = [size << i for i in range((along - 1).bit_length())]
    for i, place in enumerate(inside):
        if place >= pitch:
            inside[i] = place // pitch * far
    lines = [pitch << i if i < 3 else near << (i - 3) for i in range((across - 1).bit_length())]

    def swizzled(x: int) -> int:
        return x ^ (x >> 3 & (swizzle // 16 - 1) << 4)

    pair = [swizzled(x) for x in inside], [swizzled(x) for x in lines]
    return pair if trans else pair[::-1]


@lru_cache(maxsize=1024)
def _chunks(desc: int, rows: int, bytes_along: int, major: bool) -> Array:
    """The address of each chunk: [row, chunk along K], or for M-major [column of K, chunk along M]."""
    start, leading, stride = ((desc >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    width = WIDTHS[desc >> 62 & 3]
    if major:
        first, second = np.indices((rows, bytes_along // 16))
        inside = second * (leading if width == 16 else 16)
        address = first // 8 * stride + first % 8 * width + inside
    else:
        first, second = np.indices((rows, bytes_along // 16))
        each = width // 16
        far, near = (stride, leading) if width == 16 else (leading, stride)
        address = second % each * 16 + second // each * far + first % 8 * width + first // 8 * near
    address = address + start
    return np.asarray(address ^ (address >> 3 & (width // 16 - 1) << 4))


def _fetch(memory: Memory, desc: Array, rows: int, k: int, elem: str, trans: bool) -> Array:
    """The matrices [group, rows, k] that the descriptors of groups of four warps name."""
    groups, size = len(desc), BITS[elem] // 8
    lines, along = (k, rows * size) if trans else (rows, k * size)
    address = np.stack([_chunks(int(d) & (1 << 64) - 1, lines, along, not trans) for d in desc])
    number = lines * along // 16
    times = -(-number // 128)  # the lanes of four warps take a chunk each, several times
    chunks = np.zeros((groups, times * 128), np.int64)
    chunks[:, :number] = address.reshape(groups, -1)

    def shared_out(x: Array) -> Array:
        """[group, chunk] as [time * group * warp, lane]."""
        return np.swapaxes(x.reshape(-1, times, 128), 0, 1).reshape(-1, 32)

    active = np.broadcast_to(np.arange(times * 128) < number, chunks.shape)
    fetched = memory.read("shared", shared_out(chunks), 16, shared_out(active))
    data = np.swapaxes(fetched.reshape(times, groups, 128, 16), 0, 1).reshape(groups, -1, 16)[:, :number]
    matrix = np.ascontiguousarray(data).reshape(groups, lines, along).view(DTYPES[elem])
    return np.swapaxes(matrix, 1, 2) if trans else matrix


def _with_warps(layout: LinearLayout) -> LinearLayout:
    """Four warps, 16 rows each."""
    return layout * LinearLayout.identity_1d(4, "warp", "dim0")


@lru_cache
def _sums(n: int) -> LinearLayout:
    """Of so many columns of sums: each 8 are in registers of their own."""
    return _with_warps(fragment("dim0", 16, "dim1", n, 2))


@lru_cache
def _left(k: int, bits: int) -> LinearLayout:
    """Of a left operand in registers."""
    return _with_warps(fragment("dim0", 16, "dim1", k, 32 // bits))


def _entry(
    acc: str, names: tuple[str, str], elems: tuple[str, str], n: int, k: int, registers: bool, trans: tuple[bool, bool]
) -> Instruction:
    ptx_acc = {"i32": "s32"}.get(acc, acc)
    word = {"f32": "f", "f16": "r", "i32": "r"}[acc]
    is_tile = n & (n - 1) == 0
    c_layout = _sums(n) if is_tile else None
    a_layout = _left(k, BITS[elems[0]])
    a = Operand("a", elems[0], k // 2, "r", a_layout) if registers else Operand("a", "i64", 1, "l")
    sixteen = BITS[elems[0]] == 16
    flags = "" if acc == "i32" else ", 1, 1"
    if sixteen:
        flags += "".join(f", {int(t)}" for t in (trans[1:] if registers else trans))
    shape = f"m64n{n}k{k}"
    suffix = (".ra" if registers else "") + (".ta" if trans[0] else "") + (".tb" if trans[1] else "")
    product = f"wgmma.mma_async.sync.aligned.{shape}.{ptx_acc}.{names[0]}.{names[1]}"

    def named(warps: Sequence[int], machine: Machine) -> NVMMADistributedLayout:
        return NVMMADistributedLayout([3, 0], list(warps), [16, n, k])

    return Instruction(
        name=f"wgmma.{shape}.{ptx_acc}.{names[0]}.{names[1]}{suffix}",
        since=90,
        until=100,
        text="{ .reg .pred p; setp.ne.b32 p, <scale>, 0; " + product + " <d*>, <a>, <b>, p" + flags + "; }",
        operands=(
            a,
            Operand("b", "i64", 1, "l"),
            Operand("c", acc, n // 2, word, c_layout, tied="d"),
            Operand("scale", "i32", 1, "r"),
        ),
        results=(Operand("d", acc, n // 2, word, c_layout),),
        semantics=_semantics(acc, elems, n, k, registers, trans, names[0] == "tf32"),
        fetch=_fetching(elems, n, k, trans),
        cost=max(16.0, n / 2),
        touches="shared",
        width=16,
        version="8.0",
        params={
            "shape": (64, n, k),
            "accumulator": acc,
            "types": names,
            "warps": 4,
            "registers": registers,
            "trans": trans,
            **({"multiplies": elems, "named": named} if is_tile else {}),
        },
    )


def _fetching(
    elems: tuple[str, str], n: int, k: int, trans: tuple[bool, bool]
) -> Callable[..., tuple[Array | None, Array]]:
    def fetch(memory: Memory, b: Array, a: Array | None = None) -> tuple[Array | None, Array]:
        left = None if a is None else _fetch(memory, a[::4, 0, 0], 64, k, elems[0], trans[0])
        return left, np.swapaxes(_fetch(memory, b[::4, 0, 0], n, k, elems[1], trans[1]), 1, 2)

    return fetch


def _semantics(
    acc: str, elems: tuple[str, str], n: int, k: int, registers: bool, trans: tuple[bool, bool], cut: bool
) -> Callable[..., tuple[Array, ...]]:
    fetch = _fetching(elems, n, k, trans)

    def run(memory: Memory, a: Array, b: Array, c: Array, scale: Array) -> tuple[Array, ...]:
        left, right = fetch(memory, b, None if registers else a)
        if left is None:
            left = to_matrix(a, _left(k, BITS[elems[0]]))
        if cut:
            left, right = tf32(left), tf32(right)
        eights = [to_matrix(x, _sums(8)) for x in np.split(c, n // 8, axis=2)]
        before = np.where(scale[::4, :1, :1] != 0, np.concatenate(eights, axis=2), 0).astype(c.dtype)
        total = multiply(left, right, before, acc)
        return (np.concatenate([from_matrix(x, _sums(8)) for x in np.split(total, n // 8, axis=2)], axis=2),)

    return run


def with_columns(name: str, columns: int) -> str:
    """The name of the instruction of so many columns that is otherwise like one of another name.

    >>> with_columns("wgmma.m64n128k16.f32.f16.f16.tb", 192)
    'wgmma.m64n192k16.f32.f16.f16.tb'
    """
    return re.sub(r"(?<=m64n)\d+", str(columns), name, count=1)


def wgmma_instructions() -> Iterator[Instruction]:
    """All entries of wgmma.mma_async, and what orders them."""
    for acc, names, elems, k in KINDS:
        for n in COLUMNS:
            if acc == "i32" and n >= WIDE and n % 16:
                continue
            sides = [(False, False), (False, True), (True, False), (True, True)] if k == 16 else [(False, False)]
            for trans in sides:
                yield _entry(acc, names, elems, n, k, False, trans)
                if not trans[0]:
                    yield _entry(acc, names, elems, n, k, True, trans)
    pending = Operand("pending", "i32", 1, "n")
    for name, text, operands in (
        ("wgmma.fence", "wgmma.fence.sync.aligned;", ()),
        ("wgmma.commit_group", "wgmma.commit_group.sync.aligned;", ()),
        ("wgmma.wait_group", "wgmma.wait_group.sync.aligned <pending>;", (pending,)),
    ):
        yield Instruction(name, 90, text, operands, until=100, touches="sync", version="8.0")
