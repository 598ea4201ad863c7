"""Layout IR of Gluon kernels by the real Triton, where it is installed; no GPU is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frontend.triton_oracle import negated_by_subtraction

from .sources import Source, arguments_of

__all__ = ["accepted", "assembly_of", "cleaned", "made_by_triton"]


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
    path.write_text(negated_by_subtraction(text), encoding="utf-8")
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    assert module.verify()
    return _clean(module, context)


def accepted(text: str, capability: int, options: dict[str, Any], path: Path) -> Any:
    """A kernel compiled by Triton from layout IR, down to PTX without assembling it."""
    return assembly_of(text, capability, options, path)[0]


def assembly_of(text: str, capability: int, options: dict[str, Any], path: Path) -> tuple[str, dict[str, Any]]:
    """(the PTX that Triton makes of layout IR, what it says about the kernel: `shared` are bytes)."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import IRSource, make_backend

    path.write_text(negated_by_subtraction(text), encoding="utf-8")
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
    return module, metadata


class Inference:
    """What Triton infers: operations put into a function that is never finished."""

    def __init__(self) -> None:
        from triton._C.libtriton import gluon_ir, ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler import make_backend

        self.context = ir.context()
        ir.load_dialects(self.context)
        make_backend(GPUTarget("cuda", 90, 32)).load_dialects(self.context)
        build = self.build = gluon_ir.GluonOpBuilder(self.context)
        self.module = build.create_module()
        self.module.set_attr("ttg.target", build.get_string_attr("cuda:90"))
        for name, value in (("num-warps", 4), ("num-ctas", 1), ("threads-per-warp", 32)):
            self.module.set_attr(f"ttg.{name}", build.get_int32_attr(value))
        build.set_loc("inference", 1, 0)
        function = build.get_or_insert_function(self.module, "k", build.get_function_ty([], []), "public", False)
        self.module.push_back(function)
        build.set_insertion_point_to_start(function.add_entry_block())

    def _ir(self, layout: Any) -> Any:
        """A layout of ours as an attribute of Triton's."""
        from triton.experimental.gluon import language as gl

        return eval(repr(layout), vars(gl))._to_ir(self.build)

    def tile(self, op: str, layout: Any, shape: list[int], *args: Any) -> str:
        """The text of the layout of a tile's `create_<op>`."""
        build = self.build
        type = build.get_distributed_ty(build.get_float_ty(), shape, self._ir(layout))
        tile = build.create_poison(type)
        made = getattr(build, f"create_{op}")(tile, *([tile] if op == "join" else args))
        return str(build.get_gluon_layout_from_tensor(made))

    def memory(self, op: str, layout: Any, shape: list[int], *args: Any) -> str:
        """The text of the layout of memory's `create_memdesc_<op>`."""
        build = self.build
        type = build.get_shared_mem_desc_ty(build.get_half_ty(), shape, self._ir(layout), shape)
        made = getattr(build, f"create_memdesc_{op}")(build.create_local_alloc(type), *args)
        return str(build.get_gluon_layout_from_memdesc(made))
