"""The test kernels as lane programs: those whose tile IR (`.ttir`) or layout IR (`.ttgir`) can be lowered.

for name in NAMES:
    kernel = simulated(name)                      # None where an operation has no lowering yet
    arrays = kernel.run(Options(order="backward"))
    kernel.check(arrays)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import weft.ir.gpu  # the operations of layout IR
from weft.base import Unsupported
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.passes import tile_pipeline
from weft.passes.assign_layouts import assign_layouts
from weft.passes.decompose_dot_scaled import decompose_dot_scaled
from weft.sim import Options, Report, run

from .case import Arguments, Case, Descriptor, copy_arguments
from .library import load_cases

DATA = Path(__file__).resolve().parent.parent / "data"
SUFFIXES = ("_sm80", "_sm90")
CASES = load_cases("weft")


def _case_of(path: Path) -> str:
    name = path.stem
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


FILES = {f"{p.stem}.{p.parent.name}": p for kind in ("ttgir", "ttir") for p in sorted((DATA / kind).glob(f"*.{kind}"))}
NAMES = [name for name, path in FILES.items() if _case_of(path) in CASES and _case_of(path) != "sum_lists"]
"""All but one that takes addresses of the host as data."""


@dataclass
class Simulated:
    """A test kernel, lowered."""

    case: Case
    program: LaneProgram

    def run(self, options: Options | None = None) -> tuple[Report, Arguments]:
        """The report, and the arguments after the launch."""
        after = copy_arguments(self.case.make_inputs())
        return run(self.program, self.case.grid, self.chosen(after), options), after

    def chosen(self, arguments: Arguments) -> dict[str, Any]:
        """The arguments that the program has parameters for."""
        return {p.name: arguments[p.name] for p in self.program.parameters}

    def check(self, after: Arguments) -> None:
        """Fail unless every array holds what it should."""
        self.case.check(self.case.make_inputs(), after)


@cache
def simulated(name: str) -> Simulated | None:
    """The kernel of a file; None where it has no lowering yet, or takes what a lane program has no parameter for."""
    path = FILES[name]
    case = CASES[_case_of(path)]
    inputs = case.make_inputs()
    try:
        module = parse_module(path.read_text(encoding="utf-8"), path.name)
        if path.suffix == ".ttir":
            module = tile_pipeline(module)
            decompose_dot_scaled(module)
            module = assign_layouts(module, "cuda:80")
        program = lower(module)
    except Unsupported:
        return None
    if any(p.name not in inputs or isinstance(inputs[p.name], Descriptor) for p in program.parameters):
        return None
    assert weft.ir.gpu.ttg is not None
    return Simulated(case, program)
