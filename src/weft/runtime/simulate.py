"""Launches for a simulated GPU: every instruction that would be emitted is run, checked and counted.

    with weft.target("sim:cuda:80"):
        kernel[grid](x, y, n, BLOCK=1024)                          # arrays of the host, changed in place
    kernel[grid](x, y, n, BLOCK=1024, target="sim:cuda:80")        # the same
    weft.compile("kernel.ttgir", target="sim:cuda:80")[grid](x, y, n)
    print(weft.sim.last_run())

Each kernel keeps its programs, by specialisation, options and target.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from weft import compiler
from weft.base import DeviceAssertionError, LaunchTypeError
from weft.ir.lane import LaneProgram, Parameter, text_of
from weft.sim import Report, SimulationError, count, last_run, libdevice, run

from .binder import asked_grid, constexpr_key, grid_of
from .descriptor import TensorDescriptor
from .launch import runtime_leaves
from .specialize import signature_of, specialize_param
from .views import numpy_view
from .wrapping import warn_of_wrapping

__all__ = ["SimulatedKernel", "compiled", "launch"]


def _in_the_library(symbol: str) -> Any:
    """What runs a function of libdevice on arrays; imported when the simulator meets one that it does not know."""
    return importlib.import_module("weft.backends.llvm.evaluate").find(symbol)


libdevice.extend(_in_the_library)


def launch(kernel: Any, target: str, grid: Any, /, *args: Any, **kwargs: Any) -> Report:
    """Run a JITFunction over a grid in the simulator; the report of what it did."""
    bound, options = kernel._bind(*args, **kwargs)
    options = kernel._options(options, bound)
    kernel._run_pre_hooks(*args, **kwargs)
    facts = [specialize_param(p, a) for p, a in zip(kernel.params, bound, strict=True)]
    signature, constants, attrs = signature_of(kernel.arg_names, facts, list(bound))
    shown = [(t, k if isinstance(k, str) else constexpr_key(k)) for t, k in facts]
    key = f"{shown}{sorted(options.items())}{target}"
    if kernel.refuse_changed_constant():  # a function that it calls is another one now
        kernel.reset()
    program = kernel._simulated.get(key)
    if program is None:
        _ = kernel.cache_key  # making it notes what is captured
        source = compiler.ASTSource(kernel, signature, constants, attrs)
        program = kernel._simulated[key] = compiler.lane_program(source, target, options, warn_of_wrapping)
    leaves = runtime_leaves(list(signature.values()))
    named = dict(zip(kernel.arg_names, bound, strict=True))
    return _run(program, asked_grid(grid, named) if callable(grid) else grid, [_at(bound, path) for path, _ in leaves])


def compiled(source: Any, target: str, options: Mapping[str, Any]) -> SimulatedKernel:
    """A source compiled for a simulated target, to be launched."""
    return SimulatedKernel(compiler.lane_program(source, target, options, warn_of_wrapping))


class SimulatedKernel:
    """A kernel that `weft.compile` made for a simulated target.

    `kernel[grid](*args)` takes the values of the parameters that are no constexprs, in order, and gives the report of
    the launch; `count` says the same of a launch without running it.
    """

    def __init__(self, program: LaneProgram) -> None:
        self.program = program
        self.name = program.name
        self.asm = {"lane": text_of(program)}

    def __getitem__(self, grid: Any) -> Any:
        """The launcher for a grid."""
        return lambda *args: _run(self.program, grid, args)

    def count(self, grid: Any, **scalars: int | float) -> Report:
        """What a launch over a grid would count, for these values of scalar parameters (see `weft.sim.count`)."""
        return count(self.program, grid_of(grid), scalars)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that each program needs."""
        return self.program.shared_bytes


def _at(values: Any, path: Sequence[int]) -> Any:
    for i in path:
        values = values[i]
    return values


def _run(program: LaneProgram, grid: Any, values: Sequence[Any]) -> Report:
    """Launch with the values of the parameters; what the program printed is printed."""
    sizes = grid_of(grid)
    arguments = _arguments(program, values)
    try:
        report = run(program, sizes, arguments)
    except (SimulationError, DeviceAssertionError) as error:
        _show(last_run())
        raise error.with_traceback(None) from None  # where in the simulator it was found says nothing
    _show(report)
    return report


def _show(report: Report) -> None:
    for line in report.printed:
        print(line)


def _arguments(program: LaneProgram, values: Sequence[Any]) -> dict[str, Any]:
    """Values by the program's parameters: a descriptor is several of them."""
    parameters = program.parameters
    parts: list[Any] = []
    for value in values:
        if not isinstance(value, TensorDescriptor):
            parts.append(value)
        elif len(parts) < len(parameters) and parameters[len(parts)].elem == "tensormap":
            parts += [value, *value.shape, *value.strides]
        else:
            parts += [value.base, int(value.padding == "nan"), *value.shape, *value.strides]
    if len(parts) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise LaunchTypeError(f"{len(parts)} arguments were given, the kernel takes {len(parameters)}: {names}")
    return {p.name: _argument(p, v) for p, v in zip(parameters, parts, strict=True)}


def _argument(parameter: Parameter, value: Any) -> Any:
    """An array of the host, or that of a descriptor, as NumPy's and in the same memory; a number as it is."""
    if parameter.elem == "ptr":
        return numpy_view(value, parameter.name)
    if parameter.elem == "tensormap":
        described = copy(value)
        object.__setattr__(described, "base", numpy_view(value.base, parameter.name))
        return described
    return value
