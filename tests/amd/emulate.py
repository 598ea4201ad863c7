"""Run code objects in tinygrad's emulator of AMD GPUs, where its repository lies in a folder.

    emulator = Emulator(Path("../tinygrad"))
    emulator.run(hsaco, "add", [x, y, out, 1000], grid=(8,), threads=256)      # NumPy arrays are written in place

The emulator (test/mockgpu/amd there) decodes each instruction, makes C of its published pseudocode and calls that; it
needs a clang. It executes a wave to the next barrier before it turns to another, and every access at once: what is
wrong only in time (a missing wait, a race) is not seen; see waits.py.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from . import meanings
from .code_object import CodeObject, Kernel

ARCHITECTURES = {"gfx9": "cdna", "gfx11": "rdna3", "gfx12": "rdna4"}
"""The emulator's names, by the beginning of LLVM's."""
LOCAL_GRANULE = 512
"""Bytes that one step of the descriptor's field of local memory stands for, as the emulator reads it."""
LOCAL_FIELD = 15, 0x1FF
"""Where it is: the first bit, and its bits."""
PRELOAD_ENTRY = 256
"""How far behind the entry the code begins for firmware that preloads arguments."""


class Missing(Exception):
    """What is not here, so that the emulator cannot run."""


def find_clang() -> str:
    """The path of a clang; Missing where there is none."""
    names = ["clang", *(f"clang-{version}" for version in range(30, 13, -1))]
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise Missing("the emulator compiles with clang, and there is none on PATH (Debian: clang-19)")
    return path


class Emulator:
    """The emulator of a folder, imported into this process."""

    def __init__(self, folder: Path) -> None:
        self.check(folder)
        self.tools = tempfile.TemporaryDirectory(prefix="weft-clang-")
        (Path(self.tools.name) / "clang").symlink_to(find_clang())  # it calls `clang`, by this name
        os.environ["PATH"] = f"{self.tools.name}:{os.environ['PATH']}"
        sys.path.insert(0, str(folder))
        self.module = self._imported()
        self.processor = ""
        self.own: set[str] = set()
        """The instructions met so far that meanings.py executes."""
        meanings.install(self.module, lambda: self.processor, self.own)

    @staticmethod
    def check(folder: Path) -> None:
        """Missing where a folder has no emulator."""
        if not (folder / "test/mockgpu/amd/emu.py").is_file():
            raise Missing(f"{folder} has no test/mockgpu/amd/emu.py: EMULATOR=folder is a clone of tinygrad/tinygrad")

    @staticmethod
    def _imported() -> ModuleType:
        import test.mockgpu.amd.emu as module

        return module

    def run(
        self,
        code: bytes,
        name: str,
        arguments: Sequence[Any],
        grid: Sequence[int],
        threads: int,
        *,
        dynamic_local: int = 0,
        preload: bool = True,
        variables: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Run a kernel over a grid; `preload`: as new firmware does, which puts arguments into registers. `variables`
        are 64 bits of the code object, by name."""
        loaded = CodeObject(code)
        self.processor, kernel = loaded.processor, loaded.kernels[name]
        buffer, kept = kernarg(kernel, arguments)
        image = np.frombuffer(loaded.image(), np.uint8)
        memory = np.zeros(len(image) + 8192, np.uint8)  # with room behind: instructions are decoded from 16 bytes
        base = -memory.ctypes.data % 4096
        memory[base : base + len(image)] = image
        for variable, value in variables.items():
            at = base + loaded.symbols[variable][0]
            memory[at : at + 8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
        address = memory.ctypes.data + base
        descriptor = kernel.descriptor
        entry = address + descriptor.entry
        words, first = descriptor.preload
        whole = [*grid, 1, 1][:3]
        packet = dispatch_packet(whole, threads, buffer.ctypes.data)
        registers = user_registers(kernel, {"arguments": buffer.ctypes.data, "dispatch": packet.ctypes.data})
        if words and preload:
            entry += PRELOAD_ENTRY
            registers += struct.unpack_from(f"<{words}I", buffer.tobytes(), 4 * first)
        steps = -(-(descriptor.local_bytes + dynamic_local) // LOCAL_GRANULE)
        rsrc2 = descriptor.rsrc2 & ~(LOCAL_FIELD[1] << LOCAL_FIELD[0]) | steps << LOCAL_FIELD[0]
        architecture = next(a for start, a in ARCHITECTURES.items() if loaded.processor.startswith(start))
        self.module.run_asm(
            entry, len(image), *whole, threads, 1, 1, buffer.ctypes.data, rsrc2, descriptor.scratch_bytes, architecture,
            registers,
        )  # fmt: skip
        del kept


def kernarg(kernel: Kernel, arguments: Sequence[Any]) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], list[Any]]:
    """The buffer of arguments, by the metadata's offsets, and what must stay alive; what is not given is zero."""
    buffer = np.zeros(max(kernel.descriptor.kernarg_bytes, 4), np.uint8)
    rows = [row for row in kernel.metadata.get(".args", []) if not row[".value_kind"].startswith("hidden")]
    for row, value in zip(rows, arguments):
        at, size, is_pointer = row[".offset"], row[".size"], row[".value_kind"] == "global_buffer"
        if is_pointer != isinstance(value, np.ndarray):
            raise ValueError(f"the argument at {at} is a {row['.value_kind']}, and {value!r} is given")
        if is_pointer:
            raw = struct.pack("<Q", value.ctypes.data)
        elif isinstance(value, float):
            raw = struct.pack({4: "<f", 8: "<d"}[size], value)
        else:
            raw = int(value).to_bytes(size, "little", signed=value < 0)
        buffer[at : at + size] = np.frombuffer(raw, np.uint8)
    if len(arguments) > len(rows):
        raise ValueError(f"the kernel takes {len(rows)} arguments, and {len(arguments)} are given")
    return buffer, list(arguments)


def dispatch_packet(grid: Sequence[int], threads: int, arguments: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """What a kernel is launched by (AQL), which it may look at: sizes of the block, and of the grid in threads."""
    sizes = [grid[0] * threads, *grid[1:]]
    packet = struct.pack("<6H5I3Q", 0, 0, threads, 1, 1, 0, *sizes, 0, 0, 0, arguments, 0)
    return np.frombuffer(packet + bytes(64 - len(packet)), np.uint8).copy()


def user_registers(kernel: Kernel, addresses: Mapping[str, int]) -> list[int]:
    """What the scalar registers begin with: the addresses that the descriptor wants."""
    names = kernel.descriptor.user_registers
    values = [0] * len(names)
    for name, address in addresses.items():
        if name in names:
            at = names.index(name)
            values[at : at + 2] = address & 0xFFFFFFFF, address >> 32
    return values
