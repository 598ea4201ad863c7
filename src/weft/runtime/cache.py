"""The cache of compiled kernels: one file for each, which either is whole or counts for nothing.

An entry is, in this order:

    magic (8 bytes)   length of the header (8 bytes, little-endian)
    header            JSON: the key, the facts, names and sizes of the blobs
    blobs             one after the other
    digest            SHA-256 over all of the above

It is written beside its place, synced, and renamed.  Reading checks the digest first; whatever cannot be read, or does
not match, is a miss: one warning, the entry is thrown away and made anew.  Nothing is unpickled or executed on reading.
There are no locks: two writers of one key write the same, and the last rename wins.

The cache cannot make a compilation fail: a full, read-only or vanishing disk costs a warning, once, and the time to
compile again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.base import CacheWarning

from . import knobs
from .files import users_level

__all__ = ["Entry", "Store", "default_store", "pack", "unpack"]

MAGIC = b"WEFTKRN1"
SUFFIX = ".weft"
MAX_HEADER = 16 << 20
MAX_ENTRY = 1 << 30
WITHOUT = "; kernels are compiled without it"
STALE_SECONDS = 3600
"""Temporary files older than this were left by a process that died."""


class BadEntry(ValueError):
    """The bytes are no entry, or not the one asked for."""


def pack(key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> bytes:
    """The bytes of an entry."""
    header = json.dumps(
        {"key": key, "facts": facts, "blobs": [[name, len(blob)] for name, blob in blobs.items()]},
        separators=(",", ":"),
    ).encode()
    body = b"".join((MAGIC, len(header).to_bytes(8, "little"), header, *blobs.values()))
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes, key: str | None = None) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """The key, facts and blobs of an entry; raises BadEntry unless every byte is as it was written."""
    if len(data) < 48 or data[:8] != MAGIC:
        raise BadEntry("it is not an entry of the cache")
    if hashlib.sha256(memoryview(data)[:-32]).digest() != data[-32:]:
        raise BadEntry("its digest does not match")
    size = int.from_bytes(data[8:16], "little")
    if size > min(MAX_HEADER, len(data) - 48):
        raise BadEntry("its header is too long")
    try:
        header = json.loads(data[16 : 16 + size])
        found, facts, sizes = header["key"], header["facts"], header["blobs"]
        offset, blobs = 16 + size, {}
        for name, length in sizes:
            if not isinstance(name, str) or type(length) is not int or not 0 <= length <= len(data) - 32 - offset:
                raise BadEntry("its blobs do not fit")
            blobs[name] = data[offset : offset + length]
            offset += length
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadEntry(f"its header cannot be read: {error}") from error
    if offset != len(data) - 32 or not isinstance(facts, dict) or not isinstance(found, str):
        raise BadEntry("its parts do not add up")
    if key is not None and found != key:
        raise BadEntry("it belongs to another kernel")
    return found, facts, blobs


@dataclass(frozen=True)
class Entry:
    """A file of the cache, as `weft cache ls` shows it."""

    path: str
    size: int
    used: float
    name: str
    error: str | None = None


class Store:
    """The cache in a directory."""

    def __init__(self, directory: str | os.PathLike[str], size_cap: int = 1 << 30) -> None:
        self.directory = os.fspath(directory)
        self.size_cap = size_cap
        self._lock = threading.Lock()
        self._usable: bool | None = None
        self._warned = False
        self._written = 0
        self._serial = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Kernels that have a store are pickled with it, by their attributes, where PyTorch hands them on."""
        return Store, (self.directory, self.size_cap)

    # -- the directory ---------------------------------------------------------------------------------------------

    def _warn(self, text: str, *, once: bool = True) -> None:
        if once and self._warned:
            return
        self._warned = self._warned or once
        warnings.warn(text, CacheWarning, stacklevel=users_level())

    def _ready(self) -> bool:
        """Whether the directory is there and safe to read machine code from."""
        if self._usable is None:
            with self._lock:
                if self._usable is None:
                    self._usable = self._prepare()
        return self._usable

    def _prepare(self) -> bool:
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            facts = os.stat(self.directory)
        except OSError as error:
            self._warn(f"the kernel cache {self.directory} cannot be used ({error.strerror or error}){WITHOUT}")
            return False
        if not stat.S_ISDIR(facts.st_mode):
            self._warn(f"the kernel cache {self.directory} is not a directory{WITHOUT}")
            return False
        if sys.platform != "win32" and hasattr(os, "getuid"):
            if facts.st_uid != os.getuid():
                self._warn(f"the kernel cache {self.directory} belongs to another user and is not trusted{WITHOUT}")
                return False
            if facts.st_mode & 0o022:
                with contextlib.suppress(OSError):
                    os.chmod(self.directory, facts.st_mode & 0o755)
                    facts = os.stat(self.directory)
                if facts.st_mode & 0o022:
                    self._warn(
                        f"the kernel cache {self.directory} can be written by others and is not trusted{WITHOUT}"
                    )
                    return False
        return True

    def path(self, key: str) -> str:
        """The file of a key."""
        return os.path.join(self.directory, key + SUFFIX)

    # -- reading and writing ---------------------------------------------------------------------------------------

    def get(self, key: str) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """What was put under a key; None, with a warning where something is wrong, when it cannot be had."""
        if not self._ready():
            return None
        path = self.path(key)
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_ENTRY + 1)
        except FileNotFoundError:
            return None
        except (OSError, MemoryError) as error:
            self._warn(f"an entry of the kernel cache cannot be read ({error}){WITHOUT}")
            return None
        try:
            _, facts, blobs = unpack(data, key)
        except BadEntry as error:
            self._warn(f"an entry of the kernel cache is damaged and is made anew: {path}: {error}", once=False)
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # most recently used
        return facts, blobs

    def put(self, key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> None:
        """Keep something; a failure costs a warning."""
        if not self._ready():
            return
        with self._lock:
            self._serial += 1
            serial = self._serial
        temporary = f"{self.path(key)}.{os.getpid()}.{serial}.{os.urandom(4).hex()}.tmp"
        try:
            data = pack(key, facts, blobs)
            try:
                self._write(temporary, data)
                os.replace(temporary, self.path(key))
            except FileNotFoundError:  # the directory was removed meanwhile: make it again, once
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                self._write(temporary, data)
                os.replace(temporary, self.path(key))
        except (OSError, MemoryError) as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            self._warn(f"an entry of the kernel cache cannot be written ({error}){WITHOUT}")
            return
        self._written += len(data)
        if self._written > self.size_cap // 16 or serial == 1:
            self._written = 0
            self.prune()

    @staticmethod
    def _write(path: str, data: bytes) -> None:
        """Write a new file and wait until it is on the disk."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)

    # -- housekeeping ----------------------------------------------------------------------------------------------

    def _files(self) -> list[tuple[float, int, str]]:
        """(last use, size, path) of every entry; leftovers of writers that died are removed on the way."""
        files = []
        try:
            with os.scandir(self.directory) as listing:
                for item in listing:
                    with contextlib.suppress(OSError):
                        facts = item.stat(follow_symlinks=False)
                        if item.name.endswith(SUFFIX):
                            files.append((facts.st_mtime, facts.st_size, item.path))
                        elif item.name.endswith(".tmp") and time.time() - facts.st_mtime > STALE_SECONDS:
                            os.unlink(item.path)
        except OSError:
            return []
        return sorted(files)

    def prune(self, size_cap: int | None = None) -> int:
        """Remove the least recently used entries until the rest fits; returns how many were removed."""
        cap = self.size_cap if size_cap is None else size_cap
        files = self._files()
        total = sum(size for _, size, _ in files)
        removed = 0
        for _, size, path in files:
            if total <= cap:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += 1
            total -= size
        return removed

    def entries(self, check: bool = True) -> Iterator[Entry]:
        """Every entry, the least recently used first; checked byte for byte unless told not to."""
        for used, size, path in self._files():
            try:
                with open(path, "rb") as file:
                    data = file.read(MAX_ENTRY + 1)
                if check:
                    _, facts, _ = unpack(data, os.path.basename(path).removesuffix(SUFFIX))
                else:
                    facts = json.loads(data[16 : 16 + int.from_bytes(data[8:16], "little")])["facts"]
                yield Entry(path, size, used, str(facts.get("name", "?")))
            except (OSError, BadEntry, ValueError, KeyError, TypeError, AttributeError) as error:
                yield Entry(path, size, used, "?", str(error))


_stores: dict[tuple[str, int], Store] = {}


@lru_cache(maxsize=1)
def _users_directory() -> str | None:
    """Where the user's caches are; None, with one warning, for a user without a home (in a container, say)."""
    parts = {"darwin": ("Library", "Caches", "weft"), "win32": ("AppData", "Local", "weft", "Cache")}
    home = os.path.join("~", *parts.get(sys.platform, (".cache", "weft")))
    given = os.environ.get({"darwin": "", "win32": "LOCALAPPDATA"}.get(sys.platform, "XDG_CACHE_HOME"), "")
    if os.path.isabs(given):
        return os.path.join(given, *(("weft", "Cache") if sys.platform == "win32" else ("weft",)))
    directory = os.path.expanduser(home)
    if directory == home:  # nothing tells where the home is
        warnings.warn(
            "no place for a kernel cache (this user has no home directory); kernels are compiled without it "
            "(WEFT_CACHE_DIR names one)",
            CacheWarning,
            stacklevel=users_level(),
        )
        return None
    return directory


def default_store() -> Store | None:
    """The cache that the settings ask for; None when it is switched off."""
    from_triton = os.environ.get("TRITON_CACHE_DIR") if triton_variables else None
    if knobs.cache.disabled:
        return None
    home = os.path.join(knobs.cache.home_dir, ".weft", "cache") if knobs.cache.home_dir else None
    directory = knobs.cache.dir or from_triton or home or _users_directory()
    if directory is None:
        return None
    key = (directory, knobs.cache.size)
    if key not in _stores:
        _stores[key] = Store(*key)
    return _stores[key]


triton_variables = False
"""Whether TRITON_CACHE_DIR counts; weft.compat.install() sets it."""
