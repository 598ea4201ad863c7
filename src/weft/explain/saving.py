"""Writing an explanation to a file that its user names."""

from __future__ import annotations

__all__ = ["save"]


def save(path: str, text: str) -> None:
    """Write a text. OSError where it cannot be written."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
