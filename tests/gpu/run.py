"""Run a lane program on the GPU, as the simulator's `run` runs it: arrays among the arguments change in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.backends.nvidia import emit
from weft.backends.nvidia.loaded_kernel import LoadedKernel
from weft.backends.nvidia.ptxas import assemble
from weft.backends.nvidia.tensormaps import map_maker
from weft.compiler import devices
from weft.ir.lane import LaneProgram, Parameter
from weft.runtime import gpu_arrays as cuda
from weft.sim import Report
from weft.targets.meaning import DTYPES

from .arrays import View

CODES = {"f32": "f4x", "f64": "d", "i64": "q", "i32": "i4x", "i16": "h6x", "i8": "b7x", "i1": "?7x"}


def _slot(parameter: Parameter, value: Any, views: list[View]) -> tuple[str, Any]:
    """The code of a parameter and what is handed over."""
    if parameter.elem == "ptr":
        views.append(View(np.asarray(value)))
        return "Q", views[-1].address
    if parameter.elem == "tensormap":
        views.append(View(np.asarray(value.base)))
        facts = parameter.pointee, parameter.box, parameter.swizzle, parameter.block, -1
        return "128s", map_maker(parameter.name, [facts])((value, views[-1].address))[0]
    if parameter.elem in ("f16", "bf16"):
        return "Q", int(np.asarray(value).astype(DTYPES[parameter.elem]).view(np.uint16))
    return CODES[parameter.elem], value


def run_on_gpu(
    program: LaneProgram, grid: int | Sequence[int], arguments: Mapping[str, Any], options: object = None
) -> Report:
    """Compile, load, launch, wait, copy back. The report is empty: a GPU tells nothing."""
    emitted = emit(program)
    here = f"sm_{devices.current_device().capability}"
    code = assemble(emitted.code, emitted.processor if emitted.processor.startswith(here) else here)
    kernel = LoadedKernel(code.image, {**emitted.metadata, "target": program.target})
    views: list[View] = []
    slots = [_slot(p, arguments[p.name], views) for p in program.parameters]
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    nx, ny, nz = (*sizes, 1, 1)[:3]
    if emitted.scratch_bytes:
        scratch = cuda.empty(emitted.scratch_bytes * nx * ny * nz * emitted.blocks, "u1")
        slots.append(("Q", scratch.address))
    launch = kernel.launcher("".join(code for code, _ in slots), lambda: 0)
    launch(nx * emitted.blocks, ny, nz, *(value for _, value in slots))
    cuda.synchronize()
    for view in views:
        view.back()
    return Report()
