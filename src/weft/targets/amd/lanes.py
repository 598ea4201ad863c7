"""Between the lanes of a wave: DPP, through which an instruction reads an operand; swaps and permutations of rows;
ds_swizzle and ds_bpermute, which go through the crossbar of local memory without touching it; readlane.

A row is 16 lanes. An entry with `params["source"]` says by this function which lane each of so many lanes reads:

>>> by_name = {entry.name: entry for entry in lane_instructions()}
>>> by_name["dpp.row_ror.8"].params["source"](64)[:10].tolist()
[8, 9, 10, 11, 12, 13, 14, 15, 0, 1]
>>> by_name["ds_swizzle.xor.17"].params["source"](64)[:3].tolist()
[17, 16, 19]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from ..instruction import Array, Instruction, Operand
from .products import GFX9A, GFX11, GFX950, Arguments, constant

Source: TypeAlias = Callable[[int], Array]

ROW = 16
QUAD_PERM, ROW_ROR, WAVE_ROL, WAVE_ROR = 0x000, 0x120, 0x134, 0x13C
ROW_MIRROR, ROW_HALF_MIRROR, ROW_SHARE, ROW_XMASK = 0x140, 0x141, 0x150, 0x160
"""What a DPP control says, as LLVM and the assembler number them; `row_share` is `row_newbcast` on gfx90a and gfx9x."""


def _word(name: str, constraint: str = "r") -> Operand:
    return Operand(name, "i32", 1, constraint)


def moved(data: Array, source: Array) -> Array:
    """[warp, lane, register] as each lane reads it from the lane that `source` says."""
    wide = np.broadcast_to(source, data.shape)
    return np.take_along_axis(data, wide, axis=1)


def _fixed(
    name: str, text: str, arguments: Arguments, source: Source, since: int, until: int, cost: float
) -> Instruction:
    """An exchange that is the same for all."""

    def run(a: Array) -> tuple[Array, ...]:
        return (moved(a, source(a.shape[1])[None, :, None]),)

    return Instruction(
        name, since, f"llvm.amdgcn.{text}", (_word("a"),), (_word("d"),), run, cost, until=until,
        params={"source": source, "arguments": (("i32", "a"), *arguments), "returns": "i32"},
    )  # fmt: skip


def _dpp(name: str, control: int, within: Callable[[Array], Array], since: int = GFX9A) -> Instruction:
    """A control of DPP by which each lane of a row reads another one of it."""

    def source(lanes: int) -> Array:
        lane = np.arange(lanes)
        return lane // ROW * ROW + within(lane % ROW)

    whole = (*constant(control, 15, 15), *constant(1, type="i1"))  # all rows, all banks of them
    return _fixed(f"dpp.{name}", "mov.dpp.i32", whole, source, since, 0, 1)


def _wave(name: str, control: int, by: int) -> Instruction:
    """All lanes turned by one, which CDNA has."""
    whole = (*constant(control, 15, 15), *constant(1, type="i1"))
    return _fixed(
        f"dpp.{name}", "mov.dpp.i32", whole, lambda lanes: (np.arange(lanes) + by) % lanes, GFX9A, GFX11, 1
    )


def _quad(places: tuple[int, ...]) -> Instruction:
    control = QUAD_PERM | sum(place << 2 * i for i, place in enumerate(places))
    table = np.array(places)
    return _dpp(f"quad_perm.{''.join(map(str, places))}", control, lambda x: x // 4 * 4 + table[x % 4])


def _swizzle(name: str, kept: int, ones: int, flipped: int) -> Instruction:
    """ds_swizzle in the mode of bits: in groups of 32 lanes, and, or, xor of the number within them."""

    def source(lanes: int) -> Array:
        lane = np.arange(lanes)
        return lane & ~31 | (lane & 31 & kept | ones) ^ flipped

    number = constant(flipped << 10 | ones << 5 | kept)
    return _fixed(f"ds_swizzle.{name}", "ds.swizzle", number, source, GFX9A, 0, 4)


def row_pattern(low: Array, high: Array) -> Array:
    """The places within a row that two words of 8 half bytes say: [..., 16]."""
    halves = [x.astype(np.int64)[..., None] >> 4 * np.arange(8) & 15 for x in (low, high)]
    return np.concatenate(halves, axis=-1)


def _permlane(other: bool) -> Instruction:
    """Any lane of the own row, or of the other one of two."""

    def run(a: Array, low: Array, high: Array) -> tuple[Array, ...]:
        lanes = np.arange(a.shape[1])
        places = row_pattern(low[:, 0, :], high[:, 0, :])[:, :, lanes % ROW]  # [warp, register, lane]
        row = lanes // ROW * ROW ^ (ROW if other else 0)
        return (moved(a, np.swapaxes(places + row, 1, 2)),)

    name = "permlanex16" if other else "permlane16"
    arguments: Arguments = (
        ("i32", "a"), ("i32", "a"), ("i32", "low"), ("i32", "high"), *constant(0, 0, type="i1")
    )  # fmt: skip
    return Instruction(
        name, GFX11, f"llvm.amdgcn.{name}.i32", (_word("a"), _word("low"), _word("high")), (_word("d"),), run, 1,
        params={"arguments": arguments, "returns": "i32"},
    )  # fmt: skip


def _swap(width: int) -> Instruction:
    """Odd groups of so many lanes of the first operand change places with even ones of the second."""

    def run(a: Array, b: Array) -> tuple[Array, ...]:
        lanes = np.arange(a.shape[1])
        odd = (lanes // width & 1 == 1)[None, :, None]
        other = (lanes ^ width)[None, :, None]
        return np.where(odd, moved(b, other), a), np.where(odd, b, moved(a, other))

    name = f"permlane{width}.swap"
    return Instruction(
        name, GFX950, f"llvm.amdgcn.{name}", (_word("a"), _word("b")), (_word("d"), _word("e")), run, 1, until=GFX11,
        params={
            "arguments": (("i32", "a"), ("i32", "b"), *constant(0, 0, type="i1")),
            "returns": ("i32", "i32"),
        },
    )  # fmt: skip


def _bpermute(address: Array, a: Array) -> tuple[Array, ...]:
    """Addresses count bytes of a register's lanes."""
    return (moved(a, (address.astype(np.int64) >> 2) % a.shape[1]),)


def _readlane(a: Array, lane: Array) -> tuple[Array, ...]:
    return (moved(a, lane[:, :1].astype(np.int64) % a.shape[1]),)


def lane_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    for places in np.ndindex(4, 4, 4, 4):
        if places != (0, 1, 2, 3):
            yield _quad(places)
    for n in range(1, ROW):
        yield _dpp(f"row_ror.{n}", ROW_ROR + n, lambda x, n=n: (x - n) % ROW)  # type: ignore[misc]
        yield _dpp(f"row_xmask.{n}", ROW_XMASK + n, lambda x, n=n: x ^ n, GFX11)  # type: ignore[misc]
    for n in range(ROW):
        yield _dpp(f"row_share.{n}", ROW_SHARE + n, lambda x, n=n: x * 0 + n)  # type: ignore[misc]
    yield _dpp("row_mirror", ROW_MIRROR, lambda x: x ^ 15)
    yield _dpp("row_half_mirror", ROW_HALF_MIRROR, lambda x: x ^ 7)
    yield _wave("wave_ror.1", WAVE_ROR, -1)
    yield _wave("wave_rol.1", WAVE_ROL, 1)
    for mask in range(1, 32):
        yield _swizzle(f"xor.{mask}", 31, 0, mask)
    for bit in (1, 2, 4, 8, 16):  # what precedes an upper half of lanes, and what follows a lower one
        yield _swizzle(f"before.{bit}", 31 & ~(2 * bit - 1), bit - 1, 0)
        yield _swizzle(f"after.{bit}", 31 & ~(2 * bit - 1), bit, 0)
    yield _permlane(other=False)
    yield _permlane(other=True)
    yield _swap(16)
    yield _swap(32)
    for name in ("held", "held.narrow"):  # of which LLVM does not see what it is; always, or where registers are few
        yield Instruction(
            name, GFX9A, "", (_word("a"),), (_word("d"),), lambda a: (a,), 0,
            params={"arguments": (("i32", "a"),), "returns": "i32"},
        )  # fmt: skip
    for name in ("slice", "slice.narrow"):  # where LLVM's scheduler stops; always, or where registers are few
        yield Instruction(name, GFX9A, "", (), (), tuple, 0, params={"arguments": (), "returns": ()})
    for level in (0, 1):
        yield Instruction(
            f"setprio.{level}", GFX9A, "llvm.amdgcn.s.setprio", (), (), tuple, 0,
            params={"arguments": constant(level, type="i16"), "returns": ()},
        )  # fmt: skip
    yield Instruction(
        "ds_bpermute", GFX9A, "llvm.amdgcn.ds.bpermute", (_word("address"), _word("a")), (_word("d"),), _bpermute, 4,
        params={"arguments": (("i32", "address"), ("i32", "a")), "returns": "i32"},
    )  # fmt: skip
    yield Instruction(
        "readlane", GFX9A, "llvm.amdgcn.readlane.i32", (_word("a"), _word("lane")), (_word("d"),), _readlane, 1,
        params={"arguments": (("i32", "a"), ("i32", "lane")), "returns": "i32"},
    )  # fmt: skip
