"""The same few lines of a kernel through Triton and through Weft, and whether the tile IR is the same.

IR is compared after Triton's inliner, canonicalizer and CSE have been run over both, as the set of its operations.
Operations that do nothing (a bitcast to the same type) do not count.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from frontend.triton_oracle import OPTIONS, negated_by_subtraction
from weft import ir
from weft.base import CompilationError
from weft.frontend import ast_to_ttir

HEADER = """
@jit
def add(a, b):
    return a + b

@jit
def pairs(a, i, b, j):
    return a + b, i * j

@jit
def compare(a, b):
    return a > b

@jit
def twice(x):
    return x * 2

@jit
def both(x, y):
    return x + y, y

@jit
def packed(x0, x1):
    return x0 + x1, x0 - x1

@jit
"""
TRITON = "import triton.language as tl\nfrom triton import jit\nfrom triton.language.extra import libdevice\n"
WEFT = "import weft.language as tl\nfrom weft.language.callable import jit\nfrom weft.language.extra import libdevice\n"
_count = itertools.count()


def kernel_module(imports: str, code: str, types: dict[str, str], folder: Path) -> ModuleType:
    """A module with the kernel `k` of these lines."""
    body = "".join(f"    {line}\n" for line in code.split("\n"))
    path = folder / f"case_{next(_count)}.py"
    path.write_text(f"{imports}{HEADER}def k({', '.join(types)}):\n{body}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weft_text(code: str, types: dict[str, str], folder: Path) -> str | CompilationError:
    """Weft's tile IR, or why it refused."""
    module = kernel_module(WEFT, code, types, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ir.print_module(ast_to_ttir(module.k, dict(types), {}, {}, OPTIONS))
        except CompilationError as error:
            return error


def triton_text(code: str, types: dict[str, str], folder: Path) -> str | Exception:
    """Triton's tile IR, or why it refused."""
    from triton._C.libtriton import ir as triton_ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    module = kernel_module(TRITON, code, types, folder)
    backend = make_backend(GPUTarget("cuda", 90, 32))
    options = backend.parse_options({"sanitize_overflow": False})
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            source = ASTSource(module.k, types, {})
            made = source.make_ir(
                backend.target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
            )
        except Exception as error:
            return error
    return str(made.str_nodebug())


def cleaned(text: str, folder: Path) -> list[str]:
    """The operations of a module after Triton's clean-up, without names."""
    from triton._C.libtriton import ir as triton_ir, passes
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    context = triton_ir.context()
    triton_ir.load_dialects(context)
    make_backend(GPUTarget("cuda", 90, 32)).load_dialects(context)
    path = folder / f"case_{next(_count)}.ttir"
    path.write_text(negated_by_subtraction(text), encoding="utf-8")
    module = triton_ir.parse_mlir_module(str(path), context)
    manager = triton_ir.pass_manager(context)
    for add in (
        passes.common.add_inliner,
        passes.common.add_canonicalizer,
        passes.common.add_cse,
        passes.common.add_symbol_dce,
        passes.common.add_canonicalizer,
    ):
        add(manager)
    manager.run(module, "clean")
    text = str(module.str_nodebug()).replace('libname = "libdevice"', 'libname = ""')
    text = re.sub(r"%[\w#:-]+", "%", text).replace(" attributes {noinline = false}", "")
    lines = [line.strip() for line in text.split("\n")]
    return sorted(line for line in lines if line and not re.match(r"% = tt.bitcast % : (\S+) -> \1$", line))


def parse_case(line: str) -> tuple[str, dict[str, str], str]:
    """`same | x=fp32 | r=-x ;; tl.device_print('r', r)` as kind, types, code."""
    kind, types, code = (part.strip() for part in line.split(" | ", 2))
    named: dict[str, Any] = dict(item.split("=", 1) for item in types.split())
    return kind, named, code.replace(" ;; ", "\n")
