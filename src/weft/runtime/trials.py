"""Trials: a kernel is run with one configuration after the other, and timed.

    timings = tuner._measure(configs, args, kwargs)       # {Config(BLOCK=256): [0.21, 0.20, 0.23], ...} in milliseconds

A trial really runs the kernel, so what it changes is set to zero before it or restored behind it. On a CPU the options
of GPUs (num_warps, num_stages, ...) change nothing, so configurations that differ in nothing else are measured once;
code for all of them is made at once, by compile workers; and one that is clearly slower than the best so far is not run
to the end (see `_race`). `Autotuner` (autotuner.py) says when there are trials, of which configurations, and keeps what
was the fastest.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft import compiler
from weft.base import (
    CompilerCrash,
    CompileTimeAssertionFailure,
    LaunchError,
    LaunchTypeError,
    OutOfResources,
    load,
    progress,
)
from weft.language.keys import key_text

from . import knobs, tuning_checks
from .arrays import may_be_on_gpu
from .compiling import current_target, on_gpu
from .config import Config
from .errors import PTXASError
from .jit import JITFunction
from .rules import Heuristics
from .streams import may_use_gpu
from .testing import do_bench

BEHIND = (4.0, 1.5, 1.25)
"""A configuration is given up on a CPU where its best run takes so many times the median of the best configuration:
after its first run, after its second, and later."""
LONG_MS = 20.0
"""In a run of this length cold caches are no part worth mentioning: the first run counts, and as much as a second."""
LEAST_AHEAD = 3
"""So many configurations are worth the start of processes."""
MEASURED_MS = 60.0
"""How long the runs of one configuration on a CPU take together, unless it is given up."""
HOOKS = {
    "pre_hook": "def before(args, reset_only=False): ...",
    "post_hook": "def after(args, exception=None): ...",
}
_FAILED = [float("inf")] * 3


def _zero(array: Any) -> None:
    if hasattr(array, "zero_"):
        array.zero_()
    else:
        array[...] = np.zeros((), array.dtype)


def _array(value: Any, subject: str, name: str) -> Any:
    """An argument that is to be changed. LaunchTypeError where it is no array, LaunchError where it is read-only."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise LaunchTypeError(
            f"{subject} names `{name}`, which is no array but of type {type(value).__name__}",
            name,
            hint="name the arrays that a trial changes",
        )
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        raise LaunchError(f"{subject} names `{name}`, which is read-only", name, hint="pass a writeable copy, x.copy()")
    return value


def _clone(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


def _restore(array: Any, saved: Any) -> None:
    if hasattr(array, "copy_"):
        array.copy_(saved)
    else:
        array[...] = saved


class Place(str):
    """What a launch runs on, in a key of the autotuner: a target, or "gpu" for the one where the arrays are."""

    def machine(self) -> str:
        """What timings on it hold for."""
        if self != "gpu" and not compiler.is_gpu(self):
            return str(self)
        device = load("weft.runtime.device").devices.current_device()
        return f"{self} {device.name} {device.target}"


class Trials:
    """What measures the configurations of a kernel."""

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., Any] | None,
        post_hook: Callable[..., Any] | None,
        do_bench: Callable[..., Any] | None,
    ) -> None:
        self.fn = fn
        base = fn
        while not inspect.isfunction(base) and getattr(base, "fn", None) is not None:
            base = base.fn
        self.base_fn = base
        self.arg_names = list(arg_names)
        self.reset_to_zero = tuning_checks.as_names(reset_to_zero)
        self.restore_value = tuning_checks.as_names(restore_value)
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook: Callable[..., Any] = pre_hook or self._prepare
        self.post_hook: Callable[..., Any] = post_hook or self._clean_up
        self._do_bench = do_bench
        self.nargs: dict[str, Any] | None = None
        """The positional arguments by name, while configurations are measured."""
        self.configs_timings: dict[Config, Any] = {}
        self._ahead: set[Config] = set()
        """Configurations whose code has been made before they are measured."""
        self._crashed: dict[Config, CompilerCrash] = {}
        """Those of them at which the compiler crashed."""

    def _innermost(self) -> JITFunction:
        """The kernel itself, without autotuners and heuristics around it."""
        fn = self.fn
        while not isinstance(fn, JITFunction):
            fn = fn.fn
        return fn

    def _prepare(self, kwargs: dict[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            if kwargs.get(name) is not None:
                _zero(_array(kwargs[name], "reset_to_zero", name))
        if not reset_only:
            self.restore_copies = {
                name: _clone(_array(kwargs[name], "restore_value", name))
                for name in self.restore_value
                if kwargs.get(name) is not None
            }

    def _clean_up(self, kwargs: dict[str, Any], exception: BaseException | None) -> None:
        for name, saved in self.restore_copies.items():
            _restore(kwargs[name], saved)
        self.restore_copies = {}

    @property
    def do_bench(self) -> Callable[..., Any]:
        """What measures a trial: (function, quantiles=) -> milliseconds."""
        return self._do_bench if self._do_bench is not None else do_bench

    def _bench(self, *args: Any, config: Config, **meta: Any) -> Any:
        """Milliseconds of a configuration (median and two quantiles); infinite when it cannot be run."""
        verbose = knobs.autotuning.print
        if verbose:
            print(f"Autotuning kernel {self.base_fn.__name__} with config {config}")
        chosen = config.all_kwargs()
        refuse_conflicts(meta, chosen)
        refuse_conflicts(self.nargs or {}, chosen)
        current = {**meta, **chosen}
        full = {**(self.nargs or {}), **current}
        tuning_checks.check_call("pre_hook of autotune", self.pre_hook, HOOKS["pre_hook"], full, reset_only=True)
        tuning_checks.check_call("post_hook of autotune", self.post_hook, HOOKS["post_hook"], full, exception=None)

        def kernel_call() -> None:
            if config.pre_hook is not None:
                config.pre_hook(full)
            self.pre_hook(full)
            try:
                if config in self._crashed:  # here it might end the process
                    raise self._crashed[config]
                self.fn.run(*args, **current)
            except Exception as error:
                self.post_hook(full, exception=error)
                raise
            self.post_hook(full, exception=None)

        try:
            if self._do_bench is None and not self._on_gpu((*args, *meta.values())):
                return self._race(kernel_call, config in self._ahead)  # a launch on a GPU returns before it is done
            timing = tuning_checks.called(
                "do_bench of autotune", self.do_bench, tuning_checks.BENCH, kernel_call, quantiles=(0.5, 0.2, 0.8)
            )
            return tuning_checks.check_timing(timing)
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError) as error:
            if verbose:
                print(f"Autotuning failed with {error}")
            return list(_FAILED)

    def _race(self, kernel_call: Callable[[], None], compiled: bool) -> list[float]:
        """Milliseconds of a run on a CPU, as `_bench` says; a clear loser is not run to the end."""
        best = min((t[0] for t in self.configs_timings.values() if isinstance(t, list)), default=float("inf"))
        times: list[float] = []
        warm = False
        while sum(times) < MEASURED_MS or len(times) < len(BEHIND):
            begin = time.perf_counter()
            kernel_call()
            taken = 1e3 * (time.perf_counter() - begin)
            if not warm and (taken < LONG_MS or not compiled):
                warm = True  # the first run, which finds everything cold, and may have compiled
                continue
            times.append(taken)
            lap = len(times) - (min(times) < LONG_MS)
            if min(times) > BEHIND[max(0, min(lap, len(BEHIND) - 1))] * best:
                break
        times.sort()
        return [times[int(q * (len(times) - 1) + 0.5)] for q in (0.5, 0.2, 0.8)]

    @staticmethod
    def _on_gpu(values: Iterable[Any]) -> bool:
        """Whether launches with these arguments go to a GPU."""
        return any(may_be_on_gpu(value) and on_gpu(value) for value in values)

    def _place(self, values: Iterable[Any], target: str | None) -> Place:
        """What launches with these arguments run on; what is fastest on one place need not be on another."""
        name = target if target is not None and "target" not in self.arg_names else current_target()
        return Place("gpu" if name == "cpu" and may_use_gpu() and self._on_gpu(values) else name)

    def _same_code(self, config: Config, args: tuple[Any, ...], meta: Mapping[str, Any]) -> Any:
        """Configurations with the same answer make the same code on a CPU; None when that is not known."""
        if self._place((*args, *meta.values()), meta.get("target")) != "cpu":
            return None
        if config.pre_hook is not None or config.ir_override is not None or self._do_bench is not None:
            return None
        # Parameters, options of a GPU that the kernel computes with among them, and options that a CPU's code knows of.
        told = {k: v for k, v in config.all_kwargs().items() if k in self.arg_names or k not in compiler.gpu_options()}
        return key_text((sorted(told.items()), self._derived(config, meta)))

    def _derived(self, config: Config, meta: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """What heuristics below make of a configuration: they may look at options of GPUs."""
        values, known_values, fn = dict[str, Any](), {**(self.nargs or {}), **meta, **config.all_kwargs()}, self.fn
        while not isinstance(fn, JITFunction):
            if isinstance(fn, Heuristics):
                for name, rule in fn.values.items():
                    values[name] = rule({**known_values, **values})
            fn = fn.fn
        return sorted(values.items())

    def _compile_ahead(self, configs: Iterable[Config], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Have the code of all configurations made at once, by compile workers; what fails is told when it is run.

        A hook may change the arguments before a kernel is compiled for them: configurations that have one wait.
        """
        plain = [config for config in configs if config.pre_hook is None and config.ir_override is None]
        if self.user_defined_pre_hook or len(plain) < LEAST_AHEAD:
            return
        many = load("weft.runtime.many")  # which brings the compiler
        if many.cores() < 2:
            return
        ahead = [partial(self.fn.run, *args, **{**kwargs, **config.all_kwargs(), "warmup": True}) for config in plain]
        results = many.compile_many(ahead, return_exceptions=True)
        self._ahead = set(plain)
        self._crashed = {c: error for c, error in zip(plain, results, strict=True) if isinstance(error, CompilerCrash)}

    def _measure(self, configs: Iterable[Config], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Config, Any]:
        self.configs_timings, self._ahead, self._crashed = {}, set(), {}
        timings: dict[Any, Any] = {}
        codes = [(c, self._same_code(c, args, kwargs)) for c in configs]
        self._compile_ahead({same: c for c, same in reversed(codes) if same is not None}.values(), args, kwargs)
        with progress(f"tuning {self.base_fn.__name__}", len(codes)) as told:
            for at, (config, same) in enumerate(codes):
                told(at)
                timing = timings.get(same) if same is not None else None
                if timing is None:
                    timing = self._bench(*args, config=config, **kwargs)
                    timings[same] = timing
                self.configs_timings[config] = timing
        return self.configs_timings


def refuse_conflicts(passed: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
    """LaunchError where a launch says what the configuration has said."""
    if passed.keys().isdisjoint(chosen):
        return
    conflicts = sorted(passed.keys() & chosen.keys())
    raise LaunchError(
        f"Conflicting meta-parameters: {', '.join(conflicts)}. Make sure that you don't re-define auto-tuned symbols.",
        conflicts[0],
        hint="leave them out of the launch: the configuration says them",
    )
