"""What an object says of its memory by `__array_interface__`, `__cuda_array_interface__` or DLPack, field by field.

    described(x, "__array_interface__")    # Described(address=140234..., dtype=dtype('float32'), shape=(64,), ...)

Such descriptions come from programs, so that every field may be missing, of another type, negative, or larger than
memory. All of that is a LaunchTypeError that says which field it is:

    __array_interface__ of a library.Matrix is not what it should be: its shape is None, not a tuple of sizes
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.base import LaunchError, LaunchTypeError

_MOST_DIMENSIONS = 64
"""As many as NumPy and PyTorch have."""
MEMORY = 1 << 64
"""Addresses are below it."""


@dataclass(frozen=True, slots=True)
class Described:
    """An array as its protocol describes it; strides in bytes, None where elements lie without gaps."""

    address: int
    element: Any
    """The type of its elements: NumPy's, or (code, bits) of DLPack; None for one of several lanes."""
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    read_only: bool
    keeper: Any = None


def named(value: Any) -> str:
    """An object by its class: "a numpy.ndarray"."""
    return f"a {type(value).__module__.partition('.')[0]}.{type(value).__name__}"


def has(value: Any, name: str) -> bool:
    """Whether an object has an attribute; also where asking for it raises, which is told when it is read."""
    try:
        return hasattr(value, name)
    except Exception:
        return True


def misread(value: Any, protocol: str, problem: str | Exception) -> LaunchError:
    """The error for a protocol that says something else than it should."""
    if isinstance(problem, LaunchError):
        return problem
    if isinstance(problem, Wrong):
        problem = str(problem)
    if isinstance(problem, Exception):
        problem = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return LaunchTypeError(f"{protocol} of {named(value)} is not what it should be: {problem}")


class Wrong(Exception):
    """A field is wrong; its text says how."""


def _integer(value: Any, subject: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise Wrong(f"{subject} {value!r} is no integer") from None


def _integers(facts: Mapping[str, Any], field: str, kind: str) -> tuple[int, ...]:
    if field not in facts:
        raise Wrong(f"it has no {field}")
    value = facts[field]
    if not isinstance(value, (tuple, list)):
        raise Wrong(f"its {field} is {value!r}, not a tuple of {kind}")
    return tuple(_integer(v, f"in its {field}") for v in value)


def check_extent(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
) -> tuple[int, int]:
    """The bytes from its address that an array spans; Wrong for sizes, strides and an address that no array has."""
    if not 0 <= address < MEMORY:
        raise Wrong(f"the address {address} is outside of memory")
    if min(shape, default=0) < 0:
        raise Wrong(f"its shape {shape} has a negative size")
    if strides is not None and len(strides) != len(shape):
        raise Wrong(f"its strides {strides} are not as many as the sizes of its shape {shape}")
    if 0 in shape:
        return 0, 0
    if strides is None:
        low, high = 0, math.prod(shape) * itemsize
    else:
        steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + itemsize
    if address + low < 0 or address + high > MEMORY:
        steps_of = "" if strides is None else f" with strides {strides}"
        raise Wrong(f"its shape {shape}{steps_of} reaches outside of memory")
    return low, high


def _place(facts: Mapping[str, Any]) -> tuple[int, bool]:
    if "data" not in facts:
        raise Wrong("it has no data")
    data = facts["data"]
    if not isinstance(data, tuple) or len(data) != 2:
        raise Wrong(f"its data is {data!r}, not an address and whether it is read-only")
    if not isinstance(data[1], (bool, int, np.bool_)):
        raise Wrong(f"its data says {data[1]!r} where it says whether it is read-only")
    return _integer(data[0], "the address"), bool(data[1])


def _buffer_of(value: Any, facts: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """The bytes that an array interface is about where it has no address: those of the buffer that is its data, or, if
    it has none, of the object itself.
    """
    data = facts.get("data")
    try:
        memoryview(value if data is None else data)
    except TypeError:
        return None
    offset = _integer(facts.get("offset", 0), "the offset")
    whole = np.frombuffer(value if data is None else data, np.uint8)
    if not 0 <= offset <= whole.size:
        raise Wrong(f"the offset {offset} is outside of its buffer of {whole.size} bytes")
    return whole[offset:]


def _element(facts: Mapping[str, Any]) -> np.dtype[Any]:
    if "typestr" not in facts:
        raise Wrong("it has no typestr")
    text = facts["typestr"]
    if isinstance(text, str) and text[:1] in ("<", ">", "|", "=") and text[2:].isdecimal():
        try:
            return np.dtype(text)
        except (TypeError, ValueError):
            pass
    raise Wrong(f"its typestr {text!r} names no type of elements")


def described(value: Any, protocol: str) -> Described:
    """What an object says by one of the two array interfaces."""
    try:
        facts = getattr(value, protocol)
        if not isinstance(facts, Mapping):
            raise Wrong(f"it is {facts!r}, not a dictionary")
        shape = _integers(facts, "shape", "sizes")
        strides = None if facts.get("strides") is None else _integers(facts, "strides", "steps in bytes")
        buffer = _buffer_of(value, facts) if protocol == "__array_interface__" else None
        if buffer is None:
            address, read_only = _place(facts)
        else:
            address, read_only = buffer.ctypes.data, not buffer.flags.writeable
        dtype = _element(facts)
        if facts.get("mask") is not None:
            raise Wrong("it has a mask, which kernels would ignore")
        low, high = check_extent(address, shape, strides, dtype.itemsize)
        if buffer is not None and (low < 0 or high > buffer.size):
            raise Wrong(f"its shape {shape} reaches outside of its buffer of {buffer.size} bytes")
    except Exception as error:
        raise misread(value, protocol, error) from None
    return Described(address, dtype, dtype.itemsize, shape, strides, read_only, buffer)


# --------------------------------------------------------------------------------------------------------------------
# DLPack


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.argtypes = [ctypes.py_object, ctypes.c_char_p]
_VERSIONED = b"dltensor_versioned"


def dlpack_device(value: Any) -> tuple[int, int]:
    """The kind of device, by DLPack's number, and which of them it is."""
    try:
        kind, number = map(operator.index, value.__dlpack_device__())
    except Exception as error:
        raise misread(value, "__dlpack_device__", error) from error
    return kind, number


def _capsule_of(value: Any) -> Any:
    """What `__dlpack__` gives: by DLPack 1.0, which can say what is read-only, or older."""
    try:
        try:
            return value.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than 1.0: no such parameter
            return value.__dlpack__()
    except Exception as error:
        raise LaunchTypeError(f"{named(value)} does not give its memory by DLPack: {error}") from error


def _unpacked(capsule: Any) -> tuple[_DLTensor, bool]:
    """The tensor in a capsule, and whether it is read-only."""
    if _capsule_is(capsule, _VERSIONED):
        start = _capsule_pointer(capsule, _VERSIONED)
        major = ctypes.c_uint32.from_address(start).value
        if major != 1:
            raise Wrong(f"its version is {major}, and 1 was requested")
        flags = ctypes.c_uint64.from_address(start + 24).value  # after the version, the manager, and its deleter
        return _DLTensor.from_address(start + 32), bool(flags & 1)
    if not _capsule_is(capsule, b"dltensor"):
        raise Wrong(f"it gives {'a capsule that was used' if 'capsule' in repr(capsule) else repr(capsule)}")
    return _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor")), False


def tensor_of(value: Any, device: tuple[int, int]) -> Described:
    """What an object says by DLPack, of memory on the device that it has named."""
    capsule = _capsule_of(value)
    try:
        tensor, read_only = _unpacked(capsule)
        if device[0] == 1 != tensor.device_type:
            raise Wrong(f"it is on a device of kind {tensor.device_type}, and __dlpack_device__ says on the host")
        rank = tensor.ndim
        if not 0 <= rank <= _MOST_DIMENSIONS or (rank and not tensor.shape):
            raise Wrong(f"it has {rank} dimensions{'' if tensor.shape else ' and no shape'}")
        itemsize = tensor.bits * tensor.lanes // 8
        shape = tuple(tensor.shape[i] for i in range(rank))
        strides = tuple(tensor.strides[i] * itemsize for i in range(rank)) if tensor.strides else None
        address = (tensor.data or 0) + tensor.byte_offset
        check_extent(address, shape, strides, itemsize)
    except Wrong as wrong:
        raise misread(value, "__dlpack__", wrong) from None
    element = (tensor.code, tensor.bits, tensor.lanes)
    return Described(address, element, itemsize, shape, strides, read_only, capsule)
