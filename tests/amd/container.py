"""Whether a code object is one: its headers, segments, notes, descriptors, symbols, as LLVM's AMDGPUUsage has them.

    problems(kernel.asm["hsaco"], "gfx942")                 # [] if there are none
    python -m amd.container FILE.hsaco ...                  # from tests/, with PYTHONPATH=../src:.

The file is read by `code_object`, which is not the code that wrote it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .code_object import PROCESSORS, CodeObject, Kernel, Segment

PHDR, LOAD, DYNAMIC, NOTE, STACK = 6, 1, 2, 4, 0x6474E551
READ, WRITE, RUN = 4, 2, 1
HASH, STRTAB, SYMTAB, STRSZ, SYMENT = 4, 5, 6, 10, 11
FUNCTION, OBJECT, GLOBAL, PROTECTED = 2, 1, 1, 3
CDNA = ("gfx90a", "gfx942", "gfx950")
WAVE32 = 0x400
POINTERS = ("global_buffer", "dynamic_shared_pointer")


def problems(image: bytes, processor: str = "", sizes: Sequence[int] | None = None) -> list[str]:
    """What is wrong with a code object, for a processor if it is given, whose kernel has arguments of such `sizes`."""
    code = CodeObject(image)
    for found in (_header(code, processor), _segments(code), _dynamic(code), _sections(code)):
        if wrong := [*found]:  # what comes next would look in the wrong places
            return wrong
    return [p for k in code.kernels.values() for p in (*_descriptor(code, k), *_metadata(code, k, sizes))]


def _header(code: CodeObject, processor: str) -> Iterator[str]:
    ident = code.contents[:16]
    kind, machine, version = struct.unpack_from("<HHI", code.contents, 16)
    for what, has, wanted in (
        ("class", ident[4], 2), ("byte order", ident[5], 1), ("OSABI", ident[7], 64), ("ABI version", ident[8], 3),
        ("type", kind, 3), ("machine", machine, 224), ("version", version, 1), ("rest of e_ident", any(ident[9:]), 0),
        ("size of the header", struct.unpack_from("<H", code.contents, 52)[0], 64),
        ("entry", struct.unpack_from("<Q", code.contents, 24)[0], 0),
    ):  # fmt: skip
        if has != wanted:
            yield f"the {what} is {has}, not {wanted}"
    if code.processor not in PROCESSORS.values() or code.processor != (processor or code.processor):
        yield f"e_flags {code.flags:#x} are of {code.processor}, not of {processor}"
    if code.flags >> 12 or (code.flags >> 8 & 0xF) not in (0, 1, 4, 5):
        yield f"e_flags {code.flags:#x} ask for modes of XNACK or ECC"


def _segments(code: CodeObject) -> Iterator[str]:
    start, count = struct.unpack_from("<Q", code.contents, 32)[0], struct.unpack_from("<H", code.contents, 56)[0]
    rows = [struct.unpack_from("<IIQQQQQQ", code.contents, start + 56 * i) for i in range(count)]
    kinds = [row[0] for row in rows]
    if kinds[0] != PHDR or sorted(kinds) != sorted([PHDR, LOAD, LOAD, LOAD, DYNAMIC, NOTE, STACK]):
        yield f"segments are of types {kinds}"
    loads = [row for row in rows if row[0] == LOAD]
    if [row[1] for row in loads] != [READ, READ | RUN, READ | WRITE]:
        yield f"what is loaded may be {[row[1] for row in loads]}"
    page = 0
    for _, flags, offset, address, physical, in_file, in_memory, alignment in loads:
        if offset % alignment != address % alignment or alignment < 0x1000:
            yield f"a segment at {offset:#x} is loaded at {address:#x}, in pages of {alignment:#x}"
        if offset + in_file > len(code.contents) or in_memory < in_file or physical != address:
            yield f"a segment at {offset:#x} has {in_file} bytes in the file and {in_memory} in memory"
        if address // alignment < page:
            yield f"the segment with flags {flags} begins in a page of the one before"
        page = -(-(address + in_memory) // alignment)
    for kind, holder in ((DYNAMIC, READ | WRITE), (NOTE, READ), (PHDR, READ)):
        inner = next(row for row in rows if row[0] == kind)
        if not any(row[1] == holder and _within(inner, row) for row in loads):
            yield f"the segment of type {kind} is not in the one with flags {holder}"


def _within(inner: Sequence[int], outer: Sequence[int]) -> bool:
    begins = inner[2] - outer[2] == inner[3] - outer[3] >= 0
    return begins and inner[3] + inner[6] <= outer[3] + outer[6]


def _dynamic(code: CodeObject) -> Iterator[str]:
    """Every kernel is found as a loader finds it: by the hash of its name."""
    contents = next(s for s in code.segments if s.kind == DYNAMIC).contents
    table = dict(struct.iter_unpack("<qQ", contents))
    missing = {HASH, STRTAB, SYMTAB, STRSZ, SYMENT, 0} - set(table)
    if missing or table[SYMENT] != 24:
        yield f"the dynamic table lacks {sorted(missing)}"
        return
    image = code.image()
    buckets, chains = struct.unpack_from("<II", image, table[HASH])
    numbers = struct.unpack_from(f"<{buckets + chains}I", image, table[HASH] + 8)
    for name, (address, _) in code.symbols.items():
        at = numbers[_hash(name) % buckets]
        while at:
            text, info, other, section, value, size = struct.unpack_from("<IBBHQQ", image, table[SYMTAB] + 24 * at)
            begin = table[STRTAB] + text
            if text < table[STRSZ] and bytes(image[begin : image.index(0, begin)]).decode() == name:
                break
            at = numbers[buckets + at]
        if not at or value != address:
            yield f"`{name}` is not found by its hash"
            continue
        if section == 0 or info >> 4 != GLOBAL:
            yield f"`{name}` is undefined or not global"
        holder = _holder(code, value)
        if name.endswith(".kd"):
            if (info & 15, size, value % 64, holder) != (OBJECT, 64, 0, READ):
                yield f"`{name}` is no descriptor: {size} bytes at {value:#x} with flags {holder}"
        elif f"{name}.kd" in code.symbols and (info & 15, other, value % 256, holder) != (
            FUNCTION, PROTECTED, 0, READ | RUN,
        ):  # fmt: skip
            yield f"`{name}` is no kernel: at {value:#x}, visibility {other}, flags {holder}"


def _holder(code: CodeObject, address: int) -> int:
    """What may be done with the memory at an address."""
    loads: list[Segment] = [s for s in code.segments if s.kind == LOAD]
    return next((s.flags for s in loads if s.address <= address < s.address + s.memory_size), 0)


def _hash(name: str) -> int:
    """The System V ABI's, in its own words."""
    h = 0
    for c in name.encode():
        h = (h << 4) + c & 0xFFFFFFFF
        g = h & 0xF0000000
        if g:
            h ^= g >> 24
        h &= ~g
    return h


def _sections(code: CodeObject) -> Iterator[str]:
    """For tools: each that is loaded stands where a segment has it."""
    start = struct.unpack_from("<Q", code.contents, 40)[0]
    size, count, names = struct.unpack_from("<HHH", code.contents, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", code.contents, start + size * i) for i in range(count)]
    if size != 64 or start + size * count > len(code.contents) or rows[0] != (0,) * 10:
        yield "the table of sections is not in the file"
        return
    image = code.image()
    for name, kind, flags, address, offset, length, link, _, alignment, _ in rows[1:]:
        at = rows[names][4] + name
        spelled = code.contents[at : code.contents.index(b"\0", at)].decode()
        if link >= count or (alignment and address % alignment):
            yield f"{spelled} is linked to {link}, at {address:#x}"
        if flags & 2 and kind != 8 and image[address : address + length] != code.contents[offset : offset + length]:
            yield f"{spelled} is not loaded where it says"


def _descriptor(code: CodeObject, kernel: Kernel) -> Iterator[str]:
    d, m = kernel.descriptor, kernel.metadata
    if (d.entry, d.entry % 256) != (code.symbols[m[".name"]][0], 0):
        yield f"the descriptor of {m['.name']} begins at {d.entry:#x}"
    for what, has, wanted in (
        ("LDS", d.local_bytes, m[".group_segment_fixed_size"]),
        ("scratch", d.scratch_bytes, m[".private_segment_fixed_size"]),
        ("arguments", d.kernarg_bytes, m[".kernarg_segment_size"]),
        ("reserved bytes", any(d.contents[12:16]) or any(d.contents[24:44]) or any(d.contents[60:64]), False),
    ):
        if has != wanted:
            yield f"the descriptor of {m['.name']} says {has} for its {what}, its note {wanted}"
    wave32 = bool(d.word(56) & WAVE32)
    if m[".wavefront_size"] != (32 if wave32 else 64) or wave32 == (code.processor in CDNA):
        yield f"{m['.name']} has {m['.wavefront_size']} lanes on {code.processor}, bit for 32 lanes: {wave32}"
    granule = 8 if code.processor in CDNA or code.processor.startswith("gfx1") else 4
    granule = 16 if code.processor == "gfx1250" else granule
    registers = ((d.word(48) & 63) + 1) * granule
    if registers < m[".vgpr_count"]:
        yield f"the descriptor of {m['.name']} asks for {registers} registers, its note says {m['.vgpr_count']}"
    if "arguments" not in d.user_registers and m[".kernarg_segment_size"]:
        yield f"{m['.name']} has arguments, and no register that points to them"


def _metadata(code: CodeObject, kernel: Kernel, sizes: Sequence[int] | None) -> Iterator[str]:
    m: dict[str, Any] = kernel.metadata
    whole = code.metadata
    if whole["amdhsa.version"] != [1, 2] or whole["amdhsa.target"] != f"amdgcn-amd-amdhsa--{code.processor}":
        yield f"the note is of version {whole['amdhsa.version']}, for {whole['amdhsa.target']}"
    if m[".symbol"] != f"{m['.name']}.kd":
        yield f"the descriptor of {m['.name']} is called {m['.symbol']}"
    end = 0
    given = [a for a in m.get(".args", ()) if not a[".value_kind"].startswith("hidden_")]
    for argument in m.get(".args", ()):
        offset, size = argument[".offset"], argument[".size"]
        if offset < end or (size & size - 1 == 0 and offset % min(size, 8)):
            yield f"an argument of {size} bytes stands at {offset}, behind {end}"
        if argument[".value_kind"] in POINTERS and size != 8:
            yield f"a pointer has {size} bytes"
        end = offset + size
    if end > m[".kernarg_segment_size"]:
        yield f"arguments end at {end}, of {m['.kernarg_segment_size']} bytes"
    if sizes is not None and [a[".size"] for a in given] != list(sizes):
        yield f"arguments have {[a['.size'] for a in given]} bytes, the kernel's {list(sizes)}"


def main(paths: Sequence[str]) -> int:
    """Print what is wrong with files."""
    wrong = 0
    for path in paths:
        for problem in problems(Path(path).read_bytes()):
            print(f"{path}: {problem}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
