"""Turning whatever was raised while tracing into an error at a place in the kernel, or into a report about Weft.

Builtins raise plain ValueError or TypeError with a good message; the place is known here.  Exceptions that no one
raised on purpose (an AttributeError inside the compiler, say) are faults of Weft and say so.
"""

from __future__ import annotations

import ast
import os
import re
import traceback
from types import TracebackType

import weft.base
from weft.base import CompilationError, CompilerCrash, Note, OutsideKernelError, WeftError
from weft.language import core
from weft.language.constants import unwrap

from .traced import Traced
from .ways import way_out

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(weft.base.__file__))) + os.sep

# What Python itself raises when it is handed wrong values: the kernel's fault wherever it is raised.
_ABOUT_VALUES = (ValueError, TypeError, NotImplementedError, ArithmeticError, RuntimeError, NameError)


def _innermost(tb: TracebackType | None) -> TracebackType | None:
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb


def _in_package(tb: TracebackType) -> bool:
    """Whether the code is Weft's, or of the library that its IR is made with."""
    frame = tb.tb_frame
    return frame.f_code.co_filename.startswith(_PACKAGE) or str(frame.f_globals.get("__name__")).startswith("xdsl.")


def _raised_on_purpose(tb: TracebackType) -> bool:
    """Whether the innermost instruction is a `raise` (or an assertion with a message) rather than a slip."""
    code = tb.tb_frame.f_code
    opcode = code.co_code[tb.tb_lasti] if 0 <= tb.tb_lasti < len(code.co_code) else -1
    return opcode == _RAISE_VARARGS


def _readable(text: str) -> str:
    """A message without addresses of memory, paths and classes of Weft's own: `<function f at 0x7f3a...>` is called
    function f, `'constexpr[4]'` is 4, `<['4'], fp32>` is fp32[4].
    """
    text = _OBJECT.sub(lambda m: f"function {m[1]}" if m[1] else f"a {m[2].rpartition('.')[2]}", text)
    text = _MODULE.sub(r"module \1", text)
    text = _CALLABLE.sub(r"function \1", text)
    text = _TYPE.sub("tl.", text)
    text = _TILE.sub(lambda m: m[2] + "[" + m[1].replace("'", "") + "]", text)
    return _CONSTANT.sub(r"\2", text)


_OBJECT = re.compile(
    r"<(?:(?:function|built-in function|bound method) (\S+)|([\w.<>]+) object)[^<>]* at 0x[0-9a-fA-F]+>"
)


_CLASS = re.compile(r"<class '(?:[\w.]*\.)?(\w+)'>")
_MODULE = re.compile(r"<module '([\w.]+)' from '[^']*'>")
_CALLABLE = re.compile(r"\bJITCallable\((?:[\w.<>]+:)([\w.<>]+)\)")
_TYPE = re.compile(r"\bweft\.language\.(?=(?:u?int|float|bfloat|fp)\d)")
_TILE = re.compile(r"<\[((?:'\d+'(?:, )?)+)\], (\w+(?:<\w+>)?)>")
_CONSTANT = re.compile(r"(?<!`)('?)\bconstexpr\[([^\[\]']*)\]\1")


def is_slip(error: BaseException) -> bool:
    """Whether Python itself raised `error` inside of a builtin (`<=` of a number and a tuple, a tensor in a condition):
    its text is about Weft's code, not about the kernel.
    """
    if isinstance(error, OutsideKernelError):
        return True
    below = error.__traceback__.tb_next if error.__traceback__ is not None else None
    innermost = _innermost(below)
    if innermost is None or not _in_package(innermost):
        return False  # raised by the call: the arguments are not the function's
    return not _raised_on_purpose(innermost)


MANY_CALLS = 20
"""Calls within one another from which on it is they that are too deep, more than the expression in the innermost."""


def _too_deep(frame: Traced) -> WeftError:
    """The error where Python's stack is full: of calls, or of what one function has within one another."""
    calls = len(frame.trace.active) - 1
    larger = "sys.setrecursionlimit(...) makes the stack larger"
    if calls < MANY_CALLS:
        return frame.error("the kernel is nested too deeply to be compiled", hint=f"split the expression; {larger}")
    return frame.error(
        f"{calls} calls within one another are nested too deeply to be compiled",
        hint=f"let fewer functions call each other, or repeat with tl.static_range; {larger}",
    )


def diagnose(frame: Traced, error: BaseException) -> WeftError:
    """The error to raise for `error`, which came out of tracing `frame`."""
    if isinstance(error, CompilationError):
        if error.span is None:
            error.message = _readable(error.message)
            error.with_span(frame.span(), frame.source_line())
            error.hint = _readable(error.hint) if error.hint else way_out(frame, error.message, None)
        return error
    if isinstance(error, WeftError) and not isinstance(error, OutsideKernelError):
        return error
    if isinstance(error, RecursionError):
        return _too_deep(frame)
    if isinstance(error, MemoryError):
        smaller = "make what is computed at compile time here smaller"
        return frame.error("there is not enough memory to compile this", like=MemoryError, hint=smaller)
    tb = _innermost(error.__traceback__)
    text = _readable(str(error))
    if tb is not None and not _in_package(tb) and not isinstance(error, _ABOUT_VALUES):
        return frame.error(f"{type(error).__name__}: {text}")  # raised by the user's own host code
    if isinstance(error, _ABOUT_VALUES) or (text and tb is not None and _raised_on_purpose(tb)):
        if not text:
            text = type(error).__name__
        elif tb is not None and not _in_package(tb):
            text = f"{type(error).__name__}: {text}"
        told = _readable("; ".join(getattr(error, "__notes__", ())))
        if "constexpr" in text:
            notes, hint = _not_known(frame)
            return frame.error(text, notes=notes, hint=told or hint)
        hint = told or _about_an_argument(frame, text)
        made = frame.error(text, like=type(error) if isinstance(error, Exception) else ValueError, hint=hint)
        made.hint = made.hint or getattr(error, "misfit", None)
        made.message = _CLASS.sub(r"\1", made.message)  # hints go by the whole of it
        return made
    crash = CompilerCrash(
        f"{type(error).__name__}: {text}" if text else type(error).__name__,
        "the frontend",
        frame.span(),
        traceback="".join(traceback.format_exception(error)),
    )
    crash.source_line = frame.source_line()
    return crash


def _not_known(frame: Traced) -> tuple[list[Note], str | None]:
    """Which argument of a call should have been known at compile time, and how it can be."""
    call = frame.node
    if not isinstance(call, ast.Call):
        return [], None
    arguments = [*call.args, *(k.value for k in call.keywords)]
    for name in [n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name)]:
        if not isinstance(frame.scope.get(name), core.tensor) or frame.scope[name].type.is_block():
            continue
        for statement in ast.walk(frame.fn.parse()):
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                note = frame.note(f"`{name}` is assigned here, so it exists only when the kernel runs", statement)
                return [note], f"annotate it, `{name}: tl.constexpr = ...`, if its value is known at compile time"
        if name in frame.fn.arg_names:
            return [], f"mark the parameter, `{name}: tl.constexpr`"
    return [], None


def _about_an_argument(frame: Traced, text: str) -> str | None:
    """Which parameter of the kernel, at the place of an error, is None or a number in this launch and should not be."""
    if re.search(r"\bNone(Type)?\b", text):
        if isinstance(frame.node, ast.Compare):
            return "`is None` and `is not None` ask whether a value is None"
        for name in _parameters(frame, frame.node):
            if unwrap(frame.scope.get(name, 0)) is None:
                use = f"use it only under `if {name} is not None:`"
                return f"the argument `{name}` is None in this call: give it, or {use}"
    if "a tuple" in text or "the tuple" in text:
        for name in _parameters(frame, frame.node):
            if isinstance(frame.scope.get(name), core.tuple):
                return f"the argument `{name}` is a tuple in this call: where an array is due, pass numpy.array({name})"
    if text.startswith("Unsupported ptr type") and isinstance(frame.node, ast.Call) and frame.node.args:
        for name in _parameters(frame, frame.node.args[0]):
            if isinstance(unwrap(frame.scope.get(name)), (core.tensor, int, float)):
                return f"the argument `{name}` is a number in this call: pass an array"
    return None


def _parameters(frame: Traced, node: ast.AST) -> list[str]:
    """The parameters of the function that an expression names."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in frame.fn.arg_names]


def _opcode_of_raise() -> int:
    """The number of the instruction that `raise` compiles to, found by looking at one."""
    try:
        raise ValueError
    except ValueError as error:
        tb = error.__traceback__
        assert tb is not None
        return tb.tb_frame.f_code.co_code[tb.tb_lasti]


_RAISE_VARARGS = _opcode_of_raise()
