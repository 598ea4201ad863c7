"""The lists of coefficients are those of the tool that finds them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from weft.backends.llvm.vecmath.coefficients import fitted, read

TOOLS = Path(__file__).parents[2] / "tools"


def run(code: str) -> list[str]:
    return subprocess.run(
        [sys.executable, *code.split("\n")], cwd=TOOLS, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_every_fit_is_a_line() -> None:
    (names,) = run("-c\nimport vecmath_coefficients as v; print(*v._entries)")
    assert set(names.split()) == set(read("coefficients.txt"))


def test_fits_are_found_again() -> None:
    found = [line.split() for line in run("vecmath_coefficients.py\ncos.float\nexp2.table") if not line.startswith("#")]
    assert {name: tuple(map(float, values)) for name, *values in found} == {
        name: fitted(name) for name in ("cos.float", "exp2.table")
    }
