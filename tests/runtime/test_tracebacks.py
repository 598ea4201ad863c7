"""Tracebacks of errors go from the user's call to the user's line: Weft's own frames are left out, unless asked for."""

from __future__ import annotations

import importlib
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.layouts import BlockedLayout, LinearLayout
from weft.testing import evaluate

LAYOUT = BlockedLayout([1], [32], [4], [0])


@weft.jit
def misspelt(x):
    tl.store(x, tl.sqroot(1.0))


@weft.jit
def store(x, n, BLOCK: tl.constexpr = 4):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, i < n)


@weft.autotune([weft.Config({"BLOCK": 4})], key=["n"])
@weft.jit
def tuned(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


def _array() -> Any:
    return np.zeros(4, np.float32)


def _grid(arguments: dict[str, Any]) -> tuple[int, ...]:
    raise weft.WeftError("no grid")


def _after_others() -> None:
    for _ in range(5):  # the launcher is another one once a launch of the kind has been seen
        store[(1,)](_array(), 4)
    store[(1,)]([1.0], 4)


CASES: dict[str, Callable[[], Any]] = {
    "compile": lambda: misspelt[(1,)](_array()),
    "an argument": lambda: store[(1,)]([1.0], 4),
    "an argument, later": _after_others,
    "the grid": lambda: store[(1, 2, 3, 4)](_array(), 4),
    "an option": lambda: store[(1,)](_array(), 4, num_wraps=4),
    "the CPU's checks": lambda: store[(1,)](_array(), 8, BLOCK=8, debug=True),
    "simulated": lambda: store[(1,)](_array(), 8, BLOCK=8, target="sim:cuda:80"),
    "the target": lambda: store[(1,)](_array(), 4, target="cuda:17"),
    "warmup": lambda: misspelt.warmup(_array(), grid=(1,)),
    "run": lambda: misspelt.run(_array(), grid=(1,), warmup=False),
    "explain": lambda: misspelt.explain(weft.like((4,), "fp32"), grid=(1,), target="cuda:90"),
    "tuned": lambda: tuned[(1,)]([1.0], 4),
    "weft.compile": lambda: weft.compile(weft.ASTSource(misspelt, {"x": "*fp32"})),
    "a layout": lambda: BlockedLayout([3], [32], [4], [0]),
    "a layout's method": lambda: LinearLayout.identity_1d(4, "lane", "dim0").apply(line=3),
    "a function of layouts": lambda: weft.layouts.bank_conflicts(LAYOUT, LAYOUT, (8,), "fp16"),
    "a picture": lambda: weft.view.to_svg(3),
    "a descriptor": lambda: weft.TensorDescriptor.from_tensor(_array(), [3]),
    "a shape": lambda: weft.like(("n", 4), "fp32"),
    "a source": lambda: weft.ASTSource(store, {"y": "*fp32"}),
    "compile_many": lambda: weft.compile_many([3]),
    "a line": lambda: evaluate("tl.sqroot(x)", x=[1.0]),
    "a block's target": lambda: weft.target("cuda:17"),
    "not in a kernel": lambda: tl.program_id(0),
    "not launched": lambda: store(_array(), 4),
    "a compiled kernel": lambda: store.warmup(_array(), 4, grid=(1,))[(1, 2, 3, 4)](_array(), 4),
}


def test_classes_are_named_by_the_module_where_users_find_them() -> None:
    with pytest.raises(weft.CompilationError) as caught:
        misspelt[(1,)](_array())
    assert traceback.format_exception_only(caught.value)[0].startswith("weft.CompilationError: ")
    for module in ("weft", "weft.sim"):
        face = importlib.import_module(module)
        errors = {name for name in face.__all__ if name.endswith(("Error", "Warning"))}
        assert errors and {getattr(face, name).__module__ for name in errors} == {module}
        assert all(pickle.loads(pickle.dumps(getattr(face, name))) is getattr(face, name) for name in errors)


def _files(error: BaseException) -> set[str]:
    return {frame.filename for frame in traceback.extract_tb(error.__traceback__)}


@pytest.mark.parametrize("case", CASES)
def test_no_frame_is_wefts(case: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        CASES[case]()
    assert _files(caught.value) == {__file__}
    with knobs.weft.scope(), pytest.raises(weft.WeftError) as caught:
        knobs.weft.full_traceback = True
        CASES[case]()
    assert _files(caught.value) > {__file__}


def _fails(*arguments: Any, **more: Any) -> Any:
    return {}["misspelt"]


def _choosing(prune: dict[str, Any] | None = None, **hooks: Any) -> Any:
    configs = [weft.Config({"BLOCK": 4}), weft.Config({"BLOCK": 8})]
    return weft.autotune(configs, key=["n"], prune_configs_by=prune, **hooks)(store)[(1,)](_array(), 4)


def _launch_with_a_hook() -> None:
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook = _fails
        store[(1,)](_array(), 4)


def _nothing_simulated() -> None:
    weft.sim.launch._last = None  # type: ignore[attr-defined]
    weft.sim.last_run()


def _limited() -> None:
    explained = store.explain(weft.like((4,), "fp32"), 4, grid=(1,), target="cuda:90")
    weft.testing.expect(explained, access_bytes=128)


PYTHONS: dict[str, Callable[[], Any]] = {
    "a grid": lambda: store[_fails](_array(), 4),
    "a grid, simulated": lambda: store[_fails](_array(), 4, target="sim:cuda:80"),
    "a heuristic": lambda: weft.heuristics({"BLOCK": _fails})(store)[(1,)](_array(), 4),
    "pre_hook": lambda: _choosing(pre_hook=_fails),
    "post_hook": lambda: _choosing(post_hook=_fails),
    "early_config_prune": lambda: _choosing({"early_config_prune": _fails}),
    "perf_model": lambda: _choosing({"perf_model": _fails, "top_k": 1}),
    "a hook of launches": _launch_with_a_hook,
    "do_bench": lambda: weft.testing.do_bench(_fails),
    "assert_close": lambda: weft.testing.assert_close(np.zeros(4), np.ones(4)),
    "assert_close of one": lambda: weft.testing.assert_close(0.0, 1.0),
    "last_run": _nothing_simulated,
    "a stage": lambda: store.warmup(_array(), 4, grid=(1,)).asm["misspelt"],
    "a line": lambda: evaluate("1 +"),
    "expect": _limited,
    "a setting": lambda: setattr(knobs.weft, "misspelt", 3),
    "a module's name": lambda: tl.misspelt,  # type: ignore[attr-defined]
}
"""Errors of Python's that users cause, and that they may catch as such."""


@pytest.mark.parametrize("case", PYTHONS)
def test_no_frame_of_pythons_errors_is_wefts(case: str) -> None:
    with pytest.raises((LookupError, AssertionError, SyntaxError, AttributeError)) as caught:
        PYTHONS[case]()
    assert _files(caught.value) == {__file__}
    if any(name in case for name in ("hook", "prune", "model", "grid", "heuristic", "bench")):
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "_fails"


def test_functions_of_the_user_stay() -> None:
    for _ in range(8):  # the first launches, and those in native code
        with pytest.raises(weft.WeftError, match="no grid") as caught:
            store[_grid](_array(), 4)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [frame.name for frame in frames] == ["test_functions_of_the_user_stay", "_grid"]
        for grid in (lambda: (1,), lambda arguments: (1.5,)):
            with pytest.raises(weft.LaunchError) as caught:
                store[grid](_array(), 4)
            assert _files(caught.value) == {__file__}
        for _ in range(2):
            store[lambda arguments: (1,)](_array(), 4)


def _check_text(text: str) -> None:
    assert "did you mean `sqrt`" in text
    assert str(Path(weft.__file__).parent) not in text


def test_what_python_and_pytest_print() -> None:
    with pytest.raises(weft.CompilationError) as caught:
        misspelt[(1,)](_array())
    _check_text("".join(traceback.format_exception(caught.value)))
    _check_text(str(caught.getrepr(style="long")))


def test_what_ipython_prints() -> None:
    ultratb = pytest.importorskip("IPython.core.ultratb")
    with pytest.raises(weft.CompilationError) as caught:
        misspelt[(1,)](_array())
    error = caught.value
    _check_text(ultratb.VerboseTB(theme_name="nocolor").text(type(error), error, error.__traceback__))


def test_a_crash_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        raise weft.CompilerCrash("a fault of Weft", "a pass")

    monkeypatch.setattr(sys.modules["weft.runtime.compiled_forms"], "signature_of", crash)
    with pytest.raises(weft.CompilerCrash) as caught:
        store[(1,)](np.zeros(4, np.int64), 4)
    assert len(_files(caught.value)) > 1


def test_a_fault_of_weft_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses_names = np.broadcast_shapes
    monkeypatch.setattr(sys.modules["weft.runtime.compiled_forms"], "signature_of", refuses_names)
    with pytest.raises(TypeError) as caught:
        store[(1,)](np.zeros(4, np.int16), 4)
    assert len(_files(caught.value)) > 2
