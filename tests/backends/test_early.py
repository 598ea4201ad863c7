"""What LLVM does once in a process, begun in another thread (weft.backends.llvm.early)."""

from __future__ import annotations

import threading

import pytest

from weft.backends.cpu.driver import host_cpu
from weft.backends.llvm import early, machine as cpu_machine
from weft.backends.nvidia import machine as gpu_machine
from weft.base import CompilerCrash
from weft.machines import machine_of


def test_work_is_done_once_elsewhere_and_waited_for() -> None:
    go, done = threading.Event(), list[int]()

    def work() -> None:
        go.wait(60)
        done.append(threading.get_ident())

    key = object()
    early.begin(key, work)
    early.begin(key, work)
    assert not done
    go.set()
    early.wait(key)
    assert len(done) == 1 and done[0] != threading.get_ident()
    early.begin(key, work)
    early.wait(key)
    assert len(done) == 1


def test_waiting_for_what_nobody_began_is_no_waiting() -> None:
    early.wait(object())


@pytest.mark.parametrize("error", [CompilerCrash("refused", "ptx"), RuntimeError("LLVM said so")])
def test_an_error_is_left_to_the_kernel(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise error

    key = object()
    early.begin(key, work)
    early.wait(key)
    assert capsys.readouterr().err == ""


def test_without_threads_the_kernel_does_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(early, "_begun", {})
    target = gpu_machine.ptx_target(machine_of("cuda:80"))
    gpu_machine.begin(target)
    assert "nothing" in gpu_machine.assembly(gpu_machine.NOTHING, target)
    cpu_machine.begin(host_cpu())
    assert cpu_machine.compile_object(cpu_machine.NOTHING, host_cpu())


def test_code_is_the_same_whether_it_was_begun_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "_begun", {})
    target = gpu_machine.ptx_target(machine_of("cuda:90"))
    before = (
        gpu_machine.assembly(gpu_machine.NOTHING, target),
        cpu_machine.compile_object(cpu_machine.NOTHING, host_cpu()),
    )
    gpu_machine.begin(target)
    cpu_machine.begin(host_cpu())
    after = (
        gpu_machine.assembly(gpu_machine.NOTHING, target),
        cpu_machine.compile_object(cpu_machine.NOTHING, host_cpu()),
    )
    assert before == after
