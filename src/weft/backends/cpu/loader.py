"""The linker of a process: objects into memory."""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import llvmlite.binding as llvm

from weft.backends.llvm.aborts import told
from weft.base import CompilerCrash
from weft.base.locks import renewed

LOADING_BYTES = 1 << 20
"""What linking an object takes beside twice its size."""

_NONE: Mapping[str, int] = MappingProxyType({})


def _check_memory(size: int, name: str) -> None:
    """MemoryError where there is no memory to load an object of so many bytes: LLVM would end the process."""
    try:
        mmap.mmap(-1, 2 * size + LOADING_BYTES).close()
    except OSError as error:
        raise MemoryError(f"there is no memory to load the kernel `{name}` ({size} bytes of code)") from error


class Loader:
    """The process-wide LLVM linker: object files in, addresses out."""

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._count = 0
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        # The older linker asks for memory section by section: in a process that has mapped gigabytes (PyTorch with
        # CUDA), two can lie farther apart than an offset of 32 bits reaches, which ends the process. This asks once.
        self._lljit = llvm.create_lljit_compiler(self._machine, use_jit_link=True, suppress_errors=True)

    def load(self, code: bytes, names: Sequence[str], places: Mapping[str, int] = _NONE) -> tuple[Any, list[int]]:
        """Link an object file that may refer to `places`; a handle to keep, and the addresses of `names`."""
        _check_memory(len(code), names[0])
        with self._lock:
            self._count += 1
            builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
            for name in names:
                builder = builder.export_symbol(name)
            for name, address in places.items():
                builder = builder.import_symbol(name, address)
            with told(code, "loading", names[0]):
                try:
                    tracker = builder.link(self._lljit, f"weft.{self._count}")
                except RuntimeError as error:
                    raise CompilerCrash(f"the object of {names[0]} does not link: {error}", "loading") from error
                return tracker, [int(tracker[name]) for name in names]

    def compile(self, text: str) -> bytes:
        """The object of a module of LLVM IR that serves every kernel, fast rather than good.

        What is `alwaysinline` stands where it is called, and a branch on what is known by then goes straight on.
        """
        # What it refers to may be anywhere; where objects have no table of addresses, it refers to all by 64 bits.
        model = "large" if sys.platform == "win32" else "small"
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(opt=0, reloc="pic", codemodel=model, jit=True)
        module = llvm.parse_assembly(text)
        module.verify()
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_jump_threading_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))
        code: bytes = machine.emit_object(module)
        return code


_setup_lock = renewed(threading.RLock())
_instance: Loader | None = None


def loader() -> Loader:
    """The linker of this process."""
    global _instance
    if _instance is None:
        with _setup_lock:
            if _instance is None:
                _instance = Loader()
    return _instance


def _fork_beside_llvm() -> None:
    """Let nobody fork while another thread is in LLVM: its lock would be held for ever in the child, by nobody."""
    lock = getattr(llvm.ffi.lib, "_lock", None)
    if lock is not None and hasattr(os, "register_at_fork"):

        def leave() -> None:
            lock.__exit__(None, None, None)

        os.register_at_fork(before=lock.__enter__, after_in_parent=leave, after_in_child=leave)


_fork_beside_llvm()
