"""What a table of a GPU was measured on: the date, the GPU, its driver, versions.

facts = machine("torch", "triton")
"""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import re
import shutil
import subprocess
from typing import Any

__all__ = ["card_of", "gpu_and_driver", "machine"]


def gpu_and_driver() -> tuple[str, str]:
    """The first GPU and its driver, as nvidia-smi names them; empty without it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "", ""
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "", ""
    name, _, driver = said.strip().partition(", ")
    return name, driver


def card_of(name: str) -> str:
    """A GPU's name in a word, for files.

    >>> card_of("NVIDIA H100 80GB HBM3"), card_of("NVIDIA GeForce RTX 4090")
    ('h100', 'geforce-rtx-4090')
    """
    words = [word for word in name.lower().split() if word != "nvidia"]
    data_center = words and re.fullmatch(r"[a-z]{1,2}\d+[a-z]?", words[0])
    return words[0] if data_center else "-".join(words)


def machine(*packages: str) -> dict[str, Any]:
    """As plain data, with the versions of Weft and of other packages; "" for one that is not there."""
    name, driver = gpu_and_driver()
    return {
        "date": datetime.date.today().isoformat(),
        "gpu": name,
        "driver": driver,
        **{package: _version(package) for package in ("weft", *packages)},
    }


def _version(package: str) -> str:
    """Of what is installed, or can be imported from where it lies."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return str(importlib.import_module(package).__version__)
    except (ImportError, AttributeError):
        return ""
