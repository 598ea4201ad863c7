"""Every kernel of the tests is explained: nothing fails, what is said to be exact is what the counter says of all
programs, and an explanation comes back from JSON as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from kernels import load_cases
from kernels.simulated import NAMES, Simulated, simulated
from weft.explain import Explanation, Launch, explanation
from weft.runtime import explaining
from weft.sim import Uncountable, count

from .pages import RATES


def explained(kernel: Simulated) -> Explanation:
    arguments = kernel.chosen(kernel.case.make_inputs())
    scalars = {n: v for n, v in arguments.items() if not isinstance(v, np.ndarray)}
    sizes = {n: v.nbytes for n, v in arguments.items() if isinstance(v, np.ndarray)}
    x, y, z = (*_grid(kernel), 1, 1)[:3]
    launch = Launch(kernel.case.name, kernel.program.target, None, (x, y, z), {}, {}, scalars, sizes)
    return explanation(launch, kernel.program.remarks.collected(), kernel.program)


def _grid(kernel: Simulated) -> tuple[int, ...]:
    grid = kernel.case.grid
    return (grid,) if isinstance(grid, int) else tuple(grid)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_explained(name: str) -> None:
    kernel = simulated(name, with_remarks=True)
    if kernel is None:
        pytest.skip("it has no lowering")
    e = explained(kernel)
    assert str(e) and e.to_html() and Explanation.from_json(e.to_json()) == e
    assert e.time is None or e.time.low <= e.time.microseconds <= e.time.high
    arguments = kernel.chosen(kernel.case.make_inputs())
    scalars = {n: v for n, v in arguments.items() if not isinstance(v, np.ndarray)}
    try:
        whole = count(kernel.program, kernel.case.grid, scalars)
    except Uncountable:
        assert not e.counts.exact and e.counts.note
        return
    if e.counts.exact:
        assert Counter(e.counts.total) == Counter({n: c for n, c in whole.total.items() if c})


SAID = Path(__file__).with_name("said.txt")
"""What the rules say of each kernel: the kernels were there before the rules. `python -m explain.test_every_kernel`, in
tests/, writes it anew, for a reader who judges each line that is new."""


def said(kernel: Simulated) -> str:
    """The codes of its findings, and on which line of the source."""
    found = explained(kernel).findings
    start = min((f.span.line for f in found if f.span is not None), default=0)
    lines = (f"{f.code}+{f.span.line - start}" if f.span is not None else f.code for f in found)
    return " ".join(sorted(lines)) or "-"


def told() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in SAID.read_text(encoding="utf-8").splitlines())


def test_the_kernels_are_two_hundred_and_most_are_not_spoken_of() -> None:
    kernels = told()
    assert len(kernels) >= 200
    assert sum(text == "-" for text in kernels.values()) > len(kernels) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_said(name: str) -> None:
    kernel = simulated(name, with_remarks=True)
    if kernel is not None:
        assert said(kernel) == told()[name]


def _write() -> None:
    rows = ((name, simulated(name, with_remarks=True)) for name in NAMES)
    text = "".join(f"{name}: {said(kernel)}\n" for name, kernel in rows if kernel is not None)
    SAID.write_text(text, encoding="utf-8")
    text = "".join(f"{name}: {said_on_cpu(name)}\n" for name in told_of_cpu())
    SAID_OF_CPU.write_text(text, encoding="utf-8")


SAID_OF_CPU = Path(__file__).with_name("said_of_cpu.txt")
"""The same of kernels that are compiled for the CPU, on eight threads."""
CASES = load_cases("weft")


def said_on_cpu(name: str) -> str:
    """The codes of the findings of a kernel for the CPU, each once."""
    case = CASES[name]
    with mock.patch.object(explaining, "calibrated", lambda: RATES):
        e = case.kernel.explain(grid=case.grid, target="cpu", **case.make_inputs(), **case.constexprs, **case.options)
    assert str(e) and e.to_html() and Explanation.from_json(e.to_json()) == e
    return " ".join(sorted({f.code for f in e.findings})) or "-"


def told_of_cpu() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in SAID_OF_CPU.read_text(encoding="utf-8").splitlines())


def test_most_kernels_are_not_spoken_of_on_the_cpu() -> None:
    kernels = told_of_cpu()
    assert len(kernels) >= 150 and sum(text == "-" for text in kernels.values()) > len(kernels) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", told_of_cpu())
def test_what_is_said_on_the_cpu(name: str) -> None:
    assert said_on_cpu(name) == told_of_cpu()[name]


if __name__ == "__main__":
    _write()
