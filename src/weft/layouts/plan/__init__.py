"""Plans: how tiles move between layouts, what that costs, and why it is done so."""

from weft.machines import MACHINES, Machine, machine_of

from ..pictures import install
from .access import Access, Offsets, best_access
from .conversion import Cost, Plan, plan_conversion
from .gather import Gather, plan_gather
from .local import LocalAccess, plan_local_access, vector_width
from .reduction import Reduction, plan_reduction

__all__ = [
    # what is planned
    "Gather",
    "LocalAccess",
    "Plan",
    "Reduction",
    "plan_conversion",
    "plan_gather",
    "plan_local_access",
    "plan_reduction",
    "vector_width",
    # what it is planned with
    "MACHINES",
    "Access",
    "Cost",
    "Machine",
    "Offsets",
    "best_access",
    "machine_of",
]

install(Plan, Gather, Reduction, LocalAccess)
