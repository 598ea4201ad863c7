"""The stages of a compilation for a GPU: tile IR, layout IR, the lane program, and what the back end makes of that.

Imported when the first kernel has to be compiled; see `gpu_kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from weft.analysis import wrapped_offsets
from weft.base import CompileOptions
from weft.base.remarks import RemarkCollector
from weft.ir import print_module
from weft.ir.lane import text_of

from .backends import backend_of
from .gpu import laid_out, lowered, tile_ir
from .options import Options
from .sources import IRSource, Source
from .stages import REMARKS, stage
from .stores import stored_params
from .target import GPUTarget


def make(
    src: Source, target: GPUTarget, opts: Options, options: Mapping[str, Any], timings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The facts and the blobs of a kernel, as they are put into a store."""
    language, remarks = opts.language, RemarkCollector()
    with stage("ttir", timings):
        module = tile_ir(src, target, options, remarks)
        backend_of(target.machine).tell(module, options)
        ttir = print_module(module)
        module_facts = {
            "stored_params": stored_params(module),
            "wrapped_offsets": [asdict(wrapped) for wrapped in wrapped_offsets(module)],
        }
    with stage("lane", timings, lambda: ttir):
        program = lowered(module, target.machine, language, remarks)
    facts, texts = backend_of(target.machine).make(program, language, options, timings)
    metadata = {
        "num_stages": language.num_stages,
        "debug": language.debug,
        "enable_fp_fusion": language.enable_fp_fusion,
        "warp_size": program.lanes,
        "backend_name": target.backend,
    }
    facts = {**facts, **module_facts, **metadata}
    texts |= {"source": src.text(), "ttir": ttir, REMARKS: remarks.collected().stored()}
    blobs = {n: t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for n, t in texts.items()}
    return facts, blobs


def layout_text(ttir: str, target: GPUTarget, language: CompileOptions) -> str:
    """The layout IR that tile IR became, as text."""
    return print_module(laid_out(IRSource(ttir).make_ir(language, target), target.machine, language))


def lane_text(ttir: str, target: GPUTarget, language: CompileOptions) -> str:
    """The lane program that tile IR became, as text."""
    return text_of(lowered(IRSource(ttir).make_ir(language, target), target.machine, language))
