"""wgmma on every type, swizzle and major-ness, for tiles of one instruction and of several; and what it cannot read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from weft.base import LayoutError
from weft.ir import parse_module
from weft.lower import lower

from .running import DTYPES, Described, aligned, integers, launch, program_of

ELEMENTS = {"f16": ("f16", 16), "bf16": ("bf16", 16), "f32": ("f32", 8), "fp8": ("f8E4M3FN", 32),
            "fp8e5": ("f8E5M2", 32), "i8": ("i8", 32)}  # fmt: skip


@dataclass(frozen=True)
class Product:
    """c[m, n] = a @ b, tiles of one block; `trans` says which operands lie the other way round in memory."""

    m: int
    n: int
    k: int
    left: str = "f16"
    right: str = ""
    trans: tuple[bool, bool] = (False, True)
    swizzles: tuple[int, int] = (128, 128)
    warps: tuple[int, int] = (4, 1)
    instr: int = 0
    imprecise: int = 0
    use_acc: str = "%true"
    sliced: bool = False

    def text(self) -> str:
        """The kernel in layout IR."""
        (a, depth), (b, _) = ELEMENTS[self.left], ELEMENTS[self.right or self.left]
        acc = "i32" if self.left == "i8" else "f32"
        bits = 8 * np.dtype(DTYPES[self.left]).itemsize
        n = self.instr or min(self.n, 256)
        shapes = [(self.m, self.k), (self.k, self.n)]
        whole = [s[::-1] if t else s for s, t in zip(shapes, self.trans, strict=True)]
        kept = [list(s) for s in shapes]
        lines = [
            f"#mma = #ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = {list(self.warps)}, "
            f"instrShape = [16, {n}, {depth}]}}>",
            "#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>",
            f"#out = #ttg.nvmma_shared<{{swizzlingByteWidth = {128 if self.n >= 32 else 32}, transposed = false, "
            "elementBitWidth = 32}>",
            "#smem = #ttg.shared_memory",
        ]
        for name, swizzle in zip("ab", self.swizzles, strict=True):
            for suffix, turned in (("", "false"), ("t", "true")):
                lines.append(
                    f"#{name}{suffix} = #ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {turned}, "
                    f"elementBitWidth = {bits}}}>"
                )
        desc, memory = [], []
        for name, elem, shape in zip("ab", (a, b), whole, strict=True):
            x = "x".join(map(str, shape))
            desc.append(f"!tt.tensordesc<tensor<{x}x{elem}, #{name}>>")
            memory.append(f"!ttg.memdesc<{x}x{elem}, #{name}, #smem, mutable>")
        out = f"!tt.tensordesc<tensor<{self.m}x{self.n}x{acc}, #out>>"
        parts = "i32, %{0}1: i32, %{0}2: i64, %{0}3: i64"
        arguments = ", ".join(f"%{x}: {d}, %{x}0: {parts.format(x)}" for x, d in zip("abc", (*desc, out), strict=True))
        bar = "!ttg.memdesc<1xi64, #bar, #smem, mutable>"
        size = (self.m + self.n) * self.k * bits // 8
        lines += [
            f'module attributes {{"ttg.num-warps" = {self.warps[0] * self.warps[1]} : i32, ttg.target = "cuda:90"}} {{',
            f"  tt.func public @product({arguments}) attributes {{noinline = false}} {{",
            "    %true = arith.constant true",
            "    %false = arith.constant false",
            "    %zero = arith.constant 0 : i32",
            f"    %init = arith.constant dense<{1 if acc == 'i32' else 1.0}> : tensor<{self.m}x{self.n}x{acc}, #mma>",
            f"    %bar = ttg.local_alloc : () -> {bar}",
            f"    ttng.init_barrier %bar, 1 : {bar}",
            f"    ttng.barrier_expect %bar, {size}, %true : {bar}",
        ]
        operands, types = [], []
        for i, name in enumerate("ab"):
            lines += [
                f"    %m{name} = ttg.local_alloc : () -> {memory[i]}",
                f"    ttng.async_tma_copy_global_to_local %{name}[%zero, %zero] %m{name}, %bar, %true : "
                f"{desc[i]}, {bar} -> {memory[i]}",
            ]
            operands.append(f"%m{name}")
            types.append(memory[i])
        lines.append(f"    ttng.wait_barrier %bar, %zero, %true : {bar}")
        for i, (name, elem) in enumerate(zip("ab", (a, b), strict=True)):
            if self.trans[i]:
                x = "x".join(map(str, kept[i]))
                turned = f"!ttg.memdesc<{x}x{elem}, #{name}t, #smem, mutable>"
                order = "{order = array<i32: 1, 0>}"
                lines.append(f"    %t{name} = ttg.memdesc_trans {operands[i]} {order} : {types[i]} -> {turned}")
                operands[i], types[i] = f"%t{name}", turned
        if self.sliced:  # the last quarter of K of both
            step = self.k // 4 * 3
            for i, (name, elem) in enumerate(zip("ab", (a, b), strict=True)):
                axis = 1 - i
                part = list(kept[i])
                part[axis] = self.k // 4
                x, full = "x".join(map(str, part)), "x".join(map(str, kept[i]))
                layout = f"#{name}t" if self.trans[i] else f"#{name}"
                sub = f"!ttg.memdesc<{x}x{elem}, {layout}, #smem, mutable, {full}>"
                at = "0, " + str(step) if axis == 1 else f"{step}, 0"
                lines.append(f"    %s{name} = ttg.memdesc_subslice {operands[i]}[{at}] : {types[i]} -> {sub}")
                operands[i], types[i] = f"%s{name}", sub
        extra = f", maxNumImpreciseAcc = {self.imprecise} : i32" if self.imprecise else ""
        result = f"tensor<{self.m}x{self.n}x{acc}, #mma>"
        stored = f"!ttg.memdesc<{self.m}x{self.n}x{acc}, #out, #smem>"
        lines += [
            f"    %d = ttng.warp_group_dot {operands[0]}, {operands[1]}, %init, {self.use_acc} "
            f"{{inputPrecision = 0 : i32{extra}}} : {types[0]} * {types[1]} -> {result}",
            f"    %o = ttg.local_alloc %d : ({result}) -> {stored}",
            "    ttng.fence_async_shared {bCluster = false}",
            f"    ttng.async_tma_copy_local_to_global %c[%zero, %zero] %o : {out}, {stored}",
            "    ttng.async_tma_store_wait {pendings = 0 : i32}",
            "    tt.return",
            "  }",
            "}",
        ]
        return "\n".join(lines) + "\n"


def check(p: Product) -> None:
    program = program_of(p.text())
    left, right = DTYPES[p.left], DTYPES[p.right or p.left]
    a = integers(0, (p.k, p.m) if p.trans[0] else (p.m, p.k), left)
    b = integers(1, (p.n, p.k) if p.trans[1] else (p.k, p.n), right)
    c = aligned((p.m, p.n), np.int32 if p.left == "i8" else np.float32)
    values = {n: Described(x, x.shape) for n, x in (("a", a), ("b", b), ("c", c))}
    launch(program, 1, values)
    x, y = (m.T if t else m for m, t in zip((a, b), p.trans, strict=True))
    part = slice(p.k // 4 * 3 if p.sliced else 0, None)
    want = x[:, part].astype(np.float64) @ y[part].astype(np.float64) + (p.use_acc == "%true")
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.thinned(3)
def test_every_type_and_swizzle(swizzle: int, name: str) -> None:
    k = max(64, swizzle) * 2 // np.dtype(DTYPES[name]).itemsize
    check(Product(64, 32, k, name, swizzles=(swizzle, swizzle)))


@pytest.mark.parametrize("trans", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.thinned(3)
def test_every_direction(swizzle: int, trans: tuple[bool, bool]) -> None:
    check(Product(128, 64, 64, "bf16", trans=trans, swizzles=(swizzle, swizzle)))


@pytest.mark.parametrize(
    "p",
    [
        Product(64, 8, 16, swizzles=(32, 32)),
        Product(64, 8, 64, trans=(False, False), swizzles=(128, 0)),  # rows of 16 bytes are matrices of 8 by 8
        Product(64, 16, 32, swizzles=(64, 64)),
        Product(256, 64, 32, swizzles=(64, 64)),
        Product(128, 128, 64, warps=(8, 1)),
        Product(64, 128, 64, warps=(4, 2), instr=64),
        Product(128, 128, 32, trans=(True, False), warps=(4, 2), instr=64, swizzles=(128, 128)),
        Product(64, 128, 64, instr=32),
        Product(64, 64, 128, "fp8", "fp8e5"),
        Product(64, 64, 128, "fp8", imprecise=64),
        Product(64, 64, 128, "fp8", imprecise=32, use_acc="%false"),
        Product(64, 64, 64, use_acc="%false"),
        Product(64, 64, 64, sliced=True),
        Product(64, 64, 64, trans=(True, False), sliced=True),
        Product(64, 32, 256, "i8", sliced=True),
    ],
    ids=lambda p: (
        f"{p.m}x{p.n}x{p.k}-{p.left}-{p.warps[0]}x{p.warps[1]}-{p.imprecise}-{p.use_acc}-{p.sliced}-{p.trans}"
    ),
)
@pytest.mark.thinned(3)
def test_shapes(p: Product) -> None:
    check(p)


def test_warp_groups_that_divide_lines() -> None:
    """Columns 0 to 31 and 64 to 95 of the first group are no matrix together: each 32 are an instruction's."""
    check(Product(64, 128, 32, trans=(False, False), warps=(4, 2), instr=32, swizzles=(64, 128)))


def test_what_wgmma_cannot_read() -> None:
    """Operands of 8 bits must be contiguous along K."""
    with pytest.raises(LayoutError) as found:
        lower(parse_module(Product(64, 64, 128, "fp8", trans=(False, False), swizzles=(128, 64)).text(), "k.ttgir"))
    assert str(found.value) == (
        "k.ttgir:23:5: error: wgmma cannot read its right operand, 128x64 elements of 8 bits: its matrices of 64 by 32 "
        "must be contiguous along K, in chunks of 16 bytes that one of the swizzles of none, 32, 64 or 128 bytes "
        """orders, and here they are not
  here: NVMMASharedLayout(64, 8), by bytes
        0    1    2    3    4    5
    0    0    1    2    3    4    5  ...
    1   64   65   66   67   68   69  ...
    2  144  145  146  147  148  149  ...
    ...
  what it can read: NVMMASharedLayout(128, 8, transposed=True)
        0    1    2    3    4    5
    0    0  144  288  432  576  720  ...
    1    1  145  289  433  577  721  ...
    2    2  146  290  434  578  722  ...
    ...
hint: allocate it with layout=NVMMASharedLayout(128, 8, transposed=True), so that K is contiguous (transpose it """
        "while it is stored)"
    )


def test_rows_without_a_swizzle() -> None:
    """Plain rows of more than 16 bytes are in no mode's order."""
    with pytest.raises(LayoutError, match="wgmma cannot read its left operand, 64x64 elements of 16 bits"):
        lower(parse_module(Product(64, 64, 64, swizzles=(0, 128)).text(), "k.ttgir"))


def test_a_result_that_no_instruction_gives() -> None:
    text = Product(64, 64, 64).text().replace("warpsPerCTA = [4, 1]", "warpsPerCTA = [2, 2]")
    with pytest.raises(LayoutError, match="does not divide the layout of the result"):
        lower(parse_module(text, "k.ttgir"))
