"""Vectors are in use on AArch64: no kernel has more loops there that go element by element than on x86-64.

`make aarch64-test` looks at all kernels of tests/kernels, `python -m aarch64.loops` in tests prints them.
"""

from __future__ import annotations

import pytest

from aarch64.loops import MACHINES, count, loops_of
from kernels import load_cases

CASES = load_cases("weft")
QUICK = ("gather_rows",)

X86 = """
program:
	movl	$4, %eax
	xorl	%ecx, %ecx
.LBB0_1:
	vmovups	(%rdi,%rcx), %ymm0
	vmovups	%ymm0, (%rsi,%rcx)
	addq	$32, %rcx
	cmpq	$256, %rcx
	jne	.LBB0_1
.LBB0_2:
	vmovss	(%rdi,%rcx), %xmm0
	vaddss	%xmm0, %xmm1, %xmm1
	decq	%rax
	jne	.LBB0_2
	retq
"""
ARM = """
program:
	mov	x8, #0
.LBB0_1:
	mov	x9, #0
.LBB0_2:
	ldr	q1, [x10, x9]
	fadd	v0.4s, v0.4s, v1.4s
	ld1	{ v2.s }[1], [x11]
	add	x9, x9, #16
	cmp	x9, #64
	b.ne	.LBB0_2
	add	x8, x8, #1
	cbnz	x8, .LBB0_1
.LBB0_3:
	ldr	s1, [x10], #4
	fadd	s0, s0, s1
	subs	x9, x9, #1
	b.ne	.LBB0_3
.LBB0_4:
	bl	other
	b.ne	.LBB0_4
	ret
"""


def test_loops_are_told_apart() -> None:
    x86, arm = count(X86, arm=False), count(ARM, arm=True)
    assert (x86.vector, x86.scalar, x86.lanes) == (1, 1, 0)
    assert (arm.vector, arm.scalar, arm.lanes) == (1, 1, 1)


def check(name: str) -> None:
    """Compare the counts of a kernel on all machines."""
    found = loops_of(CASES[name])
    most = min(loops.scalar for machine, loops in found.items() if not MACHINES[machine].arm)
    for machine, loops in found.items():
        assert loops.scalar <= most, (machine, found)


@pytest.mark.parametrize("name", QUICK)
def test_no_more_scalar_loops(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_more_scalar_loops_in_any_kernel(name: str) -> None:
    check(name)
