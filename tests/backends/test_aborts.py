"""LLVM ends the process where it cannot go on: the last words name the kernel, and leave its IR behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from children import environment
from weft.backends.llvm import aborts
from weft.backends.llvm.aborts import last_words, told

MODULE = """define ptx_kernel void @squares(ptr addrspace(1) %p) {
  %v = load fp128, ptr addrspace(1) %p
  %x = fmul fp128 %v, %v
  store fp128 %x, ptr addrspace(1) %p
  ret void
}
!0 = !DIFile(filename: "k.py", directory: "/home")
"""
"""What LLVM has no PTX for."""

SCRIPT = f"""
import faulthandler, sys
from weft.backends.nvidia.machine import assembly, ptx_target
from weft.machines import machine_of

if "faulthandler" in sys.argv:
    faulthandler.enable()
assembly("define ptx_kernel void @first() {{\\n ret void\\n}}\\n", ptx_target(machine_of("cuda:80")))
assembly({MODULE!r}, ptx_target(machine_of("cuda:80")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
@pytest.mark.parametrize("before", ["", "faulthandler"])
def test_the_last_words_name_the_kernel(before: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, before],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(TMPDIR=tmp_path),
        check=False,
    )
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert "LLVM ERROR: " in done.stderr
    assert "weft: LLVM gave up at `squares` of k.py (stage ptx) and ends this process" in done.stderr
    (left,) = tmp_path.glob("weft-*.ll")
    assert left.read_text() == MODULE and str(left) in done.stderr
    assert ("Fatal Python error: Aborted" in done.stderr) == bool(before)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_the_handler_is_there_only_meanwhile() -> None:
    install = aborts._signal()
    before = install(signal.SIGABRT, None)
    install(signal.SIGABRT, before)
    with told("a", "ptx"):
        with told("b", "ptx"):
            assert [task.code for task in aborts._tasks] == ["a", "b"]
        assert [task.code for task in aborts._tasks] == ["a"]
        inside = install(signal.SIGABRT, before)
        install(signal.SIGABRT, inside)
    after = install(signal.SIGABRT, before)
    assert (after, inside) == (before, aborts._HANDLER.value) and not aborts._tasks


def test_a_module_without_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aborts.tempfile, "tempdir", str(tmp_path))
    assert "LLVM gave up at a module (stage asm) and ends this process" in last_words("", "asm")
    assert "gave up at `two words` (stage object) and" in last_words('define void @"two words"() {\n', "object")
    assert "gave up at `k` (stage loading) and" in last_words(b"\x7fELF", "loading", "k")


def test_an_overrun_is_proposed_before_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that wrote into LLVM's memory is the likelier reason, and debug=True finds it."""
    monkeypatch.setattr(aborts.tempfile, "tempdir", str(tmp_path))
    text = last_words("define void @k() {\n", "object")
    (left,) = tmp_path.glob("weft-*.ll")
    assert text == (
        "weft: LLVM gave up at `k` (stage object) and ends this process. If a kernel wrote outside of its arrays "
        "before, it may have been in LLVM's memory: launch with debug=True (for all, WEFT_DEBUG=1), which finds such a "
        "kernel. If memory ran out, LLVM needs more. Otherwise this is a fault of Weft: please send the kernel, what "
        f"LLVM says above, and {left} to the issue tracker of Weft. WEFT_ISOLATE=1 compiles in a process of its own, "
        "where this is an exception.\n"
    )
