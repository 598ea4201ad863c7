"""From a kernel's source to PTX: what `weft.compile` gives for a GPU, printing, assembly."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import CompilationError, NoDevice
from weft.compiler import GPUTarget, compile as compile_source
from weft.compiler.devices import available

from .assembling import code, kinds, needs_ptxas


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@weft.jit
def printing(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print("100% of x", tl.load(x + i), i)
    tl.device_print("n", n, hex=True)
    tl.device_print("here")


@weft.jit
def by_assembly(x, h, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.inline_asm_elementwise("shl.b32 $0, $1, 3;", "=r,r", [a], dtype=tl.int32, is_pure=True, pack=1)
    text: tl.constexpr = "and.b32 $0, $1, 0x0f0f0f0f;"
    c = tl.inline_asm_elementwise(text, "=r,r", [a.to(tl.int8)], dtype=tl.int8, is_pure=True, pack=4)
    u = tl.load(h + i)
    both: tl.constexpr = "mov.b32 $0, $2;\n\tmov.b32 $1, $3;"
    p, q = tl.inline_asm_elementwise(both, "=r,=r,r,r", [a, b], dtype=(tl.int32, tl.int32), is_pure=False, pack=1)
    tl.store(x + i, b + c.to(tl.int32) + p - q)
    doubled = tl.inline_asm_elementwise("add.f16x2 $0, $1, $1;", "=r,r", [u], dtype=tl.float16, is_pure=True, pack=2)
    tl.store(h + i, doubled)


@weft.jit
def counted(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i), BINS))


@weft.jit
def some_rows(x, out, rows, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    value = tl.load(x + i[:, None] * N + j[None, :], mask=i[:, None] < rows, other=0.0)
    tl.store(out + i[:, None] * N + j[None, :], value)


def _compiled(kernel: Any, signature: dict[str, str], target: Any = "cuda:80", **constants: int) -> Any:
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(len(signature))}
    return weft.compile(weft.ASTSource(kernel, signature, constants, aligned), target=target)


ADD = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}


def test_additions_of_a_histogram_wait_for_nothing() -> None:
    """A thread's additions need no order among them, and no fence."""
    ptx = _compiled(counted, {"x": "*i32", "out": "*i32"}, BLOCK=1024, BINS=64).asm["ptx"]
    assert len(re.findall(r"atom\.shared\.cta\.relaxed\.add\.u32", ptx)) == 8
    assert "acq_rel" not in ptx


@pytest.mark.parametrize(("divisible", "predicates"), [(True, 4), (False, 8)])
def test_rows_that_have_one_mask_have_one_predicate(divisible: bool, predicates: int) -> None:
    """A thread has a row in eight; where 16 rows are masked alike, two of its rows are."""
    signature, constants = {"x": "*fp16", "out": "*fp16", "rows": "i32"}, {"M": 64, "N": 128}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(3 if divisible else 2)}
    kernel = weft.compile(weft.ASTSource(some_rows, signature, constants, aligned), target="cuda:80")
    assert len(re.findall("setp", kernel.asm["ptx"])) == predicates
    assert len(re.findall(r"ld\.global\S*\.v[24]", kernel.asm["ptx"])) == 8


@pytest.mark.parametrize("target", ["cuda:90", "cuda:90a", GPUTarget("cuda", 90, 32)])
def test_stages(target: Any) -> None:
    kernel = _compiled(add, ADD, target, BLOCK=1024)
    assert kernel.metadata.target == GPUTarget("cuda", 90, 32)
    assert (kernel.metadata.num_ctas, kernel.metadata.cluster_dims) == (1, (1, 1, 1))
    assert "tt.load" in kernel.asm["ttir"] and "#ttg.linear" in kernel.asm["ttgir"]
    assert "load" in kernel.asm["lane"] and "define ptx_kernel void @add" in kernel.asm["llir"]
    assert ".target sm_90a" in kernel.asm["ptx"] and ".entry add(" in kernel.asm["ptx"]
    facts = kernel.metadata
    assert (facts.name, facts.shared, facts.num_warps, facts.threads) == ("add", 0, 4, 128)
    assert (facts.arch, facts.warp_size, facts.params) == ("sm_90a", 32, ["*fp32", "*fp32", "*fp32", "i32"])
    with pytest.raises(KeyError, match="there is no stage 'object'; stages of this kernel: source, ttir"):
        kernel.asm["object"]


def test_wide_where_it_is_known_to_be_aligned() -> None:
    found = kinds(_compiled(add, ADD, BLOCK=1024).asm["ptx"])
    assert found.count("ld.global.v4.b32") == 4 and found.count("st.global.v4.b32") == 2


@needs_ptxas
def test_machine_code() -> None:
    kernel = _compiled(add, ADD, BLOCK=1024)
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    assert 0 < kernel.n_regs < 64 and kernel.n_spills == 0
    again = pickle.loads(pickle.dumps(kernel))
    assert again.asm["ptx"] == kernel.asm["ptx"] and again.n_regs == kernel.n_regs


@pytest.mark.skipif(available(), reason="there is a GPU here")
def test_a_launch_needs_a_gpu() -> None:
    x = np.zeros(1024, np.float32)
    with pytest.raises(NoDevice):
        _compiled(add, ADD, BLOCK=1024)[(1,)](x, x, x, 1024)
    with weft.target("cuda:90"):
        assert add.warmup(x, x, x, 1024, BLOCK=256, grid=(4,)).metadata.arch == "sm_90a"


def test_every_instruction_knows_its_line() -> None:
    """As `.loc`, with the file; sums of addresses belong to where they are made."""
    ptx = _compiled(add, ADD, BLOCK=1024).asm["ptx"]
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert re.search(r'\.file\s+1 "[^"]*test_source\.py"', ptx)
    place, seen = 0, {}
    for line in ptx[ptx.index(".entry") :].splitlines():
        found = re.match(r"\s*\.loc\s+1 (\d+) ", line)
        place = int(found[1]) if found else place
        for kind in ("ld.global", "st.global", "%ctaid.x", "setp"):
            if kind in line:
                seen.setdefault(kind, set()).add(place)
    assert "tl.load(x + i" in lines[seen["ld.global"].pop() - 1] and not seen["ld.global"]
    assert "tl.store(out + i" in lines[seen["st.global"].pop() - 1]
    assert "tl.program_id(0)" in lines[seen["%ctaid.x"].pop() - 1]
    assert "mask = i < n" in lines[seen["setp"].pop() - 1]


def test_stages_are_shown_as_they_are_made() -> None:
    seen: dict[str, str] = {}
    source = weft.ASTSource(add, ADD, {"BLOCK": 1024})
    kernel = compile_source(source, "cuda:80", dump=lambda name, stage, text: seen.setdefault(stage, text))
    assert list(seen) == ["ttir", "ttgir", "lane", "llir", "ptx"]
    assert all(seen[name] == kernel.asm[name] for name in seen)


def test_options() -> None:
    source = weft.ASTSource(add, ADD, {"BLOCK": 1024})
    kernel = weft.compile(source, target="cuda:80", options={"num_warps": 8, "maxnreg": 64})
    assert ".reqntid 256" in kernel.asm["ptx"] and ".maxnreg 64" in kernel.asm["ptx"]


@needs_ptxas
def test_printing_is_by_element() -> None:
    kernel = _compiled(printing, {"x": "*fp32", "n": "i64"}, BLOCK=256)
    texts = re.findall(r'c"(pid[^"]*)"', kernel.asm["llir"])
    assert texts == [
        r"pid (%d, %d, %d) idx (%3d) 100%% of x: (operand 0) %f\0A\00",
        r"pid (%d, %d, %d) idx (%3d) 100%% of x: (operand 1) %d\0A\00",
        r"pid (%d, %d, %d) idx () n: 0x%016llx\0A\00",
        r"pid (%d, %d, %d) here\0A\00",
    ]
    assert kernel.n_regs


@needs_ptxas
def test_assembly() -> None:
    kernel = _compiled(by_assembly, {"x": "*i32", "h": "*fp16"}, BLOCK=512)
    lines = code(kernel.asm["ptx"])
    assert sum(line.startswith("shl.b32") and line.endswith(", 3;") for line in lines) == 4
    assert sum("0x0f0f0f0f" in line for line in lines) == 1  # four bytes in a register
    assert sum(line.startswith("add.f16x2") for line in lines) == 2
    assert kernel.n_regs


@weft.jit
def any_assembly(x, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    i = tl.arange(0, 256)
    value = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + i, value)


def _with(text: str, constraints: str) -> Any:
    source = weft.ASTSource(any_assembly, {"x": "*i32"}, {"TEXT": text, "CONSTRAINTS": constraints})
    return weft.compile(source, target="cuda:80")


@pytest.mark.parametrize(
    ("text", "constraints", "message"),
    [
        ("mov.b32 $0, $1;", "=z,r", "`=z` is no constraint for a result"),
        ("mov.b32 $0, $1;", "=r,m", "`m` is no constraint for an operand"),
        ("mov.b32 $0, $1;", "=r,1", "`1` is no constraint for an operand"),
        ("mov.b32 $0, $1;", "=r,q", "`q` is no constraint for an operand"),
        ("mov.b32 $0, $1;", "=r,n", "`n` takes an integer that is known when the kernel is compiled"),
        ("mov.b32 $0, $1;", "=r,r,r", "name 3 registers, but the assembly has 1 for results and 1 for operands"),
        ("mov.b32 $0, $1;", "", "name 1 registers"),
        ("mov.b32 $0, $7;", "=r,r", r"the assembly says \$7, but its registers are \$0 to \$1"),
    ],
)
def test_assembly_that_llvm_would_end_the_process_for(text: str, constraints: str, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        _with(text, constraints)


@weft.jit
def assembly_with_numbers(x, MASK: tl.constexpr, MAGIC: tl.constexpr, TABLE: tl.constexpr):
    i = tl.arange(0, 256)
    given = [tl.load(x + i), MASK, MAGIC, TABLE]
    text = "lop3.b32 $0, $1, $2, $3, $4;"
    tl.store(x + i, tl.inline_asm_elementwise(text, "=r,r,n,n,n", given, dtype=tl.int32, is_pure=True, pack=1))


@needs_ptxas
def test_assembly_with_numbers() -> None:
    """The constraint n was refused, which unpacks weights of four bits in lmdeploy."""
    constants = {"MASK": 0xF00F000F, "MAGIC": 0x64006400, "TABLE": 0xEA}
    kernel = weft.compile(weft.ASTSource(assembly_with_numbers, {"x": "*i32"}, constants), target="cuda:80")
    assert re.search(r"lop3\.b32 %r\d+, %r\d+, -267452401, 1677747200, 234;", kernel.asm["ptx"])
    assert kernel.n_regs


@weft.jit
def tied_assembly(x, y, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    i = tl.arange(0, 256)
    given = [tl.load(x + i), tl.load(y + i)]
    tl.store(x + i, tl.inline_asm_elementwise(TEXT, CONSTRAINTS, given, dtype=tl.int32, is_pure=True, pack=1))


def test_a_tie_of_registers_of_two_sizes() -> None:
    """LLVM ended the process."""
    constants = {"TEXT": "cvt.s32.f64 $0, $1;", "CONSTRAINTS": "=r,r,0"}
    source = weft.ASTSource(tied_assembly, {"x": "*i32", "y": "*fp64"}, constants)
    with pytest.raises(CompilationError, match="`0` puts an operand of 64 bits into the register of a result of 32"):
        weft.compile(source, target="cuda:80")


def test_assembly_with_clobbers_and_ties() -> None:
    assert "add.s32" in _with("add.s32 $0, $1, 1; // $$", "=&r,r,~{memory}").asm["ptx"]
    assert "add.s32" in _with("add.s32 $0, $0, 1;", "=r,0").asm["ptx"]


@needs_ptxas
def test_assembly_that_ptxas_refuses() -> None:
    kernel = _with("foo.b32 $0, $1;", "=r,r")
    with pytest.raises(CompilationError, match="which has inline assembly: ptxas kernel.ptx, line .*'foo'") as caught:
        kernel.assemble()
    assert caught.value.span is not None and "tl.inline_asm_elementwise(TEXT" in str(caught.value.source_line)
