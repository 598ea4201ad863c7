"""Who may have written what a process reads back and runs: directories, links, files, and other users."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import socket
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import LaunchError
from weft.base import CacheWarning
from weft.cli import main
from weft.runtime import cache, knobs
from weft.runtime.cache import Store, pack, unpack
from weft.runtime.trusted import Folder, Untrusted, read_regular

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are POSIX's")

KEY, OTHER = "ab" * 32, "cd" * 32
FACTS = {"name": "kernel"}
BLOBS = {"object": b"code"}
STRANGER = 65534 if getattr(os, "geteuid", int)() != 65534 else 65533


@weft.jit
def seven(out):
    tl.store(out, 7)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A cache with an entry in it."""
    Store(tmp_path / "cache").put(KEY, FACTS, BLOBS)
    return tmp_path / "cache"


@contextmanager
def owned_by_a_stranger(path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> Iterator[None]:
    """Let a file, directory or link belong to another user: really, which takes root, or as the system's calls say."""
    if how == "really":
        if os.geteuid():
            pytest.skip("only root can give files to another user")
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        yield
        return
    facts = os.lstat(path)

    def pretend(call: Any) -> Any:
        def pretended(*args: Any, **kwargs: Any) -> os.stat_result:
            found = call(*args, **kwargs)
            if (found.st_dev, found.st_ino) != (facts.st_dev, facts.st_ino):
                return found  # type: ignore[no-any-return]
            return os.stat_result([*found[:4], STRANGER, *found[5:]])

        return pretended

    with monkeypatch.context() as patched:
        for call in ("lstat", "fstat"):
            patched.setattr(os, call, pretend(getattr(os, call)))
        yield


by_another = pytest.mark.parametrize("how", ["really", "as the system says"])


def state(directory: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All that could be changed in a directory, and the directory itself."""
    found = {".": (os.stat(directory).st_mode, os.stat(directory).st_mtime_ns, 0, b"")}
    for path in directory.iterdir():
        facts = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        found[path.name] = (facts.st_mode, facts.st_mtime_ns, facts.st_uid, content)
    return found


@contextmanager
def told() -> Iterator[list[str]]:
    """The texts of the cache's warnings."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    assert all(w.category is CacheWarning for w in caught)
    texts += [str(w.message) for w in caught]


# -- directories that others can write to ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720, 0o1777])
def test_an_open_directory_is_left_as_it_is(directory: Path, mode: int) -> None:
    old = directory / f"{KEY}.weft.1.2ab.tmp"
    old.write_bytes(b"left behind")
    os.utime(old, (1000, 1000))
    directory.chmod(mode)
    before, store = state(directory), Store(directory)
    with told() as texts:
        for _ in range(3):
            assert store.get(KEY) is None
            store.put(OTHER, FACTS, BLOBS)
            assert store.prune(0) == 0 and not list(store.entries())
    assert texts == [
        f"the kernel cache {directory} can be written by others (its mode is {mode:04o}) and is not trusted, nothing "
        f"in it is read or changed; kernels are compiled without it (`chmod go-w {directory}` closes it, "
        "WEFT_CACHE_DIR names another)"
    ]
    assert state(directory) == before


def test_kernels_run_without_it(directory: Path) -> None:
    directory.chmod(0o777)
    knobs.cache.dir = str(directory)
    out = np.zeros(1, np.int32)
    before = state(directory)
    with told() as texts:
        seven[(1,)](out)
        seven[(2,)](out)
    assert out[0] == 7 and len(texts) == 1 and state(directory) == before


@pytest.mark.parametrize(
    "command", [["ls"], ["ls", "--json"], ["verify"], ["verify", "--remove"], ["prune"], ["clear"]]
)
def test_commands_leave_it_alone(directory: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (directory / f"{OTHER}.weft").write_bytes(b"planted")
    directory.chmod(0o777)
    knobs.cache.dir = str(directory)
    before = state(directory)
    assert main(["cache", *command]) == 2
    assert capsys.readouterr().err == (
        f"error: the kernel cache {directory} can be written by others (its mode is 0777) and is not trusted, nothing "
        f"in it is read or changed (`chmod go-w {directory}` closes it, WEFT_CACHE_DIR names another)\n"
    )
    assert state(directory) == before


@by_another
def test_what_others_put_there_is_not_believed_once_it_is_closed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The way out that the warning names must not lead into the trap."""
    planted = directory / f"{KEY}.weft"
    planted.write_bytes(pack(KEY, FACTS, {"object": b"evil"}))
    store = Store(directory)
    with owned_by_a_stranger(planted, monkeypatch, how):
        owner = f"(its owner is uid {STRANGER}, this process is uid {os.geteuid()})"
        with told() as texts:
            assert store.get(KEY) is None
        problem = f"it belongs to another user {owner}"
        assert texts == [f"an entry of the kernel cache is not trusted and is made anew: {planted}: {problem}"]
        assert [e.error for e in store.entries()] == [problem]
        store.put(KEY, FACTS, BLOBS)
        assert store.get(KEY) == (FACTS, BLOBS)
    assert planted.stat().st_uid == os.geteuid()


@by_another
def test_the_directory_of_another_user(directory: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    before, store = state(directory), Store(directory)
    with owned_by_a_stranger(directory, monkeypatch, how), told() as texts:
        assert store.get(KEY) is None
        store.put(OTHER, FACTS, BLOBS)
    assert texts == [
        f"the kernel cache {directory} belongs to another user (its owner is uid {STRANGER}, this process is uid "
        f"{os.geteuid()}) and is not trusted, nothing in it is read or changed; kernels are compiled without it "
        "(WEFT_CACHE_DIR names another)"
    ]
    assert state(directory) == before


def test_a_program_with_the_rights_of_another_user_has_no_cache(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who runs it says in the environment where the cache is, and has other rights than the program."""
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    with told() as texts:
        assert Store(directory).get(KEY) is None
    assert len(texts) == 1
    assert f"this process is uid 1234, acting as {os.geteuid()}) and is not trusted" in texts[0]


@pytest.mark.parametrize("mask", [0, 0o002, 0o077])
def test_what_is_made_is_private(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        Store(tmp_path / "a" / "b" / "cache").put(KEY, FACTS, BLOBS)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/b", "a/b/cache")] == [0o700] * 3
    assert stat.S_IMODE((tmp_path / "a" / "b" / "cache" / f"{KEY}.weft").stat().st_mode) == 0o600


def test_a_directory_below_one_like_tmp(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    store = Store(tmp_path / "cache")
    store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) == (FACTS, BLOBS)


def test_a_relative_directory_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store("cache")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.put(KEY, FACTS, BLOBS)
    assert (tmp_path / "cache" / f"{KEY}.weft").exists() and not list((tmp_path / "elsewhere").iterdir())


# -- symbolic links ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["{}/real/cache", "real/../real/./cache", "{}/real//cache/"])
def test_links_of_ones_own_lead_to_the_cache(tmp_path: Path, target: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(target.format(tmp_path))
    (tmp_path / "to_link").symlink_to("link")
    store = Store(tmp_path / "to_link")
    store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) == (FACTS, BLOBS)
    assert (tmp_path / "real" / "cache" / f"{KEY}.weft").exists()


def test_a_way_back_out_of_a_link_is_the_systems(tmp_path: Path) -> None:
    """`link/..` is the parent of what the link leads to."""
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "deep")
    Store(f"{tmp_path}/link/../cache").put(KEY, FACTS, BLOBS)
    assert (tmp_path / "far" / "cache" / f"{KEY}.weft").exists()


@by_another
@pytest.mark.parametrize("level", ["link", "link/below", "link/below/cache"])
def test_links_of_others_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, level: str
) -> None:
    """Another user's link leads into a directory of this user, which nothing else speaks against."""
    mine = tmp_path / "mine"
    Store(mine / "below" / "cache").put(KEY, FACTS, BLOBS)
    link = tmp_path / level
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(mine / Path(level).relative_to("link"))
    before, store = state(mine / "below"), Store(tmp_path / "link" / "below" / "cache")
    missing = Store(link / "made" / "here")
    with owned_by_a_stranger(link, monkeypatch, how), told() as texts:
        for each in (store, missing):
            assert each.get(KEY) is None
            each.put(OTHER, FACTS, BLOBS)
    for text in texts:
        assert f"is reached by {link}, a symbolic link of another user (uid {STRANGER}) and is not trusted" in text
    assert len(texts) == 2 and state(mine / "below") == before and not list(mine.rglob("made"))


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with told() as texts:
        Store(tmp_path / "a").put(KEY, FACTS, BLOBS)
    reason = os.strerror(errno.ELOOP)
    assert texts == [f"the kernel cache {tmp_path / 'a'} cannot be used ({reason}); kernels are compiled without it"]


# -- files under the names of entries ----------------------------------------------------------------------------------


def _link_elsewhere(path: Path) -> None:
    path.symlink_to(path.parent.parent / "mine.txt")


def _another_name(path: Path) -> None:
    os.link(path.parent.parent / "mine.txt", path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _huge(path: Path) -> None:
    path.touch(0o600)
    os.truncate(path, cache.MAX_ENTRY + 1)  # without taking room


def _open_to_others(path: Path) -> None:
    path.write_bytes(pack(KEY, FACTS, BLOBS))
    path.chmod(0o622)


STRANGE = {
    "a pipe": (os.mkfifo if hasattr(os, "mkfifo") else None, "it is not a regular file"),
    "a socket": (_socket, "it is not a regular file"),
    "a link": (_link_elsewhere, "it is a symbolic link"),
    "another name of a file": (_another_name, "it has other names as well (hard links)"),
    "more than memory": (_huge, f"it is larger than {cache.MAX_ENTRY} bytes"),
    "a file that others can write to": (_open_to_others, "it can be written by others (its mode is 0622)"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_entry_is_neither_waited_for_nor_believed(directory: Path, kind: str) -> None:
    make, problem = STRANGE[kind]
    mine, path = directory.parent / "mine.txt", directory / f"{KEY}.weft"
    mine.write_bytes(pack(KEY, FACTS, {"object": b"of the user"}))
    os.utime(mine, (1000, 1000))
    path.unlink()
    assert make is not None
    make(path)
    store = Store(directory)
    with told() as texts:
        assert store.get(KEY) is None
    assert texts == [f"an entry of the kernel cache is not trusted and is made anew: {path}: {problem}"]
    assert [e.error for e in store.entries()] == [problem]
    store.put(KEY, FACTS, BLOBS)
    assert store.get(KEY) == (FACTS, BLOBS)
    assert unpack(mine.read_bytes())[2] == {"object": b"of the user"} and mine.stat().st_mtime == 1000


def test_a_directory_in_place_of_an_entry(directory: Path) -> None:
    path = directory / f"{KEY}.weft"
    path.unlink()
    path.mkdir()
    (path / "file").touch()
    store = Store(directory)
    with told() as texts:
        assert store.get(KEY) is None
        store.put(KEY, FACTS, BLOBS)
    told_once = f"an entry of the kernel cache is not trusted and is left alone: {path}: it is not a regular file"
    assert texts == [told_once]
    assert store.prune(-1) == 0 and (path / "file").exists()


def test_only_entries_are_removed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A user may have named a directory that holds other things."""
    names = [
        "notes.txt",
        "x.weft",
        f"{KEY[1:]}.weft",
        f"{KEY.upper()}.weft",
        f"{KEY}.weft.bak",
        "x.weft.1.2.tmp",
        "a.tmp",
    ]
    for name in names:
        (directory / name).write_bytes(b"of the user")
        os.utime(directory / name, (1000, 1000))
    (directory / "sub").mkdir()
    (directory / "sub" / f"{KEY}.weft").write_bytes(b"of the user")
    before = state(directory)
    knobs.cache.dir = str(directory)
    assert (
        main(["cache", "verify", "--remove"])
        == main(["cache", "prune", "--size", "0"])
        == main(["cache", "clear"])
        == 0
    )
    assert capsys.readouterr().out == "1 entries, 0 damaged\n1 entries removed\n0 entries removed\n"
    after = state(directory)
    assert {**after, ".": before["."]} == {name: facts for name, facts in before.items() if name != f"{KEY}.weft"}
    assert (directory / "sub" / f"{KEY}.weft").read_bytes() == b"of the user"


def check_hostile_headers(trials: int, seed: int = 0) -> None:
    """Entries whose digest fits and whose header does not: taken apart as they were made, or no entry."""
    rng = random.Random(seed)
    header = json.dumps({"key": KEY, "facts": FACTS, "blobs": [["object", 4], ["ttir", 2]]}).encode()
    for _ in range(trials):
        data = bytearray(header)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            part = rng.choice([b"", b"[", b"{", b'"', b"-1", b"1e99", b"null", b"\\u0000", b"\xff", rng.randbytes(2)])
            data[at : at + rng.randrange(4)] = part
        size = rng.choice([len(data), rng.randrange(1 << 20), rng.randrange(1 << 64)])
        body = cache.MAGIC + size.to_bytes(8, "little") + bytes(data) + b"codeir"
        try:
            found, facts, blobs = unpack(body + hashlib.sha256(body).digest())
        except cache.BadEntry:
            continue
        assert type(found) is str and type(facts) is dict and sum(map(len, blobs.values())) <= len(body)


def test_hostile_headers() -> None:
    check_hostile_headers(2000)


@pytest.mark.slow
def test_hostile_headers_long() -> None:
    check_hostile_headers(100_000, seed=1)


# -- what else is read and written -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "/etc/passwd"])
def test_names_of_files_lead_nowhere_else(directory: Path, name: str) -> None:
    with Folder(str(directory)) as folder:
        for call in (folder.check, lambda n: folder.read(n, 10), lambda n: folder.write(n, b""), folder.remove):
            with pytest.raises(Untrusted, match="is not the name of a file in a directory"):
                call(name)


def test_tile_ir_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "kernel.ttir"
    os.mkfifo(pipe)
    with pytest.raises(weft.CompilationError) as caught:
        weft.compile(str(pipe))
    assert str(caught.value) == f"error: cannot read {pipe}: it is not a regular file"
    with pytest.raises(Untrusted):
        read_regular("/dev/zero", 10)


def test_dumps_are_not_written_through_links(tmp_path: Path) -> None:
    mine, dumps = tmp_path / "mine.txt", tmp_path / "dumps"
    mine.write_text("of the user")
    dumps.mkdir()
    (dumps / "seven.ttir").symlink_to(mine)
    os.mkfifo(dumps / "seven.llir")
    knobs.cache.dump_dir = str(dumps)
    knobs.compilation.dump = "ttir,llir"
    seven.warmup(np.zeros(1, np.int64), grid=(1,))
    assert mine.read_text() == "of the user"
    assert "module" in (dumps / "seven.ttir").read_text() and "define" in (dumps / "seven.llir").read_text()


def test_dumps_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "dumps").touch()
    knobs.cache.dump_dir = str(tmp_path / "dumps")
    knobs.compilation.dump = "ttir"
    with pytest.raises(LaunchError) as caught:
        seven.warmup(np.zeros(1, np.int16), grid=(1,))
    assert str(caught.value) == (
        f"the ttir of seven cannot be dumped into {tmp_path / 'dumps'} (File exists)\n"
        "hint: TRITON_DUMP_DIR names the directory; without it stages are shown on stderr"
    )


@pytest.mark.parametrize("what", ["the directory", "a file"])
def test_tile_ir_of_others_is_not_compiled_instead(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "instead"
    folder.mkdir(mode=0o700)
    path = folder / "seven.ttir"
    path.write_text(seven.warmup(np.zeros(1, np.uint8), grid=(1,)).asm["ttir"].replace("7", "6"))
    path.chmod(0o600)
    knobs.compilation.override, knobs.cache.override_dir = True, str(folder)
    out = np.zeros(1, np.uint8)
    seven.warmup(out, grid=(1,))
    (folder if what == "the directory" else path).chmod(0o777)
    with pytest.raises(LaunchError) as caught:
        seven.warmup(np.zeros(1, np.uint16), grid=(1,))
    it = str(folder) if what == "the directory" else f"{path}: it"
    assert str(caught.value) == (
        f"what is to be compiled instead of seven is not trusted: {it} can be written by others (its mode is 0777)\n"
        "hint: TRITON_OVERRIDE_DIR names a directory of your own, with files of your own, not writable by others"
    )
