"""`weft bench`: tables of published results, computed here."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from weft.layouts.tables import published_tables

__all__ = ["main", "parser"]


def parser(name: str = "bench") -> argparse.ArgumentParser:
    """What the command takes."""
    shown = argparse.ArgumentParser("weft bench", description="Recompute published results.")
    shown.add_argument(
        "what", choices=["layouts"], help="layouts: the tables of the linear-layouts paper that need no GPU"
    )
    shown.add_argument("--json", action="store_true", help="print JSON")
    return shown


def main(arguments: Sequence[str]) -> int:
    """Compute and print the tables."""
    options = parser().parse_args(arguments)
    tables = published_tables()
    if options.json:
        print(json.dumps([table.to_dict() for table in tables], indent=2))
    else:
        print("\n\n".join(map(str, tables)))
    return 0
