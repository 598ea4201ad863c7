"""Each pass on small pieces of IR: cases/PASS.txt holds what goes in and what comes out.

    [case a name]
    [in]
    the body of a function, or functions; %p, %q: pointers, %n, %m: i32, %k: i64, %c: i1, %x: f32
    [out]
    the same after the pass

`pytest tests/passes --update` writes the outcomes. A case that ends in an error has the message as its outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from weft import passes
from weft.base import CompilationError
from weft.ir import parse_module, print_module, verify

FOLDER = Path(__file__).parent / "cases"
HEAD = "tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %n: i32, %m: i32, %k: i64, %c: i1, %x: f32) {"


@dataclass
class Case:
    name: str
    given: str
    wanted: str


def read(path: Path) -> Iterator[Case]:
    """The cases of a file."""
    for part in re.split(r"^\[case ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, rest = part.split("]\n", 1)
        given, _, wanted = rest.partition("[out]\n")
        yield Case(name, given.removeprefix("[in]\n").rstrip("\n"), wanted.rstrip("\n"))


def module_of(text: str) -> str:
    """A body becomes a function; functions become a module."""
    if "tt.func" not in text:
        text = f"{HEAD}\n{text}\n  tt.return\n}}"
    return f"module {{\n{text}\n}}"


def shown(module: ModuleOp, bare: bool) -> str:
    """The module without its frame: the body alone where a body was given."""
    lines = print_module(module).splitlines()[1:-1]
    lines = [line[2:] for line in lines]
    if bare and "tt.func public @f(" in lines[0] and len([li for li in lines if "tt.func" in li]) == 1:
        lines = [line[2:] for line in lines[1:-2]]
    return "\n".join(lines)


def outcome(run: Callable[[ModuleOp], object], text: str) -> str:
    """What a pass makes of a case."""
    module = parse_module(module_of(text), "case")
    verify(module)
    try:
        run(module)
    except CompilationError as error:
        return f"{type(error).__name__}: {error}"
    verify(module)
    return shown(module, "tt.func" not in text)


FILES = sorted(FOLDER.glob("*.txt"))
CASES = [(path, case) for path in FILES for case in read(path)]


@pytest.mark.parametrize(("path", "case"), CASES, ids=[f"{p.stem}-{c.name}" for p, c in CASES])
def test_case(path: Path, case: Case, request: pytest.FixtureRequest) -> None:
    found = outcome(getattr(passes, path.stem), case.given)
    if request.config.getoption("--update", default=False):
        cases = [Case(c.name, c.given, found if c.name == case.name else c.wanted) for c in read(path)]
        parts = [f"[case {c.name}]\n[in]\n{c.given}\n[out]\n{c.wanted}\n" for c in cases]
        path.write_text("\n".join(parts))
        return
    assert found == case.wanted


def test_every_pass_has_cases() -> None:
    names = {path.stem for path in FILES}
    wanted = set(passes.__all__) - {"cpu_pipeline", "tile_pipeline"}
    assert wanted <= names, f"no cases for {', '.join(sorted(wanted - names))}"
