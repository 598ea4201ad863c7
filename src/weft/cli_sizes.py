"""Bytes on the command line, printed and read."""

from __future__ import annotations

import argparse

from weft.runtime import knobs

__all__ = ["read", "shown"]


def shown(count: float) -> str:
    """Bytes for people.

    >>> shown(2048)
    '2.0 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def read(text: str) -> int:
    """A size that was typed: 512M, 2G."""
    try:
        return knobs.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
