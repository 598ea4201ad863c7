"""AMD GPUs: their instructions, each with its operands' layouts, LLVM's intrinsic and its meaning side by side.

>>> mfma = INSTRUCTIONS["mfma.f32.32x32x8f16"]
>>> mfma.text, [f"{o.elem} x {o.count}" for o in mfma.operands]
('llvm.amdgcn.mfma.f32.32x32x8f16', ['f16 x 4', 'f16 x 4', 'f32 x 16'])

LLVM makes assembly of an intrinsic: an entry's `text` is the whole name of the intrinsic, its `params` say how it is
called: `arguments`, of which each is LLVM's type and what it is, an operand's name or a constant number; and `returns`,
LLVM's type of the result, or those of several. The elements of an operand lie in such an argument
in order, lowest bits first.
"""

from .mbarriers import (
    ARRIVE as ARRIVE,
    COPIES_ARRIVE as COPIES_ARRIVE,
    INIT as INIT,
    MOST as MOST,
    PARITY as PARITY,
    WAIT as WAIT,
    made as made,
)
from .scaled import operand_layout as operand_layout, scale_layout as scale_layout
from .table import INSTRUCTIONS as INSTRUCTIONS, scaled_products as scaled_products
from .tensors import LOCAL_WAIT as LOCAL_WAIT, TENSOR_WAIT as TENSOR_WAIT, Tile as Tile, effects as effects
