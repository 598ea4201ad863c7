"""The stages of a compilation for the CPU: tile IR, LLVM IR, the object.

Imported when the first kernel has to be compiled; see `stages`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.analysis import wrapped_offsets
from weft.backends.cpu import assembly, compile_module
from weft.base import Unsupported
from weft.base.remarks import RemarkCollector
from weft.ir import find, print_module, register_of, span_of, tt
from weft.passes import cpu_pipeline, tile_pipeline

from .options import Options
from .sources import Source
from .stages import REMARKS, Dump, stage
from .stores import stored_params
from .target import GPUTarget

__all__ = ["assembly", "make", "wrapped"]


def make(
    src: Source, target: GPUTarget, opts: Options, timings: dict[str, float], dump: Dump | None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The facts and the blobs of a kernel, as they are put into a store."""
    fuse, remarks = opts.language.enable_fp_fusion, RemarkCollector()
    with stage("ttir", timings):
        module = src.make_ir(opts.language, target)
        _refuse_assembly(module)  # first: passes drop it where it is pure and nobody uses it
        ttir = print_module(tile_pipeline(module, fuse=fuse, remarks=remarks))
        stored = stored_params(module)
        wrap = [asdict(offset) for offset in wrapped_offsets(module)]
    if dump is not None:
        dump(src.name, "ttir", ttir)
    debug = opts.language.debug
    checked = debug and opts.language.sanitize_overflow
    backend = replace(opts.backend, assume_no_alias=False) if checked else opts.backend  # nothing is taken on trust
    with stage("llir", timings, lambda: ttir):
        prepared = cpu_pipeline(module, debug=debug, values=checked, fuse=fuse, remarks=remarks)
        binary = compile_module(*prepared, backend, remarks)
    facts = {
        **binary.metadata,
        "stored_params": stored,
        "wrapped_offsets": wrap,
        "num_warps": opts.language.num_warps,
        "num_ctas": opts.language.num_ctas,
        "num_stages": opts.language.num_stages,
        "debug": opts.language.debug,
        "enable_fp_fusion": opts.language.enable_fp_fusion,
    }
    texts = {"source": src.text(), "ttir": ttir, "llir": binary.llir, REMARKS: remarks.collected().stored()}
    blobs = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
    return facts, {**blobs, "object": bytes(binary.object)}


def _refuse_assembly(module: ModuleOp) -> None:
    """Assembly is that of another machine, but where it reads a register that a CPU has an equivalent of.

    Assembly of kernels is refused when they are traced; this is for tile IR of others.
    """
    for op in find(module, tt.ElementwiseInlineAsmOp):
        if register_of(op) is None:
            raise Unsupported("inline_asm_elementwise", "cpu", span=span_of(op), works_on=("cuda",))


def wrapped(src: Source, target: GPUTarget, opts: Options) -> list[dict[str, Any]]:
    """The offsets of a kernel that are known to wrap, as plain data."""
    module = tile_pipeline(src.make_ir(opts.language, target), fuse=opts.language.enable_fp_fusion)
    return [asdict(offset) for offset in wrapped_offsets(module)]
