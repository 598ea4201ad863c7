"""cp.async.bulk.tensor: one thread has a box of a tensor copied between global and shared memory.

A tensor map (128 bytes, made by the host or by tensormap.py) says where the tensor lies, how large it and the box are,
and how the box is swizzled in shared memory; the instruction gives the coordinates of the box's first element, the
innermost first. Elements outside of the tensor read as zero, or as NaN where the map says so, and are not written. A
load completes on an mbarrier, by bytes, those outside included; stores and reductions complete in groups of the thread.

A map for images (im2col) is of a tensor of channels, pixels (in one to three dimensions) and images, and a load takes
some channels of so many pixels, one after the other: along a row, then from row to row and from image to image, within
a bounding box that is the image with its corners moved. So a load for one place of a filter is the box of the output's
pixels, and offsets, the same for all of them, say which place that is.

>>> box = TensorMap(0, 2, (100, 10), (208,), (64, 8), 128)
>>> box.bytes, [int(x) for x in box.offsets()[1, :10:8]]          # in row 1 chunks 0 and 1 have changed places
(1024, [144, 128])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..instruction import BITS, Array, Instruction, Operand

__all__ = [
    "CORNERS",
    "ELEMENT_TYPES",
    "MOST_PIXELS",
    "REDUCTIONS",
    "SWIZZLES",
    "TensorMap",
    "bulk_instructions",
    "map_of",
    "map_of_parts",
]

SWIZZLES = (16, 32, 64, 128)
"""The swizzle modes by their bytes, in the order of their numbers; 16 is none."""
ELEMENT_TYPES = (
    "u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz",
)  # fmt: skip
"""What a map calls the types of elements, in the order of their numbers."""
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
CORNERS = {3: (-(1 << 15), (1 << 15) - 1), 4: (-128, 127), 5: (-16, 15)}
"""What the corners of a bounding box may be, by the dimensions of the tensor (cuTensorMapEncodeIm2col)."""
MOST_PIXELS = 1024
"""Pixels that one load of images takes."""
MOST_SIZE, MOST_STRIDE = 1 << 32, 1 << 40
"""Elements along a dimension, and what bytes of a stride have to be less than (cuTensorMapEncodeTiled)."""
KINDS = {"i8": "u8", "i16": "u16", "i32": "i32", "i64": "i64", "f8E4M3FN": "u8", "f8E5M2": "u8"}
"""What a map calls elements, where that is not their own name."""


@dataclass(frozen=True)
class TensorMap:
    """What cuTensorMapEncodeTiled is given. Sizes count elements, the innermost dimension first.

    `strides` are bytes, of all dimensions but the innermost; `swizzle` is 16 (none), 32, 64 or 128 bytes. Of a box
    every `steps[i]`-th element is taken along dimension i (of the innermost, each). With `nan`, what is outside of the
    tensor reads as NaN. `dtype` is one of ELEMENT_TYPES; reductions go by it, and with tf32 what is loaded is rounded.

    With `corners`, a pair for each dimension of pixels, it is a map for images: the bounding box of the pixels goes
    from the first of a pair to the last pixel plus the second, and `box` counts channels and pixels.
    """

    address: int
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 16
    steps: tuple[int, ...] = ()
    nan: bool = False
    dtype: str = ""
    corners: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        rank = len(self.shape)
        images = bool(self.corners)
        low, high = CORNERS.get(rank, (0, -1))
        inner = self.box[0] * self.element_bytes if self.box else 0
        steps = self.steps or (1,) * rank
        rules = (
            (1 <= rank <= 5, f"a tensor map has 1 to 5 dimensions, got {rank}"),
            (
                len(self.box) == (2 if images else rank) and len(self.strides) == rank - 1,
                "shape, strides and box differ in rank",
            ),
            (
                not images or (rank in CORNERS and len(self.corners) == rank - 2),
                f"images have 1 to 3 dimensions of pixels, with two corners each, got {rank} dimensions",
            ),
            (
                all(low <= c <= high for pair in self.corners for c in pair),
                f"the corners of images of {rank} dimensions are {low} to {high}, got {self.corners}",
            ),
            (len(steps) == rank and all(1 <= s <= 8 for s in steps), f"element strides must be 1 .. 8, got {steps}"),
            (self.address % 16 == 0, f"the address must be a multiple of 16, got {self.address:#x}"),
            (all(s % 16 == 0 for s in self.strides), f"strides must be multiples of 16 bytes, got {self.strides}"),
            (
                all(0 <= s < MOST_STRIDE for s in self.strides),
                f"strides must be from 0 to less than 2^40 bytes, got {self.strides}",
            ),
            (
                all(0 < s <= MOST_SIZE for s in self.shape),
                f"a tensor has from one element to 2^32 along each dimension, got {self.shape}",
            ),
            (
                images or all(1 <= b <= 256 for b in self.box),
                f"a box has 1 to 256 elements along each dimension, got {self.box}",
            ),
            (
                not images or (1 <= self.box[0] <= 256 and 1 <= self.box[1] <= MOST_PIXELS),
                f"a box of images has 1 to 256 channels and 1 to {MOST_PIXELS} pixels, got {self.box}",
            ),
            (inner % 16 == 0, f"a box's rows must be multiples of 16 bytes, got {inner}"),
            (self.swizzle in SWIZZLES, f"swizzle must be one of {SWIZZLES}, got {self.swizzle}"),
            (self.swizzle == 16 or inner <= self.swizzle, f"rows of {inner} bytes are wider than the swizzle"),
        )
        for holds, message in rules:
            if not holds:
                raise ValueError(message)
        object.__setattr__(self, "steps", (1, *steps[1:]))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements of the box there are along each dimension, the innermost first."""
        if self.corners:
            return self.box  # steps lead from pixel to pixel, and take none away
        return tuple(-(-b // s) for b, s in zip(self.box, self.steps, strict=True))

    @property
    def bytes(self) -> int:
        """What a copy of the box counts on its mbarrier."""
        return int(np.prod(self.counts)) * self.element_bytes

    def pixels(self, coordinates: tuple[int, ...]) -> Array:
        """[pixel, dimension]: the coordinates of the pixels that a load of images takes, without those of channels.

        They follow each other within the bounding box, in which the first one must be (ValueError).
        """
        first, sizes, steps = coordinates[1:], self.shape[1:], self.steps[1:]
        counts, starts = [], []
        for at, size, step, (low, high) in zip(first, sizes, steps, self.corners, strict=False):
            last = size - 1 + high
            if not low <= at <= last:
                raise ValueError(f"a load of images begins at {at}, outside of the bounding box, {low} to {last}")
            counts.append((last - low) // step + 1)
            starts.append((at - low) // step)
        rest = np.arange(self.box[1])
        axes = []
        for count, start, step, at, (low, _) in zip(counts, starts, steps, first, self.corners, strict=False):
            along = rest + start
            rest = along // count
            axes.append(low + (at - low) % step + along % count * step)
        return np.stack([*axes, first[-1] + rest * steps[-1]], axis=1)

    def image_elements(self, coordinates: tuple[int, ...], offsets: tuple[int, ...]) -> tuple[Array, Array]:
        """(address in global memory, whether inside of the tensor) of what a load of images takes: [pixel, channel]."""
        pixels = self.pixels(coordinates)
        pixels[:, : len(offsets)] += np.array(offsets, np.int64)
        channel = np.arange(self.box[0]) + coordinates[0]
        address = self.address + pixels @ np.array(self.strides, np.int64)
        inside: Array = np.all((pixels >= 0) & (pixels < np.array(self.shape[1:], np.int64)), axis=1, keepdims=True)
        exists = (channel >= 0) & (channel < self.shape[0])
        return address[:, None] + channel * self.element_bytes, inside & exists

    def loaded(self, data: Array) -> Array:
        """What a load writes to shared memory for bytes [element, byte] of the tensor: with tf32, the nearest of those.

        Source: CUtensorMapDataType, TFLOAT32; to nearest even as Triton's own test of it has it.
        """
        if not self.dtype.startswith("tf32"):
            return data
        bits = np.ascontiguousarray(data).view(np.uint32)
        rounded = (bits + np.uint32(0xFFF) + (bits >> 13 & np.uint32(1))) & np.uint32(0xFFFFE000)
        special = bits & np.uint32(0x7F800000) == np.uint32(0x7F800000)
        return np.where(special, bits, rounded).view(np.uint8)

    def elements(self, coordinates: tuple[int, ...], *, stored: bool = False) -> tuple[Array, Array]:
        """(address in global memory, whether inside of the tensor) of the box's elements, the innermost axis last.

        What is stored goes on to the end of the 16 bytes in which a row of the tensor ends.
        """
        counts = self.counts[::-1]
        index = np.indices(counts)[::-1]
        strides = (self.element_bytes, *self.strides)
        address = np.full(counts, self.address, np.int64)
        inside = np.ones(counts, np.bool_)
        sizes = list(self.shape)
        if stored:
            each = max(1, 16 // self.element_bytes)
            sizes[0] = -(-sizes[0] // each) * each
        for at, start, step, size, stride in zip(index, coordinates, self.steps, sizes, strides, strict=True):
            place = at * step + start
            address += place * stride
            inside &= (place >= 0) & (place < size)
        return address, inside

    def offsets(self) -> Array:
        """Where the box's elements lie in shared memory, in bytes from its beginning, which is aligned to 1024."""
        counts = self.counts[::-1]
        plain = np.arange(int(np.prod(counts))).reshape(counts) * self.element_bytes
        return np.asarray(plain ^ (plain >> 3 & (self.swizzle // 16 - 1) << 4))

    @property
    def alignment(self) -> int:
        """What the address in shared memory must be a multiple of, so that the swizzle is that of `offsets`."""
        return max(128, 8 * self.swizzle if self.swizzle > 16 else 16)


def map_of(
    described: Any, address: int, pointee: str, box: tuple[int, ...], swizzle: int, block: tuple[int, ...]
) -> TensorMap:
    """The map of an argument with `base`, `shape`, `strides` in elements and maybe `padding`, for the boxes wanted.

    `block` is the tile that the kernel was made for. ValueError, saying what does not fit.
    """
    size = max(8, BITS[pointee]) // 8
    shape, strides = (tuple(int(x) for x in getattr(described, n)) for n in ("shape", "strides"))
    item = int(described.base.dtype.itemsize)
    if item != size:
        raise ValueError(f"describes elements of {item} bytes, the kernel wants {pointee}")
    described_block = tuple(int(x) for x in getattr(described, "block_shape", block))
    if block and described_block != block:
        raise ValueError(f"describes blocks of {described_block}, the kernel was made for {block}")
    lower, upper = (getattr(described, f"pixel_box_{n}_corner", None) for n in ("lower", "upper"))
    rank = len(shape) if lower is not None else len(box)
    if len(shape) != rank or len(strides) != len(shape) or strides[-1] != 1:
        raise ValueError(
            f"must have {rank} dimensions, the last one contiguous; got the shape {shape} with strides {strides}"
        )
    corners = tuple(zip(lower[::-1], upper[::-1], strict=True)) if lower is not None and upper is not None else ()
    steps = getattr(described, "element_strides", None) or ()
    try:
        return TensorMap(
            address,
            size,
            shape[::-1],
            tuple(s * size for s in strides[-2::-1]),
            box,
            swizzle,
            tuple(int(x) for x in steps[::-1]),
            nan=getattr(described, "padding", "zero") == "nan",
            dtype="tf32" if getattr(described, "round_f32_to_tf32", False) else KINDS.get(pointee, pointee),
            corners=corners,
        )
    except ValueError as found_wrong:
        raise ValueError(f"makes no tensor map: {found_wrong}") from None


def map_of_parts(parts: Sequence[int], pointee: str, box: tuple[int, ...], swizzle: int) -> TensorMap:
    """The map of a descriptor by its parts: address, padding (0, which is zero), shape and strides in elements.

    ValueError, saying what does not fit.
    """
    size, rank = max(8, BITS[pointee]) // 8, len(box)
    address, shape, strides = parts[0], parts[2 : 2 + rank], parts[2 + rank :]
    kind = KINDS.get(pointee, pointee)
    outer = tuple(s * size for s in strides[-2::-1])
    try:
        return TensorMap(address, size, tuple(shape[::-1]), outer, box, swizzle, dtype=kind)
    except ValueError as found_wrong:
        raise ValueError(f"makes no tensor map: {found_wrong}") from None


def bulk_instructions() -> Iterator[Instruction]:
    """All entries of this file."""

    def word(name: str, count: int = 1, constraint: str = "r") -> Operand:
        return Operand(name, "i32", count, constraint)

    tensor_map = Operand("map", "i64", 1, "l")
    active = Operand("active", "i1", 1, "b")
    for rank in range(1, 6):
        at = word("at", rank)

        def entry(name: str, text: str, *operands: Operand, stores: bool = False, rank: int = rank) -> Instruction:
            return Instruction(
                name=f"cp.async.bulk.tensor.{rank}d.{name}",
                since=90,
                text="@<active> " + text,
                operands=(*operands, active),
                cost=4,
                touches="bulk",
                stores=stores,
                version="8.0",
                params={"rank": rank},
            )

        tensor = f"tensor.{rank}d"
        load = f"cp.async.bulk.{tensor}.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        out = f".{tensor}.global.shared::cta"
        yield entry(
            "load",
            load + "[<to>], [<map>, <at*>], [<barrier>];",
            word("to"),
            tensor_map,
            at,
            word("barrier"),
            stores=True,
        )
        if rank > 2:
            of_images = load.replace(".tile.", ".im2col.")
            offsets = Operand("offsets", "i16", rank - 2, "h")
            yield entry(
                "load.im2col",
                of_images + "[<to>], [<map>, <at*>], [<barrier>], <offsets*>;",
                word("to"),
                tensor_map,
                at,
                word("barrier"),
                offsets,
                stores=True,
            )
            yield entry(
                "load.im2col.multicast",
                of_images.rstrip() + ".multicast::cluster [<to>], [<map>, <at*>], [<barrier>], <offsets*>, <blocks>;",
                word("to"),
                tensor_map,
                at,
                word("barrier"),
                offsets,
                Operand("blocks", "i16", 1, "h"),
                stores=True,
            )
        yield entry(
            "load.multicast",  # to the same places in all blocks of the cluster whose ranks are bits of `blocks`
            load.rstrip() + ".multicast::cluster [<to>], [<map>, <at*>], [<barrier>], <blocks>;",
            word("to"),
            tensor_map,
            at,
            word("barrier"),
            Operand("blocks", "i16", 1, "h"),
            stores=True,
        )
        rest = "[<map>, <at*>], [<source>];"
        yield entry("store", f"cp.async.bulk{out}.tile.bulk_group {rest}", tensor_map, at, word("source"))
        for kind in REDUCTIONS:
            text = f"cp.reduce.async.bulk{out}.{kind}.tile.bulk_group {rest}"
            yield entry(f"reduce.{kind}", text, tensor_map, at, word("source"))
    pending = word("pending", 1, "n")
    yield Instruction("cp.async.bulk.commit_group", 90, "cp.async.bulk.commit_group;", touches="bulk", version="8.0")
    for read in ("", ".read"):
        name = f"cp.async.bulk.wait_group{read}"
        yield Instruction(name, 90, f"{name} <pending>;", (pending,), touches="bulk", version="8.0")
