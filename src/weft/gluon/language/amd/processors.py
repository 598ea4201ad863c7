"""That what is traced is for one of AMD's processors, and asks for what they have."""

from __future__ import annotations

from typing import Any

from weft.base import Unsupported
from weft.language.constants import unwrap
from weft.machines import machine_of

from ...semantic import GluonSemantic


def check_processor(name: str, target: str, semantic: GluonSemantic) -> None:
    """Unsupported where an operation, which is for such targets as this, is traced for another vendor's."""
    running = str(semantic.target)
    if machine_of(running).vendor != "amd":
        hint = f"weft.compile(..., target={target!r}), or without a GPU `with weft.target('sim:{target}')`"
        raise Unsupported(f"amd.{name}, which is for {target},", running, hint=hint)


def check_other(name: str, other: Any) -> None:
    """Unsupported where what masked-off elements of a copy become is not 0."""
    if unwrap(other) not in (None, 0):
        raise Unsupported(
            f"{name} with `other` that is not 0", hint="leave it out, and put the value in its place after the wait"
        )
