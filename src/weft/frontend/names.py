"""What a free name of a kernel may mean, and what to say when it means nothing.

A kernel is compiled once and launched many times, so it may read only globals that cannot change unnoticed:
constexprs, types, modules, jit functions, builtins.  An ordinary global is refused, also where it is annotated
(`N: tl.constexpr = 4` leaves an int in the module), unless the options allow it.
"""

from __future__ import annotations

import ast
import builtins
from difflib import get_close_matches
from typing import Any

from weft.base import CompilationError
from weft.language import core
from weft.language.callable import MISSING
from weft.language.reading import may_be_captured

from .traced import Traced

BUILTIN_FUNCTIONS: dict[str, Any] = {
    **{f.__name__: f for f in (len, list, range, float, int, isinstance, getattr, hasattr)},
    "print": core.device_print,
    "min": core.builtin_min,
    "max": core.builtin_max,
}
"""Python's builtins that kernels can use, and what stands for them."""

# Names that Python has and kernels do not -> what to use.
_INSTEAD = {
    "abs": "tl.abs(x)",
    "all": "tl.reduce, or (x == 0).sum() == 0",
    "any": "tl.max(x.to(tl.int32), axis) != 0",
    "bool": "x.to(tl.int1), or x != 0",
    "enumerate": "tl.static_range(len(t)) and t[i]",
    "map": "a list comprehension over a tuple, or tl.map_elementwise",
    "pow": "tl.exp2(y * tl.log2(x)), or libdevice.pow",
    "reversed": "range with a negative step",
    "round": "libdevice.rint",
    "sorted": "tl.sort",
    "sum": "tl.sum(x, axis)",
    "tuple": "a tuple display, (a, b)",
    "zip": "tl.static_range(len(t)) and t[i]",
}


def _is_allowed(value: Any) -> bool:
    """Whether a kernel may read a global of this value: it cannot change under the compiled code unnoticed."""
    return may_be_captured(value) or isinstance(value, core.base_type)


def lookup_global(frame: Traced, name: str, node: ast.AST) -> Any:
    """A captured variable, a global or a builtin; MISSING where there is none; an error where it may not be read."""
    value = frame.nonlocals.get(name, MISSING)
    if value is MISSING:
        value = frame.fn.__globals__.get(name, MISSING)
    if value is MISSING:
        return BUILTIN_FUNCTIONS.get(name, MISSING)
    if _is_allowed(value) or value is BUILTIN_FUNCTIONS.get(name, MISSING):
        return value
    if name in frame.fn.assigned:  # a variable of the kernel, which has no value yet
        return MISSING
    if getattr(frame.trace.options, "allow_non_constexpr_globals", False):
        return core.constexpr(value) if isinstance(value, (bool, int, float, str)) else value
    raise _not_constant(frame, name, value, node)


def _not_constant(frame: Traced, name: str, value: Any, node: ast.AST) -> CompilationError:
    kind = type(value).__name__
    if callable(value) and not isinstance(value, type):
        return frame.error(
            f"`{name}` is an ordinary Python function, which a kernel cannot call",
            node,
            hint="decorate it with @jit to run it in the kernel, or with @constexpr_function to run it when the kernel "
            "is compiled",
        )
    if isinstance(value, (bool, int, float, str, tuple, list)):
        shown = repr(value) if len(repr(value)) <= 40 else "..."
        hint = f"make it constant, `{name} = tl.constexpr({shown})`, or pass it as an argument"
        if name not in frame.nonlocals and name in frame.fn.__globals__.get("__annotations__", ()):
            hint += "; an annotation does not make it constant"
    else:
        hint = "pass it as an argument"
    if name in frame.nonlocals:
        text = f"{name} is not defined for the kernel: it is a captured variable of type {kind}"
    else:
        text = f"Cannot access global variable {name} from within @jit'ed function. It is of type {kind}"
    return frame.error(f"{text}, which could change between launches", node, like=NameError, hint=hint)


def did_you_mean(name: str, candidates: Any) -> str | None:
    """A hint that names the nearest candidates, if any is near."""
    near = get_close_matches(name, [c for c in candidates if isinstance(c, str) and not c.startswith("__")], 2, 0.7)
    return "did you mean " + " or ".join(f"`{c}`" for c in near) + "?" if near else None


def undefined_name(frame: Traced, name: str, node: ast.AST) -> CompilationError:
    """The error for a name that means nothing."""
    hint = None
    if name == "breakpoint":
        hint = "a kernel is compiled, so a debugger cannot stop in it; show values with tl.device_print"
    elif name in _INSTEAD:
        hint = f"Python's `{name}` does not work in kernels; use {_INSTEAD[name]}"
    elif hasattr(builtins, name):
        hint = f"Python's `{name}` does not work in kernels; compute with it before the launch, and pass the result"
    else:
        visible = {**frame.fn.__globals__, **frame.nonlocals, **frame.scope, **BUILTIN_FUNCTIONS}
        hint = None if name in frame.fn.assigned else did_you_mean(name, visible)
        if hint is None and name in frame.fn.fn.__code__.co_freevars:
            hint = f"the enclosing function had not set `{name}` when the kernel was compiled"
    if name in frame.fn.assigned:
        hint = f"`{name}` is set elsewhere in {frame.fn.__name__}, so it is a variable of the kernel; set it before too"
    return frame.error(f"{name} is not defined", node, like=NameError, hint=hint)
