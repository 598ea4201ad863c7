"""Where a program is, loops, and what happens while the kernel is compiled.

`range`, `static_range` and `condition` only carry what they are told; the frontend makes loops of them.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

from weft.base import CompileTimeAssertionFailure

from ..constants import constexpr, unwrap
from ..protocol import GIVEN, base_value, builtin
from ..tensors import tensor

if TYPE_CHECKING:
    from ..semantic import TritonSemantic

__all__ = [
    "assume",
    "num_programs",
    "program_id",
    "range",
    "static_assert",
    "static_print",
    "static_range",
]


@builtin
def program_id(axis: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Which program this is, along an axis (0, 1 or 2) of the grid: an int32 scalar.

    >>> evaluate("tl.program_id(0)")
    0
    """
    return _semantic.program_id(unwrap(axis))


@builtin
def num_programs(axis: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """How many programs the grid has along an axis (0, 1 or 2): an int32 scalar.

    >>> evaluate("tl.num_programs(0)")
    1
    """
    return _semantic.num_programs(unwrap(axis))


class range(base_value):
    """`for i in tl.range(...)`: Python's range with hints on how to compile the loop.

    `num_stages` asks for software pipelining, `loop_unroll_factor` has so many iterations done at a time, `flatten`
    asks for merging a nest of loops, `disallow_acc_multi_buffer` keeps the accumulator of a product single,
    `warp_specialize` splits the loop over groups of warps, `disable_licm` keeps invariant code inside. A target may
    ignore any of them but the unrolling.

    >>> @weft.jit
    ... def total(n):
    ...     sum = 0
    ...     for i in tl.range(0, n):
    ...         sum += i
    ...     return sum
    >>> evaluate("total(n)", n=4, total=total)
    6
    """

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: Any = False,
        flatten: Any = False,
        warp_specialize: Any = False,
        disable_licm: Any = False,
    ) -> None:
        self.step = constexpr(1) if step is None else step
        if arg2 is None:
            self.start: Any = constexpr(0)
            self.end = arg1
        else:
            self.start = arg1
            self.end = arg2
        self.num_stages = num_stages
        self.loop_unroll_factor = loop_unroll_factor
        self.disallow_acc_multi_buffer = disallow_acc_multi_buffer
        self.flatten = flatten
        self.warp_specialize = warp_specialize
        self.disable_licm = disable_licm

    def __iter__(self) -> Any:
        raise RuntimeError("tl.range can only be used in @triton.jit'd functions")

    def __next__(self) -> Any:
        raise RuntimeError("tl.range can only be used in @triton.jit'd functions")


class static_range(base_value):
    """`for i in tl.static_range(...)`: a loop that is unrolled while compiling; `i` is a constexpr.

    >>> @weft.jit
    ... def power(x, n: tl.constexpr):
    ...     result = x
    ...     for _ in tl.static_range(n - 1):
    ...         result *= x
    ...     return result
    >>> evaluate("power(x, 3)", x=[2, 3], power=power)
    array([ 8, 27], dtype=int32)
    """

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        for name, value in (("start", arg1), ("end", arg2), ("step", step)):
            if value is not None and not isinstance(value, (constexpr, int)):
                raise TypeError(f"{value} used as tl.static_range {name} value is not a constexpr")
        self.step = constexpr(1 if step is None else step)
        self.start = constexpr(0 if arg2 is None else arg1)
        self.end = constexpr(arg1 if arg2 is None else arg2)

    def __iter__(self) -> Any:
        raise RuntimeError("static_range can only be used in @triton.jit'd functions")

    def __next__(self) -> Any:
        raise RuntimeError("static_range can only be used in @triton.jit'd functions")


class condition(base_value):
    """`while tl.condition(c, disable_licm=True)`: a condition with hints on how to compile the loop.

    >>> @weft.jit
    ... def halvings(n):
    ...     count = 0
    ...     while tl.condition(n > 1):
    ...         n = n // 2
    ...         count += 1
    ...     return count
    >>> evaluate("halvings(n)", n=20, halvings=halvings)
    4
    """

    def __init__(self, arg1: Any, disable_licm: Any = False) -> None:
        self.condition = arg1
        self.disable_licm = disable_licm


@builtin
def static_print(
    *values: Any,
    sep: str = " ",
    end: str = "\n",
    file: Any = None,
    flush: bool = False,
    _semantic: TritonSemantic = GIVEN,
) -> Any:
    """Print at compile time; constexprs are printed as their values.

    >>> evaluate("tl.static_print('sizes:', 4); x", x=[1, 2])
    sizes: 4
    array([1, 2], dtype=int32)
    """
    shown = [unwrap(v) for v in values]
    out = unwrap(file)
    builtins.print(
        *shown, sep=unwrap(sep), end=unwrap(end), file=out if out is not None else sys.stdout, flush=bool(unwrap(flush))
    )
    return constexpr(None)


@builtin
def static_assert(cond: Any, msg: Any = "", _semantic: TritonSemantic = GIVEN) -> None:
    """Stop the compilation with `msg` if a condition that is known at compile time is false.

    >>> evaluate("tl.static_assert(x.shape[0] == 2); x", x=[1, 2])
    array([1, 2], dtype=int32)
    """
    value = unwrap(cond)
    if isinstance(value, base_value):
        raise NotImplementedError(
            "Assertion condition could not be determined at compile-time. "
            "Make sure that it depends only on `constexpr` values"
        )
    if not value:
        text = unwrap(msg)
        raise CompileTimeAssertionFailure(str(text) if text else "static assertion failed")


@builtin
def assume(cond: Any, _semantic: TritonSemantic = GIVEN) -> None:
    """Promise the compiler that `cond` is true at this point.

    >>> evaluate("tl.assume(n > 0); n * 2", n=3)
    6
    """
    _semantic.assume(_semantic.to_tensor(cond))
