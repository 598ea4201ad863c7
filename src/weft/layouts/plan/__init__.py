"""Plans: how tiles move between layouts, what that costs, and why it is done so."""

from .access import Access, best_access, wavefronts
from .conversion import Cost, Plan, plan_conversion
from .machine import MACHINES, Machine, machine_of

__all__ = [
    "MACHINES",
    "Access",
    "Cost",
    "Machine",
    "Plan",
    "best_access",
    "machine_of",
    "plan_conversion",
    "wavefronts",
]
