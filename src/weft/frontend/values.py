"""Values of the language as the frontend handles them: wrapping Python's, flattening to SSA values, comparing.

A value is a `base_value` of the language (a tensor, a constexpr, a tuple, an aggregate), or a plain Python object that
exists only while the kernel is compiled (a module, a type, a jit function).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from xdsl.ir import SSAValue

from weft.ir import hint_of
from weft.language import core
from weft.language.callable import JITCallable

_SCALARS = (bool, int, float, str, complex, bytes)


def unwrap(value: Any) -> Any:
    """The Python value of a constexpr; anything else as it is."""
    return value.value if isinstance(value, core.constexpr) else value


def wrap(value: Any) -> Any:
    """A result of host code as a value of the language: scalars become constexprs, Python tuples become tuples."""
    if isinstance(value, core.base_value):
        return value
    if isinstance(value, tuple):
        return as_tuple(value)
    return core.constexpr(value)


def wrap_scalar(value: Any) -> Any:
    """Python's numbers and strings as constexprs; anything else as it is."""
    return core.constexpr(value) if isinstance(value, _SCALARS) else value


def as_tuple(values: Sequence[Any]) -> Any:
    """A Python tuple (its field names are kept) as a tuple of the language."""
    items = [wrap(v) for v in values]
    fields = getattr(values, "_fields", None)
    if fields:
        return core.tuple(items, core.tuple_type([v.type for v in items], fields, type(values)))
    return core.tuple(items)


def describe_type(kind: Any) -> str:
    """A type of the language as messages show it: `fp32[128, 64]`."""
    if isinstance(kind, core.block_type):
        layout = getattr(kind, "layout", None)  # of a Gluon kernel's tiles
        text = f"{kind.scalar}[{', '.join(str(s) for s in kind.shape)}]"
        return text if layout is None else f"{text} in {layout!r}"
    return str(kind)


def way_to(kind: Any, other: Any) -> str:
    """How a value of one type becomes one of another: a conversion of elements, or of layouts."""
    layout = getattr(kind, "layout", None)
    if layout is not None and getattr(other, "layout", None) not in (None, layout):
        return f"gl.convert_layout(x, {layout!r})"
    return ".to(...)"


def map_tuple(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to each value of a tuple, keeping its field names."""
    items = [function(v) for v in value.values]
    items = [core.constexpr(v) if not isinstance(v, core.base_value) else v for v in items]
    fields = value.type.fields if value._type is not None else None
    if fields and any(fields):
        return core.tuple(items, core.tuple_type([v.type for v in items], fields, value.type.of))
    return core.tuple(items)


def flatten(values: Iterable[Any]) -> list[SSAValue]:
    """The SSA values that values consist of; a plain Python object has none."""
    handles: list[SSAValue] = []
    for value in values:
        if type(value) is core.tensor:
            handles.append(value.handle)
        elif isinstance(value, core.base_value):
            value._flatten_ir(handles)
    return handles


def unflatten(types: Sequence[Any], handles: Sequence[SSAValue]) -> list[Any]:
    """Values of these types over these SSA values."""
    values = []
    cursor = 0
    all_handles = list(handles)
    for kind in types:
        value, cursor = kind._unflatten_ir(all_handles, cursor)
        values.append(value)
    assert cursor == len(all_handles), f"{len(all_handles) - cursor} SSA values are left over"
    return values


def same_value(left: Any, right: Any) -> bool:
    """Whether two values are the same: the same SSA values in the same type, or equal compile-time values."""
    if left is right:
        return True
    if not (isinstance(left, core.base_value) and isinstance(right, core.base_value)):
        return False
    if type(left) is not type(right):
        return False
    if isinstance(left, core.constexpr) and isinstance(right, core.constexpr):
        return same_constant(left.value, right.value)
    mine, theirs = flatten([left]), flatten([right])
    return (
        len(mine) == len(theirs)
        and all(a is b for a, b in zip(mine, theirs, strict=True))
        and (bool(left.type == right.type))
    )


def same_constant(left: Any, right: Any) -> bool:
    """Whether two compile-time values are the same (`1`, `1.0` and `True` are not)."""
    if left is right:
        return True
    try:
        return type(left) is type(right) and bool(left == right)
    except Exception:  # a comparison of the user's classes may do anything
        return False


def is_aggregate(value: Any) -> bool:
    """Whether a value is of a class of the user's."""
    return isinstance(value, core.base_value) and getattr(value, "__triton_aggregate__", False)


def iteration_count(values: range) -> int:
    """How many there are; `len` refuses very large ranges."""
    step = values.step
    return max(0, (values.stop - values.start + step - (1 if step > 0 else -1)) // step)


def snapshot(scope: dict[str, Any]) -> dict[str, Any]:
    """A copy of a scope that later changes do not reach; aggregates can change in place, so they are copied too."""
    copied = dict(scope)
    for name, value in scope.items():
        if is_aggregate(value):
            copied[name] = unflatten([value.type], flatten([value]))[0]
    return copied


def name_value(value: Any, name: str) -> None:
    """Let the SSA values of `value` print as `name`, unless they have a name already."""
    handle = getattr(value, "handle", None) if isinstance(value, core.base_value) else None
    if isinstance(handle, SSAValue) and handle.name_hint is None:  # a tensor, shared memory, a descriptor
        handle.name_hint = hint_of(name)


def describe(value: Any) -> str:
    """What a value is, for messages: `fp32[128, 64]`, `constexpr 3`, `module math`."""
    if isinstance(value, core.constexpr):
        return "None" if value.value is None else f"constexpr {value.value!r}"
    if isinstance(value, core.tensor):
        if not value.type.is_block():
            return f"a scalar {value.type}"
        return f"a tensor {describe_type(value.type)}"
    if isinstance(value, core.tuple):
        return f"the tuple ({', '.join(map(describe, value.values))})"
    if isinstance(value, core.base_value):
        kind = getattr(value, "type", None)
        return f"a value of type {kind}" if kind is not None else f"a {type(value).__name__}"
    if isinstance(value, JITCallable):
        return f"the jit function {value.__name__}"
    if isinstance(value, core.dtype):
        return f"the type {value}"
    if value is None:
        return "None"
    if isinstance(value, (ModuleType, type)):
        return f"the {'module' if isinstance(value, ModuleType) else 'class'} {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    return f"an object of type {type(value).__name__}"
