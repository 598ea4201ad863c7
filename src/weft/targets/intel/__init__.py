"""Intel's GPUs: their matrix instruction DPAS, with its operands' layouts, what SPIR-V calls it, and its meaning.

>>> dpas = INSTRUCTIONS["dpas.8x16x16.f32.f16.f16"]
>>> [f"{o.elem} x {o.count}" for o in dpas.operands]
['f16 x 8', 'f16 x 16', 'f32 x 8']

An entry's `text` is the function that SPIR-V's translators take for the instruction, by its mangled name; its `params`
say how it is called, as those of other vendors do.
"""

from .table import INSTRUCTIONS as INSTRUCTIONS
