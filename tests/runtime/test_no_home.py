"""A user without a home, as in many containers: kernels run, with one warning."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.base import CacheWarning
from weft.runtime import cache


@weft.jit
def fill(out, VALUE: tl.constexpr):
    tl.store(out, VALUE)


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as it does where nothing tells
    for name in ("WEFT_CACHE_DIR", "WEFT_HOME", "TRITON_HOME", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    with knobs.cache.scope():
        knobs.cache.dir = knobs.env
        cache._warn_of_no_home.cache_clear()
        yield
    cache._warn_of_no_home.cache_clear()


def test_kernels_run_without_a_home() -> None:
    out = np.zeros(1, np.int32)
    with pytest.warns(CacheWarning, match=r"no place for a kernel cache \(this user has no home directory\)") as caught:
        fill[(1,)](out, VALUE=1)
        fill[(1,)](out, VALUE=2)
    assert [w.filename for w in caught] == [__file__]
    assert out[0] == 2


def test_a_directory_that_is_given_is_used(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        knobs.cache.dir = str(tmp_path)
        fill[(1,)](np.zeros(1, np.int32), VALUE=3)
    assert list(tmp_path.glob("*.weft"))


def test_the_user_s_directory_for_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each system keeps caches: the directory given by the environment, else one below the home."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", str(tmp_path)))

    def found(system: str, **environment: str) -> str:
        with monkeypatch.context() as patched:
            patched.setattr(knobs.sys, "platform", system)
            for name, value in environment.items():
                patched.setenv(name, value)
            return os.path.relpath(knobs.cache.dir, tmp_path).replace(os.sep, "/")

    elsewhere = str(tmp_path / "elsewhere")
    assert found("linux") == ".cache/weft"
    assert found("linux", XDG_CACHE_HOME="not/absolute") == ".cache/weft"
    assert found("linux", XDG_CACHE_HOME=elsewhere, LOCALAPPDATA="/no") == "elsewhere/weft"
    assert found("darwin", XDG_CACHE_HOME=elsewhere) == "Library/Caches/weft"
    assert found("win32") == "AppData/Local/weft/Cache"
    assert found("win32", LOCALAPPDATA=elsewhere) == "elsewhere/weft/Cache"


def test_a_tilde_is_the_home_where_no_shell_saw_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", str(tmp_path)))
    monkeypatch.setenv("WEFT_CACHE_DIR", os.path.join("~", "kernels"))
    store = cache.default_store()
    assert store is not None and store.directory == str(tmp_path / "kernels")
