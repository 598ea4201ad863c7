"""Settings and their environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft import knobs
from weft.backends.cpu import driver
from weft.base import LaunchError
from weft.runtime.cache import default_store
from weft.runtime.knobs import HookChain, parse_size


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with knobs.compilation.scope(), knobs.cache.scope():
        for text, value in (("1", True), ("true", True), ("0", False), ("off", False)):
            monkeypatch.setenv("TRITON_ALWAYS_COMPILE", text)
            knobs.compilation.reset()
            assert knobs.compilation.always_compile is value
        monkeypatch.setenv("WEFT_ALWAYS_COMPILE", "1")  # Weft's own name wins
        knobs.refresh_knobs()
        assert knobs.compilation.always_compile is True
        monkeypatch.setenv("WEFT_CACHE_SIZE", "3M")
        knobs.refresh_knobs()
        assert knobs.cache.size == 3 << 20


def test_scopes_and_env() -> None:
    before = knobs.runtime.debug
    with knobs.runtime.scope():
        knobs.runtime.debug = not before
        assert knobs.runtime.debug is not before
        knobs.runtime.debug = knobs.env
        assert knobs.runtime.debug is before
        knobs.runtime.debug = not before
    assert knobs.runtime.debug is before


def test_unknown_settings() -> None:
    with pytest.raises(AttributeError, match="there is no setting 'debgu'"):
        knobs.runtime.debgu = True


def test_copies_are_apart() -> None:
    copy = knobs.autotuning.copy()
    copy.print = True
    assert knobs.autotuning.print is False or knobs.autotuning.print != copy.print
    assert set(copy.knobs) == {"cache", "print"}


def test_hook_chains() -> None:
    seen: list[int] = []
    chain = HookChain()
    assert not chain
    chain.add(one := lambda: seen.append(1))
    chain.add(one)
    chain.add(lambda: seen.append(2))
    chain()
    chain.remove(one)
    chain()
    assert seen == [1, 2, 2] and chain


@pytest.mark.parametrize(("text", "size"), [("10", 10), ("1k", 1024), ("2MB", 2 << 20), ("0.5G", 1 << 29)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_the_table_names_every_setting() -> None:
    table = {name: variables for name, variables, _ in knobs.table()}
    assert table["cache.dir"] == "WEFT_CACHE_DIR"
    assert table["runtime.debug"] == "WEFT_DEBUG TRITON_DEBUG"


def test_a_variable_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_SIZE", "much")
    message = r"^the environment variable WEFT_CACHE_SIZE is 'much': "
    with knobs.cache.scope(), pytest.raises(LaunchError, match=message):
        knobs.cache.reset()
        _ = knobs.cache.size


def test_threads_take_effect_when_set() -> None:
    before = driver.get_num_threads()
    try:
        knobs.weft.num_threads = 3
        assert driver.get_num_threads() == 3
        knobs.weft.num_threads = 0
        assert driver.get_num_threads() == driver.usable_cores()
        with pytest.raises(LaunchError, match="at least 1"):
            knobs.weft.num_threads = -1
    finally:
        driver.set_num_threads(before)
        knobs.weft.num_threads = knobs.env


def test_home_of_the_cache(tmp_path: Path) -> None:
    with knobs.cache.scope():
        knobs.cache.dir, knobs.cache.home_dir = None, str(tmp_path)
        store = default_store()
        assert store is not None and store.directory == str(tmp_path / ".weft" / "cache")
