"""What waves read of each other in local memory: texts that are right and wrong, programs of ours with less."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest

from weft.backends.amd import AMDGPU, assembly
from weft.backends.gpu import emit_llvm

from .assembly import Instruction, Kernel, parse
from .kernels import SMALL, compiled
from .local import CannotTell, run
from .meetings import faults_of
from .test_copies import copies
from .test_waits import kernel
from .waits import faults, weakened

LANE = "v_lshlrev_b32_e32 v1, 2, v0\nv_xor_b32_e32 v2, 0x100, v1\n"
"""v1 is the place of a lane, v2 that of the same lane of the other wave of two."""
RIGHT = {
    "stores, a wait, a barrier": LANE + "ds_write_b32 v1, v5\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2",
    "what is its own": LANE + "ds_write_b32 v1, v5\nds_read_b32 v3, v1",
    "a copy of its own": LANE
    + "s_lshl_b32 s4, s3, 8\nv_readfirstlane_b32 s4, v1\ns_mov_b32 m0, s4\nglobal_load_lds_dword v[6:7], off\n"
    "s_waitcnt vmcnt(0)\nds_read_b32 v3, v1",
    "a copy of the other's": LANE + "v_readfirstlane_b32 s4, v1\ns_mov_b32 m0, s4\nglobal_load_lds_dword v[6:7], off\n"
    "s_waitcnt vmcnt(0)\ns_barrier\nds_read_b32 v3, v2",
    "some lanes": LANE
    + "v_cmp_gt_u32_e32 vcc, 64, v0\ns_and_saveexec_b64 s[2:3], vcc\ns_cbranch_execz L\nds_write_b32 v1, v5\nL:\n"
    "s_or_b64 exec, exec, s[2:3]\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2",
    "in turns": LANE + "s_mov_b32 s5, 0\nL:\nds_write_b32 v1, v5\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\n"
    "s_waitcnt lgkmcnt(0)\ns_barrier\ns_add_i32 s5, s5, 1\ns_cmp_lt_i32 s5, 3\ns_cbranch_scc1 L",
}
WRONG = {
    "no barrier": LANE + "ds_write_b32 v1, v5\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v2",
    "no wait": LANE + "ds_write_b32 v1, v5\ns_barrier\nds_read_b32 v3, v2",
    "the wait is behind the barrier": LANE + "ds_write_b32 v1, v5\ns_barrier\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v2",
    "a copy of its own": LANE
    + "v_readfirstlane_b32 s4, v1\ns_mov_b32 m0, s4\nglobal_load_lds_dword v[6:7], off\nds_read_b32 v3, v1",
    "too many copies are left": LANE
    + "v_readfirstlane_b32 s4, v1\ns_mov_b32 m0, s4\nglobal_load_lds_dword v[6:7], off\n"
    "s_add_i32 m0, s4, 0x1000\nglobal_load_lds_dword v[6:7], off\ns_waitcnt vmcnt(1)\ns_barrier\n"
    "ds_read_b32 v3, v2 offset:4096",
    "written while it is read": LANE
    + "ds_write_b32 v1, v5\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\n"
    "ds_write_b32 v1, v5",
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_no_false_alarm(name: str) -> None:
    assert run(kernel("gfx942", RIGHT[name]), "", b"", 2) == []


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_is_found(name: str) -> None:
    assert run(kernel("gfx942", WRONG[name]), "", b"", 2)


def test_a_fault_says_who_and_what() -> None:
    found = run(kernel("gfx942", WRONG["no wait"]), "", b"", 2)
    assert found[0] == (
        "line 8: `ds_read_b32 v3, v2`: wave 0 reads what wave 1's `ds_write_b32 v1, v5` (line 6) writes, "
        "without a wait between"
    )


def test_what_is_not_known_is_said() -> None:
    text = "global_load_dword v1, v[2:3], off\ns_waitcnt vmcnt(0)\nds_read_b32 v4, v1"
    with pytest.raises(CannotTell, match="line 6: ds_read_b32 v4, v1: its address is not known"):
        run(kernel("gfx942", text), "", b"", 1)


PRODUCT = struct.pack("<3Qi", *[1 << 20] * 3, 64).ljust(256, b"\0")
ARGUMENTS = struct.pack("<2Qi", 1 << 20, 1 << 21, 7).ljust(64, b"\0")


def without_barriers(function: Kernel) -> Iterator[Kernel]:
    """Each barrier left out."""
    for place, instruction in enumerate(function.instructions):
        if instruction.name in ("s_barrier", "s_barrier_wait"):
            changed = Instruction(instruction.line, "s_nop 0")
            instructions = [*function.instructions[:place], changed, *function.instructions[place + 1 :]]
            yield Kernel(function.name, function.processor, instructions, function.labels)


@pytest.mark.parametrize(("processor", "size"), [("gfx942", 4), ("gfx950", 16)])
def test_copies_are_there_before_they_are_read(processor: str, size: int) -> None:
    """Each wait for copies of a program of ours, left out or weakened, is found, and by nothing else than this."""
    program = copies(f"hip:{processor}", size)
    dialect = AMDGPU(program.machine)
    text = assembly(emit_llvm(program, dialect), dialect.target)
    (function,) = parse(text).values()
    assert run(function, text, ARGUMENTS, 1) == []
    of_copies = [w for w in weakened(function) if w.what.startswith("vmcnt") and not faults(w.kernel)]
    found = [weak.what for weak in of_copies if run(weak.kernel, text, ARGUMENTS, 1)]
    # a store that began behind the copies counts on gfx9: the second wait leaves it alone, and the third finds it alone
    assert found == ["vmcnt left out", "vmcnt left at 3", "vmcnt left out"]
    assert len(of_copies) == 6


@pytest.mark.parametrize("processor", ["gfx942", "gfx1201"])
@pytest.mark.parametrize("name", ["product f16, b by rows", "column maxima", "transposition"])
def test_waves_of_ours_meet_before_they_read(name: str, processor: str) -> None:
    """And a barrier that is left out is missed."""
    assert faults_of(name, processor) == []
    case = SMALL[name]
    text = compiled(case, case.arguments(np.random.default_rng(0)), f"hip:{processor}").asm["amdgcn"]
    (function,) = parse(text).values()
    assert any(run(changed, text, PRODUCT, case.warps) for changed in without_barriers(function))
