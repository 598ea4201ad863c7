"""Products of tiles by AMD's matrix instructions: `mfma` of CDNA, `wmma` of RDNA and gfx1250."""

from __future__ import annotations

from collections.abc import Callable

from weft.base import LayoutError
from weft.language.protocol import GIVEN, builtin
from weft.language.tensors import tensor
from weft.layouts import AMDMFMALayout, AMDWMMALayout

from ...operands import check_operands
from ...semantic import GluonSemantic
from .processors import check_processor


@builtin
def mfma(a: tensor, b: tensor, acc: tensor, _semantic: GluonSemantic = GIVEN) -> tensor:
    """`a @ b + acc` by MFMA.

    `acc` is in an AMDMFMALayout, `a` and `b` in DotOperandLayouts of it.
    """
    check_processor("mfma", "hip:gfx942", _semantic)
    check_operands("mfma", a, b, acc, AMDMFMALayout)
    return _semantic.dot(a, b, acc, None, None, acc.dtype)


def wmma_of(version: int, processors: str) -> Callable[..., tensor]:
    """The builtin `wmma` of processors whose layouts have this version."""

    def wmma(a: tensor, b: tensor, acc: tensor, _semantic: GluonSemantic = GIVEN) -> tensor:
        check_processor("wmma", "hip:gfx1201", _semantic)
        layout = check_operands("wmma", a, b, acc, AMDWMMALayout)
        assert isinstance(layout, AMDWMMALayout)
        if layout.version != version:
            raise LayoutError(
                f"wmma: the layout of `acc` has version {layout.version}, that of {processors} is {version}: {layout!r}"
            )
        return _semantic.dot(a, b, acc, None, None, acc.dtype)

    wmma.__qualname__ = "wmma"
    wmma.__doc__ = f"""`a @ b + acc` by WMMA of {processors}.

    `acc` is in an AMDWMMALayout of version {version}, `a` and `b` in DotOperandLayouts of it.
    """
    return builtin(wmma)
