"""Messages between the processes of a check: a kind, facts as JSON, and arrays as bytes. Nothing is unpickled.

    bytes    8             n             as the facts say
    what     n, little     JSON          the arrays, one after the other
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from weft.ops.dtypes import SIGNATURE_DTYPES

__all__ = ["Array", "Broken", "Message", "aligned", "packed", "received", "send", "unpacked"]

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {dtype.name: dtype for dtype in (*SIGNATURE_DTYPES.values(), np.dtype(bool))}
MOST = 1 << 26
"""Bytes of JSON in a message."""


class Broken(ValueError):
    """What was received is no message, or ends in the middle of one."""


class Message(NamedTuple):
    """What was sent."""

    kind: str
    facts: dict[str, Any]
    arrays: list[Array]


def send(file: BinaryIO, kind: str, facts: dict[str, Any], arrays: Sequence[Array] = ()) -> None:
    """Write one message.

    >>> import io
    >>> file = io.BytesIO()
    >>> send(file, "outputs", {"seed": 1}, [np.arange(3, dtype=np.int32)])
    >>> file.seek(0)
    0
    >>> list(received(file))
    [Message(kind='outputs', facts={'seed': 1}, arrays=[array([0, 1, 2], dtype=int32)])]
    """
    described = [{"dtype": a.dtype.name, "shape": a.shape} for a in arrays]
    head = json.dumps({"kind": kind, "facts": facts, "arrays": described}).encode()
    file.write(len(head).to_bytes(8, "little") + head)
    for array in arrays:
        file.write(np.ascontiguousarray(array).tobytes())
    file.flush()


def received(file: BinaryIO) -> Iterator[Message]:
    """The messages of a file. Broken for what is none, and at the end for one that was cut off."""
    while size := file.read(8):
        length = int.from_bytes(size, "little")
        if len(size) < 8 or length > MOST:
            raise Broken("a message has no beginning")
        try:
            head = json.loads(_read(file, length))
            kind, facts = str(head["kind"]), dict(head["facts"])
            arrays = [_array(file, each) for each in head["arrays"]]
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise Broken(f"a message cannot be read: {type(error).__name__}") from None
        yield Message(kind, facts, arrays)


def _array(file: BinaryIO, described: dict[str, Any]) -> Array:
    dtype, shape = DTYPES.get(described["dtype"]), described["shape"]
    if dtype is None or type(shape) is not list or any(type(n) is not int or n < 0 for n in shape) or len(shape) > 32:
        raise Broken("a message has an array of no type or shape")
    return np.frombuffer(bytearray(_read(file, math.prod(shape) * dtype.itemsize)), dtype).reshape(shape)


def _read(file: BinaryIO, count: int) -> bytes:
    begin = file.tell() if file.seekable() else 0
    if file.seekable() and count > file.seek(0, 2) - begin:  # asked before memory is taken for it
        raise Broken("a message ends before its end")
    if file.seekable():
        file.seek(begin)
    read = file.read(count)
    if len(read) < count:
        raise Broken("a message ends before its end")
    return read


def packed(values: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Array]]:
    """Inputs as facts and arrays. An array keeps the order of its axes in memory; TypeError for what cannot be sent.

    >>> facts, arrays = packed([np.zeros((4, 2), np.float32).T, 3])
    >>> facts, arrays[0].shape
    ([{'array': 0, 'axes': [1, 0]}, {'value': 3}], (4, 2))
    """
    facts: list[dict[str, Any]] = []
    arrays: list[Array] = []
    for at, value in enumerate(values):
        if isinstance(value, np.ndarray):
            if value.dtype.name not in DTYPES:
                raise TypeError(f"number {at + 1} is an array of {value.dtype}, which no kernel takes")
            axes = sorted(range(value.ndim), key=lambda i: -value.strides[i])
            facts.append({"array": len(arrays), "axes": axes})
            arrays.append(value.transpose(axes))
        elif isinstance(value, np.generic):
            facts.append({"value": value.item()})
        elif value is None or isinstance(value, (bool, int, float, str)):
            facts.append({"value": value})
        else:
            kind = type(value).__name__
            raise TypeError(f"number {at + 1} is a {kind}; NumPy's arrays, numbers and texts can be sent")
    return facts, arrays


def unpacked(facts: Sequence[dict[str, Any]], arrays: Sequence[Array]) -> list[Any]:
    """The inputs again; arrays are copies that may be written."""
    values: list[Any] = []
    for fact in facts:
        if "array" not in fact:
            values.append(fact["value"])
            continue
        back = np.argsort(fact["axes"]) if fact["axes"] else ()
        values.append(aligned(arrays[fact["array"]]).transpose(back))
    return values


def aligned(array: Array, to: int = 256, offset: int = 0) -> Array:
    """A copy whose address is a multiple of `to`, and `offset` more, as those of GPU allocations are."""
    memory = np.empty(array.nbytes + to + offset, np.uint8)
    begin = -memory.ctypes.data % to + offset
    copy: Array = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
