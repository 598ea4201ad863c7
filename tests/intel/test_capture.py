"""Level Zero in earnest, without a GPU: Intel's driver in the mode in which it captures what it would submit.

Every call from the initialisation to the end of a launch must succeed; nothing is computed, so that memory does not
change. The driver reads its environment once, and writes what it captures into the folder that it is started in: so
the tests have a process for themselves. They are skipped where Level Zero's loader or Intel's driver is not installed
(Debian: libze1, intel-opencl-icd).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CAPTURE = {
    "NEOReadDebugKeys": "1",
    "SetCommandStreamReceiver": "1",
    "ProductFamilyOverride": "pvc",
    "HardwareInfoOverride": "1x4x16",
}
NOT_CALLED = {"zeInit", "zeEventQueryStatus", "zeEventQueryKernelTimestamp", "zeKernelDestroy",
              "zeModuleBuildLogGetString", "zeModuleDestroy"}  # fmt: skip
"""Functions that such a launch does not call, or before calls are watched."""
BEGIN = """
import json, struct
import numpy as np
import weft, weft.language as tl
from weft.backends.intel import level_zero
from weft.base import LaunchError, LaunchTypeError, OutOfResources
from weft.compiler.intel import driver

ze = level_zero.api() if driver.installed() else None
calls = []

def watched(name, function):
    def call(*arguments):
        status = function(*arguments)
        calls.append((name, status))
        return status
    return call

for name in level_zero.FUNCTIONS if ze else ():
    setattr(ze, name, watched(name, getattr(ze, name)))
if ze is None or not driver.available():
    print("no driver")
    raise SystemExit

@weft.jit
def add(x, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + i, i < n, 0.0), 0)
    tl.store(out + i, tl.load(x + i, i < n) * alpha + total, i < n)

TYPES = {"x": "*fp32", "out": "*fp32", "n": "i32", "alpha": "fp32"}
"""
LAUNCH = """
gpu = driver.current_device()
print(gpu.target, hex(gpu.number), gpu.shared_bytes, gpu.max_threads)
with weft.target("xpu:pvc"):
    x = weft.cuda.to_device(np.ones(1000, np.float32))
    out = weft.cuda.zeros(1000)
    for mode in ("default", "256"):
        made = add[(4,)](x, out, 1000, 2.5, BLOCK=256, grf_mode=mode)
        print(made.n_regs, made.n_spills, made.n_max_threads)
    out.zero_()
    weft.cuda.synchronize()
    made[(4, 1, 1)](x, out, 1000, 1.0)
    print(out.numpy().shape, driver.gpu_of_address(x.address), driver.gpu_of_address(out.numpy().ctypes.data))
    event = driver.event()
    event.record()
    event.synchronize()
    del x, out, event
print(json.dumps(sorted({name for name, status in calls if status})))
print(json.dumps(sorted(set(level_zero.FUNCTIONS) - {name for name, _ in calls})))
"""
MISTAKES = """
print("mistakes")
code = weft.compile(weft.ASTSource(add, TYPES, {"BLOCK": 256}), "xpu:pvc").asm["spirv"]
facts = {"name": "add", "shared": 0, "num_warps": 4, "warp_size": 16, "params": list(TYPES.values())}

def tried(what):
    try:
        what()
        print("nothing was raised")
    except (LaunchError, LaunchTypeError, OutOfResources) as error:
        print(type(error).__name__, str(error).splitlines()[0])

tried(lambda: driver.load(code, {**facts, "name": "other"}))
tried(lambda: driver.load(code, {**facts, "num_warps": 8}))
tried(lambda: driver.load(code, {**facts, "num_warps": 128}))
host = np.ones(1000, np.float32)
launch = driver.load(code, facts).launcher("QQqf4x", lambda: 0)
tried(lambda: launch(1, 1, 1, host.ctypes.data, host.ctypes.data, 1000, 1.0))
tried(lambda: driver.load(code, facts).launcher("QQ", lambda: 0))
with weft.target("xpu:pvc"):
    tried(lambda: add[(4,)](host, host, 1000, 2.5, BLOCK=256))
gpu = driver.current_device()
launch(2, 1, 1, driver.allocate(1024, gpu), driver.allocate(1024, gpu), 256, 1.0)      # all is well behind errors
gpu.synchronize()
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The lines that the parts of the program print in that mode."""
    tmp_path = tmp_path_factory.mktemp("captured")
    cache = {"WEFT_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "program.py").write_text(BEGIN + LAUNCH + MISTAKES)  # kernels are read from a file
    done = subprocess.run(
        [sys.executable, "program.py"],
        check=False, cwd=tmp_path, env={**os.environ, **CAPTURE, **cache, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    if lines == ["no driver"]:
        pytest.skip("Level Zero's loader or Intel's driver is not installed")
    at = lines.index("mistakes")
    return {"launch": lines[:at], "mistakes": lines[at + 1 :]}


def test_every_call_of_a_launch_succeeds(captured: dict[str, list[str]]) -> None:
    lines = captured["launch"]
    assert lines[0] == "xpu:pvc 0xbd5 131072 1024"
    assert lines[1:4] == ["128 0 1024", "256 0 512", "(1000,) 0 None"]
    assert lines[4] == "[]"  # no result that is no success
    assert set(json.loads(lines[5])) <= NOT_CALLED


def test_what_is_wrong_is_an_error_of_ours(captured: dict[str, list[str]]) -> None:
    lines = captured["mistakes"]
    assert lines[:3] == [
        "LaunchError the launch of other failed: ZE_RESULT_ERROR_INVALID_KERNEL_NAME",
        "LaunchError the launch of add failed: ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION",
        "OutOfResources out of resource: threads, Required: 2048, Hardware limit: 1024.",
    ]
    assert lines[3] == "LaunchError the launch of add failed: ZE_RESULT_ERROR_INVALID_ARGUMENT"
    assert lines[4] == "LaunchError 2 parameters were given for `add`, which takes 4"
    assert lines[5].startswith("LaunchError argument `x`: a numpy.ndarray lives in host memory")
    assert len(lines) == 6
