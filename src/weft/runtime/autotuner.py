"""Choosing a kernel's parameters by measuring: `autotune`. By a rule, with `heuristics`, see rules.py.

    @autotune([Config({"BLOCK": 256}), Config({"BLOCK": 1024})], key=["n"])
    @heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @jit
    def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr): ...

The first launch with new values of the key arguments measures every configuration and keeps the fastest.  On a CPU the
options of GPUs (num_warps, num_stages, ...) change nothing, so configurations that differ in nothing else are measured
once; code for all of them is made at once, by compile workers; and one that is clearly slower than the best so far is
not run to the end (see `_race`).
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Never, Protocol

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
    shortened,
)
from weft.base.locks import renewed
from weft.language.keys import key_of, key_text

from . import compiling, knobs, tuning_checks, winners
from .arrays import may_be_on_gpu
from .cache import default_store
from .compiling import current_target, on_gpu
from .config import Config
from .errors import AutotunerError, PTXASError
from .files import compiler_key
from .interface import KernelInterface, PickledByName
from .jit import JITFunction
from .launches import Choosing, F, Fn, Kernel, Launchable
from .misuse import check_unknown
from .rules import Heuristics, heuristics
from .streams import may_use_gpu
from .testing import do_bench, do_bench_cudagraph

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]

BEHIND = (4.0, 1.5, 1.25)
"""A configuration is given up on a CPU where its best run takes so many times the median of the best configuration:
after its first run, after its second, and later."""
LONG_MS = 20.0
"""In a run of this length cold caches are no part worth mentioning: the first run counts, and as much as a second."""
LEAST_AHEAD = 3
"""So many configurations are worth the start of processes."""
MEASURED_MS = 60.0
"""How long the runs of one configuration on a CPU take together, unless it is given up."""
_HOOKS = {
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


class _Place(str):
    """What a launch runs on, in a key of the autotuner: a target, or "gpu" for the one where the arrays are."""

    def machine(self) -> str:
        """What timings on it hold for."""
        if self != "gpu" and not compiler.is_gpu(self):
            return str(self)
        device = load("weft.runtime.device").devices.current_device()
        return f"{self} {device.name} {device.target}"


class Autotuner(Choosing[F], PickledByName, KernelInterface[Any]):
    """A kernel with configurations to choose from, made by `autotune`. The first launch measures them.

    >>> @weft.autotune(configs=[weft.Config({"BLOCK": size}) for size in (32, 64)], key=["n"])
    ... @weft.jit
    ... def double(x, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)
    >>> isinstance(double, Autotuner), [config.kwargs for config in double.configs]
    (True, [{'BLOCK': 32}, {'BLOCK': 64}])
    """

    decorator = "autotune"

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: list[Config] | None,
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
        tuned: str | None = None,
        **unknown: Never,
    ) -> None:
        self._unknown = unknown
        self.tuned = tuned
        """A file of winners of `weft tune`, which is looked in before anything is measured; see winners.py."""
        self.configs = tuning_checks.as_names(configs) or [Config({}, num_warps=4, num_stages=3, num_ctas=1)]
        self.keys = tuning_checks.as_names(key)
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.arg_names = list(arg_names)
        self.cache_results = cache_results or knobs.autotuning.cache
        self.reset_to_zero = tuning_checks.as_names(reset_to_zero)
        self.restore_value = tuning_checks.as_names(restore_value)
        self._arguments = {"key": key, "reset_to_zero": reset_to_zero, "restore_value": restore_value}
        self._checked = False
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook: Callable[..., Any] = pre_hook or self._prepare
        self.post_hook: Callable[..., Any] = post_hook or self._clean_up
        self._pruned_by = prune_configs_by
        prune = dict(prune_configs_by) if isinstance(prune_configs_by, Mapping) else {}
        self.perf_model = prune.get("perf_model")
        if self.perf_model == tuning_checks.PREDICTION:
            self.perf_model = self._predicted
        self.configs_top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self.fn = fn
        base = fn
        while not inspect.isfunction(base) and getattr(base, "fn", None) is not None:
            base = base.fn
        self.base_fn = base
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self._do_bench = do_bench
        self.nargs: dict[str, Any] | None = None
        """The positional arguments by name, while configurations are measured."""
        self._lock = renewed(threading.RLock())
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, Any] = {}
        self.bench_time = 0.0
        self._ahead: set[Config] = set()
        self._crashed: dict[Config, CompilerCrash] = {}
        """Configurations whose code has been made before they are measured."""
        if warmup is not None or rep is not None or use_cuda_graph:
            warnings.warn(
                "warmup, rep and use_cuda_graph of autotune are deprecated, give do_bench instead",
                DeprecationWarning,
                stacklevel=3,
            )
            self._do_bench = self._old_bench

    def explain_configs(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """All configurations for a launch: times predicted, times measured when it was tuned last, what was pruned."""
        return load("weft.runtime.choices").choices_of(self, args, grid, kwargs)

    def _predicted(self, **arguments: Any) -> float:
        """Microseconds by the model of time, for `perf_model`."""
        microseconds: float = load("weft.runtime.explaining").predicted(self.fn, arguments)
        return microseconds

    def _old_bench(self, kernel_call: Callable[[], Any], quantiles: Sequence[float]) -> Any:
        rep = 100 if self.num_reps is None else self.num_reps
        if self.use_cuda_graph:
            return do_bench_cudagraph(kernel_call, rep=rep, quantiles=quantiles)
        return do_bench(
            kernel_call, warmup=25 if self.num_warmups is None else self.num_warmups, rep=rep, quantiles=quantiles
        )

    def _check(self) -> None:
        """Raise what is wrong with the kernel, or with how it is to be tuned."""
        tuning_checks.check_kernel(self.fn, "autotune")
        check_unknown("autotune", self._unknown)
        if self._arguments["key"] is NO_KEY:
            raise LaunchTypeError(
                "autotune needs a key: the arguments for whose values the configurations are measured",
                hint='key=["n"]; key=[] measures once for all',
            )
        tuning_checks.check_configs(self.configs)
        for hook, function in (("pre_hook", self.pre_hook), ("post_hook", self.post_hook)):
            tuning_checks.check_function(f"{hook} of autotune", function, _HOOKS[hook])
        tuning_checks.check_function("do_bench of autotune", self._do_bench, tuning_checks.BENCH)
        tuning_checks.check_file("tuned", self.tuned)
        tuning_checks.check_length("warmup", self.num_warmups)
        tuning_checks.check_length("rep", self.num_reps)
        asked = {"key": self.keys, "reset_to_zero": self.reset_to_zero, "restore_value": self.restore_value}
        for option, names in asked.items():
            tuning_checks.check_names(self.base_fn.__name__, self.arg_names, option, names, self._arguments[option])
        tuning_checks.warn_of_chosen(self.keys, self.configs)
        tuning_checks.check_pruning(self._pruned_by, len(self.configs))
        self._checked = True

    # -- around a trial --------------------------------------------------------------------------------------------

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
        _refuse_conflicts(meta, chosen)
        _refuse_conflicts(self.nargs or {}, chosen)
        current = {**meta, **chosen}
        full = {**(self.nargs or {}), **current}
        tuning_checks.check_call("pre_hook of autotune", self.pre_hook, _HOOKS["pre_hook"], full, reset_only=True)
        tuning_checks.check_call("post_hook of autotune", self.post_hook, _HOOKS["post_hook"], full, exception=None)

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

    def _place(self, values: Iterable[Any], target: str | None) -> _Place:
        """What launches with these arguments run on; what is fastest on one place need not be on another."""
        name = target if target is not None and "target" not in self.arg_names else current_target()
        return _Place("gpu" if name == "cpu" and may_use_gpu() and self._on_gpu(values) else name)

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

    # -- launching -------------------------------------------------------------------------------------------------

    def _key(self, nargs: Mapping[str, Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        named = {k: v for k, v in {**nargs, **kwargs}.items() if k in self.arg_names}
        key = [_part(named[name]) for name in self.keys if name in named]
        key += [str(value.dtype) for value in named.values() if hasattr(value, "dtype")]
        place = self._place(named.values(), kwargs.get("target"))
        return tuple(key) if place == "cpu" else (*key, place)

    @shortened
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration, found by measuring when the key is new."""
        if not self._checked:
            self._check()
        nargs = dict(zip(self.arg_names, args, strict=False))
        config = self.configs[0]
        if len(self.configs) > 1 and compiling.chooser is not None:
            config = compiling.chooser(self, args, kwargs)
        elif len(self.configs) > 1:
            key = self._key(nargs, kwargs)
            config_found = self.cache.get(key)
            if config_found is None:
                with self._lock:  # one thread measures; others that came for the same key take what it found
                    config_found = self.cache.get(key) or self._tune(key, nargs, args, kwargs)
            config = config_found
        self.best_config = config
        chosen = config.all_kwargs()
        _refuse_conflicts(kwargs, chosen)
        _refuse_conflicts(nargs, chosen)
        if config.pre_hook is not None:
            config.pre_hook({**nargs, **kwargs, **chosen})
        return self.fn.run(*args, **kwargs, **chosen)

    def _tune(
        self, key: tuple[Any, ...], nargs: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Config:
        """Measure, and keep what is fastest under `key`."""
        around, self.nargs = self.nargs, nargs  # a hook may launch the kernel itself
        try:
            before = self._found_before(args, kwargs)
            if before is not None:
                self.cache[key] = before
                return before
            pruned = self.prune_configs(kwargs)

            def benchmark() -> bool:
                begin = time.perf_counter()
                timings = self._measure(pruned, args, kwargs)
                self.bench_time = time.perf_counter() - begin
                best = min(timings, key=lambda c: _number(timings[c]))
                full = {**nargs, **kwargs, **best.all_kwargs()}
                self.pre_hook(full, reset_only=True)
                self.cache[key] = best
                return False

            cache_hit = False
            if len(pruned) == 1:
                self.cache[key] = pruned[0]  # nothing to compare
                return pruned[0]
            if self.cache_results:
                cache_hit = self.check_disk_cache(key, pruned, benchmark)
            else:
                benchmark()
            if knobs.autotuning.print and not cache_hit:
                print(
                    f"Triton autotuning for function {self.base_fn.__name__},\nwith key as {key},\n"
                    f"finished after {self.bench_time:.2f}s,\nbest config selected: {self.cache[key]};"
                )
            if knobs.autotuning.listener is not None:
                self._tell(knobs.autotuning.listener, key, cache_hit)
            return self.cache[key]
        finally:
            self.nargs = around

    def text_of_key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """What tells a launch from others that are tuned apart, whatever it runs on, as a file of winners has it."""
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        values = {name: named[name] for name in self.arg_names if name in named}
        return winners.key_of_launch((_part(values[name]) for name in self.keys if name in values), values.values())

    def _found_before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Config | None:
        """The configuration that a file of winners has for a launch; None where there is no such file, or it is old."""
        path, kernel = self.tuned if self.tuned is not None else knobs.autotuning.tuned, self._innermost()
        if path is None:
            path = winners.beside(kernel.file_name)
        if not path or not os.path.exists(path):
            return None
        place = self._place((*args, *kwargs.values()), kwargs.get("target"))
        target = str(place).removeprefix("sim:")
        if place == "gpu":
            target = str(load("weft.runtime.device").devices.current_device().target)
        found = winners.winner(self, kernel, self.text_of_key(args, kwargs), target, path)
        if found is not None and knobs.autotuning.print:
            print(f"Configuration of {self.base_fn.__name__} from a file of winners: {found}")
        return found

    def _tell(self, listener: Callable[..., Any], key: tuple[Any, ...], cache_hit: bool) -> None:
        """Call a listener with what was chosen, and the seconds that it took unless it was found on disk."""
        listener(
            fn=self._innermost(),
            key=key,
            best_config=self.cache[key],
            configs_timings=self.configs_timings,
            duration=None if cache_hit else self.bench_time,
            cache_hit=cache_hit,
        )

    def _innermost(self) -> JITFunction:
        """The kernel itself, without autotuners and heuristics around it."""
        fn = self.fn
        while not isinstance(fn, JITFunction):
            fn = fn.fn
        return fn

    def check_disk_cache(self, tuning_key: Any, configs: Sequence[Config], bench_fn: Callable[[], Any]) -> bool:
        """Take the timings from the cache on disk, or measure and put them there; whether they were found."""
        store = default_store()
        if not tuning_key or store is None or any(c.pre_hook for c in configs):
            bench_fn()
            return False
        fn = self._innermost()
        place = tuning_key[-1]
        on_cpu = not isinstance(place, _Place)
        machine = str(compiler.as_target()) if on_cpu else place.machine()
        search = key_text((tuning_key, [sorted(c.all_kwargs().items()) for c in configs]))
        parts = ["autotune", compiler_key(), fn.current_key(), machine, search]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        entry = store.get(digest)
        kept = None if entry is None else _timings_of(entry[0], len(configs))
        if kept is not None:
            timings = dict(zip(configs, kept, strict=True))
            self.configs_timings = timings
            self.cache[tuning_key] = min(timings, key=lambda c: _number(timings[c]))
            return True
        bench_fn()
        facts = [self.configs_timings[c] for c in configs]
        try:
            json.dumps(facts)
        except TypeError:
            return False
        store.put(digest, {"name": f"{fn.__name__}.autotune", "timings": facts}, {})
        return False

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configurations that are worth measuring for these arguments."""
        pruned = self.configs
        named = self.nargs or {}
        if self.early_config_prune is not None:
            function, example = "early_config_prune", "def prune(configs, args, **kwargs): return configs[:2]"
            answer = tuning_checks.called(function, self.early_config_prune, example, self.configs, named, **kwargs)
            pruned = list(answer) if isinstance(answer, Iterable) else [answer] if answer is not None else []
            if not all(isinstance(config, Config) for config in pruned):
                shown = f"got {answer!r} of type {type(answer).__name__}"
                raise LaunchTypeError(f"{function} gives a list of Configs, {shown}", hint=example)
            if not pruned:
                raise AutotunerError(
                    "No valid autotuner configs after pruning. `early_config_prune` should return at least one config."
                )
        if self.perf_model is not None:
            top_k = tuning_checks.top_count(self.configs_top_k, len(pruned))
            if len(pruned) > top_k:
                example = "def model(BLOCK, n, **others): return n / BLOCK"
                estimates = {
                    c: tuning_checks.called("perf_model", self.perf_model, example, **named, **kwargs, **c.all_kwargs())
                    for c in pruned
                }
                wrong = next((e for e in estimates.values() if tuning_checks.as_number(e) is None), 0.0)
                if tuning_checks.as_number(wrong) is None:
                    shown = f"got {wrong!r} of type {type(wrong).__name__}"
                    raise LaunchTypeError(f"perf_model gives a number, the less the better, {shown}", hint=example)
                pruned = sorted(estimates, key=lambda c: float(estimates[c]))[:top_k]
        return list(pruned)

    def warmup(self, *args: Any, **kwargs: Any) -> list[Kernel]:  # type: ignore[override]
        """Compile every configuration."""
        self._check()
        with self._lock:
            around, self.nargs = self.nargs, dict(zip(self.arg_names, args, strict=False))
            try:
                configs = self.prune_configs(kwargs)
            finally:
                self.nargs = around
        return [self.fn.warmup(*args, **kwargs, **c.all_kwargs()) for c in configs]


def _timings_of(facts: Mapping[str, Any], count: int) -> list[Any] | None:
    """The timings in an entry of the cache; None where they are not one for each configuration."""

    def is_timing(value: Any) -> bool:
        numbers = value if isinstance(value, list) else [value]
        return bool(numbers) and all(type(number) in (int, float) for number in numbers)

    timings = facts.get("timings")
    fits = isinstance(timings, list) and len(timings) == count and all(map(is_timing, timings))
    return timings if fits else None


def _number(timing: Any) -> Any:
    """What timings are compared by: the numbers themselves, the first one leading."""
    return (timing,) if isinstance(timing, (int, float)) else tuple(timing)


def _refuse_conflicts(passed: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
    """LaunchError where a launch says what the configuration has said."""
    if passed.keys().isdisjoint(chosen):
        return
    conflicts = sorted(passed.keys() & chosen.keys())
    raise LaunchError(
        f"Conflicting meta-parameters: {', '.join(conflicts)}. Make sure that you don't re-define auto-tuned symbols.",
        conflicts[0],
        hint="leave them out of the launch: the configuration says them",
    )


def _part(value: Any) -> Any:
    """An argument in a key of the autotuner: numbers and texts as they are, for those who look at them; arrays by
    their sizes, whatever is in them.
    """
    if value.__class__ in (int, str) or value is None:
        return value
    return tuple(value.shape) if hasattr(value, "dtype") and hasattr(value, "shape") else key_of(value)


class _Decorator(Protocol):
    """What makes a kernel a tuned one."""

    def __call__(self, fn: Launchable[Fn] | Choosing[Fn], /) -> Autotuner[Fn]: ...


NO_KEY: Sequence[str] = []
"""What stands for a key that was not given; by its identity."""


def autotune(
    configs: list[Config] | None = None,
    key: Sequence[str] = NO_KEY,
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    tuned: str | None = None,
    **unknown: Never,
) -> _Decorator:
    """Measure `configs` whenever an argument named in `key` has a new value, and launch the fastest.

    A trial really runs the kernel: name arrays that it adds to in `reset_to_zero`, arrays that it changes in place in
    `restore_value`.  `prune_configs_by` may hold `early_config_prune(configs, args, **kwargs)`, and
    `perf_model(**args)` with `top_k`.  `cache_results` keeps the timings on disk. `tuned` names a file that
    `weft tune` wrote: if it has a configuration for a launch, that one is used and nothing is measured.

    >>> @weft.autotune([weft.Config({"BLOCK": 4}), weft.Config({"BLOCK": 8})], key=["n"])
    ... @weft.jit
    ... def fill(out, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(out + i, 1, mask=i < n)
    >>> [config.kwargs["BLOCK"] for config in fill.configs]
    [4, 8]
    """

    def decorate(fn: Any) -> Autotuner[Any]:
        return Autotuner(
            fn,
            tuning_checks.parameters_of(fn),
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
            tuned=tuned,
            **unknown,
        )

    return decorate
