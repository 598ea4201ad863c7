"""`weft run`, `weft demo`, `weft cache` and `weft info` said wrong, and read by programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

ROOT = Path(__file__).resolve().parents[2]


def weft(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", *args],
        env=environment(**env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", ["nothing_of_the_kind", "email.nothing", "email.nothing.below"])
def test_a_module_that_does_not_exist(name: str) -> None:
    done = weft("run", "-m", name)
    assert (done.returncode, done.stderr) == (2, f"weft run: there is no module {name}\n")


def test_a_package_that_imports_what_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import nothing_of_the_kind")
    (tmp_path / "package" / "part.py").touch()
    done = weft("run", "-m", "package.part", cwd=tmp_path)
    assert done.returncode == 1 and "No module named 'nothing_of_the_kind'" in done.stderr


def test_help_is_no_error() -> None:
    done = weft("run", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: weft run") and not done.stderr
    assert weft("run").returncode == 2


def test_the_demo_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "run.py").write_text("raise SystemExit('of another project')")
    done = weft("demo", "nothing", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("usage: weft demo [-h]")
    assert "weft demo: error: no example called nothing" in done.stderr


@pytest.mark.parametrize("size", ["abc", "1.5x", "-1", ""])
def test_a_size_that_is_none(size: str) -> None:
    done = weft("cache", "prune", f"--size={size}")
    assert done.returncode == 2
    assert f"argument --size: {size!r} is no size: sizes are numbers of bytes, as 512M or 2G" in done.stderr


def test_the_cache_as_json(tmp_path: Path) -> None:
    (tmp_path / f"{'0' * 64}.weft").write_bytes(b"damaged")
    done = weft("cache", "verify", "--json", WEFT_CACHE_DIR=str(tmp_path))
    facts = json.loads(done.stdout)
    assert done.returncode == 1 and facts["entries"] == 1 and facts["damaged"][0]["path"].startswith(str(tmp_path))


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    for i in range(500):
        (tmp_path / f"{i:064x}.weft").write_bytes(b"damaged")
    command = f"{sys.executable} -m weft cache ls | head -1; exit ${{PIPESTATUS[0]}}"
    env = environment(WEFT_CACHE_DIR=tmp_path)
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("WEFT_TARGET", "foo", "error: compiling is not supported on target foo\nhint: targets that exist: cpu, "),
        ("WEFT_NUM_THREADS", "abc", "error: the environment variable WEFT_NUM_THREADS is 'abc', not a number"),
        ("WEFT_CACHE_SIZE", "big", "error: the environment variable WEFT_CACHE_SIZE is 'big': 'big' is no size: sizes"),
    ],
)
def test_settings_that_are_wrong_are_told_without_a_traceback(variable: str, value: str, text: str) -> None:
    done = weft("info", "--settings", **{variable: value})
    assert done.returncode == 2 and done.stderr.startswith(text)


def test_the_cache_is_off() -> None:
    done = weft("cache", "ls", WEFT_NO_CACHE="1")
    assert (done.returncode, done.stderr) == (2, "error: the cache is switched off (WEFT_NO_CACHE)\n")


def test_info_tells_the_target_of_launches() -> None:
    assert json.loads(weft("info", "--json", WEFT_TARGET="sim:cuda:80").stdout)["target"] == "sim:cuda:80"


def test_info_tells_what_there_is_for_gpus() -> None:
    facts = json.loads(weft("info", "--json", WEFT_PTXAS="/opt/ptxas", CUDA_VISIBLE_DEVICES="").stdout)
    assert facts["ptxas"] == "/opt/ptxas" and facts["GPUs"] == "none" and facts["driver"].startswith("none: ")
    assert "cuda-bindings" in facts
