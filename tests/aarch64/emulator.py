"""Launches of kernels for AArch64 in the place of launches here.

While an `Emulator` is entered, a kernel that is made for another machine is loaded as an `EmulatedKernel`: what it gets
from a launch are the same slots as ever, with the addresses of this process in them. Those within the launch's arrays
become places in the arrays of the driver, which are filled before the kernel runs and copied back after it.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from weft.backends.cpu import driver as cpu_driver
from weft.backends.cpu.driver import LoadedKernel
from weft.backends.cpu.state import ERROR, NX, STATE_BYTES
from weft.compiler import kernel as kernel_module

Array = np.ndarray[Any, np.dtype[Any]]

TOOLS = {
    "qemu-aarch64": "qemu-user",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "aarch64-linux-gnu-ld": "binutils-aarch64-linux-gnu",
}
"""Programs, and the packages of Debian that have them."""
MISSING = ", ".join(f"{tool} (Debian: {package})" for tool, package in TOOLS.items() if shutil.which(tool) is None)
"""What is needed and is not here, in words; empty where nothing is."""
LIBRARIES = "/usr/aarch64-linux-gnu"
PROCESSOR = "max,sve256=on,sve-max-vq=2"
"""What QEMU is: every instruction it has, with vectors of 256 bits in SVE, as on a Neoverse V1."""


class Emulator:
    """The driver program, and the arrays of the launch that is under way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: list[Array] = []
        self.kernels = 0
        self._patch: Any = None

    def __enter__(self) -> Emulator:
        source = Path(__file__).with_name("driver.c")
        _run("aarch64-linux-gnu-gcc", "-O1", "-Wall", "-o", self._path("driver"), str(source), "-ldl", "-lpthread")
        here = kernel_module.LoadedKernel

        def load(code: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
            if "made_for" not in metadata:
                return here(code, metadata)
            return EmulatedKernel(self, code, metadata)

        self._patch = mock.patch.object(kernel_module, "LoadedKernel", load)
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()

    def launch(self, kernel: Any, grid: Any, arguments: Mapping[str, Any], **options: Any) -> Any:
        """Launch a kernel, whose pointers are those of arrays among its arguments."""
        found = {whole.ctypes.data: whole for whole in map(_whole, _arrays(list(arguments.values())))}
        self.arrays = list(found.values())
        return kernel[grid](**arguments, triple="aarch64-unknown-linux-gnu", **options)

    def linked(self, code: bytes) -> str:
        """The library of an object; LaunchError where it needs anything but the C library's memory functions."""
        self.kernels += 1
        name = self._path(f"kernel{self.kernels}")
        Path(name + ".o").write_bytes(code)
        _run("aarch64-linux-gnu-ld", "-shared", "-o", name + ".so", name + ".o")
        return name + ".so"

    def run(self, library: str, name: str, request: bytes) -> bytes:
        """What the driver answers."""
        Path(self._path("request")).write_bytes(request)
        paths = (library, name, self._path("request"), self._path("answer"))
        _run("qemu-aarch64", "-cpu", PROCESSOR, "-L", LIBRARIES, self._path("driver"), *paths)
        return Path(self._path("answer")).read_bytes()

    def _path(self, name: str) -> str:
        return str(self.folder / name)


class EmulatedKernel(LoadedKernel):
    """A kernel for AArch64 as a launch sees it."""

    def __init__(self, emulator: Emulator, code: bytes, metadata: Mapping[str, Any]) -> None:
        self.name = metadata["name"]
        self.scratch_bytes = int(metadata.get("scratch_bytes", 0))
        self.asserts = list(metadata.get("asserts", ()))
        self._arrays = list(metadata.get("checked", ()))
        self._checks = bool(metadata.get("checks"))
        self._printer = cpu_driver._printer(metadata["prints"]) if metadata.get("prints") else None
        self._waits = bool(metadata.get("waits"))
        self._emulator, self._library = emulator, emulator.linked(code)
        self.address, self.record, self.plain = 0, None, False  # type: ignore[assignment]

    def launcher(self, args_format: str) -> Callable[..., None]:
        """A function (nx, ny, nz, *values), as that of a kernel which is here."""
        pack = struct.Struct("<" + args_format).pack

        def launch(nx: int, ny: int, nz: int, *values: Any) -> None:
            self._launch((nx, ny, nz), pack(*values))

        return launch

    def _launch(self, grid: tuple[int, int, int], slots: bytes) -> None:
        arrays, total = self._emulator.arrays, grid[0] * grid[1] * grid[2]
        if not total:
            return
        threads = min(total, 8) if self._waits else 1
        words = struct.unpack(f"<{len(slots) // 8}Q", slots)
        links = _links(arrays)
        head = (STATE_BYTES, threads, self.scratch_bytes, *grid, len(arrays), len(words), len(links))
        shapes = [n for a in arrays for n in (a.nbytes, max(16, a.itemsize))]
        places = [n for word in words for n in _place(word, arrays)]
        numbers = (*head, *shapes, *places, *(n for link in links for n in link[:4]))
        request = struct.pack(f"<{len(numbers)}Q", *numbers) + b"".join(a.tobytes() for a in arrays)
        answer = self._emulator.run(self._library, self.name, request)
        told = bytearray(STATE_BYTES) + slots + (answer[16:56] if self._checks else b"")
        struct.pack_into("<3i", told, NX, *grid)
        told[ERROR : ERROR + 16] = answer[:16]
        at = 56
        for array in arrays:
            array[...] = np.frombuffer(answer[at : at + array.nbytes], array.dtype).reshape(array.shape)
            at += array.nbytes
        for number, offset, _, _, address in links:
            arrays[number].view(np.uint64)[offset // 8] = address
        self._print(grid, answer[at:])
        if struct.unpack("<q", answer[:8])[0] or (self._checks and any(answer[16:24])):
            self.fail(bytes(told))

    def _print(self, grid: tuple[int, int, int], records: bytes) -> None:
        at = 0
        while at < len(records):
            assert self._printer is not None
            index, program, size = struct.unpack_from("<qqq", records, at)
            data = np.frombuffer(records[at + 24 : at + 24 + size] + b"\0", np.uint8)
            self._printer.grid = grid[:2]
            self._printer(index, program, data.ctypes.data, size)
            at += 24 + size


def _arrays(values: Sequence[Any]) -> list[Array]:
    """The arrays among values: those of descriptors and in tuples too."""
    found = []
    for value in values:
        if isinstance(value, np.ndarray):
            found.append(value)
            found += _arrays([getattr(value, "owner", None)])  # one whose address is in it
        elif isinstance(value, (tuple, list)):
            found += _arrays(value)
        elif hasattr(value, "block_shape"):
            found.append(value.base)
    return found


def _whole(array: Array) -> Array:
    """All the memory of an array, in the order in which it lies there."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)


def _place(word: int, arrays: Sequence[Array]) -> tuple[int, int]:
    """A slot for the driver: 0 and the value, or the number of an array from 1 and the offset in it."""
    for number, array in enumerate(arrays, 1):
        offset = word - array.ctypes.data
        if 0 <= offset <= array.nbytes:
            return number, offset
    return 0, word


def _links(arrays: Sequence[Array]) -> list[tuple[int, int, int, int, int]]:
    """The addresses in arrays of 64-bit integers: array, offset, the array and offset of the place, the address."""
    links = []
    for number, array in enumerate(arrays):
        for i, word in enumerate(array.view(np.uint64).tolist() if array.dtype in (np.int64, np.uint64) else ()):
            to, offset = _place(word, arrays)
            if to:
                links.append((number, 8 * i, to - 1, offset, word))
    return links


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise AssertionError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
