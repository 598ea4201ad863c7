"""The assembler in AMD's library `amd_comgr` ("code object manager"), which ROCm and PyTorch for ROCm bring along.

    log, code = Comgr(path).assembled(text, "gfx942")        # an object file, or None and what it says of the text

It needs no GPU. Version 3 has other numbers for actions than version 2; what is called is the same in both.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint64

SOURCE, LOG, RELOCATABLE = 1, 5, 7
"""Kinds of data."""
ASSEMBLE = {2: 10, 3: 8}
"""The action, by the library's version."""
ISA = "amdgcn-amd-amdhsa--"


class Comgr:
    """The library, loaded; OSError where it cannot be, or is of a version that is not known here."""

    def __init__(self, path: str) -> None:
        self.path, self.library = path, ctypes.CDLL(path)
        major, minor = c_size_t(), c_size_t()
        self.library.amd_comgr_get_version(byref(major), byref(minor))
        self.version = major.value
        if self.version not in ASSEMBLE:
            raise OSError(f"{path} is of version {major.value}.{minor.value}")

    def _call(self, name: str, *arguments: object) -> None:
        if getattr(self.library, f"amd_comgr_{name}")(*arguments):
            raise OSError(f"{self.path}: amd_comgr_{name} fails")

    def _made(self, name: str, *arguments: object) -> c_uint64:
        """A handle of something new."""
        handle = c_uint64()
        self._call(f"create_{name}", *arguments, byref(handle))
        return handle

    def processors(self) -> list[str]:
        """Those that it knows."""
        count = c_size_t()
        self._call("get_isa_count", byref(count))
        names = []
        for i in range(count.value):
            name = c_char_p()
            self._call("get_isa_name", c_size_t(i), byref(name))
            names.append((name.value or b"").decode().removeprefix(ISA).partition(":")[0])
        return names

    def assembled(self, text: str, processor: str) -> tuple[str, bytes | None]:
        """(what it says, the object file)"""
        made: list[tuple[str, c_uint64]] = []
        try:
            action = self._made("action_info")
            made.append(("destroy_action_info", action))
            self._call("action_info_set_isa_name", action, f"{ISA}{processor}".encode())
            self._call("action_info_set_logging", action, ctypes.c_bool(True))
            sets = [self._made("data_set"), self._made("data_set")]
            made += [("destroy_data_set", s) for s in sets]
            source = self._made("data", SOURCE)
            made.append(("release_data", source))
            data = text.encode()
            self._call("set_data", source, c_size_t(len(data)), data)
            self._call("set_data_name", source, b"kernel.s")
            self._call("data_set_add", sets[0], source)
            status = self.library.amd_comgr_do_action(ASSEMBLE[self.version], action, *sets)
            log = self._data(sets[1], LOG).decode("utf-8", "replace")
            return log, None if status else self._data(sets[1], RELOCATABLE)
        finally:
            for name, handle in made:
                self._call(name, handle)

    def _data(self, of: c_uint64, kind: int) -> bytes:
        """The first data of a kind in a set; nothing where there is none."""
        count = c_size_t()
        self._call("action_data_count", of, kind, byref(count))
        if not count.value:
            return b""
        handle, size = c_uint64(), c_size_t()
        self._call("action_data_get_data", of, kind, c_size_t(0), byref(handle))
        self._call("get_data", handle, byref(size), None)
        buffer = ctypes.create_string_buffer(size.value)
        self._call("get_data", handle, byref(size), buffer)
        self._call("release_data", handle)
        return buffer.raw
