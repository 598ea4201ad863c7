"""Which target a kernel is compiled for, as constexprs for `if` in kernels.

On the CPU every question about a GPU is answered with no, so that kernels take their portable path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .constants import constexpr
from .protocol import builtin

if TYPE_CHECKING:
    from .semantic import TritonSemantic

__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]


def _target(semantic: Any) -> str:
    return str(getattr(semantic, "target", "cpu"))


@builtin
def current_target(_semantic: TritonSemantic | None = None) -> Any:
    """The name of the target, `cpu` or `cuda:90` or `hip:gfx942`."""
    return constexpr(_target(_semantic))


@builtin
def is_cuda(_semantic: TritonSemantic | None = None) -> constexpr:
    """Whether the target is an NVIDIA GPU."""
    return constexpr(_target(_semantic).startswith("cuda"))


@builtin
def cuda_capability_geq(major: Any, minor: Any = 0, _semantic: TritonSemantic | None = None) -> constexpr:
    """Whether the target is an NVIDIA GPU of at least this compute capability."""
    name = _target(_semantic)
    if not name.startswith("cuda:"):
        return constexpr(False)
    capability = int("".join(c for c in name.removeprefix("cuda:") if c.isdigit()) or 0)
    return constexpr(capability >= int(major) * 10 + int(minor))


@builtin
def is_hip(_semantic: TritonSemantic | None = None) -> constexpr:
    """Whether the target is an AMD GPU."""
    return constexpr(_target(_semantic).startswith("hip"))


@builtin
def is_hip_cdna3(_semantic: TritonSemantic | None = None) -> constexpr:
    """Whether the target is an AMD GPU of the CDNA 3 family."""
    return constexpr(_target(_semantic) == "hip:gfx942")


@builtin
def is_hip_cdna4(_semantic: TritonSemantic | None = None) -> constexpr:
    """Whether the target is an AMD GPU of the CDNA 4 family."""
    return constexpr(_target(_semantic) == "hip:gfx950")


@builtin
def is_hip_gfx1250(_semantic: TritonSemantic | None = None) -> constexpr:
    """Whether the target is an AMD GPU of the family gfx1250."""
    return constexpr(_target(_semantic) == "hip:gfx1250")
