"""What kernels ask of an NVIDIA GPU itself: its clock, where a program runs, and launches that depend on each other.

Most are one instruction, as inline assembly, which the CPU has an equivalent of where it reads a register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.base import Unsupported

from ... import dtypes as dt
from ...builtins.external import inline_asm_elementwise
from ...constants import constexpr, unwrap
from ...protocol import GIVEN, builtin

if TYPE_CHECKING:
    from ...semantic import TritonSemantic

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "num_threads",
    "num_warps",
    "smid",
]

_WARP = 32


def _need(name: str, semantic: TritonSemantic, since: int = 0) -> TritonSemantic:
    """The semantic, if its target is an NVIDIA GPU, and new enough."""
    target = str(getattr(semantic, "target", "cpu"))
    kind, _, arch = target.partition(":")
    if semantic is None or kind != "cuda" or int(arch or 0) < since:
        works_on = f"cuda:{since} and later" if since else "cuda"
        raise Unsupported(f"tl.extra.cuda.{name}", target, works_on=(works_on,))
    return semantic


def _instruction(text: str, constraint: str, result: dt.dtype, semantic: TritonSemantic, pure: bool) -> Any:
    return inline_asm_elementwise(text, constraint, [], dtype=result, is_pure=pure, pack=1, _semantic=semantic)


@builtin
def globaltimer(_semantic: TritonSemantic = GIVEN) -> Any:
    """A clock in nanoseconds that never goes back, an int64 scalar; never merged or moved."""
    return _instruction("mov.u64 $0, %globaltimer;", "=l", dt.int64, _semantic, pure=False)


@builtin
def smid(_semantic: TritonSemantic = GIVEN) -> Any:
    """The number of the multiprocessor that the program runs on, of the thread on the CPU; an int32 scalar."""
    return _instruction("mov.u32 $0, %smid;", "=r", dt.int32, _semantic, pure=True)


@builtin
def num_warps(_semantic: TritonSemantic = GIVEN) -> constexpr:
    """The warps of a program, a constexpr."""
    return constexpr(_semantic.options.num_warps)


@builtin
def num_threads(_semantic: TritonSemantic = GIVEN) -> constexpr:
    """The threads of a program, a constexpr."""
    return constexpr(_semantic.options.num_warps * _WARP)


def _between_launches(name: str, text: str, semantic: TritonSemantic) -> None:
    """An instruction about the launch before or after; on the CPU each is over when the next begins."""
    if str(getattr(semantic, "target", "cpu")) != "cpu":
        _instruction(text, "=r", dt.int32, _need(name, semantic, 90), pure=False)


@builtin
def gdc_wait(_semantic: TritonSemantic = GIVEN) -> None:
    """Wait until the kernel in front in the stream has ended, if this one was launched with `launch_pdl=True`."""
    _between_launches("gdc_wait", "griddepcontrol.wait; // $0", _semantic)


@builtin
def gdc_launch_dependents(_semantic: TritonSemantic = GIVEN) -> None:
    """Allow the next kernel in the stream to begin, if it was launched with `launch_pdl=True`."""
    _between_launches("gdc_launch_dependents", "griddepcontrol.launch_dependents; // $0", _semantic)


def _convert(name: str, arg: Any, dst_ty: Any, rounding: Any, semantic: TritonSemantic) -> Any:
    return _need(name, semantic).cast(arg, unwrap(dst_ty), unwrap(rounding))


@builtin
def convert_custom_float8_sm80(
    arg: Any, dst_ty: Any, fp_downcast_rounding: Any = None, _semantic: TritonSemantic = GIVEN
) -> Any:
    """To or from float8e4b15, as a cast does it."""
    return _convert("convert_custom_float8_sm80", arg, dst_ty, fp_downcast_rounding, _semantic)


@builtin
def convert_custom_float8_sm70(
    arg: Any, dst_ty: Any, fp_downcast_rounding: Any = None, _semantic: TritonSemantic = GIVEN
) -> Any:
    """To or from float8e4b15, as a cast does it."""
    return _convert("convert_custom_float8_sm70", arg, dst_ty, fp_downcast_rounding, _semantic)
