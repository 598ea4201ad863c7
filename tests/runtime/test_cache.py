"""The cache of kernels: whole entries or none, whatever happens to the files."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from weft.base import CacheWarning
from weft.runtime import cache
from weft.runtime.cache import BadEntry, Store, pack, unpack

KEY = "ab" * 32
FACTS = {"name": "kernel", "params": ["*fp32", "i32"], "scratch_bytes": 64}
BLOBS = {"object": bytes(range(256)) * 40, "ttir": b"module {}", "empty": b""}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def test_what_is_put_is_found(store: Store) -> None:
    assert store.get(KEY) is None
    store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) == (FACTS, BLOBS)
    assert Store(store.directory).get(KEY) == (FACTS, BLOBS)
    assert store.get("cd" * 32) is None


def test_the_directory_is_private(store: Store) -> None:
    store.put(KEY, FACTS, BLOBS)
    if sys.platform != "win32":
        assert os.stat(store.directory).st_mode & 0o777 == 0o700
        assert os.stat(store.path(KEY)).st_mode & 0o777 == 0o600


def _damage(data: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(6)
    if kind == 0:
        place = rng.randrange(len(data))
        return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
    if kind == 1:
        return data[: rng.randrange(len(data))]
    if kind == 2:
        return b""
    if kind == 3:
        return data + rng.randbytes(rng.randrange(1, 100))
    if kind == 4:
        place = rng.randrange(len(data) - 50)
        return data[:place] + rng.randbytes(50) + data[place + 50 :]
    return data[len(data) // 2 :] + data[: len(data) // 2]


def check_damage(store: Store, trials: int, seed: int = 0) -> None:
    """Every damaged entry is a miss with a warning, and is replaced by the next write."""
    rng = random.Random(seed)
    whole = pack(KEY, FACTS, BLOBS)
    for _ in range(trials):
        damaged = _damage(whole, rng)
        if damaged == whole:
            continue
        path = Path(store.path(KEY))
        path.write_bytes(damaged)
        path.chmod(0o600)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert store.get(KEY) is None
        assert [w.category for w in caught] == [CacheWarning]
        assert not os.path.exists(store.path(KEY))
    store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) == (FACTS, BLOBS)


def test_damage_is_a_miss(store: Store) -> None:
    store.put(KEY, FACTS, BLOBS)
    check_damage(store, 300)


@pytest.mark.slow
def test_damage_is_a_miss_long(store: Store) -> None:
    store.put(KEY, FACTS, BLOBS)
    check_damage(store, 10_000, seed=1)


def test_swapped_entries_are_noticed(store: Store) -> None:
    other = "cd" * 32
    store.put(KEY, FACTS, BLOBS)
    store.put(other, FACTS, BLOBS)
    os.replace(store.path(KEY), store.path(other))
    with pytest.warns(CacheWarning, match="belongs to another kernel"):
        assert store.get(other) is None


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"key":1,"facts":{},"blobs":[]}',
        b'{"key":"x","facts":{},"blobs":[["a",-1]]}',
        b'{"key":"x","facts":{},"blobs":[["a",1e9]]}',
        b'{"key":"x","facts":{},"blobs":[["a",99999999999]]}',
        b'{"key":"x","facts":[],"blobs":[]}',
        b"\xff\xfe",
    ],
)
def test_a_bad_header_with_a_good_digest(header: bytes) -> None:
    import hashlib

    body = cache.MAGIC + len(header).to_bytes(8, "little") + header
    with pytest.raises(BadEntry):
        unpack(body + hashlib.sha256(body).digest())


def check_kills(tmp_path: Path, trials: int) -> None:
    """A writer killed at any moment leaves an entry that is whole, old or new, or none."""
    rng = random.Random(0)
    store = Store(tmp_path / "cache")
    hits = 0
    for _ in range(trials):
        begun, begin = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(begin, b"!")
            for n in range(1_000_000):
                Store(store.directory).put(KEY, {"name": "kernel"}, {"object": bytes([n % 256]) * 300_000})
            os._exit(0)
        os.read(begun, 1)  # a large process takes long to fork, on a busy machine
        os.close(begun)
        os.close(begin)
        time.sleep(rng.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = store.get(KEY)
        if found is not None:
            hits += 1
            assert len(found[1]["object"]) == 300_000
            assert len(set(found[1]["object"])) == 1
    assert hits > trials // 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_writer_does_no_harm(tmp_path: Path) -> None:
    check_kills(tmp_path, 40)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_writer_does_no_harm_long(tmp_path: Path) -> None:
    check_kills(tmp_path, 1000)


def _die_at(call: int) -> None:
    """Let the system's calls of a write kill this process before one of them is done."""
    count = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return wrapped

    for name in ("lstat", "mkdir", "open", "fstat", "write", "fsync", "close", "replace", "scandir", "unlink"):
        setattr(os, name, wrap(getattr(os, name)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("old", [None, (FACTS, {"object": b"old"})])
def test_a_writer_killed_at_each_call(tmp_path: Path, old: tuple[dict[str, Any], dict[str, bytes]] | None) -> None:
    """Whether there was an entry before or not: that one, the new one, or none."""
    new, seen = (FACTS, {"object": b"new"}), []
    while True:
        store = Store(tmp_path / f"{len(seen)}" / "cache")
        if old is not None:
            store.put(KEY, *old)
        child = os.fork()
        if child == 0:
            _die_at(len(seen) + 1)
            Store(store.directory).put(KEY, *new)
            os._exit(0)
        ended = os.waitpid(child, 0)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seen.append(store.get(KEY))
            store.put(KEY, FACTS, BLOBS)
            assert store.get(KEY) == (FACTS, BLOBS)
        if ended == 0:
            break
        assert ended == signal.SIGKILL
    olds = seen.index(new)
    assert seen == [old] * olds + [new] * (len(seen) - olds)
    assert olds > 10 and len(seen) - olds > 2


CALLS = ("open", "read", "write", "fsync", "close", "replace", "mkdir", "lstat", "fstat", "utime", "unlink", "scandir")
ERRORS = (errno.EBUSY, errno.ESTALE, errno.ENOENT, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: errno.errorcode[e])
@pytest.mark.thinned(4)
def test_a_failing_disk_costs_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: int) -> None:
    store = Store(tmp_path / "cache")
    store.put(KEY, FACTS, BLOBS)
    real = getattr(os, call)

    def fails(*args: object, **kwargs: object) -> object:
        if any(str(tmp_path) in str(a) or KEY[:4] in str(a) or isinstance(a, int) for a in args):
            if call == "close":
                real(*args, **kwargs)
            raise OSError(error, os.strerror(error))
        return real(*args, **kwargs)

    with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patched.setattr(os, call, fails)
        for fresh in (store, Store(tmp_path / "cache")):
            for key in (KEY, "cd" * 32):
                found = fresh.get(key)
                assert found is None or found == (FACTS, BLOBS)
                fresh.put(key, FACTS, BLOBS)
    assert all(w.category is CacheWarning for w in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        last = Store(tmp_path / "cache")
        last.put(KEY, FACTS, BLOBS)
        assert last.get(KEY) == (FACTS, BLOBS)


def test_unreadable_files_are_a_miss(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, FACTS, BLOBS)

    def refuses(*args: object, **kwargs: object) -> object:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "read", refuses)
    with pytest.warns(CacheWarning, match="cannot be read"):
        assert store.get(KEY) is None


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory(tmp_path: Path) -> None:
    (tmp_path / "ro").mkdir(mode=0o500)
    store = Store(tmp_path / "ro" / "cache")
    with pytest.warns(CacheWarning, match="cannot be used"):
        store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) is None


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_directory_of_another_user_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        Store(tmp_path / "cache").put(KEY, FACTS, BLOBS)
    assert not list((tmp_path / "cache").iterdir())


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    with pytest.warns(CacheWarning):
        Store(tmp_path / "cache").put(KEY, FACTS, BLOBS)


def test_the_directory_may_vanish(store: Store) -> None:
    store.put(KEY, FACTS, BLOBS)
    shutil.rmtree(store.directory)
    assert store.get(KEY) is None
    store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) == (FACTS, BLOBS)


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", size_cap=1 << 30)
    for i in range(8):
        store.put(f"{i:064x}", FACTS, {"object": bytes(10_000)})
        os.utime(store.path(f"{i:064x}"), (1000 + i, 1000 + i))
    store.get(f"{0:064x}")  # used now
    store.prune(35_000)
    left = {os.path.basename(e.path)[:64] for e in store.entries()}
    assert left == {f"{i:064x}" for i in (0, 6, 7)}


def test_the_size_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", size_cap=100_000)
    for i in range(100):
        store.put(f"{i:064x}", FACTS, {"object": bytes(10_000)})
    assert sum(e.size for e in store.entries()) <= 120_000


def test_leftovers_are_removed(store: Store) -> None:
    store.put(KEY, FACTS, BLOBS)
    old, new = Path(store.path("a" * 64) + ".1.2ab.tmp"), Path(store.path("b" * 64) + ".2.3cd.tmp")
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    store.prune()
    assert not old.exists() and new.exists()


def test_listing_shows_damage(store: Store) -> None:
    store.put(KEY, FACTS, BLOBS)
    Path(store.path("cd" * 32)).write_bytes(b"nonsense")
    found = {os.path.basename(e.path)[:2]: e for e in store.entries()}
    assert found["ab"].name == "kernel" and found["ab"].error is None
    assert found["cd"].error


def _many_writers(directory: str, removes: bool, quiet: bool, rounds: int) -> None:
    warnings.simplefilter("ignore" if quiet else "error")
    store = Store(directory)
    for i in range(rounds):
        key = f"{i % 8:064x}"
        found = store.get(key)
        if found is not None:
            assert found[1]["object"] == key.encode() * 500
        store.put(key, {"name": key}, {"object": key.encode() * 500})
        if removes and i % 20 == 19:
            shutil.rmtree(directory, ignore_errors=True)


def check_concurrency(tmp_path: Path, processes: int, rounds: int, *, removing: bool) -> None:
    """Many processes on the same keys; where one keeps removing the directory, the others may lose an entry."""
    context = multiprocessing.get_context("spawn")
    directory = str(tmp_path / "cache")
    workers = [
        context.Process(target=_many_writers, args=(directory, removing and n == 0, removing, rounds))
        for n in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * processes


@pytest.mark.parametrize("removing", [False, True])
def test_many_writers(tmp_path: Path, removing: bool) -> None:
    check_concurrency(tmp_path, 2, 60, removing=removing)


def check_threads(tmp_path: Path, threads: int, rounds: int) -> None:
    """Threads that share a store; the size is looked at meanwhile."""
    store = Store(tmp_path / "cache", size_cap=40_000)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(rounds):
            key = f"{rng.randrange(16):064x}"
            found = store.get(key)
            assert found is None or found[1]["object"] == key.encode() * 100
            store.put(key, {"name": key}, {"object": key.encode() * 100})

    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("error")
        list(pool.map(work, range(threads)))
    assert all(entry.error is None for entry in store.entries())


def test_many_threads(tmp_path: Path) -> None:
    check_threads(tmp_path, 8, 20)


@pytest.mark.slow
def test_many_threads_long(tmp_path: Path) -> None:
    check_threads(tmp_path, 32, 200)


@pytest.mark.slow
@pytest.mark.parametrize("removing", [False, True])
def test_many_writers_long(tmp_path: Path, removing: bool) -> None:
    check_concurrency(tmp_path, 16, 480, removing=removing)
