"""What a compilation may be told, as one frozen value that is passed down.

Below `runtime/` nothing reads the environment: whoever makes the options reads it once.  A target's own options
derive from this class and add their fields.

>>> CompileOptions(num_warps=8).num_warps
8
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CompileOptions"]


@dataclass(frozen=True)
class CompileOptions:
    """Options that the language and the frontend look at; names and defaults are Triton's where Triton has them."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    debug: bool = False
    sanitize_overflow: bool = True
    enable_fp_fusion: bool = True
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16", "fp8e4b15")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    max_num_imprecise_acc_default: int = 0
    allow_non_constexpr_globals: bool = False
    """Let kernels read any global of the module (TRITON_ALLOW_NON_CONSTEXPR_GLOBALS)."""
    relayout: bool = False
    """Let the compiler choose other layouts than a Gluon kernel's author did, where nothing sees which they are."""
    unroll_budget: int = 100_000
    """How many bodies may be made again in one kernel, all together: iterations of `tl.static_range` and
    comprehensions, calls, steps of sorting, rounds of random numbers.
    """
