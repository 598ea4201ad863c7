"""Arrays by protocol: where an argument's memory is, what its elements are, and whether a kernel may write there.

    facts = array_facts(x)        # None when x is no array
    facts.address, facts.element  # 140234..., "fp32"

Taken: NumPy arrays (with the types of ml_dtypes), PyTorch CPU tensors, whatever has `data_ptr()` and `dtype`,
`__array_interface__`, `__cuda_array_interface__`, or DLPack.  An array is a pointer to its first element; shapes and
strides are the kernel's business.  `host_facts` refuses arrays that live elsewhere than in host memory, telling where.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from weft.base import LaunchError, LaunchTypeError

from .streams import may_use_gpu

__all__ = [
    "ArrayFacts",
    "address_of",
    "array_facts",
    "dtype_name",
    "element_bytes",
    "gpu_of_view",
    "host_facts",
    "is_array",
    "meet",
    "span_of",
]

# Names that NumPy, ml_dtypes, PyTorch, JAX and the language give to element types -> the name in a signature.
_NAMES = {
    "bool": "i1", "bool_": "i1", "int1": "i1", "i1": "i1", "u1": "i1",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
    **{f"float{n}": f"fp{n}" for n in (16, 32, 64)},
    "half": "fp16", "float": "fp32", "double": "fp64", "short": "i16", "int": "i32", "long": "i64",
    "bfloat16": "bf16",
    "float8_e5m2": "fp8e5", "float8e5": "fp8e5",
    "float8_e4m3fn": "fp8e4nv", "float8e4nv": "fp8e4nv",
    "float8_e4m3fnuz": "fp8e4b8", "float8e4b8": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16", "float8e5b16": "fp8e5b16",
    "float8e4b15": "fp8e4b15",
    "float4_e2m1fn_x2": "u8", "float8_e8m0fnu": "u8",
}  # fmt: skip
_NAMES |= {name: name for name in list(_NAMES.values())}

_BYTES = {
    "i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8,
    "fp8e5": 1, "fp8e4nv": 1, "fp8e4b8": 1, "fp8e5b16": 1, "fp8e4b15": 1,
}  # fmt: skip

# DLPack's (type code, bits) -> the name in a signature.
_DLPACK = {
    **{(0, n): f"i{n}" for n in (8, 16, 32, 64)},
    **{(1, n): f"u{n}" for n in (8, 16, 32, 64)},
    **{(2, n): f"fp{n}" for n in (16, 32, 64)},
    (4, 16): "bf16", (6, 8): "i1",
    (10, 8): "fp8e4nv", (11, 8): "fp8e4b8", (12, 8): "fp8e5", (13, 8): "fp8e5b16",
}  # fmt: skip
_DEVICES = {2: "cuda", 3: "cuda-host", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 11: "rocm-host", 14: "oneapi"}


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """What a launch has to know of an array; `keeper` keeps borrowed memory alive."""

    address: int
    element: str
    span: tuple[int, int]
    """The bytes from the address where its elements may be."""
    writeable: bool = True
    keeper: Any = None
    device: int | None = None
    """The number of the GPU whose memory it is in; None for the host's."""


def element_bytes(name: str) -> int:
    """The size of an element, by its name in a signature."""
    return _BYTES[name]


@lru_cache(maxsize=256)
def dtype_name(dtype: Any) -> str:
    """The name in a signature of an element type of NumPy, ml_dtypes, PyTorch, JAX or the language.

    >>> dtype_name(np.dtype(np.float32)), dtype_name("torch.bfloat16")
    ('fp32', 'bf16')
    """
    if isinstance(dtype, np.dtype):
        if not dtype.isnative:
            raise LaunchTypeError(
                f"elements of type {dtype} have the byte order of another machine",
                hint="x.astype(x.dtype.newbyteorder('='))",
            )
        text = dtype.name
    elif isinstance(dtype, type):
        text = dtype.__name__
    else:
        text = str(getattr(dtype, "name", dtype))
    name = _NAMES.get(text.rpartition(".")[2])
    if name is None:
        hint = None
        if "complex" in text:
            hint = "pass a view of the parts, x.view(np.float32), and use strides of 2"
        elif text in ("object", "str") or text.startswith(("str", "bytes", "void", "datetime", "timedelta")):
            hint = "convert it to an array of numbers"
        raise LaunchTypeError(f"elements of type {text} cannot be used in a kernel", hint=hint)
    return name


# --------------------------------------------------------------------------------------------------------------------
# NumPy: the address of the first element, without the microsecond of `ndarray.ctypes`

DATA_OFFSET = object.__basicsize__
word_at = ctypes.c_size_t.from_address


def _address_is_in_the_object() -> bool:
    """Whether an ndarray keeps its data pointer as its first field, as NumPy's C API says (other Pythons differ)."""
    if sys.implementation.name != "cpython":
        return False
    probes: tuple[Any, ...] = (np.arange(5), np.arange(24, dtype=np.int8)[3:17:2], np.zeros((2, 3))[1:])
    return all(word_at(id(p) + DATA_OFFSET).value == p.__array_interface__["data"][0] for p in probes)


DIRECT = _address_is_in_the_object()


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's first element."""
    if DIRECT:
        return word_at(id(array) + DATA_OFFSET).value
    return int(array.__array_interface__["data"][0])


Span = tuple[int, int]
"""Where an array's bytes are, from the address of its first element: from (0 or less) and up to."""

ANYWHERE: Span = (-(1 << 62), 1 << 62)


def _span(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Span:
    """The span of an array with these strides in bytes.

    >>> _span((3, 4), (16, -4), 4)
    (-12, 36)
    """
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + itemsize


def span_of(array: Any) -> Span:
    """The bytes that an array spans, by the cheapest means; anywhere, where it does not say."""
    if isinstance(array, np.ndarray):
        return (0, array.nbytes) if array.base is None else _span(array.shape, array.strides, array.itemsize)
    if hasattr(array, "data_ptr"):
        if hasattr(array, "is_contiguous") and hasattr(array, "numel") and array.is_contiguous():
            return 0, int(array.numel()) * int(array.element_size())
        shape, strides = getattr(array, "shape", None), getattr(array, "stride", None)
        size = getattr(array.dtype, "itemsize", None)
        if shape is None or not callable(strides) or not isinstance(size, int):
            return ANYWHERE
        return _span(tuple(shape), tuple(int(s) * size for s in strides()), size)
    facts = array_facts(array)
    return facts.span if facts is not None else (0, 0)


def meet(first: Any, second: Any, distance: int) -> bool:
    """Whether two arrays may have bytes in common; `distance` is from the address of the first to the second's."""
    low, high = span_of(first)
    other_low, other_high = span_of(second)
    return low < distance + other_high and distance + other_low < high


# --------------------------------------------------------------------------------------------------------------------
# One function for each kind of array


def is_array(value: Any) -> bool:
    """Is it something that is passed as a pointer?"""
    return (
        isinstance(value, np.ndarray)
        or hasattr(value, "data_ptr")
        or hasattr(value, "__cuda_array_interface__")
        or (hasattr(value, "__array_interface__") and not isinstance(value, np.generic))
        or hasattr(value, "__dlpack__")
    ) and not isinstance(value, type)


def array_facts(value: Any) -> ArrayFacts | None:
    """Where an array is and what it holds; None when the value is no array."""
    reader = reader_of(value)
    return None if reader is None else reader(value)


def host_facts(value: Any) -> ArrayFacts | None:
    """The same for kernels that run on the host. LaunchError for an array in a GPU's memory."""
    facts = array_facts(value)
    if facts is not None and facts.device is not None:
        raise refuse_device(value, facts.device)
    return facts


def may_be_on_gpu(value: Any) -> bool:
    """Whether an argument may be an array in a GPU's memory; cheap, and right when it says no."""
    if isinstance(value, (np.ndarray, int, float, str, type(None))):
        return False
    return not isinstance(value, (tuple, list)) or any(map(may_be_on_gpu, value))


def gpu_of_view(value: Any) -> int | None:
    """The GPU that a view has its memory on: what has the methods of a tensor, and is none. None for all else."""
    if not all(hasattr(value, what) for what in ("device", "dtype", "data_ptr")) or type(value.data_ptr()) is not int:
        return None
    facts = array_facts(value)
    return None if facts is None else facts.device


def refuse_device(value: Any, device: int) -> LaunchError:
    """The error for an array in a GPU's memory that is given to a kernel on the host."""
    return LaunchError(
        f"{_named(value)} lives in cuda (device {device}) memory, but this launch is for arrays in host memory",
        hint=TO_THE_HOST,
    )


def _named(value: Any) -> str:
    return f"a {type(value).__module__.partition('.')[0]}.{type(value).__name__}"


def reader_of(value: Any) -> Callable[[Any], ArrayFacts] | None:
    """The function that reads arrays of this value's class."""
    if isinstance(value, np.ndarray):
        return _numpy
    if isinstance(value, (type, np.generic)):
        return None
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _pointer
    if hasattr(value, "__cuda_array_interface__"):
        return _cuda_interface
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _dlpack
    if hasattr(value, "__array_interface__"):
        return _interface
    return None


def _numpy(array: Any) -> ArrayFacts:
    return ArrayFacts(address_of(array), dtype_name(array.dtype), span_of(array), array.flags.writeable)


def _place(device: Any) -> str:
    """The kind of memory a device has: "cpu", "cuda", "meta", ..."""
    return str(getattr(device, "type", device)).partition(":")[0].lower()


TO_THE_HOST = "copy it to the host first: x.cpu() in PyTorch, x.get() in CuPy, numpy.asarray(x) elsewhere"


def refuse_place(what: str, place: str) -> LaunchError:
    """The error for an array that is not in host memory."""
    if place == "meta":
        return LaunchError(f"{what} is a meta tensor: it has no memory", hint="allocate it, or use kernel.warmup(...)")
    return LaunchError(
        f"{what} lives in {place} memory; kernels run on arrays in host memory, or in that of an NVIDIA GPU",
        hint=TO_THE_HOST,
    )


def _gpu_of_address(address: int) -> int | None:
    """The GPU whose memory an address is in, asked of the driver where a GPU may be in use; None for the host's."""
    if not address or not may_use_gpu():
        return None
    devices = importlib.import_module("weft.compiler.devices")
    found: int | None = devices.gpu_of_address(address) if devices.available() else None
    return found


def _pointer(array: Any) -> ArrayFacts:
    """Anything with data_ptr(), dtype and, if it is polite, device: PyTorch and its relatives."""
    name = type(array).__name__
    device = getattr(array, "device", None)
    place = _place(device) if device is not None else "cpu"
    if place not in ("cpu", "none", "cuda"):
        raise refuse_place(f"{name} on {device}", place)
    layout = str(getattr(array, "layout", "strided"))
    if "strided" not in layout:
        raise LaunchTypeError(
            f"a {name} of layout {layout} has no single memory", hint="pass x.values() or x.to_dense()"
        )
    try:
        address = operator.index(array.data_ptr())
    except (RuntimeError, TypeError) as error:
        raise LaunchTypeError(f"a {name} has no memory: {error}".splitlines()[0]) from error
    count = array.numel() if hasattr(array, "numel") else None
    if address == 0 and count:
        raise LaunchError(f"the memory of the {name} has been freed (its address is 0)")
    if device is None:  # a pointer that libraries of their own hand over
        index = _gpu_of_address(address)
    else:
        index = int(getattr(device, "index", 0) or 0) if place == "cuda" else None
    return ArrayFacts(address, dtype_name(array.dtype), span_of(array), device=index)


_WRONG = (TypeError, ValueError, KeyError, OverflowError)
"""What reading a protocol raises where it is not what it should be."""


def _misread(array: Any, protocol: str, error: Exception) -> LaunchError:
    if isinstance(error, LaunchError):
        return error
    found = f"{type(error).__name__}: {error}"
    return LaunchTypeError(f"{protocol} of {_named(array)} is not what it should be: {found}")


def _described(array: Any, protocol: str) -> tuple[int, np.dtype[Any], Span, bool]:
    """(address, type of the elements, span, read-only?) by one of the two array interfaces."""
    try:
        facts = getattr(array, protocol)
        address, read_only = facts["data"]
        address, dtype = operator.index(address), np.dtype(str(facts["typestr"]))
        shape, strides = tuple(facts["shape"]), facts.get("strides")
        count = math.prod(map(operator.index, shape))
        if min(shape, default=0) < 0:
            raise ValueError(f"a negative size in the shape {shape}")
        if not 0 <= address < 1 << 64:
            raise ValueError(f"the address {address}")
        span = _span(shape, strides, dtype.itemsize) if strides else (0, count * dtype.itemsize)
    except _WRONG as error:
        raise _misread(array, protocol, error) from error
    if address == 0 and count:
        raise LaunchError(f"the memory of {_named(array)} has been freed (its address is 0)")
    return address, dtype, span, bool(read_only)


def _cuda_interface(array: Any) -> ArrayFacts:
    """Anything with `__cuda_array_interface__`: CuPy, Numba, weft.cuda."""
    address, dtype, span, read_only = _described(array, "__cuda_array_interface__")
    device = getattr(array, "device", 0)
    index = getattr(device, "id", device)  # CuPy has a Device with an id
    element = dtype_name(getattr(array, "dtype", dtype))  # what the interface cannot name, as bfloat16, the dtype can
    if _BYTES[element] != dtype.itemsize:
        raise LaunchTypeError(f"{_named(array)} has elements of type {element}, its interface says {dtype}")
    return ArrayFacts(address, element, span, not read_only, device=index if isinstance(index, int) else 0)


def _interface(array: Any) -> ArrayFacts:
    if not isinstance(array.__array_interface__.get("data"), tuple):
        return _numpy(np.asarray(array))
    address, dtype, span, read_only = _described(array, "__array_interface__")
    return ArrayFacts(address, dtype_name(dtype), span, not read_only)


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


def _dlpack_tensor(array: Any, what: str) -> tuple[Any, _DLTensor, bool]:
    """The capsule, the tensor in it, and whether it may be written to: DLPack 1.0, which can say so, or older."""
    try:
        try:
            capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than 1.0: no such parameter
            capsule = array.__dlpack__()
    except Exception as error:
        raise LaunchTypeError(f"{what} does not give its memory by DLPack: {error}") from error
    if _capsule_is(capsule, _VERSIONED):
        start = _capsule_pointer(capsule, _VERSIONED)
        flags = ctypes.c_uint64.from_address(start + 24).value  # after the version, the manager, and its deleter
        return capsule, _DLTensor.from_address(start + 32), not flags & 1
    return capsule, _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor")), True


def _dlpack(array: Any) -> ArrayFacts:
    what = _named(array)
    try:
        kind, number = map(int, array.__dlpack_device__())
    except _WRONG as error:
        raise _misread(array, "__dlpack_device__", error) from error
    if kind not in (1, 2, 3, 11):
        raise refuse_place(what, _DEVICES.get(kind, f"device {kind}"))
    try:
        capsule, tensor, writeable = _dlpack_tensor(array, what)
    except _WRONG as error:
        raise _misread(array, "__dlpack__", error) from error
    name = _DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if name is None:
        raise LaunchTypeError(
            f"{what} holds elements (DLPack type {tensor.code}, {tensor.bits} bits) kernels cannot use"
        )
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    size = _BYTES[name]
    if tensor.strides:
        span = _span(shape, tuple(tensor.strides[i] * size for i in range(tensor.ndim)), size)
    else:
        span = (0, int(np.prod(shape)) * size)
    address = (tensor.data or 0) + tensor.byte_offset
    # JAX's arrays never change, whatever DLPack says.
    device = number if kind == 2 else None
    return ArrayFacts(address, name, span, writeable and "jax" not in type(array).__module__, capsule, device)
