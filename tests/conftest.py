"""For all tests: a cache of their own, and tile IR verified after each stage, which takes time that users save.

GPUs are hidden from every run but one of tests/gpu alone, so that a machine with a GPU runs the same tests as one
without. At the end of a run the time of the tests is printed by room, the longest first.
"""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from children import environment
from one_in import thin
from view.browser import start as start_chromium
from weft.ir import verify
from weft.passes import cpu_pipeline, tile_pipeline
from weft.runtime import knobs

NEED_GPUS = Path(__file__).parent / "gpu"
HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1"}
"""What hides every GPU from a process and its children."""

collect_ignore = [
    "ir/triton_corpus.py",
    "kernels/check_with_interpreter.py",
    "kernels/gluon_sources.py",
    "kernels/make_ttir.py",
    "hopper/gluon_sources.py",
    "hopper/make_ttgir.py",
    "hopper/triton_sources.py",
    "lower/make_triton_memory.py",
]
"""Scripts that need the real Triton, in which there is nothing to collect."""
collect_ignore_glob = ["gluon/kernels/*.py", "gluon/copies_in_layouts.py", "gluon/padded.py"]
"""Kernels whose files say `triton`, loaded by gluon/sources.py."""


def pytest_configure(config: pytest.Config) -> None:
    """Hide the GPUs, before a driver is asked for one."""
    asked = [config.invocation_params.dir / str(arg).partition("::")[0] for arg in config.args]
    if not all(NEED_GPUS in (path.resolve(), *path.resolve().parents) for path in asked):
        os.environ.update(HIDDEN)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before the slow tests are left out, say which those are."""
    thin(items)


def verified_tile_pipeline(module: ModuleOp, **how: Any) -> ModuleOp:
    """What the frontend or a file gives, checked; and what the passes make of it."""
    verify(module)
    module = tile_pipeline(module, **how)
    verify(module)
    return module


def verified_cpu_pipeline(module: ModuleOp, **how: Any) -> tuple[ModuleOp, list[str] | None]:
    """What the CPU back end is given, checked."""
    module, signature = cpu_pipeline(module, **how)
    verify(module, "cpu")
    return module, signature


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing compiled before this run is used, and the user's cache is left alone."""
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path_factory.mktemp("kernels"))
        yield


@pytest.fixture(autouse=True, scope="session")
def children_import_these_sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Not a Weft that is installed beside them, of which there need be none; and only the first compiles them.

    Its bytecode is kept in the folder of this run, that of all workers, also where none may be written to the tree.
    """
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        patch.setenv("PYTHONPYCACHEPREFIX", str(shared / "bytecode"))
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser for all tests of pages; its log is that of them all, and what is read of it is gone."""
    yield from start_chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture(autouse=True, scope="session")
def verify_every_stage() -> Iterator[None]:
    """Patch the compiler for the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        stages = importlib.import_module("weft.compiler.cpu_stages")
        patch.setattr(stages, "tile_pipeline", verified_tile_pipeline)
        patch.setattr(stages, "cpu_pipeline", verified_cpu_pipeline)
        yield


def room_of(nodeid: str) -> str:
    """The folder whose tests a test belongs to: `tests/sim`, `src/weft/layouts` (its doctests), `docs`.

    >>> room_of("tests/fuzz/gluon/test_seeds.py::test_one"), room_of("src/weft/sim/races.py::weft.sim.races")
    ('tests/fuzz', 'src/weft/sim')
    """
    folders = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(folders[: 3 if folders[:1] == ["src"] else 2]) or "."


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long the tests of each room took, in seconds of one process."""
    seconds, tests = Counter[str](), Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[room_of(report.nodeid)] += report.duration
                tests[room_of(report.nodeid)] += report.when == "call"
    if len(seconds) < 2:
        return
    terminalreporter.section("time by room")
    for room, taken in seconds.most_common():
        if taken >= 1:
            terminalreporter.line(f"{taken:8.1f} s {tests[room]:7} tests  {room}")
