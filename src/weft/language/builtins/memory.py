"""Loads, stores, atomics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..constants import known_flag, unwrap
from ..protocol import GIVEN, builtin, builtin_named
from ..tensors import member, tensor

if TYPE_CHECKING:
    from ..semantic import TritonSemantic

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_poll",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
    "load",
    "store",
]


@builtin
def load(
    pointer: tensor,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:
    """Read what a pointer, a tile of pointers or a block pointer points to.

    Where `mask` is false nothing is read and the result is `other`, or 0 without it. A block pointer takes neither:
    dimensions named in `boundary_check` are kept inside the tensor, and outside is `padding_option` ("zero", "nan").

    >>> memory = np.arange(10, 16)
    >>> evaluate("tl.load(memory + tl.arange(0, 8), mask=tl.arange(0, 8) < 6, other=-1)", memory=memory)
    array([10, 11, 12, 13, 14, 15, -1, -1])
    """
    return _semantic.load(
        pointer,
        unwrap(mask),
        unwrap(other),
        unwrap(boundary_check),
        unwrap(padding_option),
        unwrap(cache_modifier),
        unwrap(eviction_policy),
        known_flag(volatile, "volatile"),
    )


@member
@builtin
def store(
    pointer: tensor,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    _semantic: TritonSemantic = GIVEN,
) -> None:
    """Write a value to where a pointer, a tile of pointers or a block pointer points; nothing where `mask` is false.

    Where several lanes name one address, the last of them stays.

    >>> memory = np.zeros(5, np.int32)
    >>> evaluate("i = tl.arange(0, 8); tl.store(memory + i, i * i, mask=i < 5)", memory=memory)
    >>> memory
    array([ 0,  1,  4,  9, 16], dtype=int32)
    """
    _semantic.store(
        pointer, unwrap(value), unwrap(mask), unwrap(boundary_check), unwrap(cache_modifier), unwrap(eviction_policy)
    )


@member
@builtin
def atomic_cas(
    pointer: tensor, cmp: Any, val: Any, sem: Any = None, scope: Any = None, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """If memory holds `cmp`, store `val`, in one atomic step; returns the old value.

    >>> memory = np.array([10, 20], np.int32)
    >>> evaluate("tl.atomic_cas(memory + tl.arange(0, 2), 10, 99)", memory=memory)
    array([10, 20], dtype=int32)
    >>> memory
    array([99, 20], dtype=int32)
    """
    return _semantic.atomic_cas(pointer, _semantic.to_tensor(cmp), _semantic.to_tensor(val), unwrap(sem), unwrap(scope))


@member
@builtin
def atomic_load(
    pointer: tensor, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """Read memory, each element in one step; 0 where the mask is false. `sem` is "acquire" or "relaxed".

    >>> memory = np.array([10, 20], np.int32)
    >>> evaluate("tl.atomic_load(memory + 1)", memory=memory)
    20
    """
    return _semantic.atomic_load(pointer, unwrap(mask), unwrap(sem), unwrap(scope))


@member
@builtin
def atomic_store(
    pointer: tensor, val: Any, mask: Any = None, sem: Any = None, scope: Any = None,
    _semantic: TritonSemantic = GIVEN,
) -> None:  # fmt: skip
    """Write memory, each element in one step. `sem` is "release" or "relaxed".

    >>> memory = np.array([10, 20], np.int32)
    >>> evaluate("tl.atomic_store(memory + 1, 7)", memory=memory)
    >>> memory
    array([10,  7], dtype=int32)
    """
    _semantic.atomic_store(pointer, unwrap(val), unwrap(mask), unwrap(sem), unwrap(scope))


@member
@builtin
def atomic_poll(
    pointer: tensor, expected_value: Any, sem: Any = None, scope: Any = None, timeout_ns: Any = None,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:  # fmt: skip
    """Wait until a scalar in memory is `expected_value`: true, or false after `timeout_ns` nanoseconds.

    `sem` is "acquire" or "relaxed". Memory is read at least once.

    >>> memory = np.array([1, 0], np.int32)
    >>> evaluate("tl.atomic_poll(memory, 1)", memory=memory)
    True
    """
    return _semantic.atomic_poll(pointer, unwrap(expected_value), unwrap(sem), unwrap(scope), unwrap(timeout_ns))


class ReadModifyWrite(Protocol):
    """An atomic operation, for type checkers."""

    def __call__(
        self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None,
        _semantic: TritonSemantic = GIVEN,
    ) -> tensor: ...  # fmt: skip


def _read_modify_write(name: str, meaning: str, before: str, value: int, after: str) -> ReadModifyWrite:
    """A function that changes memory by a value: `name` is its name and that of the semantic's method.

    `before`, `value` and `after` are the example of its docstring.
    """
    example = f""">>> memory = np.array({before}, np.int32)
>>> evaluate("tl.{name}(memory + tl.arange(0, 2), {value})", memory=memory)
array({before}, dtype=int32)
>>> memory
array({after}, dtype=int32)"""

    def function(
        pointer: tensor, val: Any, mask: Any = None, sem: Any = None, scope: Any = None,
        _semantic: TritonSemantic = GIVEN,
    ) -> tensor:  # fmt: skip
        change = getattr(_semantic, name)
        return change(pointer, unwrap(val), unwrap(mask), unwrap(sem), unwrap(scope))  # type: ignore[no-any-return]

    return member(builtin_named(name, f"{meaning} in one atomic step; returns the old value.\n\n{example}", function))


atomic_xchg = _read_modify_write("atomic_xchg", "Store `val` to memory", "[10, 20]", 1, "[1, 1]")
atomic_add = _read_modify_write("atomic_add", "Add `val` to memory", "[10, 20]", 5, "[15, 25]")
atomic_max = _read_modify_write("atomic_max", "Store the maximum of memory and `val`", "[10, 20]", 15, "[15, 20]")
atomic_min = _read_modify_write("atomic_min", "Store the minimum of memory and `val`", "[10, 20]", 15, "[10, 15]")
atomic_and = _read_modify_write("atomic_and", "Store the bitwise and of memory and `val`", "[6, 3]", 5, "[4, 1]")
atomic_or = _read_modify_write("atomic_or", "Store the bitwise or of memory and `val`", "[6, 3]", 8, "[14, 11]")
atomic_xor = _read_modify_write("atomic_xor", "Store the exclusive or of memory and `val`", "[6, 3]", 2, "[4, 1]")
