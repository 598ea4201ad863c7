"""`weft demo`: examples run on real input, checked and timed: those of the source tree, or two that are installed."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["main", "parser"]

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE.parents[1] / "examples", HERE / "_examples")
"""Those of the source tree, and of a wheel."""


def _examples() -> Any:
    """The runner of the examples."""
    script = next(folder / "run.py" for folder in FOLDERS if (folder / "run.py").exists())
    spec = importlib.util.spec_from_file_location("weft_examples", script)
    assert spec is not None and spec.loader is not None
    examples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    return examples


def parser(name: str = "demo") -> argparse.ArgumentParser:
    """What the command takes."""
    shown: argparse.ArgumentParser = _examples().parser("weft demo")
    return shown


def main(arguments: Sequence[str]) -> int:
    """Run examples; 0 if all are right."""
    code: int = _examples().main(arguments, "weft demo")
    return code
