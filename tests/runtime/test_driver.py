"""The CPU driver, with kernels written in LLVM IR: launches, threads, forks, interrupts, errors, prints."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from children import SOURCE, TESTS, environment
from weft.backends.cpu import calls, driver, native_code, places, pool as pool_module, pool_layout
from weft.base import DeviceAssertionError
from weft.runtime import prepared

# Adds 1 to out[pid], and optionally burns time, raises or prints.
BODY = """
declare ptr @llvm.stacksave()
define void @kernel(ptr %args, ptr %state, ptr %scratch) {
entry:
  %total.p = getelementptr i8, ptr %state, i64 8
  %chunk.p = getelementptr i8, ptr %state, i64 16
  %error.p = getelementptr i8, ptr %state, i64 40
  %error.pid = getelementptr i8, ptr %state, i64 48
  %table.p = getelementptr i8, ptr %state, i64 64
  %total = load i64, ptr %total.p
  %chunk = load i64, ptr %chunk.p
  %out.i = load i64, ptr %args
  %out = inttoptr i64 %out.i to ptr
  %spin.p = getelementptr i8, ptr %args, i64 8
  %spin = load i64, ptr %spin.p
  %bad.p = getelementptr i8, ptr %args, i64 16
  %bad = load i64, ptr %bad.p
  br label %take
take:
  %first = atomicrmw add ptr %state, i64 %chunk monotonic
  %over = icmp sge i64 %first, %total
  br i1 %over, label %done, label %begin
begin:
  %last0 = add i64 %first, %chunk
  %cut = icmp slt i64 %last0, %total
  %last = select i1 %cut, i64 %last0, i64 %total
  br label %program
program:
  %pid = phi i64 [ %first, %begin ], [ %pid1, %next ]
  br label %burn
burn:
  %k = phi i64 [ 0, %program ], [ %k1, %burn ]
  call void asm sideeffect "", ""()
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %spin
  br i1 %more, label %burn, label %work
work:
  %q = getelementptr i32, ptr %out, i64 %pid
  %v = load i32, ptr %q
  %v1 = add i32 %v, 1
  store i32 %v1, ptr %q
  %isbad = icmp eq i64 %pid, %bad
  br i1 %isbad, label %fail, label %next
fail:
  %pair = cmpxchg ptr %error.p, i64 0, i64 1 acq_rel monotonic
  store i64 %pid, ptr %error.pid
  br label %next
PRINT
next:
  %pid1 = add i64 %pid, 1
  %again = icmp slt i64 %pid1, %last
  br i1 %again, label %program, label %take
done:
  ret void
}
"""
PRINTING = """
  %table = load ptr, ptr %table.p
  %print.p = getelementptr i8, ptr %table, i64 8
  %print = load ptr, ptr %print.p
  call void %print(ptr %state, i64 0, i64 %pid, ptr %q, i64 4)
"""
NUMBERED = BODY.replace("PRINT", "").replace(
    "  %v1 = add i32 %v, 1\n", "  %n.p = getelementptr i8, ptr %state, i64 36\n  %v1 = load i32, ptr %n.p\n"
)
"""Stores the number of the thread that it runs on."""


def build(text: str = BODY.replace("PRINT", ""), **metadata: object) -> driver.LoadedKernel:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    module = llvm.parse_assembly(text)
    facts = {"name": "kernel", "scratch_bytes": 100, **metadata}
    return driver.LoadedKernel(machine.emit_object(module), facts)


@pytest.fixture(autouse=True)
def _threads():
    yield
    driver.set_num_threads(driver.usable_cores())


@pytest.mark.parametrize("threads", [1, 2, 5, 70])
@pytest.mark.parametrize("total", [1, 2, 3, 64, 1000, 100_003])
def test_every_program_runs_once(threads: int, total: int) -> None:
    driver.set_num_threads(threads)
    launch = build().launcher("Qqq")
    out = np.zeros(total, np.int32)
    for rounds in range(1, 4):
        launch(total, 1, 1, out.ctypes.data, 50, -1)
        assert (out == rounds).all()


def test_empty_grid_does_nothing() -> None:
    out = np.zeros(4, np.int32)
    build().launcher("Qqq")(0, 1, 1, out.ctypes.data, 0, -1)
    assert not out.any()


def test_launch_takes_a_buffer() -> None:
    out = np.zeros(6, np.int32)
    args = np.array([out.ctypes.data, 0, -1], np.int64).tobytes()
    build().launch(args, (3, 2))
    assert (out == 1).all()


def test_workers_take_part() -> None:
    driver.set_num_threads(2)
    kernel = build()
    launch = kernel.launcher("Qqq")
    out = np.zeros(400, np.int32)
    joined = 0
    for _ in range(200):  # on a busy machine a launch may be over before the worker is awake
        launch(400, 1, 1, out.ctypes.data, 20_000, -1)
        pool = pool_module._pool
        assert pool is not None and pool.workers == 1
        joined = ctypes.c_int64.from_address(pool._address + pool_layout.JOINED).value
        if joined:
            break
    assert joined == 1


def test_each_thread_has_a_part_of_its_own() -> None:
    """What it reads and writes may be in the caches of its core still, from the launch before."""
    driver.set_num_threads(2)
    launch = build(NUMBERED).launcher("Qqq")
    out = np.zeros(400, np.int32)
    until = time.monotonic() + 30
    while time.monotonic() < until:  # on a busy machine the worker is seldom there from the beginning
        launch(400, 1, 1, out.ctypes.data, 100, -1)
        if out[0] == 0 and np.count_nonzero(np.diff(out)) == 1 and 150 < np.count_nonzero(out) < 250:
            return
    pytest.fail("two threads never had a half each")


def test_tiny_launches_wake_nobody() -> None:
    driver.set_num_threads(2)
    launch = build().launcher("Qqq")
    out = np.zeros(2, np.int32)
    for _ in range(50):
        launch(2, 1, 1, out.ctypes.data, 0, -1)
    assert (out == 50).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_assertions_are_raised_with_their_program(threads: int) -> None:
    driver.set_num_threads(threads)
    facts = [{"message": "must hold", "file": "k.py", "line": 7, "col": 4, "func": "f"}]
    launch = build(asserts=facts).launcher("Qqq")
    out = np.zeros(60, np.int32)
    with pytest.raises(DeviceAssertionError, match="must hold") as caught:
        launch(4, 3, 5, out.ctypes.data, 0, 4 * 3 * 2 + 4 * 1 + 3)
    assert caught.value.program == (3, 1, 2)
    assert caught.value.span is not None and caught.value.span.line == 7
    launch(4, 3, 5, out.ctypes.data, 0, -1)  # and the kernel works again


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    text = BODY.replace("PRINT", "").replace("  store i32 %v1, ptr %q\n", "  store i32 %v1, ptr %q\n" + PRINTING)
    launch = build(text, prints=[{"prefix": " x: ", "dtype": "i32", "shape": [], "hex": False}]).launcher("Qqq")
    out = np.zeros(4, np.int32)
    launch(2, 2, 1, out.ctypes.data, 0, -1)
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) idx () x: 1",
        "pid (1, 0, 0) idx () x: 1",
        "pid (0, 1, 0) idx () x: 1",
        "pid (1, 1, 0) idx () x: 1",
    ]


def test_several_threads_launch_at_once() -> None:
    driver.set_num_threads(2)
    kernel = build()
    launch = kernel.launcher("Qqq")
    outs = [np.zeros(500, np.int32) for _ in range(4)]

    def work(out: np.ndarray) -> None:
        for _ in range(20):
            launch(500, 1, 1, out.ctypes.data, 500, -1)

    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert all((out == 20).all() for out in outs)


def test_launch_releases_the_gil() -> None:
    driver.set_num_threads(1)
    launch = build().launcher("Qqq")
    out = np.zeros(1, np.int32)
    ticks = 0
    thread = threading.Thread(target=launch, args=(1, 1, 1, out.ctypes.data, 500_000_000, -1))
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert ticks > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_launch() -> None:
    script = textwrap.dedent(
        """
        import os, sys
        import numpy as np
        from runtime.test_driver import build, driver, pool_module
        driver.set_num_threads(2)
        launch = build().launcher("Qqq")
        out = np.zeros(1000, np.int32)
        launch(1000, 1, 1, out.ctypes.data, 2000, -1)
        launch(1000, 1, 1, out.ctypes.data, 2000, -1)
        assert pool_module._pool is not None
        pid = os.fork()
        launch(1000, 1, 1, out.ctypes.data, 2000, -1)
        assert (out == 3).all()
        if pid == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        """
    )
    env = environment(SOURCE, TESTS)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=env, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_is_seen_within_a_second(threads: int) -> None:
    driver.set_num_threads(threads)
    launch = build().launcher("Qqq")
    total = 200_000
    out = np.zeros(total, np.int32)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    begin = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with contextlib.suppress(KeyboardInterrupt):
            launch(total, 1, 1, out.ctypes.data, 1_000_000, -1)  # about a minute
            pytest.fail("the launch was not interrupted")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.perf_counter() - begin < 1.3
    small = np.zeros(10, np.int32)
    launch(10, 1, 1, small.ctypes.data, 0, -1)
    assert (small == 1).all()


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_native_code_of_other_systems(monkeypatch: pytest.MonkeyPatch, platform: str, machine: str) -> None:
    """It is made by the system it runs on; here LLVM only looks whether it is sound."""
    monkeypatch.setattr(sys, "platform", platform)
    module = llvm.parse_assembly(places.declared(native_code.text(machine)))
    module.verify()
    defined = {f.name for f in module.functions if not f.is_declaration}
    assert {"weft_run", "weft_grid", "weft_worker", "weft_poll", "weft_print"} <= defined


def test_names_in_native_code() -> None:
    """One that stands for nothing, or is none, is an error that says it; and each that there is is used."""
    assert native_code.named("i64 $pool.LINE, 100", native_code.SOURCES) == "i64 128, 100"
    with pytest.raises(AttributeError, match=r"^module 'weft.backends.cpu.pool_layout' has no attribute 'LIME'$"):
        native_code.named("i64 $pool.LIME", native_code.SOURCES)
    with pytest.raises(KeyError, match="^'poll'$"):
        native_code.named("i64 $poll.LINE", native_code.SOURCES)
    with pytest.raises(ValueError, match="^Invalid placeholder in string: line 2, col 5$"):
        native_code.named("ret i64 1\ni64 $LINE", native_code.SOURCES)
    folder = Path(native_code.__file__).parent
    code = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.ll"))
    modules = [*folder.glob("*.py"), Path(prepared.__file__)]
    python = "".join(file.read_text(encoding="utf-8") for file in modules)
    for source, holder in native_code.SOURCES.items():
        names = [name for name in dir(holder) if name.isupper()]
        assert names
        for name in names:
            used = f"${source}.{name}" if source in ("limits", "engine", "record") else f"{source}.{name}"
            assert re.search(rf"{re.escape(used)}\b", code) or len(re.findall(rf"\b{name}\b", python)) > 1, used


def test_usable_cores_is_positive() -> None:
    assert driver.usable_cores() >= 1
    assert driver.get_num_threads() >= 1
    with pytest.raises(ValueError, match="at least 1"):
        driver.set_num_threads(0)


def test_host_cpu_has_a_vector_width() -> None:
    cpu = driver.host_cpu()
    assert cpu.vector_bytes in (16, 32, 64)
    assert cpu.name in cpu.fingerprint()


def test_launches_are_prepared_by_the_usual_python() -> None:
    usual = sys.implementation.name == "cpython" and sys.platform in ("linux", "darwin") and sys.maxsize > 2**32
    usual = usual and getattr(sys, "_is_gil_enabled", lambda: True)() and not hasattr(sys, "gettotalrefcount")
    assert calls.supported() == usual
