"""The checker of waits: faults in small texts are found, LLVM's own programs have none until a wait is weakened."""

from __future__ import annotations

import random
import re
from functools import cache

import llvmlite.binding as llvm
import pytest

from amd.assembly import Instruction, Kernel, parse
from amd.suite import compiled
from amd.waits import UNORDERED, accesses, check, counters, faults, uses, waits, weakened

HEAD = '.amdgcn_target "amdgcn-amd-amdhsa--{processor}"\n.type f,@function\nf:\n'


def kernel(processor: str, text: str) -> Kernel:
    """A function of these lines."""
    for word, meaning in {"LOAD": "global_load_dword", "P": "v[0:1], off", "USE": "v_mov_b32_e32 v4, v2"}.items():
        text = re.sub(rf"\b{word}\b", meaning, text)
    return parse(HEAD.format(processor=processor) + text + "\ns_endpgm\n")["f"]


WRONG = {
    "a load is used at once": ("gfx942", "LOAD v2, P\nv_add_u32_e32 v3, v2, v2", "v2"),
    "one of two is waited for": (
        "gfx942",
        "LOAD v2, P\nLOAD v3, P\ns_waitcnt vmcnt(1)\nv_add_u32_e32 v4, v2, v3",
        "v3",
    ),
    "written while a load is on its way": ("gfx1100", "global_load_b32 v2, P\nv_mov_b32_e32 v2, 0", "v2"),
    "an address": ("gfx1201", "ds_load_b32 v2, v0\ns_wait_loadcnt 0x0\nglobal_store_b32 v[2:3], v0, off", "v2"),
    "data of a store": ("gfx90a", "ds_read_b64 v[2:3], v0\nglobal_store_dwordx2 v[0:1], v[2:3], off", "v2"),
    "scalar loads come in any order": (
        "gfx942",
        "s_load_dword s4, s[0:1], 0x0\ns_load_dword s5, s[0:1], 0x4\ns_waitcnt lgkmcnt(1)\ns_mov_b32 s6, s4",
        "s4",
    ),
    "local and scalar loads have one counter": (
        "gfx1100",
        "ds_load_b32 v2, v0\ns_load_b32 s5, s[0:1], 0x4\nds_load_b32 v3, v0\ns_waitcnt lgkmcnt(2)\nUSE",
        "v2",
    ),
    "the counter of another class": ("gfx1201", "ds_load_b32 v2, v0\ns_wait_kmcnt 0x0\nUSE", "v2"),
    "half of a combined wait": (
        "gfx1201", "global_load_b32 v2, P\nds_load_b32 v3, v0\ns_wait_loadcnt_dscnt 0x100\nUSE", "v2"
    ),
    "stores have a counter of their own": (
        "gfx1100", "global_load_b32 v2, P\ns_waitcnt_vscnt null, 0x0\nUSE", "v2"
    ),
    "on one of two paths": (
        "gfx942",
        "LOAD v2, P\ns_cbranch_scc1 L1\ns_waitcnt vmcnt(0)\nL1:\nUSE",
        "v2",
    ),
    "around a loop": (
        "gfx942", "L1:\nUSE\nLOAD v2, P\ns_cbranch_scc1 L1", "v2"
    ),
    "too many in a loop": (
        "gfx942",
        "LOAD v2, P\nL1:\nLOAD v3, P\ns_waitcnt vmcnt(2)\n"
        "USE\ns_waitcnt vmcnt(0)\nLOAD v2, P\ns_cbranch_scc1 L1",
        "v2",
    ),
    "an atomic's old value": ("gfx942", "global_atomic_add v2, v[0:1], v3, off sc0\nUSE", "v2"),
    "an atomic's old value, gfx12": (
        "gfx1201", "global_atomic_add_u32 v2, v[0:1], v3, off th:TH_ATOMIC_RETURN\nUSE", "v2"
    ),
    "a value from another lane": ("gfx942", "ds_bpermute_b32 v2, v0, v1\nUSE", "v2"),
    "an operand of a product": (
        "gfx942", "ds_read_b64 v[2:3], v0\nv_mfma_f32_16x16x16_f16 a[0:3], v[2:3], v[4:5], a[0:3]", "v2"
    ),
    "into the accumulators": ("gfx90a", "LOAD a2, P\nv_accvgpr_read_b32 v4, a2", "a2"),
    "the other half of a register": ("gfx942", "ds_read_u16 v2, v0\nds_read_u16_d16_hi v2, v0 offset:2", "v2"),
    "stores to local memory at a barrier": ("gfx942", "ds_write_b32 v0, v1\ns_barrier", "local stores"),
    "a cache is invalidated before the load is over": (
        "gfx942", "global_atomic_add v2, v[0:1], v3, off sc0\nbuffer_inv sc1\ns_waitcnt vmcnt(0)", "loads and atomics"
    ),
    "a flat load may be either": (
        "gfx942", "flat_load_dword v2, v[0:1]\ns_waitcnt vmcnt(0)\nUSE", "v2"
    ),
    "the other counter of a flat load, which counts with others from gfx10 on": (
        "gfx1201", "flat_load_b32 v2, P\nflat_load_b32 v3, P\ns_wait_loadcnt_dscnt 0x102\nUSE", "v2"
    ),
    "flat loads come in any order on gfx9": (
        "gfx942", "flat_load_dword v2, P\nflat_load_dword v3, P\ns_waitcnt vmcnt(1) lgkmcnt(1)\nUSE", "v2"
    ),
    "the second of a pair": ("gfx1100", "ds_load_b32 v2, v0\nv_dual_mov_b32 v4, v5 :: v_dual_mov_b32 v7, v2", "v2"),
}  # fmt: skip
RIGHT = {
    "in order": (
        "gfx942",
        "LOAD v2, P\nLOAD v3, P\ns_waitcnt vmcnt(1)\nv_add_u32_e32 v4, v2, v2",
    ),
    "stores count too on gfx9": (
        "gfx942",
        "LOAD v2, P\nglobal_store_dword v[0:1], v5, off\ns_waitcnt vmcnt(1)\nv_add_u32_e32 v4, v2, v2",
    ),
    "loads of one class into one register": (
        "gfx942", "LOAD v2, P\nLOAD v2, v[4:5], off\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v3, v2"
    ),
    "a counter that is full waits": (
        "gfx942", "ds_read_b32 v2, v0\n" + "ds_read_b32 v3, v0\n" * 15 + "USE\ns_waitcnt lgkmcnt(0)"
    ),
    "halves of a register come in order": (
        "gfx1100", "global_load_u16 v2, P\nglobal_load_d16_hi_b16 v2, v[4:5], off\ns_waitcnt vmcnt(0)\nUSE"
    ),
    "both counters of a flat load": ("gfx942", "flat_load_dword v2, v[0:1]\ns_waitcnt vmcnt(0) lgkmcnt(0)\nUSE"),
    "flat loads come in order from gfx10 on": (
        "gfx1201", "flat_load_b32 v2, P\nflat_load_b32 v3, P\ns_wait_loadcnt_dscnt 0x101\nUSE"
    ),
    "a copy into local memory fills no register": ("gfx950", "buffer_load_dwordx4 v2, s[4:7], 0 offen lds\nUSE"),
    "a store is no value": ("gfx1100", "global_store_b32 v[0:1], v2, off\nv_mov_b32_e32 v2, 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_missing_wait_is_found(name: str) -> None:
    processor, text, register = WRONG[name]
    assert register in {fault.register for fault in faults(kernel(processor, text))}


@pytest.mark.parametrize("name", RIGHT)
def test_no_false_alarm(name: str) -> None:
    assert not faults(kernel(*RIGHT[name]))


def test_a_fault_names_both_lines() -> None:
    (fault,) = faults(kernel("gfx942", WRONG["a load is used at once"][1]))
    assert str(fault) == (
        "f: line 5: `v_add_u32_e32 v3, v2, v2` uses v2, which line 4, `global_load_dword v2, v[0:1], off`, "
        "delivers, "
        "and nothing on a path between waits for vmcnt"
    )


def test_a_wait_without_names_is_refused() -> None:
    with pytest.raises(ValueError, match="names no counter"):
        faults(kernel("gfx942", "s_waitcnt 0xc07f"))


def test_accesses_of_each_generation() -> None:
    load = [("gfx942", "global_load_dword"), ("gfx1100", "global_load_b32"), ("gfx1201", "global_load_b32")]
    assert [accesses(Instruction(1, f"{n} v2, P"), p)[0].counter for p, n in load] == ["vmcnt", "vmcnt", "loadcnt"]
    store = Instruction(1, "global_store_b32 v[0:1], v2, off")
    assert [accesses(store, p)[0].counter for p in ("gfx90a", "gfx1151", "gfx1200")] == [
        "vmcnt", "vscnt", "storecnt",
    ]  # fmt: skip
    assert accesses(Instruction(1, "global_load_async_to_lds_b128 v2, P"), "gfx1250")[0].counter == "asynccnt"


PROCESSORS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1200", "gfx1201", "gfx1250")
IR = """
target triple = "amdgcn-amd-amdhsa"
@shared = internal unnamed_addr addrspace(3) global [512 x i32] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare void @llvm.amdgcn.s.barrier()

define amdgpu_kernel void @f(ptr addrspace(1) %x, ptr addrspace(1) %out, i32 %n) #0 {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %other = xor i32 %lane, 65
  %mine = getelementptr [512 x i32], ptr addrspace(3) @shared, i32 0, i32 %lane
  %theirs = getelementptr [512 x i32], ptr addrspace(3) @shared, i32 0, i32 %other
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %sum = phi i32 [ 0, %0 ], [ %total, %loop ]
  %at = add i32 %i, %lane
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %at
  %a = load i32, ptr addrspace(1) %p
  %q = getelementptr i32, ptr addrspace(1) %p, i32 4096
  %b = load i32, ptr addrspace(1) %q
  %c = mul i32 %a, %b
  store i32 %c, ptr addrspace(3) %mine
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %d = load i32, ptr addrspace(3) %theirs
  %e = call i32 @llvm.amdgcn.ds.bpermute(i32 %at, i32 %a)
  %f = add i32 %d, %e
  %total = add i32 %sum, %f
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %next = add i32 %i, 256
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  %old = atomicrmw add ptr addrspace(1) %out, i32 %total syncscope("agent") acq_rel
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  store i32 %old, ptr addrspace(1) %to
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true" }
"""


@cache
def by_llvm(processor: str) -> str:
    """LLVM's assembly of IR for a processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=processor, opt=3, reloc="pic")
    return str(machine.emit_assembly(llvm.parse_assembly(IR)))


def walks_into_a_fault(function: Kernel, walks: int = 12, steps: int = 150) -> bool:
    """Whether a random walk uses what has not come, where all comes as late as it may: lists instead of ages."""
    rng = random.Random(1)
    most = counters(function.processor)
    for _ in range(walks):
        place: int | None = 0
        under_way: list[tuple[str, str, frozenset[str]]] = []
        for _ in range(steps):
            if place is None:
                break
            instruction = function.instructions[place]
            begun = accesses(instruction, function.processor)
            filled = frozenset().union(*(registers for _, _, registers in begun)) - instruction.registers
            for _, _, registers in under_way:
                if registers & (uses(instruction) - filled):
                    return True
            for counter, number in [*waits(instruction).items(), *((c, most[c] - 1) for c, _, _ in begun)]:
                ordered = [a for a in under_way if a[0] == counter and a[1] not in UNORDERED]
                gone = ordered[: len(ordered) - number] if len(ordered) > number else []
                gone += [a for a in under_way if a[0] == counter and a[1] in UNORDERED and not number]
                under_way = [a for a in under_way if a not in gone]
            under_way += begun
            place = rng.choice(function.successors(place) or (None,))
    return False


@pytest.mark.parametrize("processor", PROCESSORS)
def test_each_weakened_wait_of_llvm_is_found(processor: str) -> None:
    """As often as a program that runs with what comes late would meet it."""
    function = parse(by_llvm(processor))["f"]
    assert not faults(function) and not walks_into_a_fault(function)
    found = []
    for weak in weakened(function):
        found.append(bool(faults(weak.kernel)))
        assert found[-1] == walks_into_a_fault(weak.kernel), (weak.wait.line, weak.wait.text, weak.what)
    assert sum(found) > 8


def test_loops_and_figures_are_read() -> None:
    function = parse(by_llvm("gfx942"))["f"]
    loop = next(body for body in function.loops if any(function.instructions[p].name == "s_barrier" for p in body))
    names = [function.instructions[place].name for place in sorted(loop)]
    assert names.count("s_barrier") == 2 and names[-1].startswith("s_cbranch")
    assert function.figures["group_segment_fixed_size"] == 2048 and function.figures["wavefront_size"] == 64


@pytest.mark.parametrize("processor", ["gfx950", "gfx1100", "gfx1201"])
def test_a_barrier_waits_for_what_was_stored(processor: str) -> None:
    """Of LDS alone, in a loop whose stores are at its end and whose barrier is at its head: LLVM waits for nothing."""
    assert not check(compiled("matmul_fp8_e5m2", processor).asm["amdgcn"])


def test_registers_beyond_255_are_read() -> None:
    """gfx1250 writes their low 8 bits, and which they are in a comment."""
    function = kernel(
        "gfx1250", "ds_load_b64 v[4:5] /*v[260:261]*/, v0\nv_mov_b32_e32 v6, v4\nv_mov_b32_e32 v7, v5 /*v261*/"
    )
    assert [(f.use.line, f.register) for f in faults(function)] == [(6, "v261")]
