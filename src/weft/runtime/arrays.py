"""Arrays by protocol: where an argument's memory is, what its elements are, and whether a kernel may write there.

    facts = array_facts(x)        # None when x is no array
    facts.address, facts.element  # 140234..., "fp32"

Taken: NumPy arrays (with the types of ml_dtypes), PyTorch CPU tensors, whatever has `data_ptr()` and `dtype`,
`__array_interface__`, `__cuda_array_interface__`, or DLPack.  An array is a pointer to its first element; shapes and
strides are the kernel's business.  `host_facts` refuses arrays that live elsewhere than in host memory, telling where.
"""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from weft.base import LaunchError, LaunchTypeError, load
from weft.ops import BY_LANGUAGE, ELEMENTS

from .protocols import Described, Wrong, check_extent, described, dlpack_device, has, misread, named, tensor_of
from .streams import may_use_gpu

# Names that NumPy, ml_dtypes, PyTorch, JAX and the language give to element types -> the name in a signature.
_NAMES = {
    **{e.numpy: e.language for e in ELEMENTS.values() if e.language},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
    **{f"float8{name[3:]}": name for name in BY_LANGUAGE if name.startswith("fp8")},
    "bool_": "i1", "int1": "i1", "u1": "i1", "short": "i16", "int": "i32", "long": "i64",
    "half": "fp16", "float": "fp32", "double": "fp64",
    "float4_e2m1fn_x2": "u8", "float8_e8m0fnu": "u8",
}  # fmt: skip
_NAMES |= {name: name for name in list(_NAMES.values())}

# DLPack's (type code, bits) -> the name in a signature.
_DLPACK = {
    **{(0, n): f"i{n}" for n in (8, 16, 32, 64)},
    **{(1, n): f"u{n}" for n in (8, 16, 32, 64)},
    **{(2, n): f"fp{n}" for n in (16, 32, 64)},
    (4, 16): "bf16", (6, 8): "i1",
    (10, 8): "fp8e4nv", (11, 8): "fp8e4b8", (12, 8): "fp8e5", (13, 8): "fp8e5b16",
}  # fmt: skip
_HOST = (1, 3, 11)
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
    return BY_LANGUAGE[name].bytes


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
        of_torch = text.startswith("torch.")
        converted, parts = (
            ("x.to(torch.float32)", "torch.view_as_real(x)")
            if of_torch
            else ("x.astype(np.float32)", "x.view(np.float32)")
        )
        hint = f"convert it: {converted}, or another type that the language has"
        if "complex" in text:
            hint = f"pass a view of the parts, {parts}, and use strides of 2"
        elif text.startswith("void"):
            hint = "pass its fields one by one, x['name']"
        elif text in ("object", "str") or text.startswith(("str", "bytes", "datetime", "timedelta")):
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
    if min(shape, default=0) < 0:
        raise Wrong(f"its shape {tuple(shape)} has a negative size")
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
        or has(value, "data_ptr")
        or has(value, "__cuda_array_interface__")
        or (has(value, "__array_interface__") and not isinstance(value, np.generic))
        or has(value, "__dlpack__")
    ) and not isinstance(value, type)


def array_facts(value: Any) -> ArrayFacts | None:
    """Where an array is and what it holds; None when the value is no array."""
    reader = reader_of(value)
    if reader is None:
        return None
    try:
        return reader(value)
    except LaunchError:
        raise
    except Exception as error:  # of the object's own code
        raise misread(value, "what is asked of an array", error) from error


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
    if not all(hasattr(value, x) for x in ("device", "dtype", "data_ptr")) or type(value.data_ptr()) is not int:
        return None
    facts = array_facts(value)
    return None if facts is None else facts.device


def refuse_device(value: Any, device: int) -> LaunchError:
    """The error for an array in a GPU's memory that is given to a kernel on the host."""
    return LaunchError(
        f"{named(value)} lives in the memory of GPU {device}, but this launch is for arrays in host memory",
        hint=TO_THE_HOST,
    )


def reader_of(value: Any) -> Callable[[Any], ArrayFacts] | None:
    """The function that reads arrays of this value's class; `array_facts` calls it."""
    if isinstance(value, np.ndarray):
        return _numpy
    if isinstance(value, (type, np.generic)):
        return None
    if has(value, "data_ptr") and has(value, "dtype"):
        return _pointer
    if has(value, "__cuda_array_interface__"):
        return _cuda_interface
    if has(value, "__dlpack__") and has(value, "__dlpack_device__"):
        return _dlpack
    if has(value, "__array_interface__"):
        return _interface
    return None


def _numpy(array: Any) -> ArrayFacts:
    return ArrayFacts(address_of(array), dtype_name(array.dtype), span_of(array), array.flags.writeable)


def _place(device: Any) -> str:
    """The kind of memory a device has: "cpu", "cuda", "meta", ..."""
    return str(getattr(device, "type", device)).partition(":")[0].lower()


TO_THE_HOST = "copy it to the host first: x.cpu() in PyTorch, x.get() in CuPy, numpy.asarray(x) elsewhere"


def refuse_place(name: str, place: str) -> LaunchError:
    """The error for an array that is not in host memory."""
    if place == "meta":
        return LaunchError(f"{name} is a meta tensor: it has no memory", hint="allocate it, or use kernel.warmup(...)")
    devices = load("weft.compiler.devices")
    whose, launched = devices.vendor_with(place), devices.vendor_of(devices.driver())
    if whose not in ("", launched):
        return other_vendor(name, whose, launched)
    return LaunchError(
        f"{name} lives in {place} memory; kernels run on arrays in host memory, or on a GPU that is a target",
        hint=TO_THE_HOST,
    )


def other_vendor(name: str, whose: str, launched: str) -> LaunchError:
    """The error for an array on a GPU of another vendor than that of the launch."""
    return LaunchError(
        f"{name} is in the memory of a GPU of {whose.upper()}'s, but this launch is for one of {launched.upper()}'s",
        hint=f"{TO_THE_HOST}; or launch for that GPU, with weft.target(...)",
    )


def _is_gpu(place: str) -> bool:
    """Whether arrays in memory of this kind are on a GPU of those that launches are for."""
    return place != "meta" and place in load("weft.compiler.devices").memory_kinds


def _gpu_of_address(address: int) -> int | None:
    """The GPU whose memory an address is in, asked of the driver where a GPU may be in use; None for the host's."""
    if not address or not may_use_gpu():
        return None
    devices = load("weft.compiler.devices")
    gpu: int | None = devices.gpu_of_address(address) if devices.available() else None
    return gpu


def is_tensor(value: Any) -> bool:
    """Is it PyTorch's, or of a class made from it?"""
    return any(c.__module__ == "torch" and c.__name__ == "Tensor" for c in type(value).__mro__)


def is_plain_tensor(value: Any) -> bool:
    """Is it one of PyTorch's own? A class made from them may do anything in `data_ptr()`."""
    return type(value).__module__ in ("torch", "torch.nn.parameter") and is_tensor(value)


def refusal_text(x: str, address: str = "") -> str:
    """Source of whether a plain tensor is to be refused, since its memory is not what it is; it takes its address.

    >>> refusal_text("x", "v")
    'x.is_neg() or x.is_nested or not (v := x.data_ptr()) and x.numel()'
    """
    return f"{x}.is_neg() or {x}.is_nested" + (f" or not ({address} := {x}.data_ptr()) and {x}.numel()" * bool(address))


def _may_be_written(array: Any) -> bool:
    """Whether memory behind `data_ptr()` may be written to: as the object says in one of the ways that there are.

    PyTorch has none: a tensor made of a read-only array is as any other.
    """
    if is_tensor(array):
        return True
    for asked in (getattr(array, "writeable", None), getattr(getattr(array, "flags", None), "writeable", None)):
        if isinstance(asked, (bool, np.bool_)):
            return bool(asked)
    for protocol in ("__array_interface__", "__cuda_array_interface__"):
        if has(array, protocol):
            return not described(array, protocol).read_only
    return True


_TRANSFORMED = "torch.func, torch.compile and the like trace functions without data: make the launch a custom operator"


def _refuse_tensor(tensor: Any, name: str) -> None:
    """LaunchTypeError for tensors of PyTorch whose elements are not what their memory says."""
    if name == "FakeTensor":
        raise LaunchTypeError("a FakeTensor has no memory", hint=_TRANSFORMED)
    if tensor.is_nested:
        raise LaunchTypeError("a nested Tensor has no single shape", hint="pass x.values() and x.offsets()")
    if tensor.is_neg():
        raise LaunchTypeError(
            "a Tensor with its negative bit set is not what its memory says", hint="pass x.resolve_neg()"
        )


def _pointer(array: Any) -> ArrayFacts:
    """Anything with data_ptr(), dtype and, if it is polite, device: PyTorch and its relatives."""
    name = type(array).__name__
    device = getattr(array, "device", None)
    place = _place(device) if device is not None else "cpu"
    if place not in ("cpu", "none") and not _is_gpu(place):
        raise refuse_place(f"{name} on {device}", place)
    layout = str(getattr(array, "layout", "strided"))
    if "strided" not in layout:
        raise LaunchTypeError(
            f"a {name} of layout {layout} has no single memory", hint="pass x.values() or x.to_dense()"
        )
    if is_tensor(array):
        _refuse_tensor(array, name)
    try:
        address = operator.index(array.data_ptr())
    except Exception as error:
        raise LaunchTypeError(
            f"a {name} has no memory: {error}".splitlines()[0], hint=_TRANSFORMED if is_tensor(array) else None
        ) from error
    element = dtype_name(array.dtype)
    try:
        count = array.numel() if hasattr(array, "numel") else None
        span = span_of(array)
        check_extent(address, (1,), None, 1)
        if span != ANYWHERE:
            check_extent(address + span[0], (span[1] - span[0],), None, 1)
    except Exception as error:
        raise misread(array, "data_ptr()", error) from None
    if address == 0 and count:
        raise LaunchError(f"the memory of the {name} has been freed (its address is 0)")
    if device is None:  # a pointer that libraries of their own hand over
        index = _gpu_of_address(address)
    else:
        index = None if place in ("cpu", "none") else int(getattr(device, "index", 0) or 0)
    return ArrayFacts(address, element, span, _may_be_written(array), device=index)


def _facts(array: Any, description: Described, element: str, *, device: int | None = None) -> ArrayFacts:
    """What a launch has to know of a described array. LaunchError for one whose memory is gone."""
    if description.address == 0 and 0 not in description.shape:
        raise LaunchError(f"the memory of {named(array)} has been freed (its address is 0)")
    if description.strides is None:
        span = (0, math.prod(description.shape) * description.itemsize)
    else:
        span = _span(description.shape, description.strides, description.itemsize)
    return ArrayFacts(description.address, element, span, not description.read_only, description.keeper, device)


def _cuda_interface(array: Any) -> ArrayFacts:
    """Anything with `__cuda_array_interface__`: CuPy, Numba, weft.cuda."""
    description = described(array, "__cuda_array_interface__")
    device = getattr(array, "device", 0)
    index = getattr(device, "id", device)  # CuPy has a Device with an id
    # What the interface cannot name, as bfloat16, the dtype can.
    element = dtype_name(getattr(array, "dtype", description.element))
    if BY_LANGUAGE[element].bytes != description.itemsize:
        raise LaunchTypeError(
            f"{named(array)} has elements of type {element}, its interface says {description.element}"
        )
    return _facts(array, description, element, device=index if isinstance(index, int) else 0)


def _interface(array: Any) -> ArrayFacts:
    description = described(array, "__array_interface__")
    return _facts(array, description, dtype_name(description.element))


def _dlpack(array: Any) -> ArrayFacts:
    subject = named(array)
    device = dlpack_device(array)
    place = _DEVICES.get(device[0], f"device {device[0]}")
    if device[0] not in _HOST and not _is_gpu(place):
        raise refuse_place(subject, place)
    description = tensor_of(array, device)
    code, bits, lanes = description.element
    name = _DLPACK.get((code, bits)) if lanes == 1 else None
    if name is None:
        raise LaunchTypeError(f"{subject} holds elements (DLPack type {code}, {bits} bits) kernels cannot use")
    if "jax" in type(array).__module__:  # its arrays never change, whatever DLPack says
        description = replace(description, read_only=True)
    return _facts(array, description, name, device=None if device[0] in _HOST else device[1])
