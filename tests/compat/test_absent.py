"""Public names of Triton that Weft has nothing for: they can be imported, and say so when they are used."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from weft.base import Unsupported
from weft.compat import absent
from weft.compat.shim.tools import disasm
from weft.compat.shim.tools.triton_to_gluon_translator.stable_toposort import stable_toposort


def test_every_name_can_be_imported(tmp_path: Path) -> None:
    lines = [f"import {module}" for module in absent.MODULES]
    lines += [f"from {module} import {', '.join(names)}" for module, names in absent.MODULES.items() if names]
    script = tmp_path / "script.py"
    script.write_text(
        "import weft, weft.compat\nweft.compat.install()\n"
        + "\n".join(lines)
        + textwrap.dedent(
            """
            from triton import _test_runner
            from triton.runtime import _allocation, _async_compile, build
            from triton.backends import amd
            from triton._C.libtriton import interpreter, ir, llvm
            from triton.language.extra.cuda.gdc import gdc_wait
            from triton.language.extra.cuda.utils import smid
            import triton
            assert ir.builder.__module__ == "triton._C.libtriton.ir"
            assert triton.runtime.build is build and triton.compiler.compiler.ASTSource
            try:
                build.compile_module_from_src("", "module")
            except weft.base.Unsupported as error:
                print(error)
            for module in ("triton.profiler", "triton.tools.experimental_descriptor", "triton.runtime.no_such"):
                try:
                    __import__(module)
                except ImportError:
                    continue
                raise AssertionError(module)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "error: triton.runtime.build.compile_module_from_src, which belongs to building C and C++ with the system's "
        "compiler, is not supported\nhint: Weft, which runs as triton here, has nothing for it\n"
    )


def test_use_is_refused_by_name_and_looking_is_not() -> None:
    backend = absent.make_module("triton.backends.amd.compiler").HIPOptions

    class Own(backend):
        pass

    assert not isinstance(1, backend) and issubclass(Own, backend) and not hasattr(backend, "min_dot_size")
    uses = (backend, Own, lambda: backend.hash, lambda: backend[0], lambda: list(backend))
    for use in uses:
        with pytest.raises(Unsupported, match=r"^error: triton\.backends\.amd\.compiler\.HIPOptions, which belongs"):
            use()


def test_definitions_are_ordered() -> None:
    assert stable_toposort({0: [1, 2], 1: [3, 4], 2: [4], 3: [5], 4: [5], 5: []}) == [0, 1, 2, 3, 4, 5]
    assert stable_toposort({3: [1], 1: [2], 2: [1, 4], 4: [4]}) == [3, 1, 2, 4]


def test_machine_code_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    told = """Function : kernel
        /*fff0*/                   LDG.E R0, desc[UR4][R2.64] ;           /* 0x0000000402007981 */
                                                                              /* 0x000ea2000c1e1900 */
        /*10000*/                  EXIT ;                                 /* 0x000000000000794d */
                                                                              /* 0x004fea0003800000 */
    """
    monkeypatch.setattr(disasm, "path_to_cuobjdump", lambda: "cuobjdump")
    monkeypatch.setattr(disasm.subprocess, "check_output", lambda command: told.encode() * (command[1] == "-sass"))
    assert disasm.extract("kernel.cubin", None).splitlines() == [
        "Function:kernel",
        "--:-:2:-:1\tLDG.E R0, desc[UR4][R2.64];",
        "04:-:-:-:5\tEXIT;",
    ]
