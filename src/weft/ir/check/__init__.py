"""What tile IR must be: `verify`, with a rule for each operation.

structure   operands, results, types, definitions before uses; the walk
rules       the table of rules          arithmetic, tiles, memory, control   the rules
"""

from . import arithmetic, control, memory, tiles  # fill the table of rules
from .rules import RULES, fail, rule
from .structure import MAX_NUMEL, verify

__all__ = ["MAX_NUMEL", "RULES", "fail", "rule", "verify"]

_ = (arithmetic, control, memory, tiles)
