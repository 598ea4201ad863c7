"""What a decorator finds wrong is told when the kernel is used: a module with such a kernel can be imported."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon
import weft.language as tl
from weft.base import CompilationError, DefinitionError, LaunchError, LaunchTypeError, SettingWarning, WeftError


def with_keywords(x, **meta):  # type: ignore[no-untyped-def]
    tl.store(x, 1)


def plain(x, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x, B)


class Base:
    pass


@tl.core._aggregate
class WithOther(Base):
    value: tl.constexpr


@tl.core._aggregate
class WithUnknown:
    value: Nowhere  # type: ignore[name-defined]  # noqa: F821


@tl.core._aggregate
class OfOther(WithOther):
    more: tl.constexpr


EARLY = "def prune(configs, args, **kwargs): return configs[:2]"
MODEL = "def model(BLOCK, n, **others): return n / BLOCK"
BENCH = "do_bench=lambda run, quantiles: weft.testing.do_bench(run, quantiles=quantiles)"
CONFIGS = [weft.Config({"B": b}) for b in (16, 32, 64)]
SUBJECTS: dict[str, Any] = {
    "keywords": with_keywords, "a lambda": lambda x: x, "a number": 5, "a builtin": math.sin, "a class": Base,
}  # fmt: skip
DECORATORS: dict[str, Callable[[Any], Any]] = {
    "jit": weft.jit,
    "jit with options": weft.jit(noinline=True, debug=True),
    "gluon.jit": weft.gluon.jit,
    "autotune": lambda f: weft.autotune(CONFIGS, key=["n"])(weft.jit(f)),
    "heuristics": lambda f: weft.heuristics({"B": lambda args: 16})(weft.jit(f)),
    "both": lambda f: weft.heuristics({"B": lambda args: 16})(weft.autotune(CONFIGS, key=[])(weft.jit(f))),
    "jit of heuristics": lambda f: weft.jit(weft.heuristics({"B": lambda args: 16})(f)),
    "autotune of no kernel": weft.autotune(CONFIGS, key=[]),
    "heuristics of no kernel": weft.heuristics({}),
}


@pytest.mark.parametrize("decorator", DECORATORS)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_kernels_are_refused_when_they_are_used(decorator: str, subject: str) -> None:
    kernel = DECORATORS[decorator](SUBJECTS[subject])
    x = np.zeros(4, np.float32)
    for use in (
        lambda: kernel[(1,)](x),
        lambda: kernel.run(x, grid=(1,), warmup=False),
        lambda: kernel.warmup(x, grid=(1,)),
        lambda: kernel[(1,)](x, target="sim:cuda:90"),
    ):
        with pytest.raises(DefinitionError):
            use()


def test_a_kernel_with_keywords_does_no_harm_to_others() -> None:
    wrong = weft.jit(with_keywords)

    @weft.jit
    def never(x, CALLED: tl.constexpr):  # type: ignore[no-untyped-def]
        if CALLED:
            wrong(x)
        tl.store(x, 2)

    x = np.zeros(1, np.int32)
    never[(1,)](x, False)
    assert x[0] == 2
    with pytest.raises(CompilationError, match=r"JIT functions do not support \*\*kwargs: with_keywords takes them"):
        never[(1,)](x, True)
    with pytest.raises(DefinitionError) as caught:
        wrong[(1,)](x)
    line = with_keywords.__code__.co_firstlineno
    assert re.fullmatch(
        rf"{re.escape(__file__)}:{line}:1: error: JIT functions do not support \*\*kwargs: with_keywords takes them\n"
        r"(.*\n)*hint: name the parameters, or take a tuple",
        str(caught.value),
    )


def test_constexpr_functions_and_lists_of_parameters() -> None:
    for subject in (5, math.sin):
        function = weft.constexpr_function(subject)  # type: ignore[arg-type]
        with pytest.raises(DefinitionError, match="constexpr_function needs a Python function, got "):
            function(1)
    for given in (5, [None], [2.0], [True]):
        kernel = weft.jit(do_not_specialize=given)(plain)  # type: ignore[arg-type]
        with pytest.raises(DefinitionError, match="do_not_specialize is a list of names or positions of parameters"):
            kernel[(1,)](np.zeros(1, np.int32), 1, B=1)
    assert weft.jit(do_not_specialize="n")(plain).params[1].do_not_specialize  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (WithOther, "Aggregates can only inherit from other aggregates: WithOther inherits from Base"),
        (OfOther, "Aggregates can only inherit from other aggregates: WithOther inherits from Base"),
        (WithUnknown, "name 'Nowhere' is not defined"),
        (tl.core._aggregate(5), "."),  # type: ignore[arg-type]
    ],
)
def test_aggregates(cls: Any, message: str) -> None:
    for _ in range(2):
        with pytest.raises((TypeError, NameError, AttributeError), match=message):
            cls(1)

    @weft.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        tl.store(x, cls(1).value)

    with pytest.raises(CompilationError, match=message):
        kernel[(1,)](np.zeros(1, np.int32))


def model(**args: Any) -> int:
    return int(args["B"])


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (
            {"key": ["nope"]},
            LaunchError,
            "key names 'nope', which is no parameter of plain\nhint: its parameters are x, n, B",
        ),
        (
            {"key": "nb"},
            LaunchError,
            "key names 'b', which is no parameter of plain\nhint: key is a list of names: key=['nb']",
        ),
        ({"key": 5}, LaunchError, "key names 5, which is no parameter of plain\nhint: its parameters are x, n, B"),
        (
            {"reset_to_zero": ["x", "xs"]},
            LaunchError,
            "reset_to_zero names 'xs', which is no parameter of plain\nhint: did you mean 'x'?",
        ),
        (
            {"restore_value": ["y"]},
            LaunchError,
            "restore_value names 'y', which is no parameter of plain\nhint: its parameters are x, n, B",
        ),
        (
            {"restore_value": ["n"]},
            LaunchTypeError,
            "restore_value names `n`, which is no array but of type int\nhint: name the arrays that a trial changes",
        ),
        (
            {"reset_to_zero": ["n"]},
            LaunchTypeError,
            "reset_to_zero names `n`, which is no array but of type int\nhint: name the arrays that a trial changes",
        ),
        (
            {"prune_configs_by": 5},
            LaunchTypeError,
            "prune_configs_by of autotune is a dictionary, got 5 of type int\n"
            'hint: {"perf_model": model, "top_k": 4} or {"early_config_prune": prune}',
        ),
        (
            {"configs": [weft.Config(5)]},  # type: ignore[arg-type]
            LaunchTypeError,
            'what a Config holds is a dictionary, got 5 of type int\nhint: weft.Config({"BLOCK": 128}, num_warps=4)',
        ),
        (
            {"configs": [{"B": 1}, {"B": 2}]},
            LaunchTypeError,
            "configs of autotune are Configs, got {'B': 1} of type dict\n"
            'hint: weft.Config({"BLOCK": 128}, num_warps=4)',
        ),
        (
            {"prune_configs_by": {"top_k": 0}},
            LaunchError,
            "Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int, more than 0: "
            "got 0\nhint: top_k=4 keeps the four best by perf_model, top_k=0.25 a quarter",
        ),
        (
            {"prune_configs_by": {"perf_model": 5}},
            LaunchTypeError,
            "perf_model in prune_configs_by is a function, got 5 of type int\n"
            'hint: {"perf_model": model, "top_k": 4} or {"early_config_prune": prune}',
        ),
        (
            {"prune_configs_by": {"early_config_prune": lambda *args, **more: 5}},
            LaunchTypeError,
            f"early_config_prune gives a list of Configs, got 5 of type int\nhint: {EARLY}",
        ),
        (
            {"prune_configs_by": {"early_config_prune": lambda *args, **more: [5]}},
            LaunchTypeError,
            f"early_config_prune gives a list of Configs, got [5] of type list\nhint: {EARLY}",
        ),
        (
            {"prune_configs_by": {"early_config_prune": lambda configs: configs}},
            LaunchTypeError,
            f"early_config_prune cannot be called: too many positional arguments\nhint: {EARLY}",
        ),
        (
            {"prune_configs_by": {"perf_model": lambda **args: None, "top_k": 1}},
            LaunchTypeError,
            f"perf_model gives a number, the less the better, got None of type NoneType\nhint: {MODEL}",
        ),
        (
            {"prune_configs_by": {"perf_model": lambda **args: float("nan"), "top_k": 1}},
            LaunchTypeError,
            f"perf_model gives a number, the less the better, got nan of type float\nhint: {MODEL}",
        ),
        (
            {"prune_configs_by": {"perf_model": lambda B: 1.0, "top_k": 1}},
            LaunchTypeError,
            f"perf_model cannot be called: got an unexpected keyword argument 'x'\nhint: {MODEL}",
        ),
        ({"do_bench": 3}, LaunchTypeError, f"do_bench of autotune is a function, got 3 of type int\nhint: {BENCH}"),
        (
            {"do_bench": lambda call: 1.0},
            LaunchTypeError,
            f"do_bench of autotune cannot be called: got an unexpected keyword argument 'quantiles'\nhint: {BENCH}",
        ),
        *(
            (
                {"do_bench": lambda call, quantiles, given=given: given},
                LaunchTypeError,
                f"do_bench gives milliseconds, or a list of them, got {given!r} of type {type(given).__name__}\n"
                f"hint: {BENCH}",
            )
            for given in (None, "1.0", [], [float("nan")])
        ),
        (
            {"pre_hook": 3},
            LaunchTypeError,
            "pre_hook of autotune is a function, got 3 of type int\nhint: def before(args, reset_only=False): ...",
        ),
        (
            {"pre_hook": lambda args: None},
            LaunchTypeError,
            "pre_hook of autotune cannot be called: got an unexpected keyword argument 'reset_only'\n"
            "hint: def before(args, reset_only=False): ...",
        ),
        (
            {"post_hook": lambda args: None},
            LaunchTypeError,
            "post_hook of autotune cannot be called: got an unexpected keyword argument 'exception'\n"
            "hint: def after(args, exception=None): ...",
        ),
        (
            {"configs": [weft.Config({1: 1}), weft.Config({1: 2})]},  # type: ignore[dict-item]
            LaunchTypeError,
            "what a Config holds are parameters by name, got 1 of type int\n"
            'hint: weft.Config({"BLOCK": 128}, num_warps=4)',
        ),
        *(
            (
                {"prune_configs_by": {"perf_model": model, "top_k": k}},
                LaunchError,
                "Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int, more than 0: "
                f"got {k}\nhint: top_k=4 keeps the four best by perf_model, top_k=0.25 a quarter",
            )
            for k in (0, -1, 0.0, -0.5, 1.5, float("nan"))
        ),
        *(
            (
                {"prune_configs_by": {"perf_model": model, "top_k": k}},
                LaunchTypeError,
                "Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int, "
                f"got {k!r} of type {type(k).__name__}\nhint: top_k=4 keeps the four best by perf_model, top_k=0.25 a "
                "quarter",
            )
            for k in (True, "1", None)
        ),
    ],
)
def test_tuning_that_means_nothing(given: dict[str, Any], kind: type[WeftError], message: str) -> None:
    facts = {"configs": CONFIGS, "key": ["n"], "do_bench": lambda call, quantiles: call() or 1.0, **given}
    kernel = weft.autotune(**facts)(weft.jit(plain))
    for _ in range(2):
        with pytest.raises(kind) as caught:
            kernel[(1,)](np.zeros(1, np.int32), 3)
        assert str(caught.value) == message


@pytest.mark.parametrize("given", [{"warmup": -1}, {"rep": "a"}, {"rep": float("nan")}])
def test_lengths_of_measurements_that_are_none(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    with pytest.warns(DeprecationWarning, match="give do_bench instead"):
        kernel = weft.autotune(configs=CONFIGS, key=["n"], **given)(weft.jit(plain))
    with pytest.raises(LaunchTypeError) as caught:
        kernel[(1,)](np.zeros(1, np.int32), 3)
    assert str(caught.value) == f"{name} of autotune is a number of milliseconds, got {value!r}\nhint: {name}=25"


def test_options_that_a_configuration_says_twice() -> None:
    """The option counts, as in Triton, where nothing says so; a launch that says an option too is refused."""
    configs = [weft.Config({"B": 1, "num_warps": 8}), weft.Config({"B": 2})]
    kernel = weft.autotune(configs=configs, key=["n"], do_bench=lambda call, quantiles: call() or 1.0)(weft.jit(plain))
    with pytest.warns(SettingWarning) as caught:
        kernel[(1,)](np.zeros(1, np.int32), 3)
    assert str(caught[0].message) == (
        "a Config holds 'num_warps': 8 in its dictionary, where it has no effect: num_warps=4 is what its kernel is "
        "compiled with; write Config({...}, num_warps=8)"
    )
    with pytest.raises(LaunchError, match=r"^Conflicting meta-parameters: num_warps\."):
        kernel[(1,)](np.zeros(1, np.int32), 3, num_warps=2)


def test_a_key_that_the_configurations_say() -> None:
    kernel = weft.autotune(configs=CONFIGS, key=["n", "B"], do_bench=lambda call, quantiles: call() or 1.0)(
        weft.jit(plain)
    )
    with pytest.warns(SettingWarning) as caught:
        kernel[(1,)](np.zeros(1, np.int32), 3)
    assert [str(w.message) for w in caught] == ["key names 'B', which the configurations say: it has no effect"]


def test_an_array_in_a_key_counts_by_its_sizes() -> None:
    trials = []
    configs = [weft.Config({"B": 1}), weft.Config({"B": 2})]
    kernel = weft.autotune(configs=configs, key=["x"], do_bench=lambda call, quantiles: trials.append(1) or 1.0)(
        weft.jit(plain)
    )
    for x in (np.zeros(4, np.int32), np.ones(4, np.int32), np.zeros(5, np.int32)):
        kernel[(1,)](x, 3)
    assert len(trials) == 4


@pytest.mark.parametrize(
    ("prune", "message"),
    [
        (
            {"perf_model": model, "topk": 1},
            "prune_configs_by names 'topk', which prunes nothing: did you mean 'top_k'?",
        ),
        (
            {"early_config_prune": None, "top_k": 1},
            "top_k=1 has no effect, since there is no perf_model to say which are best; all configurations are tried",
        ),
    ],
)
def test_pruning_that_prunes_nothing_is_told_and_runs(prune: dict[str, Any], message: str) -> None:
    """As in Triton, which says nothing: kernels of libraries run."""
    kernel = weft.autotune(CONFIGS, ["n"], prune, do_bench=lambda call, quantiles: 1.0)(weft.jit(plain))
    with pytest.warns(SettingWarning) as caught:
        kernel[(1,)](np.zeros(1, np.int32), 3)
    assert [str(w.message) for w in caught] == [message] and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel[(1,)](np.zeros(1, np.int32), 5)


def test_tuning_that_means_something() -> None:
    x = np.zeros(1, np.int32)
    for top_k in (1, np.int64(1), 0.1, 1.0, 3, 50):
        prune = {"perf_model": model, "top_k": top_k}
        kernel = weft.autotune(tuple(CONFIGS), ("n",), prune, do_bench=lambda call, quantiles: 1.0)(weft.jit(plain))
        kernel[(1,)](x, 3)
        assert kernel.best_config.kwargs == {"B": 16}
    prune = {"early_config_prune": lambda configs, named, **kwargs: configs[:1]}
    alone = {"perf_model": None, "early_config_prune": None, "top_k": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (
            alone,
            {},
            None,
            prune,
            {**prune, "perf_model": None, "top_k": 1.0},
            {**prune, "perf_model": model},
        ):
            tuned = weft.autotune(CONFIGS, ["n"], given, do_bench=lambda call, quantiles: 1.0)(weft.jit(plain))
            tuned[(1,)](x, 3)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (None, "what heuristics takes is a dictionary, got None of type NoneType"),
        ("abc", "what heuristics takes is a dictionary, got 'abc' of type str"),
        ({"B": 5}, "what heuristics takes is a dictionary of functions, got 5 of type int for 'B'"),
    ],
)
def test_heuristics_that_are_none(rules: Any, message: str) -> None:
    kernel = weft.heuristics(rules)(weft.jit(plain))
    with pytest.raises(LaunchTypeError) as caught:
        kernel[(1,)](np.zeros(1, np.int32), 3)
    assert str(caught.value) == f'{message}\nhint: {{"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}}'


async def asynchronous(x):  # type: ignore[no-untyped-def]
    tl.store(x, 1)


async def asynchronous_generator(x):  # type: ignore[no-untyped-def]
    yield x


TUNED = {"configs": CONFIGS, "key": ["n"]}
MISUSES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "jit": (lambda: weft.jit(noinlin=True)(plain), "jit has no argument 'noinlin'", "did you mean 'noinline'?"),
    "gluon": (lambda: weft.gluon.jit(debugg=True)(plain), "jit has no argument 'debugg'", "did you mean 'debug'?"),
    "repr": (lambda: weft.jit(repr=3)(plain), "repr of jit is a function, got 3 of type int", ""),  # type: ignore[call-overload]
    "async": (lambda: weft.jit(asynchronous), "function, and asynchronous is an `async def`", "write `def`"),
    "async generator": (lambda: weft.jit(asynchronous_generator), "asynchronous_generator is an `async def`", ""),
    "autotune": (
        lambda: weft.autotune(**TUNED, restore_values=["x"])(weft.jit(plain)),
        "autotune has no argument 'restore_values'", "did you mean 'restore_value'?",
    ),
    "no key": (lambda: weft.autotune(CONFIGS)(weft.jit(plain)), "autotune needs a key: ", 'key=["n"]; key=[]'),
    "Config": (
        lambda: weft.autotune([weft.Config({"B": 16}, reg_dec_producer=24)], key=[])(weft.jit(plain)),
        "Config has no argument 'reg_dec_producer'", "its arguments are kwargs, num_warps, ",
    ),
    "pre_hook": (
        lambda: weft.autotune([weft.Config({"B": 16}, pre_hook=3)], key=[])(weft.jit(plain)),  # type: ignore[arg-type]
        "pre_hook of a Config is a function, got 3 of type int", "pre_hook=lambda args: ...",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISUSES)
def test_arguments_of_decorators_are_refused_when_the_kernel_is_used(what: str) -> None:
    make, message, hint = MISUSES[what]
    kernel = make()
    for _ in range(2):
        with pytest.raises(WeftError) as caught:
            kernel[(1,)](np.zeros(4, np.float32), 1)
        assert message in str(caught.value) and hint in str(caught.value)
