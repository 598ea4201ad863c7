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
import dataclasses
import functools
import hashlib
import operator
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

from . import keys
from .bytecode import code_key, reads_of
from .keys import Key, Keys, is_aggregate, is_constexpr_value, is_jit, kind_of_module
from .references import MISSING, Cells, Scope
from .watching import BOOKKEEPING, Attributes, Members, Parts, Watched, changed, is_fixed, is_still, kept, registered

__all__ = ["Digest", "Reading", "Watched", "changed", "is_still", "may_be_captured"]

_PURE: Final = frozenset(
    (
        *("abc", "array", "ast", "bisect", "builtins", "cmath", "collections", "_collections", "contextlib", "copy"),
        *("copyreg", "dataclasses", "enum", "fractions", "functools", "_functools", "hashlib"),
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
_OPENED_BY_NUMPY: Final = frozenset(
    ("DataSource", "fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "open_memmap", "random")
)
"""Functions of NumPy that read files, and the module of random numbers: they reach for more than their arguments."""
_ELSEWHERE: Final = frozenset(
    (
        *("__annotations__", "__builtins__", "__code__", "__doc__", "__globals__", "__module__", "__subclasses__"),
        *(
            "f_back",
            "f_builtins",
            "f_globals",
            "f_lineno",
            "f_locals",
            "__type_params__",
            "get_annotations",
            "get_type_hints",
        ),
    )
)
"""Attributes that lead from what is followed to anything else: places in files, annotations, classes below a class."""
_NAMESPACES: Final = frozenset((("argparse", "Namespace"), ("types", "SimpleNamespace")))
"""Classes of Python's library whose objects are nothing but their attributes."""
_OF_ENUMS: Final = frozenset(
    (
        *("_all_bits_", "_flag_mask_", "_hashable_values_", "_member_map_", "_member_type_", "_new_member_"),
        *("_singles_mask_", "_unhashable_values_", "_unhashable_values_map_", "_use_args_", "_value2member_map_"),
        *("_inverted_", "_value_repr_"),
    )
)
"""What a class of constants keeps for itself: its members, and what follows from them."""
_OF_THE_LANGUAGE: Final = ("weft.", "triton.language", "triton.experimental.gluon.language")
FOLLOWED: Final = 400
"""How many functions and classes are followed from one kernel: those that read more do not know what they read."""


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
    attributes = getattr(value, "__dict__", {})
    return name not in attributes and any(hasattr(type(value), asked) for asked in ("__getattr__",))


class Names(NamedTuple):
    """Where the names of a function stand."""

    cells: Cells
    space: dict[str, Any]

    def find(self, name: str) -> tuple[Any, Scope | None]:
        """What a name means, and where that stands; MISSING and None for a builtin, or for nothing."""
        where: Scope
        for where in (self.cells, self.space):
            value = where.get(name, MISSING)
            if value is not MISSING:
                return value, where
        return MISSING, None


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
            edited = fn.src if fn.edition and fn.src != fn.original_src else None
            self._watch_parts(fn, ("fn",))
            return "constexpr function", fn._fn_name, edited, self._function(fn.fn, direct=True)
        try:
            text = fn.src
        except (ValueError, OSError, IndexError):
            return "jit", fn._fn_name, self._function(fn.fn, direct=True)
        self.editions.append((fn, fn.edition))
        place = (fn.file_name, fn.starting_line_number) if "assert" in text else ()  # it becomes part of the code
        defaults = self.of(fn.fn.__defaults__), self.of(fn.fn.__kwdefaults__)
        if not (is_fixed(fn.fn.__defaults__) and fn.fn.__kwdefaults__ is None):
            self._watch_parts(fn.fn, ("__defaults__", "__kwdefaults__"))
        captured = [(".".join(path), self._read(path, where, direct=True)) for path, where in self._names_of(fn)]
        return "jit", fn._fn_name, text, bool(fn.noinline), place, defaults, *captured

    def function(self, fn: Any) -> Key:
        return self._again(fn) or self._function(fn, direct=False)

    def class_(self, cls: type) -> Key:
        kind = kind_of_module(cls.__module__)
        called = "class", cls.__module__, cls.__qualname__, cls.__name__
        if kind != "user":
            if kind == "large" or not _is_pure(cls.__module__, kind) or _is_opened_by_numpy(cls):
                self._not_followed(f"{cls.__module__}.{cls.__qualname__}")
            return called
        again = self._again(cls)
        if again is not None:
            return again
        namespace, members_followed, parts = vars(cls), Members(cls), Parts(cls)
        self.followed["", id(members_followed)] = (members_followed.get("", None), members_followed)
        self.followed["__bases__", id(parts)] = (cls.__bases__, parts)
        constants = getattr(cls, "__members__", {}) if issubclass(cls, Enum) else {}
        members = [("members", *((name, self.of(constants[name])) for name in constants))]
        for name in constants:
            self.followed[name, id(constants)] = (kept(constants[name]), constants)
        for name, member in namespace.items():
            if name in BOOKKEEPING or name in constants or isinstance(member, MemberDescriptorType):
                continue
            if name == "__dataclass_fields__":
                members.append((name, *map(self._field, member.values())))
                continue
            if name in _OF_ENUMS and issubclass(cls, Enum):
                continue
            self.followed[name, id(namespace)] = (kept(member), namespace)
            members.append((name, self.of(member)))
        annotations = [(name, self._annotation(annotation)) for name, annotation in _annotations(cls).items()]
        more = [self.of(m) for m in vars(cls).get("hash_attrs", ())]  # an aggregate lists what its values do
        made_by = [self.class_(type(cls))] if kind_of_module(type(cls).__module__) == "user" else []  # its metaclass
        theirs = sorted((self.class_(subclass) for subclass in registered(cls)), key=repr)
        return *called, *made_by, *map(self.class_, cls.__bases__), *members, *annotations, *more, *theirs

    def _field(self, field: dataclasses.Field[Any]) -> Key:
        """What a dataclass knows of a field, its type apart, which is an annotation."""
        facts = field.init, field.kw_only, field.compare, field.repr, field.hash
        return field.name, self.of(field.default), self.of(field.default_factory), facts, self.of(dict(field.metadata))

    def _annotation(self, annotation: Any) -> Key:
        """An annotation: a type by its name, `Annotated[int, 4]` and the like by what is in the brackets too."""
        if isinstance(annotation, str):
            return annotation
        inside = annotation if isinstance(annotation, (list, tuple)) else typing.get_args(annotation)
        if inside:
            return getattr(typing.get_origin(annotation), "__qualname__", ""), *map(self._annotation, inside)
        if isinstance(annotation, type) or not _is_plain(annotation):
            return getattr(annotation, "__qualname__", type(annotation).__qualname__)
        return self.of(annotation)

    def _by_parts(self, value: Any) -> Key:
        of = type(value).__module__, type(value).__qualname__
        kind = kind_of_module(of[0])
        if kind == "standard" and not _is_pure(of[0], kind) and of not in _NAMESPACES:
            self._not_followed(f"an object of type {type(value).__name__}")
        if isinstance(value, operator.attrgetter):
            self._note_attributes(name for path in value.__reduce__()[1] for name in path.split("."))
        return super()._by_parts(value)

    def module(self, value: ModuleType) -> Key:
        self._whole_module(value)
        return "module", value.__name__

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
        return super().of(value)

    def _again(self, code: Any) -> Key | None:
        """The number of code that was followed before; None for what is new."""
        if id(code) in self._seen:
            return "again", self._seen[id(code)]
        self._seen[id(code)] = len(self._seen)
        self._alive.append(code)
        return None

    def _not_followed(self, name: str) -> None:
        self.unfollowed[name] = None

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
            cells = Cells(fn)
            captured = [(name, cells.get(name, None)) for name in code.co_freevars] if kind == "standard" else []
            for name, value in captured:
                if isinstance(value, (dict, list, set)):  # the functions of a singledispatch, say
                    self.followed[name, id(cells)] = (kept(value), cells)
            return "function", module, fn.__qualname__, *around, *(self.of(value) for _, value in captured)
        if len(self._seen) > FOLLOWED:
            self._not_followed(f"more than {FOLLOWED} functions")
            return "function", module, fn.__qualname__
        reads = reads_of(code)
        for imported in reads.imports:
            if not _is_pure(imported, kind_of_module(imported)):
                self._not_followed(f"import {imported}")
        for name in reads.sets:
            self._not_followed(f"global {name}")
        self._note_attributes(reads.attributes)
        self._watch_parts(fn, ("__code__", "__defaults__", "__kwdefaults__", *(("__dict__",) if vars(fn) else ())))
        where = Names(Cells(fn), space)
        read = [(".".join(p), self._read(p, where, direct=direct)) for p in reads.paths if p[0] not in reads.sets]
        return "python", fn.__qualname__, fn.__name__, code_key(code), *around, self._mapping(vars(fn)), *read

    def _note_attributes(self, names: Iterable[str]) -> None:
        for name in _ELSEWHERE.intersection(names):
            self._not_followed(f"attribute {name}")

    def _watch_parts(self, owner: Any, names: Iterable[str]) -> None:
        parts = Parts(owner)
        for name in names:
            self.followed[name, id(parts)] = (kept(getattr(owner, name)), parts)

    # -- names -------------------------------------------------------------------------------------------------------

    def _names_of(self, fn: Any) -> Iterator[tuple[tuple[str, ...], Names]]:
        """The names that a jit function reads from outside, and where it finds them.

        A name that it also sets is one of its own, which may be without a value where it is read; then it is read
        from outside only if a kernel may read what stands there.
        """
        where = Names(fn._cells, fn.__globals__)
        for path in fn.references():
            if path[0] not in fn.assigned or may_be_captured(where.find(path[0])[0]):
                yield path, where

    def _read(self, path: tuple[str, ...], names: Names, *, direct: bool) -> Key:
        """The key of what a name with attributes means; `direct` where a kernel's own function says it."""
        name, rest = path[0], path[1:]
        value, where = names.find(name)
        if where is None:  # a builtin
            self.followed[name, id(names.space)] = (MISSING, names.space)
            where = vars(builtins)
            if name in _IMPURE and name in where:
                self._not_followed(name)
            value = where.get(name, MISSING)
            if value is MISSING or _is_librarys(value):
                return ("builtin",)
        while rest and isinstance(value, ModuleType):
            kind = kind_of_module(value.__name__)
            self.followed[name, id(where)] = (value, where)
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
            attribute = getattr(value, rest[0], MISSING)
            if attribute is MISSING:
                break
            value, taken, rest = attribute, (*taken, rest[0]), rest[1:]
        self._watch(name, value, where, taken, direct)
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

    def _watch(self, name: str, value: Any, where: Scope, taken: tuple[str, ...], direct: bool) -> None:
        """Note what a name means."""
        if taken:
            path = Attributes(where, (name, *taken))
            self.followed[".".join((name, *taken)), id(path)] = (kept(value), path)
        elif is_jit(value):
            self.callees[name, id(where)] = (value, where)
        elif direct and _is_constant(value):
            self.constants[name, id(where)] = (kept(value), where)
        else:
            self.followed[name, id(where)] = (kept(value), where)

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
    if (cls.__module__, cls.__qualname__) in _NAMESPACES:
        return not isinstance(value, type)
    return kind_of_module(cls.__module__) == "user" and not is_aggregate(value)


def may_be_captured(value: Any) -> bool:
    """Whether a kernel may read a name from outside that means this: it cannot change under compiled code unnoticed."""
    return (
        value is None
        or isinstance(value, ModuleType)
        or is_jit(value)
        or is_constexpr_value(value)
        or bool(getattr(value, "__triton_builtin__", False) or getattr(value, "__triton_aggregate__", False))
        or (isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"))
        or str(getattr(value, "__module__", "")).startswith(_OF_THE_LANGUAGE)
    )


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
        self.places: list[tuple[str, int]] = []

    def current_key(self) -> str:
        """The digest of what it reads now."""
        if self._key is None or changed(self._followed) is not None:
            digest = Digest()
            self._key = digest.text(digest.of(self.code))
            self._followed = {**digest.constants, **digest.callees, **digest.followed}
            self.unfollowed = digest.unfollowed
            self.places = [(fn.file_name, fn.starting_line_number) for fn, _ in digest.editions]
        return self._key


class _One:
    """A function or a class as itself, whatever its metaclass says of equality."""

    __slots__ = ("code",)

    def __init__(self, code: Any) -> None:
        self.code = code

    def __hash__(self) -> int:
        return id(self.code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _One) and other.code is self.code


@functools.lru_cache(maxsize=512)
def _reading_of(read: _One) -> Reading:
    return Reading(read.code)


keys.reading_of = lambda code: _reading_of(_One(code))
