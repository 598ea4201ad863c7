"""The table of how operations are lowered that only NVIDIA's GPUs have."""

from ..context import Lowering, lowerings

__all__ = ["LOWERINGS", "lowering"]

LOWERINGS: dict[str, Lowering] = {}
lowering = lowerings(LOWERINGS)
