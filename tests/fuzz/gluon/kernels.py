"""A seed becomes a Gluon kernel."""

from __future__ import annotations

from ..control import attempt, some
from ..memory import MEMORY, keep
from ..program import Program
from ..scope import Impossible
from . import memory, pipelines, products
from .operations import EACH, TILES
from .scope import GluonGenerator

__all__ = ["generate"]


def generate(seed: int, capability: int) -> Program:
    """The Gluon kernel of a seed, for a compute capability."""
    g = GluonGenerator(
        seed, capability, [*EACH, *TILES, *MEMORY, *memory.MEMORY, *products.PRODUCTS, *pipelines.PIPELINES]
    )
    for _ in range(3):
        try:
            some(g, 2, 2)
        except Impossible:
            continue
    some(g, g.rng.choice((4, 8, 12, 16)), 0)
    seen = [v for v in g.scopes[0] if v.name.startswith("v")]
    for v in seen[-5:]:
        attempt(g, lambda g, v=v: keep(g, v))  # type: ignore[misc]
    return g.program
