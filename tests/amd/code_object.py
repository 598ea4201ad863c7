"""Read a code object (HSACO): what is loaded where, its kernels' descriptors and metadata.

It is read here anew, from the format's documentation, and not by the code that writes code objects: a fault of the
writer must not hide in the reader.

    object = CodeObject(kernel.asm["hsaco"])
    object.kernels["add"].descriptor.kernarg_bytes, object.kernels["add"].metadata[".vgpr_count"]
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

LOAD, NOTE = 1, 4
"""Types of program headers."""
PROCESSORS = {
    0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950", 0x41: "gfx1100", 0x4A: "gfx1151",
    0x48: "gfx1200", 0x4E: "gfx1201", 0x49: "gfx1250",
}  # fmt: skip
"""The low byte of `e_flags`."""
USER_REGISTERS = (
    ("private_buffer", 4), ("dispatch", 2), ("queue", 2), ("arguments", 2), ("id", 2), ("flat_scratch", 2),
    ("private_size", 1),
)  # fmt: skip
"""What a descriptor's properties can ask for in scalar registers, by bit, and how many registers each takes."""


@dataclass(frozen=True)
class Segment:
    """A program header: bytes of the file and where they are loaded."""

    kind: int
    flags: int
    address: int
    contents: bytes
    memory_size: int
    alignment: int


@dataclass(frozen=True)
class Descriptor:
    """The 64 bytes of `NAME.kd`, from which the packet processor starts a kernel."""

    address: int
    contents: bytes

    def word(self, offset: int) -> int:
        """The 32 bits at an offset."""
        return int(struct.unpack_from("<I", self.contents, offset)[0])

    @property
    def local_bytes(self) -> int:
        """Local memory of fixed size."""
        return self.word(0)

    @property
    def scratch_bytes(self) -> int:
        """Private memory of a lane."""
        return self.word(4)

    @property
    def kernarg_bytes(self) -> int:
        """How long the buffer of arguments is."""
        return self.word(8)

    @property
    def entry(self) -> int:
        """The address of the first instruction."""
        return self.address + int(struct.unpack_from("<q", self.contents, 16)[0])

    @property
    def rsrc2(self) -> int:
        """How many user registers, which ids of a workgroup."""
        return self.word(52)

    @property
    def user_registers(self) -> list[str]:
        """What each user register holds before the preloaded arguments, one name for each."""
        properties = self.word(56)
        return [name for i, (name, count) in enumerate(USER_REGISTERS) for _ in range(count) if properties >> i & 1]

    @property
    def preload(self) -> tuple[int, int]:
        """(how many words of the arguments are preloaded, from which word on)."""
        spec = self.word(56) >> 16
        return spec & 0x7F, spec >> 7


@dataclass(frozen=True)
class Kernel:
    """A kernel of a code object."""

    descriptor: Descriptor
    metadata: dict[str, Any] = field(repr=False)


class CodeObject:
    """A linked code object."""

    def __init__(self, contents: bytes) -> None:
        if contents[:4] != b"\x7fELF":
            raise ValueError("this is no ELF file")
        self.contents = contents
        self.flags = int(struct.unpack_from("<I", contents, 48)[0])

    @property
    def processor(self) -> str:
        """LLVM's name of the processor."""
        return PROCESSORS.get(self.flags & 0xFF, hex(self.flags & 0xFF))

    @cached_property
    def segments(self) -> list[Segment]:
        """All program headers."""
        (start,), (size, count) = (struct.unpack_from(f, self.contents, at) for f, at in (("<Q", 32), ("<HH", 54)))
        rows = [struct.unpack_from("<IIQQQQQQ", self.contents, start + i * size) for i in range(count)]
        return [
            Segment(kind, flags, address, self.contents[at : at + in_file], in_memory, alignment)
            for kind, flags, at, address, _, in_file, in_memory, alignment in rows
        ]

    def image(self) -> bytearray:
        """What lies in memory from address 0 on when all is loaded."""
        loaded = [s for s in self.segments if s.kind == LOAD]
        image = bytearray(max(s.address + s.memory_size for s in loaded))
        for segment in loaded:
            image[segment.address : segment.address + len(segment.contents)] = segment.contents
        return image

    @cached_property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Name to (address, size) of what the dynamic symbol table defines, found as by a loader: without sections."""
        image = self.image()
        dynamic = next(s for s in self.segments if s.kind == 2)
        table = dict(struct.iter_unpack("<qQ", dynamic.contents[: len(dynamic.contents) // 16 * 16]))
        strings, start, length = table[5], table[6], self._symbol_count(image, table)
        found = {}
        for i in range(1, length):
            name, _, _, _, value, size = struct.unpack_from("<IBBHQQ", image, start + 24 * i)
            found[bytes(image[strings + name : image.index(0, strings + name)]).decode()] = (value, size)
        return found

    @staticmethod
    def _symbol_count(image: bytearray, table: dict[int, int]) -> int:
        """From the hash table: DT_HASH says it, of DT_GNU_HASH the longest chain does."""
        if 4 in table:
            return int(struct.unpack_from("<II", image, table[4])[1])
        start = table[0x6FFFFEF5]
        buckets, first, bloom = struct.unpack_from("<III", image, start)
        at = start + 16 + 8 * bloom
        last = max(struct.unpack_from(f"<{buckets}I", image, at), default=0)
        if last < first:
            return int(first)
        while not struct.unpack_from("<I", image, at + 4 * (buckets + last - first))[0] & 1:
            last += 1
        return int(last) + 1

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The note of AMDGPU's metadata."""
        for segment in self.segments:
            if segment.kind == NOTE:
                name, size, kind = struct.unpack_from("<III", segment.contents)
                owner = segment.contents[12 : 12 + name].rstrip(b"\0")
                if (owner, kind) == (b"AMDGPU", 32):
                    at = 12 + (name + 3) // 4 * 4
                    return dict(unpack(segment.contents[at : at + size]))
        raise ValueError("no note of AMDGPU's metadata")

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """By name."""
        image = self.image()
        found = {}
        for metadata in self.metadata["amdhsa.kernels"]:
            address = self.symbols[metadata[".symbol"]][0]
            descriptor = Descriptor(address, bytes(image[address : address + 64]))
            found[metadata[".name"]] = Kernel(descriptor, metadata)
        return found


def unpack(data: bytes) -> Any:
    """The value of a MessagePack text.

    >>> unpack(bytes.fromhex("82a161 01 a162 9302c3cd0100"))
    {'a': 1, 'b': [2, True, 256]}
    """
    value, end = _value(data, 0)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes are left after the value")
    return value


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
            0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}  # fmt: skip
_SIZED = {0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
          0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
          0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("dict", ">H"), 0xDF: ("dict", ">I")}  # fmt: skip


def _value(data: bytes, at: int) -> tuple[Any, int]:
    """(the value that begins there, where it ends)."""
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _NUMBERS:
        form = _NUMBERS[first]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if first in _SIZED:
        kind, form = _SIZED[first]
        count = struct.unpack_from(form, data, at)[0]
        at += struct.calcsize(form)
    elif first < 0xC0:
        kind = "dict" if first < 0x90 else "list" if first < 0xA0 else "str"
        count = first & (31 if kind == "str" else 15)
    else:
        raise ValueError(f"no MessagePack value begins with {first:#x}")
    if kind in ("str", "bin"):
        raw = data[at : at + count]
        return (raw.decode() if kind == "str" else raw), at + count
    items = []
    for _ in range(count * (2 if kind == "dict" else 1)):
        item, at = _value(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if kind == "dict" else items), at
