"""Launches for a simulated GPU: every instruction that would be emitted is run, checked and counted.

    with weft.target("sim:cuda:80"):
        kernel[grid](x, y, n, BLOCK=1024)      # arrays of the host, changed in place
    print(weft.sim.last_run())

Programs are kept by kernel, specialisation, options and target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import compiler
from weft.base import LaunchTypeError, Unsupported
from weft.sim import Report, run

from .binder import constexpr_key
from .descriptor import TensorDescriptor
from .specialize import signature_of, specialize_param

__all__ = ["launch"]

_programs: dict[str, Any] = {}


def launch(kernel: Any, target: str, grid: Any, /, *args: Any, **kwargs: Any) -> Report:
    """Run a JITFunction over a grid in the simulator; the report of what it did."""
    bound, options = kernel._bind(*args, **kwargs)
    options.pop("debug", None)
    facts = [specialize_param(p, a) for p, a in zip(kernel.params, bound, strict=True)]
    signature, constants, attrs = signature_of(kernel.arg_names, facts, list(bound))
    shown = [(t, k if isinstance(k, str) else constexpr_key(k)) for t, k in facts]
    key = f"{id(kernel)}{kernel.cache_key}{shown}{sorted(options.items())}{target}"
    program = _programs.get(key)
    if program is None:
        source = compiler.ASTSource(kernel, signature, constants, attrs)
        program = _programs[key] = compiler.lane_program(source, target, options)
    values: list[Any] = []
    for value, kind in zip(bound, signature.values(), strict=True):
        if isinstance(value, TensorDescriptor) and hasattr(value, "layout"):  # what the kernel gets, in this order
            values += [value, *value.shape, *value.strides]
        elif kind != "constexpr":
            values.append(value)
    if len(values) != len(program.parameters) or any(isinstance(v, tuple) for v in values):
        raise Unsupported("an argument that is a tuple or a tensor descriptor", target)
    arguments = {p.name: _argument(p, v) for p, v in zip(program.parameters, values, strict=True)}
    named = dict(zip(kernel.arg_names, bound, strict=True))
    return run(program, grid(named) if callable(grid) else grid, arguments)


def _argument(parameter: Any, value: Any) -> Any:
    """An array of the host as NumPy's, in the same memory; a number as it is."""
    if parameter.elem != "ptr":
        return value
    if isinstance(value, np.ndarray):
        return value
    array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    if not isinstance(array, np.ndarray):
        raise LaunchTypeError(f"the argument {parameter.name} is no array of the host", parameter.name)
    return array
