"""What kernels say: memory of a GPU, which a launch of a kernel that prints or asserts reads when the kernel has ended.

    listener = Listener(messages, name, gpu)
    with listener.hearing(stream):           # waits for the stream at its end: prints lines, raises what does not hold
        launch(...)

At 0 stands how many bytes of records were asked for, at LOST how many lines there was no room for, at FAILED the number
of the first assertion that did not hold (from 1 on) and at PROGRAM in which program. From RECORDS on come the records,
in the order in which lanes asked for room: the number of a message, and its values, without gaps. `printing` writes
them.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from weft.base import DeviceAssertionError, LaunchError, Span
from weft.base.locks import renewed

from .driver import Device, allocate, entered
from .faults import check
from .hip import api

VARIABLE = "weft_messages"
"""The variable of a code object with the address."""
LOST, FAILED, PROGRAM, RECORDS = 8, 16, 20, 32
CAPACITY = 1 << 20
"""Records that would begin behind so many bytes are lost."""
CAPTURING = range(900, 909)
"""Statuses of calls that a stream does not take while it is captured."""
HEAD = struct.Struct("<QQI3I")


def lines(messages: Sequence[Sequence[Any]], records: bytes) -> Iterator[str]:
    """The texts of records.

    >>> list(lines([["x: %d of %f\\n", "id"]], struct.pack("<Iid", 0, -3, 0.5)))
    ['x: -3 of 0.500000\\n']
    """
    at = 0
    while at < min(len(records), CAPACITY):
        text, codes = messages[int.from_bytes(records[at : at + 4], "little")]
        yield text % struct.unpack_from(f"<{codes}", records, at + 4)
        at += 4 + struct.calcsize(f"<{codes}")


class Listener:
    """The memory of one kernel on one GPU, which it has as long as its code: until the process ends."""

    def __init__(self, messages: Sequence[Sequence[Any]], kernel: str, gpu: Device) -> None:
        self.messages, self.kernel, self.gpu = messages, kernel, gpu
        codes = [m[1] for m in messages if len(m) == 2]
        self._size = CAPACITY + max((4 + struct.calcsize(f"<{c}") for c in codes), default=0)
        self.address = allocate(RECORDS + self._size, gpu)
        self._lock = renewed(threading.Lock())

    def told_to(self, module: ctypes.c_void_p) -> None:
        """Let a module, which was loaded on the GPU, know where the memory is."""
        variable, size = ctypes.c_void_p(), ctypes.c_size_t()
        found = api().hipModuleGetGlobal(ctypes.byref(variable), ctypes.byref(size), module, VARIABLE.encode())
        check(found, self.kernel)
        check(api().hipMemcpyHtoD(variable, ctypes.byref(ctypes.c_uint64(self.address)), 8), self.kernel)

    @contextlib.contextmanager
    def hearing(self, stream: int) -> Iterator[None]:
        """Launch the kernel inside; what it said is told at the end."""
        with self._lock, entered(self.gpu):
            check(api().hipMemsetD8Async(self.address, 0, RECORDS, stream), self.kernel)
            yield
            status = api().hipStreamSynchronize(stream)
            if status in CAPTURING:
                api().hipGetLastError()
                raise LaunchError(
                    f"{self.kernel} prints or asserts, so that a launch waits for its end, and cannot be captured",
                    hint="take device_print out of the kernel, and launch without debug",
                )
            check(status, self.kernel)
            asked, lost, failed, *program = HEAD.unpack(self._read(0, RECORDS))
            records = self._read(RECORDS, min(asked, self._size)) if asked else b""
        for line in lines(self.messages, records):
            sys.stdout.write(line)
        if lost:
            room = f"for which {CAPACITY} bytes have no room"
            sys.stdout.write(f"{self.kernel}: {lost} lines more were printed, {room}\n")
        if failed:
            text, path, line = self.messages[failed - 1]
            place = Span(path, line, 0) if line else None
            raise DeviceAssertionError(text, place, tuple(program), kernel=self.kernel)

    def _read(self, distance: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        check(api().hipMemcpyDtoH(buffer, self.address + distance, size), self.kernel)
        return buffer.raw
