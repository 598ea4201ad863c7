"""The machines that are known, by the name of their target.

>>> machine_of("sim:cuda:90").shared_bytes, machine_of("cuda:75").async_copies
(232448, False)
>>> [closest("nvidia", n).name for n in (80, 88, 110, 999)]       # those without a row run the portable row below
['cuda:80', 'cuda:87', 'cuda:103', 'cuda:121']
"""

from __future__ import annotations

from functools import lru_cache

from weft.base import LayoutError

from .machine import Machine
from .vendors import after_joining, part_of, vendors_with

MACHINES: dict[str, Machine] = {}


def _add(vendor: str) -> None:
    """The machines of a vendor."""
    rows = part_of("machines", vendor)
    if rows is not None:
        MACHINES.update((m.name, m) for m in rows.ROWS)
        closest.cache_clear()


def machine_of(target: Machine | str) -> Machine:
    """The machine of a target's name, a simulated one's too; a `Machine` is itself."""
    if isinstance(target, Machine):
        return target
    machine = MACHINES.get(target.removeprefix("sim:")) if isinstance(target, str) else None
    if machine is None:
        raise LayoutError(
            f"the planner knows no machine {target!r}", hint=f"known are {', '.join(MACHINES)}; or pass a Machine"
        )
    return machine


@lru_cache(maxsize=256)
def closest(vendor: str, generation: int) -> Machine | None:
    """The machine whose code a processor of a vendor runs: its own row, else the newest portable one below it."""
    rows = [m for m in MACHINES.values() if m.vendor == vendor]
    row = next((m for m in rows if m.generation == generation), None)
    older = (m for m in rows if m.generation < generation and m.portable)
    return row or max(older, key=lambda m: m.generation, default=None)


def oldest_with(feature: str) -> list[str]:
    """The name of the oldest machine that has a feature, a field of `Machine`; for messages.

    >>> oldest_with("async_copies"), oldest_with("async_proxy")
    (['cuda:80'], ['cuda:90'])
    """
    return [m.name for m in MACHINES.values() if getattr(m, feature)][:1]


after_joining.append(_add)
for _vendor in vendors_with("machines"):
    _add(_vendor)
DEFAULT = next(m for m in MACHINES.values() if m.is_default)
"""What is planned for, and what layout IR that names no target is lowered for."""
