"""A source to the lane program of a GPU: tile IR, plain layouts, the lowering. The simulator runs what comes out.

Imported only when a launch is for a simulated target: compilations for the CPU need nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.base import Unsupported
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

from .sources import Source
from .stages import make_options
from .target import SIMULATED, GPUTarget

__all__ = ["lane_program"]


def lane_program(src: Source, target: str, options: Mapping[str, Any]) -> LaneProgram:
    """The lane program of a kernel for a simulated target. Unsupported where an operation has no lowering."""
    if target not in SIMULATED:
        raise Unsupported("simulating", target, hint=f"simulated targets: {', '.join(SIMULATED)}")
    name = target.removeprefix("sim:")
    language = make_options(options).language
    module = tile_pipeline(src.make_ir(language, GPUTarget("cuda", int(name.rpartition(":")[2]), 32)))
    return lower(gpu_pipeline(module, name, language.num_warps))
