"""triton.runtime.cache: what libraries keep beside the kernels, and load again, is what this user has put there."""

from __future__ import annotations

import json
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from weft.base import CacheWarning, LaunchError
from weft.compat.shim.runtime.cache import (
    FileCacheManager,
    RemoteCacheBackend,
    RemoteCacheManager,
    get_cache_manager,
    get_dump_manager,
    get_override_manager,
)
from weft.runtime import knobs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are POSIX's")

KEY = "ab" * 32


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that TRITON_CACHE_DIR names."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "kept"))
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "kernels")
        yield tmp_path / "kept"


def test_what_is_put_is_found(base: Path) -> None:
    files = get_cache_manager(KEY)
    assert files.get_file("a.so") is None and files.get_group("a.json") is None
    path = files.put(b"code", "a.so")
    assert Path(path).read_bytes() == b"code" and files.get_file("a.so") == path and Path(path).parent.parent == base
    files.put_group("a.json", {"a.so": path})
    assert get_cache_manager(KEY).get_group("a.json") == {"a.so": path}
    assert [stat.S_IMODE(p.stat().st_mode) for p in (base, Path(path).parent, Path(path))] == [0o700, 0o700, 0o600]


def test_what_others_may_have_written_is_not_there() -> None:
    files = get_cache_manager(KEY)
    path = Path(files.put(b"code", "a.so"))
    files.put_group("a.json", {"a.so": str(path)})
    path.chmod(0o666)
    assert files.get_file("a.so") is None and files.get_group("a.json") is None
    path.unlink()
    os.mkfifo(path)
    assert files.get_file("a.so") is None
    path.unlink()
    path.symlink_to("/bin/sh")
    assert files.get_file("a.so") is None
    assert files.put(b"code", "a.so") == str(path) and not path.is_symlink() and files.get_file("a.so") == str(path)


@pytest.mark.parametrize("name", ["../b.so", "/bin/sh", "..", ""])
def test_files_are_within_the_directory(name: str) -> None:
    files = get_cache_manager(KEY)
    assert files.get_file(name) is None
    with pytest.raises(OSError, match="is not the name of a file in a directory"):
        files.put(b"", name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "5",
        "{}",
        '{"child_paths": 5}',
        '{"child_paths": {"sh": "/bin/sh"}}',
        '{"child_paths": {"a": 5}}',
        "[" * 9999,
    ],
)
def test_groups_that_are_none(text: str) -> None:
    files = get_cache_manager(KEY)
    files.put(text, "__grp__a.json")
    assert not files.get_group("a.json")


@pytest.mark.parametrize("level", ["the directory", "that of the key"])
def test_an_open_directory_is_left_alone(base: Path, level: str) -> None:
    """Libraries go on, in a directory that goes when the process does."""
    first = Path(get_cache_manager(KEY).put(b"planted", "a.so"))
    opened = base if level == "the directory" else first.parent
    opened.chmod(0o777)
    before = sorted(opened.iterdir())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            files = get_cache_manager(KEY)
            assert files.get_file("a.so") is None
            path = Path(files.put(b"code", "other.so"))
    assert path.read_bytes() == b"code" and base not in path.parents and path.parent.stat().st_mode & 0o077 == 0
    assert [w.category for w in caught] == [CacheWarning]
    assert str(caught[0].message).startswith(
        f"the kernel cache {opened} can be written by others (its mode is 0777) and"
    )
    assert sorted(opened.iterdir()) == before and opened.stat().st_mode & 0o777 == 0o777


def test_dumps_and_overrides(tmp_path: Path) -> None:
    knobs.cache.dump_dir, knobs.cache.override_dir = str(tmp_path / "dump"), str(tmp_path / "override")
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump").chmod(0o1777)  # as /tmp
    path = get_dump_manager("k").put("text", "a.ttir", binary=False)
    assert path == str(tmp_path / "dump" / "k" / "a.ttir")
    override = get_override_manager("k")
    assert override.get_file("a.ttir") is None and not (tmp_path / "override").exists()
    (tmp_path / "override" / "k").mkdir(parents=True, mode=0o755)
    (tmp_path / "override" / "k" / "a.ttir").write_text("text")
    (tmp_path / "override" / "k" / "a.ttir").chmod(0o644)
    (tmp_path / "override" / "k").chmod(0o755)
    assert isinstance(override, FileCacheManager) and override.has_file("a.ttir")
    (tmp_path / "override" / "k").chmod(0o777)
    assert not override.has_file("a.ttir")


def test_groups_are_json() -> None:
    files = get_cache_manager(KEY)
    path = files.put_group("a.json", {})
    assert json.loads(Path(path).read_text()) == {"child_paths": {}}


class Elsewhere(RemoteCacheBackend):
    """Files in this process."""

    files: ClassVar[dict[tuple[str, str], bytes]] = {}

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        return {name: self.files[self.key, name] for name in filenames if (self.key, name) in self.files}

    def put(self, filename: str, data: bytes) -> None:
        self.files[self.key, filename] = data


def test_files_elsewhere(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Elsewhere, "files", {})
    with pytest.raises(LaunchError, match="^there is no remote cache\nhint: TRITON_REMOTE_CACHE_BACKEND names one"):
        RemoteCacheManager("k")
    knobs.cache.remote_manager_class, knobs.cache.manager_class = Elsewhere, RemoteCacheManager
    files = get_cache_manager(KEY)
    assert isinstance(files, RemoteCacheManager) and files.get_file("a") is None and files.get_group("a") is None
    paths = {"a": files.put("text", "a", binary=False), "b": files.put(b"code", "b")}
    files.put_group("a", paths)
    for path in paths.values():
        Path(path).unlink()  # another machine
    again = get_cache_manager(KEY)
    assert again.get_group("a") == paths and Path(paths["b"]).read_bytes() == b"code"
    assert again.get_file("a") == paths["a"] and Path(paths["a"]).read_text() == "text"
    del Elsewhere.files[files.key, "b"]
    assert again.get_group("a") is None and again.get_file("b") is None
