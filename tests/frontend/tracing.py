"""Helpers of the frontend's tests: tile IR of a kernel, and FileCheck of it.

A kernel under test carries its checks in comments, which the printed IR must match from top to bottom:

    @checks({"x": "*fp32"})
    def kernel(x):
        # CHECK: [[V:%.*]] = tt.load %x
        # CHECK-NEXT: tt.store %x, [[V]]
        tl.store(x, tl.load(x))
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from weft import ir
from weft.base import CompileOptions
from weft.frontend import ast_to_ttir
from weft.language.callable import JITCallable, jit

__all__ = ["checks", "filecheck", "ir_text"]


def ir_text(
    fn: Any,
    signature: Mapping[str, Any],
    constants: Mapping[Any, Any] | None = None,
    attributes: Mapping[Any, Any] | None = None,
    options: CompileOptions | None = None,
) -> str:
    """The tile IR of a kernel, verified, printed, and printed equal after parsing."""
    kernel = fn if isinstance(fn, JITCallable) else jit(fn)
    signature = {**signature, **{n: "constexpr" for n in constants or {} if isinstance(n, str)}}
    module = ast_to_ttir(kernel, signature, constants, attributes, options)
    ir.verify(module)
    text = ir.print_module(module)
    assert ir.print_module(ir.parse_module(text)) == text
    return text


def filecheck(text: str, comments: str) -> None:
    """Match the CHECK lines of `comments` against a text."""
    options = Options(match_filename="checks")
    parser = Parser(options, io.StringIO(comments), *pattern_for_opts(options))
    assert Matcher(options, FInput("ir", text), parser).run() == 0, text


def checks(signature: Mapping[str, Any], **constants: Any) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Make a test of a kernel whose comments are CHECK lines."""

    def decorate(fn: Callable[..., Any]) -> Callable[[], None]:
        kernel = jit(fn)

        def test() -> None:
            filecheck(ir_text(kernel, signature, constants), kernel.src)

        test.__name__ = f"test_{fn.__name__}"
        test.__doc__ = fn.__doc__
        return test

    return decorate
