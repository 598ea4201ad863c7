"""How a simulation runs and what it checks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """`copies`: when asynchronous copies land, "earliest" (when issued) or "latest" (when waited for).

    `order`: in which order warps act where the machine leaves it open, "forward", "backward", or "random" with `seed`.
    With `raise_first` the first error is raised; otherwise all are in the report.

    >>> Options(order="sideways")
    Traceback (most recent call last):
        ...
    ValueError: order must be forward, backward or random, got 'sideways'
    """

    races: bool = True
    bounds: bool = True
    uninitialized: bool = True
    raise_first: bool = True
    copies: str = "latest"
    order: str = "forward"
    seed: int = 0
    together: int = 1 << 21
    """Registers that the widest value of the blocks that run at once may take in all."""
    steps: int = 1_000_000
    """Turns of loops after which a launch is given up."""

    def __post_init__(self) -> None:
        if self.copies not in ("earliest", "latest"):
            raise ValueError(f"copies must be earliest or latest, got {self.copies!r}")
        if self.order not in ("forward", "backward", "random"):
            raise ValueError(f"order must be forward, backward or random, got {self.order!r}")

    def describe(self) -> str:
        """For reports: what is needed to see the same again."""
        seed = f" with seed {self.seed}" if self.order == "random" else ""
        return f"copies land at the {self.copies}, warps in {self.order} order{seed}"
