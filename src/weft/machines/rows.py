"""The machines that are known, by the name of their target.

>>> machine_of("sim:cuda:90").shared_bytes, machine_of("cuda:75").async_copies
(232448, ())
>>> [closest("nvidia", n).name for n in (80, 88, 110, 999)]       # those without a row run the portable row below
['cuda:80', 'cuda:87', 'cuda:103', 'cuda:121']
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial

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
    """The machine of a target's name, a simulated one's too; a `Machine` is itself.

    >>> from weft.layouts import machine_of
    >>> machine_of("sim:cuda:90").name
    'cuda:90'
    """
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


def meant(text: str) -> tuple[str, int]:
    """The vendor and the generation that a text means which names no target; ("", 0) where it means none.

    A vendor's rows say how its targets begin, its own `generation_of` what else it is called.

    >>> meant("sim:cuda:88"), meant("sm_90"), meant("hip:gfx940"), meant("gfx1101"), meant("xpu:9")
    (('nvidia', 88), ('nvidia', 90), ('amd', 2368), ('amd', 4353), ('', 0))
    """
    for vendor in vendors_with("machines"):
        rows = part_of("machines", vendor)
        asked = getattr(rows, "generation_of", None) or partial(_generation_of, rows.ROWS)
        if generation := asked(text):
            return vendor, generation
    return "", 0


def _generation_of(rows: Sequence[Machine], text: str) -> int:
    """The number behind what the names of a vendor's targets begin with, or behind a part of that: hip:gfx, gfx."""
    name = text.removeprefix("sim:")
    for begins in {row.name.rstrip("0123456789") for row in rows if row.name[-1].isdigit()}:
        for shorter in {begins, begins.partition(":")[2]} - {""}:
            digits = re.match(r"\d+", name[len(shorter) :]) if name.startswith(shorter) else None
            if digits:
                return int(digits[0])
    return 0


def target_named(arch: str) -> str:
    """The target of an architecture, as its vendor calls it: cuda:90 for sm_90, hip:gfx942 for gfx942.

    >>> target_named("sm80"), target_named("gfx942")
    ('cuda:80', 'hip:gfx942')
    """
    names = []
    for vendor in vendors_with("machines"):
        rows = part_of("machines", vendor)
        name_of = getattr(rows, "name_of", None)
        names.append(name_of(arch) if name_of is not None else f"{rows.ROWS[0].name.partition(':')[0]}:{arch}")
    return next((name for name in names if name in MACHINES), names[0])


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
