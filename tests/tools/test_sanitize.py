"""tools/sanitize.py with a sanitizer that is only pretended: what it counts, names and leaves out."""

from __future__ import annotations

import importlib.util
import stat
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = """#!/bin/sh
case "$*" in
  *" tests/b"*) echo "Invalid __global__ read of size 4"; echo "========= ERROR SUMMARY: 3 errors"; exit 86;;
  *" tests/c"*) echo "1 failed"; echo "========= ERROR SUMMARY: 0 errors"; exit 1;;
  *" tests/d"*) echo "the driver is too old"; exit 3;;
  *racecheck*) echo "1 passed"; echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"; exit 0;;
  *) for t in "$@"; do case $t in tests/*) echo "1 passed";; esac; done; echo "========= ERROR SUMMARY: 0 errors";;
esac
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pretended tool is a shell script")


@pytest.fixture(scope="module")
def sanitize() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sanitize", ROOT / "tools" / "sanitize.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["sanitize"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_test_with_a_report_is_named(sanitize: ModuleType, tmp_path: Path) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    campaign = sanitize.Campaign(str(tool), time.monotonic() + 60)
    campaign.packet("memcheck", ["tests/a::1", "tests/a::2"])
    campaign.packet("memcheck", ["tests/a::3", "tests/b::1", "tests/c::1", "tests/d::1"])
    campaign.packet("racecheck", ["tests/a::1"])
    named = {r.tests: (r.passed, r.found, r.trouble) for r in campaign.reports if r.check == "memcheck"}
    assert named == {
        ("tests/a::1", "tests/a::2"): (2, 0, ""),
        ("tests/a::3",): (1, 0, ""),
        ("tests/b::1",): (0, 3, ""),
        ("tests/c::1",): (0, 0, "tests failed, status 1"),
        ("tests/d::1",): (0, 0, "no summary, status 3: the driver is too old"),
    }
    summary = sanitize.table(campaign.reports, 4)
    lines = [line.split() for line in summary.splitlines()]
    assert lines[1:3] == [["memcheck", "6", "3", "1", "2"], ["racecheck", "1", "1", "0", "0"]]
    assert summary.endswith("4 tests were not reached")
    sanitize.written(tmp_path / "out", campaign.reports, summary)
    assert "Invalid __global__ read" in (tmp_path / "out" / "sanitizer.txt").read_text()


def test_nothing_begins_when_the_time_is_over(sanitize: ModuleType) -> None:
    campaign = sanitize.Campaign("no such program", time.monotonic() - 1)
    campaign.packet("memcheck", ["tests/a::1"])
    assert campaign.reports == []


def test_only_tests_that_there_are(sanitize: ModuleType) -> None:
    found = sanitize.collected("test_random_kernels")
    assert len(found) > 40 and all(name.startswith("tests/gpu/test_random_kernels.py::") for name in found)
