"""Accesses of global memory by one kernel, as far as they say whether two threads may meet.

Which bytes an address stands for is not known while compiling. What is known is the kernel's argument that it was
computed from, and whether it is the very address of another access. Through pointers of two arguments nothing is taken
to meet, nor do the turns of a loop of one store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.lane import LaneOp, LaneProgram, Value

from .lane_numbers import edges

__all__ = ["GlobalTouch", "GlobalTouches"]

INJECTIVE = ("linear", "constant", "rename", "join", "arith.addi", "arith.subi", "arith.muli", "arith.shli",
             "arith.xori", "arith.extsi", "arith.extui", "arith.index_cast")  # fmt: skip
"""Through these, numbers that differ from thread to thread mostly stay so; through a remainder they do not."""


@dataclass(frozen=True, slots=True)
class GlobalTouch:
    """An access: what it does ("read", "write" or "atomic"), and where."""

    op: LaneOp
    how: str
    roots: frozenset[Value]
    address: Value | None
    """None once a loop has come round that computes it anew."""

    def meets(self, later: GlobalTouch, own: bool) -> bool:
        """Whether a barrier must come between; `own`: an address that both have is each thread's own."""
        if self.how == later.how and (self.how != "write" or self.op is later.op):
            return False
        if not self.roots & later.roots:
            return False
        return self.address is None or self.address is not later.address or not own


class GlobalTouches:
    """What there is to know of the addresses of a program."""

    def __init__(self, program: LaneProgram) -> None:
        self.program = program
        self.sources: dict[Value, list[Value]] = {}
        for value, operands in edges(program):
            self.sources.setdefault(value, []).extend(operands)
        pairs = zip(program.parameters, program.body.arguments, strict=True)
        self.pointers = {value for parameter, value in pairs if parameter.elem == "ptr"}
        self._own: dict[Value, bool] = {}
        self._roots: dict[Value, frozenset[Value]] = {}

    def of(self, op: LaneOp) -> Sequence[GlobalTouch]:
        """The accesses that an operation makes."""
        if op.name in ("load", "store", "atomic", "compare_and_swap"):
            if op.attrs["space"] != "global":
                return ()
            how, address = {"load": "read", "store": "write"}.get(op.name, "atomic"), op.operands[0]
        elif op.name == "copy_async":
            how, address = "read", op.operands[1]
        else:
            return ()
        return (GlobalTouch(op, how, self.roots(address), address),)

    def _behind(self, value: Value) -> set[Value]:
        found: set[Value] = set()
        rest = [value]
        while rest:
            one = rest.pop()
            if one not in found:
                found.add(one)
                rest += self.sources.get(one, ())
        return found

    def roots(self, address: Value) -> frozenset[Value]:
        """The pointers among the kernel's arguments that an address may have been computed from."""
        if address not in self._roots:
            self._roots[address] = frozenset(self._behind(address) & self.pointers)
        return self._roots[address]

    def own(self, address: Value) -> bool:
        """Whether no two warps (blocks of a cluster) have the same address, as far as layouts tell."""
        if address not in self._own:
            self._own[address] = self._is_own(address)
        return self._own[address]

    def _is_own(self, address: Value) -> bool:
        behind = self._behind(address)
        spread = [v for v in behind if v.op is not None and v.op.name == "linear"]
        for name, size in (("warp", self.program.warps), ("block", self.program.blocks)):
            for bit in range(size.bit_length() - 1):
                if not any(_moves(v, name, bit) for v in spread):
                    return False
        varying = self._varying(behind, set(spread))
        return all(v.op is not None and v.op.name in INJECTIVE for v in varying)

    def _varying(self, behind: set[Value], varying: set[Value]) -> set[Value]:
        """Those of these values that differ from thread to thread, or may."""
        varying |= {v for v in behind if v.op is not None and v.op.name in ("load", "atomic", "compare_and_swap")
                    and v.count > 1}  # fmt: skip
        changed = True
        while changed:
            more = {v for v in behind - varying if not varying.isdisjoint(self.sources.get(v, ()))}
            changed = bool(more)
            varying |= more
        return varying


def _moves(value: Value, name: str, bit: int) -> bool:
    assert value.op is not None
    bases = value.op.attrs.get(name, ())
    return bit < len(bases) and bool(bases[bit])
