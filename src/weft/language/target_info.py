"""Which target a kernel is compiled for: constexprs for `if` in kernels, plain values on the host.

In a kernel, and in a `constexpr_function` that it calls, the target is the kernel's own; on the host it is where
launches go. On the CPU every question about a GPU is answered with no, so that kernels take their portable path.

>>> evaluate("x + 1 if tl.target_info.is_cuda() else x", x=[1, 2])
array([2, 3], dtype=int32)
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weft import machines

from .constants import constexpr, unwrap
from .protocol import TRITON_BUILTIN


@dataclass(frozen=True)
class Target:
    """A target: `backend` is "cpu", "cuda" or "hip", `arch` a number (90) or a name (gfx942, x86_64)."""

    backend: str
    arch: int | str
    warp_size: int

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}" if self.arch else self.backend


class _Compiling(threading.local):
    """What this thread compiles for while a function of the host runs for a kernel; None otherwise."""

    target: str | None = None


_compiling = _Compiling()

on_host: Callable[[], Any] | None = None
"""The target of launches; `weft.runtime` says it."""


@contextmanager
def compiling_for(target: str) -> Iterator[None]:
    """Inside of it, functions of the host are told that a kernel for this target is being compiled."""
    before, _compiling.target = _compiling.target, target
    try:
        yield
    finally:
        _compiling.target = before


def _parsed(name: str) -> Target:
    """`cuda:90` as its parts."""
    backend, _, arch = name.removeprefix("sim:").partition(":")
    number = arch.removesuffix("a")
    return Target(backend, int(number) if number.isdigit() else arch, machines.machine_of(name).lanes if arch else 32)


def _question(fn: Callable[..., Any]) -> Any:
    """Let a function of the target and its arguments be one of the arguments, in kernels and on the host."""

    @functools.wraps(fn)
    def wrapper(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        if _semantic is not None:
            target: Any = _parsed(str(getattr(_semantic, "target", "cpu")))
        elif _compiling.target is not None:
            target = _parsed(_compiling.target)
        else:
            target = on_host() if on_host is not None else _parsed("cpu")
        answer = fn(target, *map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()})
        return answer if _semantic is None else constexpr(answer)

    del wrapper.__wrapped__  # its signature is without the target
    wrapper.__dict__.update({TRITON_BUILTIN: True, "_wants_generator": False})
    return wrapper


@_question
def current_target(target: Any) -> Any:
    """The target, with `backend`, `arch` and `warp_size`; as text `cpu`, `cuda:90` or `hip:gfx942`."""
    return target


@_question
def is_cuda(target: Any) -> bool:
    """Whether the target is an NVIDIA GPU."""
    return bool(target.backend == "cuda")


@_question
def cuda_capability_geq(target: Any, major: int, minor: int = 0) -> bool:
    """Whether the target is an NVIDIA GPU of at least this compute capability."""
    return bool(target.backend == "cuda" and target.arch >= major * 10 + minor)


@_question
def is_hip(target: Any) -> bool:
    """Whether the target is an AMD GPU."""
    return bool(target.backend == "hip")


@_question
def is_hip_cdna3(target: Any) -> bool:
    """Whether the target is an AMD GPU of the CDNA 3 family."""
    return bool(target.arch == "gfx942")


@_question
def is_hip_cdna4(target: Any) -> bool:
    """Whether the target is an AMD GPU of the CDNA 4 family."""
    return bool(target.arch == "gfx950")


@_question
def is_hip_gfx1250(target: Any) -> bool:
    """Whether the target is an AMD GPU of the family gfx1250."""
    return bool(target.arch == "gfx1250")
