"""`weft info`: this machine, versions, settings."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import weft
from weft import compiler, runtime
from weft.base import load
from weft.cli_sizes import shown as size
from weft.runtime import knobs
from weft.runtime.cache import default_store

__all__ = ["main", "parser"]

PACKAGES = ("numpy", "ml_dtypes", "xdsl", "llvmlite", "cuda-bindings", "torch")


def parser(name: str = "info") -> argparse.ArgumentParser:
    """What the command takes."""
    info = argparse.ArgumentParser("weft info", description="Print versions, facts about this machine, and settings.")
    info.add_argument("--json", action="store_true", help="print JSON, with every setting")
    info.add_argument(
        "--settings", action="store_true", help="print every setting with its environment variables and value"
    )
    return info


def version_of(package: str) -> str | None:
    """Of a package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def main(arguments: Sequence[str]) -> int:
    """Print the facts."""
    options = parser().parse_args(arguments)
    cpu = compiler.host_cpu()
    store = default_store()
    facts: dict[str, Any] = {
        "weft": weft.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "target": runtime.current_target(),
        "processor": cpu.name,
        "vectors": f"{8 * cpu.vector_bytes} bits",
        "threads": compiler.get_num_threads(),
        "caches": f"L1 {size(cpu.l1_bytes)}, L2 {size(cpu.l2_bytes)}, L3 {size(cpu.l3_bytes)}",
        "kernel cache": (store.refusal() or store.directory) if store else "off",
        **load("weft.compiler.devices").found(),
        **{name: version_of(name) or "not installed" for name in PACKAGES},
    }
    if options.json:
        print(json.dumps({**facts, "features": list(cpu.features), "settings": {n: v for n, _, v in knobs.table()}}))
        return 0
    for name, value in facts.items():
        print(f"{name:>14}  {value}")
    if options.settings:
        print()
        for name, variables, value in knobs.table():
            print(f"{name:<44} {variables:<44} {value}")
    return 0
