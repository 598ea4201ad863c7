"""Where what is made once for a machine is kept: the native code of launches, the costs of waking workers."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable
from typing import Any

_find: Callable[[], tuple[Any, str] | None] | None = None


def set_native_store(find: Callable[[], tuple[Any, str] | None]) -> None:
    """Say where: a store, and what all keys of this compiler have in them; None for nowhere."""
    global _find
    _find = find


def kept_at(name: str, *facts: str) -> tuple[Any, str]:
    """A store, or None, and the key of something in it, which depends on facts beside those of this kind of machine."""
    found = _find() if _find is not None else None
    if found is None:
        return None, ""
    parts = ["native", name, found[1], platform.machine(), sys.platform, sys.implementation.cache_tag or "", *facts]
    return found[0], hashlib.sha256("\0".join(parts).encode()).hexdigest()
