"""Layout IR of Gluon kernels by the real Triton, where it is installed; no GPU is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .sources import Source, arguments_of

__all__ = ["accepted", "cleaned", "made_by_triton"]


def _context() -> Any:
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    backend = make_backend(GPUTarget("cuda", 90, 32))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def _clean(module: Any, context: Any, resolve: bool = False, maps: bool = False) -> str:
    """The text of a module after the passes that make two spellings of one program one; with all layouts resolved."""
    from triton._C.libtriton import ir, nvidia, passes

    manager = ir.pass_manager(context)
    manager.enable_debug()
    if resolve:
        passes.gluon.add_inliner(manager)
        passes.gluon.add_infer_coalesced_encodings(manager)
        passes.gluon.add_resolve_auto_encodings(manager)
    for add in (passes.common.add_inliner, passes.common.add_canonicalizer, passes.common.add_cse):
        add(manager)
    passes.common.add_symbol_dce(manager)
    passes.common.add_canonicalizer(manager)
    if maps:
        nvidia.passes.ttnvgpuir.add_tma_lowering(manager)
        passes.common.add_canonicalizer(manager)
        passes.common.add_cse(manager)
    manager.run(module, "clean")
    return str(module)


def made_by_triton(source: Source, resolve: bool = False, maps: bool = False) -> str:
    """What Triton's frontend makes of a kernel, cleaned; with `resolve`, after its passes that find layouts.

    With `maps`, descriptors that the kernel makes are tensor maps.
    """
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.experimental.gluon._runtime import GluonASTSource

    target = GPUTarget("cuda", source.capability, 32)
    backend = make_backend(target)
    options = backend.parse_options(source.options)
    signature, attributes = arguments_of(source)
    made = GluonASTSource(source.kernel, signature, source.constexprs, attributes)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = made.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    return _clean(module, context, resolve, maps)


def cleaned(text: str, path: Path) -> str:
    """A text of layout IR, read by Triton and cleaned."""
    from triton._C.libtriton import ir

    context = _context()
    path.write_text(text, encoding="utf-8")
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    assert module.verify()
    return _clean(module, context)


def accepted(text: str, capability: int, options: dict[str, Any], path: Path) -> Any:
    """A kernel compiled by Triton from layout IR, down to PTX without assembling it."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import IRSource, make_backend

    path.write_text(text, encoding="utf-8")
    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = IRSource(str(path), context, backend)
    parsed = backend.parse_options({**source.parse_options(), **options})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, source.language)
    module, metadata = source.make_ir(target, parsed, {}, {}, context), {}
    for name in ("ttgir", "llir", "ptx"):
        module = stages[name](module, metadata)
    return module
