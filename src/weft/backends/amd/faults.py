"""What the HIP library says, as errors: a status it answers, a kernel that went wrong (see `gpu/launches.py`).

An access to memory that does not exist most often ends the whole process: ROCm's runtime prints "Memory access fault by
GPU node" and aborts it.

The library keeps the last status that was no success for each thread, and PyTorch asks for it after each kernel of its
own: whatever is answered here as an error, or is none to us, is taken away again (`hipGetLastError`).
"""

from __future__ import annotations

from typing import Any

from ..gpu.launches import CAPTURE, HINTS, Library
from .hip import api, ask

__all__ = ["answer", "check", "launches"]

_FAULTS = {
    700: "an address that does not exist was accessed (illegal address)",
    702: "a launch ran longer than the system allows",
    709: "its context was destroyed",
    710: "an assertion in a kernel failed",
    719: "a kernel ended by a fault (a trap, an access to memory that does not exist, ...)",
}
"""Statuses after which the queue is lost."""

_TOO_MANY_RESOURCES = 701
_HIP = Library(
    "HIP",
    "the HIP library",
    _FAULTS,
    {
        **HINTS,
        _TOO_MANY_RESOURCES: "a block needs more registers or memory than there is: fewer warps (num_warps)",
        **dict.fromkeys(range(900, 909), CAPTURE),
    },
    "run the kernel with target='sim:hip:gfx942', which names the line and the address; or with "
    "AMD_SERIALIZE_KERNEL=3 to learn which launch it is",
)
launches = _HIP.launches


def check(status: int, kernel: str = "") -> None:
    """Raise what went wrong; nothing where it is a success."""
    if not status:
        return
    hip = api()
    reason = hip.said(status)
    if status not in _FAULTS:
        hip.hipGetLastError()
    raise _HIP.error(status, reason, kernel)


def answer(function: Any, kind: Any, *arguments: Any, kernel: str = "") -> Any:
    """What a function writes behind its first pointer; what went wrong is raised."""
    status, value = ask(function, kind, *arguments)
    check(status, kernel)
    return value
