"""Left operands in registers that a loop does not change are used behind it, so that ptxas keeps them."""

from __future__ import annotations

import pytest

import weft
from weft import gluon
from weft.backends.nvidia.kept_operands import keep_operands
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import warpgroup_mma, warpgroup_mma_wait


def product(*left: str) -> str:
    return f"\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r1, %r2}}, {{{', '.join(left)}}}, %rd1, p, 1, 1, 0;"


def loop(*body: str, label: str = "$L__BB0_2") -> list[str]:
    return [f"{label}:", *body, f"\t@%p1 bra \t{label};"]


def stored(lines: list[str]) -> dict[int, str]:
    """What is stored behind which lines, by their number."""
    found: dict[int, str] = {}
    number = 0
    for line in keep_operands("\n".join(lines)).split("\n"):
        if "%never" in line:
            found[number] = line.partition("%blocks, 0; ")[2].removesuffix(" }")
        else:
            number += 1
    return found


FOUR = ("%r3", "%r4", "%r5", "%r6")
USED = "@%never st.shared.v4.b32 [%blocks], {%r3, %r4, %r5, %r6};"


def test_what_the_loop_does_not_write_is_used_behind_it() -> None:
    assert stored(["\tmov.b32 \t%r3, 1;", *loop(product(*FOUR)), "\tret;"]) == {4: USED}


@pytest.mark.parametrize(
    "write", ["\tmov.b32 \t%r3, %r9;", "\tmov.b32 \t%r3, {%rs1, %rs2};", "\t@%p2 ld.shared.b32 \t%r3, [%r9];"]
)
def test_what_the_loop_writes_is_not(write: str) -> None:
    singles = " ".join(f"@%never st.shared.b32 [%blocks], {r};" for r in FOUR[1:])
    assert stored(loop(write, product(*FOUR))) == {4: singles}
    assert not stored(loop("\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r9];", product(*FOUR)))


def test_without_a_loop_nothing_is_kept() -> None:
    text = "\n".join([product(*FOUR), "\tret;"])
    assert keep_operands(text) == text


def test_of_loops_in_loops_the_outermost_that_leaves_them() -> None:
    inner = loop(product(*FOUR), label="$L__BB0_3")
    assert stored(loop(*inner)) == {5: USED}
    loads = ("\tld.shared.v2.b32 \t{%r3, %r4}, [%r9];", "\tmov.b64 \t{%r5, %r6}, %rd9;")
    assert stored(loop(*loads, *inner)) == {6: USED}


def test_loops_that_are_left_in_the_middle() -> None:
    lines = ["$L__BB0_2:", "\t@%p1 bra \t$L__BB0_4;", product(*FOUR), "\tbra.uni \t$L__BB0_2;", "$L__BB0_4:", "\tret;"]
    assert stored(lines) == {5: USED}


@gluon.jit
def products(x, y, out, n, ANEW: gl.constexpr):  # type: ignore[no-untyped-def]
    """The sum of n products of one left operand, which is loaded before the loop or in it."""
    memory: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows, columns = gl.arange(0, 64, gl.SliceLayout(1, blocked)), gl.arange(0, 64, gl.SliceLayout(0, blocked))
    i = rows[:, None] * 64 + columns[None, :]
    a = gl.allocate_shared_memory(gl.float16, [64, 64], memory, gl.load(x + i))
    b = gl.allocate_shared_memory(gl.float16, [64, 64], memory, gl.load(y + i))
    left = a.load(gl.DotOperandLayout(0, layout, 2))
    acc = gl.zeros((64, 64), gl.float32, layout)
    for _ in range(n):
        if ANEW:
            left = a.load(gl.DotOperandLayout(0, layout, 2))
        acc = warpgroup_mma(left, b, acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    gl.store(out + i, gl.convert_layout(acc, blocked))


@pytest.mark.parametrize("anew", [False, True])
def test_an_author_of_gluon_need_not_care(anew: bool) -> None:
    types = {"x": "*fp16", "y": "*fp16", "out": "*fp32", "n": "i32"}
    made = weft.compile(weft.ASTSource(products, types, {"ANEW": anew}), target="cuda:90")
    assert ("%never" in made.asm["ptx"]) == (not anew)
    assert any("left operand" in str(r) for r in made.remarks.of("instruction declined")) == (not anew)
