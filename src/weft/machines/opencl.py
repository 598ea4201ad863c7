"""OpenCL devices that take SPIR-V, the host's processor among them: one row, with what all of them have.

>>> ROWS[0].name, ROWS[0].hosted
('opencl', True)
"""

from dataclasses import replace

from .machine import KIB, Machine

_LANES = (
    Machine(
        "opencl",
        "opencl",
        1,
        portable=False,
        hosted=True,
        lanes=16,
        shared_bytes=64 * KIB,  # 32 KiB are what OpenCL promises; a device that has less refuses the kernel
        most_threads=1024,
        float32_products="ieee",
    ),
)
ROWS = (*_LANES, *(replace(row, name=f"{row.name}:simd") for row in _LANES))  # a work item for each warp


def generation_of(text: str) -> int:
    """1 for opencl, else 0."""
    return int(text in ("opencl", "opencl:simd"))
