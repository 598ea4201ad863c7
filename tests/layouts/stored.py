"""Layouts stored as JSON: see tests/data/layouts/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import weft.layouts
from weft.layouts import Layout, LinearLayout

OWN = Path(__file__).resolve().parents[1] / "data" / "layouts"
GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden"


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def named(description: dict[str, Any]) -> Layout:
    """The layout of a description, by the class's constructor."""
    parameters = dict(description)
    kind = parameters.pop("kind")
    if "parent" in parameters:
        parameters["parent"] = named(parameters["parent"])
    return getattr(weft.layouts, kind)(**parameters)


def as_stored(layout: LinearLayout) -> dict[str, list[list[int]]]:
    """The bases as JSON has them."""
    return {name: [list(basis) for basis in bases] for name, bases in layout.bases.items()}
