"""triton.runtime.cache: files by key, for libraries that keep things of their own beside the kernels.

Libraries load again what they keep here, and some of it is machine code. So the rules are those of the cache of kernels
(see `weft.runtime.trusted`): a file that others may have written is not there. Where the whole directory is not to be
trusted, files go, after a warning, into one that lives as long as the process.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from abc import ABC, abstractmethod
from typing import Any

from weft.backends.own_folder import own_folder
from weft.base import LaunchError
from weft.runtime import compiler_key, knobs
from weft.runtime.cache import default_store, store_in
from weft.runtime.trusted import Folder, Untrusted


def _base32(key: str) -> str:
    """A hexadecimal digest, shorter."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def default_cache_dir() -> str:
    """Where kernels are kept: TRITON_CACHE_DIR where it is set, Weft's own cache."""
    directory = os.environ.get("TRITON_CACHE_DIR")
    if directory:
        return directory
    store = default_store()
    return os.path.join(os.path.expanduser("~"), ".triton", "cache") if store is None else store.directory


def default_dump_dir() -> str:
    """Where stages are dumped."""
    return knobs.cache.dump_dir or os.path.join(default_cache_dir(), "dump")


MAX_GROUP = 16 << 20
"""Bytes of a file that names a group of others."""


def _trusted(directory: str) -> str:
    """The directory, made if it is missing; one of this process alone, with a warning, where others may write to it."""
    try:
        Folder(directory, create=True).close()
    except Untrusted as error:
        store_in(directory).warn_of(error)
        return str(own_folder())
    return directory


class CacheManager(ABC):
    """Files under a key."""

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file, if it is there."""

    @abstractmethod
    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Write a file; its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """Paths by name, of a group of files."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Remember a group of files."""


class FileCacheManager(CacheManager):
    """Files in a directory of their own below the cache's."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key
        if override and knobs.cache.override_dir:
            base = knobs.cache.override_dir
        else:
            base = default_dump_dir() if dump else default_cache_dir()
        if not override and not dump:
            base = _trusted(base)
        self.cache_dir = os.path.join(base, key)
        self.lock_path = None
        if not override and _trusted(self.cache_dir) != self.cache_dir:
            self.cache_dir = _trusted(str(own_folder() / key))

    def _make_path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename: str) -> bool:
        """Is it there, and to be trusted?"""
        return self.get_file(filename) is not None

    def get_file(self, filename: str) -> str | None:
        """The path of a file, if it is there and nobody else can have written it."""
        try:
            with Folder(self.cache_dir) as folder:
                folder.check(filename)
        except OSError:
            return None
        return self._make_path(filename)

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Write a file beside its place and rename it; its path."""
        content = data if isinstance(data, bytes) else str(data).encode()
        with Folder(self.cache_dir, create=True) as folder:
            folder.write(filename, content)
        return self._make_path(filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """Paths by name, of a group of files in this directory; None when it is not there or not whole."""
        try:
            with Folder(self.cache_dir) as folder:
                paths = json.loads(folder.read(f"__grp__{filename}", MAX_GROUP))["child_paths"]
            present = {name: path for name, path in paths.items() if path == self._make_path(os.path.basename(path))}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return present if all(self.has_file(os.path.basename(path)) for path in present.values()) else None

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Remember a group of files."""
        return self.put(json.dumps({"child_paths": group}), f"__grp__{filename}", binary=False)


class RemoteCacheBackend(ABC):
    """Files somewhere else."""

    def __init__(self, key: str) -> None:
        self.key = key

    @abstractmethod
    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The contents of those files that are there."""

    @abstractmethod
    def put(self, filename: str, data: bytes) -> None:
        """Write a file."""


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Files in Redis (needs the package `redis`)."""

    def __init__(self, key: str) -> None:
        import redis

        super().__init__(key)
        self._redis = redis.Redis(host=knobs.redis.host, port=knobs.redis.port)
        self._format = knobs.redis.key_format

    def _name(self, filename: str) -> str:
        return self._format.format(key=self.key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The contents of those files that are there."""
        values = self._redis.mget([self._name(f) for f in filenames])
        return {name: data for name, data in zip(filenames, values, strict=True) if data is not None}

    def put(self, filename: str, data: bytes) -> None:
        """Write a file."""
        self._redis.set(self._name(filename), data)


class RemoteCacheManager(CacheManager):
    """Files in the place that `knobs.cache.remote_manager_class` stands for; what is fetched gets a path here."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        backend = knobs.cache.remote_manager_class
        if backend is None:
            raise LaunchError(
                "there is no remote cache",
                hint="TRITON_REMOTE_CACHE_BACKEND names one: triton.runtime.cache:RedisRemoteCacheBackend, say",
            )
        self.key = key
        self._local = FileCacheManager(key, override=override, dump=dump)
        self._backend = None if override or dump else backend(key)
        """None for files that are for people, and stay here."""

    def get_file(self, filename: str) -> str | None:
        """Fetch a file; its path here."""
        if self._backend is None:
            return self._local.get_file(filename)
        files = self._backend.get([filename])
        return self._local.put(files[filename], filename) if filename in files else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Send a file; its path here."""
        if self._backend is not None:
            self._backend.put(filename, data if isinstance(data, bytes) else str(data).encode())
        return self._local.put(data, filename, binary)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """Fetch a group of files; None when it is not there or not whole."""
        if self._backend is None:
            return self._local.get_group(filename)
        name = f"__grp__{filename}"
        try:
            names = json.loads(self._backend.get([name])[name])
            files = self._backend.get(names)
            return {child: self._local.put(files[child], child) for child in names}
        except (ValueError, KeyError, TypeError):
            return None

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Remember a group of files that were sent: their names, for paths are other ones elsewhere."""
        if self._backend is not None:
            self._backend.put(f"__grp__{filename}", json.dumps(sorted(group)).encode())
        return self._local.put_group(filename, group)


def get_cache_manager(key: str) -> CacheManager:
    """Files under a key, kept by `knobs.cache.manager_class`, if that is set."""
    manager: type[CacheManager] = knobs.cache.manager_class or FileCacheManager
    return manager(_base32(key) if _is_hex(key) else hashlib.sha256(key.encode()).hexdigest())  # type: ignore[call-arg]


def get_override_manager(key: str) -> CacheManager:
    """Files that override stages."""
    return FileCacheManager(key, override=True)


def get_dump_manager(key: str) -> CacheManager:
    """Files that stages are dumped into."""
    return FileCacheManager(key, dump=True)


def _is_hex(text: str) -> bool:
    try:
        return bool(bytes.fromhex(text))
    except ValueError:
        return False


def triton_key() -> str:
    """A digest of the compiler."""
    return compiler_key()
