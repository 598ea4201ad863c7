"""DLPack's exchange functions, by which a class of arrays describes its arrays to native code, without a new object.

    describe = describer(torch.Tensor)   # the address of a function, (object, DLTensor *) -> 0; since PyTorch 2.10
    described(describe, x)               # what it says of x
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

HOST = 1
"""DLPack's kind of devices whose memory is the host's."""
_NAME = b"dlpack_exchange_api"
_FROM_OBJECT = 5
"""The word of the table of functions that has this one, behind a version."""


class Described(NamedTuple):
    """DLDevice and DLDataType, as the numbers that native code compares."""

    device: int
    element: int

    @property
    def kind(self) -> int:
        """The kind of the device."""
        return self.device & 0xFFFFFFFF

    @property
    def number(self) -> int:
        """Which of its kind it is."""
        return self.device >> 32


def describer(cls: Any) -> int:
    """The address of the function that describes arrays of a class; 0 where it has none."""
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return 0
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(capsule, _NAME)
    major = ctypes.c_uint32.from_address(table).value
    return ctypes.c_int64.from_address(table + 8 * _FROM_OBJECT).value if major == 1 else 0


def described(describe: int, array: Any) -> Described | None:
    """What a function says of an array; None for an array that it does not describe, or not by its own address."""
    told = (ctypes.c_int64 * 6)()
    function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.c_void_p)(describe)
    try:
        if function(array, ctypes.addressof(told)):
            return None
    except Exception:  # elements that DLPack has no type for, say; it is not what the launch was asked for
        return None
    if told[0] + told[5] != array.data_ptr():
        return None
    return Described(told[1], (told[2] >> 32) & 0xFFFFFFFF)
