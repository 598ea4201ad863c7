"""Choosing a kernel's parameters by measuring: `autotune`. By a rule, with `heuristics`, see rules.py.

    @autotune([Config({"BLOCK": 256}), Config({"BLOCK": 1024})], key=["n"])
    @heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @jit
    def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr): ...

The first launch with new values of the key arguments measures every configuration (trials.py) and keeps the fastest,
in memory or on disk. Nothing is measured where a file of winners (winners.py) has a configuration for the launch.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Never, Protocol

from weft import compiler
from weft.base import LaunchTypeError, OutOfResources as OutOfResources, load, shortened  # programs get that here
from weft.base.locks import renewed
from weft.language.keys import key_of, key_text

from . import compiling, knobs, tuning_checks, winners
from .cache import default_store
from .config import Config
from .errors import AutotunerError
from .files import compiler_key
from .interface import KernelInterface, PickledByName
from .launches import Choosing, F, Fn, Kernel, Launchable
from .misuse import check_unknown
from .rules import Heuristics, heuristics
from .testing import do_bench, do_bench_cudagraph
from .trials import HOOKS, Place, Trials, refuse_conflicts

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]


class Autotuner(Trials, Choosing[F], PickledByName, KernelInterface[Any]):
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
        super().__init__(fn, arg_names, reset_to_zero, restore_value, pre_hook, post_hook, do_bench)
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self._unknown = unknown
        self.tuned = tuned
        """A file of winners of `weft tune`, which is looked in before anything is measured; see winners.py."""
        self.configs = tuning_checks.as_names(configs) or [Config({}, num_warps=4, num_stages=3, num_ctas=1)]
        self.keys = tuning_checks.as_names(key)
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.cache_results = cache_results or knobs.autotuning.cache
        self._arguments = {"key": key, "reset_to_zero": reset_to_zero, "restore_value": restore_value}
        self._checked = False
        self._pruned_by = prune_configs_by
        prune = dict(prune_configs_by) if isinstance(prune_configs_by, Mapping) else {}
        self.perf_model = prune.get("perf_model")
        if self.perf_model == tuning_checks.PREDICTION:
            self.perf_model = self._predicted
        self.configs_top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self._lock = renewed(threading.RLock())
        self.best_config: Config | None = None
        self.bench_time = 0.0
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
            tuning_checks.check_function(f"{hook} of autotune", function, HOOKS[hook])
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
        refuse_conflicts(kwargs, chosen)
        refuse_conflicts(nargs, chosen)
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

    def check_disk_cache(self, tuning_key: Any, configs: Sequence[Config], bench_fn: Callable[[], Any]) -> bool:
        """Take the timings from the cache on disk, or measure and put them there; whether they were found."""
        store = default_store()
        if not tuning_key or store is None or any(c.pre_hook for c in configs):
            bench_fn()
            return False
        fn = self._innermost()
        place = tuning_key[-1]
        on_cpu = not isinstance(place, Place)
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
