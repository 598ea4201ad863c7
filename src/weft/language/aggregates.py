"""Classes of the user's as values: `_aggregate` turns a class of annotated fields into one that kernels carry.

    @tl.core._aggregate
    class Range:
        begin: tl.tensor
        end: tl.tensor
        step: tl.constexpr = 1

        @weft.jit
        def length(self):
            return (self.end - self.begin) // self.step

Its IR values are those of its fields, in order. The fields are arguments of the constructor, by position or name, and
may have defaults; a class that has an `__init__` sets them there. Afterwards they stay as they are, since compiled
kernels depend on them; `aggregate_replace` makes a copy with others. Each must be of the class that its annotation
says. A class has the fields and the methods of the aggregates that it inherits from.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .callable import ConstexprFunction, JITCallable
from .constants import constexpr
from .protocol import TRITON_BUILTIN, base_type, base_value
from .tuples import tuple as tuple_value, type_for_tuple_values

# What a class has without its author's doing.
_GIVEN = ("__dict__", "__weakref__", "__init__", "__new__", "__annotations__", "__firstlineno__", "__annotate_func__")


class aggregate_type(base_type):
    """The type of a user's class: the class and the types of its fields."""

    def __init__(self, base_cls: type, fields: list[tuple[str, base_type]]) -> None:
        self.base_cls = base_cls
        self.fields = fields

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        instance = self.base_cls._get_instance()  # type: ignore[attr-defined]
        for name, type in self.fields:
            value, cursor = type._unflatten_ir(handles, cursor)
            object.__setattr__(instance, name, value)
        return _sealed(instance), cursor

    def _as_carried(self) -> base_type:
        return aggregate_type(self.base_cls, [(name, type._as_carried()) for name, type in self.fields])

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        for _, type in self.fields:
            type._flatten_ir_types(builder, out)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, aggregate_type) and self.base_cls is other.base_cls and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((self.base_cls, tuple(self.fields)))

    def __repr__(self) -> str:
        return f"{self.base_cls.__name__}({', '.join(f'{n}: {t}' for n, t in self.fields)})"

    def mangle(self) -> str:
        fields = [type.mangle() for _, type in self.fields]
        return f"{self.base_cls.__name__}<{', '.join(fields)}>"


def _sealed(instance: Any) -> Any:
    """An instance whose fields are all set, and can be set no more."""
    object.__setattr__(instance, "_is_sealed", True)
    return instance


def _as_value(argument: Any) -> Any:
    """An argument of a constructor as a value of the language."""
    if isinstance(argument, base_value):
        return argument
    if isinstance(argument, tuple):
        items = [_as_value(item) for item in argument]
        return tuple_value(items, type_for_tuple_values(items, getattr(argument, "_fields", None)))
    return constexpr(argument)


def _fields_of(cls: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """(class by field, default by field) of a class and of what it inherits from, the oldest first."""
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if hasattr(base, "__wrong__"):
            raise base.__wrong__
        if getattr(base, "__triton_aggregate__", False):
            fields.update(base.__annotations__)
            defaults.update(base.__aggregate_defaults__)  # type: ignore[attr-defined]
        elif base not in (object, base_value):
            raise TypeError(
                f"Aggregates can only inherit from other aggregates: {cls.__name__} inherits from {base.__name__}"
            )
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    for name, annotation in inspect.get_annotations(cls).items():
        is_text = isinstance(annotation, str)
        fields[name] = eval(annotation, module, dict(vars(cls))) if is_text else annotation
        default = vars(cls).get(name)
        if name in vars(cls) and (isinstance(default, base_value) or not callable(default)):
            defaults[name] = default
    return fields, defaults


def _constructor(name: str, fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> Callable[..., None]:
    """An `__init__` that takes the fields in order or by name."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        by_name = dict(zip(fields, args, strict=False))
        problem = None
        if len(args) > len(fields):
            problem = f"takes {len(fields)} arguments, got {len(args)}"
        for key in kwargs:
            if key in by_name:
                problem = f"got multiple values for argument {key!r}"
            elif key not in fields:
                problem = f"got an unexpected keyword argument {key!r}"
        by_name = {**defaults, **by_name, **kwargs}
        missing = [key for key in fields if key not in by_name]
        if problem is not None or missing:
            raise TypeError(f"{name}({', '.join(fields)}) {problem or f'missing required argument: {missing[0]!r}'}")
        for key in fields:
            setattr(self, key, _as_value(by_name[key]))

    return init


def aggregate_replace(instance: Any, /, _semantic: Any = None, **changes: Any) -> Any:
    """A copy of an instance of an aggregate with other values in some fields, which are named; the rest is the same.

    >>> @aggregate
    ... class Tile:
    ...     rows: constexpr
    ...     columns: constexpr = 64
    >>> wide = aggregate_replace(Tile(16), columns=256)
    >>> wide.rows, wide.columns
    (constexpr[16], constexpr[256])
    """
    cls = type(instance)
    if not getattr(cls, "__triton_aggregate__", False):
        raise TypeError(f"aggregate_replace expects an aggregate instance, got {cls.__name__}")
    unknown = [name for name in changes if name not in cls.__annotations__]
    if unknown:
        names = ", ".join(cls.__annotations__)
        raise TypeError(f"{cls.__name__} has no field {unknown[0]!r}; its fields are {names}")
    copied = cls._get_instance()
    for name in cls.__annotations__:
        setattr(copied, name, _as_value(changes[name]) if name in changes else getattr(instance, name))
    return _sealed(copied)


setattr(aggregate_replace, TRITON_BUILTIN, True)  # kernels call it as well


def aggregate(cls: type) -> type:
    """Class decorator: instances become values of the language. The class must have annotated fields.

    What is wrong with it is told when one is made: a class that nobody uses must not fail an import.

    >>> @gl.aggregate
    ... class Part:
    ...     start: gl.tensor
    ...     size: gl.constexpr
    ...     @gluon.jit
    ...     def indices(self):
    ...         return self.start + gl.arange(0, self.size, gl.BlockedLayout([1], [32], [4], [0]))
    >>> @gluon.jit
    ... def fill(out):
    ...     part = Part(gl.program_id(0) * 128, 128)
    ...     gl.store(out + part.indices(), part.indices())
    >>> out = np.zeros(256, np.int32)
    >>> _ = fill[(2,)](out, target="sim:cuda:80")
    >>> out[200]
    np.int32(200)
    """
    try:
        return _aggregate(cls)
    except Exception as error:
        return _refused(cls, error)


def _refused(cls: Any, error: Exception) -> type:
    """A class in the place of one that cannot be an aggregate: making one of it raises why."""

    def refuse(this_cls: type, *args: Any, **kwargs: Any) -> Any:
        raise error.with_traceback(None)

    facts = {"__new__": refuse, "__module__": getattr(cls, "__module__", __name__), "__doc__": cls.__doc__}
    facts |= {TRITON_BUILTIN: True, "__triton_aggregate__": True, "__aggregate_defaults__": {}, "__annotations__": {}}
    facts |= {"__wrong__": error, "hash_attrs": [], "_wants_generator": True}
    return type(getattr(cls, "__name__", type(cls).__name__), (base_value,), facts)


def _aggregate(cls: type) -> type:
    fields, defaults = _fields_of(cls)
    parents = tuple(base for base in cls.__bases__ if base is not object) or (base_value,)
    init: Any = vars(cls).get("__init__") or _constructor(cls.__name__, fields, defaults)

    taken = () if isinstance(init, JITCallable) else inspect.signature(init).parameters

    class aggregate_value(*parents):  # type: ignore[misc]
        """A user's class as a value of the language."""

        @classmethod
        def _get_instance(this_cls) -> Any:
            return object.__new__(this_cls)

        def __new__(this_cls, *args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any) -> Any:
            instance = this_cls._get_instance()
            extra: dict[str, Any] = {}
            if isinstance(init, JITCallable) and not isinstance(init, ConstexprFunction):
                raise ValueError(f"__init__ of {cls.__name__} cannot be a @jit function: make it a @constexpr_function")
            if "_semantic" in taken or getattr(init, TRITON_BUILTIN, False):
                extra["_semantic"] = _semantic
            if "_generator" in taken or getattr(init, "_wants_generator", False):
                extra["_generator"] = _generator
            init(instance, *args, **extra, **kwargs)
            missing = [name for name in fields if not hasattr(instance, name)]
            if missing:
                raise AttributeError(f"constructor for {cls.__name__} did not initialize attribute '{missing[0]}'")
            return _sealed(instance)

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            """Done by `__new__`, which has the semantic."""

        def __setattr__(self, name: str, value: Any) -> None:
            if name in fields:
                expected = fields[name]
                if expected is constexpr and not isinstance(value, constexpr):
                    value = constexpr(value)
                if isinstance(expected, type) and not isinstance(value, expected):
                    raise TypeError(f"Expected {expected} for attribute '{name}' of {cls.__name__}, got {type(value)}")
                if "_is_sealed" in self.__dict__:
                    raise AttributeError(
                        f"cannot assign to field '{name}' on immutable aggregate {cls.__name__}: "
                        f"aggregate_replace(value, {name}=...) makes a changed copy"
                    )
            object.__setattr__(self, name, value)

        def __repr__(self) -> str:
            return f"{cls.__name__}({', '.join(f'{name}={getattr(self, name, None)!r}' for name in fields)})"

        def _flatten_ir(self, handles: list[Any]) -> None:
            for name in fields:
                getattr(self, name)._flatten_ir(handles)

        @property
        def type(self) -> aggregate_type:
            """The class and the types of its fields, as they are now."""
            return aggregate_type(aggregate_value, [(name, getattr(self, name).type) for name in fields])

    hash_attrs: list[Any] = [vars(cls).get("__init__"), *map(_as_value, defaults.values())]
    hash_attrs += [attribute for parent in parents for attribute in getattr(parent, "hash_attrs", ())]
    for name, attribute in cls.__dict__.items():
        if name in _GIVEN or name in defaults:
            continue
        if isinstance(attribute, JITCallable) or callable(attribute):
            hash_attrs.append(attribute)
        setattr(aggregate_value, name, attribute)
    aggregate_value.__annotations__ = dict(fields)
    aggregate_value.__name__ = cls.__name__
    aggregate_value.__qualname__ = cls.__qualname__
    aggregate_value.__module__ = cls.__module__
    aggregate_value.__doc__ = cls.__doc__
    setattr(aggregate_value, TRITON_BUILTIN, True)
    aggregate_value._wants_generator = True
    aggregate_value.__triton_aggregate__ = True
    aggregate_value.__aggregate_defaults__ = defaults
    aggregate_value.hash_attrs = hash_attrs
    return aggregate_value
