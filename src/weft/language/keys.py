"""Keys of values: what tells one constant from another, in the memory of a process and on disk.

>>> key_of(1), key_of(True), key_of(1.0)
(('int', 1), ('bool', True), ('float', '0x1.0000000000000p+0'))
>>> key_of((2, [None])) == key_of((2, [None])) != key_of((2, (None,)))
True

A key is made of the value, through containers, named tuples, dataclasses and other objects, and of the classes that
these have; it holds nothing but strings, numbers and bytes in tuples. Two values have one key only where a kernel
cannot tell them apart, so a text of a key (`key_text`) is as good as the key.

A key never holds a `repr`: that of a function says its name, so that two functions of one name would share a kernel.
Of code (jit functions, functions of Python, classes) the key is a digest of all that it is made of and reads, which
`reading` finds. What has no value that could be told, such as a lock or an open file, is equal only to itself, and
only while the process runs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import struct
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final

Key = Any
"""Nested tuples of strings, integers and bytes."""

_PLAIN: Final = frozenset((int, str, bool, bytes))


def is_constexpr_value(value: object) -> bool:
    """Whether `value` is a `tl.constexpr` object; by its name, because the class builds on this."""
    return any(c.__name__ == "constexpr" for c in type(value).__mro__[:-1]) and hasattr(value, "value")


def is_jit(value: object) -> bool:
    """Whether `value` is a `JITCallable`, which builds on this too."""
    return getattr(type(value), "is_jit_callable", False) is True


def is_aggregate(value: Any) -> bool:
    """Whether a value is an instance of a class that `aggregate` made."""
    return getattr(type(value), "__triton_aggregate__", False) is True


def key_of(value: Any) -> Key:
    """The key of a constant. Launches ask for it: what constants mostly are is found by its class alone."""
    quick = _quick.get(value.__class__)
    return Keys().of(value) if quick is None else quick(value)


def key_text(value: Any) -> str:
    """The key of a constant as text, equal for equal values in this process and any other."""
    return repr(key_of(value))


def float_key(value: float) -> tuple[str, str]:
    """The key of a float: 0.0 and -0.0 differ, and so do NaNs of other bits."""
    return "float", value.hex() if value == value else struct.pack("<d", value).hex()


def _dtype_key(value: Any) -> Key:
    return "dtype", value.name


def _tuple_key(value: tuple[Any, ...]) -> Key:
    return "tuple", *map(key_of, value)


def _jit_key(fn: Any) -> Key:
    return "jit", fn.current_key()


_quick: dict[type, Callable[[Any], Key]] = {
    int: lambda value: ("int", value),
    str: lambda value: ("str", value),
    bool: lambda value: ("bool", value),
    bytes: lambda value: ("bytes", value),
    float: float_key,
    type(None): lambda value: ("None",),
    tuple: _tuple_key,
}
"""What `Keys` would say, by class; jit functions, element types and layouts come here when the first one is seen."""

_kept: dict[int, tuple[weakref.ref[Any], Key]] = {}
"""Keys of values that never change, by the address of the value."""


def _kept_key(value: Any) -> Key:
    """The key of a value that never changes: found once, and kept while the value lives."""
    number = id(value)
    kept = _kept.get(number)
    if kept is None or kept[0]() is not value:
        kept = _kept[number] = weakref.ref(value, lambda _: _kept.pop(number, None) and None), Keys().of(value)
    return kept[1]


_numbers = itertools.count()
_process = uuid.uuid4().hex
_tokens: dict[int, tuple[Any, str]] = {}


def _token(value: Any) -> str:
    """A text that an object has for itself, and that no other process finds."""
    kept = _tokens.get(id(value))
    if kept is not None and (kept[0]() if isinstance(kept[0], weakref.ref) else kept[0]) is value:
        return kept[1]
    token = f"{_process}.{next(_numbers)}"
    number = id(value)
    try:
        _tokens[number] = weakref.ref(value, lambda _: _tokens.pop(number, None) and None), token
    except TypeError:  # kept, so that nothing else gets its address
        _tokens[number] = value, token
    return token


class Keys:
    """Makes keys. `unfollowed` then says what of the values' code could not be followed (see `reading`), `places` where
    in files the jit functions among them stand.
    """

    def __init__(self) -> None:
        self.unfollowed: dict[str, None] = {}
        self.places: dict[tuple[str, int], None] = {}
        self._open: dict[int, int] = {}

    # -- code, which another class may treat otherwise -------------------------------------------------------------

    def jit(self, fn: Any) -> Key:
        """The key of a jit function: its cache key, as it is now."""
        if hasattr(fn, "__func__"):
            return "bound", self.of(fn.__self__), self.of(fn.__func__)
        return "jit", self._noted(fn)

    def function(self, fn: Any) -> Key:
        """The key of a function of Python."""
        return "function", self._noted(reading_of(fn))

    def class_(self, cls: type) -> Key:
        """The key of a class."""
        if kind_of_module(cls.__module__) != "user":
            return "class", cls.__module__, cls.__qualname__
        return "class", self._noted(reading_of(cls))

    def _noted(self, code: Any) -> str:
        key: str = code.current_key()
        self.unfollowed.update(code.unfollowed)
        self.places.update(dict.fromkeys(code.places))
        return key

    def module(self, value: ModuleType) -> Key:
        """The key of a module. A kernel may read anything in one of a user's, and several may have one name."""
        if kind_of_module(value.__name__) != "user":
            return "module", value.__name__
        return "module", value.__name__, _token(value)

    def opaque(self, value: Any) -> Key:
        """The key of what has no value that could be told."""
        return "object", _token(value)

    # -- values ----------------------------------------------------------------------------------------------------

    def of(self, value: Any) -> Key:
        """The key of a value."""
        kind = value.__class__
        if kind in _PLAIN:
            return kind.__name__, value
        if value is None:
            return ("None",)
        if kind is float:
            return float_key(value)
        if kind is tuple:
            return ("tuple", *map(self.of, value))
        if is_jit(value):
            if not hasattr(value, "__func__"):
                _quick[kind] = _jit_key
            return self.jit(value)
        if is_constexpr_value(value):
            return self.of(value.value)
        if kind is FunctionType:
            return self.function(value)
        if isinstance(value, type):
            return self.class_(value)
        if id(value) in self._open:  # it holds itself
            return "again", self._open[id(value)]
        self._open[id(value)] = len(self._open)
        try:
            return self._object(value)
        except RecursionError:
            return self.opaque(value)
        finally:
            del self._open[id(value)]

    def _object(self, value: Any) -> Key:
        if isinstance(value, Enum):
            attributes = attributes_of_member(value)
            kept = (self._mapping(attributes),) if attributes else ()
            return "enum", self.class_(type(value)), value.name, self.of(value.value), *kept
        if _is_numpy(value, ("generic", "ndarray")):
            return self._of_numpy(value)
        plain = self._as_plain(value)
        if plain is not None:
            kind = type(value)
            if kind.__module__ == "builtins":
                return plain
            fields = getattr(value, "__dict__", {})
            return "of", self.class_(kind), plain, self._mapping(fields)
        if is_aggregate(value):
            return "aggregate", self.class_(type(value)), *(self.of(getattr(value, n)) for n in _fields_of(value))
        if isinstance(value, MethodType):
            return "method", self.of(value.__self__), self.of(value.__func__)
        if isinstance(value, BuiltinFunctionType):
            owner = value.__self__
            at_top = owner is None or isinstance(owner, ModuleType)
            return "builtin", value.__module__ or "", value.__qualname__, *(() if at_top else (self.of(owner),))
        if isinstance(value, ModuleType):
            return self.module(value)
        wrapped = self._as_wrapper(value)
        return self._by_parts(value) if wrapped is None else wrapped

    def _as_wrapper(self, value: Any) -> Key | None:
        """The key of one of Python's wrappers around a function; None for what is none."""
        around: tuple[Any, ...]
        if isinstance(value, (staticmethod, classmethod)):
            around = (value.__func__,)
        elif isinstance(value, property):
            around = value.fget, value.fset, value.fdel
        elif isinstance(value, functools.partial):
            around = value.func, value.args, value.keywords
        elif isinstance(value, functools._lru_cache_wrapper) and hasattr(value, "__wrapped__"):
            around = (value.__wrapped__,)
        else:
            return None
        kind = type(value)
        name = kind.__name__ if kind.__module__ in ("builtins", "functools") else self.class_(kind)
        fields = {k: v for k, v in getattr(value, "__dict__", {}).items() if k[:2] != "__" and k != "cache_parameters"}
        return name, *map(self.of, around), *((self._mapping(fields),) if fields else ())

    def _as_plain(self, value: Any) -> Key | None:
        """The key of a container, a number or a text as one of Python's; None for what is none.

        What is in it is asked of Python's own class: one built on it may say anything of itself.
        """
        if isinstance(value, (tuple, list)):
            name = "tuple" if isinstance(value, tuple) else "list"
            return name, *map(self.of, tuple.__iter__(value) if name == "tuple" else list.__iter__(value))  # type: ignore[arg-type]
        if isinstance(value, dict):  # in its order, which a function that runs over it can tell
            return "dict", *((self.of(k), self.of(v)) for k, v in dict.items(value))
        if isinstance(value, set):
            return "set", *sorted(map(self.of, set.__iter__(value)), key=repr)
        if isinstance(value, frozenset):
            return "frozenset", *sorted(map(self.of, frozenset.__iter__(value)), key=repr)
        if isinstance(value, float):
            return float_key(float(value))
        if isinstance(value, complex):
            return "complex", float_key(value.real), float_key(value.imag)
        if isinstance(value, (int, str)):
            base: type = int if isinstance(value, int) else str
            return base.__name__, int.__int__(value) if isinstance(value, int) else str.__str__(value)
        if isinstance(value, (bytes, bytearray)):
            return "bytes" if isinstance(value, bytes) else "bytearray", memoryview(value).tobytes()
        if isinstance(value, MappingProxyType):
            return "mapping", *((self.of(k), self.of(v)) for k, v in value.items())
        if isinstance(value, memoryview):
            return "memoryview", value.format, value.shape, value.strides, value.readonly, value.tobytes()
        return None

    def _mapping(self, items: Mapping[Any, Any]) -> tuple[Key, ...]:
        """Attributes and their values, in whichever order they were set."""
        return tuple(sorted(((self.of(k), self.of(v)) for k, v in items.items()), key=repr))

    def _of_numpy(self, value: Any) -> Key:
        kind = type(value)
        name = kind.__name__ if kind_of_module(kind.__module__) == "versioned" else self.class_(kind)
        attributes = getattr(value, "__dict__", None)
        facts = (value.strides, value.flags.writeable, *((self._mapping(attributes),) if attributes else ()))
        plain = value.view(sys.modules["numpy"].ndarray) if is_array(value) else value  # a class may say anything
        if value.dtype.hasobject:
            return "array", name, value.shape, *facts, *map(self.of, plain.ravel().tolist())
        return "array", name, self.of(value.dtype), value.shape, *facts, plain.tobytes()

    def _by_parts(self, value: Any) -> Key:
        """The key of any other object: its class and what it consists of."""
        kind = type(value)
        if _is_numpy(value, ("dtype",)):
            return "np.dtype", kind.__name__, self.of(value.descr if value.names else value.str), value.name
        if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device", "layout", "memory_format"):
            return "torch", kind.__name__, str(value)
        if hasattr(value, "codegen_name") and type(value).__name__ == "dtype":
            _quick[kind] = _dtype_key
            return _dtype_key(value)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            of_users = kind_of_module(kind.__module__) == "user"  # others keep for themselves what follows from fields
            if not of_users and getattr(kind, "never_changes", False) is True:
                _quick[kind] = _kept_key
            stored = (*getattr(value, "__dict__", ()), *(name for cls in kind.__mro__ for name in _slots_of(cls)))
            names += [name for name in dict.fromkeys(stored) if name not in names and (of_users or name[0] != "_")]
            keyed = [(name, self.of(getattr(value, name))) for name in names if hasattr(value, name)]
            return "dataclass", self.class_(kind), *keyed
        if hasattr(value, "_flatten_ir_types"):  # a type of the language; what it keeps for itself is found again
            return "type", self.class_(kind), self._mapping({k: v for k, v in vars(value).items() if k[0] != "_"})
        if kind is object:
            return self.opaque(value)
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:
            fields = getattr(value, "__dict__", None)
            return self.opaque(value) if not fields else ("fields", self.class_(kind), self._mapping(fields))
        attributes = () if _pickles_as_usual(kind) else self._attributes(value)
        if isinstance(reduced, str):
            return "global", self.class_(kind), reduced, *attributes
        function, args, state, *items = (*reduced, None, None, None)[:5]
        more = [self.of(list(part)) for part in items if part is not None]
        made_by = getattr(function, "__name__", "")
        return "made", self.class_(kind), made_by, self.of(args), self.of(state), *more, *attributes

    def _attributes(self, value: Any) -> Key:
        """The attributes of an object that are its own: those it has in a dictionary, and in slots."""
        slots = [name for cls in type(value).__mro__ for name in _slots_of(cls) if hasattr(value, name)]
        return self._mapping({**getattr(value, "__dict__", {}), **{name: getattr(value, name) for name in slots}})


def _pickles_as_usual(kind: type) -> bool:
    """Whether Python pickles an object by its attributes; a class of a user may say otherwise, and leave some out."""
    methods = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
    classes = [cls for cls in kind.__mro__ if kind_of_module(cls.__module__) == "user"]
    return not any(name in vars(cls) for cls in classes for name in methods)


def _slots_of(cls: type) -> Iterable[str]:
    slots = vars(cls).get("__slots__", ())
    if kind_of_module(cls.__module__) != "user":
        return ()
    named = (slots,) if isinstance(slots, str) else tuple(slots)
    within = cls.__name__.lstrip("_")  # Python gives private names those of their class
    return tuple(f"_{within}{n}" if n[:2] == "__" and n[-2:] != "__" and within else n for n in named)


def _is_numpy(value: Any, names: Iterable[str]) -> bool:
    """Whether a value is of one of these classes of NumPy, which the language does without."""
    return any(c.__module__ == "numpy" and c.__name__ in names for c in type(value).__mro__)


def attributes_of_member(value: Enum) -> dict[str, Any]:
    """The attributes of a constant of an enum, but for those that all have."""
    return {k: v for k, v in vars(value).items() if k[:2] != "__" and not (k[0] == k[-1] == "_")}


def is_array(value: Any) -> bool:
    """Whether a value is an array of NumPy's, which can change in place."""
    return _is_numpy(value, ("ndarray",))


def _fields_of(value: Any) -> Iterable[str]:
    return type(value).__annotations__


_VERSIONED: Final = frozenset(("weft", "triton", "numpy", "pytest", "_pytest"))
"""Packages whose versions say what is in them: those of Weft and what it is built on are part of every key on disk.

pytest puts calls of its own into the assertions of test files, to explain those that fail: they change no result.
"""
_LARGE: Final = frozenset(
    ("torch", "jax", "jaxlib", "cupy", "scipy", "pandas", "tensorflow", "cuda", "ml_dtypes", "xdsl", "llvmlite")
)
"""Packages that are not followed into: they are mostly C, and much larger than any kernel."""


@functools.lru_cache(maxsize=1024)
def kind_of_module(module: str | None) -> str:
    """Who a module is from: "versioned", "standard" (Python), "large", or "user"."""
    root = (module or "").partition(".")[0]
    if root in _VERSIONED:
        return "versioned"
    if root in _LARGE:
        return "large"
    if root in sys.stdlib_module_names:
        file = getattr(sys.modules.get(root), "__file__", None)
        if file is None or os.path.dirname(os.path.abspath(file)).startswith(os.path.dirname(functools.__file__)):
            return "standard"
    return "user"


def _not_yet(code: Any) -> Any:
    raise NotImplementedError


reading_of: Callable[[Any], Any] = _not_yet
"""What a function or a class reads; `reading`, which builds on this, puts it here."""
