"""Arguments that decorators do not have, told when the kernel is used: an import must not fail for one nobody launches.

A newer Triton's decorators, and those of its branches, take more than Weft knows of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from weft.base import DefinitionError, LaunchTypeError, Span

_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "jit": (
        *("version", "repr", "launch_metadata", "do_not_specialize", "do_not_specialize_on_alignment", "debug"),
        "noinline",
    ),
    "autotune": (
        *("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook", "warmup"),
        *("rep", "use_cuda_graph", "do_bench", "cache_results"),
    ),
    "Config": ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook", "ir_override"),
}


def hint_for(name: str, names: Sequence[str], listed: str = "its arguments are") -> str:
    """What may have been meant by a name that is not known, else all that are."""
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"{listed} {', '.join(names)}"


def check_unknown(subject: str, unknown: Iterable[str]) -> None:
    """LaunchTypeError for an argument that a decorator, or a Config, does not have."""
    for name in unknown:
        raise LaunchTypeError(f"{subject} has no argument {name!r}", hint=hint_for(name, _ARGUMENTS[subject]))


def misuse_of_jit(place: Span, functions: Mapping[str, Any], unknown: Iterable[str]) -> DefinitionError | None:
    """What is wrong with the arguments of `jit`; `functions` are those that have to be functions."""
    for name in unknown:
        return DefinitionError(f"jit has no argument {name!r}", place, hint=hint_for(name, _ARGUMENTS["jit"]))
    for name, function in functions.items():
        if function is not None and not callable(function):
            shown = f"got {function!r} of type {type(function).__name__}"
            return DefinitionError(f"{name} of jit is a function, {shown}", place)
    return None
