"""No test waits for the GPU for ever: a kernel that does not end is ended with the process that launched it."""

from __future__ import annotations

import faulthandler
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 240.0
"""What a test may take; the longest take less than a minute."""


def place() -> Path:
    """Where this process says what took too long."""
    return Path(tempfile.gettempdir()) / f"weft-endless-{os.getpid()}.txt"


@contextmanager
def bounded(name: str, seconds: float = SECONDS) -> Iterator[None]:
    """End the process, with status 1, if what is inside of the `with` takes longer.

    A thread that waits in the driver hears no signal and no exception, so a watchdog ends the process; the driver then
    ends its kernels. What pytest has captured is lost with it: `weft-endless-PID.txt`, in the folder for temporary
    files, says which test it was, and where.
    """
    try:
        with place().open("w", encoding="utf-8") as file:
            file.write(f"{name} may take {seconds:g} s\n")
            file.flush()
            faulthandler.dump_traceback_later(seconds, exit=True, file=file)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
    finally:
        place().unlink(missing_ok=True)
