"""Run a lane program on the GPU, as the simulator's `run` runs it: arrays among the arguments change in place."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.backends.nvidia import emit
from weft.backends.nvidia.driver import LoadedKernel
from weft.backends.nvidia.ptxas import assemble
from weft.compiler import devices
from weft.ir.lane import LaneProgram
from weft.runtime import cuda

CODES = {"f32": "f4x", "f64": "d", "i64": "q", "i32": "i4x", "i16": "h6x", "i8": "b7x", "i1": "?7x"}


def run_on_gpu(program: LaneProgram, grid: int | Sequence[int], arguments: Mapping[str, Any]) -> None:
    """Compile, load, launch, wait, copy back."""
    emitted = emit(program)
    here = f"sm_{devices.current_device().capability}"
    code = assemble(emitted.ptx, emitted.processor if emitted.processor.startswith(here) else here)
    kernel = LoadedKernel(code.image, {**emitted.metadata, "target": program.target})
    codes, values, arrays = [], [], {}
    for parameter in program.parameters:
        value = arguments[parameter.name]
        if parameter.elem == "ptr":
            arrays[parameter.name] = cuda.to_device(np.ascontiguousarray(value))
            codes.append("Q")
            values.append(arrays[parameter.name].address)
        else:
            codes.append(CODES[parameter.elem])
            values.append(value)
            struct.calcsize("<" + CODES[parameter.elem])
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    nx, ny, nz = (*sizes, 1, 1)[:3]
    kernel.launcher("".join(codes), lambda: 0)(nx * emitted.blocks, ny, nz, *values)
    cuda.synchronize()
    for name, array in arrays.items():
        arguments[name][...] = array.numpy()
