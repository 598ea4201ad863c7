"""Settings of Triton's: what they do here, or that they do nothing; hooks and captures when something goes wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from children import environment
from weft import CompilationError, LaunchError, WeftError, knobs
from weft.base import CapturedGlobalError, OutsideKernelError, SettingWarning
from weft.runtime import unused

SCALE = tl.constexpr(3)


@weft.jit
def fill(out, VALUE: tl.constexpr):
    tl.store(out, VALUE)


@weft.jit
def scaled(out):
    tl.store(out, SCALE)


@weft.jit
def helper(x):
    return x + 1


@weft.jit
def calls_helper(out):
    tl.store(out, helper(1))


@weft.jit
def wrong(out):
    tl.store(out, nothing)  # noqa: F821


@weft.constexpr_function
def broken(n):
    raise KeyError(n)


@weft.jit
def wrong_on_the_host(out):
    tl.store(out, broken(1))


@weft.jit
def asserts(out, n):
    tl.device_assert(n > 100, "too small")
    tl.store(out, n)


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(unused, "_warned", set())
    for kernel in (fill, scaled, calls_helper, asserts):
        kernel.reset()
    yield


def _out() -> np.ndarray[Any, Any]:
    return np.zeros(1, np.int32)


# -- settings that change nothing ----------------------------------------------------------------------------------


def test_a_class_that_is_not_used_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "no.such.module:Class")
    out = _out()
    with pytest.warns(SettingWarning, match=r"knobs.cache.manager_class \(TRITON_CACHE_MANAGER\) has no effect"):
        fill[(1,)](out, VALUE=5)
    assert out[0] == 5


@pytest.mark.parametrize(
    ("group", "name", "value", "says"),
    [
        ("runtime", "interpret", True, "kernels run compiled, on the CPU"),
        ("runtime", "override_arch", "sm90", "for this processor"),
        ("runtime", "add_stages_inspection_hook", print, "WEFT_DUMP=all"),
        ("compilation", "instrumentation_mode", "consan", "debug=True"),
        ("compilation", "enable_asan", True, "not checked"),
        ("compilation", "store_binary_only", True, "every stage"),
        ("compilation", "use_ir_loc", "ttir", "kernel's source"),
        ("cache", "manager_class", "a:B", "WEFT_CACHE_DIR"),
    ],
)
def test_a_setting_without_effect_says_so_once(group: str, name: str, value: Any, says: str) -> None:
    with getattr(knobs, group).scope():
        setattr(getattr(knobs, group), name, value)
        with pytest.warns(SettingWarning) as caught:
            fill[(1,)](_out(), VALUE=1)
            fill[(1,)](_out(), VALUE=2)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert f"knobs.{group}.{name}" in text
    assert "has no effect" in text
    assert says in text
    assert caught[0].filename == __file__


def test_settings_left_alone_say_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fill[(1,)](_out(), VALUE=1)


def test_every_setting_that_warns_is_a_setting() -> None:
    for group, name, _ in unused.INSTEAD:
        assert hasattr(getattr(knobs, group), name)


def test_interpret_runs_the_kernel(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, triton, triton.language as tl\n"
        "@triton.jit\n"
        "def k(out):\n"
        "    i = tl.arange(0, 2)\n"
        "    print('i', i)\n"
        "    tl.store(out + i, i)\n"
        "out = np.zeros(2, np.int32)\n"
        "k[(1,)](out)\n"
        "k[(2,)](out)\n"
        "print(out.tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", str(script)],
        env={
            "TRITON_INTERPRET": "1",
            "PATH": "",
            "PYTHONPATH": environment()["PYTHONPATH"],
            "WEFT_CACHE_DIR": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "idx (1) i: 1" in done.stdout
    assert done.stdout.endswith("[0, 1]\n")
    assert done.stderr.count("TRITON_INTERPRET") == 1


# -- settings that do something ------------------------------------------------------------------------------------


def test_kernels_are_overridden_from_a_directory(tmp_path: Path) -> None:
    out = _out()
    with knobs.cache.scope(), knobs.compilation.scope():
        knobs.compilation.dump = "ttir"
        knobs.cache.dump_dir = knobs.cache.override_dir = str(tmp_path)
        fill[(1,)](out, VALUE=5)
        assert out[0] == 5
        dumped = tmp_path / "fill.ttir"
        dumped.write_text(dumped.read_text().replace("constant 5", "constant 7"))
        knobs.compilation.dump = ""
        fill.reset()
        fill[(1,)](out, VALUE=5)
        assert out[0] == 5  # not switched on
        knobs.compilation.override = True
        fill.reset()
        fill[(1,)](out, VALUE=5)
        assert out[0] == 7
        scaled[(1,)](out)  # no file of that name: as it is
        assert out[0] == 3


def test_overriding_needs_a_directory() -> None:
    with knobs.compilation.scope(), pytest.raises(LaunchError, match="TRITON_OVERRIDE_DIR is not"):
        knobs.compilation.override = True
        fill[(1,)](_out(), VALUE=1)


def _frames(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_compilation_errors_leave_the_compiler_out() -> None:
    with pytest.raises(CompilationError) as caught:
        wrong[(1,)](_out())
    text = _frames(caught.value)
    assert "frontend" not in text
    assert "nothing is not defined" in text


def test_front_end_debugging_shows_the_compiler() -> None:
    with knobs.compilation.scope(), pytest.raises(CompilationError) as caught:
        knobs.compilation.front_end_debugging = True
        wrong[(1,)](_out())
    assert "frontend" in _frames(caught.value)


def test_the_cause_stays_where_it_is_the_users_own() -> None:
    with pytest.raises(CompilationError) as caught:
        wrong_on_the_host[(1,)](_out())
    assert "raise KeyError(n)" in _frames(caught.value)


# -- what is captured ----------------------------------------------------------------------------------------------


def test_a_changed_global_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    out = _out()
    scaled[(1,)](out)
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(4))
    with pytest.raises(RuntimeError) as caught:
        scaled[(1,)](out)
    error = caught.value
    assert isinstance(error, CapturedGlobalError)
    assert isinstance(error, WeftError)
    assert (error.name, error.before, error.now) == ("SCALE", 3, 4)
    line = scaled.starting_line_number
    assert str(error) == (
        "Global variable SCALE has changed since we compiled this kernel, from constexpr[3] to constexpr[4]: "
        f"`scaled` ({__file__}:{line}) reads it as a constant\n"
        "hint: pass `SCALE` as a constexpr argument if it is meant to change, or call scaled.reset() to forget what "
        "was compiled"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    scaled.reset()
    scaled[(1,)](out)
    assert out[0] == 4


def test_a_changed_function_that_a_hook_keeps_from_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    out = _out()
    calls_helper[(1,)](out)
    assert out[0] == 2
    monkeypatch.setitem(globals(), "helper", other_helper)
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **facts: True
        assert calls_helper[(1,)](out) is None
    assert out[0] == 2


@weft.jit
def other_helper(x):
    return x + 2


def test_what_works_only_in_kernels() -> None:
    for call in (lambda: fill(1, 2), lambda: tl.program_id(0)):
        with pytest.raises(OutsideKernelError) as caught:
            call()
        assert isinstance(caught.value, (RuntimeError, ValueError))


# -- hooks ---------------------------------------------------------------------------------------------------------


def test_the_exit_hook_runs_when_the_kernel_fails() -> None:
    seen: list[str] = []
    knobs.runtime.launch_enter_hook.add(enter := lambda metadata: seen.append("enter"))
    knobs.runtime.launch_exit_hook.add(leave := lambda metadata: seen.append("exit"))
    try:
        with pytest.raises(weft.DeviceAssertionError):
            asserts[(1,)](_out(), 3, debug=True)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
        knobs.runtime.launch_exit_hook.remove(leave)
    assert seen == ["enter", "exit"]


def test_the_exit_hook_of_a_launcher_runs_when_the_kernel_fails() -> None:
    kernel = asserts.warmup(_out(), 3, grid=(1,), debug=True)
    seen: list[str] = []
    out = _out()
    with pytest.raises(weft.DeviceAssertionError):
        kernel.run(
            1, 1, 1, None, None, None, None, lambda m: seen.append("enter"), lambda m: seen.append("exit"), out, 3
        )
    assert seen == ["enter", "exit"]


def test_a_breakpoint_in_a_kernel() -> None:
    @weft.jit
    def stops(out):
        breakpoint()
        tl.store(out, 1)

    with pytest.raises(CompilationError, match="hint: a kernel is compiled, so a debugger cannot stop in it"):
        stops[(1,)](_out())
