"""Load compiled kernels into this process and run them on all cores.

A kernel is a native function `void name(ptr args, ptr state, ptr scratch)`.  `state` says which programs of the grid
are still to be done; the function takes chunks of programs until none is left.  So a launch is: fill `args` and
`state`, wake some workers, run a part of the grid as each of them does, wait for those that joined.

    kernel = LoadedKernel(binary.object, binary.metadata)
    launch = kernel.launcher("<QQQq")           # one struct code for each argument slot
    launch(nx, ny, nz, address_x, address_y, address_out, n)

A launch that is too small to be worth waking anyone stays on the calling thread.  What a program costs is learnt from
the launches before (`_ns`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.base import LaunchError, load

from .engine import Record
from .failures import Array, Found, error_of
from .host import host_cpu as host_cpu, llvm_version as llvm_version, tiles_are_granted, usable_cores as usable_cores
from .keeping import set_native_store as set_native_store
from .loader import loader
from .native import native
from .pool import (
    Pool as Pool,
    check_scratch,
    get_num_threads as get_num_threads,
    get_pool,
    scratch,
    set_num_threads as set_num_threads,
    set_scratch_limit as set_scratch_limit,
)
from .pool_layout import ALL
from .state import NX, REPORT_WORDS, STATE_BYTES, STATE_FORMAT

_NEXT, _TOTAL, _CHUNK, _ERROR, _ERROR_PID = 0, 1, 2, 5, 6  # in the state, as i64 indices

_i64 = ctypes.c_int64
_ptr = ctypes.c_void_p


class LoadedKernel:
    """A compiled kernel in memory, ready to run; `metadata` is that of the binary.

    Raises OutOfResources where its scratch memory, on the threads that launches use, exceeds the limit.
    """

    def __init__(self, code: bytes, metadata: Mapping[str, Any]) -> None:
        self.name: str = metadata["name"]
        if "made_for" in metadata:
            raise _made_for_another(self.name, *metadata["made_for"])
        lacking = [feature for feature in metadata.get("needs", ()) if not host_cpu().has(feature)]
        if lacking:
            raise LaunchError(
                f"`{self.name}` is compiled for a processor with {', '.join(lacking)}, which this machine has not",
                "cpu",
                hint="leave out cpu and features: it is compiled for the processor at hand, or for cpu='native'",
            )
        self.scratch_bytes: int = int(metadata.get("scratch_bytes", 0))
        check_scratch(self.scratch_bytes, get_num_threads(), self.name, metadata.get("scratch_largest", ()))
        self.asserts: list[dict[str, Any]] = list(metadata.get("asserts", ()))
        self._arrays: list[dict[str, Any]] = list(metadata.get("checked", ()))
        self._checks = bool(metadata.get("checks"))
        self._printer = _printer(metadata["prints"]) if metadata.get("prints") else None
        self._asks = bool(metadata.get("polls") or metadata.get("prints") or metadata.get("clocks"))
        if metadata.get("tiles") and not tiles_are_granted():
            raise LaunchError(
                f"the kernel {self.name} uses tile registers (AMX), which this machine or its system does not give",
                hint="compile it for a processor without amx-tile, or with matrix_units=False",
            )
        self._tracker, (self.address,) = loader().load(code, [self.name])
        self._call = ctypes.CFUNCTYPE(None, _ptr, _ptr, _ptr)(self.address)
        self.waits = bool(metadata.get("waits"))
        """Whether its programs may wait for each other."""
        self._contexts: list[tuple[Any, Any, int, int]] = []
        self.record = Record(self.address, self.scratch_bytes)
        """What native code knows of it."""
        self.plain = self._printer is None and not self._arrays
        """Whether a grid of it may be launched by native code alone: it runs it by `weft_grid`, or by `wait`."""
        self.table = ctypes.addressof(native().signals.tables[self.waits]) if self._asks else 0
        self.room = scratch.make

    def launcher(self, args_format: str) -> Callable[..., None]:
        """A function (nx, ny, nz, *values) that runs a grid; `args_format` has a struct code for every value."""
        whole = struct.Struct("<" + STATE_FORMAT + args_format + (f"{8 * REPORT_WORDS}x" if self._checks else ""))
        pack = whole.pack_into
        free: list[tuple[Any, Any, int, int]] = []
        call, scratch_bytes, printer = self._call, self.scratch_bytes, self._printer
        printing = id(printer) if printer is not None else 0
        table = self.table
        run_many, fail = self._run_many, self._fail
        take, give = scratch.take, scratch.give

        def launch(nx: int, ny: int, nz: int, *values: Any) -> None:
            try:
                context = free.pop()
            except IndexError:
                context = _new_context(whole.size)
            memory, words, state, args = context
            total = nx * ny * nz
            pack(memory, 0, 0, total, total, nx, ny, nz, 0, 0, 0, printing, table, 0, *values)
            block = take(scratch_bytes) if scratch_bytes else None
            if printer is not None:
                printer.grid = (nx, ny)
            if total == 1:
                call(args, state, block[0] if block else 0)
            elif total > 1:
                run_many(words, args, state, block[0] if block else 0, total)
            if block:
                give(block)
            if words[_ERROR]:
                fail(words, nx, ny)
            free.append(context)

        return launch

    def launch(self, args: bytes | bytearray, grid: Sequence[int]) -> None:
        """Run a grid on a buffer of argument slots (8 bytes each)."""
        nx, ny, nz = (*grid, 1, 1, 1)[:3]
        self.launcher(f"{len(args) // 8}Q")(nx, ny, nz, *struct.unpack(f"<{len(args) // 8}Q", args))

    def _run_many(self, words: Any, args: int, state: int, scratch: int, total: int) -> None:
        """Run programs 0 .. total of the state, on as many threads as they are worth."""
        if self._printer is not None:
            self._call(args, state, scratch)
            return
        if self.waits:
            self._run_waiting(words, args, state, scratch, total)
            return
        code = native()
        while True:
            wanted = code.wanted(self.record.address, total - words[_NEXT])
            if wanted:
                self.prepare(self.scratch_bytes)
            if not code.grid(self.record.address, args, state, scratch, wanted):
                return

    def prepare(self, scratch_bytes: int) -> None:
        """Before a grid is run with workers."""
        if native().ready(scratch_bytes):
            return
        get_pool(get_num_threads()).prepare(scratch_bytes)

    def fail(self, told: bytes) -> None:
        """Raise what is wrong in a launch, from its state and the slots behind it."""
        words = (_i64 * (len(told) // 8)).from_buffer_copy(told)
        nx, ny, _ = struct.unpack_from("<3i", told, 24)
        self._fail(words, nx, ny)

    def wait(self, told: bytes) -> None:
        """Run a grid of programs that may wait for each other, of a launch's state with its slots behind it."""
        try:
            context = self._contexts.pop()
        except IndexError:
            context = _new_context(len(told))
        _, words, state, args = context
        ctypes.memmove(state, told, len(told))
        block = scratch.take(self.scratch_bytes) if self.scratch_bytes else None
        mine = block[0] if block else 0
        if words[_TOTAL] == 1:
            self._call(args, state, mine)
        else:
            self._run_waiting(words, args, state, mine, words[_TOTAL])
        if block:
            scratch.give(block)
        if words[_ERROR]:
            nx, ny = struct.unpack_from("<2i", told, NX)
            self._fail(words, nx, ny)
        self._contexts.append(context)

    def _run_waiting(self, words: Any, args: int, state: int, mine: int, total: int) -> None:
        """Run programs that may wait for each other, each on a thread of its own where it comes to that."""

        def begun() -> int:
            return ALL if words[_ERROR] else int(words[_NEXT])

        words[_CHUNK] = 1
        if not get_pool(get_num_threads()).run_waiting(
            self.address, args, state, mine, total, self.scratch_bytes, begun
        ):
            self._run_here(args, state, mine)

    def _run_here(self, args: int, state: int, mine: int) -> None:
        """Run what is left of a state on this thread."""
        while native().grid(self.record.address, args, state, mine, 0):
            pass

    def _fail(self, words: Any, nx: int, ny: int) -> None:
        """Raise what a signal's handler raised, or what the error slot or the report behind the arguments says."""
        if words[_ERROR] < 0:
            native().signals.raise_kept()
        error, pid, report = words[_ERROR], words[_ERROR_PID], words[-REPORT_WORDS:] if self._checks else [0]
        place, values = 0, list[int]()
        if report[0]:
            error, pid, place, *values = report
        arrays = []
        count = len(words) - STATE_BYTES // 8 - REPORT_WORDS  # slots, the limits of the arrays last
        slots = words[STATE_BYTES // 8 :]
        for k, array in enumerate(self._arrays):
            low, high = slots[count - 2 * (len(self._arrays) - k) :][:2]
            arrays.append(Array(array["name"], slots[array["slot"]], low, high))
        fact = self.asserts[error - 1] if 0 < error <= len(self.asserts) else {"message": f"error {error}"}
        program = (pid % nx, pid // nx % ny, pid // (nx * ny))
        raise error_of(fact, Found(program, place, values), arrays, self.name)


def _made_for_another(name: str, processor: str, triple: str) -> LaunchError:
    """That a kernel is for a machine of another kind."""
    return LaunchError(
        f"`{name}` is compiled for {processor} ({triple}), which this machine, {host_cpu().triple}, is not",
        "cpu",
        hint="kernel.asm['object'] is its object file and kernel.asm['asm'] its assembly; docs/howto/cross.md says how "
        "a program calls it there",
    )


def _printer(prints: Sequence[Mapping[str, Any]]) -> Any:
    """What writes what a kernel prints; imported for the first kernel that does, with the types of small floats."""
    return load("weft.backends.cpu.printing").Printer(prints)


def _new_context(size: int) -> tuple[Any, Any, int, int]:
    """Memory for state and arguments of one launch: (bytes, words, address of the state, of the arguments)."""
    memory = (ctypes.c_char * size)()
    state = ctypes.addressof(memory)
    words = (_i64 * (size // 8)).from_buffer(memory)
    return memory, words, state, state + STATE_BYTES
