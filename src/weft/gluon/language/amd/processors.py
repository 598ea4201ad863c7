"""That what is traced is for one of AMD's processors."""

from __future__ import annotations

from weft.base import Unsupported
from weft.machines import machine_of

from ...semantic import GluonSemantic


def check_processor(name: str, target: str, semantic: GluonSemantic) -> None:
    """Unsupported where an operation, which is for such targets as this, is traced for another vendor's."""
    running = str(semantic.target)
    if machine_of(running).vendor != "amd":
        hint = f"weft.compile(..., target={target!r}), or without a GPU `with weft.target('sim:{target}')`"
        raise Unsupported(f"amd.{name}, which is for {target},", running, hint=hint)
