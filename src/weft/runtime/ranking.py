"""Configurations ranked by their predicted times, without a GPU: what `weft tune` does.

    with Tunings("cuda:90") as tunings:
        main()                                  # nothing is launched; an autotuned kernel takes its first configuration
    for case in tunings.cases:
        ranked(case.tuner, case.args, case.grid, case.kwargs, "cuda:90", jobs=8)

Configurations are compiled and explained in processes of their own, as many at a time as there are cores.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from weft.base import LaunchError, WeftError, progress
from weft.explain import Time
from weft.machines import machine_of

from . import compiling, winners
from .autotuner import Autotuner
from .config import Config
from .explaining import explain
from .watching import Watched

__all__ = ["Case", "Ranked", "Tunings", "entry", "ranked"]


@dataclass(frozen=True)
class Ranked:
    """A configuration with its predicted time."""

    config: Config
    time: Time | None
    """None where it cannot be run."""
    problem: str = ""
    """Why not."""

    @property
    def microseconds(self) -> float:
        """Infinite where it cannot be run."""
        return self.time.microseconds if self.time is not None else float("inf")


@dataclass(frozen=True)
class Case:
    """A launch of an autotuned kernel for which the fastest configuration is asked."""

    tuner: Autotuner
    args: tuple[Any, ...]
    grid: Any
    kwargs: Mapping[str, Any]
    key: str

    @property
    def kernel(self) -> Any:
        """The kernel itself."""
        return self.tuner._innermost()


class Tunings(Watched):
    """A `with` in which nothing is launched, and launches of autotuned kernels are noted, once for each key."""

    def __init__(self, target: str, name: str | None = None) -> None:
        super().__init__(target, name)
        self._cases: dict[Any, Case] = {}

    @property
    def cases(self) -> tuple[Case, ...]:
        """In the order of the launches."""
        return tuple(self._cases.values())

    def __enter__(self) -> Self:
        super().__enter__()
        self._chooser, compiling.chooser = compiling.chooser, self._chosen
        return self

    def __exit__(self, *error: Any) -> None:
        compiling.chooser = self._chooser
        super().__exit__(*error)

    def _chosen(self, tuner: Autotuner, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Config:
        kernel = tuner._innermost()
        if self.is_wanted(kernel):
            given = {name: value for name, value in kwargs.items() if name not in ("grid", "warmup", "target")}
            key = tuner.text_of_key(args, given)
            self._cases.setdefault((tuner, key), Case(tuner, args, kwargs["grid"], given, key))
        first: Config = tuner.configs[0]
        return first


def ranked(
    tuner: Autotuner,
    args: Sequence[Any],
    grid: Any,
    kwargs: Mapping[str, Any],
    target: str,
    jobs: int = 1,
) -> list[Ranked]:
    """All configurations of a tuner for a launch, the fastest first. LaunchError where no times are predicted."""
    work = _Work(tuner, tuple(args), grid, dict(kwargs), target)
    number = len(tuner.configs)
    done: list[Ranked] = []
    with ExitStack() as left:
        answers: Any = map(work, range(number))
        if jobs > 1 and number > 1:
            left.callback(_WORK.pop)
            _WORK.append(work)
            pool = left.enter_context(multiprocessing.get_context("fork").Pool(min(jobs, number)))
            answers = pool.imap(_worked, range(number))
        told = left.enter_context(progress(f"ranking {tuner._innermost().__name__}", number))
        for at, (time, problem) in enumerate(answers):
            done.append(Ranked(tuner.configs[at], time, problem))
            told(at + 1)
    return sorted(done, key=lambda each: each.microseconds)


_WORK: list[_Work] = []
"""What the processes that are begun now work on: they have it from the process that they come from."""


def _worked(number: int) -> tuple[Time | None, str]:
    return _WORK[-1](number)


@dataclass(frozen=True)
class _Work:
    tuner: Autotuner
    args: tuple[Any, ...]
    grid: Any
    kwargs: dict[str, Any]
    target: str

    def __call__(self, number: int) -> tuple[Time | None, str]:
        """The time of a configuration, or why there is none."""
        config = self.tuner.configs[number]
        try:
            given = {**self.kwargs, **config.all_kwargs(), "target": self.target}
            e = explain(self.tuner.fn, self.args, self.grid, given)
        except LaunchError:
            raise
        except WeftError as error:
            return None, str(getattr(error, "message", error)).splitlines()[0]
        needed, machine = e.occupancy.shared_bytes if e.occupancy is not None else 0, machine_of(e.target)
        if needed > machine.shared_bytes:
            return None, f"it needs {needed:,} bytes of shared memory, and there are {machine.shared_bytes:,}"
        return e.time, "" if e.time is not None else e.counts.note or f"no time is predicted for {self.target}"


def entry(case: Case, target: str, best: Ranked) -> dict[str, Any]:
    """What a file of winners has of a case."""
    return winners.entry_of(case.tuner, case.kernel, case.key, target, best.config, best.microseconds)
