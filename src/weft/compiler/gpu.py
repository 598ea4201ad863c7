"""A source to the lane program of a GPU: tile IR, plain layouts, the lowering. The simulator runs what comes out.

Imported only when a launch is for a simulated target: compilations for the CPU need nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.analysis import wrapped_offsets
from weft.base import CompileOptions, Unsupported
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import i32_attr, int_value, verify
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.machines import Machine
from weft.passes.gpu_pipelines import check_layout_ir, gpu_pipeline, gpu_tile_pipeline, layout_pipeline
from weft.passes.nvidia.create_tensormaps import create_tensormaps
from weft.passes.nvidia.fence_copies import fence_copies
from weft.passes.nvidia.fence_reads import fence_reads
from weft.passes.resolve_layouts import resolve_layouts

from .options import make_options
from .sources import Source
from .target import SIMULATED, GPUTarget, as_target

__all__ = ["blocks_of", "check_cluster", "lane_program", "layout_ir"]


def lane_program(
    src: Source,
    target: str,
    options: Mapping[str, Any],
    told: Callable[[Iterable[Mapping[str, Any]]], None] | None = None,
) -> LaneProgram:
    """The lane program of a kernel for a simulated target. Unsupported where an operation has no lowering.

    `told` is called with the offsets that are known to wrap (`weft.analysis.wrapped_offsets`), as plain data.
    """
    if target not in SIMULATED:
        raise Unsupported("simulating", target, hint=f"simulated targets: {', '.join(SIMULATED)}")
    chosen = as_target(target.removeprefix("sim:"))
    machine = chosen.machine
    options = {"default_dot_input_precision": "tf32", **options}  # what mma.sync and wgmma do with float32
    language = make_options(options).language
    fuse = language.enable_fp_fusion
    remarks = RemarkCollector()
    laid_out = src.ext == "ttgir"
    module = layout_ir(src, chosen, options, remarks) if laid_out else src.make_ir(language, chosen)
    as_text = not laid_out and "ttg.num-warps" in module.attributes
    if as_text:
        fence_copies(module)
    elif not laid_out:
        gpu_tile_pipeline(module, machine.threads(language.num_warps), fuse, remarks)
    if told is not None:
        told([asdict(found) for found in wrapped_offsets(module)])
    if language.debug and (laid_out or as_text):
        check_layout_ir(module, values=language.sanitize_overflow)
    if laid_out:
        return lower(module, machine, remarks)
    if as_text:
        check_cluster(blocks_of(module), machine)
        return lower(layout_pipeline(module, remarks), machine, remarks)
    check_cluster(language.num_ctas, machine)
    warps, stages, blocks = language.num_warps, language.num_stages, language.num_ctas
    debug, values = language.debug, language.debug and language.sanitize_overflow
    how = {"fuse": fuse, "debug": debug, "values": values}
    module = gpu_pipeline(module, machine, warps, stages, blocks, **how, remarks=remarks)
    return lower(module, machine, remarks)


def blocks_of(module: ModuleOp) -> int:
    """How many blocks a cluster has, by layout IR."""
    found = module.attributes.get("ttg.num-ctas")
    return int_value(found) if found is not None else 1


class NoClusters(Unsupported, ValueError):
    """The GPU has no clusters of blocks; for Triton that is a ValueError."""


def check_cluster(blocks: int, machine: Machine) -> None:
    """NoClusters where there are none."""
    if blocks > machine.cluster_blocks == 1:
        hint = "num_ctas > 1 requires NVIDIA SM90+ (Hopper): launch with num_ctas=1, or for target cuda:90"
        raise NoClusters(f"a cluster of {blocks} blocks (num_ctas={blocks})", machine.name, hint=hint)


def gluon_options(options: Mapping[str, Any], target: GPUTarget) -> CompileOptions:
    """The options that a Gluon kernel is traced with."""
    given = dict(options)
    if int(target.arch) >= 90:
        given.setdefault("max_num_imprecise_acc_default", 2**30)
    return make_options(given).language


def layout_ir(
    src: Source, target: GPUTarget, options: Mapping[str, Any], remarks: RemarkCollector = NO_REMARKS
) -> ModuleOp:
    """The layout IR of a Gluon kernel for a GPU: traced, all layouts resolved, and checked."""
    language = gluon_options(options, target)
    check_cluster(language.num_ctas, target.machine)
    module: ModuleOp = src.make_ir(language, target)
    if options.get("maxnreg") is not None:
        module.attributes["ttg.maxnreg"] = i32_attr(int(options["maxnreg"]))
    verify(module, "gluon")
    resolve_layouts(module, remarks)
    create_tensormaps(module)
    fence_reads(module)
    verify(module, "layout")
    return module
