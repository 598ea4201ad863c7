"""PTX that ptxas assembles wrongly is rewritten to PTX that means the same, and that has not the sequence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ptx.control import run
from ptx.parsing import Program as Parsed
from ptx.spaces import Global
from weft.backends.nvidia.assembler_faults import FAULTS, avoid_faults

from .known import KNOWN
from .programs import THREADS, Program, generate, module
from .run import inputs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "ptxas.md"


def _interpreted(text: str, program: Program, seed: int) -> bytes:
    """What the entry stores, by the interpreter of PTX."""
    memory, words = Global(), inputs(seed)
    out = np.zeros(THREADS * len(program.stored), np.uint64)
    parameters = np.array([memory.add(words), memory.add(out)], np.uint64).view(np.uint8)
    run(Parsed.parse(module([text], "sm_90a")), (1,), memory, parameters, 0)
    return out.tobytes()


def test_every_fault_has_a_program() -> None:
    assert list(KNOWN) == [fault.name for fault in FAULTS]


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_written_instead_means_the_same(name: str) -> None:
    fault = next(f for f in FAULTS if f.name == name)
    for program in KNOWN[name]:
        text = program.text("k")
        rewritten = fault.rewrite(text)
        assert rewritten != text
        assert fault.rewrite(rewritten) == rewritten
        for seed in range(2):
            assert _interpreted(rewritten, program, seed) == _interpreted(text, program, seed)


def test_random_programs_mean_the_same() -> None:
    changed = 0
    for seed in range(12):
        program = generate(seed)
        text = program.text("k")
        if (rewritten := avoid_faults(text, 90)) != text:
            changed += 1
            assert _interpreted(rewritten, program, seed) == _interpreted(text, program, seed), seed
    assert changed > 3


def test_a_negation_that_is_not_compared_is_left() -> None:
    text = "\tneg.s32 \t%r2, %r1;\n\tmin.s32 \t%r4, %r1, %r3;"
    assert avoid_faults(text, 90) == text
    compared = "\tneg.s32 \t%r2, %r1;\n\tmin.s32 \t%r4, %r2, %r3;"
    assert avoid_faults(compared, 80) == compared  # no minimum of three before 9.0
    assert avoid_faults(compared, 90) == ("\tnot.b32 \t%r2, %r1;\n\tadd.s32 \t%r2, %r2, 1;\n\tmin.s32 \t%r4, %r2, %r3;")


def test_halves_of_a_word_of_each_thread_are_left() -> None:
    text = (
        "\tmov.u32 \t%r1, %tid.x;\n\tmul.wide.u32 \t%rd1, %r1, 4;\n\tadd.s64 \t%rd2, %rd3, %rd1;\n"
        "\tld.global.b32 \t%r2, [%rd2];\n\tmov.b32 \t{%rs1, %rs2}, %r2;"
    )
    assert avoid_faults(text, 90) == text


def test_stores_of_inline_assembly_have_the_lower_bits_of_floats_too() -> None:
    text = "\tadd.f32 \t%r2, %r1, %r1;\n\tst.global.cs.v2.b8 [%rd2], {%r2, %r3};"
    assert avoid_faults(text, 90).splitlines()[1] == (
        "\t{ .reg .b32 %mended0; mov.b32 %mended0, %r2; st.global.cs.v2.b8 [%rd2], {%mended0, %r3}; }"
    )
    assert avoid_faults(text.replace("f32", "s32"), 90) == text.replace("f32", "s32")


def test_a_constant_is_what_all_moves_to_a_register_leave() -> None:
    text = (
        "\tmov.b16 \t%rs1, 0xC700;\n\tmov.pred \t%p1, 0;\n\tmov.b16 \t%rs2, %rs1;\n\t@%p1 ld.global.b16 %rs2, [%rd1];\n"
        "\tmov.b32 \t%r1, {%rs3, %rs2};\n\tmov.b32 \t%r2, {%rs2, %rs1};\n"
        "\tmov.b16 \t%rs4, %rs1;\n\t@!%p2 ld.global.b16 %rs4, [%rd1];\n\tmov.b32 \t%r3, {%rs4, %rs3};"
    )
    changed = avoid_faults(text, 90).splitlines()
    made = "\tcvt.u32.u16 \t%r1, %rs3;\n\tor.b32 \t%r1, %r1, 3338665984;\n\tmov.b32 \t%r2, 3338716928;"
    assert changed[4:7] == made.splitlines()
    assert changed[:4] + changed[7:] == text.splitlines()[:4] + text.splitlines()[6:]


def test_signs_of_halves_alone_are_left() -> None:
    text = "\tneg.f16 \t%rs2, %rs1;\n\tmul.rn.f16 \t%rs3, %rs2, %rs1;\n\tmov.b32 \t%r1, {%rs3, %rs1};"
    assert avoid_faults(text, 90) == text


def test_the_page_lists_them() -> None:
    rows = re.findall(
        r"^\| (.*?) \| `.*?` \| .*? \| `.*?` \| [\d., ]+ \|$", PAGE.read_text(encoding="utf-8"), flags=re.M
    )
    assert rows == [fault.name for fault in FAULTS]
