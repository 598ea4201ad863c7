"""Python functions taken as source: what `jit` wraps, before anything is compiled or launched.

A `JITCallable` keeps a function together with its source text, its syntax tree (columns and lines as in the user's
file), its parameters, and the answer to "would compiling it again give the same?": `cache_key`.

>>> @jit                                                                                    # doctest: +SKIP
... def double(x):
...     return x + x
>>> double.arg_names                                                                        # doctest: +SKIP
['x']

The lines of the file are taken when the function is decorated, so editing the file afterwards cannot mix two
versions; they are cut, parsed and hashed when first asked for, so decorating is cheap.

This file imports no values of the language, because they build on it; a `constexpr` is therefore
recognised by its class's name (`is_constexpr_value`).
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import inspect
import linecache
import re
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from weft.base import DefinitionError, OutsideKernelError, Span

from .definitions import DEFINITION, cut_definition
from .parameters import KernelParam
from .references import MISSING, Cells, FindReferences, Scope

__all__ = [
    "MISSING",
    "BoundConstexprFunction",
    "BoundJITMethod",
    "ConstexprFunction",
    "JITCallable",
    "KernelParam",
    "constexpr_function",
    "is_constexpr_value",
    "jit",
]


def is_constexpr_value(value: object) -> bool:
    """Whether `value` is a `tl.constexpr` object."""
    return any(c.__name__ == "constexpr" for c in type(value).__mro__[:-1]) and hasattr(value, "value")


def _unwrap(value: Any) -> Any:
    """Take the Python value out of constexprs, through lists and tuples.

    A tuple of the language becomes Python's, if all its values are known; else it stays, for host code to pass on.
    """
    if is_constexpr_value(value):
        return _unwrap(value.value)
    if isinstance(value, list):
        return [_unwrap(v) for v in value]
    if isinstance(value, tuple):
        items = [_unwrap(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if _is_language_tuple(value):
        known = tuple(_unwrap(v) for v in value.values)
        return value if any(hasattr(v, "_flatten_ir") for v in known) else known
    return value


def _is_language_tuple(value: Any) -> bool:
    return type(value).__name__ == "tuple" and isinstance(getattr(value, "values", None), list)


class JITCallable:
    """A Python function and its source, as compilation sees it.

    `fn` is the function, `src` its text from `def` on, `used_global_vals` the captured globals whose values the
    compiled code depends on: `(name, id of the dictionary) -> (value, dictionary)`.
    """

    semantic: Any = None
    """What operations in a kernel mean, where that is not the Triton language's semantic: a class to be made of a
    builder, options and a target."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        do_not_specialize: Iterable[int | str] = (),
        do_not_specialize_on_alignment: Iterable[int | str] = (),
        noinline: bool = False,
        needs_source: bool = True,
    ) -> None:
        if not callable(fn) or not hasattr(fn, "__code__"):
            raise DefinitionError(f"jit needs a Python function, got {fn!r} of type {type(fn).__name__}")
        self.fn = fn
        self.noinline = noinline
        self.do_not_specialize = tuple(do_not_specialize)
        self.do_not_specialize_on_alignment = tuple(do_not_specialize_on_alignment)
        self.__doc__ = fn.__doc__
        self.__name__: str = fn.__name__
        self.__qualname__: str = fn.__qualname__
        self.__module__ = fn.__module__
        self.__globals__: dict[str, Any] = fn.__globals__
        self.module = fn.__module__
        self._fn_name = f"{fn.__module__}.{fn.__qualname__}"
        self._code: CodeType = inspect.unwrap(fn).__code__
        self.file_name = self._code.co_filename
        self.starting_line_number = self._code.co_firstlineno
        if needs_source and fn.__name__ == "<lambda>":
            raise DefinitionError(
                "jit needs a function that is defined with `def`, got a lambda",
                Span(self.file_name, self.starting_line_number, 0, self.starting_line_number, None),
                hint="def f(x): return ...",
            )
        if needs_source and self._code.co_flags & inspect.CO_VARKEYWORDS:
            raise DefinitionError(
                f"JIT functions do not support **kwargs: {self.__name__} takes them",
                Span(self.file_name, self.starting_line_number, 0, self.starting_line_number, None),
                hint="name the parameters, or take a tuple",
            )
        linecache.checkcache(self.file_name)
        self._file_lines = linecache.getlines(self.file_name, self.__globals__)
        if needs_source and len(self._file_lines) < self.starting_line_number:
            raise DefinitionError(
                f"cannot find the source of {self.__name__} ({self.file_name}:{self.starting_line_number}). "
                "A jit function must stand in a file or a notebook cell; source given to exec() has to be put into "
                "linecache.cache first."
            )
        self._src: str | None = None
        self._tree: ast.Module | None = None
        self._hash: str | None = None
        self._own_hash: str | None = None
        self._lock = threading.RLock()
        self._cells = Cells(fn)
        self.used_global_vals: dict[tuple[str, int], tuple[Any, Scope]] = {}
        self._used_callees: dict[tuple[str, int], tuple[JITCallable, dict[str, Any]]] = {}

    # -- source ------------------------------------------------------------------------------------------------

    @functools.cached_property
    def raw_src(self) -> list[str]:
        """The lines of the definition as they stand in the file, decorators included.

        To be read: tools that make one kernel from another set it, and `starting_line_number`, to those of the kernel
        that theirs was made from, so that places are told in its file. What is compiled is `src`.
        """
        return list(self._definition)

    @functools.cached_property
    def _definition(self) -> list[str]:
        return cut_definition(self._file_lines, self._code)

    @property
    def src(self) -> str:
        """The definition from `def` on, dedented."""
        if self._src is None:
            text = textwrap.dedent("".join(self._definition))
            start = re.search(r"^(async\s+)?def\s+\w+", text, re.MULTILINE)
            if start is None:
                raise DefinitionError(
                    f"{self.file_name}:{self.starting_line_number} is not the definition of {self.__name__}; "
                    "was the file changed while the program ran?"
                )
            self._src = text[start.start() :]
        return self._src

    def _unsafe_update_src(self, new_src: str) -> None:
        """Replace the source; the hash and the syntax tree follow.  For tools that rewrite kernels."""
        with self._lock:
            # In the place of the old one, below the decorators and as far to the right, so that errors point there.
            old = self._definition
            first = next((i for i, line in enumerate(old) if DEFINITION.match(line)), 0)
            margin = old[first][: len(old[first]) - len(old[first].lstrip())] if old else ""
            self._src = textwrap.dedent(new_src)
            self._tree = None
            self.reset()
            for lines in ("raw_src", "_definition"):
                self.__dict__.pop(lines, None)
            new = textwrap.indent(self._src, margin).splitlines(keepends=True)
            self._file_lines = [""] * (self._code.co_firstlineno - 1) + old[:first] + new

    def source_line(self, number: int) -> str | None:
        """The text of a line of the file, by its number from one."""
        number -= self.starting_line_number - self._code.co_firstlineno
        return self._file_lines[number - 1].rstrip("\n") if 0 < number <= len(self._file_lines) else None

    def parse(self) -> ast.Module:
        """The syntax tree: a module with one function definition, placed as in the user's file."""
        with self._lock:
            if self._tree is None:
                text = "".join(self._definition)
                if text[:1] in (" ", "\t"):  # nested: keep the columns, by giving it something to be nested in
                    tree = ast.parse("if 1:\n" + text, self.file_name)
                    body, shift = tree.body[0].body, self.starting_line_number - 2  # type: ignore[attr-defined]
                else:
                    body, shift = ast.parse(text, self.file_name).body, self.starting_line_number - 1
                if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
                    raise DefinitionError(
                        f"{self.file_name}:{self.starting_line_number} is not the definition of {self.__name__}; "
                        "was the file changed while the program ran?"
                    )
                self._tree = ast.Module(body=[ast.increment_lineno(body[0], shift)], type_ignores=[])
            return self._tree

    # -- parameters --------------------------------------------------------------------------------------------

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The Python signature of the function."""
        return inspect.signature(self.fn)

    @functools.cached_property
    def params(self) -> list[KernelParam]:
        """The parameters, in order."""
        kept = set(self.do_not_specialize)
        unaligned = set(self.do_not_specialize_on_alignment)
        return [
            KernelParam(i, p, bool(kept & {i, p.name}), bool(unaligned & {i, p.name}))
            for i, p in enumerate(self.signature.parameters.values())
        ]

    @functools.cached_property
    def arg_names(self) -> list[str]:
        """Names of the parameters, in order."""
        return [p.name for p in self.params]

    @functools.cached_property
    def constexprs(self) -> list[int]:
        """Positions of the parameters annotated as constexpr."""
        return [p.num for p in self.params if p.is_constexpr]

    # -- what it captures --------------------------------------------------------------------------------------

    def nonlocals(self) -> dict[str, Any]:
        """The variables captured from enclosing functions, those that are set."""
        captured = {}
        for name, cell in zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True):
            try:
                captured[name] = cell.cell_contents
            except ValueError:
                continue
        return captured

    def get_capture_scope(self) -> dict[str, Any]:
        """Everything that a free name of the function may mean: globals, then captured variables over them."""
        return self.__globals__ | self.nonlocals()

    def _resolve(self, path: tuple[str, ...], nonlocals: dict[str, Any]) -> tuple[Any, str, Scope]:
        """Follow a reference while it goes through modules: the value, its name, and the scope it stands in."""
        name = path[0]
        where: Scope = self.__globals__
        if name in nonlocals:
            value, where = nonlocals[name], self._cells
        else:
            value = self.__globals__.get(name, MISSING)
        for attribute in path[1:]:
            if not isinstance(value, ModuleType) or _belongs_to_weft(value.__name__):
                break
            name, where = attribute, vars(value)
            value = where.get(attribute, MISSING)
        return value, name, where

    def _own_parts(self) -> Iterator[tuple[str, Any, Scope]]:
        finder = FindReferences()
        finder.visit(self.parse().body[0])
        nonlocals = self.nonlocals()
        for path in finder.found:
            value, name, where = self._resolve(path, nonlocals)
            if value is not MISSING:
                yield name, value, where

    @property
    def cache_key(self) -> str:
        """SHA-256 over the source of this function and of all it calls, and the values of what they capture."""
        with self._lock:
            if self._hash is None:
                digest = _Digest()
                digest.function(self)
                self._hash = digest.hexdigest()
                self.used_global_vals = digest.constants
                self._used_callees = digest.callees
            return self._hash

    @property
    def hash(self) -> str | None:
        """The cache key, if it is known already; setting it to None makes the next question compute it."""
        return self._hash

    @hash.setter
    def hash(self, value: str | None) -> None:
        if value is None:
            self.reset()
        self._hash = value

    def changed_capture(self) -> tuple[str, Any, Any] | None:
        """A captured global that no longer is what it was: (name, then, now).  Cheap: asked at every launch."""
        for (name, _), (value, where) in self.used_global_vals.items():
            now = where.get(name, MISSING)
            if now is not value and (type(now) is not type(value) or not _is_still(now, value)):
                return name, value, now
        for (name, _), (callee, where) in self._used_callees.items():
            if where.get(name, MISSING) is not callee:
                return name, callee, where.get(name, MISSING)
        return None

    def reset(self) -> None:
        """Forget the cache key; the next question computes it from what is captured then."""
        with self._lock:
            self._hash = None
            self.used_global_vals = {}
            self._used_callees = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise OutsideKernelError(
            f"jit function {self.__name__} was called from Python; a kernel is launched as {self.__name__}[grid](...), "
            "other jit functions are called from kernels"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.module}:{self.__qualname__})"


def _belongs_to_weft(module: str | None) -> bool:
    """Whether a module is part of this package (by any of its names): the version in the key stands for it."""
    return module is not None and module.partition(".")[0] in ("weft", "triton")


class _Digest:
    """Hash functions and values, each function once, in the order they are reached."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()
        self._seen: set[int] = set()
        self.constants: dict[tuple[str, int], tuple[Any, Scope]] = {}
        self.callees: dict[tuple[str, int], tuple[JITCallable, dict[str, Any]]] = {}

    def hexdigest(self) -> str:
        return self._sha.hexdigest()

    def _add(self, *parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self._sha.update(len(data).to_bytes(8, "little") + data)

    def function(self, fn: JITCallable) -> None:
        if id(fn) in self._seen:
            self._add("again", fn._fn_name)
            return
        self._seen.add(id(fn))
        try:
            text = fn.src
        except (ValueError, OSError, IndexError):
            self.python_function(fn.fn)
            return
        self._add("function", fn._fn_name, text, str(fn.noinline))
        if "assert" in text:  # its place becomes part of the compiled code
            self._add(fn.file_name, str(fn.starting_line_number))
        for default in fn.fn.__defaults__ or ():
            self.value(default)
        for key, default in sorted((fn.fn.__kwdefaults__ or {}).items()):
            self._add(key)
            self.value(default)
        for name, value, where in fn._own_parts():
            self._add("uses", name)
            if isinstance(value, JITCallable):
                if isinstance(where, dict):
                    self.callees[(name, id(where))] = (value, where)
                self.function(value)
            else:
                if _is_constant(value):
                    self.constants[(name, id(where))] = (_kept(value), where)
                self.value(value)

    def python_function(self, fn: Any) -> None:
        code = getattr(fn, "__code__", None)
        if code is None or _belongs_to_weft(getattr(fn, "__module__", None)):
            self._add("python", getattr(fn, "__module__", "") or "", getattr(fn, "__qualname__", type(fn).__name__))
            return
        self._add("python", fn.__qualname__, code.co_code.hex(), repr([c for c in code.co_consts if not _is_code(c)]))
        for inner in filter(_is_code, code.co_consts):
            self._add(inner.co_code.hex(), repr([c for c in inner.co_consts if not _is_code(c)]))
        self._add(*code.co_names)

    def class_(self, cls: type) -> None:
        self._add("class", cls.__module__, cls.__qualname__)
        if id(cls) in self._seen or _belongs_to_weft(cls.__module__) or cls.__module__ == "builtins":
            return
        self._seen.add(id(cls))
        self._add(repr(getattr(cls, "_fields", "")), repr(vars(cls).get("__annotations__", "")))
        for member in getattr(cls, "hash_attrs", ()):  # an aggregate lists what its values do
            self.value(member)
        for base in cls.__mro__:
            for name, member in vars(base).items():
                if isinstance(member, JITCallable):
                    self._add(name)
                    self.function(member)

    def value(self, value: Any) -> None:
        if isinstance(value, JITCallable):
            self.function(value)
        elif is_constexpr_value(value):
            self._add("constexpr")
            self.value(value.value)
        elif _is_aggregate(value):
            self.class_(type(value))
            for name in type(value).__annotations__:
                self.value(getattr(value, name))
        elif isinstance(value, ModuleType):
            self._add("module", value.__name__)
        elif isinstance(value, type):
            self.class_(value)
        elif isinstance(value, Enum):
            self._add("enum", type(value).__qualname__, value.name)
        elif isinstance(value, (tuple, list)):
            self._add(type(value).__qualname__, str(len(value)))
            for item in value:
                self.value(item)
        elif isinstance(value, dict):
            self._add("dict", str(len(value)))
            for key, item in value.items():
                self.value(key)
                self.value(item)
        elif isinstance(value, (FunctionType, MethodType)):
            self.python_function(value)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.value(part)
        else:
            self._add(type(value).__qualname__, repr(value))


def _is_still(now: Any, then: Any) -> bool:
    """Whether a captured value is what it was; both have one type."""
    if type(now).__name__ == "constexpr" or is_constexpr_value(now):  # the name first: this is asked at every launch
        now, then = now.value, then.value
        if now is then:
            return True
        if type(now) is not type(then):
            return False
    if _is_aggregate(now):
        return all(_is_still(getattr(now, name), getattr(then, name)) for name in type(now).__annotations__)
    return bool(now == then)


def _is_aggregate(value: Any) -> bool:
    """Whether a value is an instance of a class that `aggregate` made."""
    return getattr(type(value), "__triton_aggregate__", False)


def _kept(value: Any) -> Any:
    """A captured value as it is now: what can change in place is copied."""
    if _is_aggregate(value):
        copied = type(value)._get_instance()
        for name in type(value).__annotations__:
            object.__setattr__(copied, name, _kept(getattr(value, name)))
        return copied
    changeable = isinstance(value, (list, dict, set, tuple)) or is_constexpr_value(value)
    return copy.deepcopy(value) if changeable else value


def _is_code(value: object) -> bool:
    return isinstance(value, CodeType)


def _is_constant(value: Any) -> bool:
    """Whether compiled code may depend on the value itself, so that a change of it has to be noticed."""
    if isinstance(value, (ModuleType, type, FunctionType, MethodType)) or callable(value):
        return is_constexpr_value(value) or _is_aggregate(value)
    return value is not None and (_is_aggregate(value) or not getattr(value, "__triton_builtin__", False))


@dataclass(frozen=True, slots=True)
class BoundJITMethod:
    """A jit function taken as a method of a value inside a kernel."""

    __self__: Any
    __func__: JITCallable


class ConstexprFunction(JITCallable):
    """A Python function that runs while the kernel is compiled, on constexpr arguments.

    Called on the host it is the function itself.  Called in a kernel, its result is a constexpr.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__(fn, needs_source=False)

    def __get__(self, obj: Any, objclass: type | None = None) -> ConstexprFunction | BoundConstexprFunction:
        return self if obj is None else BoundConstexprFunction(obj, self)

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return self.fn(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()})


class BoundConstexprFunction(ConstexprFunction):
    """A `ConstexprFunction` taken as a method."""

    def __init__(self, instance: Any, function: ConstexprFunction) -> None:
        self.__self__ = instance
        self.__func__ = function
        self.__dict__.update({k: v for k, v in function.__dict__.items() if k not in ("__self__", "__func__")})

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Make a Python function callable in kernels: it runs at compile time and gives a constexpr.

    >>> @constexpr_function
    ... def log2(n):
    ...     return n.bit_length() - 1
    >>> log2(8)
    3
    """
    return ConstexprFunction(fn)


def jit(fn: Callable[..., Any]) -> JITCallable:
    """Wrap a function that other jit functions may call; it cannot be launched (see `weft.jit` for kernels)."""
    return JITCallable(fn)
