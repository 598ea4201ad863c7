"""The bytes of LDS of a kernel, where LLVM is not told: they are written into what it makes.

    @shared_memory = external addrspace(3) global [0 x i8], align 128
    attributes #0 = { ... "weft-lds-bytes"="24576" ... }              LLVM takes no notice of that one

Where LLVM sees how much LDS a block takes, it computes how many waves fit by that, and uses up all registers that so
many waves leave, whatever `amdgpu-num-vgpr` says: a product that takes 144 registers without spilling one took 226. An
array without a size is what HIP's kernels have whose launches say how much they want. Ours do not: the object's
descriptor and note say it, as they do of an array with a size, and the assembly text does.
"""

from __future__ import annotations

import re
import struct

from weft.base import CompilerCrash

from .elf import HEADER, NOTE, NOTES, SECTION, ObjectFile

ATTRIBUTE = "weft-lds-bytes"
KEY = b"\xb9.group_segment_fixed_size"
"""In the note: a string of MessagePack. Its value, which is 0, has one byte."""
IN_TEXT = re.compile(r"(\.amdhsa_group_segment_fixed_size |\.group_segment_fixed_size: )0$", re.MULTILINE)


def unseen_bytes(llir: str) -> int:
    """How many bytes LLVM is not told of in a module; 0 where it is told.

    >>> unseen_bytes('attributes #0 = { "weft-lds-bytes"="24576" }'), unseen_bytes("@shared_memory = internal ...")
    (24576, 0)
    """
    found = re.search(f'"{ATTRIBUTE}"="([0-9]+)"', llir)
    return int(found[1]) if found else 0


def in_text(text: str, size: int) -> str:
    """An assembly text whose descriptor and note say a size."""
    told, count = IN_TEXT.subn(rf"\g<1>{size}", text) if size else (text, 2)
    if count != 2:
        raise CompilerCrash(f"the assembly names the bytes of LDS {count} times, not twice", "amdgcn", ir=text)
    return told


def in_object(data: bytes, size: int) -> bytes:
    """An object file whose descriptor and note say a size. The note, which grows, moves to the end of the file."""
    if not size:
        return data
    fields = HEADER.unpack_from(data)
    start, count = fields[6], fields[-2]
    rows = [list(SECTION.unpack_from(data, start + SECTION.size * i)) for i in range(count)]
    image = bytearray(data)
    descriptor = next(s for s in ObjectFile.read(data).symbols if s.name.endswith(".kd"))
    struct.pack_into("<I", image, rows[descriptor.section][4] + descriptor.value, size)
    (row,) = [i for i, fields in enumerate(rows) if fields[1] == NOTES]
    note = _with_size(data[rows[row][4] : rows[row][4] + rows[row][5]], size)
    image += bytes(-len(image) % 4)
    rows[row][4:6] = len(image), len(note)
    SECTION.pack_into(image, start + SECTION.size * row, *rows[row])
    return bytes(image + note)


def _with_size(note: bytes, size: int) -> bytes:
    """The section of the note, which is one: lengths of owner and text, type, owner, text."""
    owner, length, kind = NOTE.unpack_from(note)
    begin = NOTE.size + -(-owner // 4) * 4
    before, key, after = note[begin : begin + length].partition(KEY)
    if not key or after[:1] != b"\0":
        raise CompilerCrash("the note does not say that the kernel has 0 bytes of LDS", "hsaco")
    text = before + key + b"\xce" + size.to_bytes(4, "big") + after[1:]
    head = NOTE.pack(owner, len(text), kind) + note[NOTE.size : begin]
    return head + text + bytes(-len(text) % 4)
