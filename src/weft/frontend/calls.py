"""Calls: of builtins, jit functions, classes, and of Python functions that run while the kernel is compiled."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
from collections.abc import Callable
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final

from weft import base, language
from weft.language import core, target_info
from weft.language.callable import (
    BoundConstexprFunction,
    BoundJITMethod,
    ConstexprFunction,
    JITCallable,
)

from .failures import is_slip
from .frame import Frame, evaluates
from .kinds import misfit
from .names import BUILTIN_FUNCTIONS
from .values import as_tuple, describe, unwrap, wrap, wrap_scalar
from .ways import called_as

_FUNCTIONS: Final = (BuiltinFunctionType, FunctionType, MethodType, MemberDescriptorType)
_UNROLLED: Final = "outside of a `for` it is unrolled while the kernel is compiled: mark the parameter tl.constexpr"
_HOST_FUNCTIONS: Final = frozenset(
    f for f in BUILTIN_FUNCTIONS.values() if getattr(f, "__module__", None) == "builtins"
)


@evaluates(ast.Call)
def _call(frame: Frame, node: ast.Call) -> Any:
    return evaluate_call(frame, node, unused=False)


def evaluate_call(frame: Frame, node: ast.Call, unused: bool) -> Any:
    """The value of a call; `unused` where it is a statement of its own."""
    fn = unwrap(frame.eval(node.func))
    if fn in _SPECIAL if isinstance(fn, _HASHABLE) else False:
        return _SPECIAL[fn](frame, node)
    if unused:
        needed = getattr(fn, "_must_use_result", getattr(getattr(fn, "__func__", None), "_must_use_result", False))
        if needed:
            text = f"The result of {ast.unparse(node.func)} is not being used."
            raise frame.error(text + (f" {needed}" if isinstance(needed, str) else ""), node)
    # Keywords first, as Triton evaluates them.
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise frame.error(
                "keyword arguments cannot be unpacked from a dictionary in a kernel",
                keyword.value,
                kind=base.UnsupportedLanguageConstruct,
                hint="name the arguments",
            )
        kwargs[keyword.arg] = frame.eval(keyword.value)
    args: list[Any] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            starred = frame.eval(argument.value)
            if not isinstance(starred, core.tuple) and not isinstance(unwrap(starred), (tuple, list)):
                raise frame.error(f"only a tuple can be unpacked into arguments, not {describe(starred)}", argument)
            args.extend(starred if isinstance(starred, core.tuple) else as_tuple(tuple(unwrap(starred))))
        else:
            args.append(frame.eval(argument))
    frame.at(node)
    return call(frame, fn, args, kwargs)


def call(frame: Frame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call `fn`, whatever it is, with values of the language."""
    fn = unwrap(fn)
    if isinstance(fn, (BoundJITMethod, BoundConstexprFunction)):
        args = [fn.__self__, *args]
        fn = fn.__func__
    if isinstance(fn, JITCallable):
        if isinstance(fn, ConstexprFunction):
            return _call_host(frame, fn, args, kwargs)
        if fn.noinline:
            _check_noinline(frame, fn, args, kwargs)
        return frame.call_JitFunction(fn, args, kwargs)
    if core.is_builtin(fn) or isinstance(getattr(fn, "__self__", None), core.base_value):
        extra = {}
        for name in _wanted(fn):
            extra[name] = frame if name == "_generator" else frame.semantic
        try:
            result = fn(*args, **kwargs, **extra)
        except AttributeError as error:
            raise _wrong_kind(frame, fn, args, kwargs, error) from error
        except (TypeError, ValueError, base.OutsideKernelError) as error:
            if any(str(error).endswith(f"multiple values for argument '{hidden}'") for hidden in extra):
                raise _too_many(fn, args) from None
            name = getattr(fn, "__name__", "")
            asked = re.match(rf"(?:\w+\.)?{name}\(\) (got an unexpected|missing|takes \d+ positional) ", str(error))
            if asked is not None and isinstance(error, TypeError):
                if asked[1].startswith("takes"):
                    raise _too_many(fn, args) from None
                raise TypeError(str(error)) from None  # Python's own words are about the kernel's call
            if is_slip(error):
                raise _cannot_take(frame, fn, args, kwargs) from error
            _tell_misfit(frame, fn, args, kwargs, error)
            raise
        except (IndexError, KeyError, ArithmeticError, AssertionError) as error:
            if is_slip(error) and misfit(fn, args, kwargs) is not None:
                raise _cannot_take(frame, fn, args, kwargs) from error
            raise
        return as_tuple(result) if isinstance(result, tuple) else result
    if not callable(fn) or fn is core.tensor:
        hint = "use tl.full, tl.zeros or tl.cast" if fn is core.tensor else None
        raise frame.error(f"{describe(fn)} cannot be called", hint=hint)
    if getattr(fn, "__takes_plain_values__", False):  # a layout, say: made of Python's lists and numbers
        args = [_plain(a) for a in args]
        kwargs = {k: _plain(v) for k, v in kwargs.items()}
    elif fn in _HOST_FUNCTIONS if isinstance(fn, _HASHABLE) else False:
        args = [unwrap(a) for a in args]
        if fn is float:
            _check_known(frame, args, "float", "use x.to(tl.float32) to convert a tensor")
            if len(args) == 1 and not isinstance(args[0], (int, float, str)):
                found = describe(wrap_scalar(args[0]))
                raise frame.error(f"float() takes a number known at compile time, found {found}", like=TypeError)
        elif fn is range:
            _check_known(frame, args, "range", _UNROLLED)
            for value in args:
                if not hasattr(value, "__index__"):
                    raise frame.error(f"range() takes integers, found {describe(value)}")
        elif fn is list:
            _check_known(frame, args, "list", "the elements of a tensor cannot be taken apart; a tuple can be")
    elif hasattr(fn, "__self__"):  # a method of a host object, or a function of a C module such as math
        args = [unwrap(a) for a in args]
        kwargs = {k: unwrap(v) for k, v in kwargs.items()}
    return _call_host(frame, fn, args, kwargs)


def _plain(value: Any) -> Any:
    """What a value is in Python, tuples of the language as lists; a tensor as it is."""
    value = unwrap(value)
    if isinstance(value, core.tuple):
        value = value.values
    if type(value) in (list, tuple):
        return [_plain(v) for v in value]
    return value


def _call_host(frame: Frame, fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a Python function while compiling; what it raises is about the kernel or the function, not about Weft."""
    try:
        with target_info.compiling_for(str(frame.semantic.target)):
            return wrap(fn(*args, **kwargs))
    except base.OutsideKernelError as error:
        if hasattr(fn, "__code__") or not any(isinstance(v, core.tensor) for v in args):
            raise
        raise _host_error(frame, fn, args, TypeError("it is for arrays")) from error  # NumPy calls methods of that name
    except base.WeftError:
        raise
    except Exception as error:
        raise _host_error(frame, fn, [*args, *kwargs.values()], error) from error


def _host_error(frame: Frame, fn: Callable[..., Any], arguments: list[Any], error: Exception) -> base.CompilationError:
    """The error for a Python function that failed; where it was given a tensor, that is what is wrong."""
    name = getattr(fn, "__name__", "this function")
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    tile = next((v for v in arguments if isinstance(v, core.tensor)), None)
    if tile is None or not isinstance(error, TypeError):
        return frame.error(text)
    if fn in (core.range, core.static_range):
        return frame.error(f"{name}() needs a value known at compile time, found {describe(tile)}", hint=_UNROLLED)
    return frame.error(
        f"`{name}` runs while the kernel is compiled, and cannot take {describe(tile)} ({text})",
        hint=_on_tensors(name),
    )


def _on_tensors(name: str) -> str | None:
    """What computes on tensors in the place of a function of `math` or NumPy."""
    name = {"absolute": "abs", "clip": "clamp", "concatenate": "cat", "matmul": "dot"}.get(name, name)
    if hasattr(math, name):
        return f"in a kernel, tl.{name} or libdevice.{name} computes on tensors"
    if getattr(getattr(language, name, None), "__module__", "").startswith("weft.language"):
        return f"in a kernel, tl.{name} computes on tensors"
    return None


def _wrong_kind(
    frame: Frame, fn: Any, args: list[Any], kwargs: dict[str, Any], error: AttributeError
) -> base.CompilationError | AttributeError:
    """The error for a builtin that stumbled over an argument of a kind it cannot take (a module, a type, None, ...)."""
    culprit = getattr(error, "obj", None)
    is_argument = any(unwrap(value) is culprit for value in (*args, *kwargs.values()))  # a layout, say
    if not is_argument and not isinstance(culprit, (core.base_value, core.base_type, *_HOST_KINDS)):
        return error
    return _cannot_take(frame, fn, args, kwargs)


def _cannot_take(frame: Frame, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> base.CompilationError:
    """The error for a builtin in which one of these arguments went wrong, nobody has said how."""
    name = getattr(fn, "__name__", "this function").removeprefix("builtin_")
    wrong = misfit(fn, args, kwargs)
    if wrong is not None:
        error = frame.error(f"`{name}` takes {wrong.words} as `{wrong.parameter}`, found {describe(wrong.value)}")
    else:
        described = [describe(a) for a in args] + [f"{k} = {describe(v)}" for k, v in kwargs.items()]
        error = frame.error(f"`{name}` cannot take these arguments: {', '.join(described) or 'none'}")
    error.hint = error.hint or called_as(fn, name)
    return error


def _tell_misfit(frame: Frame, fn: Any, args: list[Any], kwargs: dict[str, Any], error: Exception) -> None:
    """Note on an error which argument is of a wrong kind, as its hint where nothing better is known."""
    wrong = misfit(fn, args, kwargs)
    if wrong is not None:
        error.misfit = f"`{wrong.parameter}` is {wrong.words}, here it is {describe(wrong.value)}"  # type: ignore[attr-defined]


def _too_many(fn: Any, args: list[Any]) -> TypeError:
    """The error for a builtin that was given more arguments by position than it has."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds and name not in _wanted(fn) for name, p in inspect.signature(fn).parameters.items())
    name = getattr(fn, "__name__", "this function")
    return TypeError(f"{name}() takes {count} positional argument{'s' * (count != 1)}, {len(args)} were given")


def _check_known(frame: Frame, args: list[Any], name: str, hint: str) -> None:
    """Refuse tensors where Python's own conversion of numbers is called."""
    for value in args:
        if isinstance(value, core.tensor):
            raise frame.error(f"{name}() needs a value known at compile time, found {describe(value)}", hint=hint)


def _wanted(fn: Any) -> tuple[str, ...]:
    """Which of `_semantic` and `_generator` a builtin takes."""
    generator = getattr(fn, "_wants_generator", None)
    if generator is not None:
        return ("_semantic", "_generator") if generator else ("_semantic",)
    return _wanted_by_signature(getattr(fn, "__func__", fn))


@lru_cache(maxsize=1024)
def _wanted_by_signature(fn: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(fn).parameters
    return tuple(name for name in ("_semantic", "_generator") if name in parameters)


def _check_noinline(frame: Frame, fn: JITCallable, args: list[Any], kwargs: dict[str, Any]) -> None:
    for name, value in [*zip(fn.arg_names, args, strict=False), *kwargs.items()]:
        if isinstance(value, core.tensor) and unwrap(value.numel) != 1:
            raise frame.error(
                f"`{fn.__name__}` is marked noinline and takes only scalars, but `{name}` is {describe(value)}",
                kind=base.UnsupportedLanguageConstruct,
                hint="drop noinline=True",
            )


# -- functions that need the syntax of the call ------------------------------------------------------------------


def _static_assert(frame: Frame, node: ast.Call) -> Any:
    if node.keywords or len(node.args) not in (1, 2):
        raise frame.error("static_assert takes one or two positional arguments: a condition and a message", node)
    condition = unwrap(frame.eval(node.args[0]))
    if not isinstance(condition, bool):
        raise frame.error(
            f"the condition of static_assert must be a bool known at compile time, found {describe(condition)}",
            node.args[0],
            hint="use tl.device_assert for conditions on values that exist when the kernel runs",
        )
    if condition:
        return core.constexpr(None)
    message = ""
    if len(node.args) == 2:
        try:
            message = str(unwrap(frame.eval(node.args[1])))
        except base.CompilationError as error:
            message = f"(its message could not be evaluated: {error.message})"
    text = "static assertion failed" + (f": {message}" if message else "")
    raise frame.error(text, node, kind=base.CompileTimeAssertionFailure)


def _on_host(function: Callable[..., Any]) -> Callable[[Frame, ast.Call], Any]:
    """Evaluate the arguments to Python values and call a Python function with them."""

    def evaluate(frame: Frame, node: ast.Call) -> Any:
        args = []
        for argument in node.args:
            starred = isinstance(argument, ast.Starred)
            value = unwrap(frame.eval(argument.value if isinstance(argument, ast.Starred) else argument))
            args += [unwrap(v) for v in value] if starred else [value]
        kwargs = {str(k.arg): unwrap(frame.eval(k.value)) for k in node.keywords}
        frame.at(node)
        if function is int:
            _check_known(frame, args, "int", "use x.to(tl.int32) to convert a tensor")
        elif function is len:
            _check_known(frame, args, "len", "the sizes of a tile are x.shape, and x.numel is how many elements it has")
        try:
            return core.constexpr(function(*args, **kwargs))
        except (TypeError, ValueError):
            if function not in _TAKES or len(args) != 1 or hasattr(type(args[0]), f"__{function.__name__}__"):
                raise
            taken, found = _TAKES[function], describe(wrap_scalar(args[0]))
            raise frame.error(f"{function.__name__}() takes {taken}, found {found}", like=TypeError) from None

    return evaluate


_TAKES: Final[dict[Any, str]] = {int: "a number known at compile time", len: "a tuple or a string"}
"""What Python's functions take, in the words of the language."""
_SCALARS: Final = (type(None), bool, int, float, str)
_HOST_KINDS: Final = (type, property, tuple, list, JITCallable, ModuleType, *_SCALARS, *_FUNCTIONS)
_HASHABLE: Final = (type, BuiltinFunctionType, FunctionType)
_SPECIAL: Final[dict[Any, Callable[[Frame, ast.Call], Any]]] = {
    core.static_assert: _static_assert,
    core.static_print: _on_host(builtins.print),
    int: _on_host(int),
    len: _on_host(len),
}
"""Functions whose calls are not evaluated argument by argument."""
