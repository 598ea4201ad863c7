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
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline, layout_pipeline
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


def parts_of(value: Any) -> list[Any]:
    """The arguments that one of a case is: a descriptor is its array, padding, shape and strides."""
    if isinstance(value, Descriptor):
        array = value.array
        steps = [s // array.itemsize for s in array.strides]
        return [array, int(value.padding == "nan"), *array.shape, *steps]
    return [value]


def arguments_of(program: LaneProgram, given: dict[str, Any]) -> dict[str, Any]:
    """What each parameter of a program is, in the order of the kernel's own."""
    names = [p.name for p in program.parameters]
    if all(name in given for name in names):
        return {name: given[name] for name in names}
    parts = [part for v in given.values() for part in parts_of(v)]
    if len(parts) != len(names):  # some are compile-time constants
        parts = [part for k, v in given.items() if isinstance(v, Descriptor) or k in names for part in parts_of(v)]
    return dict(zip(names, parts, strict=True))


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
        return arguments_of(self.program, arguments)

    def check(self, after: Arguments) -> None:
        """Fail unless every array holds what it should."""
        self.case.check(self.case.make_inputs(), after)


@cache
def simulated(name: str, with_remarks: bool = False) -> Simulated | None:
    """The kernel of a file; None where it has no lowering yet, or takes what a lane program has no parameter for.
    Remarks take time, and only explanations read them."""
    remarks = RemarkCollector() if with_remarks else NO_REMARKS
    path = FILES[name]
    case = CASES[_case_of(path)]
    inputs = case.make_inputs()
    try:
        module = parse_module(path.read_text(encoding="utf-8"), path.name)
        if path.suffix == ".ttir":
            module = gpu_pipeline(tile_pipeline(module), machine_of("cuda:80"), remarks=remarks)
        program = lower(layout_pipeline(module, remarks=remarks), remarks=remarks)
    except Unsupported:
        return None
    if path.suffix == ".ttgir" and any(isinstance(v, Descriptor) for v in inputs.values()):
        return None
    assert weft.ir.gpu.ttg is not None
    return Simulated(case, program)
