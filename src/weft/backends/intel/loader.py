"""The loader of Level Zero, which finds Intel's driver: where it is.

    library = open_loader()      # ctypes.CDLL; FileNotFoundError where there is none, with what was looked for

What the process has loaded already comes first, which is what PyTorch for xpu uses; else the system's loader is asked.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from weft.backends.gpu.libraries import opened

WINDOWS = sys.platform == "win32"
NAMES = ("ze_loader.dll",) if WINDOWS else ("libze_loader.so.1", "libze_loader.so")
NAMED = "ZE_PATH"
"""The variable that names the folder of an installation of Triton for Intel's GPUs; it has the library too."""


def folders() -> list[Path]:
    """Where it is looked for before the system's loader is asked: the installation, and packages beside Python."""
    named = os.environ.get(NAMED)
    installed = [Path(named) / ("bin" if WINDOWS else "lib")] if named else []
    return [*installed, Path(sys.prefix) / ("Library/bin" if WINDOWS else "lib")]


def _candidates() -> Iterator[str]:
    """Paths that exist, then names for the system's loader, which gives the copy that is loaded already."""
    for folder in folders():
        yield from (str(path) for name in NAMES if (path := folder / name).is_file())
    yield from NAMES


def open_loader() -> ctypes.CDLL:
    """It, loaded. FileNotFoundError with what was looked for and where, and why a copy that is there does not load."""
    return opened("Level Zero's loader", _candidates(), NAMES, folders())
