"""The operands of a product in registers."""

from __future__ import annotations

from dataclasses import dataclass

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .base import DistributedLayout
from .blocked import operand_cga
from .cga import Bases

__all__ = ["DotOperandLayout", "natural_k_width"]


@dataclass(frozen=True, repr=False)
class DotOperandLayout(DistributedLayout):
    """Operand 0 or 1 of a product whose result has the layout `parent`.

    `k_width` is how many consecutive elements along the dimension that is summed over a thread has at once: those of 32
    bits on NVIDIA (`natural_k_width`), more if the data was narrower when it was loaded; 0 for a blocked parent.

    >>> from weft.layouts import DotOperandLayout, NVMMADistributedLayout
    >>> product = NVMMADistributedLayout([2, 0], [1, 1], [16, 8])
    >>> DotOperandLayout(0, product, k_width=2).to_linear([16, 16]).bases["register"]
    ((0, 1), (8, 0), (0, 8))
    """

    operand_index: int
    parent: DistributedLayout
    k_width: int

    def __post_init__(self) -> None:
        name = self._name
        self._set(parent=checks.unwrapped(self.parent))
        index = checks.integer(name, "operand_index", self.operand_index, 0, 1)
        if not isinstance(self.parent, DistributedLayout):
            raise LayoutError(f"{name}: parent must be the distributed layout of the result, got {self.parent!r}")
        width = self.k_width
        if width != 0:
            width = checks.power_of_two(name, "k_width", width)
        self._set(operand_index=index, k_width=checks.integer(name, "k_width", width, 0, 1 << 30))
        self.parent.check_operand(index, self.k_width)

    @property
    def rank(self) -> int:
        return self.parent.rank

    @property
    def cga_layout(self) -> Bases:
        """The parent's; blocks that differ along the dimension that is summed over hold the same."""
        k = self.rank - 1 if self.operand_index == 0 else self.rank - 2
        return operand_cga(getattr(self.parent, "cga_layout", ()), k)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        return self.parent.operand(self.operand_index, self.k_width, shape)


def natural_k_width(element_bits: int) -> int:
    """The `k_width` of elements that are multiplied as they were loaded on NVIDIA: as many as 32 bits hold, at least 1.

    >>> natural_k_width(8), natural_k_width(64)
    (4, 1)
    """
    return max(1, 32 // checks.power_of_two("natural_k_width", "element_bits", element_bits))
