"""triton.compiler.ASTSource and IRSource: what is to be compiled, as Triton's tools ask for its facts."""

from __future__ import annotations

import os
import re
from typing import Any

from weft import compiler, runtime
from weft.base import CompileOptions, load
from weft.compiler import as_target

_FUNCTION = re.compile(r"tt\.func\s+(?:public\s+)?@[^(]*\((.*?)\)\s*(?:->[^{]*)?(?:attributes|\{\s*\n)", re.DOTALL)
_PARAMETER = re.compile(r"%\w+\s*:\s*((?:!tt\.ptr<[^>]*>|!?[\w.]+(?:<[^{]*>)?))\s*(\{[^}]*\})?")


class ASTSource(compiler.ASTSource):
    """A kernel, `signature` the types of its parameters by name, `constexprs` values by name or by path."""

    def make_ir(  # type: ignore[override]
        self, target: Any, options: Any, codegen_fns: Any = None, module_map: Any = None, context: Any = None
    ) -> Any:
        """A module of `triton._C.libtriton.ir`; for the compiler, which asks with (options, target), xDSL's."""
        if isinstance(target, CompileOptions):
            return super().make_ir(target, options)
        ir = load("weft.compat.shim._C.libtriton.ir")
        return ir.module(super().make_ir(getattr(options, "language", options), as_target(target)))


class IRSource(runtime.IRSource):
    """Tile IR or layout IR, as a path or as text; a context and a back end, which Triton's wants, change nothing.

    `signature` has the types of the parameters by number.
    """

    def __init__(self, path: str | os.PathLike[str], context: Any = None, backend: Any = None) -> None:
        super().__init__(path)
        function = _FUNCTION.search(self.src)
        parameters = _PARAMETER.findall(function[1]) if function else []
        self.signature = {i: _in_signature(*parameter) for i, parameter in enumerate(parameters)}
        self.name = f"@{self.name}"  # as Triton calls it

    def parse_options(self) -> dict[str, int]:
        """The options that the text fixes."""
        match = re.search(r'"ttg\.num-warps"\s*=\s*(\d+)', self.src)
        return {"num_warps": int(match[1])} if match else {}


def _in_signature(type: str, attributes: str) -> str:
    if "tt.nv_tma_desc = " in attributes:
        return "nvTmaDesc"
    pointee = re.fullmatch(r"!tt\.ptr<([^,>]*).*>", type)
    return f"*{pointee[1]}" if pointee else type
