"""A plugin for pytest: tests of kernels on the targets that a run asks for, simulated GPUs among them.

    def test_softmax(weft_target):                                # once for each target; launches inside go there
        softmax[(4,)](out, x, 1000, 1000, BLOCK=1024)

    pytest --weft-target=cpu,sim:cuda:80 --weft-sim="order=random, seed=7"

`--weft-target` (or `weft_target` in the configuration file) names the targets, one of them if nothing is said: the CPU.
`--weft-sim` (or `weft_sim`) is what the simulator does and checks, as `weft.sim.Options.parse` reads it. A test that is
for certain targets only says so: `@pytest.mark.weft_targets("sim:cuda:80", "sim:cuda:90")`. Where a test fails whose
last launch was simulated, the report has the launch's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import weft

__all__ = ["weft_target"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, on the command line and in the configuration file."""
    group = parser.getgroup("weft", "kernels of Weft")
    group.addoption("--weft-target", help="targets of tests with `weft_target`, with commas: cpu, sim:cuda:80, ...")
    group.addoption("--weft-sim", help='options of the simulator: "order=random, seed=7, copies=both, races=off"')
    parser.addini("weft_target", "targets of tests with `weft_target`, with commas", default="cpu")
    parser.addini("weft_sim", "options of the simulator", default="")


def pytest_configure(config: pytest.Config) -> None:
    """The mark; options that mean nothing end the run before it begins."""
    config.addinivalue_line("markers", "weft_targets(*names): the targets that a test with `weft_target` is for")
    try:
        for name in _targets(config):
            with weft.target(name):
                pass
        if _simulator(config):
            weft.sim.Options.parse(_simulator(config))
    except (weft.WeftError, ValueError) as error:
        raise pytest.UsageError(f"weft: {str(error).removeprefix('error: ')}") from None


def _simulator(config: pytest.Config) -> str:
    return str(config.getoption("--weft-sim") or config.getini("weft_sim"))


def _targets(config: pytest.Config) -> list[str]:
    text = config.getoption("--weft-target") or config.getini("weft_target")
    return [name.strip() for name in str(text).split(",") if name.strip()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `weft_target` is run for each target; for none of them it is skipped."""
    if "weft_target" not in metafunc.fixturenames:
        return
    chosen = _targets(metafunc.config)
    for mark in metafunc.definition.iter_markers("weft_targets"):
        left = [name for name in chosen if name in mark.args]
        if chosen and not left:
            reason = f"for {', '.join(map(str, mark.args))}, and this run is for {', '.join(chosen)}"
            skipped = pytest.param(chosen[0], marks=pytest.mark.skip(reason=reason))
            metafunc.parametrize("weft_target", [skipped], indirect=True)
            return
        chosen = left
    metafunc.parametrize("weft_target", chosen, indirect=True)


@pytest.fixture
def weft_target(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the target that launches in this test are for."""
    name = str(request.param)
    with weft.target(name):
        if not name.startswith("sim:"):
            yield name
            return
        with weft.sim.options(weft.sim.Options.parse(_simulator(request.config))):
            yield name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    """Where a test of a simulated target fails, what its last launch did."""
    report = yield
    name = getattr(item, "callspec", None) and item.callspec.params.get("weft_target")  # type: ignore[attr-defined]
    if report.when == "call" and report.failed and str(name).startswith("sim:"):
        with suppress(LookupError):
            report.sections.append(("the last simulated launch", str(weft.sim.last_run())))
    return report
