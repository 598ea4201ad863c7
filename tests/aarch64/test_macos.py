"""Objects for macOS: what can be told of them without Apple's tools, which link and run them."""

from __future__ import annotations

import struct

import pytest

import weft
from kernels import load_cases

CASES = load_cases("weft")
QUICK = ("axpy",)
MEMORY = {"_memcpy", "_memmove", "_memset", "_bzero", "_memset_pattern16"}
"""What code of Apple's compilers takes from the system's library to copy and fill memory."""
ARM64, SYMBOLS = 0x0100000C, 2
"""The type of processor, and the load command of the table of symbols."""


def symbols(code: bytes) -> tuple[set[str], set[str]]:
    """The names that an object defines for others, and those that it needs."""
    magic, processor, _, kind, commands = struct.unpack_from("<5I", code)
    assert (magic, processor, kind) == (0xFEEDFACF, ARM64, 1)
    defined, needed, at = set(), set(), 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", code, at)
        if command == SYMBOLS:
            first, count, texts, _ = struct.unpack_from("<4I", code, at + 8)
            for number in range(count):
                name, form, section = struct.unpack_from("<IBB", code, first + 16 * number)
                text = code[texts + name : code.index(b"\0", texts + name)].decode()
                if form & 1:
                    (defined if section else needed).add(text)
        at += size
    return defined, needed


def check(name: str) -> None:
    """Compile a kernel for an M1 and look at the symbols."""
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    kernel = weft.compile(source, target="cpu:apple-m1", options=case.options)
    defined, needed = symbols(kernel.asm["object"])
    assert f"_{kernel.name}" in defined
    assert needed <= MEMORY


@pytest.mark.parametrize("name", QUICK)
def test_objects_need_nothing_but_memory_functions(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_object_needs_nothing_but_memory_functions(name: str) -> None:
    check(name)
