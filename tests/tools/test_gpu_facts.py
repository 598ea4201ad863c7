"""What a table of a GPU says it was measured on."""

from __future__ import annotations

import datetime
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import weft

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu_facts.py"


@pytest.fixture
def gpu_facts() -> ModuleType:
    """benchmarks/gpu_facts.py"""
    spec = importlib.util.spec_from_file_location("gpu_facts", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    """An nvidia-smi that runs this."""
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{says}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_gpu_and_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu_facts: ModuleType) -> None:
    pretend(tmp_path, monkeypatch, 'echo "NVIDIA H200, 580.159.04"')
    facts = gpu_facts.machine("numpy", "no-such-package")
    assert list(facts) == ["date", "gpu", "driver", "weft", "numpy", "no-such-package"]
    assert (facts["gpu"], facts["driver"]) == ("NVIDIA H200", "580.159.04")
    assert datetime.date.fromisoformat(facts["date"]) <= datetime.date.today()
    assert facts["weft"] == weft.__version__ and facts["numpy"] and facts["no-such-package"] == ""


def test_without_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu_facts: ModuleType) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_facts.gpu_and_driver() == ("", "")
    pretend(tmp_path, monkeypatch, "exit 9")
    assert gpu_facts.gpu_and_driver() == ("", "")
