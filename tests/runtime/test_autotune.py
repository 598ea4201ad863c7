"""Autotuning, heuristics, and what measures them."""

from __future__ import annotations

import os
import pickle
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.base import DefinitionError, LaunchError, LaunchTypeError
from weft.runtime.cache import default_store
from weft.runtime.errors import AutotunerError, OutOfResources, UnknownKeyword
from weft.runtime.testing import Benchmark, _quantile, assert_close, do_bench, perf_report


def add_one(x, n, BLOCK: tl.constexpr, EXTRA: tl.constexpr = 0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1 + EXTRA, mask=i < n)


CONFIGS = [weft.Config({"BLOCK": b}) for b in (16, 32, 64)]


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (weft.cdiv(meta["n"], meta["BLOCK"]),)


def tuned(configs: Any = None, key: Any = ("n",), **options: Any) -> Any:
    times = options.pop("times", None)
    if times is not None:
        options["do_bench"] = lambda call, quantiles: (call(), times.pop(0))[1]
    return weft.autotune(CONFIGS if configs is None else configs, key=list(key), **options)(weft.jit(add_one))


def test_the_fastest_is_kept_for_each_key() -> None:
    kernel = tuned(times=[3.0, 1.0, 2.0, 5.0, 4.0, 3.0], restore_value=["x"])
    x = np.zeros(100, np.float32)
    kernel[grid](x, 100)
    assert (x == 1).all()
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert kernel.configs_timings[CONFIGS[0]] == 3.0
    kernel[grid](x, 100)
    assert (x == 2).all()
    kernel[grid](x, 50)
    assert kernel.best_config.kwargs == {"BLOCK": 64}
    assert len(kernel.cache) == 2


def test_trials_are_undone() -> None:
    x = np.zeros(64, np.float32)
    tuned(times=[[1.0], [2.0], [3.0]], reset_to_zero=["x"])[grid](x, 64)
    assert (x == 1).all()
    torch = pytest.importorskip("torch")
    t = torch.full((64,), 5.0)
    tuned(times=[1.0, 2.0, 3.0], restore_value=["x"])[grid](t, 64)
    assert (t == 6).all()


def test_hooks() -> None:
    seen: list[Any] = []
    configs = [weft.Config({"BLOCK": 16}, pre_hook=lambda args: seen.append(("config", args["BLOCK"], args["n"])))]
    kernel = tuned(configs)
    kernel[grid](np.zeros(64, np.float32), 64)
    assert seen == [("config", 16, 64)]
    seen.clear()
    kernel = tuned(
        times=[1.0, 2.0, 3.0],
        pre_hook=lambda args, reset_only=False: seen.append(("pre", reset_only)),
        post_hook=lambda args, exception: seen.append(("post", exception)),
    )
    kernel[grid](np.zeros(64, np.float32), 64)
    assert seen == [("pre", False), ("post", None)] * 3 + [("pre", True)]


def test_pruning() -> None:
    def early(configs: list[weft.Config], named: dict[str, Any], **kwargs: Any) -> list[weft.Config]:
        assert named["n"] == 64
        return configs[1:]

    x = np.zeros(64, np.float32)
    kernel = tuned(times=[1.0, 2.0], prune_configs_by={"early_config_prune": early})
    kernel[grid](x, 64)
    assert kernel.best_config is CONFIGS[1]
    model = {"perf_model": lambda **args: -args["BLOCK"], "top_k": 1}
    kernel = tuned(times=[1.0], prune_configs_by=model)
    kernel[grid](x, 64)
    assert kernel.best_config is CONFIGS[2]
    kernel = tuned(times=[1.0, 1.0], prune_configs_by={**model, "top_k": 0.7})
    kernel[grid](x, 64)
    assert len(kernel.configs_timings) == 2
    with pytest.raises(LaunchTypeError, match="top_k must be"):
        tuned(prune_configs_by={**model, "top_k": "1"})[grid](x, 64)
    with pytest.raises(AutotunerError, match="No valid autotuner configs after pruning"):
        tuned(prune_configs_by={"early_config_prune": lambda *a, **k: []})[grid](x, 64)


def test_what_is_left_is_never_nothing_and_one_is_not_measured() -> None:
    def never(call: Any, quantiles: Any) -> float:
        raise AssertionError("there was nothing to compare")

    x = np.zeros(64, np.float32)
    few = tuned(do_bench=never, prune_configs_by={"perf_model": lambda **args: args["BLOCK"], "top_k": 0.1})
    few[grid](x, 64)
    assert few.best_config is CONFIGS[0] and (x == 1).all()
    one = tuned(do_bench=never, prune_configs_by={"early_config_prune": lambda configs, named, **kwargs: configs[2:]})
    one[grid](x, 64)
    assert one.best_config is CONFIGS[2] and (x == 2).all()


def test_a_fraction_is_of_what_early_pruning_left() -> None:
    model = {"perf_model": lambda **args: args["BLOCK"], "top_k": 0.5}
    early = {"early_config_prune": lambda configs, named, **kwargs: configs[:4]}
    configs = [weft.Config({"BLOCK": 16 << i}) for i in range(8)]
    kernel = tuned(configs, times=[2.0, 1.0, 0.5, 0.2], prune_configs_by={**model, **early})
    kernel[grid](np.zeros(64, np.float32), 64)
    assert list(kernel.configs_timings) == configs[:2]


def test_a_listener_hears_of_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, Any]] = []
    monkeypatch.setattr(knobs.autotuning, "listener", lambda **facts: heard.append(facts))
    x = np.zeros(64, np.float32)
    kernel = tuned(times=[3.0, 1.0, 2.0])
    kernel[grid](x, 64)
    kernel[grid](x, 64)  # nothing is chosen
    (facts,) = heard
    assert facts["fn"] is kernel.fn and facts["key"] in kernel.cache and facts["best_config"] is CONFIGS[1]
    assert facts["configs_timings"] == dict(zip(CONFIGS, [3.0, 1.0, 2.0], strict=True))
    assert facts["duration"] > 0 and facts["cache_hit"] is False
    tuned(prune_configs_by={"early_config_prune": lambda configs, named, **kwargs: configs[2:]})[grid](x, 64)
    assert len(heard) == 1  # one was left: nothing to choose


def test_threads_tune_once_for_each_key() -> None:
    measured: list[int] = []

    def bench(call: Any, quantiles: Any) -> float:
        call()
        time.sleep(0.01)
        measured.append(1)
        return 1.0

    kernel = tuned(do_bench=bench, reset_to_zero=["x"])
    together = threading.Barrier(4)

    def launch(n: int) -> np.ndarray[Any, Any]:
        x = np.zeros(64, np.float32)
        together.wait()
        for _ in range(20):
            kernel[grid](x, n)
        return x

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(launch, [64, 64, 48, 48]))
    assert len(measured) == 6 and set(kernel.cache) == {(64, "float32"), (48, "float32")}
    assert all(x[:48].tolist() == [20] * 48 for x in results)


@weft.jit
def count_warps(x, n, num_warps: tl.constexpr):
    tl.store(x, num_warps)


def test_options_that_a_kernel_computes_with_make_other_code() -> None:
    configs = [weft.Config({}, num_warps=w) for w in (1, 2)]
    kernel = weft.autotune(configs, key=["n"])(count_warps)
    kernel[(1,)](np.zeros(1, np.float32), 5)
    first, second = kernel.configs_timings.values()
    assert first is not second


def test_configurations_that_cannot_run_are_passed_over() -> None:
    x = np.zeros(64, np.float32)

    def bench(call: Any, quantiles: Any) -> float:
        call()
        if len(failures) < 2:
            failures.append(1)
            raise OutOfResources(2, 1, "scratch")
        return 1.0

    failures: list[int] = []
    kernel = tuned(do_bench=bench)
    kernel[grid](x, 64)
    assert kernel.best_config is CONFIGS[2]


def test_conflicts_and_wrong_names() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned()[grid](x, 64, BLOCK=16)
    known = tuned(do_bench=lambda run, quantiles: 1.0)
    known[grid](x, 64)  # from now on nothing is measured for this key
    with pytest.raises(LaunchError, match="Conflicting meta-parameters: BLOCK"):
        known[grid](x, 64, BLOCK=16)
    for kernel in (tuned(), known):
        with pytest.raises(LaunchError, match="Conflicting meta-parameters: BLOCK"):
            kernel[grid](x, 64, 16)
    with pytest.raises(LaunchError, match="reset_to_zero names 'y'"):
        tuned(reset_to_zero=["y"])[grid](x, 64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuned(warmup=1, rep=1)
    assert caught[0].category is DeprecationWarning


@pytest.mark.parametrize("decorator", [weft.autotune(CONFIGS, key=[]), weft.heuristics({"EXTRA": lambda args: 1})])
def test_decorators_in_the_wrong_order(decorator: Any) -> None:
    name = "autotune" if isinstance(decorator(weft.jit(add_one)), weft.runtime.Autotuner) else "heuristics"
    for wrong in (weft.jit(decorator(add_one)), decorator(add_one)):
        with pytest.raises(DefinitionError) as caught:
            wrong[(1,)](np.zeros(64, np.float32), 64)
    assert str(caught.value) == (
        f"error: {name} needs a kernel, got the function add_one\n"
        f"hint: decorators apply from the bottom up: put @{name} above @jit"
    )
    with pytest.raises(DefinitionError, match=f"{name} needs a kernel, got 3 of type int"):
        decorator(3)[(1,)]()


def test_a_configuration_of_a_parameter_that_does_not_exist() -> None:
    with pytest.raises(UnknownKeyword) as caught:
        tuned([weft.Config({"BLOCK": 16, "QUICK": q}) for q in (1, 2)])[grid](np.zeros(64, np.float32), 64)
    assert str(caught.value) == (
        "Keyword argument QUICK was specified but unrecognised\nhint: its parameters are x, n, BLOCK, EXTRA"
    )


def test_measuring_for_real() -> None:
    x = np.zeros(1000, np.float32)
    configs = [weft.Config({"BLOCK": b}, num_warps=w) for b in (16, 64) for w in (1, 2, 4)]
    kernel = tuned(configs, restore_value=["x"])
    kernel[grid](x, 1000)
    assert (x == 1).all() and kernel.bench_time < 20
    assert len(kernel.configs_timings) == 6
    assert len(set(map(str, kernel.configs_timings.values()))) == 2  # num_warps makes no difference on a CPU


def test_no_configurations() -> None:
    kernel = weft.autotune([], key=[])(weft.jit(add_one))
    x = np.zeros(64, np.float32)
    kernel[(2,)](x, 64, BLOCK=32)
    assert (x == 1).all() and kernel.best_config.num_warps == 4


def test_warmup() -> None:
    kernels = tuned().warmup(np.dtype(np.float32), 64, grid=(1,))
    assert len(kernels) == 3 and all("tt.store" in k.asm["ttir"] for k in kernels)


def test_results_on_disk(fresh_cache: Path) -> None:
    x = np.zeros(64, np.float32)
    tuned(times=[3.0, 1.0, 2.0], cache_results=True)[grid](x, 64)
    again = tuned(times=[], cache_results=True)
    again[grid](x, 64)
    assert again.best_config == CONFIGS[1]


@pytest.mark.parametrize(
    "timings", [None, 5, [], [1.0], [1.0, 2.0, "3"], [1.0, 2.0, []], [1.0, 2.0, [None]], [1, 2, {}]]
)
def test_results_on_disk_that_are_none(fresh_cache: Path, timings: Any) -> None:
    """They are measured again, and replaced."""
    x = np.zeros(64, np.float32)
    tuned(times=[3.0, 1.0, 2.0], cache_results=True)[grid](x, 64)
    store = default_store()
    assert store is not None
    (entry,) = [e for e in store.entries() if e.name.endswith(".autotune")]
    store.put(os.path.basename(entry.path).removesuffix(".weft"), {"name": entry.name, "timings": timings}, {})
    again = tuned(times=[3.0, 2.0, 1.0], cache_results=True)
    again[grid](x, 64)
    assert again.best_config == CONFIGS[2]
    last = tuned(times=[], cache_results=True)
    last[grid](x, 64)
    assert last.best_config == CONFIGS[2]


@pytest.mark.parametrize("what", ["reset_to_zero", "restore_value"])
def test_what_is_set_back_is_no_read_only_array(what: str) -> None:
    x = np.zeros(64, np.float32)
    x.flags.writeable = False
    with pytest.raises(LaunchError) as caught:
        tuned(times=[1.0, 2.0, 3.0], **{what: ["x"]})[grid](x, 64)
    assert str(caught.value) == f"{what} names `x`, which is read-only\nhint: pass a writeable copy, x.copy()"


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    knobs.autotuning.print = True
    tuned(times=[3.0, 1.0, 2.0])[grid](np.zeros(64, np.float32), 64)
    text = capsys.readouterr().out
    assert "Autotuning kernel add_one with config BLOCK: 16" in text
    assert "best config selected: BLOCK: 32, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None" in text


def test_config() -> None:
    a, b = weft.Config({"B": 1}, num_warps=8), weft.Config({"B": 1}, num_warps=8)
    assert a == b and hash(a) == hash(b) and a != weft.Config({"B": 1})
    assert a.all_kwargs() == {"B": 1, "num_warps": 8, "num_ctas": 1, "num_stages": 3}
    assert pickle.loads(pickle.dumps(a)) == a


def test_heuristics_under_and_over_autotune() -> None:
    even = weft.heuristics({"EXTRA": lambda args: 10 if args["n"] % args["BLOCK"] == 0 else 20})
    x = np.zeros(64, np.float32)
    weft.autotune([weft.Config({"BLOCK": 64})], key=[])(even(weft.jit(add_one)))[grid](x, 64)
    assert (x == 11).all()
    even(weft.jit(add_one))[grid](x, 63, BLOCK=16)
    assert (x[:63] == 32).all() and x[63] == 11


# -- targets -----------------------------------------------------------------------------------------------------------


def test_each_target_is_tuned_and_launched_for_itself() -> None:
    """Launches through `run`, as the autotuner's and those of heuristics are, went to the CPU once one had."""
    times = [3.0, 1.0, 2.0, 2.0, 3.0, 1.0]
    kernel = tuned(times=times)
    x = np.zeros(64, np.float32)
    kernel[grid](x, 64)
    assert kernel.best_config == CONFIGS[1]
    with weft.target("sim:cuda:80"):
        report = kernel[grid](x, 64)
    assert kernel.best_config == CONFIGS[2] and report["global_store_bytes"] == 256
    assert kernel[grid](x, 64, target="sim:cuda:80")["global_store_bytes"] == 256
    kernel[grid](x, 64)
    assert kernel.best_config == CONFIGS[1] and not times
    assert set(kernel.cache) == {(64, "float32"), (64, "float32", "sim:cuda:80")}


def test_heuristics_launch_for_the_target() -> None:
    kernel = weft.heuristics({"EXTRA": lambda args: 1})(weft.jit(add_one))
    x = np.zeros(64, np.float32)
    kernel[(1,)](x, 64, BLOCK=64)
    with weft.target("sim:cuda:80"):
        assert kernel[(1,)](x, 64, BLOCK=64)["global_store_bytes"] == 256
    assert (x == 4).all()


def test_results_on_disk_are_those_of_a_target(fresh_cache: Path) -> None:
    x = np.zeros(64, np.float32)
    tuned(times=[3.0, 1.0, 2.0], cache_results=True)[grid](x, 64)
    with weft.target("sim:cuda:80"):
        for times in ([2.0, 3.0, 1.0], []):
            simulated = tuned(times=times, cache_results=True)
            simulated[grid](x, 64)
            assert simulated.best_config == CONFIGS[2]


# -- measuring ---------------------------------------------------------------------------------------------------------


def test_do_bench() -> None:
    calls: list[int] = []
    ms = do_bench(lambda: calls.append(1), warmup=1, rep=1)
    assert 0 <= ms < 100 and calls
    assert len(do_bench(lambda: None, warmup=1, rep=1, quantiles=[0.5, 0.2, 0.8])) == 3
    assert isinstance(do_bench(lambda: None, warmup=1, rep=1, quantiles=[0.5]), float)
    assert len(do_bench(lambda: None, warmup=1, rep=1, return_mode="all")) >= 3
    with pytest.raises(ValueError, match="return_mode is one of"):
        do_bench(lambda: None, return_mode="best")


def test_quantiles_are_numpys() -> None:
    values = np.random.default_rng(0).random(37)
    q = [0.0, 0.1, 0.5, 0.99, 1.0]
    np.testing.assert_allclose(_quantile(list(values), q), np.quantile(values, q))
    with pytest.raises(ValueError, match="between 0 and 1"):
        _quantile([1.0], [1.5])


def test_assert_close() -> None:
    assert_close(np.ones(3), np.ones(3) + 1e-3)
    assert_close(1.0, 1.001)
    with pytest.raises(AssertionError, match="here"):
        assert_close(np.ones(3), np.ones(3) + 0.1, err_msg="here")
    with pytest.raises(AssertionError):
        assert_close(1.0, 1.1)
    torch = pytest.importorskip("torch")
    assert_close(torch.ones(3, dtype=torch.bfloat16), np.ones(3, np.float32))


def test_perf_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = Benchmark(["n"], [1, 2, 4], "who", ["a", "b"], ["A", "B"], "speed", {"c": 3}, ylabel="GB/s")

    @perf_report(benchmark)
    def measure(n: int, who: str, c: int) -> Any:
        return (n * c, n * c - 1, n * c + 1) if who == "a" else float(n)

    measure.run(print_data=True, save_path=str(tmp_path / "out"))
    text = capsys.readouterr().out.splitlines()
    assert text[0] == "speed:" and text[1].split() == ["n", "A", "(GB/s)", "B", "(GB/s)"]
    assert text[4].split() == ["2", "4", "12", "4.000000"]
    assert (tmp_path / "out" / "speed.csv").read_text().splitlines()[:2] == ["n,A (GB/s),B (GB/s)", "1,3,1.000000"]
    assert len(measure.run(return_df=True)) == 3
