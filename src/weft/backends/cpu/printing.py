"""`tl.device_print` on the CPU: what a kernel hands over becomes lines of text on `sys.stdout`.

A line looks as Triton prints it on a GPU, one for each element:

    pid (0, 0, 0) idx ( 3) x: 1.500000

Kernels that print run on the calling thread, so lines come in the order of programs, and notebooks and pytest, which
replace `sys.stdout`, see them.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.ops.dtypes import DTYPES, SIGNATURE_DTYPES

# Names of element types, those of signatures and those of the IR -> (NumPy type, format).
_ELEMENTS: dict[str, tuple[Any, str]] = {
    **{name: (d, d.kind if d.kind in "iu" else "f") for name, d in (*DTYPES.items(), *SIGNATURE_DTYPES.items())},
    **{f"ui{n}": (np.dtype(f"u{n // 8}"), "u") for n in (8, 16, 32, 64)},
    **dict.fromkeys(("i1", "u1", "bool", "int1"), (np.uint8, "u")),
    "ptr": (np.uint64, "p"),
}


def _one_format(name: str, hex_: bool) -> tuple[np.dtype[Any], Callable[[Any], str]]:
    """How to read and write one element of a type."""
    dtype, kind = _ELEMENTS["ptr" if name.startswith(("*", "!tt.ptr")) else name]
    dtype = np.dtype(dtype)
    if hex_ or kind == "p":
        digits = dtype.itemsize * 2
        bits = np.dtype(f"u{dtype.itemsize}")
        return bits, lambda v: f"0x{int(v):0{digits}x}"
    if kind == "f":
        return dtype, lambda v: f"{float(v):f}"
    return dtype, lambda v: str(int(v))


def format_lines(data: bytes, fact: Mapping[str, Any], program: tuple[int, int, int]) -> list[str]:
    """The lines for one value of one program; `fact` is what the compiler noted about the print."""
    shape = [int(n) for n in fact.get("shape") or ()]
    name = str(fact["dtype"])
    if not fact.get("signed", True) and name.startswith("i"):
        name = "u" + name[1:]
    dtype, text = _one_format(name, bool(fact.get("hex")))
    values = np.frombuffer(data, dtype)
    widths = [len(str(n - 1)) for n in shape]
    prefix = str(fact.get("prefix", ""))
    if int(fact.get("operands", 1)) > 1:
        prefix += f"(operand {fact['operand']}) "
    head = "pid (" + ", ".join(map(str, program)) + ") idx ("
    lines = []
    for index, value in zip(itertools.product(*map(range, shape)), values, strict=False):
        where = ", ".join(f"{i:>{w}}" for i, w in zip(index, widths, strict=True))
        lines.append(f"{head}{where}){prefix}{text(value)}")
    return lines


class Printer:
    """What a kernel calls to print, through `weft_print`; what it raises ends the launch, and is raised by it."""

    def __init__(self, prints: Sequence[Mapping[str, Any]]) -> None:
        self._prints = list(prints)
        self.grid = (1, 1)

    def __call__(self, index: int, pid: int, data: int, size: int) -> None:
        """Write the lines for a value of a program: `size` bytes at the address `data`."""
        fact = self._prints[index]
        nx, ny = self.grid
        program = (pid % nx, pid // nx % ny, pid // (nx * ny))
        content = ctypes.string_at(data, size) if data else b""
        lines = format_lines(content, fact, program) if fact.get("dtype") else [_bare(fact, program)]
        sys.stdout.write("\n".join(lines) + "\n")


def _bare(fact: Mapping[str, Any], program: tuple[int, int, int]) -> str:
    """A print with a prefix and no value."""
    return "pid (" + ", ".join(map(str, program)) + ")" + str(fact.get("prefix", "")).rstrip()
