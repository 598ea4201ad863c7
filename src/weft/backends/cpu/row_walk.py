"""Where a loop along the rows that an index is divided into stands (walks.py): the place in the row, and the row.

r, k = i // 300, i % 300        in the loop along one row, r is the row and k counts: nothing is divided
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from weft.backends.cpu import forms
from weft.backends.cpu.coords import Coord, Coords
from weft.backends.cpu.forms import Form, Uniform, Varying
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import constant_int
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value as Reg, const, const_lanes, vec


@dataclass(frozen=True)
class Walk:
    """What the bits of an axis count in a loop along rows, see walks.py: a place that is no multiple of anything."""

    bits: tuple[int, ...]
    position: Reg
    """The first of the places in this iteration."""
    shift: Reg
    """What is added to a place for its distance from the beginning of the row."""
    row: Reg
    length: int
    divisions: Set[Op]
    """Quotients and remainders of the index, and of its remainders, by multiples of a row's length."""
    rest: Reg | None
    """How many places there are before the end of the row, where they are fewer than in a whole iteration."""

    def coordinate(self, coords: Coords) -> Coord | None:
        """The coordinate that goes along the axis, where it is not known."""
        return next((coord for coord in coords if not set(self.bits).isdisjoint(coord)), None)

    def divided(self, f: Function, op: Op, place: Callable[[], Form]) -> Form:
        """A quotient or remainder: of the row's number, and with a place in it, which is in this iteration."""
        type = self.row.type

        def rows(op: Op) -> Reg:
            return const(type, (constant_int(op.args[1]) or 0) // self.length)

        def row_of(index: Value) -> Reg:
            if index.op is None or index.op not in self.divisions:
                return self.row
            return f.bin("urem", row_of(index.op.args[0]), rows(index.op))

        if "div" in op.name:
            return Uniform(f.bin("udiv", row_of(op.args[0]), rows(op)))
        before = f.mul(f.bin("urem", row_of(op.args[0]), rows(op)), const(type, self.length))
        number = forms.add(f, place(), Uniform(self.shift))
        narrow = forms.cast_int(f, "trunc", number, type) if number is not None else None
        result = forms.add(f, narrow, Uniform(before)) if narrow is not None else None
        assert result is not None
        return result

    def before_end(self, f: Function, start: int, lanes: int) -> Form:
        """Which lanes lie before the end of the row, of those from a place in this iteration on."""
        assert self.rest is not None
        type = vec("i32" if lanes <= 16 else "i16", lanes)
        count = f.splat(f.cast("trunc", self.rest, type.scalar), lanes)
        numbers = [start + lane for lane in range(lanes)]  # lanes are the lowest bits of the axis
        return Varying(f.icmp("ult", const_lanes(type, numbers), count))
