"""What the CUDA driver says, as errors: a status it answers, a GPU that is not there, a kernel that went wrong.

A kernel runs after its launch has returned, so a fault of it (an address that does not exist, a trap) is found by some
later call of the process. By then the context is lost: every call fails, and only a new process helps. The error names
the launches that may have been it, the last ones first.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from weft.base import DeviceLost, LaunchError, NoDevice, OutOfResources

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

_NOT_INITIALIZED = 3
_process = os.getpid()
"""That which this was imported by; a child that it forks after it has used a GPU cannot use one."""

_CAPTURE = "launch it once before the capture begins, so that it is compiled and loaded"
_HINTS = {
    1: "a number or a size of the launch is beyond what this GPU takes; smaller tiles, or fewer num_stages",
    46: "another process has the GPU for itself: `nvidia-smi` says which",
    400: "the stream, or the memory, belongs to another GPU or to a library that has given it back",
    701: "a block needs more registers than there are: fewer warps (num_warps), or maxnreg",
    **dict.fromkeys((900, 901, 905, 906, 907, 908), _CAPTURE),
    912: "clusters of more than 8 blocks are what some GPUs can do, with less shared memory each: a smaller num_ctas",
}
"""What to do about a status, where that can be said."""

launches: deque[tuple[str, int, int, int]] = deque(maxlen=4)
"""The last launches, kernel and grid, the newest last."""


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
    code, reason = int(status), failed(bindings(), status)
    if code in _FAULTS:
        recent = [(name, (x, y, z)) for name, x, y, z in reversed(launches)]
        raise DeviceLost(_FAULTS[code], reason, recent, kernel)
    if code == _NOT_INITIALIZED and os.getpid() != _process:
        raise LaunchError(
            f"CUDA does not work in this process, which was forked from one that had used it ({reason})",
            hint='start workers by multiprocessing.get_context("spawn") or "forkserver"; or fork before the first use',
        )
    if code == 2:
        raise OutOfResources(0, 0, "GPU memory", hint="free arrays, or use smaller ones")
    if code == 720:
        raise LaunchError(
            f"the grid of {kernel} is too large for a cooperative launch: {reason}",
            hint="its programs wait for each other, so that all must run at once: a smaller grid, smaller programs",
        )
    subject = f"the launch of {kernel}" if kernel else "a call of the driver"
    raise LaunchError(f"{subject} failed: {reason}", hint=_HINTS.get(code) if kernel else None)
