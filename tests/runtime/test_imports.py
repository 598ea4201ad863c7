"""`import weft` is cheap: what it loads is counted, which unlike time is the same on every machine."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from children import environment


def modules_after(statement: str) -> set[str]:
    """Modules that a statement loads in a new interpreter."""
    script = (
        f"import sys, json; before = set(sys.modules); {statement}; print(json.dumps(list(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_import_weft_loads_next_to_nothing() -> None:
    loaded = modules_after("import weft")
    assert not {m.partition(".")[0] for m in loaded} & {"numpy", "ml_dtypes", "xdsl", "llvmlite", "torch", "triton"}
    assert len(loaded) < 40, sorted(loaded)


def test_no_part_of_weft_loads_torch_or_triton() -> None:
    loaded = modules_after("import weft, weft.language, weft.compiler, weft.compat, weft.cli_info; weft.compile")
    assert not {m.partition(".")[0] for m in loaded} & {"torch", "triton", "matplotlib", "pandas"}


def test_jit_loads_no_code_generator() -> None:
    loaded = modules_after("import weft; weft.jit; weft.Config; weft.autotune; weft.testing")
    assert "llvmlite" not in loaded


def test_every_public_name_is_there() -> None:
    import weft

    for name in weft.__all__:
        assert getattr(weft, name) is not None
    assert set(weft.__all__) <= set(dir(weft))


@pytest.mark.parametrize("name", ["layouts", "remarks", "sim", "cuda", "view"])
def test_other_modules_need_no_import_of_their_own(name: str) -> None:
    assert f"weft.{name}" in modules_after(f"import weft; weft.{name}")


@pytest.mark.parametrize("name", ["testing", "knobs", "language", "runtime", "compiler", "compat"])
def test_public_modules_are_modules_to_import(name: str) -> None:
    public = importlib.import_module(f"weft.{name}")
    there = getattr(importlib.import_module("weft"), name)
    for each in getattr(public, "__all__", None) or [each for each in vars(public) if each[0] != "_"]:
        assert getattr(public, each) is getattr(there, each), each
