"""A seed becomes a Gluon kernel."""

from __future__ import annotations

from ..control import attempt, some
from ..memory import MEMORY, keep, load as plain_load, store as plain_store
from ..program import Program
from ..scope import Impossible
from ..special import EACH as ANY_EACH, on_any_values
from . import layouts, memory, pipelines, products
from .operations import ANY_TILES, EACH, TILES, convert, gather, reduce, renamed
from .scope import GluonGenerator

__all__ = ["generate", "generate_layouts"]

MOVES = [
    (convert, 12), (reduce, 6), (gather, 2), (renamed, 2), (memory.allocate, 8), (memory.load, 9), (memory.store, 6),
    (plain_load, 8), (plain_store, 4),
]  # fmt: skip
"""What moves a tile from one layout to another."""


def generate(seed: int, capability: int, special: bool = False) -> Program:
    """The Gluon kernel of a seed, for a compute capability; `special`: on floats of any value too."""
    menu = [*EACH, *TILES, *MEMORY, *memory.MEMORY, *products.PRODUCTS, *pipelines.PIPELINES]
    g = GluonGenerator(seed, capability, menu + (on_any_values([*ANY_EACH, *ANY_TILES]) if special else []))
    for _ in range(3):
        try:
            some(g, 2, 2)
        except Impossible:
            continue
    some(g, g.rng.choice((4, 8, 12, 16)), 0)
    seen = [v for v in g.scopes[0] if v.name.startswith("v")]
    for v in [v for v in seen if v.special][-8:] + [v for v in seen if not v.special][-5:]:
        with g.any_values(v.special):
            attempt(g, lambda g, v=v: keep(g, v))  # type: ignore[misc]
    return g.program


class _Layouts(GluonGenerator):
    """Takes layouts of every family, each a new one."""

    registers = staticmethod(layouts.any_of)


def generate_layouts(seed: int, capability: int) -> Program:
    """A kernel that does little but move tiles through random layouts of registers and of shared memory."""
    g = _Layouts(seed, capability, [*MOVES, *EACH[:3]])
    some(g, g.rng.choice((4, 6, 8, 12)), 2)
    for v in [v for v in g.scopes[0] if v.name.startswith("v")][-6:]:
        attempt(g, lambda g, v=v: keep(g, v))  # type: ignore[misc]
    return g.program
