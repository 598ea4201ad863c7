"""A linker for one object: what LLVM writes becomes a code object (version 5), which a ROCm loader takes.

    image = linked(object_code(llir, processor))

A kernel is one object that asks nothing of others, so that there is little to do: sections get their places in three
pages, what may be read, run and written; the kernel and its descriptor `NAME.kd` are exported; and the relocations,
one in a plain kernel, are resolved. Whatever is undefined is an error.

    offset    address   may be   what there is
    0         0         read     headers, .note, .dynsym, .hash, .dynstr, .rodata (descriptors, constants)
    a         a+0x1000  run      .text
    b         b+0x2000  written  .dynamic, variables
    c                            .symtab, .strtab, .shstrtab, headers of sections: for tools
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.base import CompilerCrash

from . import elf
from .elf import ObjectFile, Section, Symbol

PAGE = 0x1000
HEADERS = 7
"""Segments: the table itself, three that are loaded, the dynamic table, notes, the stack."""
PHDR, LOAD, DYNAMIC_SEGMENT, NOTE_SEGMENT, STACK = 6, 1, 2, 4, 0x6474E551
READ, WRITE, RUN = 4, 2, 1
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT = 4, 5, 6, 10, 11

Value = Callable[[int, int, int], int]
RELOCATIONS: dict[int, tuple[int, Value]] = {
    1: (4, lambda s, a, p: s + a),  # ABS32_LO
    4: (4, lambda s, a, p: s + a - p),  # REL32
    5: (8, lambda s, a, p: s + a - p),  # REL64
    6: (4, lambda s, a, p: s + a),  # ABS32
    10: (4, lambda s, a, p: s + a - p),  # REL32_LO
    11: (4, lambda s, a, p: s + a - p >> 32),  # REL32_HI
}
"""By type: how many bytes, and what they hold for a symbol, an addend and a place. Where code is loaded is not known:
absolute ones are for addresses in LDS alone."""
ABSOLUTE = (1, 6)


class _Strings:
    """A table of names."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def __call__(self, name: str) -> int:
        at = len(self.data)
        self.data += name.encode() + b"\0"
        return at


def linked(data: bytes, code: bytes | None = None) -> bytes:
    """The code object of an object file; with `code` its instructions are those of another, from an assembler.
    CompilerCrash where it is not one that stands for itself."""
    file = ObjectFile.read(data)
    if code is not None:
        file.take_code(ObjectFile.read(code))
    groups = _groups(file)
    exported = [s for s in file.symbols if s.is_global]
    strings = _Strings()
    names = [strings(s.name) for s in exported]
    symbols = Section(".dynsym", elf.DYNSYM, elf.ALLOC, 8, bytearray(elf.SYMBOL.size * (len(exported) + 1)), 0)
    table = Section(".hash", elf.HASH, elf.ALLOC, 8, bytearray(_hash(exported)), 0)
    text = Section(".dynstr", elf.STRTAB, elf.ALLOC, 1, strings.data, 0)
    dynamic = Section(".dynamic", elf.DYN, elf.ALLOC | elf.WRITE, 8, bytearray(elf.DYNAMIC.size * 6), 0)
    notes, constants = _split(groups[0], lambda s: s.type == elf.NOTES)
    laid = [[*notes, symbols, table, text, *constants], groups[1], [dynamic, *groups[2]]]
    offsets, ends = _placed(laid)
    _resolve(file)
    addresses = [_address(file, s) for s in exported]
    numbers = {id(section): 1 + i for i, section in enumerate(s for group in laid for s in group)}
    symbols.data[:] = _symbols(file, exported, names, addresses, numbers)
    pairs = {DT_HASH: table.address, DT_STRTAB: text.address, DT_SYMTAB: symbols.address, DT_STRSZ: len(text.data),
             DT_SYMENT: elf.SYMBOL.size, 0: 0}  # fmt: skip
    dynamic.data[:] = b"".join(elf.DYNAMIC.pack(*pair) for pair in pairs.items())
    image = _image(laid, offsets, ends, notes, dynamic)
    return _with_sections(image, laid, file, bytes(symbols.data), bytes(strings.data), len(exported))


def _groups(file: ObjectFile) -> list[list[Section]]:
    """The sections that are loaded, by what may be done with them: read, run, written."""
    groups: list[list[Section]] = [[], [], []]
    for section in file.sections:
        if section.flags & elf.ALLOC and section.size:
            which = 1 if section.flags & elf.EXECUTE else 2 if section.flags & elf.WRITE else 0
            groups[which].append(section)
    groups[2].sort(key=lambda s: s.type == elf.NOBITS)
    return groups


def _split(sections: Sequence[Section], is_first: Callable[[Section], bool]) -> tuple[list[Section], list[Section]]:
    return [s for s in sections if is_first(s)], [s for s in sections if not is_first(s)]


def _placed(groups: Sequence[Sequence[Section]]) -> tuple[list[int], list[int]]:
    """Give each section its address; where each group begins and ends in the file.

    A group begins in the file where the one before has ended, and in memory a page further.
    """
    at = elf.HEADER.size + HEADERS * elf.SEGMENT.size
    begins, ends = [], []
    for number, group in enumerate(groups):
        at = _up(at, max((s.alignment for s in group), default=1) if number else 1)
        begins.append(at if number else 0)
        for section in group:
            at = _up(at, section.alignment)
            section.address = at + number * PAGE
            section.size = section.size or len(section.data)
            at += len(section.data)
        ends.append(at)
    return begins, ends


def _up(at: int, alignment: int) -> int:
    return -(-at // max(1, alignment)) * max(1, alignment)


def _address(file: ObjectFile, symbol: Symbol) -> int:
    """Where a symbol is, in memory; LDS begins at 0."""
    if symbol.section == elf.UNDEFINED:
        raise CompilerCrash(f"the kernel asks for `{symbol.name}`, which is not defined", "hsaco")
    if symbol.section == elf.LDS:
        return 0
    return symbol.value if symbol.section == elf.ABSOLUTE else file.sections[symbol.section].address + symbol.value


def _resolve(file: ObjectFile) -> None:
    """Write what relocations say."""
    for relocation in file.relocations:
        section = file.sections[relocation.index]
        size, value = RELOCATIONS.get(relocation.type, (0, None))
        is_local = relocation.symbol.section in (elf.LDS, elf.ABSOLUTE)
        if value is None or (relocation.type in ABSOLUTE and not is_local):
            raise CompilerCrash(
                f"a relocation of type {relocation.type} for `{relocation.symbol.name}` in {relocation.section}, which "
                "a kernel that is loaded anywhere cannot have",
                "hsaco",
            )
        target = _address(file, relocation.symbol)
        number = value(target, relocation.addend, section.address + relocation.offset)
        bits = number & (1 << 8 * size) - 1
        section.data[relocation.offset : relocation.offset + size] = bits.to_bytes(size, "little")


def _symbols(
    file: ObjectFile,
    exported: Sequence[Symbol],
    names: Sequence[int],
    addresses: Sequence[int],
    numbers: dict[int, int],
) -> bytes:
    """A table of symbols; `numbers` has those of sections, by id."""
    rows = [elf.SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    for symbol, name, address in zip(exported, names, addresses, strict=True):
        section = numbers[id(file.sections[symbol.section])]
        rows.append(elf.SYMBOL.pack(name, symbol.info, symbol.visibility, section, address, symbol.size))
    return b"".join(rows)


def _hash(symbols: Sequence[Symbol]) -> bytes:
    """System V's hash table: buckets, and chains of symbols with one hash."""
    count = max(1, len(symbols))
    buckets, chains = [0] * count, [0] * (len(symbols) + 1)
    for i, symbol in enumerate(symbols, 1):
        bucket = _hashed(symbol.name) % count
        chains[i], buckets[bucket] = buckets[bucket], i
    return b"".join(n.to_bytes(4, "little") for n in (count, len(chains), *buckets, *chains))


def _hashed(name: str) -> int:
    """
    >>> hex(_hashed("printf")), hex(_hashed("exit"))
    ('0x77905a6', '0x6cf04')
    """
    number = 0
    for byte in name.encode():
        number = (number << 4) + byte
        high = number & 0xF0000000
        number = (number ^ high >> 24) & ~high
    return number


def _image(
    groups: Sequence[Sequence[Section]],
    begins: Sequence[int],
    ends: Sequence[int],
    notes: Sequence[Section],
    dynamic: Section,
) -> bytearray:
    """Segments, and what is loaded."""
    table = HEADERS * elf.SEGMENT.size
    segments = [(PHDR, READ, elf.HEADER.size, elf.HEADER.size, table, table, 8)]
    for number, flags in enumerate((READ, READ | RUN, READ | WRITE)):
        begin, size = begins[number], ends[number] - begins[number]
        unwritten = sum(s.size for s in groups[number] if s.type == elf.NOBITS)
        segments.append((LOAD, flags, begin, begin + number * PAGE, size, size + unwritten, PAGE))
    size = len(dynamic.data)
    segments.append((DYNAMIC_SEGMENT, READ | WRITE, dynamic.address - 2 * PAGE, dynamic.address, size, size, 8))
    note = sum(len(s.data) for s in notes)
    first = notes[0].address if notes else 0
    segments.append((NOTE_SEGMENT, READ, first, first, note, note, 4))
    segments.append((STACK, READ | WRITE, 0, 0, 0, 0, 0))
    image = bytearray(ends[-1])
    for i, (type, flags, offset, address, in_file, in_memory, alignment) in enumerate(segments):
        at = elf.HEADER.size + i * elf.SEGMENT.size
        elf.SEGMENT.pack_into(image, at, type, flags, offset, address, address, in_file, in_memory, alignment)
    for number, group in enumerate(groups):
        for section in group:
            at = section.address - number * PAGE
            image[at : at + len(section.data)] = section.data
    return image


def _with_sections(
    image: bytearray,
    groups: Sequence[Sequence[Section]],
    file: ObjectFile,
    symbols: bytes,
    strings: bytes,
    count: int,
) -> bytes:
    """With the headers of sections, and the symbols once more, where tools look for them; and its own header."""
    names, rows = _Strings(), [elf.SECTION.pack(*[0] * 10)]
    flat = [(s, number) for number, group in enumerate(groups) for s in group]
    number_of = {s.name: i for i, (s, _) in enumerate(flat, 1)}
    for section, group in flat:
        links = {elf.DYNSYM: (number_of[".dynstr"], 1, 24), elf.HASH: (number_of[".dynsym"], 0, 4),
                 elf.DYN: (number_of[".dynstr"], 0, 16)}  # fmt: skip
        link, info, each = links.get(section.type, (0, 0, 0))
        rows.append(
            elf.SECTION.pack(
                names(section.name), section.type, section.flags, section.address, section.address - group * PAGE,
                section.size, link, info, max(1, section.alignment), each,
            )
        )  # fmt: skip
    last = len(rows)
    for name, type, data, link, info, each, alignment in (
        (".symtab", elf.SYMTAB, symbols, last + 1, 1, 24, 8),
        (".strtab", elf.STRTAB, strings, 0, 0, 0, 1),
        (".shstrtab", elf.STRTAB, None, 0, 0, 0, 1),
    ):
        at = names(name)
        contents = bytes(names.data) if data is None else data
        image += bytes(_up(len(image), alignment) - len(image))
        rows.append(elf.SECTION.pack(at, type, 0, 0, len(image), len(contents), link, info, alignment, each))
        image += contents
    image += bytes(_up(len(image), 8) - len(image))
    ident = b"\x7fELF\x02\x01\x01" + bytes([elf.OS, elf.ABI]) + bytes(7)
    fields = (3, elf.MACHINE, 1, 0, elf.HEADER.size, len(image), file.flags, elf.HEADER.size, elf.SEGMENT.size, HEADERS)
    elf.HEADER.pack_into(image, 0, ident, *fields, elf.SECTION.size, len(rows), len(rows) - 1)
    return bytes(image + b"".join(rows))
