"""What an iteration of a loop carries and has loaded, in PTX, and a program without loops."""

from __future__ import annotations

from weft.backends.nvidia.loaded_words import held_in_an_iteration, held_without_loops

SUM = """
$L__BB0_2:
\t.loc\t1 73 20
\tmul.wide.u32 \t%rd3, %r9, 4;
\tadd.s64 \t%rd4, %rd1, %rd3;
\tmov.b32 \t%r4, %r8;
\t// begin inline asm
\t@%p2 ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd4];
\t// end inline asm
\tadd.f32 \t%r1, %r1, %r4;
\tadd.f32 \t%r1, %r1, %r5;
\tadd.f32 \t%r1, %r1, %r6;
\tadd.f32 \t%r1, %r1, %r7;
\tadd.s32 \t%r9, %r9, 1024;
\tsetp.lt.s32 \t%p1, %r9, %r10;
\t@%p1 bra \t$L__BB0_2;
"""


def test_carried_and_loaded() -> None:
    """The sum and the counter are carried, four words are loaded; what all iterations share is no part of it."""
    assert held_in_an_iteration(SUM) == 2 + 4


def test_pointers_that_move_are_two_words() -> None:
    assert held_in_an_iteration(SUM.replace("\tadd.s32", "\tadd.s64 \t%rd1, %rd1, 4096;\n\tadd.s32")) == 2 + 2 + 4


def test_what_is_used_before_the_next_load_makes_room() -> None:
    """Two loads one after the other hold as much as one; two that wait for each other's value hold twice that."""
    load = "\tld.global.b32 \t%r{0}, [%rd1];\n"
    use = "\tst.shared.b32 \t[%r20], %r{0};\n"
    loop = "$L__BB0_1:\n{}\t@%p1 bra \t$L__BB0_1;\n"
    first, second = [load.format(n) for n in (1, 2)], [use.format(n) for n in (1, 2)]
    assert held_in_an_iteration(loop.format(first[0] + second[0] + first[1] + second[1])) == 1
    assert held_in_an_iteration(loop.format("".join(first + second))) == 2


def test_loops_that_load_nothing_and_loads_outside_of_loops_are_nothing() -> None:
    assert held_in_an_iteration(SUM.replace("ld.global", "ld.shared")) == 0
    assert held_in_an_iteration(SUM.replace("bra \t$L__BB0_2", "bra \t$L__BB0_9")) == 0


def test_loops_with_a_label_in_them_are_not_looked_at() -> None:
    assert held_in_an_iteration(SUM.replace("\tadd.s32", "$L__BB0_3:\n\tadd.s32")) == 0


def test_programs_without_loops() -> None:
    """Branches ahead are no loops; one branch back is enough to say nothing."""
    load = "\tld.global.v4.b32 \t{%r1, %r2, %r3, %r4}, [%rd1];\n"
    use = "\tst.shared.v4.b32 \t[%r20], {%r1, %r2, %r3, %r4};\n"
    assert held_without_loops(load + "\t@%p1 bra \t$L__BB0_1;\n" + use + "$L__BB0_1:\n\tret;\n") == 4
    assert held_without_loops(load + use) == 4
    counts = "\tmov.b32 \t%r45, 0;\n$L__BB0_2:\n\tadd.s32 \t%r45, %r45, 1;\n\tsetp.lt.s32 \t%p2, %r45, %r33;\n"
    counts += "{}\t@%p2 bra \t$L__BB0_2;\n"
    assert held_without_loops(load + counts.format("") + use) == 4
    assert held_without_loops(load + counts.format("\tmul.f32 \t%r1, %r1, %r2;\n") + use) == 0
    assert held_without_loops(load + counts.format("\tbar.sync \t0;\n") + use) == 0
    assert held_without_loops("\tret;\n") == 0
    assert held_without_loops(SUM) == 0
