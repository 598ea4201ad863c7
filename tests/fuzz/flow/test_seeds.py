"""A few programs of the fuzzer of control flow; `make fuzz-flow` runs 5,000."""

from __future__ import annotations

import pytest

from .check import in_python, verdict
from .write import write

FOUND = [900]
"""A name that an outer loop has with two types, and a condition sets in between."""


@pytest.mark.parametrize("seed", [*range(12), *FOUND])
def test_agrees_with_python(seed: int) -> None:
    program = write(seed)
    what, text = verdict(program, bool(seed % 2))
    if what == "REFUSED" and not program.plain:
        assert "type" in text
    else:
        assert what in ("PASS", "UNSET"), f"{text}\n{program.text}"


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90", "ptx:cuda:90"])
def test_agrees_with_python_on_a_simulated_gpu(target: str) -> None:
    for seed in range(24, 26):
        what, text = verdict(write(seed), bool(seed % 2), target)
        assert what in ("PASS", "UNSET"), f"{seed}: {text}"


def test_programs_do_something() -> None:
    """The writer's programs are mostly such that Python runs to the end, and of both kinds."""
    programs = [write(seed) for seed in range(100)]
    assert sum(isinstance(in_python(p), list) for p in programs) > 50
    assert 20 < sum(p.plain for p in programs) < 80
    assert sum(" for " in p.text and "while" in p.text and "return" in p.text for p in programs) > 25
