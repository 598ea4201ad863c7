"""Write `src/weft/runtime/launches.pyi`: what type checkers are told of launches.

    python tools/launch_types.py            # write it
    python tools/launch_types.py --check    # exit 1 if it is not what would be written

A launch passes a kernel's own parameters and, by keyword, options. No type says "these parameters and some keywords
more": `Concatenate` adds what is positional alone. So there is one overload for each number of arguments that are given
by position; it takes those off the kernel's signature, has the options after them, and then what is left of the
signature, by keyword:

    def __call__(self: Launcher[Callable[Concatenate[A0, A1, Q], object]], a0: A0, a1: A1, /,
                 by_name: ByName = ..., num_warps: int = ..., *args: Q.args, **kwargs: Q.kwargs) -> Kernel: ...

`by_name` has a type that nothing has: one more positional argument ends there, and not at the first option. The classes
have the whole type of the kernel's function as their parameter (`JITFunction[Callable[[pointer, Scalar], None]]`),
because mypy infers `A0` from a callable and does not from a class of a ParamSpec.
"""

from __future__ import annotations

import argparse
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "src" / "weft" / "runtime" / "launches.pyi"
MOST = 48
"""Arguments by position that are checked where a launch has options."""

OPTIONS = {
    "num_warps": "int",
    "num_stages": "int",
    "num_ctas": "int",
    "maxnreg": "int | None",
    "target": "str",
    **dict.fromkeys(("debug", "sanitize_overflow", "enable_fp_fusion", "allow_flush_denorm"), "bool"),
    **dict.fromkeys(("launch_pdl", "launch_cooperative_grid", "enable_reflect_ftz"), "bool"),
    **dict.fromkeys(("relayout", "assume_no_alias", "optimize_epilogue", "made_tensors"), "bool"),
    **dict.fromkeys(("allow_non_constexpr_globals",), "bool"),
    **dict.fromkeys(("kpack", "matrix_instr_nonkdim", "waves_per_eu", "warp_size", "unroll_budget"), "int"),
    **dict.fromkeys(("max_num_imprecise_acc_default", "global_scratch_size", "vector_bits"), "int"),
    **dict.fromkeys(("cpu", "arch", "default_dot_input_precision", "schedule_hint"), "str"),
    **dict.fromkeys(("allowed_dot_input_precisions", "backend_name", "cluster_dims", "extern_libs", "features"), "Any"),
    **dict.fromkeys(("deprecated_fp8_dot_operand_dtypes", "grf_mode", "imported_products"), "Any"),
    **dict.fromkeys(("instrumentation_mode", "ir_override", "matrix_units", "ptx_options", "ptx_version"), "Any"),
    **dict.fromkeys(("supported_fp8_dtypes", "triple"), "Any"),
}

HEAD = '''\
"""What type checkers are told of launches; written by `tools/launch_types.py`, which says why it looks like this."""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, SupportsIndex, TypeAlias, final, overload

from typing_extensions import TypeVar

from weft.compiler import CompiledKernel
from weft.sim import Report

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any], covariant=True, default=Callable[..., Any])
Fn = TypeVar("Fn", bound=Callable[..., Any])
{variables}

Size: TypeAlias = SupportsIndex
TooMany: TypeAlias = tuple[()] | tuple[Size, Size, Size, Size, *tuple[Size, ...]]
UpToThree: TypeAlias = Size | tuple[Size] | tuple[Size, Size] | tuple[Size, Size, Size] | list[int]
Sizes: TypeAlias = UpToThree | tuple[Size, ...]
WarmupGrid: TypeAlias = UpToThree | Callable[[dict[str, Any]], UpToThree]
Grid: TypeAlias = Sizes | Callable[[dict[str, Any]], Sizes]

@final
class ByName:
    """The type of nothing: what comes here by position should have been given by its name, or is one too many."""

    def __init__(self, none: ByName) -> None: ...

@final
class GridOfOneToThreeSizes:
    """What a grid of no size or of four indexes: it cannot be called."""

class Kernel(CompiledKernel):
    """What launches, `warmup` and `weft.compile` give; of a simulated target it has the `report` too."""

    kernel: Any
    report: Report
    @property
    def kinds(self) -> dict[str, int]: ...
    @property
    def shared_bytes(self) -> int: ...
    def count(self, grid: Sizes, **scalars: int | float) -> Report: ...
    @overload
    def __getitem__(self, asked: str) -> int: ...
    @overload
    def __getitem__(self, asked: Sizes) -> Callable[..., Any]: ...

class Launcher(Generic[F]):
    """`kernel[grid]`, to be called with the arguments of the kernel and options."""

    @overload
    def __call__(self: Launcher[Callable[P, object]], *args: P.args, **kwargs: P.kwargs) -> Kernel: ...
'''

CHOOSING_LAUNCHER = '''
class ChoosingLauncher(Generic[F]):
    """`kernel[grid]` of a kernel some of whose parameters are chosen: which are left to give, no type says."""

'''

LAUNCHABLE = '''
class Launchable(Generic[F]):
    """A kernel that is launched with all its arguments."""

    def __call__(self: Launchable[Callable[P, R]], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __getitem__(self, grid: TooMany) -> GridOfOneToThreeSizes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(  # type: ignore[overload-overlap]
        self, grid: Callable[[dict[str, Any]], TooMany]
    ) -> GridOfOneToThreeSizes: ...
    @overload
    def __getitem__(self, grid: Grid) -> Launcher[F]: ...
'''

CHOOSING = '''
class Choosing(Generic[F]):
    """A kernel some of whose parameters are chosen by `autotune` or `heuristics`."""

    @overload
    def __getitem__(self, grid: TooMany) -> GridOfOneToThreeSizes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(  # type: ignore[overload-overlap]
        self, grid: Callable[[dict[str, Any]], TooMany]
    ) -> GridOfOneToThreeSizes: ...
    @overload
    def __getitem__(self, grid: Grid) -> ChoosingLauncher[F]: ...
    def warmup(self, *args: Any, grid: Grid, **kwargs: Any) -> Kernel: ...
'''


def kernel_type(owner: str, count: int) -> str:
    """The type of `self` where `count` arguments are given by position."""
    first = "".join(f"A{i}, " for i in range(count))
    return f"{owner}[Callable[{f'Concatenate[{first}Q]' if count else 'Q'}, object]]"


def positional(count: int, kind: str = "A{}") -> str:
    """The parameters that take them."""
    return "".join(f"a{i}: {kind.format(i)}, " for i in range(count)) + ("/, " if count else "")


def text() -> str:
    """The whole file."""
    options = "".join(f"{name}: {kind} = ..., " for name, kind in OPTIONS.items())
    guard, rest = "by_name: ByName = ..., ", "*args: Q.args, **kwargs: Q.kwargs) -> Kernel: ...\n"
    parts = [HEAD.format(variables="\n".join(f'A{i} = TypeVar("A{i}")' for i in range(MOST)))]

    def overloads(method: str, owner: str, tail: str, kind: str = "A{}") -> None:
        for n in range(MOST + 1):
            parts.append(f"    @overload\n    def {method}(self: {kernel_type(owner, n)}, {positional(n, kind)}{tail}")

    overloads("__call__", "Launcher", guard + options + rest)
    parts.append(CHOOSING_LAUNCHER)
    overloads("__call__", "ChoosingLauncher", "**kwargs: Any) -> Kernel: ...\n")
    parts.append(LAUNCHABLE)
    overloads("warmup", "Launchable", "grid: WarmupGrid, " + guard + options + rest, "object")
    return "".join([*parts, CHOOSING])


def main() -> int:
    """Write the file, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if the file is not what would be written")
    if parser.parse_args().check:
        return int(FILE.read_text() != text())
    FILE.write_text(text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
