"""Arrays of the host of which gfx1250's kernels copy blocks by the tensor data mover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.base import LaunchError
from weft.layouts import PaddedSharedLayout, SwizzledSharedLayout

from .. import descriptor
from ..arrays import ArrayFacts


@dataclass
class TensorDescriptor(descriptor.TensorDescriptor):
    """A view of the array `base` of which kernels copy blocks to and from shared memory, where they lie in `layout`.

    1 to 5 dimensions, the last contiguous; address and other strides multiples of 16 bytes. What is outside of the
    array reads as 0.
    """

    def __init__(
        self, base: Any, shape: Sequence[int], strides: Sequence[int], block_shape: Sequence[int],
        layout: PaddedSharedLayout | SwizzledSharedLayout, padding: str = "zero",
    ) -> None:  # fmt: skip
        if not isinstance(layout, PaddedSharedLayout | SwizzledSharedLayout):
            raise LaunchError(
                "the layout of a tensor descriptor for gfx1250 must be a PaddedSharedLayout or a SwizzledSharedLayout, "
                f"got {layout!r}"
            )
        if isinstance(layout, SwizzledSharedLayout) and layout.max_phase != 1:
            raise LaunchError(f"a swizzled layout of a tensor descriptor must have a max_phase of 1, got {layout!r}")
        if padding != "zero":
            raise LaunchError(f'the padding of a tensor descriptor for gfx1250 is "zero", got {padding!r}')
        self.layout = layout
        super().__init__(base, list(shape), list(strides), list(block_shape), padding)

    @staticmethod
    def from_tensor(  # type: ignore[override]
        tensor: Any, block_shape: Sequence[int], layout: PaddedSharedLayout | SwizzledSharedLayout
    ) -> TensorDescriptor:
        """Describe the whole of an array, with its own shape and strides."""
        shape, strides = descriptor.extent(tensor)
        return TensorDescriptor(tensor, shape, strides, block_shape, layout)

    def _signature(self, facts: ArrayFacts) -> str:
        """Its type in a signature: tensordesc<fp16[64, 64],SwizzledSharedLayout(1, 1, 1, [1, 0])>."""
        return f"{super()._signature(facts).removesuffix('>')},{self.layout!r}>"

    @property
    def known(self) -> str:
        """Nothing: what lies outside is the data mover's affair."""
        return ""
