"""Settings and their environment variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft import knobs
from weft.backends.cpu import driver
from weft.base import LaunchError
from weft.runtime.cache import Store, default_store
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
    assert set(copy.knobs) == {"cache", "print", "tuned"}


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


def test_the_table_says_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_SIZE", "much")
    with knobs.cache.scope():
        knobs.cache.reset()
        shown = {name: value for name, _, value in knobs.table()}
    assert shown["cache.size"].startswith("the environment variable WEFT_CACHE_SIZE is 'much': ")


def test_threads_take_effect_when_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
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


class Mine(knobs.base_knobs):
    """As scripts define them that bring settings of their own."""

    colour = knobs.env_str("MINE_COLOUR", "blue")
    level = knobs.env_int("MINE_LEVEL", 3)
    loud = knobs.env_opt_bool("MINE_LOUD")
    place = knobs.env_str_callable_default("MINE_PLACE", lambda: "here")
    kind = knobs.env_class("MINE_KIND", "Store")


def test_settings_follow_the_environment_and_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Mine()
    for name in ("COLOUR", "LEVEL", "LOUD", "PLACE", "KIND"):
        monkeypatch.delenv(f"MINE_{name}", raising=False)
    assert mine.knobs == {"colour": "blue", "level": 3, "loud": None, "place": "here", "kind": None}
    for name, text in (("COLOUR", "red"), ("LEVEL", "7"), ("LOUD", "0"), ("KIND", "weft.runtime.cache:Store")):
        monkeypatch.setenv(f"MINE_{name}", text)
    assert mine.knobs == {"colour": "red", "level": 7, "loud": False, "place": "here", "kind": Store}
    with mine.scope():
        mine.colour, mine.level, mine.loud = "green", 8, True
        assert [os.environ[f"MINE_{name}"] for name in ("COLOUR", "LEVEL", "LOUD")] == ["green", "8", "1"]
        monkeypatch.setenv("MINE_COLOUR", "grey")
        assert mine.colour == "green"  # until it is given back
        mine.colour = knobs.env
        assert mine.colour == "grey"
        del mine.level
        assert mine.level == 8
    assert mine.knobs["colour"] == "red" and os.environ["MINE_COLOUR"] == "red" and mine.level == 7
    monkeypatch.setattr(knobs, "propagate_env", False)
    mine.colour = "white"
    assert mine.colour == "white" and os.environ["MINE_COLOUR"] == "red"
    assert mine.reset().colour == "red"


@pytest.mark.parametrize(
    ("variable", "text", "why"),
    [
        ("MINE_LEVEL", "many", "invalid literal for int"),
        ("MINE_KIND", "Store", "expected MODULE:CLASS"),
        ("MINE_KIND", "weft.nowhere:Store", "No module named 'weft.nowhere'"),
        ("MINE_KIND", "pathlib:Path", "it is no Store"),
    ],
)
def test_variables_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, variable: str, text: str, why: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(LaunchError, match=f"^the environment variable {variable} is {text!r}: {why}"):
        _ = Mine().knobs


def test_directories_where_weft_goes_by_the_name_triton(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WEFT_CACHE_DIR", "WEFT_HOME", "TRITON_HOME", "TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "WEFT_DUMP_DIR"):
        monkeypatch.delenv(name, raising=False)
    with knobs.cache.scope():
        knobs.cache.reset()
        try:
            knobs.go_by_triton(True)
            monkeypatch.setenv("TRITON_HOME", str(tmp_path))
            assert knobs.cache.dir == str(tmp_path / ".triton" / "cache")
            assert knobs.cache.dump_dir == str(tmp_path / ".triton" / "dump")
            knobs.cache.dir = "/elsewhere"
            assert os.environ["TRITON_CACHE_DIR"] == "/elsewhere" and "WEFT_CACHE_DIR" not in os.environ
            knobs.cache.dir = knobs.env
            monkeypatch.setenv("WEFT_CACHE_DIR", "/own")
            assert knobs.cache.dir == "/own"  # Weft's own name wins
        finally:
            knobs.go_by_triton(False)
        monkeypatch.delenv("WEFT_CACHE_DIR")
        assert knobs.cache.dir == str(tmp_path / ".weft" / "cache") and knobs.cache.dump_dir == ""


def test_tools_are_found_where_they_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.9, V12.9.86'\n")
    tool.chmod(0o755)
    with knobs.nvidia.scope():
        knobs.nvidia.ptxas = tool
        assert knobs.nvidia.ptxas == knobs.NvidiaTool(str(tool), "12.9") and os.environ["TRITON_PTXAS_PATH"] == str(
            tool
        )
        with pytest.raises(LaunchError, match=r"the setting nvidia.ptxas is a path, got 3"):
            knobs.nvidia.ptxas = 3
        monkeypatch.setattr(knobs.env_nvidia_tool, "find", staticmethod(lambda name: None))
        knobs.nvidia.nvdisasm = str(tmp_path / "nothing")
        with pytest.raises(LaunchError, match=r"^Cannot find nvdisasm\nhint: TRITON_NVDISASM_PATH names it"):
            _ = knobs.nvidia.nvdisasm
