"""triton.compiler.ASTSource: a kernel to be compiled, whose tile IR can be asked for as Triton's is."""

from __future__ import annotations

import importlib
from typing import Any

from weft import compiler
from weft.base import CompileOptions
from weft.compiler import as_target

__all__ = ["ASTSource"]


class ASTSource(compiler.ASTSource):
    """A kernel, `signature` the types of its parameters by name, `constexprs` values by name or by path."""

    def make_ir(  # type: ignore[override]
        self, target: Any, options: Any, codegen_fns: Any = None, module_map: Any = None, context: Any = None
    ) -> Any:
        """A module of `triton._C.libtriton.ir`; for the compiler, which asks with (options, target), xDSL's."""
        if isinstance(target, CompileOptions):
            return super().make_ir(target, options)
        ir = importlib.import_module("weft.compat.shim._C.libtriton.ir")
        return ir.module(super().make_ir(getattr(options, "language", options), as_target(target)))
