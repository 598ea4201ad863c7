"""The faults of ptxas that are known, each as a program that shows it: for the tests with and without a GPU.

A name that is missing here, or that `FAULTS` does not have, fails a test.
"""

from __future__ import annotations

from collections.abc import Sequence

from .programs import LETTER, THREADS, Program, Step


def _program(*steps: tuple[str, Sequence[str], Sequence[str]], stored: Sequence[tuple[str, int]]) -> Program:
    counts: dict[str, int] = {}
    made = []
    for text, kinds, operands in steps:
        defines = []
        for kind in kinds:
            defines.append((kind, counts.get(kind, 0)))
            counts[kind] = counts.get(kind, 0) + 1
        made.append(Step(text, tuple(defines), tuple(operands)))
    return Program(0, made, list(stored))


def _word(at: int, base: str = "%in") -> tuple[str, Sequence[str], Sequence[str]]:
    return f"ld.global.b32 {{d}}, [{base}+{at * (THREADS if base == '%in' else 1) * 4}];", ["b32"], []


SHORT = "ld.global.b16 {d}, [%in];", ["b16"], []
SHORT_TOO = f"ld.global.b16 {{d}}, [%in+{THREADS * 4}];", ["b16"], []

KNOWN: dict[str, list[Program]] = {
    "absolute value of 16 bits, sign-extended": [
        _program(
            SHORT,
            ("abs.s16 {d}, {0};", ["b16"], ["%rs0"]),
            ("cvt.s32.s16 {d}, {0};", ["b32"], ["%rs1"]),
            stored=[("b32", 0)],
        )
    ],
    "negation of 16 bits, sign-extended": [
        _program(
            SHORT,
            (negated, ["b16"], ["%rs0"]),
            ("cvt.s32.s16 {d}, {0};", ["b32"], ["%rs1"]),
            stored=[("b32", 0)],
        )
        for negated in ("neg.s16 {d}, {0};", "sub.s16 {d}, 0, {0};")
    ],
    "absolute value of 32 or 64 bits": [
        _program(
            _word(0),
            ("abs.s32 {d}, {0};", ["b32"], ["%r0"]),
            ("neg.s32 {d}, {0};", ["b32"], ["%r1"]),
            ("setp.ge.s32 {d}, {0}, -128;", ["pred"], ["%r2"]),
            stored=[("pred", 0)],
        ),
        _program(
            _word(0),
            ("abs.s32 {d}, {0};", ["b32"], ["%r0"]),
            ("rem.s32 {d}, {0}, 7;", ["b32"], ["%r1"]),
            stored=[("b32", 2)],
        ),
        _program(
            _word(0),
            ("cvt.s64.s32 {d}, {0};", ["b64"], ["%r0"]),
            ("abs.s64 {d}, {0};", ["b64"], ["%rd0"]),
            ("neg.s64 {d}, {0};", ["b64"], ["%rd1"]),
            ("min.s64 {d}, {0}, -1;", ["b64"], ["%rd2"]),
            ("setp.gt.s64 {d}, {0}, -1;", ["pred"], ["%rd2"]),
            stored=[("b64", 3), ("pred", 0)],
        ),
    ],
    "negation within a minimum or maximum of three": [
        _program(
            _word(0),
            _word(1),
            _word(2),
            (negated, ["b32"], ["%r1"]),
            (f"{op} {{d}}, {{0}}, {{1}};", ["b32"], ["%r0", "%r3"]),
            (f"{op} {{d}}, {{0}}, {{1}};", ["b32"], ["%r4", "%r2"]),
            stored=[("b32", 5)],
        )
        for negated in ("neg.s32 {d}, {0};", "sub.s32 {d}, 5, {0};")
        for op in ("min.s32", "max.s32")
    ],
    "minimum or maximum of 16 bits, compared for equality with what it is of": [
        _program(
            SHORT,
            SHORT_TOO,
            (f"{op} {{d}}, {{0}}, {{1}};", ["b16"], ["%rs0", other]),
            ("setp.eq.u16 {d}, {0}, {1};", ["pred"], ["%rs2", compared]),
            stored=[("pred", 0), ("b16", 2)],
        )
        for op in ("min.s16", "max.s16", "min.u16", "max.u16")
        for other, compared in (("%rs1", "%rs0"), ("12", "12"))
    ],
    "halves of a word that all threads share": [
        _program(
            ("ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%uniform];", ["b32"] * 4, []),
            ("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], ["%r0"]),
            ("shl.b16 {d}, {0}, 2;", ["b16"], ["%rs0"]),
            ("and.b16 {d}, {0}, 12;", ["b16"], ["%rs2"]),
            ("cvt.u64.u16 {d}, {0};", ["b64"], ["%rs3"]),
            ("add.s64 {d}, %uniform, {0};", ["b64"], ["%rd0"]),
            ("ld.global.b32 {d}, [{0}];", ["b32"], ["%rd1"]),
            ("cvt.u32.u16 {d}, {0};", ["b32"], ["%rs1"]),
            ("mul.lo.s32 {d}, {0}, {1};", ["b32"], ["%r5", "%r4"]),
            stored=[("b32", 6), ("b32", 5)],
        )
    ],
    "lower bits of a floating-point number, stored": [
        _program(
            _word(0),
            (f"{made} {{d}}, {{0}};", [kind], ["%r0"]),
            (f"{op} {{d}}, {{0}}, {{0}};", [kind], [f"%{LETTER[kind]}{int(kind == 'b32')}"]),
            (
                f"st.global.{part} [%out+4], {{0}}; mov.b16 {{d}}, 1;",
                ["b16"],
                [f"%{LETTER[kind]}{1 + int(kind == 'b32')}"],
            ),
            stored=[("b16", 2 if kind == "b16" else 0)],
        )
        for made, op, kind, part in (
            ("mov.b32", "add.f32", "b32", "b8"),
            ("mov.b32", "mul.f32", "b32", "b16"),
            ("cvt.u16.u32", "add.f16", "b16", "b8"),
            ("cvt.s64.s32", "add.f64", "b64", "b16"),
        )
    ],
    "half that is limited from below and above, read as an integer": [
        _program(
            SHORT,
            ("mov.b16 {d}, 0xD400;", ["b16"], []),
            ("mov.b16 {d}, 0x5400;", ["b16"], []),
            ("max.f16 {d}, {0}, {1};", ["b16"], ["%rs0", "%rs1"]),
            ("min.f16 {d}, {0}, {1};", ["b16"], ["%rs3", "%rs2"]),
            (f"{read} {{d}}, {{0}}{more};", [kind], ["%rs4"]),
            stored=[(kind, 0)],
        )
        for read, kind, more in (
            ("cvt.u32.u16", "b32", ""),
            ("setp.gt.u16", "pred", ", -17"),
            ("mul.wide.u16", "b32", ", 3"),
        )
    ],
    "sign of a half in a pair, with another pair": [
        _program(
            ("and.b64 {d}, %in, -16;", ["b64"], []),
            ("ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [{0}];", ["b32"] * 4, ["%rd0"]),
            ("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], ["%r1"]),
            ("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], ["%r0"]),
            *((f"ld.global.b16 {{d}}, [%in+{THREADS * 4 * i}];", ["b16"], []) for i in (2, 3)),
            ("mov.b32 {d}, {{{0}, {1}}};", ["b32"], ["%rs0", "%rs2"]),
            (signed, ["b16"], ["%rs4"]),
            ("mov.b32 {d}, {{{0}, {1}}};", ["b32"], ["%rs6", "%rs5"] if low else ["%rs5", "%rs6"]),
            (f"{op}x2 {{d}}, {{0}}, {{1}};", ["b32"], ["%r5", "%r4"]),
            stored=[("b32", 6)],
        )
        for signed, op in (
            ("neg.f16 {d}, {0};", "mul.rn.f16"),
            ("neg.bf16 {d}, {0};", "add.rn.bf16"),
            ("abs.f16 {d}, {0};", "min.f16"),
            ("mov.b16 {d}, 0xC700;", "mul.rn.f16"),
            ("mov.b16 {d}, -16160;", "max.bf16"),
        )
        for low in (True, False)
    ]
    + [
        _program(
            ("and.b64 {d}, %in, -16;", ["b64"], []),
            ("ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [{0}];", ["b32"] * 4, ["%rd0"]),
            ("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], ["%r1"]),
            ("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], ["%r0"]),
            (f"ld.global.b16 {{d}}, [%in+{THREADS * 8}];", ["b16"], []),
            ("mov.b32 {d}, {{{0}, {1}}};", ["b32"], ["%rs0", "%rs2"]),
            (f"{signed}.f16x2 {{d}}, {{0}};", ["b32"], ["%r3"]),
            ("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], ["%r5"]),
            ("mov.b32 {d}, {{{0}, {1}}};", ["b32"], ["%rs5", "%rs4"]),
            ("mul.rn.f16x2 {d}, {0}, {1};", ["b32"], ["%r6", "%r4"]),
            stored=[("b32", 7)],
        )
        for signed in ("neg", "abs")
    ],
    "mask of a rounded number, the lower half of a pair": [
        _program(
            _word(0),
            _word(1),
            ("cvt.rn.f32.s32 {d}, {0};", ["b32"], ["%r0"]),
            ("cvt.rn.f32.s32 {d}, {0};", ["b32"], ["%r1"]),
            (f"cvt.rn.{of}.f32 {{d}}, {{0}};", ["b16"], ["%r2"]),
            (f"cvt.rn.{of}.f32 {{d}}, {{0}};", ["b16"], ["%r3"]),
            (f"and.b16 {{d}}, {{0}}, {mask};", ["b16"], ["%rs0"]),
            ("mov.b32 {d}, {{{0}, {1}}};", ["b32"], ["%rs2", "%rs1"]),
            stored=[("b32", 4)],
        )
        for of in ("f16", "bf16")
        for mask in ("0x7FFF", "255", "-16")
    ],
}
