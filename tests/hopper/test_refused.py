"""What cannot be lowered for Hopper, and what is said about it."""

from __future__ import annotations

import re

import pytest

from weft.base import CompilationError, Unsupported
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower

from .running import read

GATHER = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#rows = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @gather(%p: !tt.ptr<i8>) attributes {noinline = false} {
    %true = arith.constant true
    %zero = arith.constant 0 : i32
    %d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<1x64xf16, #shared>>
    %rows = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #rows>
    %m = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttng.async_tma_gather %d[%rows, %zero] %m, %b, %true : !tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<32xi32, #rows>, i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, i1
    tt.return
  }
}
"""  # noqa: E501


def lowered(text: str) -> LaneProgram:
    return lower(parse_module(text, "kernel.ttgir"))


def test_gathers() -> None:
    with pytest.raises(Unsupported, match=r"gathers rows, which the copy engine has from compute capability 10\.0 on"):
        lowered(GATHER)


def test_too_many_warps() -> None:
    text = read("specialized_matmul").replace("num_warps(1)", "num_warps(32)")
    with pytest.raises(
        CompilationError, match="4 warps and partitions with 32 more are 1152 threads; a block has at most"
    ):
        lowered(text)


def test_too_many_registers() -> None:
    text = read("triton_specialized").replace("array<i32: 232, 232>", "array<i32: 248, 248>")
    with pytest.raises(CompilationError, match=r"ask for \[248, 248\] registers leave 8 for the kernel itself; 24 is"):
        lowered(text)


@pytest.mark.parametrize("wrong", ["304, 24", "-8, 24"])
def test_registers_that_no_thread_can_have(wrong: str) -> None:
    """ptxas refused them, or they were taken as none."""
    text = read("triton_specialized").replace("array<i32: 232, 232>", f"array<i32: {wrong}>")
    with pytest.raises(CompilationError, match=rf"ask for \[{wrong}\] registers: a thread may have 24 to 256"):
        lowered(text)


def test_registers_that_move() -> None:
    """Partitions take and give whole warp groups' registers; together they have what they had at entry."""
    program = lowered(read("triton_specialized"))
    moved = [
        (op.attrs["isa"], op.operands[0].op.attrs["value"])
        for op in program.body.walk()
        if op.attrs.get("isa", "").startswith("setmaxnreg") and op.operands[0].op is not None
    ]
    assert program.registers == 168 and program.warps == 12
    assert moved == [("setmaxnreg.dec", 40), ("setmaxnreg.inc", 232), ("setmaxnreg.inc", 232)]
    assert sum(n for _, n in moved) == 3 * program.registers


def test_too_many_bytes() -> None:
    text = re.sub(r"(ttng\.barrier_expect %\w+), \d+", r"\1, 1048576", read("faulty_copy_none"))
    with pytest.raises(CompilationError, match="an mbarrier counts 0 to 1048575 bytes, got 1048576"):
        lowered(text)


def test_too_many_arrivals() -> None:
    text = read("faulty_copy_none").replace("ttng.init_barrier %bar, 1 ", "ttng.init_barrier %bar, 2000000 ")
    with pytest.raises(CompilationError, match="an mbarrier is for 1 to 1048575 arrivals, got 2000000"):
        lowered(text)


def test_a_warp_specialize_in_a_partition() -> None:
    """Triton does not nest them; here it is refused, not miscompiled."""
    text = read("deadlocked_partitions")
    inner = text[text.index("    ttg.warp_specialize(") : text.index("    tt.return")]
    assert inner.count("ttg.warp_return") == 1
    body = "default {\n ttg.warp_yield\n }\n partition0() num_warps(1) {\n ttg.warp_return\n }"
    nested = f"ttg.warp_specialize()\n {body} : () -> ()\n"
    with pytest.raises(Unsupported, match="a warp_specialize inside of a partition"):
        lowered(text.replace("ttg.warp_return", nested + "ttg.warp_return", 1))
