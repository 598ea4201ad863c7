"""Classes of the user's as values: `_aggregate` turns a class of annotated fields into one that kernels carry.

    @tl.core._aggregate
    class Range:
        begin: tl.tensor
        end: tl.tensor
        step: tl.constexpr

        @weft.constexpr_function            # or @weft.jit
        def __init__(self, begin, end, step):
            self.begin, self.end, self.step = begin, end, step

Its IR values are those of its fields, in order. Fields are set in `__init__` and changed by assignment; each must keep
the class that its annotation says.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from .callable import ConstexprFunction, JITCallable
from .constants import constexpr
from .protocol import TRITON_BUILTIN, base_type, base_value

__all__ = ["aggregate", "aggregate_type"]


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
        return instance, cursor

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


def aggregate(cls: type) -> type:
    """Class decorator: instances become values of the language. The class must have annotated fields."""
    own = inspect.get_annotations(cls)
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    fields = {name: eval(a, module, dict(vars(cls))) if isinstance(a, str) else a for name, a in own.items()}

    class aggregate_value(base_value):
        """A user's class as a value of the language."""

        @classmethod
        def _get_instance(this_cls) -> Any:
            return super().__new__(this_cls)

        def __new__(this_cls, *args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any) -> Any:
            instance = this_cls._get_instance()
            init = cls.__init__  # type: ignore[misc]
            extra: dict[str, Any] = {}
            if isinstance(init, JITCallable) and not isinstance(init, ConstexprFunction):
                raise ValueError(f"__init__ of {cls.__name__} cannot be a @jit function: make it a @constexpr_function")
            if getattr(init, TRITON_BUILTIN, False):
                extra["_semantic"] = _semantic
                if getattr(init, "_wants_generator", False):
                    extra["_generator"] = _generator
            init(instance, *args, **extra, **kwargs)
            missing = [name for name in fields if not hasattr(instance, name)]
            if missing:
                raise AttributeError(f"constructor for {cls.__name__} did not initialize attribute '{missing[0]}'")
            return instance

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            """Done by `__new__`, which has the semantic."""

        def __setattr__(self, name: str, value: Any) -> None:
            if name in fields:
                expected = fields[name]
                if expected is constexpr and not isinstance(value, constexpr):
                    value = constexpr(value)
                if isinstance(expected, type) and not isinstance(value, expected):
                    raise TypeError(f"Expected {expected} for attribute '{name}' of {cls.__name__}, got {type(value)}")
            super().__setattr__(name, value)

        def _flatten_ir(self, handles: list[Any]) -> None:
            for name in fields:
                getattr(self, name)._flatten_ir(handles)

        @property
        def type(self) -> aggregate_type:  # type: ignore[override]
            """The class and the types of its fields, as they are now."""
            return aggregate_type(aggregate_value, [(name, getattr(self, name).type) for name in fields])

    hash_attrs: list[Any] = [cls.__init__]  # type: ignore[misc]
    for name, attribute in cls.__dict__.items():
        if name in ("__dict__", "__weakref__", "__init__", "__new__", "__annotations__", "__firstlineno__"):
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
    aggregate_value._wants_generator = True  # type: ignore[attr-defined]
    aggregate_value.__triton_aggregate__ = True  # type: ignore[attr-defined]
    aggregate_value.hash_attrs = hash_attrs  # type: ignore[attr-defined]
    return aggregate_value
