"""Which assertion does not hold: a kernel that asserts takes the address of a record, which its launch reads.

    FAILED    the number of the first assertion that did not hold, from 1 on; 0 where all held
    PROGRAM   in which program, along x, y and z

What writes it is in assertions.py; a launch needs nothing of the compiler.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from weft.base import DeviceAssertionError, Span

HEAD = struct.Struct("<I3I")


def raise_failure(record: bytes, messages: Sequence[Sequence[Any]], kernel: str) -> None:
    """DeviceAssertionError where one was written."""
    failed, *program = HEAD.unpack(record)
    if failed:
        text, path, line = messages[failed - 1]
        raise DeviceAssertionError(text, Span(path, line, 0) if line else None, tuple(program), kernel=kernel)
