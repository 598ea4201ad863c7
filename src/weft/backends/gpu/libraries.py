"""The library by which a vendor's GPUs are used: the first of some candidates that loads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def opened(title: str, candidates: Iterable[str], names: Sequence[str], folders: Iterable[Path]) -> ctypes.CDLL:
    """It, loaded. FileNotFoundError with the names and folders that were tried, and why a copy that is there does not
    load; candidates are paths, or names for the system's loader."""
    broken = []
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            if os.sep in candidate:
                broken.append(str(error).splitlines()[0])
    if broken:
        raise FileNotFoundError(f"{title} does not load: {'; '.join(broken)}")
    tried = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    places = ", ".join(map(str, folders))
    raise FileNotFoundError(f"{title} was not found: no {tried} in {places}, nor where the system looks")
