"""Each pass on small pieces of IR: cases/PASS.txt holds what goes in and what comes out.

    [case a name]
    [in]
    the body of a function, or functions; %p, %q: pointers, %n, %m: i32, %k: i64, %c: i1, %x: f32; or a whole module
    [out]
    the same after the pass

Instead of [out], [change] has the lines that differ: `-` those that go, `+` those that come; and [counts], where these
would be too many, how many operations of each kind there are before and after. Passes of lane programs (cases/lower)
have layout IR under [in]; what the pass changes is shown of its lane program, whose values have no numbers here.

`pytest tests/passes --update` writes the outcomes. A case that ends in an error has the message as its outcome.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr

import weft
from weft import lower, passes
from weft.base import CompilationError
from weft.base.remarks import NO_REMARKS
from weft.ir import parse_module, print_module, verify
from weft.ir.lane import LaneProgram, text_of
from weft.machines import machine_of
from weft.passes.amd.load_ahead import load_ahead
from weft.passes.nvidia.specialize_warps import specialize_warps

FOLDER = Path(__file__).parent / "cases"
SOURCE = Path(weft.__file__).parent
HEAD = "tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %n: i32, %m: i32, %k: i64, %c: i1, %x: f32) {"
Pass = Callable[..., Any]


@dataclass
class Case:
    name: str
    given: str
    how: str
    wanted: str


def read(path: Path) -> Iterator[Case]:
    """The cases of a file."""
    for part in re.split(r"^\[case ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, rest = part.split("]\n", 1)
        given, how, wanted = re.split(r"^\[(out|change|counts)\]\n", rest, maxsplit=1, flags=re.MULTILINE)
        yield Case(name, given.removeprefix("[in]\n").rstrip("\n"), how, wanted.rstrip("\n"))


def written(case: Case, outcome: str) -> str:
    return f"[case {case.name}]\n[in]\n{case.given}\n[{case.how}]\n{outcome}\n"


# -- the passes -------------------------------------------------------------------------------------------------------


def modules_of(room: str) -> Iterator[ModuleType]:
    for path in sorted((SOURCE / room).rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        yield importlib.import_module(name.removesuffix(".__init__"))


def functions_of(module: ModuleType) -> Iterator[tuple[str, Pass]]:
    """Its own public ones."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield name, value


def tile_passes() -> dict[str, Pass]:
    """Every pass in passes/: a function of a `module` or `root`, which it rewrites, and no list of such."""
    return {
        name: function
        for module in modules_of("passes") if not module.__name__.endswith("pipelines")
        for name, function in functions_of(module)
        if next(iter(inspect.signature(function).parameters), "") in ("module", "root") and rewrites(function)
    }  # fmt: skip


def rewrites(function: Pass) -> bool:
    """Whether it gives nothing back, or whether it changed anything."""
    return inspect.signature(function).return_annotation in ("None", "bool", "ModuleOp") or function.__name__ in GIVING


GIVING = ("resolve_layouts",)
"""Gives what it has chosen beside what it rewrites."""


def lane_passes() -> dict[str, Pass]:
    """Every pass over lane programs, which it changes; what only tells what it sees is none."""
    found: dict[str, Pass] = {}
    for module in modules_of("lower"):
        for name, function in functions_of(module):
            signature = inspect.signature(function)
            types = [p.annotation for p in signature.parameters.values()]
            if types[:1] == ["LaneProgram"] and signature.return_annotation == "None" and name != "finish":
                found[name] = function
    return {name: function for name, function in found.items() if not name.startswith("tell_")}


def on_loops(function: Pass) -> Callable[[ModuleOp], None]:
    def run(module: ModuleOp) -> None:
        for op in list(module.walk()):
            if isinstance(op, scf.ForOp):
                function(op)

    return run


def specialized_or_why(loop: scf.ForOp) -> None:
    """A loop by two kinds of warps; what stays has the reason as an attribute."""
    why = specialize_warps(loop, 2, machine_of("cuda:90"))
    if why is not None:
        loop.attributes["stays"] = StringAttr(why)


def run_pass(name: str, module: ModuleOp) -> None:
    """The pass with what it wants to know beside the module: the machine that this names, four warps."""
    function = PASSES[name]
    target = module.attributes.get("ttg.target")
    machine = machine_of(getattr(target, "data", "cuda:90"))
    known = {"machine": machine, "warps": 4, "threads": 128, "stages": 2, "loaded": False, "remarks": NO_REMARKS}
    wanted = inspect.signature(function).parameters.values()
    function(module, **{p.name: known[p.name] for p in wanted if p.name in known and p.default is p.empty})


PASSES = tile_passes() | {
    "overlap_products": on_loops(passes.overlap_products.overlap_products),
    "load_ahead": on_loops(lambda loop: load_ahead(loop, 2, machine_of("hip:gfx942"), NO_REMARKS)),
    "specialize_warps": on_loops(specialized_or_why),
}
LANE_PASSES = lane_passes()


# -- what they make of a case -----------------------------------------------------------------------------------------


def module_of(text: str) -> str:
    """A body becomes a function; functions become a module."""
    if re.search(r"^module\b", text, re.MULTILINE):
        return text
    if "tt.func" not in text:
        text = f"{HEAD}\n{text}\n  tt.return\n}}"
    return f"module {{\n{text}\n}}"


def parsed(text: str) -> ModuleOp:
    module = parse_module(module_of(text), "case")
    check(module)
    return module


def check(module: ModuleOp) -> None:
    """By the verifier of the stage that the module is in."""
    if "ttg.num-warps" in module.attributes:
        verify(module, "gluon" if "gluon." in print_module(module) else "layout")
    else:
        verify(module)


def shown(module: ModuleOp, text: str) -> str:
    """The module without its frame: the body alone where a body was given."""
    if module_of(text) == text:
        return print_module(module).rstrip("\n")
    lines = print_module(module).splitlines()[1:-1]
    lines = [line[2:] for line in lines]
    if "tt.func" not in text and "tt.func public @f(" in lines[0] and len([li for li in lines if "tt.func" in li]) == 1:
        lines = [line[2:] for line in lines[1:-2]]
    return "\n".join(lines)


def difference(before: str, after: str) -> str:
    """The lines that go and those that come; `...` between places."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return "\n".join("..." if line.startswith("@@") else line for line in lines)


def counts(before: str, after: str) -> str:
    """How many operations of each type and name go, and how many come."""
    kinds = re.compile(r"(?:\w+ = )?[\w.]+(?= [%{]|$)", re.MULTILINE)
    there, then = (Counter(kinds.findall(text)) for text in (before, after))
    changed = sorted(key for key in there | then if there[key] != then[key])
    return "\n".join(f"{there[key]:4} -> {then[key]:3} {key}" for key in changed)


def outcome(name: str, case: Case) -> str:
    """What a pass makes of a case."""
    if name in LANE_PASSES:
        return (counts if case.how == "counts" else difference)(*lane_texts(name, parsed(case.given)))
    module = parsed(case.given)
    before = shown(module, case.given)
    try:
        run_pass(name, module)
    except CompilationError as error:
        return f"{type(error).__name__}: {error}"
    if name != "assign_layouts":  # which gives a module of another stage
        check(module)
    after = shown(module, case.given)
    return after if case.how == "out" else difference(before, after)


def without_numbers(program: LaneProgram) -> str:
    """The text without the numbers of values, which all change when one comes or goes."""
    return re.sub(r"%\d+", "%", text_of(program))


def lane_texts(name: str, module: ModuleOp) -> tuple[str, str]:
    """A lane program before and after a pass."""
    function, texts = LANE_PASSES[name], list[str]()

    def watched(program: LaneProgram, *more: Any) -> None:
        texts.append(without_numbers(program))
        function(program, *more)
        texts.append(without_numbers(program))

    with ExitStack() as stack:
        for user in [m for m in modules_of("lower") if getattr(m, name, None) is function]:
            stack.enter_context(mock.patch.object(user, name, watched))
        lower.lower(module)
    before, after = texts
    return before, after


FILES = sorted(FOLDER.rglob("*.txt"))
CASES = [(path, case) for path in FILES for case in read(path)]


@pytest.mark.parametrize(("path", "case"), CASES, ids=[f"{p.stem}-{c.name}" for p, c in CASES])
def test_case(path: Path, case: Case, request: pytest.FixtureRequest) -> None:
    found = outcome(path.stem, case)
    if request.config.getoption("--update", default=False):
        path.write_text("\n".join(written(c, found if c.name == case.name else c.wanted) for c in read(path)))
        return
    assert found == case.wanted


def test_every_pass_has_cases() -> None:
    names = {path.stem for path in FILES}
    wanted = {*PASSES, *LANE_PASSES}
    assert not wanted - names, f"passes without cases/PASS.txt: {', '.join(sorted(wanted - names))}"
    assert not names - wanted, f"cases of what is no pass: {', '.join(sorted(names - wanted))}"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_cases_show_what_the_pass_does(path: Path) -> None:
    """In one of them at least something changes."""
    assert any(case.wanted != "" and case.wanted != case.given for case in read(path))
