"""A pytest plugin that runs the test files of Triton's repository, and its tutorials, unchanged.

    PYTHONPATH=tools python -m pytest -p triton_tests --import-mode=importlib path/to/test_core.py
    WEFT_TARGET=sim:cuda:90 PYTHONPATH=tools python -m pytest -p triton_tests ... path/to/gluon/test_core.py

`make triton-tests TESTS=path/to/python/test` runs many files and counts (see tools/run_triton_tests.py).
`import triton` finds Weft, with the helpers that those tests import (`triton._internal_testing`, `triton._filecheck`).
They run on the GPU that PyTorch has, and nothing stands in for anything; without one, or with WEFT_TARGET=cpu, on the
CPU.  Where WEFT_TARGET names a simulated GPU, they run in the simulator: what PyTorch is to make on "cuda" it makes in
the host's memory, and `torch.cuda` answers for that GPU.  It needs PyTorch, which the tests make their arrays with.
No name that Weft lacks is made up: a file that imports one is not collected.  Forks of Triton ask more questions about
the machine than Triton's own helpers know; those are answered here.  See docs/reference/conformance.md.

    --per-function N    at most N cases of each test function, drawn by --seed (0: all)
    --left-out FILE     test functions that are not run, one a line with its reason
    --case-timeout T    seconds until a case has failed
    --case-log FILE     one line of JSON for each case

A kernel that goes wrong loses the GPU for its process: under pytest-xdist that worker ends, and another takes its
place.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import importlib.util
import json
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_triton_tests import read_left_out

import weft.compat
from weft.base import DeviceLost

# fmt: off
MAKERS = [
    "arange", "as_tensor", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "logspace",
    "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "scalar_tensor", "tensor", "zeros", "zeros_like",
]
# fmt: on
"""The functions of PyTorch that are told a device."""

INTEL = "cri arl_s arl_h bmg dg2 lnl mtl pvc ptl_h ptl_u xe2 xe3 xe3p"
"""The Intel GPUs that Intel's fork of Triton asks for, by `is_xpu_...`."""


# -- the machine -------------------------------------------------------------------------------------------------------


def _on_the_host(device: Any) -> Any:
    return "cpu" if isinstance(device, int) or str(device).startswith("cuda") else device


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch for which "cuda" is the host."""
    device = importlib.import_module("torch").device

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _on_the_host(kwargs["device"])
        return function(*(_on_the_host(a) if isinstance(a, (str, device)) else a for a in args), **kwargs)

    return call


def _stand_in_for_cuda() -> None:
    """Arrays "on cuda" are the host's; questions are answered for the GPU that is simulated."""
    torch = importlib.import_module("torch")
    driver = importlib.import_module("triton.runtime").driver.active
    for name in MAKERS:
        setattr(torch, name, _moved(getattr(torch, name)))
    torch.Tensor.to = _moved(torch.Tensor.to)
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    facts = driver.utils.get_device_properties(0)
    major, minor = driver.get_device_interface().get_device_capability()
    properties = SimpleNamespace(
        name="simulated",
        major=major,
        minor=minor,
        warp_size=facts["warpSize"],
        multi_processor_count=facts["multiprocessor_count"],
    )
    answers: dict[str, Any] = {
        "synchronize": None,
        "set_device": None,
        "empty_cache": None,
        "current_device": 0,
        "device_count": 1,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "current_stream": SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, functools.partial(lambda value, *args, **kwargs: value, answer))


def _answer_forks(target: str) -> None:
    """What forks of Triton for other machines ask besides, and which GPU PyTorch has where it was built for none."""
    torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    if torch and not torch.cuda.is_available() and not target.startswith("sim:"):
        torch.cuda.get_device_capability = lambda *_: (0, 0)
    helpers: Any = importlib.import_module("triton._internal_testing")
    helpers.is_cpu = lambda: not on_gpu() and not target.startswith("sim:")
    for name in INTEL.split():
        setattr(helpers, f"is_xpu_{name}", lambda: False)


def on_gpu() -> bool:
    """Whether the tests run on a GPU: where PyTorch has one and nothing else was asked for."""
    target = os.environ.get("WEFT_TARGET", "")
    return (not target or target.startswith("cuda")) and importlib.import_module("torch").cuda.is_available()


# -- which cases, and how they end -------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("triton_tests", "Triton's own tests")
    group.addoption("--per-function", type=int, default=0, help="at most so many cases of each function; 0: all")
    group.addoption("--seed", type=int, default=1, help="which of them")
    group.addoption("--left-out", default="", help="a file of test functions that are not run, with reasons")
    group.addoption("--case-timeout", type=int, default=0, help="seconds until a case has failed; 0: never")
    group.addoption("--case-log", default="", help="a file: a line of JSON for each case")


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("interpreter", "cpu", "enable_warmup", "disable_warmup", "xdist_group"):
        config.addinivalue_line("markers", f"{marker}: of Triton's tests")
    weft.compat.install()
    target = os.environ.get("WEFT_TARGET", "")
    if target.startswith("sim:"):
        _stand_in_for_cuda()
    _answer_forks(target)
    path = config.getoption("--case-log")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_CaseLog(path))


def pytest_pycollect_makemodule(module_path: Path) -> None:
    """Test files import their neighbours by name."""
    folder = str(module_path.parent)
    if folder not in sys.path:
        sys.path.append(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the functions of the list, and of the others all but the cases drawn; first cases come first."""
    left_out = read_left_out(config.getoption("--left-out")) if config.getoption("--left-out") else {}
    most = config.getoption("--per-function")
    functions = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    turns: dict[pytest.Item, int] = {}
    for name, cases in functions.items():
        if any(name.endswith(known) for known in left_out):
            continue
        drawn = random.Random(f"{config.getoption('--seed')}:{name.rpartition('/')[2]}")
        if 0 < most < len(cases):
            cases = drawn.sample(cases, most)
        turns |= {case: turn for turn, case in enumerate(cases)}
    config.hook.pytest_deselected(items=[item for item in items if item not in turns])
    items[:] = sorted((item for item in items if item in turns), key=turns.__getitem__) if most else list(turns)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """TimeoutError in a case that takes too long; the end of its process if that does not stop it."""
    limit = item.config.getoption("--case-timeout")
    if not limit:
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"the case has not ended after {limit} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    faulthandler.dump_traceback_later(2 * limit, exit=True)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


class _CaseLog:
    """Writes how each case ended, and why."""

    def __init__(self, path: str) -> None:
        self.path = path

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, "not imported", str(report.longrepr), 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A case has its call's outcome, or that of the fixtures which kept it from being called."""
        if report.when != "call" and (report.passed or (report.when == "teardown" and report.skipped)):
            return
        outcome = str(report.outcome)
        if hasattr(report, "wasxfail"):
            outcome = "expected to fail" if report.skipped else "passed"
        self._write(report.nodeid, outcome, getattr(report, "reason", str(report.longrepr or "")), report.duration)

    def _write(self, case: str, outcome: str, reason: str, seconds: float) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(
                json.dumps({"case": case, "outcome": outcome, "s": round(seconds, 2), "reason": reason[-2000:]}) + "\n"
            )


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Nothing runs in a process that lost its GPU, so a worker of xdist ends once the test's report is away."""
    if getattr(report, "lost_gpu", False) and "PYTEST_XDIST_WORKER" in os.environ:
        os._exit(3)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    error = call.excinfo
    report.lost_gpu = error is not None and _is_a_lost_gpu(error.value)
    if error is not None and report.failed:
        last = error.traceback[-1] if error.traceback else None
        report.reason = f"{error.typename}: {error.value}" + (f" ({last.path}:{last.lineno + 1})" if last else "")


def _is_a_lost_gpu(error: BaseException) -> bool:
    words = ("CUDA error: an illegal", "CUDA error: misaligned", "CUDA error: unspecified launch", "device-side assert")
    return isinstance(error, DeviceLost) or any(word in str(error) for word in words)


# -- fixtures ----------------------------------------------------------------------------------------------------------


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
def fresh_triton_cache_scope() -> Callable[[], Any]:
    """A context manager in which every kernel is compiled."""
    knobs = importlib.import_module("triton.knobs")

    @contextlib.contextmanager
    def fresh_cache() -> Iterator[None]:
        with knobs.compilation.scope(), knobs.runtime.scope():
            knobs.compilation.always_compile = True
            yield

    return fresh_cache


def _fresh_knobs(*kept: str) -> Iterator[Any]:
    make, undo = importlib.import_module("triton._internal_testing")._fresh_knobs_impl(skipped_attr=set(kept))
    try:
        yield make()
    finally:
        undo()


@pytest.fixture
def fresh_knobs() -> Iterator[Any]:
    """Settings as they are when nobody has set any, but for those of the libraries."""
    yield from _fresh_knobs("build", "nvidia", "amd")


@pytest.fixture
def fresh_knobs_including_libraries() -> Iterator[Any]:
    """Settings as they are when nobody has set any."""
    yield from _fresh_knobs()


@pytest.fixture(scope="module")
def process_pool(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes for the tests of a module that run in one of their own."""
    with importlib.import_module("triton._internal_testing").use_process_pool(request.module.__name__):
        yield


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
