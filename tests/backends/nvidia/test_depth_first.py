"""What a block alone on its multiprocessor loads is used up vector by vector; no line moves over what it must not."""

from __future__ import annotations

import re

import pytest

import weft
import weft.language as tl
from weft.backends.gpu.depth_first import DEFINED, NAMES, _is_movable, depth_first
from weft.backends.gpu.emission import emit_llvm
from weft.backends.nvidia import PTX
from weft.compiler import ASTSource, lane_program


@weft.jit
def divergence(x, y, out, n, N: tl.constexpr):
    total = 0.0
    for start in range(0, n, N):
        i = start + tl.arange(0, N)
        a = tl.load(x + i, mask=i < n, other=1.0)
        b = tl.load(y + i, mask=i < n, other=1.0)
        total += tl.sum(b * (tl.log(b) - a))
    tl.store(out, total)


@weft.jit
def halves(x, y, out, n, N: tl.constexpr):
    """A store between the loads of two arrays: they may not change places with it."""
    i = tl.arange(0, N)
    a = tl.load(x + i, mask=i < n, other=1.0)
    tl.store(out + i, tl.log(a), mask=i < n)
    b = tl.load(y + i, mask=i < n, other=1.0)
    tl.store(out + N + i, tl.log(b) * a, mask=i < n)


def llir_of(kernel: weft.JITFunction, warps: int, size: int = 16384) -> list[str]:
    types = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    program = lane_program(ASTSource(kernel, types, {"N": size}, aligned), "sim:cuda:90", {"num_warps": warps})
    return emit_llvm(program, PTX(program.machine), lines=False).splitlines()


def loads_before_a_logarithm(lines: list[str]) -> int:
    first = next(i for i, line in enumerate(lines) if "log.f32(float" in line and "= call" in line)
    return sum("ld.global.v4" in line for line in lines[:first])


@pytest.mark.parametrize(("warps", "before"), [(16, 1), (4, 16)])
def test_large_blocks_use_up_what_they_load(warps: int, before: int) -> None:
    """Of 16 loads of 16 bytes one comes before the first logarithm; all do in a small block, which is not alone."""
    assert loads_before_a_logarithm(llir_of(divergence, warps, 1024 * warps)) == before


@pytest.mark.parametrize("kernel", [divergence, halves])
def test_nothing_is_used_before_it_is_made(kernel: weft.JITFunction) -> None:
    made: set[str] = set()
    for line in llir_of(kernel, 16):
        if line.startswith("define"):
            made = set(NAMES.findall(line))
        found = DEFINED.match(line)
        if found is not None:
            used = [n for n in NAMES.findall(line[found.end() :]) if re.match(r"%[xv]\d", n)]
            assert " = phi " in line or made.issuperset(used), line
            made.add(found[1])


def test_effects_stay_where_they_are() -> None:
    load = '  %{} = call float asm sideeffect "@$3 {} $0, [$2];", "=f,0,l,b"(float 0.0, i64 %p0, i1 %x0)'
    lines = [
        load.format("x1", "ld.global.b32"),
        load.format("x2", "ld.volatile.global.b32"),
        "  %x3 = load volatile float, ptr addrspace(1) %p1, align 4",
        "  %x4 = load float, ptr addrspace(3) %p2, align 4",
        "  %x5 = load float, ptr addrspace(1) %p1, align 4",
        "  %x6 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %x9, i32 1, i32 31)",
        "  %x7 = call i32 @llvm.nvvm.read.ptx.sreg.clock()",
        "  %x8 = atomicrmw add ptr addrspace(1) %p1, i32 1 monotonic",
        "  store float %x5, ptr addrspace(1) %p1, align 4",
        "  br label %done1",
        "done1:",
        "  %r1 = phi float [ 0.0, %entry ]",
    ]
    assert [i for i, line in enumerate(lines) if _is_movable(line)] == [0, 4]


def straight(count: int, between: str = "") -> list[str]:
    """Loads of two arrays, all of one first, and sums of pairs that are stored."""
    load = '  %{0}{1} = call float asm sideeffect "@$3 ld.global.b32 $0, [$2];", "=f,0,l,b"(float 0.0, i64 %p{1}, i1 1)'
    first = [load.format("xa", i) for i in range(count)]
    second = [load.format("xb", i) for i in range(count)]
    sums = [f"  %xs{i} = fadd float %xa{i}, %xb{i}" for i in range(count)]
    totals = [f"  %xt{i} = fadd float %xs{i}, %{f'xt{i - 1}' if i else 'p'}" for i in range(count)]
    return [*first, *([between] if between else []), *second, *sums, *totals, f"  store float %xt{count - 1}, ptr %p"]


def test_lines_between_effects() -> None:
    lines = straight(64)
    found = depth_first(lines, 512)
    assert sorted(found) == sorted(lines)
    names = [line.split()[0] for line in found]
    assert names[:8] == ["%xa0", "%xb0", "%xs0", "%xt0", "%xa1", "%xb1", "%xs1", "%xt1"]
    assert names[-1] == "store"


def test_what_two_blocks_have_room_for_stays() -> None:
    assert depth_first(straight(64), 128) == straight(64)
    assert depth_first(straight(16), 512) == straight(16)


def test_a_store_between_is_a_wall() -> None:
    """What was loaded before it stays before it, and what comes after stays after."""
    lines = straight(64, "  store float 0.0, ptr addrspace(1) %p9, align 4")
    found = depth_first(lines, 512)
    assert found[:65] == lines[:65]
    assert sorted(found) == sorted(lines) and found[65:] != lines[65:]
