"""A launch in native code, from Python's call on: for arguments of which all is known but their values.

    launch = function(book, keep)                      # a built-in function, launch(grid, *arguments, **keywords)

It compares the arguments with what `Plan`s say, takes addresses and numbers out of them, asks for the grid, and lets
the plan's `RUN` run it: half a microsecond where the same in Python takes four. Where no plan fits, it calls the
`GENERAL` function of its book with what it was given, so that everything that is rare or wrong is said and done in one
place, in Python.

A plan is a row of words: a header, and what it holds of each kind, one after the other.

    header   ARGUMENTS, KEYWORDS   how many arguments by position, and the names of the others
             CHECKS, PAIRS ... END where the rows of each kind begin: where those of the kind before end
             SIZES_FIRST           whether the first three are the sizes of the grid; else the first is the grid
             KERNEL                what to give back
             RUN                   the native function that runs the grid, as (plan, state, slots): `runs_grid` gives
                                   that for this machine's processors, which reads RECORD, SCRATCH ...;
                                   `backends/gpu/queued.py` that for a GPU, which reads QUEUE
             WAIT                  what runs programs that may wait for each other: it takes the bytes of the state
                                   and the slots; or 0
             ENTER, LEAVE          where hooks are set: what to call before (it takes the grid and a dictionary of
                                   the arguments), and after (it takes what the first gave); or 0
    checks   one for each argument, and each part of a tuple: what it has to be, and the slot of the launch it fills
    pairs    arrays that must not overlap, and how they may all the same (see `aliases.py`)
    watched  (dictionary, name, value): what the kernel was compiled from is still what it was
    lists    (list, whether it has items): hooks
    names    (name, place, default): of the dictionary that a grid which is a function is asked with

Arrays of NumPy are read where NumPy's C interface has their fields; tensors are asked by DLPack's exchange functions,
without an object between. All this is CPython's and is not done elsewhere: see `supported`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.base import load

from .native import native
from .places import give, kept, load_native, made
from .state import REPORT_WORDS, STATE_BYTES

MOST_SLOTS, MOST_ARRAYS, MOST_PARTS = 256, 256, 64
STATE_WORDS = STATE_BYTES // 8
FRAME_BYTES = STATE_BYTES + 8 * (MOST_SLOTS + 1 + REPORT_WORDS)
"""Of a launch: its state, its slots, one for what needs none; the report of a failed check follows the last slot."""
SPAN_WORDS = 3 * (MOST_ARRAYS + 1)
"""Where arrays are; those of no pair share the last."""


class Book:
    """Words of a launching function."""

    GENERAL, FIRST = range(2)
    SIZE = 2


class Plan:
    """Words of a plan's header; `NEXT` is another plan, `OWNER` keeps everything that the plan points to."""

    (
        NEXT, OWNER, KERNEL, RECORD, ARGUMENTS, KEYWORDS, CHECKS, PAIRS, WATCHED, LISTS, NAMES, END, SLOTS,
        SCRATCH, TABLE, ROOM, PREPARE, FAIL, ASK, SIZES, CHANGED, SIZES_FIRST, ENTER, LEAVE, WAIT, RUN, QUEUE,
    ) = range(27)  # fmt: skip
    SIZE = 27


class Check:
    """Words of a check: the argument's place (-1: the object; below: `part`), what it has to be, its slot.

    REMAINDERS are those by 16 that a number or an address may leave, one bit each.
    """

    KIND, PLACE, OBJECT, WANT, SLOT, REMAINDERS, ARRAY, ELEMENT, BYTES, WRITTEN, LOW, HIGH, DEVICE = range(13)
    SIZE = 13
    ANY = 0xFFFF
    """All remainders."""


class Kind:
    """What an argument has to be: the object WANT or its equal; WANT, which is true, or LOW, which is false; an
    integer from LOW to HIGH that is not ELEMENT; a number for a float of ELEMENT bits; an array of NumPy; a tensor,
    which the function LOW describes as one in the memory of DEVICE, and which the method HIGH does not call the
    negative of what its memory has, or if that is 0 the bit that `Tensors` says; a tuple or a list of LOW parts, which
    are then the parts from HIGH on; an object with LOW attributes, which are such parts, named in the tuple ELEMENT.
    """

    SAME, BOOL, INT, FLOAT, ARRAY, TENSOR, TUPLE, LIST, FIELDS = range(9)  # as in @checks
    OF_CLASS = INT
    """From here on, WANT is the class."""


def part(index: int) -> int:
    """The place of a part of a tuple, by its number among those of a plan.

    >>> part(0), part(1)
    (-2, -3)
    """
    return -2 - index


_ptr = ctypes.c_void_p


class NDArray:
    """Where an ndarray has its fields, by NumPy's C interface."""

    DATA, ND, DIMS, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64


class Tensors:
    """Words about PyTorch's tensors: where an object says where its tensor is, where that has its keys, and the bit of
    these that says that it is the negative of what its memory has (`weft.runtime.negatives`).
    """

    WITHIN, KEYS, NEGATIVE = range(3)

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * 3)()


TENSORS = Tensors()
give("words tensors", ctypes.addressof(TENSORS.words))


class Frame:
    """What native code hands to its checks: where the arguments are, the slots, parts of tuples, places of arrays."""

    ARGS, SLOTS, PARTS, SPANS = range(0, 32, 8)


WRITEABLE = 0x0400
TYPE = 8
"""Where an object has its class."""


def supported() -> bool:
    """Whether objects are laid out here as this file takes them to be; other Pythons than CPython differ."""
    if sys.implementation.name != "cpython" or sys.platform == "win32" or ctypes.sizeof(_ptr) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or hasattr(sys, "gettotalrefcount"):
        return False
    word, half = ctypes.c_uint64.from_address, ctypes.c_int32.from_address
    probe = np.zeros((3, 5), np.int16)[1:, ::2]
    place = id(probe)
    probe.flags.writeable = False
    return (
        word(place + TYPE).value == id(np.ndarray)
        and word(place + NDArray.DATA).value == probe.__array_interface__["data"][0]
        and half(place + NDArray.ND).value == 2
        and [word(word(place + NDArray.DIMS).value + 8 * k).value for k in (0, 1)] == [2, 3]
        and [word(word(place + NDArray.STRIDES).value + 8 * k).value for k in (0, 1)] == [10, 4]
        and word(place + NDArray.DESCR).value == id(probe.dtype)
        and not half(place + NDArray.FLAGS).value & WRITEABLE
        and bool(half(id(np.zeros(1)) + NDArray.FLAGS).value & WRITEABLE)
    )


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", _ptr), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_FASTCALL, _KEYWORDS = 0x0080, 0x0002
_method: _MethodDef | None = None
_runs_grid = 0
_keep_loaded: list[Any] = []


def function(book: bytearray, keep: list[Any]) -> Callable[..., Any]:
    """The function of a book (`Book.SIZE` words); it keeps the book, and what `keep` holds."""
    global _method
    method = _method
    if method is None:
        at = address("launches", "weft_call", lambda: _filled("words", "hands", "calls"))
        method = _method = _MethodDef(b"launch", at, _FASTCALL | _KEYWORDS, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, _ptr, ctypes.py_object, _ptr)(("PyCFunction_NewEx", ctypes.pythonapi))
    launch: Callable[..., Any] = new(ctypes.addressof(method), (book, keep), None)
    return launch


def runs_grid() -> int:
    """The address of what runs a grid on this machine's processors."""
    global _runs_grid
    if not _runs_grid:
        native()  # which says where its functions are
        _runs_grid = address("runs", "weft_run_grid", lambda: _filled("words", "hands", "runs"))
    return _runs_grid


def address(name: str, function: str, text: Callable[[], str]) -> int:
    """The address of a native function, for ever; its module of LLVM IR is compiled once on a machine, and kept."""
    tracker, (at,) = load_native(*(kept(name) or made(name, text())), [function])
    _keep_loaded.append(tracker)
    return at


def _filled(*files: str) -> str:
    text: str = load("weft.backends.cpu.native_code").filled(*files)
    return text
