"""How a simulation runs and what it checks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

import numpy as np

__all__ = ["Options", "current_options", "options"]

COPIES = ("earliest", "latest")
ORDERS = ("forward", "backward", "random")


@dataclass(frozen=True)
class Options:
    """Which checks are on, and what the simulator chooses where the machine leaves it open.

    races, bounds, uninitialized    which checkers are on
    raise_first    whether the first error is raised; otherwise all are in the report's `errors`
    copies         when asynchronous copies land: "earliest" (when issued), "latest" (when waited for), or "both"
    order          in which order warps and lanes act: "forward", "backward", "random" with `seed`, or "all" three
    seed           of the random order
    between_programs    whether programs race in global memory is checked too, which takes memory and time
    arrays         NumPy arrays to which addresses lead that a kernel finds in memory, as a grouped product does

    With "both" or "all" a launch is run once for each combination, from the same arrays; it is an error if the results
    are not the same bit by bit.

    >>> Options(order="sideways")
    Traceback (most recent call last):
        ...
    ValueError: order must be forward, backward, random or all, got 'sideways'
    """

    races: bool = True
    bounds: bool = True
    uninitialized: bool = True
    raise_first: bool = True
    copies: str = "latest"
    order: str = "forward"
    seed: int = 0
    between_programs: bool = False
    arrays: Sequence[Any] = field(default=(), compare=False)
    together: int = 1 << 21
    """Registers that the widest value of the blocks that run at once may take in all."""
    steps: int = 1_000_000
    """Iterations of loops after which a launch is given up."""

    def __post_init__(self) -> None:
        if self.copies not in (*COPIES, "both"):
            raise ValueError(f"copies must be earliest, latest or both, got {self.copies!r}")
        if self.order not in (*ORDERS, "all"):
            raise ValueError(f"order must be forward, backward, random or all, got {self.order!r}")

    @property
    def reached(self) -> Mapping[str, Any]:
        """The arrays that are no arguments, by what messages call them."""
        return {f"arrays[{i}]": np.asarray(array) for i, array in enumerate(self.arrays)}

    def describe(self) -> str:
        """For reports: what is needed to see the same again."""
        seed = f" with seed {self.seed}" if self.order in ("random", "all") else ""
        when = "at the " + self.copies if self.copies != "both" else "at the earliest and at the latest"
        order = f"in {self.order} order" if self.order != "all" else "in every order"
        return f"copies land {when}, warps {order}{seed}"

    def schedules(self) -> list[Options]:
        """The single ways to run that these stand for.

        >>> len(Options(copies="both", order="all").schedules())
        6
        """
        copies = COPIES if self.copies == "both" else (self.copies,)
        orders = ORDERS if self.order == "all" else (self.order,)
        return [replace(self, copies=c, order=o) for c, o in product(copies, orders)]

    @classmethod
    def parse(cls, text: str) -> Options:
        """Options from text, as the command line of pytest has them. ValueError for what is none.

        >>> Options.parse("order=random, seed=7, races=off").seed
        7
        """
        kinds = {f.name: type(f.default) for f in fields(cls) if f.name != "arrays"}
        values: dict[str, Any] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, _, value = part.partition("=")
            if name not in kinds:
                raise ValueError(f"there is no option {name!r} of the simulator; there are {', '.join(kinds)}")
            if kinds[name] is bool:
                if value not in ("on", "off"):
                    raise ValueError(f"{name} is on or off, got {value!r}")
                values[name] = value == "on"
            else:
                values[name] = int(value) if kinds[name] is int else value
        return cls(**values)


class _Chosen(threading.local):
    """What this thread has chosen."""

    options = Options()


_chosen = _Chosen()


def current_options() -> Options:
    """The options of launches now: those of this thread's innermost `with options(...)`.

    >>> weft.sim.current_options().copies
    'latest'
    """
    return _chosen.options


@contextmanager
def options(base: Options | None = None, **changes: Any) -> Iterator[Options]:
    """Simulate this thread's launches inside a `with` with other options: those given, or the present ones changed.

    >>> with options(order="random", seed=3) as now:
    ...     now.describe()
    'copies land at the latest, warps in random order with seed 3'
    """
    before = _chosen.options
    _chosen.options = replace(base or before, **changes)
    try:
        yield _chosen.options
    finally:
        _chosen.options = before
