"""`import triton` finds Weft: in a process of its own, so that nothing else here is touched."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from children import environment

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python code, or with arguments a command line."""
    command = [sys.executable, *args] if args else [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(
        command,
        env=environment(**env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=180,
    )


def check(code: str) -> str:
    done = run("import weft.compat; weft.compat.install()\n" + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    return done.stdout


IMPORTS = """
import triton
import triton.language as tl
import triton.language.extra.libdevice
import triton.language.core
import triton.language.math
import triton.language.semantic
import triton.language.standard
import triton.runtime
import triton.runtime.driver
import triton.runtime.jit
import triton.runtime.autotuner
import triton.runtime.cache
import triton.runtime.errors
import triton.runtime.interpreter
import triton.compiler
import triton.compiler.compiler
import triton.compiler.errors
import triton.compiler.code_generator
import triton.backends
import triton.backends.compiler
import triton.backends.driver
import triton.knobs
import triton.testing
import triton.errors
import triton.tools
import triton.tools.tensor_descriptor
import triton._utils
from triton import cdiv, jit, autotune, heuristics, Config, next_power_of_2
from triton.language import constexpr, float32
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.cuda.libdevice import rsqrt
from triton.runtime import driver, JITFunction, Autotuner
from triton.runtime.jit import KernelInterface, MockTensor, TensorWrapper, reinterpret
from triton.runtime.autotuner import OutOfResources, Heuristics
from triton.runtime.errors import PTXASError
from triton.runtime.cache import get_cache_manager, triton_key, _base32
from triton.compiler.compiler import ASTSource, CompiledKernel, make_backend
from triton.compiler.errors import CompilationError
from triton.backends.compiler import GPUTarget, BaseBackend
from triton.tools.tensor_descriptor import TensorDescriptor
from triton.testing import do_bench, perf_report, Benchmark
"""

NAMES = """AsyncCompileMode autotune cdiv CompilationError compile Config constexpr_function FutureKernel heuristics
InterpreterError jit JITFunction KernelInterface language MockTensor must_use_result next_power_of_2 OutOfResources
reinterpret runtime set_allocator TensorWrapper TritonError testing tools"""


def test_everything_that_libraries_import() -> None:
    check(
        IMPORTS
        + f"""
import sys, weft, importlib.metadata
assert triton.__version__ == importlib.metadata.version("triton") == "3.6.0"
assert triton.language is weft.language and triton.language.core is weft.language.core
assert weft.language.__spec__.name == weft.language.__name__ == "weft.language"
assert triton.runtime.driver.active.get_current_target().backend == "cpu"
assert driver is triton.runtime.driver
assert driver.active.utils.get_device_properties(0)["multiprocessor_count"] >= 1
assert "cpu" in triton.backends.backends and triton.backends.backends["cpu"].driver.is_active()
nvidia = triton.backends.backends["nvidia"]
assert nvidia.driver.is_active() in (True, False) and nvidia.compiler.supports_target(GPUTarget("cuda", 90, 32))
made = triton.compiler.compiler.make_backend(GPUTarget("cuda", 90, 32))
assert made.binary_ext == "cubin" and len(made.hash()) == 64 and made.parse_options({{"num_warps": 8}}).num_warps == 8
assert make_backend(driver.active.get_current_target()).parse_options({{"num_warps": 8}}).num_warps == 8
made = make_backend(GPUTarget("hip", "gfx942", 64))
options = made.parse_options({{"num_warps": 8}})
assert made.binary_ext == "hsaco" and (options.arch, options.warp_size, options.kpack) == ("gfx942", 64, 1)
assert options.default_dot_input_precision == "ieee" and triton.backends.backends["amd"].driver.is_active() is False
missing = [name for name in {NAMES.split()!r} if not hasattr(triton, name)]
assert not missing, missing
assert len(triton.language.__all__) >= 140
"""
    )


@pytest.mark.parametrize("name", ["triton.profiler", "triton._C.libtriton.passes", "triton.nothing"])
def test_what_is_not_there_is_an_import_error(name: str) -> None:
    assert "ok" in check(f"""
        try:
            import {name}
        except ModuleNotFoundError as error:
            print("ok", error)
        """)


def test_uninstall() -> None:
    check("""
        import sys, triton
        weft.compat.uninstall()
        assert "triton" not in sys.modules and not weft.compat.installed()
        weft.compat.install()
        import triton
        assert triton.__version__ == "3.6.0"
        """)


def test_a_triton_that_is_loaded_already() -> None:
    done = run("""
        import sys, types
        sys.modules["triton"] = real = types.ModuleType("triton")
        real.__file__ = "elsewhere"
        import weft.compat
        try:
            weft.compat.install()
        except weft.WeftError as error:
            assert "imported already, from elsewhere" in str(error)
        else:
            raise SystemExit("no error")
        weft.compat.install(replace=True)
        import triton
        assert triton.jit is weft.jit
        """)
    assert done.returncode == 0, done.stderr


SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 32})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def double(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x + i, tl.load(x + i) * 2)
    else:
        tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

if __name__ == "__main__":
    n = int(sys.argv[1])
    x = np.arange(n, dtype=np.float32)
    double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
    print(sys.argv, x.sum(), triton.__version__, __name__)
"""


def test_running_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run("", "-m", "weft", "run", str(script), "100", "--flag", WEFT_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"['{script}',", "'100',", "'--flag']", "9900.0", "3.6.0", "__main__"]
    module = run("", "-m", "weft", "run", "-m", "script", "64", cwd=tmp_path, WEFT_CACHE_DIR=str(tmp_path / "cache"))
    assert "4032.0" in module.stdout, module.stderr


def test_tritons_cache_directory_counts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run("", "-m", "weft", "run", str(script), "10", TRITON_CACHE_DIR=str(tmp_path / "tc"), WEFT_CACHE_DIR="")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "tc").glob("*.weft"))


def test_command_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {"WEFT_CACHE_DIR": str(tmp_path / "cache")}
    run("", "-m", "weft", "run", str(script), "10", **env)
    listing = run("", "-m", "weft", "cache", "ls", **env).stdout
    assert "double" in listing and "1 kernels" in listing
    assert run("", "-m", "weft", "cache", "dir", **env).stdout.strip() == env["WEFT_CACHE_DIR"]
    assert "1 entries, 0 damaged" in run("", "-m", "weft", "cache", "verify", **env).stdout
    (entry,) = (tmp_path / "cache").glob("*.weft")
    entry.write_bytes(b"broken")
    bad = run("", "-m", "weft", "cache", "verify", **env)
    assert bad.returncode == 1 and "1 damaged" in bad.stdout
    assert run("", "-m", "weft", "cache", "verify", "--remove", **env).returncode == 0
    run("", "-m", "weft", "run", str(script), "10", **env)
    assert "1 entries removed" in run("", "-m", "weft", "cache", "prune", "--size", "0", **env).stdout
    info = run("", "-m", "weft", "info", "--settings", **env).stdout
    assert "processor" in info and "WEFT_CACHE_DIR" in info
    assert run("", "-m", "weft", "run", "nothing.py").returncode == 2
    assert run("", "-m", "weft", "--version").stdout.startswith("weft ")


TORCH = """
import torch
from torch.utils._triton import has_triton_package
assert has_triton_package()
import triton, triton.language as tl

@triton.jit
def double(x):
    tl.store(x + tl.arange(0, 8), tl.load(x + tl.arange(0, 8)) * 2)

x = torch.ones(8, dtype=torch.bfloat16)
double[(1,)](x)
assert (x == 2).all()
"""


def test_torch_finds_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(TORCH)
    done = run("", "-m", "weft", "run", str(script), WEFT_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr


PERSISTENT = """
import torch
import triton, triton.language as tl
from triton.runtime import driver

DEVICE = triton.runtime.driver.active.get_active_torch_device()
properties = driver.active.utils.get_device_properties(DEVICE.index)

@triton.jit
def softmax(out, x, stride, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=num_stages):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + i, mask=i < columns, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * stride + i, e / tl.sum(e, axis=0), mask=i < columns)

x = torch.randn(100, 781, device=DEVICE)
out = torch.empty_like(x)
rows, columns = x.shape
BLOCK = triton.next_power_of_2(columns)
kernel = softmax.warmup(out, x, x.stride(0), rows, columns, BLOCK=BLOCK, num_stages=2, num_warps=8, grid=(1,))
kernel._init_handles()
occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * 8)
occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
programs = min(properties["multiprocessor_count"] * occupancy, rows)
softmax[(programs, 1, 1)](out, x, x.stride(0), rows, columns, BLOCK, 2)
torch.testing.assert_close(out, torch.softmax(x, 1))
"""


def test_a_persistent_kernel_that_asks_for_the_device(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(PERSISTENT)
    done = run("", "-m", "weft", "run", str(script), WEFT_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
