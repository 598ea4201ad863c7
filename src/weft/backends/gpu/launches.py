"""What the drivers of all GPUs say and do alike: errors of devices, memory and launches, and how a launch is written.

    LIBRARY = Library("ACME", "the driver", faults={700: "an address ..."}, hints={400: "the stream ..."})
    raise LIBRARY.error(700, "ILLEGAL_ADDRESS (...)", kernel)           # DeviceLost, with the last launches

The statuses that are numbers here are the same in the libraries of all vendors that launch by it.

A kernel runs after its launch has returned, so a fault of it is found by some later call of the process. What was
queued is lost by then, every call fails, and only a new process helps. The error names the launches that may have been
it, the last ones first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.base import DeviceLost, LaunchError, LaunchTypeError, OutOfResources, WeftError
from weft.base.errors import LOST_HINT

NOT_INITIALIZED, OUT_OF_MEMORY, COOPERATIVE_TOO_LARGE = 3, 2, 720
CAPTURE = "launch it once before the capture begins, so that it is compiled and loaded"
HINTS = {
    1: "a number or a size of the launch is beyond what this GPU takes; smaller tiles, or fewer num_stages",
    400: "the stream, or the memory, belongs to another GPU or to a library that has given it back",
}
"""What to do about statuses of launches, by whatever library."""


@dataclass(frozen=True)
class Library:
    """A library that launches kernels: what it is called, and what statuses of it mean."""

    name: str
    subject: str
    """What is called, in words."""
    faults: Mapping[int, str]
    """Statuses after which nothing works any more, and what has happened."""
    hints: Mapping[int, str] = field(default_factory=dict)
    """What to do about statuses of a launch, where that can be said."""
    lost_hint: str = LOST_HINT
    launches: deque[tuple[str, int, int, int]] = field(default_factory=lambda: deque(maxlen=4))
    """The last launches, kernel and grid, the newest last."""
    process: int = field(default_factory=os.getpid)
    """That which this was imported by; a child that it forks after it has used a GPU cannot use one."""

    def error(self, status: int, reason: str, kernel: str = "") -> WeftError:
        """What a status means that is no success; the library itself calls it `reason`."""
        if status in self.faults:
            recent = [(name, (x, y, z)) for name, x, y, z in reversed(self.launches)]
            return DeviceLost(self.faults[status], reason, recent, kernel, hint=self.lost_hint)
        if status == NOT_INITIALIZED and os.getpid() != self.process:
            return LaunchError(
                f"{self.name} does not work in this process, which was forked from one that had used it ({reason})",
                hint='start workers by multiprocessing.get_context("spawn") or "forkserver"; '
                "or fork before the first use",
            )
        if status == OUT_OF_MEMORY:
            return OutOfResources(0, 0, "GPU memory", hint="free arrays, or use smaller ones")
        if status == COOPERATIVE_TOO_LARGE:
            return LaunchError(
                f"the grid of {kernel} is too large for a cooperative launch: {reason}",
                hint="its programs wait for each other, so that all must run at once: a smaller grid, smaller programs",
            )
        subject = f"the launch of {kernel}" if kernel else f"a call of {self.subject}"
        return LaunchError(f"{subject} failed: {reason}", hint=self.hints.get(status) if kernel else None)


class Limits(Protocol):
    """What a GPU has, as far as errors name it."""

    @property
    def name(self) -> str: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...


def check_index(index: Any, count: int) -> None:
    """LaunchError where there is no GPU of that number among so many, and LaunchTypeError where it is none."""
    if not hasattr(index, "__index__"):
        raise LaunchTypeError(f"a GPU is named by its number, from 0 to {count - 1}, got {index!r}")
    if not 0 <= index < count:
        raise LaunchError(f"there is no GPU {index}: this process sees {count}")


def check_memory(size: int, gpu: Limits) -> None:
    """OutOfResources for more memory than a GPU has."""
    if size > gpu.memory_bytes:
        raise OutOfResources(size, gpu.memory_bytes, "GPU memory", hint="use smaller arrays")


def no_memory_left(size: int, free_bytes: int) -> OutOfResources:
    """The error for memory that others have."""
    return OutOfResources(size, free_bytes, "GPU memory", hint="free arrays, or use smaller ones")


def check_shared(size: int, gpu: Limits) -> None:
    """OutOfResources for more shared memory than a block of a GPU has."""
    if size > gpu.shared_bytes:
        hint = f"smaller blocks or fewer num_stages; a block of the {gpu.name} has {gpu.shared_bytes} bytes"
        raise OutOfResources(size, gpu.shared_bytes, "shared memory", hint=hint)


_LAUNCH = """
def launch(nx, ny, nz{values}):
    try:
        buffer = free.pop()
    except IndexError:
        buffer = new()
    if nx and ny and nz:
        note((name, nx, ny, nz))
        pack(buffer.memory, 0{values}{packed})
        now = stream()
        if now != buffer.stream:
            buffer.go_to(now)
        status = {call}
        if status:
            {fail}
    free.append(buffer)
"""
"""Written for each number of values: to take them as a tuple and to hand that on takes longer than the rest."""


def written_launch(
    name: str, count: int, spaces: Mapping[str, Any], *, call: str, fail: str, packed: str = ""
) -> Callable[..., None]:
    """A function (nx, ny, nz, *values) that queues a launch of so many values.

    `spaces` has what it uses: `new`, which makes a buffer with `memory`, `stream` and `go_to`; `pack`, which writes the
    values into its memory, behind them what is `packed` (", nx, ny, nz" for the grid); `stream`, `note`, and what
    `packed`, `call` and `fail` name.
    """
    text = _LAUNCH.format(values="".join(f", v{i}" for i in range(count)), packed=packed, call=call, fail=fail)
    free: list[Any] = []  # one for each thread that launches at the same time
    env = {"__name__": __name__, "free": free, "name": name, **spaces}
    exec(compile(text, f"<launch of {name}>", "exec"), env)
    return env["launch"]  # type: ignore[no-any-return]


def on_each_gpu(launch: Callable[[Any], Callable[..., None]], gpu: Any) -> Callable[..., None]:
    """`launch(gpu)`, for the GPU that a kernel was first loaded for; its `on_gpu(other)` is the launch for another."""
    first = launch(gpu)
    first.on_gpu = lambda other: first if other.index == gpu.index else launch(other)  # type: ignore[attr-defined]
    return first
