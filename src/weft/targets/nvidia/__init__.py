"""NVIDIA GPUs: their instructions, each with its operands' layouts, its text and its meaning side by side.

>>> mma = instruction("mma.sync.m16n8k16.f32.f16.f16.f32")
>>> mma.since, [f"{o.elem} x {o.count}" for o in mma.operands]
(80, ['f16 x 8', 'f16 x 4', 'f32 x 4'])
"""

from ..instruction import Instruction, Memory, Operand
from .bulk import CORNERS, ELEMENT_TYPES, MOST_PIXELS, REDUCTIONS, SWIZZLES, TensorMap, map_of
from .effects import effects
from .mbarrier import MBarrier, MBarrierError
from .meaning import from_matrix, round_to, to_matrix
from .table import INSTRUCTIONS, instruction
from .tensormap import decode, encode
from .wgmma import canonical, descriptor

__all__ = [
    # the table
    "INSTRUCTIONS",
    "Instruction",
    "Operand",
    "effects",
    "instruction",
    # tensor maps
    "CORNERS",
    "ELEMENT_TYPES",
    "MOST_PIXELS",
    "REDUCTIONS",
    "SWIZZLES",
    "TensorMap",
    "map_of",
    "decode",
    "encode",
    # what meanings are made of
    "MBarrier",
    "MBarrierError",
    "Memory",
    "canonical",
    "descriptor",
    "from_matrix",
    "round_to",
    "to_matrix",
]
