"""Every entry of the instruction table, with operands from memory and results to it: ptxas takes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from gpu.isa_memory import cases
from sim.kit import Kit
from weft.backends.nvidia import emit
from weft.base import Unsupported
from weft.ir.lane import Value
from weft.machines import machine_of
from weft.targets.nvidia import Instruction, Operand, instruction
from weft.targets.table import available

from .assembling import assembled, kinds, needs_ptxas

STORED = {"tf32": "f32"}


def _operand(kit: Kit, base: Value, operand: Operand) -> Value:
    elem = STORED.get(operand.elem, operand.elem)
    if operand.constraint == "n":
        return kit.int(24 if operand.name == "count" else 1)
    if operand.elem == "i32" and operand.name in ("address", "to", "source"):
        return kit.add2(base, 16)
    if elem == "i1":
        return kit.equal(kit.thread(), 0)
    if elem == "i64":
        return kit.place("p", kit.thread())
    small = elem.startswith("f8")
    value = kit.load("global", kit.place("p", kit.mul(kit.linear(range(operand.count)), 3)), "i8" if small else elem)
    return kit.op("arith.bitcast", [value], elem) if small else value


def _add(kit: Kit, base: Value, entry: Instruction) -> None:
    operands = [_operand(kit, base, o) for o in entry.operands]
    results = [(STORED.get(r.elem, r.elem), r.count) for r in entry.results]
    made: Sequence[Value] = kit.add("instruction", operands, results, {"isa": entry.name}).results
    if entry.name.startswith("wgmma.m"):
        made = kit.add("await", made, results, {"kind": "product", "pending": 0}).results
    for value in made:
        stored = kit.op("arith.bitcast", [value], "i8") if value.elem.startswith("f8") else value
        kit.store("global", kit.place("p", kit.linear(range(stored.count))), stored)


def _program(entries: Sequence[Instruction], capability: int) -> Kit:
    kit = Kit("p:i32*", warps=4, target=f"cuda:{capability}")
    base = kit.shared(4096)
    kit.allocations[0].alignment = 1024
    for entry in entries:
        _add(kit, base, entry)
    return kit


def _entries(capability: int) -> list[Instruction]:
    return list(available(machine_of(f"cuda:{capability}")))


def _is_large(entry: Instruction) -> bool:
    return entry.name.startswith("wgmma.m") and "n16k" not in entry.name


@needs_ptxas
@pytest.mark.parametrize("capability", [80, 90])
def test_entries(capability: int) -> None:
    """All, but of wgmma one width."""
    entries = [e for e in _entries(capability) if not _is_large(e)]
    assert len(entries) >= 50
    for at in range(0, len(entries), 40):
        assembled(_program(entries[at : at + 40], capability).program())


@needs_ptxas
@pytest.mark.slow
def test_wgmma_of_every_width() -> None:
    entries = [e for e in _entries(90) if _is_large(e)]
    for at in range(0, len(entries), 20):
        assembled(_program(entries[at : at + 20], 90).program())


def test_what_a_processor_does_not_have() -> None:
    entry = instruction("wgmma.fence")
    with pytest.raises(Unsupported, match="wgmma"):
        emit(_program([entry], 80).program())


def test_an_immediate_that_is_not_known() -> None:
    kit = Kit("n:i32", target="cuda:80")
    kit.instruction("cp.async.wait_group", [kit.arg("n")])
    with pytest.raises(Unsupported, match="`pending` that is not known"):
        emit(kit.program())


def test_halves_loaded_as_words_are_multiplied_as_words() -> None:
    """What ldmatrix gives goes into mma as it is."""
    kit = Kit("p:f32*", target="cuda:80")
    base = kit.shared(2048)
    a = kit.instruction("ldmatrix.x4", [base], [("f16", 8)]).result
    b = kit.instruction("ldmatrix.trans.x2", [kit.add2(base, 512)], [("f16", 4)]).result
    c = kit.constant("f32", 0.0)
    zero = kit.rename(c, [0] * 4)
    d = kit.instruction("mma.sync.m16n8k16.f32.f16.f16.f32", [a, b, zero], [("f32", 4)]).result
    kit.store("global", kit.place("p", kit.thread((0,), 4)), d, 4)
    ptx = emit(kit.program()).code
    found = kinds(ptx)
    assert sum(k.startswith("ldmatrix") for k in found) == 2
    assert not any(k in ("mov.b16", "prmt.b32", "cvt.u16.u32", "{") for k in found)
    assert "+ 512]" in ptx  # the distance is in the instruction
    assert "st.global.v4.b32" in ptx


def test_a_constant_is_added_wherever_an_address_stands() -> None:
    """One that is bracketed in one place and plain in another (`mapa`) is computed, not written as [base + 128]."""
    (case,) = cases("cluster_barrier.pass", True)
    ptx = emit(case.program).code
    places = {m[1]: (m[2], m[3]) for m in re.finditer(r"add\.s32 \t(%r\d+), (%r\d+), (\d+);", ptx)}
    passed = re.findall(r"mapa\.shared::cluster\.u32 a, (%r\d+), .*?_, \[a\].*?b64 s, \[([^\]]+)\]", ptx)
    assert len(passed) == 2
    for told, own in passed:
        assert told == own and places[told][1] == "128"
