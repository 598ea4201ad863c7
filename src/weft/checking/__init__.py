"""Kernels judged against a reference, as `weft check` does: for graders, agents and CI, without a GPU.

    verdict = check("kernel.py", "reference.py", Settings(seeds=3))
    verdict.kind                    # "right", "wrong", "error", "timeout", "memory", "died"

Four processes, so that nothing that the checked file does can make it right:

    check       compares, and imports neither file: what it reads of the others is JSON and arrays
    reference   runs the reference; what it expects goes to `check` alone
    candidate   runs the kernel file, which it alone imports, on copies of the inputs; confined (confine.py)
    judge       runs the kernels that the candidate launched, which come as text of tile IR, in the simulator

Each runs under a keeper, a process that ends it and all that it started when a limit is reached (keeper.py).
"""

from .process import Limits as Limits
from .verdict import Settings as Settings, Verdict as Verdict, check as check
