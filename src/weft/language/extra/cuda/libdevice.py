"""The math library under the name that code written for CUDA imports; see `weft.language.extra.libdevice`."""

from __future__ import annotations

from typing import Any

from .. import libdevice as _shared


def __getattr__(name: str) -> Any:
    return getattr(_shared, name)


def __dir__() -> list[str]:
    return dir(_shared)
