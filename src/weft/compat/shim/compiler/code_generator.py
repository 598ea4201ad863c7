"""triton.compiler.code_generator."""

from __future__ import annotations

from typing import Any

from weft import frontend
from weft.runtime.errors import (
    CompilationError as CompilationError,
    CompileTimeAssertionFailure as CompileTimeAssertionFailure,
    UnsupportedLanguageConstruct as UnsupportedLanguageConstruct,
)


def ast_to_ttir(
    fn: Any, src: Any, context: Any, options: Any, codegen_fns: Any, module_map: Any, module: Any = None
) -> Any:
    """Trace a kernel; the module is xDSL's."""
    return frontend.ast_to_ttir(fn, src.signature, src.constants, src.attrs, getattr(options, "language", options))
