"""Compile workers: what they make is what is made here, and their deaths are exceptions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from runtime.dying import compile_and_die
from weft import ASTSource, CompilationError, CompilerCrash, WorkerPool, gluon
from weft.compiler import Work, as_target, compile as compile_here, compile_work, make_options, work_of
from weft.gluon import language as gl
from weft.runtime import knobs, workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="deaths by signals")


@weft.jit
def helper(v):  # type: ignore[no-untyped-def]
    return tl.exp(v) * 2


@weft.jit
def scaled(x, out, n, C: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    for j in range(3):
        v = helper(v) + j
    tl.device_assert(v > 0, "positive")
    tl.store(out + i, v * C, mask=i < n)


@gluon.jit
def copied(x, out, BLOCK: gl.constexpr):  # type: ignore[no-untyped-def]
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    i = gl.arange(0, BLOCK, layout=layout)
    gl.store(out + i, gl.load(x + i))


def _source(c: Any = 2) -> ASTSource:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "C": "constexpr", "BLOCK": "constexpr"}
    return ASTSource(scaled, types, {"C": c, "BLOCK": 128}, {(0,): [["tt.divisibility", 16]]})


def _gluon_source() -> ASTSource:
    return ASTSource(copied, {"x": "*fp32", "out": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 256})


def _work(target: str = "cpu", **options: Any) -> Work:
    return work_of(_source(), as_target(target), options)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(1, seconds=120) as made:
        yield made


CASES = [
    (_source, "cpu", {}),
    (_source, "cpu", {"debug": True}),
    (_source, "cuda:80", {"num_warps": 2}),
    (_source, "cuda:90", {"debug": True}),
    (_gluon_source, "cuda:90", {}),
]


@pytest.mark.parametrize(("source", "target", "options"), CASES)
def test_what_is_made_of_text_is_the_same(source: Any, target: str, options: dict[str, Any]) -> None:
    made = compile_here(source(), target, options)
    elsewhere = compile_here(source(), target, options, elsewhere=compile_work)
    assert elsewhere.metadata._asdict() == made.metadata._asdict()
    for stage in ("source", "ttir", "llir", "ptx" if target != "cpu" else "object"):
        assert elsewhere.asm[stage] == made.asm[stage], stage


def test_a_worker_makes_it_and_is_kept(pool: WorkerPool) -> None:
    facts, blobs, seconds = pool.compile(_work())
    assert blobs["object"] == compile_here(_source(), "cpu").asm["object"]
    assert facts["name"] == "scaled" and {"ttir", "llir"} <= seconds.keys()
    assert pool.submit(os.getpid).result() == pool.submit(os.getpid).result() != os.getpid()


def test_a_mistake_of_the_kernel_is_told_as_ever(pool: WorkerPool) -> None:
    wrong = Work("k", "module { tt.func public @k() { tt.nonsense } }", "ttir", "", *_plain(as_target("cuda:90")), ())
    with pytest.raises(CompilationError) as here:
        compile_work(wrong)
    with pytest.raises(CompilationError) as there:
        pool.compile(wrong)
    assert str(there.value) == str(here.value)
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result()


def _plain(target: Any) -> tuple[Any, ...]:
    return target.backend, target.arch, target.warp_size


def _death(pool: WorkerPool, target: str, stage: str, how: str) -> tuple[CompilerCrash, float]:
    begin = time.monotonic()
    with pytest.raises(CompilerCrash) as raised:
        pool.submit(compile_and_die, _work(target), stage, how).result()
    return raised.value, time.monotonic() - begin


def test_a_death_names_kernel_stage_and_reproducer(pool: WorkerPool, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(workers.tempfile, "tempdir", str(tmp_path))
    error, _ = _death(pool, "cuda:90", "ptx", "SIGABRT")
    (file,) = tmp_path.glob("weft-scaled-*.ttir")
    assert str(error) == (
        "internal error: Weft failed in ptx: the process that was compiling `scaled` ended by signal SIGABRT: "
        "LLVM ERROR: out of everything\n"
        "This is a fault of Weft, not of your kernel. Please send the kernel and this text to "
        "the issue tracker of Weft."
        f"\nTo do it again: {file}, whose first line says how."
    )
    assert file.read_text().splitlines()[0] == "// weft.compile(THIS_FILE, 'cuda:90', {})"
    assert weft.compile(file, "cuda:90", {}).name == "scaled"


def test_last_words_are_those_of_the_kernel(pool: WorkerPool) -> None:
    """And no warning about another one, that the same worker made before."""
    pool.submit(os.write, 2, b"warning: of another kernel\n").result()
    error, _ = _death(pool, "cpu", "ttir", "SIGABRT")
    assert "ended by signal SIGABRT: LLVM ERROR: out of everything" in str(error)
    os.unlink(str(error.reproducer))


def test_ten_deaths_and_what_is_compiled_between_them(pool: WorkerPool) -> None:
    ways = ("SIGSEGV", "SIGABRT", "SIGKILL", "SIGBUS", "3")
    for i in range(10):
        stage = ("", "", "ttir", "", "llir")[i // 2]
        error, seconds = _death(pool, "cpu", stage, ways[i % len(ways)])
        assert error.stage == (stage or None) and "`scaled`" in str(error)
        assert seconds < 60  # a new process begins first; how soon a death is told is measured by hand
        os.unlink(str(error.reproducer))
        if i % 5 == 4:
            assert pool.compile(_work())[0]["name"] == "scaled"


@pytest.mark.slow
def test_a_thousand_deaths() -> None:
    slowest = 0.0
    with WorkerPool(2) as pool:
        for i in range(1000):
            pool.submit(max, 1, 2).result()  # there is a worker
            how = ("SIGSEGV", "SIGABRT", "SIGKILL")[i % 3]
            with pytest.raises(CompilerCrash) as raised:
                pool.submit(compile_and_die, _work(), "ttir", how, "died at {now}").result()
            told = time.monotonic()
            died = re.search(r"died at ([\d.]+)", str(raised.value))
            assert died is not None
            slowest = max(slowest, told - float(died[1]))
            os.unlink(str(raised.value.reproducer))
    print(f"the slowest of 1,000 deaths was told within {slowest:.2f} s")
    assert slowest < 2


def test_what_takes_too_long_is_stopped() -> None:
    with WorkerPool(1, seconds=3) as pool:
        pool.submit(max, 1, 2).result()
        error, seconds = _death(pool, "cpu", "llir", "hang")
        assert str(error).splitlines()[:2] == [
            "error: compiling `scaled` took more than 3 s (stage llir), and was stopped",
            "hint: WEFT_WORKER_SECONDS, or knobs.compilation.worker_seconds, allows more",
        ]
        assert 3 <= seconds < 60
        assert pool.submit(max, 1, 2).result() == 2
        os.unlink(str(error.reproducer))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes")
def test_what_a_worker_has_started_ends_with_it(tmp_path: Path) -> None:
    """An assembler that hangs, say."""
    script = tmp_path / "hangs.sh"
    script.write_text(f"echo $$ > {tmp_path}/number\nsleep 600\n")
    with WorkerPool(1, seconds=1) as pool:
        pool.submit(max, 1, 2).result()
        with pytest.raises(CompilerCrash, match="took more than 1 s"):
            pool.submit(subprocess.call, ["sh", str(script)]).result()
    number = int((tmp_path / "number").read_text())
    for _ in range(100):
        state = Path(f"/proc/{number}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":  # nobody has asked how it ended
            break
        time.sleep(0.05)
    else:
        pytest.fail("what the worker had started is alive")


def test_what_is_printed_while_python_starts_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nprint('good morning')\nos.write(1, bytes(1000))\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with WorkerPool(1, seconds=60) as pool:
        assert pool.submit(max, 1, 2).result() == 2


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited on Linux")
def test_memory_is_limited() -> None:
    with WorkerPool(1, memory=600 << 20) as pool, pytest.raises((CompilerCrash, MemoryError)):
        pool.submit(bytearray, 1 << 30).result()


def test_many_at_once() -> None:
    x, out = np.ones(300, np.float32), np.zeros(300, np.float32)
    told: list[tuple[int, int]] = []
    kernels = weft.compile_many(
        [
            lambda: scaled.warmup(x, out, 300, C=5, BLOCK=256, grid=(1,)),
            lambda: tuned.warmup(x, out, 300, grid=(1,)),
            (_gluon_source(), "cuda:90"),
            _source(7),
        ],
        progress=lambda done, all_of_them: told.append((done, all_of_them)),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [k.name for k in (kernels[0], *kernels[1], *kernels[2:])] == ["scaled"] * 3 + ["copied", "scaled"]
    scaled[(2,)](x, out, 300, C=5, BLOCK=256)
    assert scaled.cache and (out > 0).all()


@weft.autotune([weft.Config({"BLOCK": 64}), weft.Config({"BLOCK": 512})], key=[])
@weft.jit
def tuned(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


tuned.fn.__name__ = tuned.fn._fn_name = "scaled"


@weft.jit
def mistaken(x):  # type: ignore[no-untyped-def]
    tl.store(x, undefined_name)  # type: ignore[name-defined] # noqa: F821


def test_what_fails_among_many() -> None:
    x = np.ones(1, np.float32)
    items = [lambda: mistaken.warmup(x, grid=(1,)), (_source(), "cuda:80")]
    failed, made = weft.compile_many(items, return_exceptions=True)
    assert isinstance(failed, CompilationError) and made.name == "scaled"
    with pytest.raises(CompilationError) as told:
        weft.compile_many([*items, items[0]])
    note = "this is item 0 of compile_many (of 0 to 2); item 2 failed as well, which return_exceptions=True gives"
    assert told.value.__notes__ == [note]


def test_another_executor() -> None:
    class Counting(ThreadPoolExecutor):
        asked = 0

        def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
            self.asked += 1
            return super().submit(*args, **kwargs)

    with Counting(1) as executor:
        kernel = weft.compile(_source(11), "cuda:80", executor=executor)
        assert weft.compile_many([(_source(13), "cuda:80")], executor=executor)[0].name == kernel.name == "scaled"
        assert executor.asked == 2

    class Broken(ThreadPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
            raise OSError("no such cluster")

    with Broken(1) as broken, pytest.raises(CompilerCrash, match="OSError from the executor that was compiling"):
        weft.compile(_source(17), "cuda:80", executor=broken)


def test_by_a_setting(monkeypatch: pytest.MonkeyPatch, pool: WorkerPool) -> None:
    asked: list[str] = []

    def compiled(work: Work) -> Any:
        asked.append(work.name)
        return compile_work(work)

    monkeypatch.setattr(workers, "default_pool", lambda: pool)
    monkeypatch.setattr(workers, "compile_work", compiled)
    monkeypatch.setattr(pool, "submit", lambda fn, work: ThreadPoolExecutor(1).submit(fn, work))
    x, out = np.full(128, 0.1, np.float32), np.zeros(128, np.float32)
    with knobs.compilation.scope():
        knobs.compilation.isolate = True
        scaled[(1,)](x, out, 128, C=19, BLOCK=128)
    assert asked == ["scaled"] and out[0] > 0


def test_a_fork_has_workers_of_its_own(pool: WorkerPool) -> None:
    before = pool.submit(os.getpid).result()
    child = os.fork()
    if not child:
        ok = pool.submit(os.getpid).result() != before
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.submit(os.getpid).result() == before


def test_options_are_those_of_the_kernel() -> None:
    work = work_of(_source(), as_target("cpu"), {"num_warps": 8, "debug": False})
    assert make_options(dict(work.options)).language.num_warps == 8


def test_a_file_of_layout_ir_is_the_first_that_a_process_compiles(tmp_path: Path) -> None:
    """Whoever hands it to a worker reads it too."""
    file = Path(__file__).resolve().parents[1] / "data" / "ttgir" / "vector_add_sm80.ttgir"
    program = f"import weft; print('.target' in weft.compile({str(file)!r}, target='cuda:80').asm['ptx'])"
    environment = {**os.environ, "WEFT_ISOLATE": "1", "WEFT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
