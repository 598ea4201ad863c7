"""tensormap.*: tensor maps that the device makes, field by field, in shared memory.

A map is made in 128 zeroed bytes of shared memory, then a warp copies it to global memory, where bulk copies find it;
who uses it acquires it first. How the hardware packs the fields is not published, and no program may look: the
simulator has a packing of its own, `FIELDS`, which `encode` and `decode` know.

>>> made = TensorMap(4096, 2, (100, 10), (208,), (64, 8), 128, nan=True, dtype="f16")
>>> decode(encode(made)) == made
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..instruction import Array, Instruction, Memory, Operand
from .bulk import ELEMENT_TYPES, SWIZZLES, TensorMap

__all__ = ["FIELDS", "decode", "encode", "tensormap_instructions"]

BYTES = 128
FIELDS: dict[str, tuple[int, int, int]] = {
    "global_address": (0, 8, 1),
    "global_dim": (8, 4, 5),
    "global_stride": (32, 8, 4),
    "box_dim": (64, 4, 5),
    "element_stride": (84, 4, 5),
    "rank": (104, 4, 1),
    "elemtype": (108, 4, 1),
    "interleave_layout": (112, 4, 1),
    "swizzle_mode": (116, 4, 1),
    "fill_mode": (120, 4, 1),
}
"""Of each field: where it begins, bytes of an entry, how many entries."""
CORNERS, IMAGES = 72, 124
"""Where a map for images, whose box has two sizes, has the corners of its bounding box, and how many pairs they are."""
IMMEDIATE = ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
REPLACED = ("u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
"""The types of elements in the order in which `tensormap.replace` numbers them, which is not that of the driver.

Source: PTX ISA, tensormap.replace, the table of values for .elemtype."""
SIZES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u64": 8, "i64": 8, "f64": 8}


def encode(map: TensorMap) -> bytes:
    """A map as 128 bytes, packed as this simulator has it."""
    raw = np.zeros(BYTES, np.uint8)

    def put(field: str, *values: int) -> None:
        at, size, _ = FIELDS[field]
        for i, value in enumerate(values):
            raw[at + i * size : at + (i + 1) * size] = np.array([value], f"<u{size}").view(np.uint8)

    put("global_address", map.address)
    put("global_dim", *map.shape)
    put("global_stride", *map.strides)
    put("box_dim", *map.box)
    put("element_stride", *map.steps)
    put("rank", len(map.shape) - 1)
    dtype = map.dtype or {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[map.element_bytes]
    put("elemtype", ELEMENT_TYPES.index(dtype))
    put("swizzle_mode", SWIZZLES.index(map.swizzle))
    put("fill_mode", int(map.nan))
    raw[IMAGES] = len(map.corners)
    for i, pair in enumerate(map.corners):
        raw[CORNERS + 4 * i : CORNERS + 4 * i + 4] = np.array(pair, "<i2").view(np.uint8)
    return raw.tobytes()


def decode(raw: bytes) -> TensorMap:
    """The map in 128 bytes. ValueError where they are none that a copy could use."""
    data = np.frombuffer(raw, np.uint8)

    def get(field: str) -> list[int]:
        at, size, count = FIELDS[field]
        return [int(x) for x in data[at : at + size * count].copy().view(f"<u{size}")]

    (rank,), (kind,), (mode,), (fill,) = (get(f) for f in ("rank", "elemtype", "swizzle_mode", "fill_mode"))
    if rank > 4 or kind >= len(ELEMENT_TYPES) or mode >= len(SWIZZLES) or fill > 1:
        raise ValueError("these 128 bytes are no tensor map")
    rank += 1
    if not any(data):
        raise ValueError("these 128 bytes are zero: no tensor map was written here")
    dtype, images = ELEMENT_TYPES[kind], int(data[IMAGES])
    corners = data[CORNERS : CORNERS + 4 * images].copy().view("<i2").reshape(-1, 2).tolist()
    return TensorMap(
        get("global_address")[0],
        SIZES.get(dtype, 4),
        tuple(get("global_dim")[:rank]),
        tuple(get("global_stride")[: rank - 1]),
        tuple(get("box_dim")[: 2 if images else rank]),
        SWIZZLES[mode],
        tuple(get("element_stride")[:rank]),
        bool(fill),
        dtype,
        tuple((low, high) for low, high in corners),
    )


_NUMBERS = np.array([ELEMENT_TYPES.index(name) for name in REPLACED])


def _put(field: str) -> Callable[..., tuple[Array, ...]]:
    start, size, count = FIELDS[field]

    def run(memory: Memory, address: Array, *rest: Array) -> tuple[Array, ...]:
        *index, value, active = rest
        place = address[:, :, 0] + start
        if count > 1:
            place = place + size * index[0][:, :, 0]
        if field == "elemtype":
            value = _NUMBERS[np.clip(value, 0, len(_NUMBERS) - 1)]
        data = np.ascontiguousarray(value[:, :, :1].astype(f"<i{size}")).view(np.uint8)
        memory.write("shared", place, data.reshape(*place.shape, size), active[:, :, 0].astype(np.bool_))
        return ()

    return run


def _copied(memory: Memory, to: Array, source: Array, active: Array) -> tuple[Array, ...]:
    """The lanes of a warp copy four bytes each."""
    lane = np.arange(to.shape[1]) * 4
    takes_part = active[:, :, 0].astype(np.bool_)
    data = memory.read("shared", source[:, :, 0] + lane, 4, takes_part)
    memory.write("global", to[:, :, 0] + lane, data, takes_part)
    return ()


def tensormap_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    address, active = Operand("address", "i32", 1, "r"), Operand("active", "i1", 1, "b")
    index = Operand("index", "i32", 1, "n")
    for field, (_, size, count) in FIELDS.items():
        elem, constraint = ("i64", "l") if size == 8 else ("i32", "n" if field in IMMEDIATE else "r")
        value = Operand("value", elem, 1, constraint)
        which = "<index>, " if count > 1 else ""
        yield Instruction(
            name=f"tensormap.replace.{field}",
            since=90,
            until=100,
            text=f"@<active> tensormap.replace.tile.{field}.shared::cta.b1024.b{8 * size} [<address>], {which}<value>;",
            operands=(address, *((index,) if count > 1 else ()), value, active),
            semantics=_put(field),
            cost=4,
            touches="shared",
            width=4,
            stores=True,
            version="8.3",
        )
    to = Operand("to", "i64", 1, "l")
    release = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
    yield Instruction(
        name="tensormap.publish",
        since=90,
        text=f"@<active> {release} [<to>], [<source>], 128;",
        operands=(to, Operand("source", "i32", 1, "r"), active),
        semantics=_copied,
        cost=4,
        touches="copy",
        width=4,
        stores=True,
        version="8.3",
    )
    yield Instruction(
        name="tensormap.prefetch",
        since=90,
        text="@<active> prefetch.tensormap [<address>];",
        operands=(Operand("address", "i64", 1, "l"), active),
        touches="sync",
        version="8.0",
    )
    yield Instruction(
        name="tensormap.acquire",
        since=90,
        text="fence.proxy.tensormap::generic.acquire.gpu [<address>], 128;",
        operands=(Operand("address", "i64", 1, "l"),),
        touches="sync",
        version="8.3",
    )
