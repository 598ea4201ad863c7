"""NVIDIA GPUs: their instructions, each with its operands' layouts, its text and its meaning side by side.

>>> mma = instruction("mma.sync.m16n8k16.f32.f16.f16.f32")
>>> mma.since, [f"{o.elem} x {o.count}" for o in mma.operands]
(80, ['f16 x 8', 'f16 x 4', 'f32 x 4'])
"""

from weft.base import publish as _publish

from ..instruction import Instruction as Instruction, Memory as Memory, Operand as Operand
from ..meaning import *
from .bulk import *
from .effects import *
from .mbarrier import *
from .table import *
from .tensormap import *
from .wgmma import *

_publish(globals())
