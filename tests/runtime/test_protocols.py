"""Objects that say something wrong of their memory: each field missing, mistyped, negative, too large."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import LaunchError
from weft.base import LaunchTypeError


@weft.jit
def put(out):
    tl.store(out + tl.arange(0, 16), 7.0)


MEMORY = np.zeros(16, np.float32)
PLACE = MEMORY.ctypes.data
HUGE = 1 << 62


class Liar:
    """What it is given as attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def said(*arguments: Any) -> str:
    with pytest.raises(LaunchError) as caught:
        put[(1,)](*arguments)
    assert caught.value.argument == "out"
    text = str(caught.value)
    assert text.startswith("argument `out`: ")
    return text.removeprefix("argument `out`: ")


# -- the array interfaces ----------------------------------------------------------------------------------------------

GONE = object()
NOT_DATA = "not an address and whether it is read-only"
FIELDS: list[tuple[str, Any, str]] = [
    ("shape", GONE, "it has no shape"),
    ("shape", None, "its shape is None, not a tuple of sizes"),
    ("shape", "ab", "its shape is 'ab', not a tuple of sizes"),
    ("shape", 16, "its shape is 16, not a tuple of sizes"),
    ("shape", (1.5,), "in its shape 1.5 is no integer"),
    ("shape", (-1,), "its shape (-1,) has a negative size"),
    ("shape", (4, -4), "its shape (4, -4) has a negative size"),
    ("shape", (HUGE, HUGE), f"its shape ({HUGE}, {HUGE}) reaches outside of memory"),
    ("shape", (1 << 200,), f"its shape ({1 << 200},) reaches outside of memory"),
    ("strides", "a", "its strides is 'a', not a tuple of steps in bytes"),
    ("strides", 4, "its strides is 4, not a tuple of steps in bytes"),
    ("strides", (4, 4), "its strides (4, 4) are not as many as the sizes of its shape (16,)"),
    ("strides", (None,), "in its strides None is no integer"),
    ("strides", (HUGE,), f"its shape (16,) with strides ({HUGE},) reaches outside of memory"),
    ("strides", (-HUGE,), f"its shape (16,) with strides ({-HUGE},) reaches outside of memory"),
    ("typestr", GONE, "it has no typestr"),
    ("typestr", None, "its typestr None names no type of elements"),
    ("typestr", 5, "its typestr 5 names no type of elements"),
    ("typestr", b"<f4", "its typestr b'<f4' names no type of elements"),
    ("typestr", "", "its typestr '' names no type of elements"),
    ("typestr", "<q9", "its typestr '<q9' names no type of elements"),
    ("typestr", "i4,i4", "its typestr 'i4,i4' names no type of elements"),
    ("typestr", "<f99999999999999999999", "its typestr '<f99999999999999999999' names no type of elements"),
    ("data", GONE, "it has no data"),
    ("data", 5, f"its data is 5, {NOT_DATA}"),
    ("data", [PLACE, False], f"its data is [{PLACE}, False], {NOT_DATA}"),
    ("data", (PLACE,), f"its data is ({PLACE},), {NOT_DATA}"),
    ("data", ("x", False), "the address 'x' is no integer"),
    ("data", (None, False), "the address None is no integer"),
    ("data", (float(PLACE), False), f"the address {float(PLACE)!r} is no integer"),
    ("data", (-16, False), "the address -16 is outside of memory"),
    ("data", (1 << 64, False), f"the address {1 << 64} is outside of memory"),
    ("data", ((1 << 64) - 8, False), "its shape (16,) reaches outside of memory"),
    ("data", (PLACE, "no"), "its data says 'no' where it says whether it is read-only"),
    ("data", (PLACE, None), "its data says None where it says whether it is read-only"),
    ("mask", [True], "it has a mask, which kernels would ignore"),
]


@pytest.mark.parametrize("protocol", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize(("field", "value", "problem"), FIELDS, ids=[f"{i}-{row[0]}" for i, row in enumerate(FIELDS)])
def test_a_field_of_an_interface(protocol: str, field: str, value: Any, problem: str) -> None:
    facts = {"version": 3, "shape": (16,), "typestr": "<f4", "data": (PLACE, False), field: value}
    if value is GONE:
        del facts[field]
    text = f"{protocol} of a runtime.Liar is not what it should be: {problem}"
    assert said(Liar(**{protocol: facts})) == text
    assert not MEMORY.any()


@pytest.mark.parametrize("protocol", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize("value", [None, 5, "text", [], ()])
def test_an_interface_that_is_no_dictionary(protocol: str, value: Any) -> None:
    problem = f"it is {value!r}, not a dictionary"
    assert said(Liar(**{protocol: value})) == f"{protocol} of a runtime.Liar is not what it should be: {problem}"


def test_an_interface_that_raises() -> None:
    class Raises:
        @property
        def __array_interface__(self) -> Any:
            raise RuntimeError("not today\nnor tomorrow")

    assert said(Raises()) == "__array_interface__ of a runtime.Raises is not what it should be: RuntimeError: not today"


def test_memory_that_is_gone() -> None:
    facts = {"version": 3, "shape": (16,), "typestr": "<f4", "data": (0, False)}
    assert said(Liar(__array_interface__=facts)) == "the memory of a runtime.Liar has been freed (its address is 0)"
    put.warmup(Liar(__array_interface__={**facts, "shape": (0,)}), grid=(1,))


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
@pytest.mark.parametrize(
    "more",
    [
        *({}, {"version": 99}, {"strides": None}, {"strides": (4,)}, {"strides": [4]}, {"shape": [16]}),
        *({"shape": (np.int8(16),)}, {"shape": [4, 4]}, {"shape": (4, 2, 2), "strides": (4, 16, 32)}),
    ],
)
def test_interfaces_that_are_right(more: dict[str, Any], target: str) -> None:
    memory = np.zeros(16, np.float32)
    facts = {"shape": (16,), "typestr": "<f4", "data": (memory.ctypes.data, False), **more}
    put[(1,)](Liar(__array_interface__=facts), target=target)
    assert (memory == 7).all()


@weft.jit
def untouched(x, out):
    tl.store(out, 1)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
@pytest.mark.parametrize("shape", [(0,), (1 << 70, 0), [0, 4]])
def test_an_interface_of_nothing(shape: Any, target: str) -> None:
    out = np.zeros(1, np.int32)
    nothing = Liar(__array_interface__={"shape": shape, "typestr": "<f4", "data": (PLACE, False)})
    untouched[(1,)](nothing, out, target=target)
    assert out[0] == 1


# -- what has the methods of a tensor ----------------------------------------------------------------------------------


def _raise(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"data_ptr": 5}, "a Liar has no memory: 'int' object is not callable"),
        ({"data_ptr": lambda: None}, "a Liar has no memory: 'NoneType' object cannot be interpreted as an integer"),
        ({"data_ptr": _raise}, "a Liar has no memory: division by zero"),
        ({"data_ptr": lambda: -8}, "{} the address -8 is outside of memory"),
        ({"data_ptr": lambda: 1 << 64}, f"{{}} the address {1 << 64} is outside of memory"),
        (
            {"dtype": None},
            "elements of type None cannot be used in a kernel\n"
            "hint: convert it: x.astype(np.float32), or another type that the language has",
        ),
        ({"numel": "a"}, "{} TypeError: 'str' object is not callable"),
        ({"numel": _raise}, "{} ZeroDivisionError: division by zero"),
        ({"shape": 5, "stride": lambda: (1,)}, "{} TypeError: 'int' object is not iterable"),
        ({"shape": (-4,), "stride": lambda: (1,)}, "{} its shape (-4,) has a negative size"),
        ({"shape": (4,), "stride": _raise}, "{} ZeroDivisionError: division by zero"),
        (
            {"shape": (1 << 63,), "stride": lambda: (1,)},
            "{} its shape (36893488147419103232,) reaches outside of memory",
        ),
        ({"is_contiguous": _raise, "numel": lambda: 16}, "{} ZeroDivisionError: division by zero"),
        (
            {"device": "mars"},
            "Liar on mars lives in mars memory; kernels run on arrays in host memory, or on a GPU that is a target\n"
            "hint: copy it to the host first: x.cpu() in PyTorch, x.get() in CuPy, numpy.asarray(x) elsewhere",
        ),
    ],
)
def test_a_pointer(more: dict[str, Any], text: str) -> None:
    liar = Liar(**{"data_ptr": lambda: PLACE, "dtype": np.dtype(np.float32), **more})
    assert said(liar) == text.replace("{}", "data_ptr() of a runtime.Liar is not what it should be:")


TRACED = "torch.func, torch.compile and the like trace functions without data: make the launch a custom operator"


@pytest.mark.parametrize(
    ("name", "more", "text"),
    [
        ("FakeTensor", {}, f"a FakeTensor has no memory\nhint: {TRACED}"),
        ("Tensor", {"data_ptr": _raise}, f"a Tensor has no memory: division by zero\nhint: {TRACED}"),
        ("Tensor", {"is_nested": True}, "a nested Tensor has no single shape\nhint: pass x.values() and x.offsets()"),
        (
            "Tensor",
            {"is_neg": lambda: True},
            "a Tensor with its negative bit set is not what its memory says\nhint: pass x.resolve_neg()",
        ),
    ],
)
def test_tensors_that_are_not_what_their_memory_says(name: str, more: dict[str, Any], text: str) -> None:
    """By stand-ins, as PyTorch may not be here: what counts is that the class is called as its tensors are."""
    base = type("Tensor", (Liar,), {"__module__": "torch"})
    kind = base if name == "Tensor" else type(name, (base,), {})
    facts = {"data_ptr": lambda: PLACE, "dtype": np.dtype(np.float32), "is_nested": False, "is_neg": lambda: False}
    assert said(kind(**{**facts, **more})) == text


# -- DLPack ------------------------------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_alive: list[Any] = []


def packed(*, name: bytes = b"dltensor", major: int = 1, flags: int = 0, **fields: Any) -> Any:
    """An object that gives a tensor of 16 floats by DLPack, with some fields as said."""
    sizes = (ctypes.c_int64 * 2)(*fields.pop("sizes", (16, 1)))
    steps = (ctypes.c_int64 * 2)(*fields.pop("steps", (1, 16)))
    address = fields.pop("data", PLACE)
    tensor = _Tensor(address, 1, 0, 1, 2, 32, 1, ctypes.addressof(sizes), ctypes.addressof(steps), 0)
    for field, value in fields.items():
        setattr(tensor, field, value)
    whole = _Versioned(major, 0, None, None, flags, tensor)
    _alive.extend((sizes, steps, tensor, whole))
    start = ctypes.addressof(whole if name.endswith(b"versioned") else tensor)
    _alive.append(name)
    capsule = _new_capsule(start, name, None)
    return Liar(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"ndim": -1}, "it has -1 dimensions"),
        ({"ndim": 1 << 30}, "it has 1073741824 dimensions"),
        ({"shape": None}, "it has 1 dimensions and no shape"),
        ({"sizes": (-4, 1)}, "its shape (-4,) has a negative size"),
        ({"sizes": (HUGE, HUGE), "ndim": 2, "strides": None}, f"its shape ({HUGE}, {HUGE}) reaches outside of memory"),
        ({"steps": (HUGE, 1)}, f"its shape (16,) with strides ({4 * HUGE},) reaches outside of memory"),
        ({"steps": (-HUGE, 1)}, f"its shape (16,) with strides ({-4 * HUGE},) reaches outside of memory"),
        ({"offset": (1 << 64) - 1}, f"the address {PLACE + (1 << 64) - 1} is outside of memory"),
        ({"kind": 2}, "it is on a device of kind 2, and __dlpack_device__ says on the host"),
        ({"name": b"dltensor_versioned", "major": 2}, "its version is 2, and 1 was requested"),
        ({"name": b"used_dltensor"}, "it gives a capsule that was used"),
        ({"name": b"other"}, "it gives a capsule that was used"),
    ],
    ids=range(12),
)
def test_a_field_of_dlpack(fields: dict[str, Any], problem: str) -> None:
    assert said(packed(**fields)) == f"__dlpack__ of a runtime.Liar is not what it should be: {problem}"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"data": None}, "the memory of a runtime.Liar has been freed (its address is 0)"),
        ({"code": 99}, "a runtime.Liar holds elements (DLPack type 99, 32 bits) kernels cannot use"),
        ({"bits": 0}, "a runtime.Liar holds elements (DLPack type 2, 0 bits) kernels cannot use"),
        ({"lanes": 4}, "a runtime.Liar holds elements (DLPack type 2, 32 bits) kernels cannot use"),
    ],
)
def test_tensors_of_dlpack_that_cannot_be_used(fields: dict[str, Any], text: str) -> None:
    assert said(packed(**fields)) == text


@pytest.mark.parametrize(
    "fields", [{}, {"name": b"dltensor_versioned"}, {"strides": None}, {"sizes": (0, 1), "data": None}]
)
def test_tensors_of_dlpack_that_are_right(fields: dict[str, Any]) -> None:
    MEMORY[:] = 0
    if "sizes" in fields:
        put.warmup(packed(**fields), grid=(1,))
    else:
        put[(1,)](packed(**fields))
        assert (MEMORY == 7).all()
    MEMORY[:] = 0


@pytest.mark.parametrize(
    ("device", "capsule", "text"),
    [
        (lambda: None, None, "__dlpack_device__{} TypeError: 'NoneType' object is not iterable"),
        (lambda: (1,), None, "__dlpack_device__{} ValueError: not enough values to unpack (expected 2, got 1)"),
        (lambda: ("1", 0), None, "__dlpack_device__{} TypeError: 'str' object cannot be interpreted as an integer"),
        (_raise, None, "__dlpack_device__{} ZeroDivisionError: division by zero"),
        (5, None, "__dlpack_device__{} TypeError: 'int' object is not callable"),
        (lambda: (1, 0), lambda **_: None, "__dlpack__{} it gives None"),
        (lambda: (1, 0), lambda **_: 5, "__dlpack__{} it gives 5"),
        (lambda: (1, 0), _raise, "a runtime.Liar does not give its memory by DLPack: division by zero"),
        (
            lambda: (99, 0),
            None,
            "a runtime.Liar lives in device 99 memory; kernels run on arrays in host memory, or on a GPU that is "
            "a target\n"
            "hint: copy it to the host first: x.cpu() in PyTorch, x.get() in CuPy, numpy.asarray(x) elsewhere",
        ),
    ],
)
def test_methods_of_dlpack(device: Any, capsule: Any, text: str) -> None:
    liar = Liar(__dlpack_device__=device, __dlpack__=capsule)
    assert said(liar) == text.replace("{}", " of a runtime.Liar is not what it should be:")


# -- what is no array --------------------------------------------------------------------------------------------------

TAKEN = "kernels take arrays, numbers, None, tuples of these, tensor descriptors and jit functions"
LIST_HINT = "hint: numpy.array(x) makes an array of a list, tuple(x) a tuple of arguments"
BUFFER_HINT = "hint: numpy.frombuffer(x, dtype) makes an array of a buffer, without copying it"


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        ([0.0] * 16, "list", LIST_HINT),
        ([], "list", LIST_HINT),
        ((1, [2.0]), "list", LIST_HINT),
        ([np.zeros(16, np.float32)], "list", LIST_HINT),
        (bytearray(64), "bytearray", BUFFER_HINT),
        (memoryview(bytearray(64)), "memoryview", BUFFER_HINT),
        (range(16), "range", LIST_HINT),
        ({1.0}, "set", "hint: pass its values one by one, or tuple(x) for a parameter that takes several"),
    ],
)
def test_what_is_no_array_is_told_at_the_launch(value: Any, kind: str, hint: str, target: str) -> None:
    """Not from within the kernel, as Triton does it."""
    with weft.target(target):
        text = said(value)
    assert text == "\n".join([f"failed to specialize argument of type {kind}: {TAKEN}", hint])
    with pytest.raises(LaunchTypeError):
        put[(1,)](value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: weft.TensorDescriptor.from_tensor([1, 2], [2]),
            "the base of a tensor descriptor must be an array, got list",
        ),
        (
            lambda: weft.TensorDescriptor([1], [1], [1], [1]),
            "the base of a tensor descriptor must be an array, got list",
        ),
        (
            lambda: weft.TensorDescriptor(MEMORY, None, [1], [16]),
            "shape of a tensor descriptor must hold integers, got None",
        ),
        (
            lambda: weft.TensorDescriptor(MEMORY, [16], 1, [16]),
            "strides of a tensor descriptor must hold integers, got 1",
        ),
        (
            lambda: weft.TensorDescriptor(MEMORY, [16], ["1"], [16]),
            "strides of a tensor descriptor must hold integers, got ['1']",
        ),
    ],
)
def test_descriptors_of_no_array(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(LaunchError) as caught:
        make()
    assert str(caught.value) == text
