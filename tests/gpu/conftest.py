"""Everything below this folder needs a GPU."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.base import DeviceLost, NoDevice
from weft.compiler import devices

from .bounds import bounded, place
from .sharing import how_many, variables

HERE = Path(__file__).parent
if (worker := os.environ.get("PYTEST_XDIST_WORKER", "")).startswith("gw"):  # before CUDA is asked for anything
    os.environ.update(variables(int(worker.removeprefix("gw")), how_many()))


@functools.cache
def _missing() -> str | None:
    """Why the tests of this folder cannot run."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return "none is visible to a run that is not of tests/gpu alone"
    try:
        devices.current_device()
    except NoDevice as error:
        return str(error).splitlines()[0]
    return None


@pytest.fixture(autouse=True)
def _bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels that wait for each other, for a lock or for bytes would do so for ever where something is wrong."""
    with bounded(request.node.nodeid):
        yield


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """A lost GPU is lost for the process: a worker of xdist ends, and another takes its place."""
    lost = call.excinfo is not None and isinstance(call.excinfo.value, DeviceLost)
    if lost and HERE in Path(item.path).parents and "PYTEST_XDIST_WORKER" in os.environ:
        assert call.excinfo is not None
        with (Path(tempfile.gettempdir()) / "weft-lost-gpu.txt").open("a", encoding="utf-8") as file:
            file.write(f"{item.nodeid}: {call.excinfo.value}\n")
        place().unlink(missing_ok=True)  # it is not the watchdog that ends this process
        os._exit(3)


class WithoutGPU(pytest.Module):
    """A file of this folder where there is no GPU: it is skipped as one, without importing it."""

    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip(f"no GPU: {_missing()}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Read a file's tests if there is a GPU for them, or if they are to be listed alone."""
    if parent.config.option.collectonly or _missing() is None:
        return None
    return WithoutGPU.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    files = {path for path in {item.path for item in items} if HERE in path.parents}
    for item in items:
        if item.path in files:
            item.add_marker(pytest.mark.gpu)
