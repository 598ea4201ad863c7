"""What code reads, as a key: its source, and the values of everything that it asks for from outside, recursively.

    class A: width = 4
    @constexpr_function
    def lanes(): return conf.scale(A.width)         # read: A.width, and all that conf.scale reads

A name is followed through modules, and then through attributes of classes and objects (`A.width`, `conf.A.B.v`);
functions of Python that it comes to are followed like the first, those of other modules too, up to the packages whose
versions are in every key (NumPy, Weft itself) and Python's own library.

Not everything can be followed: modules imported by a function while it runs, files, the environment, clocks, random
numbers, functions in C of packages that are unknown here. A digest says so in `unfollowed`; such functions are run in
each process, and what they gave is in the key (see `compiler.sources`).

What was read is also watched, so that a program which changes it while it runs is not given the kernel of before.
"""

from __future__ import annotations

import builtins
import copy
import functools
import hashlib
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final

from . import keys
from .bytecode import code_key, reads_of
from .keys import Key, Keys, is_aggregate, is_constexpr_value, is_jit, kind_of_module
from .references import MISSING, Cells, Scope

__all__ = ["Attributes", "Digest", "Reading", "Watched", "changed", "is_still"]

_PURE: Final = frozenset(
    (
        *("abc", "array", "ast", "bisect", "builtins", "cmath", "collections", "_collections", "contextlib", "copy"),
        *("copyreg", "dataclasses", "decimal", "_decimal", "enum", "fractions", "functools", "_functools", "hashlib"),
        *("heapq", "itertools", "json", "keyword", "math", "numbers", "operator", "_operator", "re", "reprlib"),
        *("statistics", "string", "struct", "_struct", "textwrap", "types", "typing", "warnings", "_warnings"),
        *("__future__", "_abc", "_bisect", "_heapq", "_typing", "collections.abc", "typing_extensions"),
    )
)
"""Modules of Python's library whose functions give the same for the same arguments, in any process."""
_IMPURE: Final = frozenset(
    (
        "__import__",
        "breakpoint",
        "compile",
        "dir",
        "eval",
        "exec",
        "globals",
        "hash",
        "id",
        "input",
        "locals",
        "open",
        "vars",
    )
)
"""Builtins that reach for more than their arguments."""
_BOOKKEEPING: Final = frozenset(
    (
        *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate__", "__annotate_func__"),
        *("__annotations_cache__", "__firstlineno__", "__static_attributes__", "_abc_impl", "__abstractmethods__"),
        *("__dataclass_params__", "__dataclass_fields__", "__orig_bases__", "__parameters__"),
        *("hash_attrs", "__aggregate_defaults__", "__slotnames__", "__wrong__"),
    )
)
"""What Python and `aggregate` keep in a class; all that counts of it is found elsewhere."""
_OPENED_BY_NUMPY: Final = frozenset(
    ("DataSource", "fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "open_memmap", "random")
)
"""Functions of NumPy that read files, and the module of random numbers: they reach for more than their arguments."""
_ELSEWHERE: Final = frozenset(
    (
        *("__builtins__", "__code__", "__globals__", "__subclasses__"),
        *("f_back", "f_builtins", "f_globals", "f_lineno", "f_locals"),
    )
)
"""Attributes that lead from what is followed to anything else: places in files, the classes below a class."""
FOLLOWED: Final = 400
"""How many functions and classes are followed from one kernel: those that read more do not know what they read."""


class Attributes:
    """The attributes of a thing that a name stands for, asked like a dict: `Attributes(globals, "A")` for `A.x.y`."""

    __slots__ = ("_path", "_where")

    def __init__(self, where: Any, path: tuple[str, ...]) -> None:
        self._where, self._path = where, path

    def get(self, name: str, default: Any) -> Any:
        """What is at the end of the path now."""
        value = self._where.get(self._path[0], MISSING)
        try:
            for attribute in self._path[1:]:
                value = getattr(value, attribute)
        except AttributeError:
            return default
        return value


class _Members:
    """The members of a class, asked like a dict; under no name, which members there are."""

    __slots__ = ("_cls",)

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def get(self, name: str, default: Any) -> Any:
        """A member as it stands in the class now."""
        if not name:
            return frozenset(vars(self._cls)) - _BOOKKEEPING
        return vars(self._cls).get(name, default)


Watched = dict[tuple[str, int], tuple[Any, Any]]
"""(name, id of where it stands) -> (value, where it stands)"""


class _Snapshot:
    """An object whose parts may change: its key at the time."""

    def __init__(self, value: Any) -> None:
        self.key, self._text = keys.key_of(value), repr(value)

    def __repr__(self) -> str:
        return self._text


def kept(value: Any) -> Any:
    """A value as it is now: what can change in place is copied."""
    if is_aggregate(value):
        copied = type(value)._get_instance()
        for name in type(value).__annotations__:
            object.__setattr__(copied, name, kept(getattr(value, name)))
        return copied
    if is_constexpr_value(value) or isinstance(value, (list, dict, set, tuple)):
        try:
            return copy.deepcopy(value)
        except Exception:
            return _Snapshot(value)
    if kind_of_module(type(value).__module__) == "user" and not callable(value) and not isinstance(value, Enum):
        return _Snapshot(value)
    return value


def is_still(now: Any, then: Any) -> bool:
    """Whether a value is what it was."""
    if now is then:
        return True
    if type(then) is _Snapshot:
        return bool(keys.key_of(now) == then.key)
    if type(now) is not type(then):
        return False
    if type(now).__name__ == "constexpr" or is_constexpr_value(now):  # the name first: this is asked at every launch
        return is_still(now.value, then.value)
    if is_aggregate(now):
        return all(is_still(getattr(now, name), getattr(then, name)) for name in type(now).__annotations__)
    if isinstance(now, float):
        return bool(keys.float_key(now) == keys.float_key(then))
    try:
        return bool(now == then)
    except Exception:  # arrays, say
        return bool(keys.key_of(now) == keys.key_of(then))


def _is_constant(value: Any) -> bool:
    """Whether compiled code may depend on the value itself, so that a change of it has to be noticed."""
    if isinstance(value, (ModuleType, type, FunctionType, MethodType)) or callable(value):
        return is_constexpr_value(value) or is_aggregate(value)
    return value is not None and (is_aggregate(value) or not getattr(value, "__triton_builtin__", False))


def _is_computed(value: Any, name: str) -> bool:
    """Whether an attribute is what a function of the class gives when asked."""
    for cls in type(value).__mro__:
        member = vars(cls).get(name, MISSING)
        if member is MISSING:
            continue
        if isinstance(member, (property, functools.cached_property)):
            return True
        return not is_jit(member) and isinstance(getattr(type(member), "__get__", None), FunctionType)
    own = getattr(value, "__dict__", {})
    return name not in own and any(hasattr(type(value), asked) for asked in ("__getattr__",))


class Digest(Keys):
    """The key of code, and what it read on the way.

    `constants` and `callees` are what the functions of a kernel name themselves, `followed` all that was found beyond:
    it is a mistake to change a constant of a kernel, while what lies behind a function may be as it likes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []
        self.constants: Watched = {}
        self.callees: Watched = {}
        self.followed: Watched = {}
        self.editions: list[tuple[Any, int]] = []

    def text(self, key: Key) -> str:
        """A digest of a key."""
        return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()

    # -- code --------------------------------------------------------------------------------------------------------

    def jit(self, fn: Any) -> Key:
        again = self._again(fn)
        if again is not None:
            return again
        if hasattr(fn, "__func__"):
            return "bound", self.of(fn.__self__), self.of(fn.__func__)
        if fn.wrong is not None:
            return "wrong", fn._fn_name, fn.wrong.message
        if not fn.has_source:
            self.editions.append((fn, fn.edition))
            given = fn.src if fn.edition and fn.src != fn.original_src else None
            return "constexpr function", fn._fn_name, given, self._function(fn.fn, direct=True)
        try:
            text = fn.src
        except (ValueError, OSError, IndexError):
            return "jit", fn._fn_name, self._function(fn.fn, direct=True)
        self.editions.append((fn, fn.edition))
        place = (fn.file_name, fn.starting_line_number) if "assert" in text else ()  # it becomes part of the code
        defaults = self.of(fn.fn.__defaults__), self.of(fn.fn.__kwdefaults__)
        found = [(".".join(p), self._read(p, fn.__globals__, fn._cells, True)) for p in fn.references()]
        return "jit", fn._fn_name, text, bool(fn.noinline), place, defaults, *found

    def function(self, fn: Any) -> Key:
        return self._again(fn) or self._function(fn, direct=False)

    def class_(self, cls: type) -> Key:
        kind = kind_of_module(cls.__module__)
        name = "class", cls.__module__, cls.__qualname__
        if kind != "user":
            if kind == "large" or not _is_pure(cls.__module__, kind) or _is_opened_by_numpy(cls):
                self._not_followed(f"{cls.__module__}.{cls.__qualname__}")
            return name
        again = self._again(cls)
        if again is not None:
            return again
        own = _Members(cls)
        self._watch(self.followed, "", own.get("", None), own)
        members = []
        for member_name, member in vars(cls).items():
            if member_name in _BOOKKEEPING or isinstance(member, MemberDescriptorType):
                continue
            if issubclass(cls, Enum) and (member_name[:1] == "_" and not isinstance(member, FunctionType)):
                continue
            if not member_name.startswith("__") and not (isinstance(member, cls) and isinstance(member, Enum)):
                self._watch(self.followed, member_name, member, own)
            members.append((member_name, self.of(member)))
        said = [(n, a if isinstance(a, str) else getattr(a, "__qualname__", "")) for n, a in _annotations(cls).items()]
        more = [self.of(m) for m in vars(cls).get("hash_attrs", ())]  # an aggregate lists what its values do
        made_by = [self.class_(type(cls))] if kind_of_module(type(cls).__module__) == "user" else []  # its metaclass
        return *name, *made_by, *map(self.class_, cls.__bases__), *members, *said, *more

    def _by_parts(self, value: Any) -> Key:
        kind = kind_of_module(type(value).__module__)
        if kind == "standard" and not _is_pure(type(value).__module__, kind):
            self._not_followed(f"an object of type {type(value).__name__}")
        return super()._by_parts(value)

    def opaque(self, value: Any) -> Key:
        self._not_followed(f"an object of type {type(value).__name__}")
        return "object", type(value).__module__, type(value).__qualname__

    def of(self, value: Any) -> Key:
        if is_constexpr_value(value):  # a kernel may read such a global, and not one of the same value
            return "constexpr", super().of(value.value)
        if isinstance(value, BuiltinFunctionType):
            module, kind = value.__module__, kind_of_module(value.__module__)
            if value.__name__ in _IMPURE or not _is_pure(module, kind) or _is_opened_by_numpy(value):
                self._not_followed(value.__name__ if module == "builtins" else f"{module}.{value.__name__}")
        if isinstance(value, ModuleType):
            self._whole_module(value)
        return super().of(value)

    def _again(self, code: Any) -> Key | None:
        """The number of code that was followed before; None for what is new."""
        if id(code) in self._seen:
            return "again", self._seen[id(code)]
        self._seen[id(code)] = len(self._seen)
        self._alive.append(code)
        return None

    def _not_followed(self, what: str) -> None:
        self.unfollowed[what] = None

    def _function(self, fn: Any, direct: bool) -> Key:
        """The key of a function of Python; `direct` where a kernel's author has marked it to be run."""
        code = getattr(fn, "__code__", None)
        if code is None:
            return self.of(fn)
        space = fn.__globals__
        module = space.get("__name__", "")
        kind = kind_of_module(module)
        around = self.of(fn.__defaults__), self.of(fn.__kwdefaults__)
        if kind == "versioned":
            if _is_opened_by_numpy(fn):
                self._not_followed(f"{fn.__module__}.{fn.__qualname__}")
            return "function", module, fn.__qualname__
        if kind != "user":
            if not _is_pure(module, kind):
                self._not_followed(f"{module}.{fn.__qualname__}")
            captured = [Cells(fn).get(name, None) for name in code.co_freevars] if kind == "standard" else []
            return "function", module, fn.__qualname__, *around, *map(self.of, captured)
        if len(self._seen) > FOLLOWED:
            self._not_followed(f"more than {FOLLOWED} functions")
            return "function", module, fn.__qualname__
        reads = reads_of(code)
        for imported in reads.imports:
            if not _is_pure(imported, kind_of_module(imported)):
                self._not_followed(f"import {imported}")
        for name in reads.sets:
            self._not_followed(f"global {name}")
        for name in reads.attributes & _ELSEWHERE:
            self._not_followed(f"attribute {name}")
        cells = Cells(fn)
        found = [(".".join(p), self._read(p, space, cells, direct)) for p in reads.paths if p[0] not in reads.sets]
        return "python", fn.__qualname__, code_key(code), *around, self._mapping(vars(fn)), *found

    # -- names -------------------------------------------------------------------------------------------------------

    def _read(self, path: tuple[str, ...], space: dict[str, Any], cells: Cells, direct: bool) -> Key:
        """The key of what a name with attributes means; `direct` where a kernel's own function says it."""
        name, rest = path[0], path[1:]
        where: Scope = cells
        value = cells.get(name, MISSING)
        if value is MISSING:
            where, value = space, space.get(name, MISSING)
        if value is MISSING:
            where = vars(builtins)
            if name in _IMPURE and name in where:
                self._not_followed(name)
            value = where.get(name, MISSING)
            if value is MISSING or _is_librarys(value):
                return ("builtin",)
        while rest and isinstance(value, ModuleType):
            kind = kind_of_module(value.__name__)
            if kind == "versioned" or (kind == "standard" and _is_pure(value.__name__, kind)):
                self._note_settings((*value.__name__.split("."), *rest))
                return "module", value.__name__, *rest, *self._put_into(value, rest)
            if kind == "standard":
                self._not_followed(f"{value.__name__}.{rest[0]}")
                return "module", value.__name__, *rest
            owner, name, rest = value, rest[0], rest[1:]
            where = vars(owner)
            value = where.get(name, MISSING)
            if value is MISSING:  # a module that makes its attributes when asked
                self._not_followed(f"{owner.__name__}.{name}")
                return "module", owner.__name__, name
        taken: tuple[str, ...] = ()
        while rest and _has_plain_attributes(value) and not _is_computed(value, rest[0]):
            found = getattr(value, rest[0], MISSING)
            if found is MISSING:
                break
            value, taken, rest = found, (*taken, rest[0]), rest[1:]
        self._watch_read(name, value, where, taken, direct)
        return (*taken, *rest), self.of(value)

    def _put_into(self, module: ModuleType, rest: tuple[str, ...]) -> Key:
        """The key of what a name means in a module of a library, where the library cannot have put it there."""
        value: Any = module
        while rest and isinstance(value, ModuleType) and rest[0] in vars(value):
            module, name, rest = value, rest[0], rest[1:]
            value = vars(module)[name]
        if value is module:
            return ()
        if not isinstance(value, ModuleType) and kind_of_module(module.__name__) == "standard":
            self.followed[name, id(vars(module))] = (value, vars(module))
        return () if _is_librarys(value) else (self.of(value),)

    def _watch_read(self, name: str, value: Any, where: Scope, taken: tuple[str, ...], direct: bool) -> None:
        if taken:
            self._watch(self.followed, ".".join((name, *taken)), value, Attributes(where, (name, *taken)))
        elif is_jit(value):
            if isinstance(where, dict):
                self.callees[name, id(where)] = (value, where)
        else:
            self._watch(self.constants if direct else self.followed, name, value, where)

    def _watch(self, into: Watched, name: str, value: Any, where: Any) -> None:
        if _is_constant(value):
            into[name, id(where)] = (kept(value), where)
        elif isinstance(value, (FunctionType, type)) and kind_of_module(value.__module__) == "user":
            self.followed[name, id(where)] = (value, where)

    def _note_settings(self, names: tuple[str, ...]) -> None:
        """Weft's settings and what it says of the devices here are no part of its version; the target is in the key."""
        if names[0] == "numpy" and not _OPENED_BY_NUMPY.isdisjoint(names):
            self._not_followed(".".join(names))
        elif "knobs" in names:
            self._not_followed("knobs")
        elif names[:2] in (("weft", "cuda"), ("triton", "cuda")):
            self._not_followed("weft.cuda")
        elif "driver" in names and names[-1] != "get_current_target":
            self._not_followed("driver")

    def _whole_module(self, module: ModuleType) -> None:
        kind = kind_of_module(module.__name__)
        if kind != "versioned" and not _is_pure(module.__name__, kind):
            self._not_followed(f"module {module.__name__}")


def _is_pure(module: str | None, kind: str) -> bool:
    """Whether what a module that is not followed gives depends on the arguments alone."""
    if module is None:
        return True
    return kind == "versioned" or (kind == "standard" and (module in _PURE or module.partition(".")[0] in _PURE))


def _is_opened_by_numpy(value: Any) -> bool:
    """Whether a function or a class is one of NumPy's that read files."""
    module = value.__module__ or ""
    return module.partition(".")[0] == "numpy" and (value.__name__ in _OPENED_BY_NUMPY or ".random" in module)


def _is_librarys(value: Any) -> bool:
    """Whether what stands in a module of a library may be the library's own: no code of a user, and no plain value."""
    if isinstance(value, ModuleType):
        return True
    by = value if isinstance(value, (FunctionType, BuiltinFunctionType, type)) or is_jit(value) else type(value)
    return kind_of_module(getattr(by, "__module__", None) or "builtins") != "user" and not _is_plain(value)


def _is_plain(value: Any) -> bool:
    return value.__class__ in (int, float, bool, str, bytes, complex)


def _has_plain_attributes(value: Any) -> bool:
    """Whether attributes of a value are looked at one by one; of other values the whole counts."""
    if is_jit(value) or is_constexpr_value(value) or isinstance(value, (FunctionType, MethodType)):
        return False
    cls = value if isinstance(value, type) else type(value)
    return kind_of_module(cls.__module__) == "user" and not is_aggregate(value)


def _annotations(cls: type) -> dict[str, Any]:
    try:
        return dict(getattr(cls, "__annotations__", {}))
    except Exception:  # evaluated when asked, from Python 3.14 on
        return {}


class Reading:
    """The key of a function or a class, made again when something that it read has changed."""

    def __init__(self, code: Any) -> None:
        self.code = code
        self._key: str | None = None
        self._followed: Watched = {}
        self.unfollowed: dict[str, None] = {}

    def current_key(self) -> str:
        """The digest of what it reads now."""
        if self._key is None or changed(self._followed) is not None:
            digest = Digest()
            self._key = digest.text(digest.of(self.code))
            self._followed = {**digest.constants, **digest.callees, **digest.followed}
            self.unfollowed = digest.unfollowed
        return self._key


def changed(watched: Watched) -> tuple[str, Any, Any] | None:
    """The first of what is watched that is no longer what it was: (name, then, now)."""
    for (name, _), (value, where) in watched.items():
        now = where.get(name, MISSING)
        if now is not value and not is_still(now, value):
            return name, value, now
    return None


@functools.lru_cache(maxsize=512)
def _reading_of(code: Any) -> Reading:
    return Reading(code)


keys.reading_of = _reading_of
