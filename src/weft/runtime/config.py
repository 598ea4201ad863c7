"""One choice of an autotuned kernel's parameters and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

from weft.language.keys import key_of


class Config:
    """Values for parameters of the kernel (`kwargs`) and options, and a function to call before a launch with them.

    >>> print(Config({"BLOCK": 128}, num_warps=8))
    BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None
    """

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
        **unknown: Never,
    ) -> None:
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_ctas = num_ctas
        self.num_stages = num_stages
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override
        self.unknown = unknown
        """Arguments that no Config has, told when the kernel is used."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__({})  # type: ignore[misc]
        self.__dict__.update(state)

    def all_kwargs(self) -> dict[str, Any]:
        """What a launch is given: the parameters, and the options that are set."""
        options = {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
            "ir_override": self.ir_override,
        }
        return {**self.kwargs, **{k: v for k, v in options.items() if v is not None}}

    def _facts(self) -> tuple[Any, ...]:
        return tuple((name, key_of(value)) for name, value in self.all_kwargs().items())

    def __hash__(self) -> int:
        return hash((*self._facts(), self.pre_hook))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._facts() == other._facts() and self.pre_hook == other.pre_hook

    def __str__(self) -> str:
        facts = {
            **self.kwargs,
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
        }
        if self.ir_override is not None:
            facts["ir_override"] = self.ir_override
        return ", ".join(f"{k}: {v}" for k, v in facts.items())

    def __repr__(self) -> str:
        return f"Config({self.kwargs!r}, num_warps={self.num_warps}, num_stages={self.num_stages})"
