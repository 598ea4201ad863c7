"""Loads, stores, atomics and copies as PTX: widths, predicates, distances in the instruction."""

from __future__ import annotations

import re
from typing import Any

import pytest

import weft
import weft.gluon.language as gl
from sim.kit import Kit
from weft import gluon
from weft.backends.nvidia import emit
from weft.base import Unsupported
from weft.gluon import GluonASTSource
from weft.ir.lane import LaneProgram, Value

from .assembling import TARGETS, assembled, code, needs_ptxas


def accesses(program: LaneProgram) -> list[str]:
    """Loads, stores, atomics and copies, registers called r, in order."""
    found = [re.sub(r"%\w+", "r", line) for line in code(emit(program).code)]
    return [line for line in found if re.match(r"(@r )?(ld|st|atom|red|cp)[.]", line) and ".param" not in line]


def copied(elem: str, vector: int, masked: bool = False, **attrs: Any) -> LaneProgram:
    """out = x, `vector` elements with one access; the mask is n > 0."""
    kit = Kit(f"x:{elem}*", f"out:{elem}*", "n:i32", target="cuda:80")
    size = {"i8": 1, "i16": 2, "f16": 2, "i64": 8, "f64": 8}.get(elem, 4)
    at = kit.op("arith.extsi", [kit.mul(kit.thread((0,), vector), size)], "i64")
    mask = kit.less(kit.int(0), kit.arg("n")) if masked else None
    other = kit.constant(elem, 0) if masked else None
    there = kit.op("arith.addi", [kit.arg("x"), at], "i64")
    value = kit.load("global", there, elem, vector, mask, other, **attrs)
    kit.store("global", kit.op("arith.addi", [kit.arg("out"), at], "i64"), value, vector, mask, **attrs)
    return kit.program()


@pytest.mark.parametrize(
    ("elem", "vector", "suffix"),
    [
        ("f32", 4, ".v4.b32"),
        ("f32", 1, ".b32"),
        ("f16", 8, ".v4.b32"),
        ("f16", 2, ".b32"),
        ("f16", 1, ".b16"),
        ("i8", 16, ".v4.b32"),
        ("i8", 4, ".b32"),
        ("i8", 2, ".b16"),
        ("i8", 1, ".b8"),
        ("f64", 2, ".v2.b64"),
        ("i64", 1, ".b64"),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_width(elem: str, vector: int, suffix: str, masked: bool) -> None:
    load, store = accesses(copied(elem, vector, masked))
    before = "@r " if masked else ""
    assert load.startswith(f"{before}ld.global{suffix} ")
    assert store.startswith(f"{before}st.global{suffix} ")


def test_more_than_sixteen_bytes_are_several_accesses() -> None:
    found = accesses(copied("f32", 8))
    assert found[0].startswith("ld.global.v4.b32") and found[1].endswith("[r+16];")
    masked = accesses(copied("f32", 8, True))
    assert masked[1].startswith("@r ld.global.v4.b32") and "[r + 16]" in masked[1]


@needs_ptxas
def test_hints() -> None:
    for attrs, mark in (
        ({"cache": "cg"}, "ld.global.cg.v4.b32"),
        ({"evict": "evict_first"}, "ld.global.L1::evict_first.L2::cache_hint.v4.b32"),
        ({"evict": "evict_last", "cache": "cg"}, "ld.global.cg.L2::cache_hint.v4.b32"),
        ({"volatile": True}, "ld.volatile.global.v4.b32"),
    ):
        for masked in (False, True):
            program = copied("f32", 4, masked, **attrs)
            assert accesses(program)[0].removeprefix("@r ").startswith(mark)
            assembled(program)


@needs_ptxas
@pytest.mark.parametrize("evict", ["evict_first", "evict_last"])
def test_eviction_reaches_the_second_level(evict: str) -> None:
    """One policy for all accesses that ask for it."""
    for elem, vector in (("f32", 8), ("i8", 1), ("f16", 1), ("i64", 2)):
        program = copied(elem, vector, True, evict=evict)
        lines = code(emit(program).code)
        policies = [line for line in lines if line.startswith("createpolicy")]
        assert len(policies) == 1 and f"L2::{evict}.b64" in policies[0] and policies[0].endswith("1.0;")
        policy = policies[0].split()[1].rstrip(",")
        found = [line for line in lines if f"L1::{evict}" in line]
        assert len(found) == (4 if vector == 8 else 2) and all(line.endswith(f", {policy};") for line in found)
        assembled(program)


@needs_ptxas
@pytest.mark.parametrize("hint", [".ca", ".cg", ".cs", ".cv"])
def test_both_hints(hint: str) -> None:
    """PTX takes an operator for all caches, or an eviction from L1; a policy goes with either."""
    program = copied("f32", 4, cache=hint[1:], evict="evict_first")
    for op in program.body.walk():
        if op.name == "store":
            op.attrs["cache"] = "wb"
    load, store = accesses(program)
    assert load.startswith(f"ld.global{hint}.L2::cache_hint.v4") and store.startswith("st.global.wb.L2::cache_hint.v4")
    assembled(program)


def test_masked_off_lanes_get_the_other_value() -> None:
    """It is in the registers before the load."""
    kit = Kit("x:f32*", "n:i32", target="cuda:80")
    mask = kit.less(kit.thread(), kit.arg("n"))
    value = kit.load("global", kit.place("x", kit.thread()), "f32", 1, mask, kit.constant("f32", 7.0))
    kit.store("global", kit.place("x", kit.thread()), value)
    lines = code(emit(kit.program()).code)
    at = next(i for i, line in enumerate(lines) if "ld.global" in line)
    assert re.match(r"@%p\d+ ld\.global\.b32 %r\d+, ", lines[at])
    seven = ("0f40E00000", str(0x40E00000))
    assert any(line.startswith("mov.b32") and any(s in line for s in seven) for line in lines[:at])


def test_bools_are_bytes_that_are_not_zero() -> None:
    kit = Kit("x:i1*", "out:i1*", target="cuda:80")
    index = kit.op("arith.extsi", [kit.thread()], "i64")
    value = kit.load("global", kit.op("arith.addi", [kit.arg("x"), index], "i64"), "i1")
    kit.store("global", kit.op("arith.addi", [kit.arg("out"), index], "i64"), value)
    found = code(emit(kit.program()).code)
    assert any(line.startswith("setp.ne") for line in found)
    assert accesses(kit.program()) == ["ld.global.b8 r, [r];", "st.global.b8 [r], r;"]


def _tile(kit: Kit, registers: int) -> Value:
    """Addresses of `registers` rows of 512 bytes."""
    return kit.linear([512 * i for i in range(registers)], lane=(16, 32, 64, 128, 256))


def test_shared_addresses_have_one_base() -> None:
    """Distances between rows are in the instructions."""
    kit = Kit("out:f32*", target="cuda:80")
    base = kit.shared(4096)
    kit.store(
        "shared",
        kit.add2(base, _tile(kit, 8)),
        kit.constant("f32", 1.0) and kit.rename(kit.constant("f32", 1.0), [0] * 32),
        4,
    )
    kit.barrier()
    value = kit.load("shared", kit.add2(base, _tile(kit, 8)), "f32", 4)
    kit.store("global", kit.place("out", kit.thread((0,), 4)), kit.rename(value, [0, 5, 10, 31]), 4)
    lines = code(emit(kit.program()).code)
    stores = [line for line in lines if line.startswith("st.shared")]
    assert len(stores) == 8 and all(line.startswith("st.shared.v4.b32") for line in stores)
    assert {re.search(r"\[%r\d+(?:\+(\d+))?\]", line)[1] for line in stores} == {  # type: ignore[index]
        None, "512", "1024", "1536", "2048", "2560", "3072", "3584",
    }  # fmt: skip
    assert len([line for line in lines if line.startswith(("add.s32", "or.b32", "xor.b32"))]) <= 1


def test_swizzled_addresses_xor_only_what_meets() -> None:
    kit = Kit("out:i32*", target="cuda:80")
    at = kit.linear([0, 4, 1024, 1028], lane=(4, 8, 16, 32, 64))
    kit.store("global", kit.place("out", kit.thread((0,), 4)), at, 4)
    lines = code(emit(kit.program()).code)
    assert len([line for line in lines if line.startswith("xor")]) == 1


ATOMICS = [("i32", k) for k in ("add", "and", "or", "xor", "max", "min", "umax", "umin", "xchg")]
ATOMICS += [("i64", k) for k in ("add", "and", "or", "xor", "max", "min", "umax", "umin", "xchg")]
ATOMICS += [(e, "fadd") for e in ("f16", "bf16", "f32", "f64")]


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_atomics_assemble(target: str) -> None:
    for space in ("global", "shared"):
        for order, scope in (("acq_rel", "gpu"), ("relaxed", "cta"), ("release", "sys"), ("acquire", "gpu")):
            kit = Kit("x:i32*", "n:i32", target=target)
            base = kit.shared(64)
            mask = kit.less(kit.thread(), kit.arg("n"))
            address = base if space == "shared" else kit.place("x", kit.thread())
            for elem, kind in ATOMICS:
                value = kit.constant(elem, 1)
                attrs = {"space": space, "kind": kind, "order": order, "scope": scope}
                for masked in (False, True):
                    operands = [address, value, mask] if masked else [address, value]
                    kit.add("atomic", operands, [(elem, 1)], {**attrs, "masked": masked})
            for elem in ("i32", "i64"):
                operands = [address, kit.constant(elem, 1), kit.constant(elem, 2), mask]
                attrs = {"space": space, "order": order, "scope": scope, "masked": True}
                old = kit.add("compare_and_swap", operands, [(elem, 1)], attrs).result
                kit.store("global", kit.place("x", kit.thread()), old)
            assembled(kit.program())


@needs_ptxas
@pytest.mark.parametrize(
    ("target", "elem", "vector"),
    [
        ("cuda:80", "f16", 2),
        *(("cuda:90", e, v) for e, v in (("f16", 8), ("bf16", 2), ("bf16", 4), ("f32", 4), ("f32", 2))),
    ],
)
def test_atomics_of_several_elements_assemble(target: str, elem: str, vector: int) -> None:
    kit = Kit(f"x:{elem}*", "n:i32", target=target)
    mask = kit.less(kit.thread(), kit.arg("n"))
    value = kit.rename(kit.constant(elem, 1), [0] * vector)
    attrs = {"space": "global", "kind": "fadd", "order": "acq_rel", "scope": "gpu", "vector": vector}
    for masked in (False, True):
        address = kit.place("x", kit.thread((0,), vector))
        operands = [address, value, mask] if masked else [address, value]
        kit.add("atomic", operands, [(elem, vector)], {**attrs, "masked": masked})
    name = f"x{vector}" if target == "cuda:80" else f".v{vector}"
    assert all(name in line for line in accesses(kit.program()) if "atom" in line)
    assembled(kit.program())


def _atomic(elem: str, kind: str, target: str = "cuda:80", used: bool = False, order: str = "acq_rel") -> list[str]:
    kit = Kit(f"x:{elem}*", "n:i32", target=target)
    mask = kit.less(kit.thread(), kit.arg("n"))
    attrs = {"space": "global", "kind": kind, "order": order, "scope": "gpu", "masked": True}
    operands = [kit.place("x", kit.thread()), kit.constant(elem, 1), mask]
    old = kit.add("atomic", operands, [(elem, 1)], attrs).result
    if used:
        kit.store("global", kit.place("x", kit.thread()), old)
    return accesses(kit.program())


def test_atomics() -> None:
    assert _atomic("f32", "fadd")[0] == "@r atom.global.gpu.acq_rel.add.f32 r, [r], r;"
    assert _atomic("i32", "umax", order="relaxed")[0] == "@r atom.global.gpu.relaxed.max.u32 r, [r], r;"
    assert _atomic("i64", "max", used=True)[0] == "@r atom.global.gpu.acq_rel.max.s64 r, [r], r;"
    assert "add.noftz.bf16" in _atomic("bf16", "fadd", "cuda:90")[0]
    assert any(".cas.b" in line for line in _atomic("bf16", "fadd", "cuda:80"))  # it has no such instruction


def test_asynchronous_copies() -> None:
    kit = Kit("x:f32*", "n:i32", target="cuda:80")
    base = kit.shared(2048)
    mask = kit.less(kit.thread(), kit.arg("n"))
    to = kit.add2(base, kit.linear([0, 512], lane=(16, 32, 64, 128, 256)))
    kit.copy_async(to, kit.place("x", kit.thread((0, 128), 4)), 16, kit.rename(mask, [0, 0]))
    kit.copy_async(kit.add2(base, kit.thread((0,), 4)), kit.place("x", kit.thread()), 4)
    kit.add("commit_async")
    kit.add("wait_async", (), (), {"pending": 1})
    found = accesses(kit.program())
    assert found[0] == "cp.async.cg.shared.global [r], [r], 16, r;"
    assert found[1].startswith("cp.async.cg.shared.global [r + 512], [r")
    assert found[2] == "cp.async.ca.shared.global [r], [r], 4;"
    assert found[3:] == ["cp.async.commit_group;", "cp.async.wait_group 1;"]


def test_shared_memory_is_dynamic_and_as_aligned_as_asked() -> None:
    kit = Kit("x:i32*", target="cuda:80")
    base = kit.shared(64)
    kit.store("shared", base, kit.int(0))
    emitted = emit(kit.program())
    assert emitted.shared_bytes == 64
    assert ".extern .shared .align 16 .b8 shared_memory[];" in emitted.code
    kit.allocations[0].alignment = 1024
    assert ".extern .shared .align 1024 " in emit(kit.program()).code


def test_an_atomic_that_there_is_not() -> None:
    kit = Kit("x:f32*", target="cuda:80")
    attrs = {"space": "global", "kind": "average", "masked": False}
    kit.add("atomic", [kit.place("x", kit.thread()), kit.constant("f32", 1.0)], [("f32", 1)], attrs)
    with pytest.raises(Unsupported, match="atomic average of f32"):
        emit(kit.program())


@gluon.jit
def there_and_back(out, layout: gl.constexpr):
    a = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    b = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    place = out + a[:, None] * 32 + b[None, :]
    gl.store(place, gl.load(place) + 1)


def test_loads_go_upwards() -> None:
    """The fragments of mma.sync have two rows in turn; what lies in one line is loaded together."""
    layout = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    source = GluonASTSource(there_and_back, {"out": "*fp16"}, {"layout": layout}, {(0,): [["tt.divisibility", 16]]})
    ptx = weft.compile(source, "cuda:90", {"num_warps": 4}).asm["ptx"]
    found = re.findall(r"ld\.global\.b32 \t%r\d+, \[%rd\d+(?:\+(\d+))?\]", ptx)
    assert [int(offset or 0) for offset in found] == [0, 16, 32, 48, 512, 528, 544, 560]
