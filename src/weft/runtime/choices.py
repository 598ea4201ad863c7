"""Why a configuration was chosen: all of them, with the time predicted of each, what was measured, and what was pruned.

print(tuner.explain_configs(x, out, n, grid=grid, target="cuda:90"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.base import LaunchError, WeftError
from weft.explain import Time

from .config import Config
from .explaining import explain

__all__ = ["Choice", "Choices", "choices_of"]


@dataclass(frozen=True)
class Choice:
    """A configuration."""

    config: Config
    predicted: Time | None
    """None for a target whose times are not predicted."""
    measured: tuple[float, float, float] | None
    """Microseconds: the median, and the quantiles beside it, of a fifth and four fifths."""
    state: str
    """"chosen", "measured", "pruned" before anything was measured, or "not measured" where nothing has been."""
    problem: str = ""
    """Why it cannot be run."""


class Choices(tuple[Choice, ...]):
    """All configurations, the fastest first: by what was measured, then by what is predicted."""

    __slots__ = ()

    def __str__(self) -> str:
        rows = [("configuration", "state", "measured", "predicted", "bound by")]
        for each in self:
            measured = "" if each.measured is None else "{:.1f} us ({:.1f} to {:.1f})".format(*each.measured)
            time = each.predicted
            predicted = (
                each.problem if time is None else f"{time.microseconds:.1f} us ({time.low:.1f} to {time.high:.1f})"
            )
            rows.append((str(each.config), each.state, measured, predicted, time.bound if time is not None else ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows)


def choices_of(tuner: Any, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any]) -> Choices:
    """The configurations of an autotuner for a launch; measured is what was, when it was tuned last."""
    timings: Mapping[Config, Any] = tuner.configs_timings
    choices = []
    for config in tuner.configs:
        predicted, problem = None, ""
        try:
            predicted = explain(tuner.fn, args, grid, {**kwargs, **config.all_kwargs()}).time
        except LaunchError:
            raise
        except WeftError as error:
            problem = str(getattr(error, "message", error)).splitlines()[0]
        state = "not measured"
        if timings:
            state = "measured" if config in timings else "pruned"
        if config == tuner.best_config and state == "measured":
            state = "chosen"
        choices.append(Choice(config, predicted, _measured(timings.get(config)), state, problem))
    return Choices(sorted(choices, key=_order))


def _measured(timing: Any) -> tuple[float, float, float] | None:
    """Microseconds, of the milliseconds that a benchmark gave: one number, or a median and two quantiles."""
    if timing is None:
        return None
    numbers = [float(n) for n in timing] if isinstance(timing, Sequence) else [float(timing)]
    median, low, high = numbers if len(numbers) == 3 else [numbers[0]] * 3
    return 1000 * median, 1000 * low, 1000 * high


def _order(choice: Choice) -> tuple[float, float]:
    never = float("inf")
    measured = choice.measured[0] if choice.measured is not None else never
    return measured, choice.predicted.microseconds if choice.predicted is not None else never
