"""`compile_many` and the pool where things go wrong around them: Ctrl-C, killed workers, odd surroundings and items."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import ASTSource, CompilationError, CompilerCrash, LaunchError, WorkerPool, ir
from weft.base import LaunchTypeError
from weft.compiler import Work, as_target, work_of
from weft.runtime import workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="deaths by signals")

X = np.ones(64, np.float32)


@weft.jit
def doubled(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


@weft.jit
def mistaken(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x, tl.load(x).nothing)


def warm(kernel: Any = doubled, block: int = 16) -> Any:
    return kernel.warmup(X, BLOCK=block, grid=(1,))


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(1, seconds=120) as made:
        yield made


@pytest.fixture(autouse=True)
def _compiled_anew(monkeypatch: pytest.MonkeyPatch, pool: WorkerPool) -> Iterator[None]:
    monkeypatch.setattr(workers, "_pools", [pool])
    with weft.knobs.compilation.scope():
        weft.knobs.compilation.always_compile = True
        doubled.cache.clear()
        yield


def test_a_worker_that_is_killed_while_idle_costs_nothing(pool: WorkerPool) -> None:
    os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
    assert weft.compile_many([warm])[0].name == "doubled"


def test_what_a_function_raises_or_returns_does_not_end_its_worker(pool: WorkerPool) -> None:
    before = pool.submit(os.getpid).result()
    with pytest.raises(SystemExit):
        pool.submit(sys.exit, 3).result()
    with pytest.raises(TypeError, match="cannot pickle"):
        pool.submit(threading.Lock).result()
    assert pool.submit(os.getpid).result() == before


def test_ctrl_c_ends_what_is_under_way(pool: WorkerPool) -> None:
    pool.submit(max, 1, 2).result()  # there is a worker
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    begin = time.monotonic()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background may have it ignored
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pool.compile(_Slow("k", "", "ttir", "", "cpu", 0, 1, ()))
    finally:
        signal.signal(signal.SIGINT, before)
    pool.submit(max, 1, 2).result()  # the only worker is free again
    assert time.monotonic() - begin < 30


class _Slow(Work):
    """Takes a minute wherever it arrives."""

    def __reduce__(self) -> Any:
        return time.sleep, (60,)


def test_many_are_stopped_by_what_ends_the_call(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, stopped = threading.Event(), list[Any]()
    slow: Any = None

    def submit(*args: Any) -> Any:
        nonlocal slow
        slow = pool._threads.submit(time.sleep, 0.5)
        asked.set()
        return slow

    def interrupted(done: int, count: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "stop", stopped.append)
    monkeypatch.setattr(pool, "submit", submit)
    with pytest.raises(KeyboardInterrupt):
        weft.compile_many([lambda: None, warm, lambda: asked.wait(20)], progress=interrupted)
    assert stopped == [slow]


def test_after_a_failure_it_is_compiled_again(monkeypatch: pytest.MonkeyPatch, pool: WorkerPool) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(pool, "submit", lambda *args: pool._threads.submit(divmod, 1, 0))
        with pytest.raises(CompilerCrash, match="ZeroDivisionError"):
            weft.compile_many([warm])
    assert warm().name == "doubled"
    x = np.ones(16, np.float32)
    doubled[(1,)](x, BLOCK=16)
    assert (x == 2).all()


def test_what_an_item_does_not_return_is_told_too() -> None:
    def forgetful() -> None:
        warm(mistaken)

    (error,) = weft.compile_many([forgetful], return_exceptions=True)
    assert isinstance(error, CompilationError)


def test_containers_and_calls_inside_of_calls() -> None:
    (pair, named, inner) = weft.compile_many(
        [lambda: (warm(), warm(block=32)), lambda: {"a": warm()}, lambda: weft.compile_many([lambda: warm(block=8)])]
    )
    assert type(pair) is tuple and [k.name for k in (*pair, named["a"], inner[0])] == ["doubled"] * 4


@pytest.mark.parametrize("item", [None, 5, (), (1, 2, 3, 4)])
def test_items_that_are_none(item: Any) -> None:
    with pytest.raises(LaunchTypeError) as raised:
        weft.compile_many([item])
    assert str(raised.value) == (
        f"compile_many takes functions without arguments, sources and tuples (source, target, options), got {item!r}\n"
        "hint: weft.compile_many([lambda: kernel.warmup(..., grid=(1,)), (source, 'cuda:90', {'num_warps': 8})])"
    )


@pytest.mark.parametrize("call", [weft.compile_many, weft.compile])
def test_executors_that_are_none(call: Any) -> None:
    source = ASTSource(doubled, {"x": "*fp32"}, {"BLOCK": 4})
    with pytest.raises(LaunchTypeError) as raised:
        call([source] if call is weft.compile_many else source, executor="two")
    assert str(raised.value) == (
        "an executor has a method submit, got 'two' of type str\n"
        "hint: weft.WorkerPool(4), or any executor of concurrent.futures"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": -1}, "a pool has a number of workers, at least 1, got -1\nhint: WEFT_WORKERS=4"),
        ({"seconds": float("nan")}, "a worker may take a number of seconds, more than 0, got nan"),
        ({"memory": 1 << 80}, f"a worker may have a number of bytes, 0 for as many as there are, got {1 << 80}"),
    ],
)
def test_pools_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError) as raised:
        WorkerPool(**given)
    assert str(raised.value).startswith(message)


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited on Linux")
def test_too_little_memory_is_no_fault_of_weft() -> None:
    with WorkerPool(1, memory=600 << 20) as pool, pytest.raises(CompilerCrash) as raised:
        pool.submit(bytearray, 1 << 30).result()
    assert str(raised.value) == (
        "error: running bytearray() needs more memory than the 629145600 bytes of a worker\n"
        "hint: WEFT_WORKER_MEMORY, or knobs.compilation.worker_memory, allows more"
    )


ODD = """
import os, pathlib, sys
import numpy as np
import weft, weft.language as tl
@weft.jit
def k(x):
    tl.store(x, 1)
sys.path.insert(0, pathlib.Path("x"))
os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])
x = np.zeros(1, np.int32)
assert weft.compile_many([lambda: k.warmup(x, grid=(1,))])[0].name == "k"
k[(1,)](x)
try:
    import no_such_module
except ModuleNotFoundError:
    print(x[0])
"""


def test_a_removed_directory_and_odd_paths(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "script.py").write_text(ODD)
    environment = {**os.environ, "WEFT_WORKERS": "1", "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-W", "error", str(tmp_path / "script.py"), str(tmp_path / "gone")]
    assert subprocess.run(command, env=environment, text=True, capture_output=True, check=True).stdout == "1\n"


def test_what_is_nested_as_deep_as_python_takes_can_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers read the text of what was traced: ninety ifs, in them a chain of branches that is cut at a hundred."""
    pad = [" " * level for level in range(1, 92)]
    ifs = [f"{pad[level]}if n > {level}:" for level in range(90)]
    chain = [f"{pad[90]}{'el' if i else ''}if n == {i}:\n{pad[90]} v = {i}" for i in range(120)]
    text = "\n".join(["@weft.jit", "def k(x, n):", " v = n", *ifs, *chain, " tl.store(x, v)", ""])
    monkeypatch.setitem(linecache.cache, "<deep>", (len(text), None, text.splitlines(True), "<deep>"))
    names = {"weft": weft, "tl": tl}
    exec(compile(text, "<deep>", "exec"), names)
    work = work_of(ASTSource(names["k"], {"x": "*i32", "n": "i32"}), as_target("cpu"), {})
    assert ir.print_module(ir.parse_module(work.ir), locations=True) == work.ir


def test_text_is_not_nested_deeper() -> None:
    def text(levels: int) -> str:
        return "module { tt.func public @k(%c: i1) {" + "scf.if %c {" * levels + "}" * levels + "tt.return } }"

    with pytest.raises(CompilationError, match="nested too deep: more than 205 levels"):
        ir.parse_module(text(1000))

    def below(calls: int) -> Any:
        return below(calls - 1) if calls else ir.parse_module(text(200))

    with pytest.raises(CompilationError, match="nested too deep for what is left of Python's stack"):
        below(500)


@pytest.mark.parametrize("why", ["no program", "another program", "no place"])
def test_a_worker_that_cannot_be_started(why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is no fault of the kernel, nor of Weft."""
    program, hint = tmp_path / "python", "workers are processes of sys.executable, with the sys.path of this one; "
    hint += "WEFT_WORKERS says how many, and without WEFT_ISOLATE none is needed for a single kernel"
    program.write_text("#!/bin/sh\necho what is -c\nexit 3\n")
    program.chmod(0o644 if why == "no program" else 0o755)
    if why == "no place":
        monkeypatch.setattr(workers.tempfile, "tempdir", str(tmp_path / "gone"))
    else:
        monkeypatch.setattr(sys, "executable", str(program))
    with WorkerPool(1) as fresh, pytest.raises(LaunchError) as told:
        weft.compile(ASTSource(doubled, {"x": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64}), "cuda:90", executor=fresh)
    first, second = str(told.value).splitlines()
    if why == "no place":
        assert first.startswith("a compile worker has no place for what it says: [Errno 2] No such file or directory")
        assert second == "hint: TMPDIR names a folder for such files"
        return
    problem = f"[Errno 13] Permission denied: '{program}'" if why == "no program" else f"{program} ended by status 3"
    assert first == f"a compile worker cannot be started: {problem}" and second == f"hint: {hint}"
