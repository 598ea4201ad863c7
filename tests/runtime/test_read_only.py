"""Arrays that may not be written to: whatever says so is asked, of every class, at every launch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import LaunchError

REFUSED = (
    "argument `out` is read-only, and the kernel stores to it\n"
    "hint: pass a writeable copy, np.array(x), x.copy(), or set x.flags.writeable = True where the memory is yours"
)


@weft.jit
def put(out):
    tl.store(out + tl.arange(0, 16), 7.0)


@weft.jit
def put_by_number(out, at):
    address = out.to(tl.int64, bitcast=True)
    for _ in range(2):
        address += tl.load(at)
    tl.store(address.to(tl.pointer_type(tl.float32), bitcast=True), 7.0)


@weft.jit
def put_into(out):
    out.store([0, 0], tl.full((4, 4), 7.0, tl.float32))


@weft.jit
def put_first(out):
    tl.store(out[0][0], 7.0)


class Sub(np.ndarray):
    """As libraries derive their arrays."""


class Interface:
    """An array by its interface alone."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Pointer:
    """An array by the methods of a tensor; `more` are further attributes."""

    def __init__(self, array: Any, **more: Any) -> None:
        self.array = array
        self.dtype, self.shape = array.dtype, array.shape
        self.__dict__.update(more)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def stride(self) -> tuple[int, ...]:
        return (1,)


class Packed:
    """An array by DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **more: Any) -> Any:
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def array(*, locked: bool, kind: type[np.ndarray[Any, Any]] = np.ndarray) -> Any:
    made = np.zeros(16, np.float32).view(kind)
    made.flags.writeable = not locked
    return made


KINDS: dict[str, Callable[[bool], Any]] = {
    "an array": lambda locked: array(locked=locked),
    "a subclass": lambda locked: array(locked=locked, kind=Sub),
    "an interface": lambda locked: Interface(array(locked=locked)),
    "a pointer with flags": lambda locked: Pointer(array(locked=locked), flags=array(locked=locked).flags),
    "a pointer that says it": lambda locked: Pointer(array(locked=locked), writeable=not locked),
    "a pointer with an interface": lambda locked: Pointer(
        array(locked=locked), __array_interface__=array(locked=locked).__array_interface__
    ),
    "another type of the same memory": lambda locked: weft.reinterpret(array(locked=locked).view(np.int32), tl.float32),
}
if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
    KINDS["DLPack"] = lambda locked: Packed(array(locked=locked))


@pytest.fixture(autouse=True)
def launched_with_none() -> None:
    """What is looked at must not depend on what the kernel was launched with first."""
    for kernel in (put, put_by_number, put_into, put_first):
        kernel.reset()


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_asked(kind: str, target: str) -> None:
    locked = KINDS[kind](True)
    with pytest.raises(LaunchError) as caught, weft.target(target):
        put[(1,)](locked)
    assert str(caught.value) == REFUSED and caught.value.argument == "out"
    base = getattr(locked, "array", getattr(locked, "base", locked))
    assert not np.asarray(base if base is not None else locked).any()


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("then", KINDS)
@pytest.mark.thinned(3)
def test_one_kind_after_another(first: str, then: str) -> None:
    """They share compiled code, not what was found out about the first."""
    put[(1,)](KINDS[first](False))
    with pytest.raises(LaunchError) as caught:
        put[(1,)](KINDS[then](True))
    assert str(caught.value) == REFUSED


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_files_in_memory(tmp_path: Path, mode: str) -> None:
    """Writing to one that was opened for reading ends the process; "c" writes to the memory only."""
    np.save(tmp_path / "x.npy", np.zeros(16, np.float32))
    opened = np.load(tmp_path / "x.npy", mmap_mode=mode)
    if mode == "r":
        with pytest.raises(LaunchError) as caught:
            put[(1,)](opened)
        assert str(caught.value) == REFUSED
    else:
        put[(1,)](opened)
        assert (opened == 7).all()
    assert (np.load(tmp_path / "x.npy") == (7 if mode == "r+" else 0)).all()


@pytest.mark.parametrize("kind", [np.ndarray, Sub])
def test_by_whatever_way_it_is_stored_to(kind: type[np.ndarray[Any, Any]]) -> None:
    locked = array(locked=True, kind=kind)
    square = weft.TensorDescriptor.from_tensor(locked.reshape(4, 4), [4, 4])
    for call, what in (
        (lambda: put_by_number[(1,)](locked, np.full(1, 4, np.int64)), "out"),
        (lambda: put_into[(1,)](square), "out"),
        (lambda: put_first[(1,)](((locked,), 3)), "out[0][0]"),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert str(caught.value) == REFUSED.replace("`out`", f"`{what}`")
    assert not locked.any()


def test_what_is_only_read() -> None:
    at = np.full(1, 4, np.int64)
    at.flags.writeable = False
    out = np.zeros(16, np.float32)
    put_by_number[(1,)](out, at)
    assert out[2] == 7 and out.sum() == 7


@pytest.mark.parametrize("kind", ["an array", "a subclass", "an interface", "another type of the same memory"])
def test_a_compiled_kernel_asks_too(kind: str) -> None:
    compiled = put.warmup(np.zeros(16, np.float32), grid=(1,))
    out = KINDS[kind](False)
    compiled[(1,)](out)
    with pytest.raises(LaunchError) as caught:
        compiled[(1,)](KINDS[kind](True))
    assert str(caught.value) == REFUSED


def test_memory_of_a_buffer() -> None:
    """An interface without an address: the memory is the buffer of the object, or of what `data` names."""

    class Own(bytearray):
        def __init__(self, size: int, **more: Any) -> None:
            super().__init__(size)
            self.__array_interface__ = {"version": 3, "shape": (16,), "typestr": "<f4", **more}

    class Other:
        def __init__(self, memory: Any) -> None:
            self.__array_interface__ = {"shape": (16,), "typestr": "<f4", "data": memory, "offset": 4}

    own, memory = Own(64), bytearray(68)
    put[(1,)](own)
    put[(1,)](Other(memory))
    assert (np.frombuffer(own, np.float32) == 7).all()
    assert (np.frombuffer(memory, np.float32)[1:] == 7).all() and memory[:4] == bytes(4)
    wrong = "argument `out`: __array_interface__ of a runtime.{} is not what it should be: {}"
    for value, problem in (
        (Own(60), "its shape (16,) reaches outside of its buffer of 60 bytes"),
        (Own(64, strides=(-4,)), "its shape (16,) reaches outside of its buffer of 64 bytes"),
        (Own(64, offset=65), "the offset 65 is outside of its buffer of 64 bytes"),
        (Own(64, offset="4"), "the offset '4' is no integer"),
    ):
        with pytest.raises(LaunchError) as caught:
            put[(1,)](value)
        assert str(caught.value) == wrong.format("Own", problem)
    with pytest.raises(LaunchError) as caught:
        put[(1,)](Other(bytes(68)))
    assert str(caught.value) == REFUSED


def test_python_ends_well_when_it_is_refused(tmp_path: Path) -> None:
    """The whole process: what PROT_READ would have ended."""
    script = tmp_path / "k.py"
    script.write_text(
        "import numpy as np, weft, weft.language as tl\n"
        "@weft.jit\ndef put(out):\n    tl.store(out, 7.0)\n"
        "np.save('x.npy', np.zeros(4, np.float32))\n"
        "try:\n    put[(1,)](np.load('x.npy', mmap_mode='r'))\nexcept weft.LaunchError as e:\n    print(e.argument)\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "out\n"), done.stderr
