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
import functools
import inspect
import linecache
import re
import textwrap
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, ClassVar

from weft.base import DefinitionError, OutsideKernelError, Span, shortened
from weft.base.locks import renewed

from .definitions import DEFINITION, begins_at, cut_definition
from .keys import is_constexpr_value as is_constexpr_value
from .parameters import KernelParam as KernelParam
from .reading import Digest, Watched, changed, is_still
from .references import MISSING as MISSING, Cells, FindReferences
from .texts import source_lines


def _unwrap(value: Any) -> Any:
    """Take the Python value out of constexprs, through lists and tuples.

    A tuple of the language becomes Python's, of the class that it came from, if all its values are known; else it
    stays, for host code to pass on.
    """
    if is_constexpr_value(value):
        return _unwrap(value.value)
    if isinstance(value, list):
        return [_unwrap(v) for v in value]
    if isinstance(value, tuple):
        items = [_unwrap(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if _is_language_tuple(value):
        values = tuple(_unwrap(v) for v in value.values)
        if any(hasattr(v, "_flatten_ir") for v in values):
            return value
        of = getattr(value._type, "of", None)
        return values if of is None else of._make(values)
    return value


def _is_language_tuple(value: Any) -> bool:
    return type(value).__name__ == "tuple" and isinstance(getattr(value, "values", None), list)


class JITCallable:
    """A Python function and its source, as compilation sees it.

    `fn` is the function, `src` its text from `def` on, `used_global_vals` the captured globals whose values the
    compiled code depends on: `(name, id of the dictionary) -> (value, dictionary)`.
    """

    is_jit_callable: ClassVar[bool] = True
    decorator: ClassVar[str] = "jit"
    has_source: ClassVar[bool] = True
    """Whether it is compiled from its source; else it runs while a kernel is compiled."""
    edits: ClassVar[int] = 0
    """How often the source of any of them was replaced, and, of one, `edition`."""
    edition = 0
    original_src: str | None = None
    """The source before it was replaced."""
    by_name: ClassVar[dict[str, weakref.WeakSet[JITCallable]]] = {}
    """Every one there is, by the name of its module and its own; functions made in a loop share one."""

    _hash: str | None
    used_global_vals: Watched
    _used_callees: Watched
    _followed: Watched
    _editions: list[tuple[JITCallable, int]]
    _watched: list[tuple[Callable[[str, Any], Any], str, Any]]
    unfollowed: dict[str, None]
    """What the code reads and cannot be followed: such code is run in each process (see `reading`)."""

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
        problem: Callable[[Span], DefinitionError | None] = lambda place: None,
    ) -> None:
        self.fn = fn
        self.noinline = noinline
        self._lock = renewed(threading.RLock())
        self._src: str | None = None
        self._tree: ast.Module | None = None
        self._read_in: tuple[ast.Module, FindReferences] | None = None
        self.reset()
        self.wrong: DefinitionError | None = None
        """What makes it impossible to use, told when it is used: what nobody launches must not fail an import."""
        self.__doc__ = getattr(fn, "__doc__", None)
        self.__name__: str = getattr(fn, "__name__", type(fn).__name__)
        self.__qualname__: str = getattr(fn, "__qualname__", self.__name__)
        self.__module__: str = getattr(fn, "__module__", None) or ""
        self.__globals__: dict[str, Any] = getattr(fn, "__globals__", {})
        self.module = self.__module__
        self._fn_name = f"{self.__module__}.{self.__qualname__}"
        self._cells = Cells(fn)
        code = getattr(inspect.unwrap(fn), "__code__", None) if hasattr(fn, "__code__") else None
        self._code: CodeType = code if code is not None else _nothing.__code__
        self.file_name = self._code.co_filename
        self.starting_line_number = self._code.co_firstlineno
        self._file_lines: list[str] = []
        self.do_not_specialize: tuple[int | str, ...] = ()
        self.do_not_specialize_on_alignment: tuple[int | str, ...] = ()
        try:
            self.do_not_specialize = _names(do_not_specialize, "do_not_specialize")
            self.do_not_specialize_on_alignment = _names(
                do_not_specialize_on_alignment, "do_not_specialize_on_alignment"
            )
            inner, above = getattr(fn, "fn", None), getattr(fn, "decorator", None)
            if inspect.isfunction(inner) and above is not None:
                raise DefinitionError(
                    f"{above} needs a kernel, got the function {inner.__name__}",
                    hint=f"decorators apply from the bottom up: put @{above} above @{self.decorator}",
                )
            if code is None:
                kind = type(fn).__name__
                shown = f"an object of type {kind}" if " at 0x" in repr(fn) else f"{fn!r} of type {kind}"
                raise DefinitionError(
                    f"{self.decorator} needs a Python function, got {shown}",
                    hint=f"decorators apply from the bottom up: put @{self.decorator} right above the `def`",
                )
            linecache.checkcache(self.file_name)
            self._file_lines = linecache.getlines(self.file_name, self.__globals__)
            if not begins_at(self._file_lines, self._code):
                self._file_lines = source_lines(self._code) or self._file_lines
            if self.has_source:
                self._check_definition()
            asked_wrong = problem(self._place)
            if asked_wrong is not None:
                raise asked_wrong
        except DefinitionError as error:
            self.wrong = error
        self.by_name.setdefault(self._fn_name, weakref.WeakSet()).add(self)

    @property
    def _place(self) -> Span:
        return Span(self.file_name, self.starting_line_number, 0, self.starting_line_number, None)

    def _check_definition(self) -> None:
        """DefinitionError for a function that cannot be compiled, by what is known without its source."""
        place = self._place
        if self.__name__ == "<lambda>":
            raise DefinitionError(
                "jit needs a function that is defined with `def`, got a lambda", place, hint="def f(x): return ..."
            )
        if self._code.co_flags & inspect.CO_VARKEYWORDS:
            raise DefinitionError(
                f"JIT functions do not support **kwargs: {self.__name__} takes them",
                place,
                hint="name the parameters, or take a tuple",
            )
        if self._code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise DefinitionError(
                f"a kernel is a plain function, and {self.__name__} is an `async def`", place, hint="write `def`"
            )
        if len(self._file_lines) < self.starting_line_number:
            piped = self.file_name == "<stdin>"
            raise DefinitionError(
                f"cannot find the source of {self.__name__} ({self.file_name}:{self.starting_line_number}). "
                "A jit function must be in a file or a notebook cell; "
                + ("what Python read through a pipe is gone" if piped else "source given to exec() has to be at hand")
                + " when it is decorated.",
                hint="save the script to a file, and run that"
                if piped
                else "keep the text in a variable where exec() is called, or put its lines into linecache.cache",
            )

    def refuse_wrong(self) -> None:
        """Raise what was found wrong when the function was decorated."""
        if self.wrong is not None:
            raise self.wrong.with_traceback(None)

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

    def _moved(self) -> DefinitionError:
        return DefinitionError(
            f"{self.file_name}:{self.starting_line_number} is not the definition of {self.__name__}; "
            "was the file changed while the program ran?"
        )

    @property
    def src(self) -> str:
        """The definition from `def` on, dedented."""
        if self._src is None:
            self.refuse_wrong()
            text = textwrap.dedent("".join(self._definition))
            start = re.search(r"^(async\s+)?def\s+\w+", text, re.MULTILINE)
            if start is None:
                raise self._moved()
            self._src = text[start.start() :]
        return self._src

    def _unsafe_update_src(self, new_src: str) -> None:
        """Replace the source; the hash and the syntax tree follow.  For tools that rewrite kernels."""
        with self._lock:
            self.original_src = self.src if self.original_src is None else self.original_src
            # In the place of the old one, below the decorators and as far to the right, so that errors point there.
            old = self._definition
            first = next((i for i, line in enumerate(old) if DEFINITION.match(line)), 0)
            margin = old[first][: len(old[first]) - len(old[first].lstrip())] if old else ""
            self._src = textwrap.dedent(new_src)
            self._tree = None
            JITCallable.edits += 1
            self.edition += 1
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
        self.refuse_wrong()
        with self._lock:
            if self._tree is None:
                text = "".join(self._definition)
                if text[:1] in (" ", "\t"):  # nested: keep the columns, by giving it something to be nested in
                    tree = ast.parse("if 1:\n" + text, self.file_name)
                    body, shift = tree.body[0].body, self.starting_line_number - 2  # type: ignore[attr-defined]
                else:
                    body, shift = ast.parse(text, self.file_name).body, self.starting_line_number - 1
                if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
                    raise self._moved()
                self._tree = ast.Module(body=[ast.increment_lineno(body[0], shift)], type_ignores=[])
            return self._tree

    # -- parameters --------------------------------------------------------------------------------------------

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The Python signature of the function."""
        self.refuse_wrong()
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

    def references(self) -> list[tuple[str, ...]]:
        """The names that the source reads before it has surely bound them: `a`, `module.f`, `module.A.CONST`."""
        return list(self._names_read.paths)

    @property
    def assigned(self) -> set[str]:
        """The names that the source sets somewhere: variables of its own."""
        return self._names_read.assigned

    @property
    def _names_read(self) -> FindReferences:
        tree = self.parse()
        if self._read_in is None or self._read_in[0] is not tree:
            finder = FindReferences()
            finder.visit(tree.body[0])
            self._read_in = tree, finder
        return self._read_in[1]

    @property
    def cache_key(self) -> str:
        """SHA-256 over the source of this function and of all it calls, and the values of what they capture."""
        with self._lock:
            if self._hash is None:
                digest = Digest()
                self._edits = JITCallable.edits
                self._hash = digest.text(digest.jit(self))
                self.used_global_vals = digest.constants
                self._used_callees = digest.callees
                self._followed = digest.followed
                self._editions = digest.editions
                self.unfollowed = digest.unfollowed
                watched = {**self._followed, **self._used_callees, **self.used_global_vals}
                self._watched = [(where.get, name, value) for (name, _), (value, where) in watched.items()]
            return self._hash

    def current_key(self) -> str:
        """The cache key, made again if what it covers has changed."""
        key = self._hash
        if key is not None and not self.has_changed():
            return key
        self.reset()
        return self.cache_key

    @property
    def hash(self) -> str | None:
        """The cache key, if it is known already; setting it to None makes the next question compute it."""
        return self._hash

    @hash.setter
    def hash(self, value: str | None) -> None:
        if value is None:
            self.reset()
        self._hash = value

    @property
    def places(self) -> list[tuple[str, int]]:
        """Where the functions stand that are compiled with it, itself included: file and line of each definition."""
        return [(fn.file_name, fn.starting_line_number) for fn, _ in self._editions]

    @property
    def compiled_of(self) -> list[JITCallable]:
        """The functions that are compiled with it, itself included."""
        return [fn for fn, _ in self._editions]

    @property
    def watched_values(self) -> list[tuple[Callable[[str, Any], Any], str, Any]]:
        """What `has_changed` asks: (a dictionary's `get`, name, value at that time), MISSING for a name without one."""
        return self._watched

    def captures(self) -> bool:
        """Whether anything was read that can change while the program runs."""
        return bool(self.used_global_vals or self._used_callees or self._followed or self._editions)

    def changed_capture(self) -> tuple[str, Any, Any] | None:
        """A captured global that no longer is what it was: (name, then, now).  Cheap: asked at every launch."""
        return changed(self.used_global_vals) or changed(self._used_callees)

    def has_changed(self) -> bool:
        """Whether anything that the cache key covers is no longer what it was.  Cheap: asked at every launch."""
        if JITCallable.edits != self._edits and any(fn.edition != edition for fn, edition in self._editions):
            return True
        for get, name, then in self._watched:
            now = get(name, MISSING)
            if now is not then and not is_still(now, then):
                return True
        return False

    def settle(self) -> None:
        """Take what its functions have changed while they ran (a cached property, a dictionary that remembers) for no
        change: the key is made again, and what was compiled stays.
        """
        if self._hash is not None and self.has_changed():
            JITCallable.reset(self)
            self.cache_key  # noqa: B018 - to look at everything as it is now

    def reset(self) -> None:
        """Forget the cache key; the next question computes it from what is captured then."""
        with self._lock:
            self._hash = None
            self.used_global_vals = {}
            self._used_callees = {}
            self._followed = {}
            self._editions = []
            self._edits = 0
            self._watched = []
            self.unfollowed = {}

    @shortened
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise OutsideKernelError(
            f"jit function {self.__name__} was called from Python; a kernel is launched as {self.__name__}[grid](...), "
            "other jit functions are called from kernels"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.module}:{self.__qualname__})"


def _nothing() -> None:
    """Stands where there is no function."""


def _names(value: Any, option: str) -> tuple[int | str, ...]:
    """Names or positions of parameters. DefinitionError for what is no list of such."""
    try:
        names = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        names = (None,)
    if any(isinstance(n, bool) or not isinstance(n, (int, str)) for n in names):
        raise DefinitionError(f"{option} is a list of names or positions of parameters, got {value!r}")
    return names


@dataclass(frozen=True, slots=True)
class BoundJITMethod:
    """A jit function taken as a method of a value inside a kernel."""

    __self__: Any
    __func__: JITCallable


class ConstexprFunction(JITCallable):
    """A Python function that runs while the kernel is compiled, on constexpr arguments.

    Called on the host it is the function itself.  Called in a kernel, its result is a constexpr.
    """

    has_source = False
    decorator = "constexpr_function"

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__(fn)

    def __get__(self, obj: Any, objclass: type | None = None) -> ConstexprFunction | BoundConstexprFunction:
        return self if obj is None else BoundConstexprFunction(obj, self)

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        if self.wrong is not None:
            self.refuse_wrong()
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
