"""Kernels of a few lines (agreement.txt), here and in Triton: the same tile IR, or both refuse.

same        the same tile IR after Triton's clean-up
other       both accept; the tile IR differs, for a reason in docs/reference/semantics.md
refused     both refuse
extension   only Weft accepts
stricter    only Weft refuses
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from language.agreement import cleaned, parse_case, triton_text, weft_text

LINES = (Path(__file__).parent / "agreement.txt").read_text(encoding="utf-8").splitlines()
GROUP = 40

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def check(line: str, folder: Path) -> str | None:
    """What is wrong with a case, or None."""
    kind, types, code = parse_case(line)
    theirs, ours = triton_text(code, types, folder), weft_text(code, types, folder)
    found = {
        (True, True): "same",
        (False, False): "refused",
        (False, True): "extension",
        (True, False): "stricter",
    }[isinstance(theirs, str), isinstance(ours, str)]
    if found != ("same" if kind == "other" else kind):
        return f"{line}\n  is {found}, not {kind}\n  Triton: {theirs}\n  Weft: {ours}"
    if isinstance(theirs, str) and isinstance(ours, str):
        want, got = cleaned(theirs, folder), cleaned(ours, folder)
        if (want == got) == (kind == "other"):
            return f"{line}\n  Triton: {want}\n  Weft: {got}"
    return None


@pytest.mark.parametrize("start", range(0, len(LINES), GROUP))
def test_agreement(start: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = [w for w in (check(line, tmp_path) for line in LINES[start : start + GROUP]) if w is not None]
    assert not wrong, "\n".join(wrong)
