"""`gl.nvidia.rubin`: the generation after Blackwell; what Blackwell does not have says that it is not supported yet."""

from ....elsewhere import unsupported as _unsupported
from ..blackwell import *

__getattr__ = _unsupported(
    globals(), "rubin", "cuda:107", "add4 fma4 mul4 sub4", modules="async_copy clc cluster mbarrier tma"
)
