"""`triton._internal_testing`, `triton._filecheck`, `triton._C.libtriton.gluon_ir`: what Triton's own tests import."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """
import weft, weft.compat
weft.compat.install()
import triton
import triton.language as tl
"""

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="makes arrays with PyTorch")
needs_filecheck = pytest.mark.skipif(importlib.util.find_spec("filecheck") is None, reason="reads CHECK comments")


def run(source: str, folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(HEAD + textwrap.dedent(source))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_torch
def test_questions_about_the_target(tmp_path: Path) -> None:
    told = run(
        """
        from triton._internal_testing import *
        def answers():
            return [f() for f in (is_cuda, is_ampere_or_newer, is_hopper, is_hopper_or_newer, is_blackwell, is_hip,
                                  supports_tma, supports_ws)]
        print(answers(), is_interpreter(), is_hip_cdna3())
        for name in ("sim:cuda:80", "sim:cuda:90"):
            with weft.target(name):
                print(answers())
        """,
        tmp_path,
    )
    assert told.splitlines() == [
        "[False, False, False, False, False, False, True, True] False False",
        "[True, True, False, False, False, False, False, False]",
        "[True, True, True, True, False, False, True, True]",
    ]


@needs_torch
def test_arrays_and_settings(tmp_path: Path) -> None:
    run(
        """
        import numpy as np, os, torch
        from triton import knobs
        from triton._internal_testing import _fresh_knobs_impl, numpy_random, run_in_process, to_numpy, to_triton
        for name in ("int8", "uint16", "uint64", "float32", "float64", "bool"):
            x = numpy_random((4, 8), name)
            assert x.shape == (4, 8) and x.dtype.name == name
            assert np.array_equal(to_numpy(to_triton(x, "cpu")), x)
        assert to_triton(numpy_random(4, "bfloat16"), "cpu", "bfloat16").dtype is torch.bfloat16
        assert to_triton(numpy_random(4, "float8e5"), "cpu", "float8e5").dtype == tl.float8e5
        os.environ["TRITON_PRINT_AUTOTUNING"] = "1"
        knobs.refresh_knobs()
        make, undo = _fresh_knobs_impl()
        assert knobs.autotuning.print and not make().autotuning.print
        undo()
        assert knobs.autotuning.print
        def fails(n):
            import sys
            print("told", n, file=sys.stderr)
            raise ValueError(n)
        result = run_in_process(fails, (3,))
        assert isinstance(result.exc, ValueError) and result.driver_stderr_output == "told 3\\n", result
        """,
        tmp_path,
    )


@needs_filecheck
def test_the_ir_of_a_kernel_and_its_comments(tmp_path: Path) -> None:
    run(
        """
        from triton._filecheck import filecheck_test, run_filecheck_test, run_parser
        from triton.runtime.jit import MockTensor

        @triton.jit
        def kernel(x, SIZE: tl.constexpr):
            # CHECK: make_range {end = 8 : i32, start = 0 : i32}
            i = tl.arange(0, SIZE)
            # CHECK: tt.store
            # CHECK-NEXT: tt.return
            tl.store(x + i, i)

        run_filecheck_test(kernel, (MockTensor(tl.int32), 8))
        module = run_parser(kernel, (MockTensor(tl.int32), 8))
        assert module.verify() and "loc(" not in module.str_nodebug()
        try:
            run_filecheck_test(kernel, (MockTensor(tl.int32), 16))
        except ValueError as error:
            assert "tt.make_range" in str(error)
        else:
            raise AssertionError("the comments do not fit")

        @filecheck_test
        @triton.jit
        def alone():
            # CHECK-LABEL: alone
            # CHECK: tt.get_program_id x
            tl.program_id(0)

        alone()
        """,
        tmp_path,
    )


def test_bases_of_a_cluster(tmp_path: Path) -> None:
    told = run(
        """
        from triton._C.libtriton.gluon_ir import make_cga_layout
        print(make_cga_layout([4, 4], [2, 2], [0, 1]), make_cga_layout([1, 4], [1, 2], [1, 0]))
        print(triton.aggregate is tl.core._aggregate)
        """,
        tmp_path,
    )
    assert told.splitlines() == ["[[1, 0], [0, 0], [0, 1], [0, 0]] [[0, 1], [0, 0]]", "True"]


@needs_torch
def test_products_by_the_library_that_tutorials_compare_with(tmp_path: Path) -> None:
    run(
        """
        import torch
        from triton._C.libtriton import native_specialize_impl, nvidia
        from triton.backends.amd.compiler import HIPBackend
        from triton.backends.nvidia.compiler import CUDABackend
        from triton.tools import LinearLayout
        blas = nvidia.cublas.CublasLt(torch.empty(16))
        a, b, c = torch.randn(8, 16), torch.randn(4, 16), torch.randn(8, 4)
        d = torch.empty(8, 4)
        blas.matmul(a, b, d)
        assert torch.allclose(d, a @ b.T)
        blas.gemm(a, b, c, d, 2.0, 0.5)
        assert torch.allclose(d, 2 * a @ b.T + c / 2, atol=1e-5)
        assert native_specialize_impl(CUDABackend, 32, False, True, True) == ("i32", "D")
        small = torch.empty(16)
        for backend, key in ((CUDABackend, "D"), (HIPBackend, "DS")):
            assert native_specialize_impl(backend, small, True, True, True) == ("*kfp32", key)
        assert native_specialize_impl(HIPBackend, small, True, False, True) == ("*kfp32", None)
        described = triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(torch.empty(8, 16), [8, 16])
        seen = native_specialize_impl(CUDABackend, described, False, True, True)
        assert seen == ("tensordesc<fp32[8, 16]>", None), seen
        assert LinearLayout.identity_1d(8, "a", "b").apply({"a": 3}) == {"b": 3}
        assert str(triton.Config({}, ir_override="x.ttir")).endswith("ir_override: x.ttir")
        """,
        tmp_path,
    )


def test_processes_of_their_own_and_kept_ones(tmp_path: Path) -> None:
    run(
        """
        import os, sys, time
        from triton._internal_testing import run_in_process, use_process_pool
        def tells(fails=False):
            os.write(2, str(os.getpid()).encode())
            if fails:
                raise RuntimeError("x" * 1_000_000)
        os.environ["TRITON_TEST_PROCESS_TIMEOUT"] = "0.2"
        try:
            run_in_process(time.sleep, args=(60,))
        except TimeoutError as error:
            assert str(error) == "test subprocess sleep exceeded its 0.2-second timeout"
        os.environ["TRITON_TEST_PROCESS_TIMEOUT"] = "30"
        alone = run_in_process(tells).driver_stderr_output, run_in_process(tells).driver_stderr_output
        assert alone[0] != alone[1]
        with use_process_pool(__name__):
            first, second, failed, other = (run_in_process(tells, a) for a in ((), (), (True,), ()))
        assert first.driver_stderr_output == second.driver_stderr_output == failed.driver_stderr_output
        assert len(str(failed.exc)) == 1_000_000 and other.driver_stderr_output != first.driver_stderr_output
        try:
            run_in_process(os._exit, (3,))
        except RuntimeError as error:
            assert str(error) == "the process ended with 3 before it had a result"
        """,
        tmp_path,
    )


def test_small_things_that_tools_ask(tmp_path: Path) -> None:
    run(
        """
        from triton.runtime.errors import AutotunerError
        from triton.compiler import IRSource
        from triton.tools import LinearLayout
        from weft.base import DeviceAssertionError
        assert str(AutotunerError("no configs")) == "Autotuner error: no configs"
        assert issubclass(DeviceAssertionError, RuntimeError) and issubclass(DeviceAssertionError, AssertionError)
        assert LinearLayout.zeros_1d(8, "i", "o", outDimSize=4).get_matrix_view() == [[0] * 3] * 2
        text = '''module attributes {"ttg.num-warps" = 8 : i32} {
          tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
            tt.return
          }
        }'''
        source = IRSource(text, None, None)
        assert source.signature == {0: "*f32", 1: "i32"} and source.name == "@copy"
        assert source.parse_options() == {"num_warps": 8}
        """,
        tmp_path,
    )


def test_a_failed_assertion_says_what_pytorch_says(tmp_path: Path) -> None:
    told = run(
        """
        import numpy as np
        @triton.jit
        def kernel(x):
            tl.device_assert(tl.load(x) == 1, "one is wanted")
        try:
            kernel[(1,)](np.zeros(1, np.int32), debug=True)
        except RuntimeError as error:
            print(str(error).splitlines()[-1])
        assert triton.runtime._async_compile.active_mode.get() is None
        """,
        tmp_path,
    )
    assert told == "device-side assert triggered\n"
