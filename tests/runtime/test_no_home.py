"""A user without a home, as in many containers: kernels run, with one warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import platformdirs
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
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_cache_dir", refuse)
    for name in ("WEFT_CACHE_DIR", "WEFT_HOME", "TRITON_HOME", "TRITON_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    with knobs.cache.scope():
        knobs.cache.dir = knobs.env
        cache._users_directory.cache_clear()
        yield
    cache._users_directory.cache_clear()


def test_kernels_run_without_a_home() -> None:
    out = np.zeros(1, np.int32)
    with pytest.warns(CacheWarning, match=r"no place for a kernel cache \(could not determine the home") as caught:
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
