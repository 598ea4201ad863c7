"""tools/vendor_lines.py: which commits count, and what is a vendor's own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "vendor_lines.py"


@pytest.fixture(scope="module")
def tool() -> Any:
    """The tool."""
    spec = importlib.util.spec_from_file_location("vendor_lines", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_lines_are_those_of_shared_files(tool: Any) -> None:
    numbers = "10\t2\tsrc/weft/lower/dot.py\n90\t0\tsrc/weft/lower/amd/dot.py\n7\t7\ttests/test_rooms.py\n"
    commit = tool.commit_of("abc\nAMD: products\n\x01\n" + numbers, "amd")
    assert (commit.added, commit.removed, commit.lines, commit.kind) == (10, 2, 12, "counted")
    assert (commit.hash, commit.subject) == ("abc", "AMD: products")


@pytest.mark.parametrize(
    ("message", "path", "kind"),
    [
        ("A seam\n\nDigests: unchanged\n", "src/weft/backends/amd/x.py", "a refactoring"),
        ("A seam, Digests: unchanged in the line\n", "src/weft/backends/amd/x.py", "counted"),
        ("CPU: loops\n", "src/weft/backends/cpu/x.py", "of another subject"),
        ("Tests\n", "tests/amd/test_waits.py", "counted"),
        ("What ROCm says\n", "src/weft/runtime/x.py", "counted"),
        ("A row for gfx942\n", "src/weft/machines/machine.py", "counted"),
        ("Ships\n", "src/weft/lower/x.py", "of another subject"),
    ],
)
def test_which_commits_count(tool: Any, message: str, path: str, kind: str) -> None:
    assert tool.commit_of(f"abc\n{message}\x01\n1\t1\t{path}\n3\t0\tsrc/weft/a.py\n", "amd").kind == kind


def test_what_is_renamed_and_binary(tool: Any) -> None:
    numbers = "1\t2\tsrc/weft/{a => amd}/x.py\n-\t-\tsrc/weft/picture.png\n4\t4\tsrc/weft/b.py\n"
    assert tool.commit_of("abc\nx\n\x01\n" + numbers, "amd").lines == 8
