"""What tools look at: facts that hooks are told of a compilation, specialisations as text, the caches as Triton's are.

told_of_compilation(kernel, key, src, options, warmup)      # what `knobs.runtime.jit_cache_hook` is called with
read_specialization(kernel, text)                           # what `kernel.preload(text)` compiles
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft import compiler
from weft.base import SpecializationError

from .constants_as_json import as_json, from_json


@dataclass(frozen=True)
class JitFunctionInfo:
    """A kernel, as hooks are told of it."""

    module: str
    name: str
    jit_function: Any


def told_of_compilation(
    kernel: Any, key: str, src: Any, options: Mapping[str, Any], warmup: bool, target: str
) -> dict[str, Any]:
    """The arguments of a hook that is told of a compilation; `specialization_data` is what `preload` takes."""
    name = kernel.__qualname__
    on_gpu = not target.startswith("cpu")
    machine = compiler.as_target(target.removeprefix("sim:")).machine if on_gpu else None
    opts = compiler.make_options(options if machine is None else compiler.given_for_gpu(options, machine)).language
    args = ", ".join(f"{p.name}: {t}" for p, t in zip(kernel.params, src.signature.values(), strict=True))
    facts = {
        "signature": src.signature,
        "device": 0,
        "constants": src.constants,
        "num_warps": opts.num_warps,
        "num_ctas": opts.num_ctas,
        "num_stages": opts.num_stages,
        "enable_fp_fusion": opts.enable_fp_fusion,
        "launch_cooperative_grid": False,
        "extern_libs": tuple((options.get("extern_libs") or {}).items()) if "extern_libs" in options else None,
        "configs": [src.attrs],
        "specialization_data": _specialization_data(kernel, key, src, options, target),
        "is_warmup": warmup,
        "key": key,
    }
    return {
        "key": key,
        "repr": f"{name}[num_warps={opts.num_warps}, num_ctas={opts.num_ctas}, num_stages={opts.num_stages}]({args})",
        "fn": JitFunctionInfo(kernel.module, name, kernel),
        "compile": facts,
        "is_manual_warmup": warmup,
        "already_compiled": False,
    }


def _specialization_data(kernel: Any, key: str, src: Any, options: Mapping[str, Any], target: str) -> str:
    """Everything that a kernel is specialised for, as JSON."""
    facts = {
        "name": kernel._fn_name,
        "signature": src.signature,
        "constant_keys": [list(p) for p in src.constants],
        "constant_vals": [as_json(v) for v in src.constants.values()],
        "attrs_keys": [list(p) for p in src.attrs],
        "attrs_vals": list(src.attrs.values()),
        "options": dict(options),
        "target": _target_facts(target),
        "target_name": target,
        "key": key,
    }
    return json.dumps(facts, default=str)


def _target_facts(name: str) -> dict[str, Any]:
    """A target as Triton's tools see it."""
    target = compiler.as_target(name.removeprefix("sim:"))
    return {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size}


def read_specialization(kernel: Any, text: str) -> tuple[str, compiler.ASTSource, dict[str, Any], str]:
    """(key, source, options, target) of what a hook was told. SpecializationError where that was another kernel."""
    facts = _fields_of(text)
    if facts["name"] != kernel._fn_name:
        raise SpecializationError(
            f"Specialization data is for {facts['name']}, and this is {kernel._fn_name}",
            hint="preload each kernel with the data that the hook received for that kernel",
        )
    made_for = _target_facts(facts["target_name"])
    told = {**facts["target"], "arch": made_for["arch"]} if made_for["backend"] == "cpu" else facts["target"]
    if told != made_for:  # the name of a CPU says nothing: code is made for the one at hand
        raise SpecializationError(f"Specialization data is for {facts['target']}, and this is {made_for}")
    signature = {name: _tuples(t) for name, t in facts["signature"].items()}
    try:
        constants = {
            tuple(k): from_json(v) for k, v in zip(facts["constant_keys"], facts["constant_vals"], strict=True)
        }
        attrs = {tuple(k): v for k, v in zip(facts["attrs_keys"], facts["attrs_vals"], strict=True)}
    except SpecializationError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise _no_specialization(f"its constants or attributes do not fit together ({error})") from None
    source = compiler.ASTSource(kernel, signature, constants, attrs)
    return facts["key"], source, facts["options"], facts["target_name"]


_FIELDS = {
    **dict.fromkeys(("name", "target_name", "key"), str),
    **dict.fromkeys(("signature", "options", "target"), dict),
    **dict.fromkeys(("constant_keys", "constant_vals", "attrs_keys", "attrs_vals"), list),
}
_JSON_NAMES = {str: "a string", dict: "an object", list: "an array"}


def _no_specialization(problem: str) -> SpecializationError:
    return SpecializationError(
        f"This is no specialization data: {problem}",
        hint="`preload` takes the `specialization_data` that a hook received, unchanged",
    )


def _fields_of(text: str) -> dict[str, Any]:
    """The fields of specialization data, each of its type. SpecializationError for any other text."""
    try:
        facts = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_specialization(str(error)) from None
    if not isinstance(facts, dict):
        raise _no_specialization(f"it is {text[:40]!r}, not an object")
    for name, kind in _FIELDS.items():
        if not isinstance(facts.get(name), kind):
            fault = f"is {facts[name]!r}" if name in facts else "is missing"
            raise _no_specialization(f"`{name}` {fault}, it has to be {_JSON_NAMES[kind]}")
    return facts


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class DeviceCaches:
    """`kernel.device_caches[device]`: one device, whatever it is called."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __getitem__(self, device: Any) -> tuple[Any, ...]:
        binder: tuple[Any, ...] = self._function.create_binder()
        return binder

    def __iter__(self) -> Any:
        return iter((0,))

    def __len__(self) -> int:
        return 1

    def keys(self) -> tuple[int]:
        """The devices."""
        return (0,)

    def values(self) -> list[tuple[Any, ...]]:
        """The caches."""
        return [self[0]]

    def items(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Devices and caches."""
        return [(0, self[0])]

    def clear(self) -> None:
        """Forget every compiled kernel."""
        self._function._kernels.clear()
