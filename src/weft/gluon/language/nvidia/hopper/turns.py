"""`hopper.turns`: two warp groups, of a kernel or a partition of eight warps, begin their products in turn. Weft's own.

    turns.begin()
    for i in range(n):
        turns.take()                                    # waits until the other warp group has passed
        scores = warpgroup_mma(a, b, acc, is_async=True)
        turns.pass_on()
        ...                                             # runs beside the products of the other warp group
    turns.end()

Turns order no accesses to memory. Where all warps wait for each other between `take` and `pass_on` they are left out.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import StringAttr

from weft.ir.nvidia import ttng
from weft.language.protocol import GIVEN, builtin_named

from ....semantic import GluonSemantic

__all__ = ["begin", "end", "pass_on", "take"]

WARPS = 8
"""Of two warp groups."""


def _turn(name: str, step: str, doc: str) -> Any:
    def function(_semantic: GluonSemantic = GIVEN) -> None:
        if _semantic.warps != WARPS:
            raise ValueError(f"{name}: two warp groups take turns, {WARPS} warps; here are {_semantic.warps}")
        _semantic.builder.create(ttng.WarpGroupTurnOp, (), (), {"step": StringAttr(step)})

    return builtin_named(name, doc, function)


begin = _turn("begin", "begin", "Before a loop in which warp groups take turns.")
take = _turn("take", "take", "Wait until it is this warp group's turn.")
pass_on = _turn("pass_on", "pass", "It is the other warp group's turn.")
end = _turn("end", "end", "After the loop.")
