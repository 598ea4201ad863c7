"""The table of lowerings for operations that only NVIDIA's GPUs have."""

from weft.base import registry

from ..context import Lowering

LOWERINGS: dict[str, Lowering] = {}
lowering = registry(LOWERINGS)
