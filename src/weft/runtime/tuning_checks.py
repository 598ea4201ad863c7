"""What is wrong with how a kernel is tuned, told when the kernel is first used.

Not when it is decorated: a module with a kernel that nobody launches can be imported. And not never: a key that names
no parameter tunes once for all sizes, `restore_value` that names none restores nothing, and `top_k=0` leaves nothing
to choose from.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from weft.base import DefinitionError, LaunchError, LaunchTypeError, SettingWarning

from .config import Config
from .misuse import check_unknown, hint_for
from .warned import warn

BENCH = "do_bench=lambda run, quantiles: weft.testing.do_bench(run, quantiles=quantiles)"
CONFIG = 'weft.Config({"BLOCK": 128}, num_warps=4)'
PREDICTION = "prediction"
"""What `perf_model` may be beside a function: the model of time of `weft.explain`."""
PRUNE = '{"perf_model": model, "top_k": 4} or {"early_config_prune": prune}'
RULES = '{"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}'


def parameters_of(fn: Any) -> list[str]:
    """The parameters of a kernel; none where it is no kernel, or one that cannot be used: `check_kernel` says so."""
    try:
        return list(getattr(fn, "arg_names", ()))
    except DefinitionError:
        return []


def check_kernel(fn: Any, decorator: str) -> None:
    """DefinitionError where what was decorated is no kernel, or one in which something is wrong itself."""
    inner = fn
    while inner is not None and not inspect.isfunction(inner):
        wrong = getattr(inner, "wrong", None)
        if isinstance(wrong, DefinitionError):
            raise wrong.with_traceback(None)
        if not hasattr(inner, "arg_names"):
            break
        inner = getattr(inner, "fn", None)
    if not hasattr(fn, "arg_names") and not hasattr(fn, "run"):  # tools give what can be run
        shown = f"the function {fn.__name__}" if inspect.isfunction(fn) else f"{fn!r} of type {type(fn).__name__}"
        hint = f"decorators apply from the bottom up: put @{decorator} above @jit" if inspect.isfunction(fn) else None
        raise DefinitionError(f"{decorator} needs a kernel, got {shown}", hint=hint)


def as_names(value: Any) -> list[Any]:
    """Names as they were given, in a list; what is no sequence of names is the only one in it, to be refused."""
    if value is None:
        return []
    return list(value) if isinstance(value, Iterable) else [value]


def check_names(kernel: str, parameters: Sequence[str], option: str, names: Iterable[Any], value: Any) -> None:
    """LaunchError for a name in `option` (`key`, say) that no parameter has."""
    for name in names:
        if name in parameters:
            continue
        if isinstance(value, str):
            hint = f"{option} is a list of names: {option}=[{value!r}]"
        else:
            hint = hint_for(str(name), parameters, "its parameters are")
        raise LaunchError(f"{option} names {name!r}, which is no parameter of {kernel}", str(name), hint=hint)


def check_configs(configs: Sequence[Any]) -> None:
    """LaunchTypeError for what is no configuration."""
    for config in configs:
        if not isinstance(config, Config):
            raise LaunchTypeError(
                f"configs of autotune are Configs, got {config!r} of type {type(config).__name__}",
                hint=CONFIG,
            )
        check_mapping("what a Config holds", config.kwargs, CONFIG)
        wrong = next((name for name in config.kwargs or () if not isinstance(name, str)), "")
        if not isinstance(wrong, str):
            shown = f"got {wrong!r} of type {type(wrong).__name__}"
            raise LaunchTypeError(f"what a Config holds are parameters by name, {shown}", hint=CONFIG)
        for name in ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override"):
            within, beside = (config.kwargs or {}).get(name), getattr(config, name)
            if None not in (within, beside) and within != beside:
                warn(
                    f"a Config holds {name!r}: {within!r} in its dictionary, where it has no effect: {name}={beside!r} "
                    f"is what its kernel is compiled with; write Config({{...}}, {name}={within!r})",
                    SettingWarning,
                )
        check_unknown("Config", config.unknown)
        check_function("pre_hook of a Config", config.pre_hook, "pre_hook=lambda args: ...")


def warn_of_chosen(names: Iterable[Any], configs: Iterable[Config]) -> None:
    """A warning for a name in `key` whose value the configurations choose, so that it tells no launch from another."""
    chosen = {name for config in configs for name in config.kwargs or ()}
    for name in names:
        if name in chosen:
            warn(f"key names {name!r}, which the configurations say: it has no effect", SettingWarning)


def check_function(subject: str, function: Any, example: str) -> None:
    """LaunchTypeError for what should be a function, or None."""
    if function is not None and not callable(function):
        raise LaunchTypeError(
            f"{subject} is a function, got {function!r} of type {type(function).__name__}", hint=example
        )


def called(subject: str, function: Callable[..., Any], example: str, *args: Any, **kwargs: Any) -> Any:
    """What a user's function gives; LaunchTypeError where it does not take what it is called with."""
    check_call(subject, function, example, *args, **kwargs)
    return function(*args, **kwargs)


def check_call(subject: str, function: Callable[..., Any], example: str, *args: Any, **kwargs: Any) -> None:
    """LaunchTypeError where a user's function does not take what it is going to be called with."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise LaunchTypeError(f"{subject} cannot be called: {error}", hint=example) from None
    except ValueError:  # a function of C that does not say what it takes
        pass


def check_length(subject: str, length: Any) -> None:
    """LaunchTypeError for what is no time, in milliseconds."""
    if length is not None and not (as_number(length) is not None and length >= 0):
        raise LaunchTypeError(
            f"{subject} of autotune is a number of milliseconds, got {length!r}", hint=f"{subject}=25"
        )


def check_file(subject: str, path: Any) -> None:
    """LaunchTypeError for what is no path of a file."""
    if path is not None and not isinstance(path, str):
        raise LaunchTypeError(
            f"{subject} of autotune is the path of a file as text, got {path!r}", hint=f'{subject}="kernels.tuned.json"'
        )


def as_number(value: Any) -> float | None:
    """A number, which NaN is not; None for anything else."""
    try:
        number = float(value) if hasattr(value, "__float__") else float("nan")
    except (TypeError, ValueError):
        return None
    return None if number != number else number


def check_timing(timing: Any) -> Any:
    """What `do_bench` gave: milliseconds, or some quantiles of them. LaunchTypeError for what is neither."""
    if as_number(timing) is not None:
        return timing if isinstance(timing, (int, float)) else float(timing)
    numbers = list(timing) if isinstance(timing, Iterable) and not isinstance(timing, str) else []
    if not numbers or any(as_number(number) is None for number in numbers):
        shown = f"got {timing!r} of type {type(timing).__name__}"
        raise LaunchTypeError(f"do_bench gives milliseconds, or a list of them, {shown}", hint=BENCH)
    return list(map(float, numbers))


def check_mapping(subject: str, mapping: Any, example: str, all_callable: bool = False) -> None:
    """LaunchTypeError for what is no dictionary, or for one that should hold functions and does not."""
    if mapping is None and not all_callable:
        return
    if not isinstance(mapping, Mapping):
        raise LaunchTypeError(
            f"{subject} is a dictionary, got {mapping!r} of type {type(mapping).__name__}", hint=example
        )
    wrong = next((name for name, rule in mapping.items() if all_callable and not callable(rule)), None)
    if wrong is not None:
        shown = f"got {mapping[wrong]!r} of type {type(mapping[wrong]).__name__} for {wrong!r}"
        raise LaunchTypeError(f"{subject} is a dictionary of functions, {shown}", hint=example)


def check_pruning(pruning: Any, count: int) -> None:
    """LaunchError for what `prune_configs_by` counts wrongly; a warning for what prunes nothing, as Triton runs it."""
    check_mapping("prune_configs_by of autotune", pruning, PRUNE)
    functions, numbers = ("perf_model", "early_config_prune"), ("top_k", "prune_num_stages_by")  # that of old Tritons
    pruning = pruning or {}
    for name, value in pruning.items():
        if name not in functions + numbers:
            near = get_close_matches(str(name), functions + numbers, 1)
            hint = f"did you mean {near[0]!r}?" if near else PRUNE
            warn(f"prune_configs_by names {name!r}, which prunes nothing: {hint}", SettingWarning)
        if name in functions and (name, value) != ("perf_model", PREDICTION):
            check_function(f"{name} in prune_configs_by", value, PRUNE)
    top_k = pruning.get("top_k")
    if pruning.get("perf_model") is not None or top_k is not None:
        top_count(pruning.get("top_k", 1.0), count)
    all_of_them = isinstance(top_k, float) and top_k == 1.0
    if pruning.get("perf_model") is None and top_k is not None and not all_of_them:
        told = "has no effect, since there is no perf_model to say which are best; all configurations are tried"
        warn(f"top_k={top_k!r} {told}", SettingWarning)


def top_count(top_k: Any, count: int) -> int:
    """How many of `count` configurations `top_k` asks for: a number of them, or a share. LaunchError for neither."""
    told = "Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int"
    hint = "top_k=4 keeps the four best by perf_model, top_k=0.25 a quarter"
    if isinstance(top_k, float):
        if not 0.0 < top_k <= 1.0:
            raise LaunchError(f"{told}, more than 0: got {top_k!r}", "top_k", hint=hint)
        return max(1, int(count * top_k))
    if isinstance(top_k, bool) or not hasattr(top_k, "__index__"):
        raise LaunchTypeError(f"{told}, got {top_k!r} of type {type(top_k).__name__}", "top_k", hint=hint)
    if operator.index(top_k) < 1:
        raise LaunchError(f"{told}, more than 0: got {top_k!r}", "top_k", hint=hint)
    return operator.index(top_k)
