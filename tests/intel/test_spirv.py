"""Kernels for Intel's GPUs as SPIR-V: what a module has, and that a validator takes it where there is one.

pytest tests/intel/test_spirv.py -m "slow or not slow"      # all kernels of the suite; otherwise a part
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.language as tl
from kernels import load_cases
from weft.backends.intel import Module, checked, machine, server
from weft.backends.intel.module import defined_twice
from weft.base import CompilerCrash, LaunchTypeError
from weft.machines.intel import ROWS

CASES = load_cases("weft")
OF = 12
"""One case of so many is in the part."""
BUILTINS = "__spirv_BuiltIn"


def _validator() -> str | None:
    """Where spirv-val is: beside this Python, or on the path."""
    return shutil.which("spirv-val", path=str(Path(sys.executable).parent)) or shutil.which("spirv-val")


def compiled(name: str, target: str = "xpu:pvc") -> Any:
    """A kernel of the suite."""
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    return weft.compile(weft.ASTSource(case.kernel, types, values, attributes), target, case.options)


def _cases() -> Iterator[Any]:
    for name in CASES:
        part = zlib.crc32(name.encode()) % OF == 0
        yield pytest.param(name, marks=() if part else pytest.mark.slow)


@pytest.mark.parametrize("name", list(_cases()))
@pytest.mark.thinned(2)
def test_modules_are_valid(name: str, tmp_path: Path) -> None:
    kernel = compiled(name)
    module = Module.of(kernel.asm["spirv"])
    assert module.kernels == (kernel.metadata.name,) and module.version == (1, 2)
    assert all(imported.startswith(BUILTINS) for imported in module.imports)
    assert list(module.extensions) == kernel.metadata.extensions
    if (validator := _validator()) is not None:
        file = tmp_path / "kernel.spv"
        file.write_bytes(kernel.asm["spirv"])
        done = subprocess.run([validator, "--target-env", "spv1.2", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_products_are_dpas() -> None:
    kernel = compiled("matmul_f16")
    assert "isa=dpas.8x16x16.f32.f16.f16" in kernel.asm["lane"]
    assert set(kernel.metadata.extensions) == {
        "SPV_INTEL_subgroup_matrix_multiply_accumulate", "SPV_INTEL_2d_block_io"
    }  # fmt: skip
    assert "SubgroupMatrixMultiplyAccumulateINTEL" in kernel.asm["llir"]
    assert kernel.metadata.warp_size == 16


def test_older_compilers_are_given_functions_for_products() -> None:
    case = CASES["matmul_f16"]
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    kernel = weft.compile(source, "xpu:pvc", {**case.options, "imported_products": True})
    name = "_Z38intel_sub_group_f16_f16_matrix_mad_k16Dv8_sDv8_iDv8_f"
    assert kernel.metadata.imports == [name] and name in Module.of(kernel.asm["spirv"]).imports
    assert "SPV_INTEL_subgroup_matrix_multiply_accumulate" not in kernel.metadata.extensions
    with pytest.raises(LaunchTypeError, match="imported_products must be True or False, got 3"):
        weft.compile(source, "xpu:pvc", {"imported_products": 3})


def test_products_of_dg2_are_dpas_of_8_columns() -> None:
    kernel = compiled("matmul_f16", "xpu:dg2")
    assert "isa=dpas.8x8x16.f32.f16.f16" in kernel.asm["lane"]
    assert kernel.metadata.warp_size == 8
    assert kernel.metadata.extensions == ["SPV_INTEL_subgroup_matrix_multiply_accumulate"]


def test_every_processor_is_compiled_for() -> None:
    for row in ROWS:
        assert Module.of(compiled("vector_add", row.name).asm["spirv"]).kernels == ("vector_add",)


def test_an_unknown_device_names_those_that_there_are() -> None:
    with pytest.raises(weft.Unsupported, match="xpu:pv2") as caught:
        compiled("vector_add", "xpu:pv2")
    assert "did you mean xpu:pvc? " in str(caught.value)


@weft.jit
def reads_a_clock(out):
    tl.store(out, tl.extra.cuda.globaltimer())


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(weft.Unsupported, match="inline assembly is not supported on target xpu:pvc"):
        weft.compile(weft.ASTSource(reads_a_clock, {"out": "*i64"}), "xpu:pvc")


def test_what_is_no_spirv_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with 0x07230203"):
        Module.of(b"\0" * 40)
    code = compiled("vector_add").asm["spirv"]
    with pytest.raises(ValueError, match="is no instruction of SPIR-V"):
        Module.of(code[:20] + b"\xff\xff\xff\xff" + code[24:])


def test_an_id_that_is_defined_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    code: bytes = compiled("vector_add").asm["spirv"]
    words = [int.from_bytes(code[i : i + 4], "little") for i in range(0, len(code), 4)]
    labels = [i + 1 for i, word in enumerate(words) if word == 2 << 16 | 248]
    words[labels[-1]] = words[labels[0]]
    broken = b"".join(word.to_bytes(4, "little") for word in words)
    assert defined_twice(broken) == {words[labels[0]]} and not defined_twice(code)
    monkeypatch.setattr(server, "asked", lambda text: (0, broken))
    with pytest.raises(CompilerCrash, match="gave two things in the module one id"):
        machine.spirv("")


KERNEL = "define spir_kernel void @k(ptr addrspace(1) %p) {\n  store i32 1, ptr addrspace(1) %p\n  ret void\n}\n"


@weft.jit
def turned(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    angle = tl.load(x + i)
    tl.store(out + i, tl.sin(angle) + tl.cos(angle))


@pytest.mark.parametrize(("target", "needs"), [("xpu:dg2", False), ("xpu:dg2:simd", False), ("xpu:pvc", True)])
def test_sines_need_no_float64_where_there_is_none(target: str, needs: bool) -> None:
    kernel = weft.compile(weft.ASTSource(turned, {"x": "*fp32", "out": "*fp32"}, {"BLOCK": 64}), target)
    assert Module.of(kernel.asm["spirv"]).needs_float64 == needs


WAYS = (lambda text: machine.Fork.waiting().answer(text), machine._started, lambda text: server.asked(text.encode()))


@pytest.mark.parametrize("way", WAYS)
def test_each_module_is_made_in_a_process_of_its_own(way: Any) -> None:
    status, code = way(KERNEL)
    assert status == 0 and Module.of(code).kernels == ("k",)
    status, said = way("define nonsense")
    assert status == machine.REFUSED and b"LLVM refuses the code" in said
    status, _ = way(KERNEL.replace("ret void", "call void asm sideeffect \"nop\", \"\"()\n  ret void"))
    assert status not in (0, machine.REFUSED)  # LLVM has ended the child


def test_a_server_that_has_ended_is_started_again() -> None:
    assert server.asked(KERNEL.encode())[0] == 0
    first = server.started()
    first.kill()
    first.wait()
    status, code = server.asked(KERNEL.encode())
    assert status == 0 and Module.of(code).kernels == ("k",) and server.started().pid != first.pid


def test_an_interrupted_answer_is_not_that_of_the_next_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(pipe: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(server, "_message", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.asked(KERNEL.encode())
    status, code = server.asked(KERNEL.replace("@k(", "@other(").encode())
    assert status == 0 and Module.of(code).kernels == ("other",)


def test_modules_do_not_depend_on_those_before_them() -> None:
    names = ("vector_add", "running_sums", "softmax")
    texts = [compiled(name).asm["llir"] for name in names]
    for text in texts * 20:
        assert not defined_twice(machine.spirv(text))


def test_a_call_that_stayed_an_import_is_found() -> None:
    code: bytes = compiled("vector_add").asm["spirv"]
    renamed = code.replace(b"__spirv_BuiltInWorkgroupId", b"__spirv_NothingWorkgroupId")
    assert renamed != code
    with pytest.raises(CompilerCrash, match="SPIR-V has no function of the name __spirv_NothingWorkgroupId"):
        checked(renamed)
