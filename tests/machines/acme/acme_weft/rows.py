"""The only processor of Acme's: what `machines/nvidia.py` is for NVIDIA's."""

from __future__ import annotations

from weft.machines import Machine

__all__ = ["ROWS"]

ROWS = (
    Machine(
        "acme:one",
        "acme",
        1,
        lanes=16,
        banks=64,
        vector_bytes=8,
        shared_bytes=32 << 10,
        multiprocessors=3,
        async_copies=(4,),
    ),
)
