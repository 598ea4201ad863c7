"""What a module of SPIR-V has, read from its words: extensions, capabilities, functions that it imports.

A call whose mangled name LLVM does not know stays a call of a function that somebody else has to define: found here.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from weft.base import CompilerCrash

MAGIC = 0x07230203
NAME, EXTENSION, CAPABILITY, DECORATE, ENTRY, MODE = 5, 10, 17, 71, 15, 16
LINKAGE, IMPORT = 41, 1
FLOAT64 = 10
"""A capability."""
WITHOUT_FLOAT64 = "compute in float32, or take the target cpu"
BUILTINS = "__spirv_BuiltIn"
"""What names of variables begin with that the device defines: LLVM declares them as imported."""


@dataclass(frozen=True)
class Module:
    """Facts of a module."""

    version: tuple[int, int]
    extensions: tuple[str, ...]
    capabilities: tuple[int, ...]
    kernels: tuple[str, ...]
    imports: tuple[str, ...]

    @property
    def needs_float64(self) -> bool:
        """Whether it computes with elements of 64 bits, which some devices cannot."""
        return FLOAT64 in self.capabilities

    @staticmethod
    def of(code: bytes) -> Module:
        """Read one. ValueError where it is none."""
        words = struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
        if len(words) < 5 or words[0] != MAGIC:
            raise ValueError("this is no SPIR-V: it does not begin with 0x07230203")
        extensions, capabilities, kernels, imports = [], [], [], []
        for opcode, operands in instructions(words):
            if opcode == EXTENSION:
                extensions.append(text_of(operands))
            elif opcode == CAPABILITY:
                capabilities.append(operands[0])
            elif opcode == ENTRY:
                kernels.append(text_of(operands[2:]))
            elif opcode == DECORATE and operands[1] == LINKAGE and operands[-1] == IMPORT:
                imports.append(text_of(operands[2:]))
        version = words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF
        return Module(version, tuple(extensions), tuple(capabilities), tuple(kernels), tuple(imports))


def is_module(code: bytes) -> bool:
    """Whether it begins as one."""
    return code[:4] == MAGIC.to_bytes(4, "little")


def instructions(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(opcode, operands) of each instruction behind the header."""
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if not 0 < count <= len(words) - at:
            raise ValueError(f"word {at} is no instruction of SPIR-V: it would have {count} words")
        yield opcode, words[at + 1 : at + count]
        at += count


NO_RESULT = frozenset(
    (0, 3, 4, 5, 6, 8, 10, 14, 15, 16, 17, 39, 56, 62, 63, 64, 71, 72, 224, 225, 228, 246, 247, 249, 250, 251, 252, 253)
) | frozenset((254, 255, 256, 257, 317, 330, 331, 332))
"""Opcodes of what has no result: names, decorations, stores, branches, barriers."""
UNTYPED = frozenset((7, 11, 73, 248, *range(19, 39)))
"""Those of results that have no type: types, texts, labels."""
CORE = 1000
"""Opcodes of extensions are larger."""


def defined_twice(code: bytes) -> set[int]:
    """The ids that two instructions define."""
    seen: set[int] = set()
    twice: set[int] = set()
    for opcode, operands in instructions(struct.unpack(f"<{len(code) // 4}I", code)):
        if opcode < CORE and opcode not in NO_RESULT:
            name = operands[opcode not in UNTYPED]
            (twice if name in seen else seen).add(name)
    return twice


def text_of(words: tuple[int, ...]) -> str:
    """A text, which ends with a zero."""
    return struct.pack(f"<{len(words)}I", *words).partition(b"\0")[0].decode("utf-8", "replace")


def checked(code: bytes, allowed: Collection[str] = ()) -> Module:
    """The facts of a module that was made here. CompilerCrash where a call in it is of a function that it imports, and
    that is not one of those `allowed`."""
    module = Module.of(code)
    unknown = [name for name in module.imports if name not in allowed and not name.startswith(BUILTINS)]
    if unknown:
        raise CompilerCrash(f"SPIR-V has no function of the name {', '.join(unknown)}", "spirv")
    return module
