"""Functions and other constants that share a name: each has its own kernel, however it is handed over."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.base import CapturedGlobalError, SpecializationError

TARGETS = ["cpu", "sim:cuda:90"]


class Holder(NamedTuple):
    f: Any


@weft.jit
def apply(out, x, F: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, F(tl.load(x)))


@weft.jit
def apply_argument(out, x, F):  # type: ignore[no-untyped-def]
    tl.store(out, F(tl.load(x)))


@weft.jit
def apply_first(out, x, F: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, F[0](tl.load(x)))


@weft.jit
def apply_first_argument(out, x, F):  # type: ignore[no-untyped-def]
    tl.store(out, F[0](tl.load(x)))


@weft.jit
def apply_field(out, x, F: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, F.f(tl.load(x)))


@weft.jit
def on_the_host(out, x, F: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, F(10))


@weft.jit
def reduce_with(out, x, F: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 4) * 0), 0, F))


@weft.jit
def of_attribute(out, x, F: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, 10 * F.factor)


def scale(n: int) -> Any:
    factor = tl.constexpr(n)

    @weft.jit
    def act(x):  # type: ignore[no-untyped-def]
        return x * factor

    return act


def combine(n: int) -> Any:
    factor = tl.constexpr(n)

    @weft.jit
    def act(a, b):  # type: ignore[no-untyped-def]
        return a * 0 + 10 * factor

    return act


def of_module(n: int) -> Any:
    """A function of a module that is loaded anew under one name."""
    text, file = f"import weft\n@weft.jit\ndef act(x):\n    return x * {n}\n", f"<module {n}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = ModuleType("loaded_under_one_name")
    exec(compile(text, file, "exec"), module.__dict__)
    return module.act


class Factor:
    def __init__(self, n: int) -> None:
        self.factor = n

    def __repr__(self) -> str:
        return "Factor"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def with_source(n: int, made: Any = scale(2)) -> Any:
    """One function whose source is replaced."""
    made._unsafe_update_src(f"def act(x):\n    return x * {n}\n")
    return made


def with_captured(n: int, made: Any = scale(2)) -> Any:
    """One function that captures another value."""
    made.fn.__closure__[0].cell_contents = tl.constexpr(n)
    return made


def changed_in_place(n: int, made: Any = Factor(2)) -> Any:
    """One object with another attribute."""
    made.factor = n
    return made


def of_class(n: int) -> Any:
    return type("Factors", (), {"factor": n})


CASES: dict[str, tuple[Any, Any]] = {
    "factory": (apply, scale),
    "module": (apply, of_module),
    "replaced source": (apply, with_source),
    "captured": (apply, with_captured),
    "as an argument": (apply_argument, scale),
    "replaced source of an argument": (apply_argument, with_source),
    "tuple": (apply_first, lambda n: (scale(n),)),
    "list": (apply_first, lambda n: [scale(n)]),
    "tuple as an argument": (apply_first_argument, lambda n: (scale(n),)),
    "named tuple": (apply_field, lambda n: Holder(scale(n))),
    "combine function": (reduce_with, combine),
    "constexpr function": (on_the_host, lambda n: weft.constexpr_function(lambda x: x * n)),
    "lambda": (on_the_host, lambda n: lambda x: x * n),
    "object with a careless equality": (of_attribute, Factor),
    "object changed in place": (of_attribute, changed_in_place),
    "class": (of_attribute, of_class),
}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, fresh_cache: Path) -> Iterator[str]:
    with weft.target(request.param):
        yield request.param


@pytest.mark.parametrize("case", CASES)
def test_each_has_its_own_kernel(case: str, target: str) -> None:
    kernel, made = CASES[case]
    out, x = np.zeros(1, np.float32), np.full(1, 10, np.float32)
    got = []
    for n in (2, 3, 2):
        kernel[(1,)](out, x, made(n))
        got.append(float(out[0]))
    assert got == [20, 30, 20]


def test_bind_and_autotune(target: str) -> None:
    out, x = np.zeros(1, np.float32), np.full(1, 10, np.float32)
    got = []
    tuned = weft.autotune([weft.Config({}, num_warps=w) for w in (1, 2)], key=["F"], do_bench=_bench)(apply)
    chosen = weft.autotune([weft.Config({"F": scale(n)}) for n in (4, 5)], key=[], do_bench=_bench)(apply)
    for f in (scale(2), scale(3)):
        apply.bind(out, x, f, grid=(1,))()
        got.append(float(out[0]))
        tuned[(1,)](out, x, f)
        got.append(float(out[0]))
    chosen[(1,)](out, x)
    assert [*got, float(out[0])] == [20, 20, 30, 30, 40]
    assert len(chosen.configs_timings) == len(set(chosen.configs)) == 2


def _bench(call: Any, quantiles: Any) -> float:
    call()
    return 1.0


def test_warmup_and_compile(fresh_cache: Path) -> None:
    out, x = np.zeros(1, np.float32), np.full(1, 10, np.float32)
    warm = [apply.warmup(out, x, scale(n), grid=(1,)) for n in (2, 3, 2)]
    assert warm[0].hash == warm[2].hash != warm[1].hash and warm[0].asm["ttir"] != warm[1].asm["ttir"]
    signature = {"out": "*fp32", "x": "*fp32", "F": "constexpr"}
    for target in ("cpu", "cuda:90"):
        made = [weft.compile(weft.ASTSource(apply, signature, {"F": scale(n)}), target=target) for n in (2, 3, 2)]
        assert made[0].hash == made[2].hash != made[1].hash and made[0].asm["ttir"] != made[1].asm["ttir"]
        assert made[2].from_cache and not made[1].from_cache


def test_a_captured_function_whose_source_is_replaced(target: str) -> None:
    captured = scale(2)

    @weft.jit
    def kernel(out, x):  # type: ignore[no-untyped-def]
        tl.store(out, captured(tl.load(x)))

    out, x = np.zeros(1, np.float32), np.full(1, 10, np.float32)
    kernel[(1,)](out, x)
    captured._unsafe_update_src("def act(x):\n    return x * 3\n")
    before = float(out[0])
    kernel[(1,)](out, x)
    assert (before, float(out[0])) == (20, 30)


def test_ir_of_the_same_text_with_other_names(fresh_cache: Path) -> None:
    text = apply.warmup(np.zeros(1, np.float32), np.zeros(1, np.float32), scale(2), grid=(1,)).asm["ttir"]
    one, other, again = (weft.compiler.IRSource(text, name) for name in ("one", "other", "one"))
    assert one.hash() == again.hash() != other.hash()


def _told(kernel: Any, *args: Any) -> str:
    told: list[str] = []
    knobs.runtime.jit_cache_hook = lambda *a, **kw: told.append(kw["compile"]["specialization_data"])
    try:
        kernel[(1,)](*args)
    finally:
        knobs.runtime.jit_cache_hook = None
    return told[0]


@pytest.mark.parametrize(
    "wrapped", [lambda f: (apply, f), lambda f: (apply_first, (f,)), lambda f: (apply_field, Holder(f))]
)
def test_preloading(fresh_cache: Path, wrapped: Any) -> None:
    """Of functions of one name that which was meant is compiled, and its launch finds it."""
    out, x = np.zeros(1, np.float32), np.full(1, 10, np.float32)
    functions = [scale(6), scale(7)]
    for function, result in zip(functions, (60, 70), strict=True):
        kernel, constant = wrapped(function)
        told = _told(kernel, out, x, constant)
        kernel.reset()
        loaded = kernel.preload(told)
        kernel[(1,)](out, x, constant)
        assert float(out[0]) == result and list(kernel.cache.values()) == [loaded]


def test_preloading_what_is_not_here(fresh_cache: Path) -> None:
    out, x = np.zeros(1, np.float32), np.full(1, 10, np.float32)
    function = scale(8)
    told = _told(apply, out, x, function)
    function._unsafe_update_src("def act(x):\n    return x * 9\n")
    with pytest.raises(SpecializationError) as caught:
        apply.preload(told)
    assert str(caught.value) == (
        f"Specialization data has the function scale.<locals>.act of module {__name__} as a constant, and that has "
        "changed since\nhint: import its module before preload, or launch the kernel: it is then compiled anew"
    )
    facts = json.loads(told)
    with pytest.raises(SpecializationError, match="Specialization data is for {'backend': 'other', 'arch': "):
        apply.preload(json.dumps({**facts, "target": {**facts["target"], "backend": "other"}}))
    facts["constant_vals"] = [{"other": "module.Thing"}]
    with pytest.raises(SpecializationError, match="constant of type module.Thing, which cannot be preloaded"):
        apply.preload(json.dumps(facts))
    facts["constant_vals"] = [{"class": ["no_module", "Thing"]}]
    with pytest.raises(SpecializationError, match="the class Thing of module no_module, and that is not here"):
        apply.preload(json.dumps(facts))


class Conf:
    class Inner:
        width = 2

    def __init__(self) -> None:
        self.depth = 3


CONF = Conf()
MEMO: dict[int, int] = {}
DIRECT = 5


def plain() -> int:
    return Conf.Inner.width + CONF.depth


def remembered(n: int) -> int:
    return MEMO.setdefault(n, n + 1)


@weft.constexpr_function
def looked_up():  # type: ignore[no-untyped-def]
    return 10 * Conf.Inner.width + plain() + remembered(1) * 0


@weft.constexpr_function
def looked_up_directly():  # type: ignore[no-untyped-def]
    return DIRECT


def test_what_functions_of_python_read_may_change(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is made anew; a function that remembers what it did is no reason to, each time."""

    @weft.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        tl.store(out, looked_up())

    out = np.zeros(1, np.float32)

    def launched() -> float:
        kernel[(1,)](out)
        return float(out[0])

    got = [launched()]
    monkeypatch.setattr(Conf.Inner, "width", 4)
    got.append(launched())
    monkeypatch.setattr(CONF, "depth", 7)
    got.append(launched())
    monkeypatch.setitem(globals(), "plain", lambda: 0)
    got.append(launched())
    assert got == [25, 47, 51, 40]
    compiled = [id(k) for k in kernel.cache.values()]
    assert launched() == 40 and launched() == 40
    assert len(compiled) == 1 and [id(k) for k in kernel.cache.values()] == compiled


def test_a_constant_of_a_constexpr_function_that_changes_is_refused(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @weft.jit
    def kernel(out):  # type: ignore[no-untyped-def]
        tl.store(out, looked_up_directly())

    out = np.zeros(1, np.float32)
    kernel[(1,)](out)
    monkeypatch.setitem(globals(), "DIRECT", 6)
    with pytest.raises(CapturedGlobalError, match="Global variable DIRECT has changed since we compiled this kernel"):
        kernel[(1,)](out)
    kernel.reset()
    kernel[(1,)](out)
    assert out[0] == 6
