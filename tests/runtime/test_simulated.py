"""Launches for a simulated GPU: arrays in, arrays out, a report, and what the checkers find."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.language as tl
import weft.sim
from kernels import load_cases
from kernels.case import Descriptor, copy_arguments
from weft.base import CapturedGlobalError, OptionError


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@weft.jit
def add_without_mask(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets))


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_arrays_in_arrays_out(target: str) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    out = np.zeros(1000, np.float32)
    with weft.target(target):
        add[(4,)](x, y, out, 1000, BLOCK=256)
        add[lambda meta: (weft.cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, 1000, BLOCK=256, num_warps=2)
    assert np.array_equal(out, x + y)
    report = weft.sim.last_run()
    assert report["global_load_bytes"] == 8 * 1000 and report["global_store_bytes"] == 4 * 1000
    out[:] = 0
    add[(4,)](x, y, out, 1000, BLOCK=256)  # the CPU again
    assert np.array_equal(out, x + y)


def test_a_launch_is_the_kernel_of_the_gpu_with_the_report_beside() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with weft.target("sim:cuda:90"):
        made = add[(1,)](x, x, out, 64, BLOCK=64, num_warps=2)
        warm = add.warmup(x, x, out, 64, BLOCK=64, num_warps=2, grid=(1,))
        compiled = weft.compile(made.src)
    assert made.report is weft.sim.last_run() and made.kernel is warm and str(made) == str(made.report)
    assert made["global_store_bytes"] == made.report["global_store_bytes"] == 256 and made.kinds == made.report.kinds
    compiled[(1,)](x, x, out, 64)
    for kernel in (made, warm, compiled):
        assert {"ttir", "ttgir", "lane", "llir", "ptx"} <= set(kernel.asm)
        assert ".target sm_90a" in kernel.asm["ptx"] and "ttg.num-warps" in kernel.asm["ttgir"]
        assert kernel.metadata.target.arch == 90 and kernel.metadata.name == "add"
    assert made.metadata.num_warps == 2 and made.hash != compiled.hash
    with pytest.raises(AttributeError, match="n_refs"):
        _ = made.n_refs


def test_no_text_is_made_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = weft.jit(add.fn)
    monkeypatch.setattr(weft.compiler, "compile", lambda *_, **__: pytest.fail("compiled for the GPU"))
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    made = kernel[(1,)](x, x, out, 64, BLOCK=64, target="sim:cuda:80")
    assert (out == 2 * x).all() and made.report.kinds and "lane" in made.asm and made.shared_bytes == 0


def test_hooks_are_told_of_simulated_launches() -> None:
    told: list[str] = []
    kernel = weft.jit(add.fn)
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with weft.knobs.runtime.scope():
        weft.knobs.runtime.jit_post_compile_hook = lambda **facts: told.append(facts["repr"])
        weft.knobs.runtime.launch_enter_hook = lambda facts: told.append(f"begin {facts.get()['name']}")
        weft.knobs.runtime.launch_exit_hook = lambda facts: told.append("end")
        for _ in range(2):
            kernel[(1,)](x, x, out, 64, BLOCK=64, target="sim:cuda:80")
    assert [line.partition("[")[0] for line in told] == ["add", "begin add", "end", "begin add", "end"]


def test_products_of_float32_are_those_of_the_gpu() -> None:
    """The simulator multiplied float32 as such, where the kernel for the GPU multiplies tf32."""

    @weft.jit
    def square(x, out):
        at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)
        tile = tl.load(x + at)
        tl.store(out + at, tl.dot(tile, tile))

    x, out = np.full((16, 16), 1 + 2**-12, np.float32), np.zeros((16, 16), np.float32)
    made = square[(1,)](x, out, target="sim:cuda:80")
    assert (out == 16).all() and "mma.sync" in made.asm["ptx"] and ".tf32" in made.asm["ptx"]


def test_vectors_are_as_wide_as_they_can_be() -> None:
    x, y, out = (np.zeros(4096, np.float32) for _ in range(3))
    with weft.target("sim:cuda:80"):
        add[(4,)](x, y, out, 4096, BLOCK=1024)
    assert weft.sim.last_run()["global_load_sectors"] == 2 * 4096 * 4 // 32


def test_what_is_outside_is_found() -> None:
    x, out = np.zeros(1000, np.float32), np.zeros(1024, np.float32)
    with weft.target("sim:cuda:80"), pytest.raises(weft.OutOfBoundsError, match=r"test_simulated\.py:\d+") as caught:
        add_without_mask[(4,)](x, out, BLOCK=256)
    assert isinstance(caught.value, weft.sim.OutOfBoundsError)
    assert (caught.value.argument, caught.value.program) == ("x", (3, 0, 0))
    assert "mask" in str(caught.value.hint)


def test_a_simulated_target_is_no_machine() -> None:
    with pytest.raises(weft.Unsupported, match="compiled for cuda:90: use cuda:90 here"):
        weft.compiler.as_target("sim:cuda:90")


def test_unknown_targets() -> None:
    with pytest.raises(weft.Unsupported, match="sim:cuda:80"), weft.target("sim:cuda:12"):
        pass


@pytest.mark.parametrize("name", ["softmax", "matmul_f16", "flash_attention_64", "layer_norm_forward", "join_split"])
def test_kernels(name: str) -> None:
    case = load_cases("weft")[name]
    before = case.make_inputs()
    assert not any(isinstance(v, Descriptor) for v in before.values())
    after = copy_arguments(before)
    with weft.target("sim:cuda:80"):
        case.kernel[case.grid](**after, **case.constexprs, **case.options)
    case.check(before, after)


def test_the_environment_variable(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text(
        "import numpy as np, weft, weft.language as tl, weft.sim\n"
        "@weft.jit\n"
        "def double(x, BLOCK: tl.constexpr):\n"
        "    at = x + tl.arange(0, BLOCK)\n"
        "    tl.store(at, tl.load(at) * 2)\n"
        "x = np.arange(64, dtype=np.float32)\n"
        "double[(1,)](x, BLOCK=64)\n"
        "double[(1,)](x, BLOCK=64)\n"
        "print(x[3], weft.sim.last_run()['global_store_bytes'])\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "WEFT_TARGET": "sim:cuda:80"},
        check=True,
    )
    assert done.stdout.split() == ["12.0", "256"]


@pytest.mark.parametrize("target", ["sim:cuda:80", "cuda:80", "cuda:90", "cpu"])
def test_a_target_for_warmup(target: str) -> None:
    """`warmup` takes a target as a launch does."""

    @weft.jit
    def fill(X, N: tl.constexpr):
        tl.store(X + tl.arange(0, N), 1.0)

    x = np.zeros(32, np.float32)
    kernel = fill.warmup(x, N=32, grid=(1,), target=target)
    wanted = {"sim:cuda:80": "lane", "cpu": "ttir"}.get(target, "ptx")
    assert wanted in kernel.asm and (x == 0).all()
    if wanted == "ptx":
        assert f".target sm_{target[-2:]}" in kernel.asm["ptx"]


FACTOR = tl.constexpr(3)


@weft.jit
def twice(v):
    return v * 2


@weft.jit
def thrice(v):
    return v * 3


@weft.jit
def capturing(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, twice(i) * FACTOR)


def captured(target: str) -> int:
    x = np.zeros(16, np.int32)
    capturing[(1,)](x, BLOCK=16, target=target)
    return int(x[1])


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
def test_what_is_captured_is_looked_at(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that was compiled before ran on."""
    capturing.reset()
    assert captured(target) == 6
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    with pytest.raises(CapturedGlobalError, match="FACTOR"):
        captured(target)
    capturing.reset()
    assert captured(target) == 8
    monkeypatch.setitem(globals(), "twice", thrice)
    assert captured(target) == 12


def test_a_target_is_that_of_a_thread() -> None:
    """Targets were those of the process: threads got each other's, and what one had set could stay."""
    together = threading.Barrier(3)

    def launch(target: str) -> list[str]:
        found = []
        for n in range(10):
            together.wait()
            x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
            with weft.target(target):
                done = add[(1,)](x, x, out, 64, BLOCK=64)
                found.append(weft.runtime.current_target())
            again = add[(1,)](x, x, out, 64, BLOCK=64, target=target)
            assert type(done) is type(again) and (out == 2 * x).all(), n
            found.append(weft.runtime.current_target())
        return found

    targets = ["cpu", "sim:cuda:80", "sim:cuda:90"]
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(launch, targets)) == [[target, "cpu"] * 10 for target in targets]
    assert weft.runtime.current_target() == "cpu"


def test_the_option_arch_says_which_gpu_is_simulated() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    made = add[(1,)](x, x, out, 64, BLOCK=64, target="sim:cuda:90", arch="sm80")
    assert (out == 2 * x).all() and ".target sm_80" in made.asm["ptx"]
    with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+ \(Hopper\)"):
        add[(1,)](x, x, out, 64, BLOCK=64, target="sim:cuda:90", arch="sm80", num_ctas=2)


def test_a_warp_size_that_the_gpu_has_not() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    add[(1,)](x, x, out, 64, BLOCK=64, target="sim:cuda:90", warp_size=32)
    with pytest.raises(OptionError, match="warp_size must be 32 on cuda:90, got 64"):
        add[(1,)](x, x, out, 64, BLOCK=64, target="sim:cuda:90", warp_size=64)


def test_the_setting_override_arch_is_the_option_arch_of_all_kernels(recwarn: pytest.WarningsRecorder) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with weft.knobs.runtime.scope():
        weft.knobs.runtime.override_arch = "sm80"
        made = add.warmup(x, x, out, 64, BLOCK=64, grid=(1,), target="sim:cuda:90")
        assert ".target sm_80" in made.asm["ptx"] and '"cuda:80"' in made.asm["ttgir"]
        made = add.warmup(x, x, out, 64, BLOCK=64, grid=(1,), target="sim:cuda:90", arch="sm90")
        assert ".target sm_90" in made.asm["ptx"]
        with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+ \(Hopper\)"):
            add.warmup(x, x, out, 64, BLOCK=64, grid=(1,), target="sim:cuda:90", num_ctas=2)
    assert not recwarn.list
