"""The instructions of all machines: by name, and products by what they multiply.

A pass or a lowering that needs a matrix instruction says of which types and for how many warps, and takes the first
whose tile divides its layouts:

>>> from weft.machines import machine_of
>>> [p.shape for p in products(machine_of("cuda:80"), "f16", "f16", "f32")]
[(16, 8, 16), (16, 8, 8)]
>>> [p.shape for p in products(machine_of("cuda:75"), "f16", "f16", "f32")]
[(16, 8, 8)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from weft.machines import MACHINES, Machine
from weft.machines.vendors import part_of, vendors_with

from .instruction import Effects, Instruction

_BY_VENDOR: dict[str, dict[str, Instruction]] = {}
_BY_NAME: dict[str, Instruction] = {}
_VENDOR_OF: dict[str, str] = {}
_LOADED: set[str] = set()
"""The vendors whose own tables are in these: making one takes a tenth of a second, and most programs need one."""


def add_instructions(vendor: str, entries: Iterable[Instruction]) -> None:
    """The instructions of the machines of a vendor; names say whose they are, and are given once."""
    added = {entry.name: entry for entry in entries}
    assert not added.keys() & _BY_NAME.keys(), sorted(added.keys() & _BY_NAME.keys())
    _BY_VENDOR.setdefault(vendor, {}).update(added)
    _BY_NAME.update(added)
    _VENDOR_OF.update(dict.fromkeys(added, vendor))
    products.cache_clear()


def instruction(name: str) -> Instruction:
    """The entry of this name; KeyError, naming those that begin alike, if there is none."""
    unloaded = (vendor for vendor in vendors_with("targets") if vendor not in _LOADED)
    while (entry := _BY_NAME.get(name)) is None and (vendor := next(unloaded, None)) is not None:
        _of(vendor)
    if entry is None:
        alike = sorted(n for n in _BY_NAME if n.split(".")[0] == name.split(".")[0])
        raise KeyError(f"there is no instruction {name!r}" + (f"; there are {', '.join(alike)}" if alike else ""))
    return entry


@cache
def effects_of(name: str) -> Effects:
    """What the instruction of this name does that others have to be ordered with: as its vendor says, if it does."""
    entry, vendor = instruction(name), part_of("targets", _VENDOR_OF[name])
    effects: Effects = vendor.effects(entry) if hasattr(vendor, "effects") else entry.effects()
    return effects


def available(machine: Machine) -> Iterator[Instruction]:
    """The instructions that a machine has.

    >>> from weft.machines import machine_of
    >>> any(i.name.startswith("stmatrix") for i in available(machine_of("cuda:80")))
    False
    """
    return (i for i in _of(machine.vendor).values() if i.works_on(machine))


def has(machine: Machine, name: str) -> bool:
    """Whether a machine has the instruction of this name."""
    entry = _of(machine.vendor).get(name)
    return entry is not None and entry.works_on(machine)


def first_with(name: str) -> list[str]:
    """The oldest machine that has the instruction of this name, for messages; none where no known one has it."""
    return [m.name for m in MACHINES.values() if has(m, name)][:1]


@lru_cache(maxsize=512)
def products(
    machine: Machine, left: str, right: str, total: str, warps: int = 1, *, precise: bool = False
) -> tuple[Instruction, ...]:
    """The matrix instructions by which so many warps multiply elements of these types: the cheapest first.

    Of those that cost the same for each product, the largest come first. Sums of integers wrap. With `precise`, they
    multiply all bits of f32, where others leave some out.
    """
    entries = [
        entry
        for entry in _of(machine.vendor).values()
        if entry.params.get("multiplies") == (left, right)
        and entry.params["accumulator"] == total
        and entry.params.get("warps", 1) == warps
        and not (precise and entry.is_coarse)
        and entry.works_on(machine)
    ]
    return tuple(sorted(entries, key=lambda e: (e.cost / e.products, -e.products)))


def _of(vendor: str) -> dict[str, Instruction]:
    """The instructions of a vendor, by name. Its table is made when somebody first asks for one of them."""
    if vendor not in _LOADED:
        _LOADED.add(vendor)
        part = part_of("targets", vendor)
        add_instructions(vendor, part.INSTRUCTIONS.values() if part is not None else ())
    return _BY_VENDOR[vendor]
