"""What PyTorch's Inductor asks of the package `triton`: files, pickles, child processes, a module read op by op."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

HEAD = """
import weft, weft.compat
weft.compat.install()
import triton
import triton.language as tl
from triton.compiler.compiler import ASTSource
from triton.backends.compiler import GPUTarget

@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

def source():
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return ASTSource(double, types, {"BLOCK": 128}, {(0,): [["tt.divisibility", 16]]})
"""

ASSEMBLER = """#!/bin/sh
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then out=$2; fi; shift; done
[ -n "$out" ] && printf '\\177ELF of a test' > "$out"
exit 0
"""


def run(body: str, folder: Path, **env: str) -> str:
    script = folder / "script.py"
    script.write_text(HEAD + textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def assembler(tmp_path: Path) -> str:
    """A program in the place of ptxas: where there is none, the files of a kernel are tested all the same."""
    if sys.platform == "win32":
        pytest.skip("the program in the place of ptxas is a shell script")
    path = tmp_path / "ptxas"
    path.write_text(ASSEMBLER)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


# -- files ------------------------------------------------------------------------------------------------------------


def test_machine_code_lies_where_inductor_launches_it_from(tmp_path: Path, assembler: str) -> None:
    """`<TRITON_CACHE_DIR>/<key in base 32>/<kernel>.cubin`; as in Triton 3.6 there is no key in base 64."""
    run(
        """
        import json, os
        from triton.runtime import cache
        kernel = triton.compile(source(), target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        assert not hasattr(cache, "_base64")
        print(json.dumps([cache._base32(kernel.hash), kernel.metadata_group]))
        again = triton.compile(source(), target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        assert again.metadata_group == kernel.metadata_group
        """,
        tmp_path,
        WEFT_PTXAS=assembler,
        TRITON_CACHE_DIR=str(tmp_path / "kernels"),
    )
    (folder,) = [path for path in (tmp_path / "kernels").iterdir() if path.is_dir()]
    assert (folder / "double.cubin").read_bytes() == b"\x7fELF of a test"
    assert ".visible .entry double" in (folder / "double.ptx").read_text()
    assert json.loads((folder / "double.json").read_text())["num_warps"] == 4
    group = json.loads((folder / "__grp__double.json").read_text())["child_paths"]
    assert group["double.cubin"] == str(folder / "double.cubin")
    assert {path.name for path in folder.iterdir()} == {*group, "__grp__double.json"}


def test_no_files_without_a_cache(tmp_path: Path, assembler: str) -> None:
    run(
        """
        kernel = triton.compile(source(), target=GPUTarget("cuda", 90, 32))
        assert kernel.asm["cubin"].startswith(b"\\x7fELF") and kernel.metadata_group == {}
        """,
        tmp_path,
        WEFT_PTXAS=assembler,
        WEFT_NO_CACHE="1",
        TRITON_CACHE_DIR=str(tmp_path / "kernels"),
    )
    assert not (tmp_path / "kernels").exists()


def test_files_that_cannot_be_written_cost_a_warning(tmp_path: Path, assembler: str) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a directory should be")
    run(
        f"""
        import os, warnings
        os.environ["TRITON_CACHE_DIR"] = {str(blocked)!r}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            kernel = triton.compile(source(), target=GPUTarget("cuda", 90, 32))
        assert kernel.metadata_group == {{}} and kernel.asm["cubin"]
        assert any("the files of double cannot be written" in str(w.message) for w in seen), seen
        """,
        tmp_path,
        WEFT_PTXAS=assembler,
        WEFT_CACHE_DIR=str(tmp_path / "cache"),
    )


# -- pickles ----------------------------------------------------------------------------------------------------------


def test_what_inductor_pickles_of_a_compiled_kernel(tmp_path: Path, assembler: str) -> None:
    """The attributes of a kernel whose function was taken away: as a compile worker hands it to its parent."""
    run(
        """
        import copy, pickle
        kernel = triton.compile(source(), target=GPUTarget("cuda", 90, 32))
        names, number = double.arg_names, double.constexprs
        double.fn = double.__globals__ = double.used_global_vals = double._hash_lock = None
        state = {**kernel.__dict__, "module": None, "function": None, "run": None}
        for other in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
            fn = other["src"].fn
            assert fn is not double and fn.fn is None and fn.__name__ == "double"
            assert (fn.arg_names, fn.constexprs) == (names, number) and fn.params[3].is_constexpr
            assert fn.src == double.src and fn.cache_key == double.cache_key and fn.repr(fn) == "double"
            assert other["asm"]["cubin"] == kernel.asm["cubin"] and other["src"].signature == kernel.src.signature
        """,
        tmp_path,
        WEFT_PTXAS=assembler,
        WEFT_CACHE_DIR=str(tmp_path / "cache"),
    )


def test_launchers_of_others_are_pickled_as_they_say(tmp_path: Path) -> None:
    """Inductor's own autotuner is a `KernelInterface` with `__getstate__`."""
    run(
        """
        import copy, pickle
        from triton.runtime.jit import KernelInterface
        class Tuner(KernelInterface):
            def __init__(self):
                self.fn, self.lock = double, "held"
            def __getstate__(self):
                return {**self.__dict__, "lock": None}
        tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=[])(double)
        double.fn = None
        for other in (pickle.loads(pickle.dumps(Tuner())), copy.deepcopy(Tuner())):
            assert other.lock is None and other.fn.__name__ == "double"
        assert copy.copy(Tuner()).fn is double
        try:
            pickle.dumps(tuned)
        except pickle.PicklingError as error:
            assert "lost its function" in str(error)
        else:
            raise AssertionError("pickled")
        """,
        tmp_path,
    )


# -- child processes --------------------------------------------------------------------------------------------------

ASK = "import triton, triton.language as tl; print(triton.__file__, tl.__name__)"


@pytest.mark.parametrize("weft_is_there", [True, False])
def test_children_with_this_path_find_weft(tmp_path: Path, weft_is_there: bool) -> None:
    """PyTorch starts its compile workers with PYTHONPATH as this process's `sys.path`."""
    body = f"""
    import os, subprocess, sys
    path = [p for p in sys.path if {weft_is_there} or p.startswith(os.path.dirname(weft.__file__))]
    env = {{**os.environ, "PYTHONPATH": os.pathsep.join(path)}}
    print(subprocess.run([sys.executable, "-c", {ASK!r}], env=env, capture_output=True, text=True, check=True).stdout)
    """
    found = SRC / "weft" if weft_is_there else _installed(tmp_path)
    assert run(body, tmp_path).split() == [str(found / "compat/shim/__init__.py"), "weft.language"]


def _installed(folder: Path) -> Path:
    """The package that is installed, which need not be the one that is tested."""
    command = [sys.executable, "-c", "import weft; print(weft.__file__)"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if "No module named 'weft'" in done.stderr:
        pytest.skip("this Python has no Weft but the one that is tested")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip()).parent


def test_other_children_find_what_is_installed(tmp_path: Path) -> None:
    body = f"""
    import subprocess, sys
    done = subprocess.run([sys.executable, "-c", {ASK!r}], capture_output=True, text=True)
    assert "compat" not in done.stdout, done.stdout
    weft.compat.uninstall()
    assert not any("compat" in path for path in sys.path)
    """
    run(body, tmp_path)


def test_spawned_processes_find_weft(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def where(_):\n    import triton\n    return triton.__file__\n")
    body = """
    import multiprocessing
    import work
    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(work.where, [0])[0])
    """
    head = "import weft.compat\nif __name__ == '__main__':\n    weft.compat.install()\n"
    script = tmp_path / "spawn.py"
    script.write_text(head + textwrap.dedent(body))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == str(SRC / "weft/compat/shim/__init__.py"), done.stderr


# -- options ---------------------------------------------------------------------------------------------------------


def test_options_are_told_from_parameters_by_name(tmp_path: Path) -> None:
    """A launch within torch.compile may say `maxnreg=64`: Inductor asks the back end whether that is an option."""
    run(
        """
        from triton.backends import BaseBackend, DriverBase
        from triton.compiler.compiler import make_backend
        backend = make_backend(GPUTarget("cuda", 90, 32))
        assert isinstance(backend, BaseBackend)
        names = "num_warps num_stages num_ctas maxnreg launch_pdl launch_cooperative_grid warp_size arch debug".split()
        assert not set(names) - set(vars(backend.parse_options({})))
        assert backend.parse_options({"maxnreg": 64}).maxnreg == 64
        assert "fp8e4nv" in backend.parse_options({}).supported_fp8_dtypes
        """,
        tmp_path,
    )


# -- a module, read operation by operation ----------------------------------------------------------------------------


def test_a_module_is_walked_from_within(tmp_path: Path) -> None:
    run(
        """
        from types import SimpleNamespace
        from triton.compiler.compiler import make_backend
        backend = make_backend(GPUTarget("cuda", 90, 32))
        options = backend.parse_options({})
        context = triton._C.libtriton.ir.context()
        triton._C.libtriton.ir.load_dialects(context)
        backend.load_dialects(context)
        module = source().make_ir(GPUTarget("cuda", 90, 32), options, {}, {}, context)
        assert module.verify() and "tt.func public @double" in str(module) == module.str()
        seen = []
        module.walk(seen.append)
        names = [op.get_name() for op in seen]
        assert names[-3:] == ["tt.return", "tt.func", "builtin.module"] and names.count("tt.store") == 1
        function, store = seen[-2], seen[names.index("tt.store")]
        assert function.get_str_attr("sym_name") == "double" and function.get_str_attr("nothing") is None
        made = {op.get_result(i).id(): op for op in seen for i in range(op.get_num_results())}
        address = made[store.get_operand(0).id()]
        assert address.get_name() == "tt.addptr" and store.get_num_results() == 0
        block = store.get_block()
        assert block.id() == address.get_block().id() and block.get_parent().id() == function.get_region(0).id()
        assert block.get_num_arguments() == 3 and function.get_num_regions() == 1
        splat = made[address.get_operand(0).id()]
        assert splat.get_operand(0).id() == block.get_argument(1).id()
        assert seen[-1].get_block() is None
        """,
        tmp_path,
    )


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the analysis is PyTorch's")
def test_pytorch_finds_what_a_kernel_writes(tmp_path: Path) -> None:
    run(
        """
        import torch
        import torch._higher_order_ops.triton_kernel_wrap as wrap

        def written(kernel, **arguments):
            if hasattr(wrap, "identify_mutated_tensors"):
                return wrap.identify_mutated_tensors(kernel, arguments, {})
            found = wrap.identify_accessed_tensors(kernel, arguments, {})  # PyTorch 2.12 and newer
            return [dep.name for dep in found.read_writes.writes]

        @triton.jit
        def several(x, y, out, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            p, q = x + i, y + i
            for k in range(0, n, BLOCK):
                if k % 2 == 0:
                    q += 1
                tl.store(q, tl.load(p) + tl.sum(tl.cumsum(tl.load(p), 0)))
                p += BLOCK
                q += BLOCK
            while tl.load(out) < 3:
                tl.atomic_add(out, 1.0)

        t = torch.empty(128)
        assert written(double, x=t, out=t, n=128, BLOCK=64) == ["out"]
        found = written(several, x=t, y=t, out=t, n=128, BLOCK=64)
        assert sorted(found) == ["out", "y"], found
        """,
        tmp_path,
    )


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="Inductor is PyTorch's")
def test_inductor_writes_kernels_for_the_cpu(tmp_path: Path) -> None:
    run(
        """
        import torch
        from torch._inductor import config
        config.cpu_backend, config.compile_threads = "triton", 1

        def work(x, y):
            return torch.softmax(x, -1) + y, (x * y).sum(0), y.argmax(-1), x.cumsum(-1), x[y[:, 0].long() % 7]

        x, y = torch.randn(33, 300), torch.randn(33, 300)
        for got, wanted in zip(torch.compile(work)(x, y), work(x, y), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
        """,
        tmp_path,
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
    )
