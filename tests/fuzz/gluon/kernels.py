"""A seed becomes a Gluon kernel."""

from __future__ import annotations

from ..control import attempt, some
from ..memory import MEMORY, keep
from ..program import Program
from ..scope import Impossible
from ..special import EACH as ANY_EACH
from ..special import on_any_values
from . import memory, pipelines, products
from .operations import ANY_TILES, EACH, TILES
from .scope import GluonGenerator

__all__ = ["generate"]


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
