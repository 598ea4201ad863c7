"""Warnings about a kernel's source, which name its line and not the compiler's.

    warn_at(span, "view is deprecated")          # k.py:14: UserWarning: view is deprecated

By Python's rules a warning is shown once for a place, however often the kernel is compiled.
"""

from __future__ import annotations

import warnings
from typing import Any

from .spans import Span

__all__ = ["warn_at"]

_shown: dict[str, dict[Any, Any]] = {}
"""Of each file, what has been shown: as Python keeps it in a module that warns."""


def warn_at(span: Span | None, text: str) -> None:
    """Warn of what stands at a place in the source of a kernel."""
    file, line = (span.file, span.line) if span is not None else ("<kernel>", 1)
    warnings.warn_explicit(text, UserWarning, file, line, registry=_shown.setdefault(file, {}))
