"""Which line of the kernel's source each instruction comes from, as LLVM's metadata: PTX then has `.loc`, by which
profilers and sanitizers show the source.

    %x7 = fadd float %x5, %x6, !dbg !9
    !9 = !DILocation(line: 12, column: 8, scope: !3)
"""

from __future__ import annotations

from pathlib import PurePath

from weft.base import Span

LAST_COLUMN = (1 << 16) - 1
"""The last column that LLVM can keep."""


class Lines:
    """The metadata of one kernel; numbers from 0 on are its own."""

    def __init__(self, name: str, first: Span) -> None:
        self.first = first
        self._lines: list[str] = []
        self._files: dict[str, int] = {}
        self._scopes: dict[str, int] = {}
        self._places: dict[tuple[str, int, int], str] = {}
        self._last: tuple[Span | None, str] = (None, "")
        unit = self._add("")
        file = self._file(first.file)
        self._lines[unit] = (
            f'distinct !DICompileUnit(language: DW_LANG_C99, file: !{file}, producer: "weft", isOptimized: true, '
            "runtimeVersion: 0, emissionKind: DebugDirectivesOnly)"
        )
        type = self._add("!DISubroutineType(types: !{})")
        self.program = self._add(
            f'distinct !DISubprogram(name: "{name}", linkageName: "{name}", scope: !{file}, file: !{file}, '
            f"line: {first.line}, type: !{type}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})"
        )
        self._scopes[first.file] = self.program
        self._flags = self._add('!{i32 2, !"Debug Info Version", i32 3}')

    def _add(self, text: str) -> int:
        self._lines.append(text)
        return len(self._lines) - 1

    def _file(self, path: str) -> int:
        if path not in self._files:
            parts = PurePath(path)
            names = (escaped(parts.name), escaped(str(parts.parent)))
            self._files[path] = self._add(f'!DIFile(filename: "{names[0]}", directory: "{names[1]}")')
        return self._files[path]

    def _scope(self, path: str) -> int:
        if path not in self._scopes:
            text = f"!DILexicalBlockFile(scope: !{self.program}, file: !{self._file(path)}, discriminator: 0)"
            self._scopes[path] = self._add(text)
        return self._scopes[path]

    def suffix(self, span: Span | None) -> str:
        """What an instruction of this place ends with."""
        if span is self._last[0]:
            return self._last[1]
        place = span or self.first
        key = (place.file, place.line, place.col)
        if key not in self._places:
            column = place.col + 1 if place.col < LAST_COLUMN else 0  # 0: not said
            text = f"!DILocation(line: {place.line}, column: {column}, scope: !{self._scope(place.file)})"
            self._places[key] = f", !dbg !{self._add(text)}"
        self._last = (span, self._places[key])
        return self._places[key]

    def text(self) -> list[str]:
        """The lines at the end of the module."""
        named = ["!llvm.dbg.cu = !{!0}", f"!llvm.module.flags = !{{!{self._flags}}}"]
        return [*named, *(f"!{i} = {line}" for i, line in enumerate(self._lines))]


def escaped(text: str) -> str:
    """As it stands in a string of LLVM IR."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\{b:02X}" for c in text for b in c.encode())
