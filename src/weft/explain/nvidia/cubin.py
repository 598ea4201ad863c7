"""A cubin, read without a tool: the machine code of its kernel, and which line of which PTX each instruction is of.

    code = read(image)
    code.text                    the bytes of section .text.NAME, 16 for each instruction
    code.line_at[0x1c0]          154: that instruction is of line 154 of the PTX
    code.ptx[153]                'ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd7];'
    code.source_at[0x1c0]        ('/home/a/kernels.py', 12)

ptxas writes the PTX that it was given into section .nv_debug_ptx_txt and a line table of it, in the form of DWARF's,
into .nv_debug_line_sass, beside that of the source in .debug_line, if it is called with -lineinfo, as it always is here
(`backends/nvidia/ptxas.py`). So what each instruction is of is known of the very code that is launched, and nothing
has to be assembled again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Code", "read"]

CUDA = 190
"""The machine in the header of an ELF file."""
TEXT, PTX, LINES, SOURCE = ".text.", ".nv_debug_ptx_txt", ".nv_debug_line_sass", ".debug_line"


@dataclass(frozen=True)
class Code:
    """The machine code of a kernel."""

    name: str
    text: bytes
    ptx: tuple[str, ...]
    """Its lines; none where the cubin has none."""
    line_at: Mapping[int, int]
    """By the place of an instruction in the text, the line of the PTX, from 1."""
    source_at: Mapping[int, tuple[str, int]]
    """By the same, the file and line of the kernel's source."""


@lru_cache(maxsize=2)
def read(image: bytes) -> Code | None:
    """The code of the first kernel in a cubin; None for what is no cubin, or one without line numbers."""
    if image[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", image, 18)[0] != CUDA:
        return None
    sections = _sections(image)
    name = next((each for each in sections if each.startswith(TEXT)), None)
    if name is None or PTX not in sections or LINES not in sections:
        return None
    text = sections[name]
    lines = sections[PTX].replace(b"\0", b"\n").decode(errors="replace").split("\n")
    of_ptx = {place: line for place, (_, line) in _by_place(sections[LINES], len(text)).items()}
    source = _by_place(sections.get(SOURCE, b""), len(text))
    return Code(name.removeprefix(TEXT), text, tuple(lines), of_ptx, source)


def _sections(image: bytes) -> dict[str, bytes]:
    """The contents of the sections of an ELF file, by name."""
    (start,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, start + i * size) for i in range(count)]
    strings = headers[names][4]
    found = {}
    for name, kind, _, _, place, length in headers:
        end = image.index(b"\0", strings + name)
        found[image[strings + name : end].decode()] = image[place : place + length] if kind != NOTHING else b""
    return found


NOTHING = 8
"""The kind of a section that takes no room in the file."""


def _by_place(table: bytes, size: int) -> dict[int, tuple[str, int]]:
    """The file and line of each instruction: those of the row of the table before it."""
    rows = sorted(_rows(table), key=lambda row: row[0])
    found: dict[int, tuple[str, int]] = {}
    at, line = 0, ("", 0)
    for place in range(0, size, 16):
        while at < len(rows) and rows[at][0] <= place:
            line = rows[at][1:]
            at += 1
        found[place] = line
    return found


def _rows(table: bytes) -> Iterator[tuple[int, str, int]]:
    """(place, file, line) of each row of a line table of DWARF 2 to 4."""
    at = 0
    while at + 10 < len(table):
        length, version, header = struct.unpack_from("<IHI", table, at)
        end, begin = at + 4 + length, at + 10 + header
        fields = at + 10 + (version >= 4)
        step, _, base, span, first = struct.unpack_from("<BBbBB", table, fields)
        operands = table[fields + 5 : fields + 5 + first - 1]
        files = _files(table[fields + 5 + first - 1 : begin])
        for place, file, line in _program(table[begin:end], step, base, span, first, operands):
            yield place, files.get(file, ""), line
        at = end


def _files(names: bytes) -> dict[int, str]:
    """The files of a line table, by number from 1: folders, each of which ends with a zero, and files in them."""
    folders, at = [""], 0
    while at < len(names) and names[at]:
        end = names.index(b"\0", at)
        folders.append(names[at:end].decode(errors="replace"))
        at = end + 1
    at += 1
    found: dict[int, str] = {}
    while at < len(names) and names[at]:
        end = names.index(b"\0", at)
        name = names[at:end].decode(errors="replace")
        folder, at = _unsigned(names, end + 1)
        _, at = _unsigned(names, at)
        _, at = _unsigned(names, at)
        is_inside = folder and folder < len(folders) and not name.startswith("/")
        path = f"{folders[folder]}/{name}" if is_inside else name
        found[len(found) + 1] = path.removeprefix("./")  # which LLVM puts before what has no folder, as "<stdin>"
    return found


def _program(
    code: bytes, step: int, base: int, span: int, first: int, operands: bytes
) -> Iterator[tuple[int, int, int]]:
    """(place, number of the file, line) of the rows that a line program gives."""
    at, place, file, line = 0, 0, 1, 1
    while at < len(code):
        op = code[at]
        at += 1
        if op >= first:  # both at once
            place += (op - first) // span * step
            line += base + (op - first) % span
            yield place, file, line
        elif op == 0:
            length, at = _unsigned(code, at)
            if code[at] == 1:
                place, file, line = 0, 1, 1
            elif code[at] == 2:
                place = int.from_bytes(code[at + 1 : at + length], "little")
            at += length
        elif op == 1:
            yield place, file, line
        elif op == 2:
            value, at = _unsigned(code, at)
            place += value * step
        elif op == 3:
            value, at = _signed(code, at)
            line += value
        elif op == 4:
            file, at = _unsigned(code, at)
        elif op == 8:
            place += (255 - first) // span * step
        elif op == 9:
            place += struct.unpack_from("<H", code, at)[0]
            at += 2
        else:
            for _ in range(operands[op - 1]):
                _, at = _unsigned(code, at)


def _unsigned(code: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits in each byte, and where the next one is."""
    value = shift = 0
    while True:
        byte = code[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _signed(code: bytes, at: int) -> tuple[int, int]:
    """The same with a sign."""
    value, after = _unsigned(code, at)
    bits = 7 * (after - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), after
