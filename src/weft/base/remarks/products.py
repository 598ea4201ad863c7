"""Remarks about instructions: of a product, and why it or a copy is not done by another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .remark import Remark

__all__ = ["InstructionDeclined", "ProductBy"]


@dataclass(frozen=True)
class ProductBy(Remark):
    """How a product of tiles is computed."""

    kind: ClassVar[str] = "product"
    shape: tuple[int, ...]
    """Rows, columns, and the depth that is summed over; a batch comes first."""
    elements: tuple[str, str, str]
    """Of the left operand, the right one, the sums."""
    instruction: str
    """The matrix instruction's name; empty where lanes multiply and add, one element at a time."""
    count: int
    """How many of them each warp executes; of multiplications and additions, each lane."""
    reason: str = ""
    """Why there is no matrix instruction."""

    @property
    def message(self) -> str:
        size, (left, right, total) = "x".join(map(str, self.shape)), self.elements
        text = f"{size}, {left} times {right} summed in {total}: "
        if self.instruction:
            return f"{text}{self.count} {self.instruction} of each warp"
        return f"{text}{self.count} multiplications and additions of each lane, no matrix instruction: {self.reason}"


@dataclass(frozen=True)
class InstructionDeclined(Remark):
    """A better instruction of the machine that a product, or a copy, was not given."""

    kind: ClassVar[str] = "instruction declined"
    instruction: str
    reason: str

    @property
    def message(self) -> str:
        return f"not {self.instruction}: {self.reason}"
