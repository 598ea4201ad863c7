"""The stages of a compilation for an NVIDIA GPU: tile IR, layout IR, the lane program, LLVM IR, PTX.

Imported when the first kernel has to be compiled; see `cuda`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.analysis import wrapped_offsets
from weft.backends.gpu import Emitted, emit_llvm, emitted_of
from weft.backends.nvidia import PTX, assembly
from weft.base import CompileOptions
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import print_module
from weft.ir.lane import LaneProgram, text_of
from weft.lower import lower
from weft.passes.gpu_pipelines import check_layout_ir, gpu_pipeline, gpu_tile_pipeline, layout_pipeline
from weft.passes.nvidia.fence_copies import fence_copies

from . import gpu
from .options import Options
from .sources import IRSource, Source
from .stages import REMARKS, stage
from .stores import stored_params
from .target import GPUTarget

__all__ = ["lane_text", "layout_text", "make"]


def make(
    src: Source, target: GPUTarget, opts: Options, given: Mapping[str, Any], timings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The facts and the blobs of a kernel, as they are put into a store."""
    language, maxnreg, remarks = opts.language, given.get("maxnreg"), RemarkCollector()
    with stage("ttir", timings):
        module = _modules(src, target, language, given, remarks)
        ttir = print_module(module)
        module_facts = {
            "stored_params": stored_params(module),
            "wrapped_offsets": [asdict(wrapped) for wrapped in wrapped_offsets(module)],
        }
    with stage("lane", timings, lambda: ttir):
        program = lower(_laid_out(module, target, language, remarks), target.machine, remarks)
    with stage("llir", timings, lambda: text_of(program)):
        dialect = PTX(target.machine)
        llir = emit_llvm(program, dialect, language.enable_fp_fusion, maxnreg)
    with stage("ptx", timings, lambda: llir):
        ptx = assembly(llir, dialect.target, dialect.version)
    facts = _facts(program, emitted_of(program, dialect, llir, ptx, maxnreg), module_facts, language)
    texts = {"source": src.text(), "ttir": ttir, "llir": llir, "ptx": ptx, REMARKS: remarks.collected().to_json()}
    return facts, {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}


def _modules(
    src: Source, target: GPUTarget, language: CompileOptions, options: Mapping[str, Any], remarks: RemarkCollector
) -> ModuleOp:
    """Tile IR; for a Gluon kernel, layout IR."""
    if src.ext == "ttgir":
        return gpu.layout_ir(src, target, options, remarks)
    module: ModuleOp = src.make_ir(language, target)
    if "ttg.num-warps" in module.attributes:  # layout IR as text
        fence_copies(module)
    return gpu_tile_pipeline(module, target.machine.threads(language.num_warps), language.enable_fp_fusion, remarks)


def _laid_out(
    module: ModuleOp, target: GPUTarget, language: CompileOptions, remarks: RemarkCollector = NO_REMARKS
) -> ModuleOp:
    """Layout IR as the lowering takes it; the module is changed."""
    if "ttg.num-warps" in module.attributes:
        gpu.check_cluster(gpu.blocks_of(module), target.machine)
        if language.debug:
            check_layout_ir(module, values=language.sanitize_overflow)
        return layout_pipeline(module, remarks)
    gpu.check_cluster(language.num_ctas, target.machine)
    warps, stages, blocks = language.num_warps, language.num_stages, language.num_ctas
    debug, values = language.debug, language.debug and language.sanitize_overflow
    fuse = language.enable_fp_fusion
    how = {"fuse": fuse, "debug": debug, "values": values}
    return gpu_pipeline(module, target.machine, warps, stages, blocks, **how, remarks=remarks)


def _again(ttir: str, target: GPUTarget, language: CompileOptions) -> ModuleOp:
    """The layout IR once more, from the tile IR."""
    module = IRSource(ttir).make_ir(language, target)
    return _laid_out(module, target, language)


def layout_text(ttir: str, target: GPUTarget, language: CompileOptions) -> str:
    """The layout IR that tile IR became, as text."""
    return print_module(_again(ttir, target, language))


def lane_text(ttir: str, target: GPUTarget, language: CompileOptions) -> str:
    """The lane program that tile IR became, as text."""
    return text_of(lower(_again(ttir, target, language), target.machine))


def _facts(
    program: LaneProgram, emitted: Emitted, module_facts: Mapping[str, Any], language: CompileOptions
) -> dict[str, Any]:
    """What is kept beside the texts."""
    return {
        **emitted.metadata,
        **module_facts,
        "num_stages": language.num_stages,
        "debug": language.debug,
        "enable_fp_fusion": language.enable_fp_fusion,
        "warp_size": program.lanes,
        "maxnreg": emitted.maxnreg,
        "backend_name": "cuda",
    }
