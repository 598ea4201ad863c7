"""A pytest plugin that runs the test files of Triton's repository, and its tutorials, unchanged.

    PYTHONPATH=tools python -m pytest -p triton_tests --import-mode=importlib path/to/test_core.py
    WEFT_TARGET=sim:cuda:90 PYTHONPATH=tools python -m pytest -p triton_tests ... path/to/gluon/test_core.py

`import triton` finds Weft, with the helpers that those tests import (`triton._internal_testing`, `triton._filecheck`).
They run on the GPU that PyTorch has, and nothing stands in for anything; without one, or with WEFT_TARGET=cpu, on the
CPU.  Where WEFT_TARGET names a simulated GPU, they run in the simulator: what PyTorch is to make on "cuda" it makes in
the host's memory, and `torch.cuda` tells the capability of that GPU.  It needs PyTorch, which the tests make their
arrays with.  See docs/conformance.md.

    --one-in N      of each test function's cases about every N-th, always the same ones: for files of many thousands
    --cases-of K    which of them, 0 to N - 1

A kernel that goes wrong loses the GPU for its process: under pytest-xdist that worker ends, and another takes its
place.
"""

from __future__ import annotations

import functools
import importlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft.compat
from weft.base import DeviceLost

# fmt: off
MAKERS = [
    "arange", "empty", "empty_strided", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm",
    "tensor", "zeros",
]
# fmt: on
"""The functions of PyTorch that are told a device."""


def _on_the_host(device: Any) -> Any:
    return "cpu" if str(device).startswith("cuda") else device


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch for which "cuda" is the host."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _on_the_host(kwargs["device"])
        return function(*(_on_the_host(a) if isinstance(a, str) else a for a in args), **kwargs)

    return call


def _stand_in_for_cuda(arch: int) -> None:
    """Arrays "on cuda" are the host's; questions are answered for a GPU of this architecture."""
    torch = importlib.import_module("torch")
    for name in MAKERS:
        setattr(torch, name, _moved(getattr(torch, name)))
    torch.Tensor.to = _moved(torch.Tensor.to)
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.cuda.synchronize = lambda *args: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *args: divmod(arch, 10)


def on_gpu() -> bool:
    """Whether the tests run on a GPU: where PyTorch has one and nothing else was asked for."""
    target = os.environ.get("WEFT_TARGET", "")
    return (not target or target.startswith("cuda")) and importlib.import_module("torch").cuda.is_available()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("triton_tests", "Triton's own tests")
    group.addoption("--one-in", type=int, default=1, help="run about every N-th case of each test function")
    group.addoption("--cases-of", type=int, default=0, help="which of them, 0 to N - 1")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interpreter: a test that Triton's interpreter runs too")
    config.addinivalue_line("markers", "enable_warmup: a test whose kernels Triton compiles ahead")
    weft.compat.install()
    target = os.environ.get("WEFT_TARGET", "")
    if target.startswith("sim:cuda:"):
        _stand_in_for_cuda(int(target.rpartition(":")[2]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the options leave out; a function keeps one case at least."""
    step, which = config.getoption("--one-in"), config.getoption("--cases-of")
    if step <= 1:
        return
    kept = [item for item in items if zlib.crc32(item.name.encode()) % step == which]
    functions = {getattr(item, "function", item) for item in kept}
    for item in items:
        function = getattr(item, "function", item)
        if function not in functions:
            functions.add(function)
            kept.append(item)
    chosen = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = [item for item in items if id(item) in chosen]


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Nothing runs in a process that lost its GPU, so a worker of xdist ends once the test's report is away."""
    if getattr(report, "lost_gpu", False) and "PYTEST_XDIST_WORKER" in os.environ:
        os._exit(3)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    outcome.get_result().lost_gpu = call.excinfo is not None and _is_a_lost_gpu(call.excinfo.value)


def _is_a_lost_gpu(error: BaseException) -> bool:
    words = ("CUDA error: an illegal", "CUDA error: misaligned", "CUDA error: unspecified launch", "device-side assert")
    return isinstance(error, DeviceLost) or any(word in str(error) for word in words)


@pytest.fixture
def device() -> str:
    return "cuda" if on_gpu() else "cpu"


@pytest.fixture
def fresh_triton_cache(tmp_path: Path) -> Iterator[str]:
    """A directory of its own for compiled kernels, and hooks that end with the test."""
    knobs = importlib.import_module("triton.knobs")
    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path)
        yield str(tmp_path)


@pytest.fixture
def fresh_knobs() -> Iterator[Any]:
    """Settings as they are when nobody has set any."""
    make, undo = importlib.import_module("triton._internal_testing")._fresh_knobs_impl()
    try:
        yield make()
    finally:
        undo()


fresh_knobs_including_libraries = fresh_knobs


@pytest.fixture
def with_allocator() -> Iterator[None]:
    """Scratch memory for descriptors that kernels make."""
    triton: Any = importlib.import_module("triton")
    helpers: Any = importlib.import_module("triton._internal_testing")
    allocation: Any = importlib.import_module("triton.runtime._allocation")
    triton.set_allocator(helpers.default_alloc_fn)
    try:
        yield
    finally:
        triton.set_allocator(allocation.NullAllocator())
