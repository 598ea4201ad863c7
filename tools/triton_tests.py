"""A pytest plugin that runs the test files of Triton's repository, and its tutorials, unchanged.

    PYTHONPATH=tools python -m pytest -p triton_tests --import-mode=importlib path/to/test_core.py
    WEFT_TARGET=sim:cuda:90 PYTHONPATH=tools python -m pytest -p triton_tests ... path/to/gluon/test_core.py

`import triton` finds Weft, with the helpers that those tests import (`triton._internal_testing`, `triton._filecheck`).
They run on the CPU, or, where WEFT_TARGET names a simulated GPU, in the simulator; then what PyTorch is to make on
"cuda" it makes in the host's memory, and `torch.cuda` tells the capability of that GPU.  It needs PyTorch, which the
tests make their arrays with.  See docs/conformance.md.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft.compat

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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interpreter: a test that Triton's interpreter runs too")
    config.addinivalue_line("markers", "enable_warmup: a test whose kernels Triton compiles ahead")
    weft.compat.install()
    target = os.environ.get("WEFT_TARGET", "")
    if target.startswith("sim:cuda:"):
        _stand_in_for_cuda(int(target.rpartition(":")[2]))


@pytest.fixture
def device() -> str:
    return "cpu"


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
