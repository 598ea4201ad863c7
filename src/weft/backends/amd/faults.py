"""What the HIP library says, as errors: a status it answers, a kernel that went wrong.

A kernel runs after its launch has returned, so a fault of it is found by some later call of the process, and the GPU's
queue is lost then. (An access to memory that does not exist most often ends the whole process: ROCm's runtime prints
"Memory access fault by GPU node" and aborts it.) The error names the launches that may have been it, the last first.

The library keeps the last status that was no success for each thread, and PyTorch asks for it after each kernel of its
own: whatever is answered here as an error, or is none to us, is taken away again (`hipGetLastError`).
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from weft.base import DeviceLost, LaunchError, OutOfResources

from .hip import OUT_OF_MEMORY, api, ask

__all__ = ["answer", "check", "launches"]

_FAULTS = {
    700: "an address that does not exist was accessed (illegal address)",
    702: "a launch ran longer than the system allows",
    709: "its context was destroyed",
    710: "an assertion in a kernel failed",
    719: "a kernel ended by a fault (a trap, an access to memory that does not exist, ...)",
}
"""Statuses after which the queue is lost."""

_NOT_INITIALIZED, _TOO_MANY_RESOURCES, _COOPERATIVE_TOO_LARGE = 3, 701, 720
_process = os.getpid()
"""That which this was imported by; a child that it forks after it has used a GPU cannot use one."""

_CAPTURE = "launch it once before the capture begins, so that it is compiled and loaded"
_HINTS = {
    1: "a number or a size of the launch is beyond what this GPU takes; smaller tiles, or fewer num_stages",
    400: "the stream, or the memory, belongs to another GPU or to a library that has given it back",
    _TOO_MANY_RESOURCES: "a block needs more registers or memory than there is: fewer warps (num_warps)",
    **dict.fromkeys(range(900, 909), _CAPTURE),
}
"""What to do about a status, where that can be said."""
LOST_HINT = (
    "run the kernel with target='sim:hip:gfx942', which names the line and the address; or with "
    "AMD_SERIALIZE_KERNEL=3 to learn which launch it is"
)

launches: deque[tuple[str, int, int, int]] = deque(maxlen=4)
"""The last launches, kernel and grid, the newest last."""


def check(status: int, kernel: str = "") -> None:
    """Raise what went wrong; nothing where it is a success."""
    if not status:
        return
    hip = api()
    reason = hip.said(status)
    if status in _FAULTS:
        recent = [(name, (x, y, z)) for name, x, y, z in reversed(launches)]
        raise DeviceLost(_FAULTS[status], reason, recent, kernel, hint=LOST_HINT)
    hip.hipGetLastError()
    if status == _NOT_INITIALIZED and os.getpid() != _process:
        raise LaunchError(
            f"HIP does not work in this process, which was forked from one that had used it ({reason})",
            hint='start workers by multiprocessing.get_context("spawn") or "forkserver"; or fork before the first use',
        )
    if status == OUT_OF_MEMORY:
        raise OutOfResources(0, 0, "GPU memory", hint="free arrays, or use smaller ones")
    if status == _COOPERATIVE_TOO_LARGE:
        raise LaunchError(
            f"the grid of {kernel} is too large for a cooperative launch: {reason}",
            hint="its programs wait for each other, so that all must run at once: a smaller grid, smaller programs",
        )
    subject = f"the launch of {kernel}" if kernel else "a call of the HIP library"
    raise LaunchError(f"{subject} failed: {reason}", hint=_HINTS.get(status) if kernel else None)


def answer(function: Any, kind: Any, *arguments: Any, kernel: str = "") -> Any:
    """What a function writes behind its first pointer; what went wrong is raised."""
    status, value = ask(function, kind, *arguments)
    check(status, kernel)
    return value
