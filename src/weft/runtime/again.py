"""What-if: a launch that was explained, explained again with something changed.

    e = matmul.explain(a, b, c, M, N, K, BM=64, BN=64, grid=lambda meta: ..., target="cuda:90")
    e.what_if(num_warps=8).time
    e.what_if(K=4096, BM=128)

An explanation keeps the launch that it is of, its arrays included, in an `Again`; one that is read from JSON has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.explain import Explanation
from weft.language.keys import is_constexpr_value

from .binder import asked_grid

__all__ = ["Again", "arguments_by_name"]

ALIGNED = 16
"""Of an integer, what a compilation takes note of: whether it is a multiple of this."""
MOST_WARPS = 16
MOST_INTEGERS = 3
"""Integers of which another divisibility is suggested."""


class Again:
    """A launch that can be explained again; `explain` is `explaining.explain`, which makes these."""

    def __init__(self, explain: Any, kernel: Any, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any]) -> None:
        self._explain, self._kernel, self._grid = explain, kernel, grid
        self._args, self._kwargs = tuple(args), dict(kwargs)

    def __call__(self, changes: Mapping[str, Any]) -> Explanation:
        """The explanation with other arguments or options; `grid` may be among them."""
        grid = changes.get("grid", self._grid)
        changes = {name: value for name, value in changes.items() if name != "grid"}
        explained: Explanation = self._explain(self._kernel, self._args, grid, self._kwargs, changes)
        return explained

    def suggestions(self, e: Explanation) -> list[dict[str, Any]]:
        """Changes that are worth a look, one thing at a time.

        Fixes of findings, the ones that bring the most first; options by a factor of two or a stage, block sizes that
        a function of the grid reads by a factor of two, and integers that are multiples of 16 and were none, or the
        other way round.
        """
        bound = arguments_by_name(self._kernel, self._args, self._kwargs)
        found: list[dict[str, Any]] = []
        for finding in e.findings:
            if finding.change and finding.change not in found:
                found.append(dict(finding.change))
        warps = e.options.get("num_warps")
        if warps and e.target != "cpu":
            found += [{"num_warps": n} for n in (warps // 2, warps * 2) if 1 <= n <= MOST_WARPS]
        stages = e.options.get("num_stages")
        if stages and any(remark.kind in ("pipelined", "not pipelined") for remark in e.remarks):
            found += [{"num_stages": n} for n in (stages - 1, stages + 1) if n >= 1]
        found += [{name: n} for name in self._blocks(bound) for n in _halved_and_doubled(bound[name])]
        runtime = [p.name for p in _innermost(self._kernel).params if not p.is_constexpr]
        fixed = {name for change in found for name in change}
        integers = [
            (name, bound[name])
            for name in runtime
            if type(bound.get(name)) is int and bound[name] > ALIGNED and name not in fixed
        ]
        for name, value in integers[:MOST_INTEGERS]:
            other = value + 1 if value % ALIGNED == 0 else -(-value // ALIGNED) * ALIGNED
            found.append({name: other})
        return [change for i, change in enumerate(found) if change not in found[:i]]

    def _blocks(self, bound: Mapping[str, Any]) -> list[str]:
        """The constexprs that a function of the grid reads: with others in their place, the grid does the same work."""
        if not callable(self._grid):
            return []
        seen = _Seen(bound)
        asked_grid(self._grid, seen)
        return [p.name for p in _innermost(self._kernel).params if p.is_constexpr and p.name in seen.names]


class _Seen(dict[str, Any]):
    """Arguments that remember which of them were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.names: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self.names[name] = None
        return super().__getitem__(name)


def arguments_by_name(kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as keywords."""
    return {**dict(zip(_innermost(kernel).arg_names, args, strict=False)), **kwargs}


def _innermost(kernel: Any) -> Any:
    while not hasattr(kernel, "_compile_for"):
        kernel = kernel.fn
    return kernel


def _halved_and_doubled(value: Any) -> list[int]:
    value = value.value if is_constexpr_value(value) else value
    is_power = type(value) is int and value >= ALIGNED and value & (value - 1) == 0
    return [value // 2, value * 2] if is_power else []
