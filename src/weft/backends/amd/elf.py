"""Object files as LLVM writes them for AMD's GPUs, as far as the linker wants to know them.

>>> from weft.backends.amd.machine import NOTHING, object_code
>>> from weft.backends.amd.processor import Processor
>>> file = ObjectFile.read(object_code(NOTHING, Processor("gfx942", 0x942, 64)))
>>> sorted(s.name for s in file.symbols if s.is_global), [(r.type, r.section) for r in file.relocations]
(['nothing', 'nothing.kd'], [(5, '.rodata')])
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from weft.base import CompilerCrash

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SEGMENT = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
DYNAMIC = struct.Struct("<QQ")
NOTE = struct.Struct("<III")

MACHINE, OS, ABI = 224, 64, 3
"""AMD's GPUs; the HSA; the version of code objects that is called 5."""
PROGBITS, SYMTAB, STRTAB, RELA, HASH, DYN, NOTES, NOBITS, DYNSYM = 1, 2, 3, 4, 5, 6, 7, 8, 11
WRITE, ALLOC, EXECUTE = 1, 2, 4
UNDEFINED, ABSOLUTE, LDS = 0, 0xFFF1, 0xFF00
"""Of a symbol, in the place of a section; LDS is what is not placed yet in shared memory."""
FUNCTION, GLOBAL = 2, 1


@dataclass
class Section:
    """A section, and where the linker puts it."""

    name: str
    type: int
    flags: int
    alignment: int
    data: bytearray
    size: int
    """Of zeros that are in no file, too."""
    address: int = 0
    """In memory and, but for whole pages, in the file."""


@dataclass(frozen=True)
class Symbol:
    """A name."""

    name: str
    value: int
    size: int
    info: int
    """Its kind in the low half, how far it is seen in the high one."""
    visibility: int
    section: int

    @property
    def is_global(self) -> bool:
        """Whether it is defined here, for all."""
        return self.info >> 4 == GLOBAL and self.section not in (UNDEFINED, ABSOLUTE, LDS)


@dataclass(frozen=True)
class Relocation:
    """A place whose contents depend on an address."""

    section: str
    index: int
    """Of that section."""
    offset: int
    type: int
    symbol: Symbol
    addend: int


@dataclass
class ObjectFile:
    """What there is in one."""

    flags: int
    """The processor, and which of its modes the code is for."""
    sections: list[Section] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)

    @classmethod
    def read(cls, data: bytes) -> ObjectFile:
        """Take one apart. CompilerCrash for what LLVM does not write."""
        ident, kind, machine, _, _, _, start, flags, *_, count, names = HEADER.unpack_from(data)
        if ident[:4] != b"\x7fELF" or (kind, machine, ident[7]) != (1, MACHINE, OS):
            raise CompilerCrash("LLVM has written no object file for an AMD GPU", "hsaco")
        headers = [SECTION.unpack_from(data, start + SECTION.size * i) for i in range(count)]

        def contents(i: int) -> bytes:
            return b"" if headers[i][1] == NOBITS else data[headers[i][4] : headers[i][4] + headers[i][5]]

        file = cls(flags)
        for i, (name, type, section_flags, _, _, size, _, _, alignment, _) in enumerate(headers):
            spelled = _text(contents(names), name)
            file.sections.append(Section(spelled, type, section_flags, alignment, bytearray(contents(i)), size))
        for i, header in enumerate(headers):
            if header[1] == SYMTAB:
                strings = contents(header[6])
                for name, info, other, section, value, size in SYMBOL.iter_unpack(contents(i)):
                    file.symbols.append(Symbol(_text(strings, name), value, size, info, other & 3, section))
        for i, header in enumerate(headers):
            if header[1] == RELA and file.sections[header[7]].flags & ALLOC:
                target = header[7]
                for offset, which, addend in RELOCATION.iter_unpack(contents(i)):
                    symbol = file.symbols[which >> 32]
                    made = Relocation(file.sections[target].name, target, offset, which & 0xFFFFFFFF, symbol, addend)
                    file.relocations.append(made)
        return file

    def take_code(self, other: ObjectFile) -> None:
        """Have the code of another object file, which is of the same kernel but for what its code is."""
        mine, its = (next(i for i, s in enumerate(file.sections) if s.name == ".text") for file in (self, other))
        code, sizes = other.sections[its], {s.name: s for s in other.symbols if s.section == its}
        self.sections[mine].data, self.sections[mine].size = code.data, code.size

        def moved(symbol: Symbol) -> Symbol:
            of = sizes.get(symbol.name) if symbol.section == mine else None
            return replace(symbol, value=of.value, size=of.size) if of else symbol

        self.symbols = [moved(s) for s in self.symbols]
        kept = [replace(r, symbol=moved(r.symbol)) for r in self.relocations if r.index != mine]
        theirs = [r for r in other.relocations if r.index == its]
        self.relocations = kept + [replace(r, index=mine, symbol=self._like(other, r.symbol)) for r in theirs]

    def _like(self, other: ObjectFile, symbol: Symbol) -> Symbol:
        """The symbol here that one of another file is: by its name, or as the beginning of a section of that name."""
        if symbol.name:
            found = next((s for s in self.symbols if s.name == symbol.name), None)
            return found or replace(symbol, section=UNDEFINED)
        name = other.sections[symbol.section].name
        section = next((i for i, s in enumerate(self.sections) if s.name == name), UNDEFINED)
        return replace(symbol, section=section)


def _text(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode()
