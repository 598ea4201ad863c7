"""Acme's GPU, which is this processor: a thread of a block is a thread of the host, and blocks run one after another.

What threads tell each other goes through the functions that `dialect.py` calls. Asynchronous copies are done when they
are waited for, and never if they are not.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from weft.base import DeviceAssertionError
from weft.ops.dtypes import DTYPES

from .dialect import NAMES, PLACES
from .instructions import INSTRUCTIONS
from .rows import ROWS

__all__ = ["Loaded"]

C_TYPES = {"i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
           "i64": ctypes.c_int64, "fp16": ctypes.c_int16, "fp32": ctypes.c_float, "fp64": ctypes.c_double}  # fmt: skip
VALUES = {"i": ctypes.c_int32, "q": ctypes.c_int64, "d": ctypes.c_double}
LANES = ROWS[0].lanes
SECONDS = 60
LOW = 0x40
"""Linux's MAP_32BIT: addresses in shared memory have 32 bits."""


class Block:
    """What the threads of a block have together."""

    def __init__(self, threads: int, places: Sequence[int]) -> None:
        self.places = places
        self.whole = threading.Barrier(threads)
        self.warps = [threading.Barrier(LANES) for _ in range(threads // LANES)]
        self.told: list[Any] = [None] * threads
        self.wrong: list[str] = []

    def give_up(self, what: str) -> None:
        """Nobody waits for anybody any more."""
        self.wrong.append(what)
        for barrier in (self.whole, *self.warps):
            barrier.abort()


class Thread(threading.local):
    """The thread that runs."""

    block: Block
    index = 0
    copies: list[tuple[int, int, int, int]]

    def wait(self, barrier: threading.Barrier) -> None:
        try:
            barrier.wait(SECONDS)
        except threading.BrokenBarrierError:
            self.block.give_up("a thread waits for others that do not come")

    def exchange(self, word: Any) -> list[Any]:
        """What each lane of the warp tells the others."""
        warp, block = self.index // LANES, self.block
        block.told[self.index] = word
        self.wait(block.warps[warp])
        told = block.told[warp * LANES :][:LANES]
        self.wait(block.warps[warp])
        return told


now = Thread()


def _place(which: int) -> int:
    return now.index if PLACES[which] == "thread" else now.block.places[which - 1]


def _shuffle(word: int, lane: int, xor: int) -> int:
    told: list[int] = now.exchange(word)
    return told[(now.index ^ lane if xor else lane) % LANES]


def _ballot(bit: int) -> int:
    return sum(x << i for i, x in enumerate(now.exchange(bit)))


def _barrier(whole: int) -> None:
    now.wait(now.block.whole if whole else now.block.warps[now.index // LANES])


def _copy(to: int, source: int, read: int, size: int) -> None:
    now.copies.append((to, source, read, size))


def _await(pending: int) -> None:
    done = len(now.copies) - pending
    for to, source, read, size in now.copies[: max(0, done)]:
        ctypes.memset(to, 0, size)
        ctypes.memmove(to, source, read)
    del now.copies[: max(0, done)]


def _instruction(which: int, operands: int, results: int) -> None:
    entry = INSTRUCTIONS[NAMES[which]]
    given, at = [], operands
    for operand in entry.operands:
        words = np.frombuffer(ctypes.string_at(at, 4 * operand.count), np.uint8).reshape(operand.count, 4)
        dtype = np.dtype(DTYPES[operand.elem])
        given.append(words[:, : dtype.itemsize].copy().view(dtype)[:, 0])
        at += 4 * operand.count
    told = now.exchange(given)
    (made,) = entry.run(*(np.stack(x)[None] for x in zip(*told, strict=True)))
    own = np.ascontiguousarray(made[0, now.index % LANES])
    ctypes.memmove(results, own.ctypes.data, own.nbytes)


def _print(form: bytes, letters: int, values: int) -> None:
    kinds = letters.to_bytes(8, "little").decode().rstrip("\0")
    given = [VALUES[kind].from_address(values + 8 * i) for i, kind in enumerate(kinds)]
    line = ctypes.create_string_buffer(1000)
    ctypes.CDLL(None).snprintf(line, 1000, form, *given)
    print(line.value.decode(), end="")


def _give_up(message: bytes | None, line: int) -> None:
    now.block.give_up(f"line {line}: {(message or b'stopped').decode()}")


i32, i64, ptr, text = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
CALLED = {
    name: ctypes.CFUNCTYPE(result, *types)(function)
    for name, function, result, types in (
        ("place", _place, i32, (i32,)),
        ("shuffle", _shuffle, i32, (i32, i32, i32)),
        ("ballot", _ballot, i32, (i32,)),
        ("barrier", _barrier, None, (i32,)),
        ("copy", _copy, None, (ptr, ptr, i32, i32)),
        ("await", _await, None, (i32,)),
        ("instruction", _instruction, None, (i32, ptr, ptr)),
        ("clock", time.monotonic_ns, i64, ()),
        ("print", _print, None, (text, i64, ptr)),
        ("give_up", _give_up, None, (text, i32)),
    )
}
SHARED = mmap.mmap(-1, ROWS[0].shared_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | LOW)


class Loaded:
    """A kernel in memory."""

    registers = local_bytes = 0
    max_threads = 256

    def __init__(self, llir: str, metadata: Mapping[str, Any]) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for name, function in CALLED.items():
            llvm.add_symbol(f"acme_{name}", ctypes.cast(function, ctypes.c_void_p).value)
        shared = ctypes.addressof(ctypes.c_char.from_buffer(SHARED))
        assert shared + len(SHARED) < 1 << 32
        llvm.add_symbol("shared_memory", shared)
        module = llvm.parse_assembly(llir)
        module.verify()
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()  # which convert halves
        machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features)
        self.engine = llvm.create_mcjit_compiler(module, machine, use_lmm=True)
        self.engine.finalize_object()
        self.address, self.threads = self.engine.get_function_address(metadata["name"]), metadata["threads"]
        types = [ctypes.c_void_p if p[0] == "*" else C_TYPES[p] for p in metadata["params"]]
        self.function = ctypes.CFUNCTYPE(None, *types)(self.address)

    def _thread(self, block: Block, index: int, values: Sequence[Any]) -> None:
        now.block, now.index, now.copies = block, index, []
        self.function(*values)

    def launcher(self, codes: str, stream: Callable[[], int]) -> Callable[..., None]:
        def launch(nx: int, ny: int, nz: int, *values: Any) -> None:
            for number in range(nx * ny * nz):
                places = (number % nx, number // nx % ny, number // nx // ny, nx, ny, nz)
                block = Block(self.threads, places)
                SHARED[:] = b"\xff" * len(SHARED)
                threads = [threading.Thread(target=self._thread, args=(block, i, values)) for i in range(self.threads)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                if block.wrong:
                    raise DeviceAssertionError(block.wrong[0])

        return launch

    def frozen(
        self, codes: str, stream: Callable[[], int], grid: Sequence[int], values: Sequence[Any]
    ) -> Callable[[], None]:
        return partial(self.launcher(codes, stream), *grid, *values)
