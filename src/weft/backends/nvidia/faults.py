"""What the CUDA driver says, as errors: a status it answers, a GPU that is not there, a kernel that went wrong (see
`gpu/launches.py`). After a fault of a kernel the context is lost.
"""

from __future__ import annotations

from typing import Any

from weft.base import NoDevice

from ..gpu.launches import CAPTURE, HINTS, Library

__all__ = ["NoDevice", "bindings", "check", "failed", "launches"]

_FAULTS = {
    700: "an address that does not exist was accessed (illegal address)",
    702: "a launch ran longer than the system allows",
    710: "an assertion in a kernel failed",
    714: "an exception was raised in hardware while the stack was unusable",
    715: "an illegal instruction was executed",
    716: "an access was misaligned",
    717: "an instruction that works on one address space got an address of another",
    718: "the program counter left the kernel",
    719: "a kernel ended by a fault (a trap, an access to shared memory out of bounds, ...)",
    721: "the GPU does not answer",
}
"""Status codes after which the context is lost."""

_CUDA = Library(
    "CUDA",
    "the driver",
    _FAULTS,
    {
        **HINTS,
        46: "another process has the GPU for itself: `nvidia-smi` says which",
        701: "a block needs more registers than there are: fewer warps (num_warps), or maxnreg",
        **dict.fromkeys((900, 901, 905, 906, 907, 908), CAPTURE),
        912: "clusters of more than 8 blocks are what some GPUs can do, with less shared memory each: "
        "a smaller num_ctas",
    },
)
launches = _CUDA.launches


def bindings() -> Any:
    """`cuda.bindings.driver`. ImportError where the package is not installed."""
    from cuda.bindings import driver

    return driver


def failed(driver: Any, status: Any) -> str:
    """The driver's name for a status and what it says of it."""
    _, name = driver.cuGetErrorName(status)
    _, text = driver.cuGetErrorString(status)
    return f"{(name or b'?').decode()} ({(text or b'').decode()})"


def check(answer: tuple[Any, ...], kernel: str = "") -> Any:
    """The value of a call of the driver, or what went wrong as an error."""
    status = answer[0]
    if int(status) == 0:
        return answer[1] if len(answer) == 2 else answer[1:]
    raise _CUDA.error(int(status), failed(bindings(), status), kernel)
