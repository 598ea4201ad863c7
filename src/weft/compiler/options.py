"""The options of a compilation: which there are, and which values they take."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from weft.backends.cpu import CPUOptions
from weft.base import CompileOptions, LaunchError, LaunchTypeError, OptionError
from weft.language.keys import key_text
from weft.machines import Machine

# Options that Triton's other targets take: accepted, since they change nothing on a CPU.
_FOREIGN = frozenset(
    (
        *("maxnreg", "ptx_version", "ptx_options", "enable_reflect_ftz", "launch_cooperative_grid"),
        *("launch_pdl", "arch", "warp_size", "instrumentation_mode", "backend_name", "extern_libs", "cluster_dims"),
        *("global_scratch_size", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "allow_flush_denorm"),
        *("schedule_hint", "optimize_epilogue", "imported_products", "grf_mode", "made_tensors"),
    )
)

_LANGUAGE = tuple(f.name for f in fields(CompileOptions))
_BACKEND = tuple(f.name for f in fields(CPUOptions))


@dataclass(frozen=True)
class Options:
    """What a compilation is told: the language's part, and the back end's."""

    language: CompileOptions
    backend: CPUOptions

    def key(self) -> str:
        """A text with every value, for cache keys."""
        parts = [f"{n}={key_text(getattr(self.language, n))}" for n in _LANGUAGE]
        return "\0".join([*parts, *(f"{n}={key_text(getattr(self.backend, n))}" for n in _BACKEND)])


@lru_cache(maxsize=1)
def option_names() -> frozenset[str]:
    """Names a launch may give besides the kernel's parameters."""
    return frozenset((*_LANGUAGE, *_BACKEND, "ir_override")) | _FOREIGN


@lru_cache(maxsize=1)
def gpu_options() -> frozenset[str]:
    """Options that make no other code on a CPU."""
    return frozenset(("num_warps", "num_ctas", "num_stages", "relayout")) | _FOREIGN


def given_for_gpu(options: Mapping[str, Any], machine: Machine) -> dict[str, Any]:
    """The options of a launch with what they are where nothing is said: stages of loops, how exact products of float32
    are; and `maxnreg` as the number of registers that it limits a thread to, or None.

    More registers than a thread can have (libraries say 256) are no limit, as for ptxas. LaunchError where it is no
    number of registers, and OptionError where a GPU has not so many warps.
    """
    if options.get("num_warps") is not None:
        check_warps(options["num_warps"], machine)
    if options.get("warp_size") not in (None, machine.lanes):
        _check("warp_size", options["warp_size"], (machine.lanes,), f"{machine.lanes} on {machine.name}")
    limit = options.get("maxnreg")
    if limit is not None:
        whole = hasattr(limit, "__index__") and not isinstance(limit, bool)
        if not whole or operator.index(limit) < 1:
            raise LaunchError(f"maxnreg must be a number of registers of a thread, 1 or more, got {limit!r}", "maxnreg")
        limit = operator.index(limit) if operator.index(limit) < machine.thread_registers else None
    usual = {"num_stages": machine.stages, "default_dot_input_precision": machine.float32_products}
    said = {name: value for name, value in options.items() if value is not None or name not in usual}
    return {**usual, **said, "maxnreg": limit}


def check_warps(warps: Any, machine: Machine) -> None:
    """OptionError for a number of warps that a block of a GPU cannot have."""
    allowed = tuple(n for n in GPU_WARPS if machine.threads(n) <= machine.block_threads)
    why = f" on {machine.name}, whose warps have {machine.lanes} lanes" if allowed != GPU_WARPS else ""
    _check("num_warps", warps, allowed, f"a power of 2 from 1 to {allowed[-1]}{why}")


GPU_WARPS = (1, 2, 4, 8, 16, 32)
"""Warps that a block may have, if these are no more threads than it may have."""
ANY_WARPS = tuple(1 << i for i in range(11))
"""What is taken where warps mean nothing, as programs give it that have one thread for each element."""


def _check(name: str, value: Any, allowed: tuple[int, ...], text: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or int(value) not in allowed:
        usual = ", ".join(map(str, allowed)) if len(allowed) < 12 else "2 to 4 are usual, and 1 does not pipeline"
        raise OptionError(f"{name} must be {text}, got {value!r}", name, hint=usual)


def _check_kind(name: str, value: Any, default: Any) -> None:
    """Refuse a value of another kind than the default."""
    kinds: dict[type, tuple[tuple[type, ...], str]] = {
        bool: ((bool, int, np.bool_), "True or False"),
        int: ((int, np.integer), "an integer"),
        str: ((str,), "a string"),
        tuple: ((tuple, list), "a tuple of strings"),
    }
    accepted, text = kinds[type(default)]
    if not isinstance(value, accepted):
        raise LaunchTypeError(f"{name} must be {text}, got {value!r}", name)


def _plain(value: Any) -> Any:
    """A value as the compiler takes it: a tuple for a list, a number of Python's for one of NumPy's."""
    if isinstance(value, list):
        return tuple(value)
    return value.item() if isinstance(value, (np.integer, np.bool_)) else value


def make_options(options: Mapping[str, Any]) -> Options:
    """Check options and make them one frozen value."""
    unknown = [name for name in options if name not in option_names()]
    if unknown:
        near = difflib.get_close_matches(unknown[0], option_names(), 1)
        hint = f"did you mean `{near[0]}`?" if near else f"options: {', '.join(sorted(option_names()))}"
        raise LaunchError(f"unknown option {unknown[0]!r}", hint=hint)
    _check("num_warps", options.get("num_warps", 4), ANY_WARPS, "a power of 2, and on a GPU at most 32")
    _check("num_stages", options.get("num_stages", 3), tuple(range(1, 33)), "between 1 and 32")
    _check("num_ctas", options.get("num_ctas", 1), (1, 2, 4, 8, 16), "a power of 2 from 1 to 16")
    for defaults in (CompileOptions(), CPUOptions()):
        for f in fields(defaults):
            if options.get(f.name) is not None:
                _check_kind(f.name, options[f.name], getattr(defaults, f.name))
    precision, allowed = options.get("default_dot_input_precision"), CompileOptions().allowed_dot_input_precisions
    if precision is not None and precision not in options.get("allowed_dot_input_precisions", allowed):
        raise LaunchError(
            f"default_dot_input_precision must be one of {', '.join(allowed)}, got {precision!r}",
            "default_dot_input_precision",
        )
    if options.get("triple") and not options.get("cpu"):
        raise LaunchError("triple is that of a processor: give cpu as well", "triple", hint="cpu='x86-64-v3'")
    _check("vector_bits", options.get("vector_bits") or 0, (0, 128, 256, 512), "128, 256 or 512, or 0 for the widest")
    chosen = {name: _plain(value) for name, value in options.items() if value is not None}
    return Options(
        CompileOptions(**{k: v for k, v in chosen.items() if k in _LANGUAGE}),
        CPUOptions(**{k: v for k, v in chosen.items() if k in _BACKEND}),
    )
