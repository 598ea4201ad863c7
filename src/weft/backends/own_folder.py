"""A folder for files that live as long as the process, such as sources of kernels that messages quote."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["own_folder"]


@cache
def own_folder() -> Path:
    """A folder that only this user may read, made at the first call and removed at the end of the process.

    A process that was forked after that shares it, and leaves it to the process that made it.
    """
    folder, owner = tempfile.mkdtemp(prefix="weft-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)
