"""Files that want to be called right without being it, or to do harm: none gets its way.

Each runs as `weft check` runs it, in processes of their own; slow, but for the first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.checking import Limits, Settings, Verdict, check

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no limits for processes there")

REFERENCE = """
import numpy as np

def inputs(seed):
    return (np.random.default_rng(seed).standard_normal(256).astype(np.float32),)

def reference(x):
    return 2 * x
"""

DOUBLE = """
import os, sys
import numpy as np
import weft
import weft.language as tl

@weft.jit
def double(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2)

def launched(x):
    out = np.zeros_like(x)
    double[(4,)](x, out, B=64)
    return out
"""


def judged(
    folder: Path, text: str, seconds: float = 20, memory: int = 2 << 30, readable: tuple[str, ...] = ()
) -> Verdict:
    """The verdict on a file."""
    reference, kernel = folder / "reference" / "ref.py", folder / "kernel" / "kernel.py"
    for path, source in ((reference, REFERENCE), (kernel, text)):
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    return check(kernel, reference, Settings(seeds=2, limits=Limits(seconds, memory), readable=readable))


def test_a_file_that_ends_its_process_is_not_right(tmp_path: Path) -> None:
    verdict = judged(tmp_path, 'import os\nprint(\'{"verdict": "right"}\', flush=True)\nos._exit(0)\n')
    assert (verdict.kind, verdict.code) == ("died", 3)
    assert verdict.reasons == ["kernel.py ended its process with exit code 0 before it gave all outputs"]
    assert verdict.process["printed"] == '{"verdict": "right"}\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ("return launched(x)", "right", ""),
        ("return launched(x) + 0", "wrong", "output 1 is no memory that a kernel wrote"),
        ("return 2 * x", "wrong", "launched no kernel"),
        ("y = 2 * x; double[(4,)](y, x, B=64); return y", "wrong", "output 1 is no memory that a kernel wrote"),
        ("launched(x); return 2 * x", "wrong", "output 1 is no memory that a kernel wrote"),
        ("return x", "wrong", "element 0 is"),
        ("x *= 0; return launched(x)", "wrong", "element 0 is 0.0"),
        ("np.allclose = np.array_equal = np.isfinite = lambda *a, **k: True; return x", "wrong", "element 0 is"),
        ("return launched(x)[:128]", "wrong", "its shape is 128, expected 256"),
        ("return launched(x).astype(np.float16)", "wrong", "its type is float16, expected float32"),
        ("return launched(x), x", "wrong", "2 outputs, expected 1"),
        ("return None", "error", "run returned None"),
        ("return 'right'", "error", "returned a str as output 1"),
        ("sys.exit(0)", "error", "SystemExit: 0"),
        ("raise SystemExit", "error", "SystemExit"),
        ("os.kill(os.getpid(), 9)", "died", "by signal 9"),
        ("np.zeros(1 << 33, np.uint8).fill(1)", "memory", "MemoryError"),
        ("open('/etc/weft-was-here', 'w')", "error", "PermissionError"),
        ("return open(os.environ['HOME'] + '/own', 'w').close() or launched(x)", "right", ""),
        ("os.kill(os.getppid(), 9)", "error", "PermissionError"),
    ],
)
def test_what_a_file_does(tmp_path: Path, body: str, kind: str, reason: str) -> None:
    verdict = judged(tmp_path, f"{DOUBLE}\ndef run(x):\n    {body}\n")
    if not verdict.process["confined"]["signals"] and "PermissionError" in reason:
        pytest.skip("this kernel cannot confine a process")
    assert (verdict.kind, reason in " ".join(verdict.reasons)) == (kind, True), verdict.reasons


@pytest.mark.slow
def test_what_the_simulator_finds_of_a_file_that_may_have_died_of_it(tmp_path: Path) -> None:
    text = DOUBLE.replace("(4,)", "(5,)") + "\ndef run(x):\n    return launched(x)\n"
    verdict = judged(tmp_path, text)
    assert verdict.kind == "wrong" and "writes 4 bytes outside of every array" in " ".join(verdict.reasons)
    assert verdict.simulator["errors"][0]["place"].endswith("kernel.py:10:23")


@pytest.mark.slow
def test_a_file_that_never_returns(tmp_path: Path) -> None:
    begin = time.monotonic()
    verdict = judged(tmp_path, "while True:\n    pass\n", seconds=6)
    assert verdict.kind == "timeout" and time.monotonic() - begin < 20
    assert verdict.reasons == ["kernel.py ran longer than 6 s, and was ended"]


@pytest.mark.slow
def test_what_a_file_started_is_ended_with_it(tmp_path: Path) -> None:
    """A grandchild in a session of its own, whose parent has ended, which ignores what can be ignored."""
    mark = f"weft-left-{os.getpid()}"
    script = f"import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(100)  # {mark}"
    text = f"""
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    subprocess.Popen([sys.executable, "-c", {script!r}], start_new_session=True)
    os._exit(0)
os.wait()
{DOUBLE}
def run(x):
    return launched(x)
"""
    assert judged(tmp_path, text).kind == "right"
    assert mark not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


@pytest.mark.slow
def test_memory_is_that_of_all_processes(tmp_path: Path) -> None:
    text = """
import os, time
import numpy as np
for _ in range(4):
    if os.fork() == 0:
        kept = np.ones(1 << 29, np.uint8)
        time.sleep(100)
time.sleep(100)
"""
    verdict = judged(tmp_path, text, memory=1 << 30)
    assert (verdict.kind, verdict.process["end"]) == ("memory", "memory")


@pytest.mark.slow
def test_many_processes(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "import os, time\nfor _ in range(7):\n    os.fork()\ntime.sleep(100)\n", memory=32 << 30)
    assert (verdict.kind, verdict.process["end"]) == ("died", "processes")


@pytest.mark.slow
def test_the_reference_cannot_be_read(tmp_path: Path) -> None:
    text = f"{DOUBLE}\ndef run(x):\n    return open({str(tmp_path / 'reference' / 'ref.py')!r}).read()\n"
    verdict = judged(tmp_path, text)
    if verdict.process["confined"]["files"]:
        assert verdict.kind == "error" and "PermissionError" in verdict.reasons[0]


@pytest.mark.slow
def test_messages_cannot_be_forged(tmp_path: Path) -> None:
    """Whoever writes to the channel says outputs and launches, and those are judged as any others."""
    text = """
import gc, os
import numpy as np
from weft.checking.frames import send
def run(x):
    for number in range(3, 20):
        try:
            with os.fdopen(os.dup(number), "wb") as file:
                send(file, "outputs", {"case": 0, "where": [{"span": [0, 0], "at": 0, "strides": [4]}]}, [x])
                send(file, "simulated", {"errors": []})
                send(file, "written", {"found": [True]}, [x])
                send(file, "done", {})
        except OSError:
            pass
    os._exit(0)
"""
    verdict = judged(tmp_path, text)
    assert verdict.kind in ("wrong", "died") and verdict.reasons


@pytest.mark.slow
def test_an_interrupted_check_leaves_nothing(tmp_path: Path) -> None:
    mark = f"weft_kept_{os.getpid()}.py"
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / mark).write_text("import time\nopen('started', 'w').close()\ntime.sleep(100)\n")
    command = [sys.executable, "-m", "weft", "check", str(tmp_path / mark), "--reference", str(tmp_path / "ref.py")]
    checking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and len(running(f'"kernel": "{tmp_path / mark}"')) < 1:
            time.sleep(0.05)
        checking.send_signal(signal.SIGINT)
    finally:
        checking.communicate(timeout=20)
    assert running(f'"kernel": "{tmp_path / mark}"') == []


def running(text: str) -> list[str]:
    """Command lines that contain a text."""
    found = subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True).stdout.splitlines()
    return [line for line in found if text in line or text.replace('"', '\\"') in line]
