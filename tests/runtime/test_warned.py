"""Warnings of the runtime name the user's line, also those that arise in threads of Weft."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.base import CacheWarning
from weft.compiler import ASTSource
from weft.runtime.futures import AsyncCompileMode


@weft.jit
def filled(out, N: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, N)


OUT = np.zeros(1, np.int32)


def launched() -> None:
    filled[(1,)](OUT, N=1)


def many() -> None:
    weft.compile_many([lambda: filled.warmup(OUT, N=2, grid=(1,))])


def many_sources() -> None:
    weft.compile_many([ASTSource(filled, {"out": "*i32", "N": "constexpr"}, {"N": 3})])


def asynchronous() -> None:
    with ThreadPoolExecutor(1) as threads, AsyncCompileMode(threads):
        filled.warmup(OUT, N=4, grid=(1,))


def a_thread_of_the_users() -> None:
    thread = threading.Thread(target=lambda: filled[(1,)](OUT, N=5))
    thread.start()
    thread.join()


@pytest.mark.parametrize("act", [launched, many, many_sources, asynchronous, a_thread_of_the_users])
def test_warnings_name_the_users_line(act: Callable[[], None], tmp_path: Path) -> None:
    place: Any = tmp_path / "file"
    place.touch()
    filled.cache.clear()
    with knobs.cache.scope(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        knobs.cache.dir = str(place)
        act()
    [told] = [w for w in caught if w.category is CacheWarning]
    first = act.__code__.co_firstlineno
    assert told.filename == __file__ and first < told.lineno <= first + 2
