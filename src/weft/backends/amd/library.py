"""AMD's HIP library, which talks to the driver: where it is, and which of several copies is taken.

    library = open_library()             # ctypes.CDLL; FileNotFoundError where there is none, with what was looked for

A process must have one copy alone: streams and memory of one are nothing to another. So whatever has been loaded
already (by PyTorch, which brings its own) is taken first, then what PyTorch will load, then what variables name, what
ROCm's packages and installation have, and last what the system's loader finds by name.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from weft.backends.gpu.libraries import opened

WINDOWS = sys.platform == "win32"
NAMES = ("amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll") if WINDOWS else tuple(
    f"libamdhip64.so{version}" for version in ("", ".7", ".6")
)  # fmt: skip
_LIBRARIES = "bin" if WINDOWS else "lib"
"""The folder of an installation that has them."""
NAMED = "TRITON_LIBHIP_PATH"
"""The variable that names the file."""
_MAPS = "/proc/self/maps"


def loaded() -> str | None:
    """The copy that this process has loaded, whoever did it; None where there is none or nobody can tell."""
    try:
        with open(_MAPS, encoding="utf-8", errors="surrogateescape") as maps:
            paths = (line.split(maxsplit=5)[-1].strip() for line in maps if "libamdhip64.so" in line)
            return next(paths, None)
    except OSError:
        return None


def _packages() -> Iterator[Path]:
    """Folders of Python's packages that bring it: PyTorch for ROCm, and ROCm itself as wheels."""
    for package, folder in (("torch", "lib"), ("_rocm_sdk_core", _LIBRARIES)):
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            continue
        for root in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(root) / folder


def folders() -> list[Path]:
    """Where it is looked for, in order, before the system's loader is asked."""
    places = [*_packages()]
    places += [Path(root) / _LIBRARIES for name in ("HIP_PATH", "ROCM_PATH") if (root := os.environ.get(name))]
    if not WINDOWS:
        newest_first = sorted(glob.glob("/opt/rocm-*"), reverse=True)
        places += [Path(root) / "lib" for root in ("/opt/rocm", *newest_first)]
    return list(dict.fromkeys(places))


def _candidates() -> Iterator[str]:
    """Paths that exist, then names for the loader."""
    if (already := loaded()) is not None:
        yield already
    if named := os.environ.get(NAMED):
        yield named
    for folder in folders():
        yield from (str(path) for name in NAMES if (path := folder / name).is_file())
    yield from NAMES


def there() -> bool:
    """Whether it is there: a file where files are looked for; where there is none the system's loader is tried."""
    if any(os.sep in candidate for candidate in _candidates()):
        return True
    try:
        open_library()
    except FileNotFoundError:
        return False
    return True


def open_library() -> ctypes.CDLL:
    """It, loaded. FileNotFoundError with what was looked for and where, and why a copy that is there does not load."""
    return opened("AMD's HIP library", _candidates(), NAMES, folders())
