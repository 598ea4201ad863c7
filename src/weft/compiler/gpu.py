"""A source to the lane program of a GPU: tile IR, layout IR, the lowering; one road for `cuda:N` and for `sim:cuda:N`.

    module = tile_ir(src, target, given)              asm["ttir"]; of a Gluon kernel, its layout IR
    program = lowered(module, machine, language)      asm["lane"]: the GPU runs it, or the simulator

Whoever adds a pass adds it to both: there is no other way from a source to a lane program. A Gluon author's layouts
are kept (`relayout` lets them go), as are those of layout IR that is given as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.analysis import wrapped_offsets
from weft.base import CompileOptions, Unsupported
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import i32_attr, int_value, print_module, verify
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.machines import DEFAULT, Machine
from weft.passes.blocks_for_rows import blocks_for_rows
from weft.passes.gpu_pipelines import gpu_pipeline, gpu_tile_pipeline, layout_pipeline
from weft.passes.recoalesce import relay
from weft.passes.resolve_layouts import resolve_layouts
from weft.passes.vendor import passes_of

from .options import check_warps, given_for_gpu, make_options
from .sources import Source
from .target import SIMULATED, GPUTarget, as_target


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
    gpu_options = given_for_gpu(options, chosen.machine)
    remarks = RemarkCollector()
    module = tile_ir(src, chosen, gpu_options, remarks)
    if told is not None:
        told([asdict(offset) for offset in wrapped_offsets(module)])
    return lowered(module, chosen.machine, make_options(gpu_options).language, remarks)


def source_text(src: Source, target: str, options: Mapping[str, Any]) -> str:
    """What a source says, as text with its places: tile IR as the front end makes it, of a Gluon kernel layout IR.

    `IRSource` reads it, in another process or later, for the same target and options.
    """
    chosen = as_target(target.removeprefix("sim:"))
    language = make_options(given_for_gpu(options, chosen.machine)).language
    return print_module(src.make_ir(language, chosen), locations=True)


def tile_ir(
    src: Source, target: GPUTarget, options: Mapping[str, Any], remarks: RemarkCollector = NO_REMARKS
) -> ModuleOp:
    """Tile IR; for a Gluon kernel, or layout IR as text, layout IR. The options are those of `given_for_gpu`."""
    if src.ext == "ttgir":
        return layout_ir(src, target, options, remarks)
    language = make_options(options).language
    module: ModuleOp = src.make_ir(language, target)
    if _has_layouts(module):
        passes_of(target.machine).of_text(module, remarks)
        return layout_pipeline(module)
    threads = target.machine.threads(language.num_warps)
    passes_of(target.machine).note_asked(module, options)
    return gpu_tile_pipeline(module, threads, language.enable_fp_fusion, remarks)


def lowered(
    module: ModuleOp, machine: Machine, language: CompileOptions, remarks: RemarkCollector = NO_REMARKS
) -> LaneProgram:
    """The lane program of what `tile_ir` gave; the module is changed."""
    keeps_layouts = _has_layouts(module) and not language.relayout
    return lower(laid_out(module, machine, language, remarks), machine, remarks, keeps_layouts=keeps_layouts)


def laid_out(
    module: ModuleOp, machine: Machine, language: CompileOptions, remarks: RemarkCollector = NO_REMARKS
) -> ModuleOp:
    """Layout IR as the lowering takes it, of what `tile_ir` gave; the module is changed."""
    debug, values = language.debug, language.debug and language.sanitize_overflow
    if _has_layouts(module):
        _check_cluster(_blocks_of(module), machine)
        check_warps(int_value(module.attributes["ttg.num-warps"]), machine)
        return layout_pipeline(module, remarks, relayout=language.relayout, debug=debug, values=values)
    _check_cluster(language.num_ctas, machine)
    warps, stages, blocks = language.num_warps, language.num_stages, language.num_ctas
    if blocks == 1 and not debug:
        blocks = blocks_for_rows(module, machine, warps, remarks)
    checks = {"fuse": language.enable_fp_fusion, "debug": debug, "values": values}
    return gpu_pipeline(module, machine, warps, stages, blocks, **checks, remarks=remarks)


def _has_layouts(module: ModuleOp) -> bool:
    return "ttg.num-warps" in module.attributes


def _blocks_of(module: ModuleOp) -> int:
    """How many blocks a cluster has, by layout IR."""
    count = module.attributes.get("ttg.num-ctas")
    return int_value(count) if count is not None else 1


class NoClusters(Unsupported, ValueError):
    """The GPU has no clusters of blocks; for Triton that is a ValueError."""


def _check_cluster(blocks: int, machine: Machine) -> None:
    """NoClusters where there are none."""
    if blocks > machine.cluster_blocks == 1:
        hint = f"num_ctas > 1 not supported on {machine.name}: launch with num_ctas=1"
        if machine.vendor == DEFAULT.vendor:
            hint = "num_ctas > 1 requires NVIDIA SM90+ (Hopper): launch with num_ctas=1, or for target cuda:90"
        raise NoClusters(f"a cluster of {blocks} blocks (num_ctas={blocks})", machine.name, hint=hint)


def gluon_options(options: Mapping[str, Any], target: GPUTarget) -> CompileOptions:
    """The options that a Gluon kernel is traced with."""
    vendor_options = dict(options)
    if target.machine.async_proxy:  # products of warp groups
        vendor_options.setdefault("max_num_imprecise_acc_default", 2**30)
    return make_options(vendor_options).language


def layout_ir(
    src: Source, target: GPUTarget, options: Mapping[str, Any], remarks: RemarkCollector = NO_REMARKS
) -> ModuleOp:
    """The layout IR of a Gluon kernel for a GPU: traced, all layouts resolved, and checked.

    Layouts that the compiler chose, for a CoalescedLayout or an AutoLayout, it may choose better.
    """
    language = gluon_options(options, target)
    _check_cluster(language.num_ctas, target.machine)
    module: ModuleOp = src.make_ir(language, target)
    if options.get("maxnreg") is not None:
        module.attributes["ttg.maxnreg"] = i32_attr(int(options["maxnreg"]))
    verify(module, "gluon")
    for function, chosen in resolve_layouts(module, remarks):
        relay(function, chosen, remarks)
    passes_of(target.machine).of_author(module, remarks)
    verify(module, "layout")
    return module
