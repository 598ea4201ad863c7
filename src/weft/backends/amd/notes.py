"""What a code object says of its kernel: the note that LLVM writes, which is MessagePack.

>>> unpacked(b"\\x82\\xa1a\\x05\\xa1b\\x92\\xc3\\xcd\\x01\\x00")
{'a': 5, 'b': [True, 256]}
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from weft.base import CompilerCrash

from .elf import HEADER, NOTE, SECTION

METADATA = 32
"""The type of the note, whose owner is AMDGPU."""
NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
           0xD3: ">q"}  # fmt: skip
SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H",
         0xDF: ">I"}  # fmt: skip
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpacked(data: bytes) -> Any:
    """The value in a text of MessagePack."""
    return _value(data, 0)[0]


def _value(data: bytes, at: int) -> tuple[Any, int]:
    """A value, and where it ends."""
    code, at = data[at], at + 1
    if code in CONSTANTS:
        return CONSTANTS[code], at
    if code < 0x80 or code >= 0xE0:
        return (code if code < 0x80 else code - 256), at
    if code in NUMBERS:
        return struct.unpack_from(NUMBERS[code], data, at)[0], at + struct.calcsize(NUMBERS[code])
    if code in SIZES:
        size, at = struct.unpack_from(SIZES[code], data, at)[0], at + struct.calcsize(SIZES[code])
    else:
        size = code & (0x1F if code >= 0xA0 else 0x0F)
    if code in (0xC4, 0xC5, 0xC6):
        return data[at : at + size], at + size
    if 0xA0 <= code < 0xC0 or code in (0xD9, 0xDA, 0xDB):
        return data[at : at + size].decode(), at + size
    is_map = code < 0x90 or code in (0xDE, 0xDF)
    values = []
    for _ in range(2 * size if is_map else size):
        value, at = _value(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if is_map else values), at


@dataclass(frozen=True)
class Facts:
    """What a kernel takes of the processor, by its note."""

    name: str
    registers: int
    """Vector registers of a thread; where products have registers of their own, those are counted too."""
    accumulators: int
    """How many of them are of products."""
    scalars: int
    """Registers that a warp has once."""
    spills: int
    """Vector registers that are put into memory."""
    scalar_spills: int
    shared: int
    """Bytes of LDS of a block."""
    scratch: int
    """Bytes of memory of a thread."""
    arguments: list[list[Any]]
    """(offset, size, kind) of each argument in the segment that a launch fills in."""
    argument_bytes: int
    threads: int
    """The most that a block may have."""
    lanes: int


def metadata_of(image: bytes) -> dict[str, Any]:
    """The note of an object or a code object."""
    _, _, _, _, _, _, start, *_, count, _ = HEADER.unpack_from(image)
    for i in range(count):
        _, type, _, _, offset, size, *_ = SECTION.unpack_from(image, start + SECTION.size * i)
        at = offset
        while type == 7 and at < offset + size:
            owner, length, kind = NOTE.unpack_from(image, at)
            begin = at + NOTE.size + -(-owner // 4) * 4
            if kind == METADATA and image[at + NOTE.size :][: owner - 1] == b"AMDGPU":
                found: dict[str, Any] = unpacked(image[begin : begin + length])
                return found
            at = begin + -(-length // 4) * 4
    raise CompilerCrash("the object has no note about its kernels", "hsaco")


def facts_of(image: bytes) -> Facts:
    """What the only kernel of an object or a code object takes."""
    (kernel,) = metadata_of(image)["amdhsa.kernels"]
    return Facts(
        kernel[".name"],
        kernel[".vgpr_count"],
        kernel.get(".agpr_count", 0),
        kernel[".sgpr_count"],
        kernel.get(".vgpr_spill_count", 0),
        kernel.get(".sgpr_spill_count", 0),
        kernel[".group_segment_fixed_size"],
        kernel[".private_segment_fixed_size"],
        [[a[".offset"], a[".size"], a[".value_kind"]] for a in kernel.get(".args", ())],
        kernel[".kernarg_segment_size"],
        kernel[".max_flat_workgroup_size"],
        kernel[".wavefront_size"],
    )
