"""Python that kernels cannot contain, and what to write instead."""

from __future__ import annotations

import ast

from weft.base import Span, UnsupportedLanguageConstruct

# kind of node -> (what it is called, what to do instead)
_ADVICE: dict[str, tuple[str, str]] = {
    "AsyncFor": ("`async for`", "kernels are not asynchronous; use a plain `for`"),
    "AsyncFunctionDef": ("an `async` function", "kernels are not asynchronous"),
    "AsyncWith": ("`async with`", "kernels are not asynchronous"),
    "Await": ("`await`", "kernels are not asynchronous"),
    "Break": ("`break`", "put the condition into a `while` loop, or mask what later iterations do"),
    "ClassDef": ("a class definition", "define the class outside the kernel, as a named tuple or an aggregate"),
    "Continue": ("`continue`", "put the rest of the loop's body under an `if`"),
    "Delete": ("`del`", "values need no deleting"),
    "Dict": ("a dictionary", "use a tuple, or a named tuple defined outside the kernel"),
    "DictComp": ("a dictionary", "use a tuple, or a named tuple defined outside the kernel"),
    "FunctionDef": ("a nested function definition", "define the function outside the kernel, with @jit"),
    "GeneratorExp": ("a generator expression", "use a list comprehension over a tuple"),
    "Global": ("`global`", "a kernel cannot change globals; return the value, or store it"),
    "Import": ("`import`", "import the module outside the kernel"),
    "ImportFrom": ("`import`", "import the module outside the kernel"),
    "Lambda": ("`lambda`", "define a function outside the kernel, with @jit"),
    "Match": ("`match`", "use `if` and `elif`"),
    "Nonlocal": ("`nonlocal`", "a kernel cannot change outer variables; return the value, or store it"),
    "Raise": ("`raise`", "use tl.static_assert (while compiling) or tl.device_assert (while running)"),
    "Set": ("a set", "use a tuple"),
    "SetComp": ("a set", "use a tuple"),
    "Starred": ("a starred expression here", "unpack a tuple in a call or a tuple display only"),
    "Try": ("`try`", "kernels have no exceptions; test the condition with `if`"),
    "TryStar": ("`try`", "kernels have no exceptions; test the condition with `if`"),
    "TypeAlias": ("a type alias", "define it outside the kernel"),
    "Yield": ("`yield`", "return a tuple"),
    "YieldFrom": ("`yield`", "return a tuple"),
}


def unsupported_syntax(node: ast.AST, span: Span, source_line: str | None) -> UnsupportedLanguageConstruct:
    """The error for a kind of node that is not part of the language."""
    kind = type(node).__name__
    construct, hint = _ADVICE.get(kind, (f"`{kind}`", None))
    return UnsupportedLanguageConstruct(
        f"{construct} cannot be used in a kernel", span, source_line=source_line, hint=hint
    )
