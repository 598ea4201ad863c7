"""The cache of compiled kernels: one file for each, which either is whole or counts for nothing.

An entry is, in this order:

    magic (8 bytes)   length of the header (8 bytes, little-endian)
    header            JSON: the key, the facts, names and sizes of the blobs
    blobs             one after the other
    digest            SHA-256 over all of the above

It is written beside its place, synced, and renamed.  Reading checks the digest first; whatever cannot be read, or does
not match, is a miss: one warning, the entry is thrown away and made anew.  Nothing is unpickled or executed on reading.
There are no locks: two writers of one key write the same, and the last rename wins.

A digest tells damage, not who wrote: that is asked of the directory and of the file, see `trusted`.  A directory that
others could write to is left as it is, after one warning that says how to close it.

The cache cannot make a compilation fail: a full, read-only or vanishing disk costs a warning, once, and the time to
compile again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.base import CacheWarning
from weft.base.locks import renewed

from . import knobs
from .trusted import Folder, Untrusted
from .warned import warn

MAGIC = b"WEFTKRN1"
SUFFIX = ".weft"
MAX_HEADER = 16 << 20
MAX_ENTRY = 1 << 30
WITHOUT = "; kernels are compiled without it"
STALE_SECONDS = 3600
"""Temporary files older than this were left by a process that died."""
_DIGITS = frozenset("0123456789abcdef")


def _is_entry(name: str) -> bool:
    """Whether a file has the name of an entry: a key, which is 64 digits, and the suffix."""
    return len(name) == 64 + len(SUFFIX) and name.endswith(SUFFIX) and _DIGITS.issuperset(name[:64])


def _is_leftover(name: str) -> bool:
    """Whether a file has the name under which an entry is written, before it is renamed.

    >>> _is_leftover("ab" * 32 + ".weft.1234.5f6e.tmp"), _is_leftover("notes.weft.1.2.tmp")
    (True, False)
    >>> _is_leftover("ab" * 32 + ".weft-1234.5f6e.tmp")
    False
    """
    middle = name.removesuffix(".tmp")[64 + len(SUFFIX) :]
    return name.endswith(".tmp") and _is_entry(name[: 64 + len(SUFFIX)]) and (_DIGITS | {"."}).issuperset(middle)


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
        stored_key, facts, sizes = header["key"], header["facts"], header["blobs"]
        offset, blobs = 16 + size, {}
        for name, length in sizes:
            if not isinstance(name, str) or type(length) is not int or not 0 <= length <= len(data) - 32 - offset:
                raise BadEntry("its blobs do not fit")
            blobs[name] = data[offset : offset + length]
            offset += length
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadEntry(f"its header cannot be read: {error}") from error
    if offset != len(data) - 32 or not isinstance(facts, dict) or not isinstance(stored_key, str):
        raise BadEntry("its parts do not add up")
    if key is not None and stored_key != key:
        raise BadEntry("it belongs to another kernel")
    return stored_key, facts, blobs


@dataclass(frozen=True)
class Entry:
    """A file of the cache, as `weft cache ls` shows it."""

    path: str
    size: int
    used: float
    name: str
    error: str | None = None


class Store:
    """The cache in a directory, which is made for this user alone; one that others can write to is left alone."""

    def __init__(self, directory: str | os.PathLike[str], size_cap: int = 1 << 30) -> None:
        self.directory = os.fspath(directory)
        with contextlib.suppress(OSError):  # no current directory
            self.directory = os.path.join(os.getcwd(), self.directory)
        self.size_cap = size_cap
        self._lock = renewed(threading.Lock())
        self._warned = False
        self._written: int | None = None
        """Bytes written since the last look at the size of it all; None before the first."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Kernels that have a store are pickled with it, by their attributes, where PyTorch hands them on."""
        return Store, (self.directory, self.size_cap)

    # -- the directory ---------------------------------------------------------------------------------------------

    def _warn(self, text: str, *, once: bool = True) -> None:
        if once and self._warned:
            return
        self._warned = self._warned or once
        warn(text, CacheWarning)

    def _open(self, *, create: bool) -> Folder | None:
        """The directory; None where it is not there, and, with a warning, where it cannot be used."""
        try:
            return Folder(self.directory, create=create)
        except FileNotFoundError:
            if create:
                raise
        except OSError as error:
            self.warn_of(error)
        return None

    def warn_of(self, error: OSError) -> None:
        """Say, once, why the directory is not used."""
        self._warn(f"the kernel cache {self.directory} {self._reason(error, WITHOUT)}")

    @staticmethod
    def _reason(error: OSError, what_then: str = "") -> str:
        """Why the directory cannot be used and what to do, as the rest of a sentence."""
        if not isinstance(error, Untrusted):
            return f"cannot be used ({error.strerror or error}){what_then}"
        remedy = f"{error.remedy}, WEFT_CACHE_DIR names another" if error.remedy else "WEFT_CACHE_DIR names another"
        return f"{error.problem} and is not trusted, nothing in it is read or changed{what_then} ({remedy})"

    def refusal(self) -> str | None:
        """Why the directory cannot be used; None where it can, or is not there yet."""
        try:
            Folder(self.directory).close()
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"the kernel cache {self.directory} {self._reason(error)}"
        return None

    def path(self, key: str) -> str:
        """The file of a key."""
        return os.path.join(self.directory, key + SUFFIX)

    # -- reading and writing ---------------------------------------------------------------------------------------

    def get(self, key: str) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """What was put under a key; None, with a warning where something is wrong, when it cannot be had."""
        folder = self._open(create=False)
        if folder is None:
            return None
        with folder:
            try:
                _, facts, blobs = unpack(folder.read(key + SUFFIX, MAX_ENTRY, used=True), key)
                return facts, blobs
            except FileNotFoundError:
                return None
            except Untrusted as error:  # the next `put` takes its place, but for a directory
                replaced = os.path.islink(self.path(key)) or not os.path.isdir(self.path(key))
                what_then = "is made anew" if replaced else "is left alone"
                self._warn(
                    f"an entry of the kernel cache is not trusted and {what_then}: {self.path(key)}: {error}",
                    once=False,
                )
            except (OSError, MemoryError) as error:
                self._warn(f"an entry of the kernel cache cannot be read ({error}){WITHOUT}")
            except BadEntry as error:
                self._warn(
                    f"an entry of the kernel cache is damaged and is made anew: {self.path(key)}: {error}", once=False
                )
                with contextlib.suppress(OSError):
                    folder.remove(key + SUFFIX)
        return None

    def put(self, key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> None:
        """Keep something; a failure costs a warning."""
        try:
            data = pack(key, facts, blobs)
            try:
                kept = self._put(key, data)
            except FileNotFoundError:  # the directory was removed meanwhile: make it again, once
                kept = self._put(key, data)
        except IsADirectoryError:  # which `get` has told
            return
        except (OSError, MemoryError) as error:
            self._warn(f"an entry of the kernel cache cannot be written ({error}){WITHOUT}")
            return
        if kept:
            with self._lock:
                look = self._written is None or self._written + len(data) > self.size_cap // 16
                self._written = 0 if look else (self._written or 0) + len(data)
            if look:
                self.prune()

    def _put(self, key: str, data: bytes) -> bool:
        folder = self._open(create=True)
        if folder is None:
            return False
        with folder:
            folder.write(key + SUFFIX, data)
        return True

    # -- housekeeping ----------------------------------------------------------------------------------------------

    def _files(self, folder: Folder) -> list[tuple[float, int, str]]:
        """(last use, size, name) of every entry; leftovers of writers that died are removed on the way.

        A directory may hold other files as well, even of like names: only what has the name of an entry is one.
        """
        files = []
        try:
            for name, facts in folder.names():
                if _is_entry(name):
                    files.append((facts.st_mtime, facts.st_size, name))
                elif _is_leftover(name) and time.time() - facts.st_mtime > STALE_SECONDS:
                    with contextlib.suppress(OSError):
                        folder.remove(name)
        except OSError:
            return []
        return sorted(files)

    def prune(self, size_cap: int | None = None) -> int:
        """Remove the least recently used entries until the rest fits; returns how many were removed."""
        cap = self.size_cap if size_cap is None else size_cap
        folder = self._open(create=False)
        if folder is None:
            return 0
        removed = 0
        with folder:
            files = self._files(folder)
            total = sum(size for _, size, _ in files)
            for _, size, name in files:
                if total <= cap:
                    break
                with contextlib.suppress(OSError):
                    folder.remove(name)
                    removed += 1
                total -= size
        return removed

    def remove(self, entry: Entry) -> None:
        """Remove an entry that was listed."""
        folder = self._open(create=False)
        if folder is not None:
            with folder, contextlib.suppress(FileNotFoundError):
                folder.remove(os.path.basename(entry.path))

    def entries(self, check: bool = True) -> Iterator[Entry]:
        """Every entry, the least recently used first; checked byte for byte unless told not to."""
        folder = self._open(create=False)
        if folder is None:
            return
        with folder:
            for used, size, name in self._files(folder):
                path = os.path.join(self.directory, name)
                try:
                    data = folder.read(name, MAX_ENTRY)
                    if check:
                        _, facts, _ = unpack(data, name.removesuffix(SUFFIX))
                    else:
                        facts = json.loads(data[16 : 16 + int.from_bytes(data[8:16], "little")])["facts"]
                    yield Entry(path, size, used, str(facts.get("name", "?")))
                except (OSError, BadEntry, ValueError, KeyError, TypeError, AttributeError) as error:
                    yield Entry(path, size, used, "?", str(error))


_stores: dict[tuple[str, int], Store] = {}


@lru_cache(maxsize=1)
def _warn_of_no_home() -> None:
    warn(
        "no place for a kernel cache (this user has no home directory); kernels are compiled without it "
        "(WEFT_CACHE_DIR names one)",
        CacheWarning,
    )


def default_store() -> Store | None:
    """The cache that the settings ask for; None when it is switched off, and, with one warning, for a user without a
    home (in a container, say)."""
    if knobs.cache.disabled:
        return None
    directory = knobs.cache.dir
    if not directory:
        _warn_of_no_home()
        return None
    return store_in(os.path.expanduser(directory))  # nobody did where it is no shell that sets the variable


def store_in(directory: str) -> Store:
    """The cache in a directory; the same one each time, which warns but once."""
    key = (directory, knobs.cache.size)
    if key not in _stores:
        _stores[key] = Store(*key)
    return _stores[key]
