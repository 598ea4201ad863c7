"""Random PTX: straight-line integer code over corner values, for comparing what ptxas makes of it at two levels.

    program = generate(17)
    print(program.text("k17"))        # .visible .entry k17(...) { ... }

A program has a table of words of 32 bits for input: each thread reads words of its own, and words that all threads
share (a uniform address, which ptxas computes on another datapath). Everything it computes has one meaning by the PTX
manual: no division by zero, no shift by a register beyond the width, no NaN. In every other program there are floats of
16 bits, whose signs and masks, pairs and conversions ptxas turns into instructions of pairs.

What LLVM never leaves to ptxas is not drawn, though ptxas has faults there too (docs/reference/ptxas.md lists those
that were seen): an operation on one register twice, the upper half of a word that was extended from 8 or 16 bits, the
absolute value of 64 bits that were extended from fewer, a product with -1, a shift of 64 bits up and down by 32, a
selection of several signs at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

THREADS = 128
WORDS = 16
"""Words of input that a thread reads, at a distance of `THREADS` words, and words that all of them share."""
FINITE = 8
"""From this word on, both halves of each word are finite and less than 2, as float16 and as bfloat16."""

LETTER = {"b16": "rs", "b32": "r", "b64": "rd", "pred": "p"}
IMMEDIATES = {
    "b16": (1, -1, 2, 3, 7, 8, 12, 15, 127, 128, 255, 256, -128, 32767, -32768),
    "b32": (1, -1, 2, 3, 5, 8, 15, 16, 31, 127, 128, -128, 255, 65535, 65536, 32767, -32768, (1 << 31) - 1, -1 << 31),
    "b64": (1, -1, 2, 5, 31, 33, 63, 255, 65535, 4294967295, -2147483648, 9223372036854775807, -9223372036854775808),
}


@dataclass(frozen=True)
class Step:
    """One or a few instructions that define a register. `{0}`, `{1}` are operands, `{d}` and `{e}` what is defined."""

    text: str
    defines: tuple[tuple[str, int], ...]
    """Classes and numbers of the registers."""
    operands: tuple[str, ...]
    """Registers as they are spelled, or numbers."""

    def spelled(self) -> str:
        """The instructions."""
        names = [f"%{LETTER[kind]}{number}" for kind, number in self.defines]
        lines = self.text.format(*self.operands, d=names[0], e=names[-1]).split("; ")
        return "\n".join("\t" + line.strip(";").replace(" ", " \t", 1) + ";" for line in lines)


@dataclass
class Program:
    """Steps, and the registers whose values are stored at the end."""

    seed: int
    steps: list[Step] = field(default_factory=list)
    stored: list[tuple[str, int]] = field(default_factory=list)

    def text(self, name: str) -> str:
        """The entry as PTX. Each register of at most 64 bits that is stored has a slot of 8 bytes a thread."""
        used = {kind: [n for s in self.steps for k, n in s.defines if k == kind] for kind in LETTER}
        counts = {kind: max(numbers, default=0) + 1 for kind, numbers in used.items()}
        lines = [
            f".visible .entry {name}(.param .u64 input, .param .u64 output)\n.reqntid {THREADS}\n{{",
            *(f"\t.reg .{kind} %{LETTER[kind]}<{counts[kind]}>;" for kind in LETTER),
            "\t.reg .b64 %in, %uniform, %out, %offset, %w<2>;\n\t.reg .b32 %thread, %t<2>;\n\t.reg .b16 %s<2>;",
            "\tld.param.b64 %uniform, [input];\n\tld.param.b64 %out, [output];",
            "\tmov.u32 %thread, %tid.x;\n\tmul.wide.u32 %offset, %thread, 4;\n\tadd.s64 %in, %uniform, %offset;",
            "\tmul.wide.u32 %offset, %thread, 8;\n\tadd.s64 %out, %out, %offset;",
            *(step.spelled() for step in self.steps),
        ]
        for i, (kind, number) in enumerate(self.stored):
            register = f"%{LETTER[kind]}{number}"
            if kind == "pred":
                lines.append(f"\tselp.b32 %t1, 1, 0, {register};\n\tst.global.b32 [%out+{i * THREADS * 8}], %t1;")
            else:
                lines.append(f"\tst.global.{kind} [%out+{i * THREADS * 8}], {register};")
        return "\n".join([*lines, "\tret;\n}"])

    def without(self, steps: Sequence[int], stored: Sequence[int]) -> Program | None:
        """The program less these; None where something else needs them."""
        kept = [s for i, s in enumerate(self.steps) if i not in steps]
        outputs = [s for i, s in enumerate(self.stored) if i not in stored]
        known = {f"%{LETTER[kind]}{number}" for s in kept for kind, number in s.defines}
        needed = {o for s in kept for o in s.operands if o.startswith("%")}
        needed |= {f"%{LETTER[kind]}{number}" for kind, number in outputs}
        return Program(self.seed, kept, outputs) if outputs and needed <= known else None

    def shape(self) -> str:
        """The opcodes alone, by which like faults are counted together."""
        return "; ".join(line.split(" ")[0] for step in self.steps for line in step.text.split("; "))


class Generator:
    """Draws steps one by one; earlier registers are operands of later ones, the newest most often."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.program = Program(seed)
        self.registers: dict[str, list[int]] = {kind: [] for kind in LETTER}
        self.extended: set[str] = set()
        """Words that were extended from 8 or 16 bits, and words of 64 bits from fewer."""
        self.type = self.rng.choice(("f16", "bf16"))
        """That of the program's floats: their bits stay bits, so that no NaN becomes another."""
        self.floats: dict[str, list[str]] = {"half": [], "pair": [], "f32": []}
        """Registers that hold them."""

    def define(self, text: str, kinds: Sequence[str], *operands: str) -> None:
        """Append a step."""
        defined = []
        for kind in kinds:
            number = len(self.registers[kind])
            self.registers[kind].append(number)
            defined.append((kind, number))
        self.program.steps.append(Step(text, tuple(defined), operands))

    def register(self, kind: str) -> str:
        """One that is defined; the last few most often."""
        numbers = self.registers[kind]
        if not numbers:
            self.load(kind)
        chosen = self.rng.choice(numbers[-4:] if self.rng.random() < 0.7 else numbers)
        return f"%{LETTER[kind]}{chosen}"

    def operand(self, kind: str) -> str:
        """A register, or a number."""
        return str(self.rng.choice(IMMEDIATES[kind])) if self.rng.random() < 0.25 else self.register(kind)

    def load(self, kind: str) -> None:
        """Read what the program is given."""
        rng = self.rng
        base = rng.choice(("%in", "%in", "%uniform"))
        at = rng.randrange(WORDS)
        words = [word for n in self.registers["b32"] if (word := f"%r{n}") not in self.extended]
        distance = THREADS * 4 if base == "%in" else 4
        if kind == "pred":
            self.define("setp.lt.s32 {d}, {0}, {1};", ["pred"], self.register("b32"), self.operand("b32"))
        elif kind == "b64":
            self.define("cvt.s64.s32 {d}, {0};", ["b64"], self.register("b32"))
        elif kind == "b16" and words and rng.random() < 0.5:
            self.define("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], rng.choice(words))
        elif kind == "b16" and rng.random() < 0.2:
            self.define(f"ld.global.{rng.choice(('u8', 's8'))} {{d}}, [{base}+{at * distance}];", ["b16"])
        else:
            self.define(f"ld.global.{kind} {{d}}, [{base}+{at * distance}];", [kind])


def _table() -> list[tuple[float, Callable[[Generator], None]]]:
    """What a step may be, and how often."""
    rows: list[tuple[float, Callable[[Generator], None]]] = []

    def row(weight: float, text: str, defines: Sequence[str], *operands: str) -> None:
        def draw(g: Generator) -> None:
            given = [g.operand(o[:-1]) if o.endswith("?") else g.register(o) if o in LETTER else o for o in operands]
            registers = [o for o in given if o.startswith("%")]
            halves = text.startswith(("mov.b32 {{", "abs.s64")) and given[0] in g.extended
            negated = text.startswith("mul.lo") and "-1" in given
            if halves or negated or len(set(registers)) < len(registers) or not registers:
                return
            g.define(text, defines, *given)
            if text.startswith(("cvt.u32.u16", "cvt.u32.u8")):
                g.extended.add(f"%r{g.registers['b32'][-1]}")
            if text.startswith("cvt.u64."):
                g.extended.add(f"%rd{g.registers['b64'][-1]}")

        rows.append((weight, draw))

    for n in (16, 32, 64):
        kind = f"b{n}"
        for op in (f"add.s{n}", f"sub.s{n}", f"mul.lo.s{n}", f"min.s{n}", f"max.s{n}", f"min.u{n}", f"max.u{n}"):
            row(1, f"{op} {{d}}, {{0}}, {{1}};", [kind], kind, kind + "?")
        for op in (f"and.b{n}", f"or.b{n}", f"xor.b{n}"):
            row(0.7, f"{op} {{d}}, {{0}}, {{1}};", [kind], kind, kind + "?")
        for op in (f"neg.s{n}", f"abs.s{n}", f"not.b{n}"):
            row(1.2, f"{op} {{d}}, {{0}};", [kind], kind)
        row(0.6, f"sub.s{n} {{d}}, {{1}}, {{0}};", [kind], kind, "0")
        row(0.6, f"selp.b{n} {{d}}, {{0}}, {{1}}, {{2}};", [kind], kind, kind + "?", "pred")
        for op in ("lt", "le", "eq", "ne", "gt", "ge"):
            row(0.15, f"setp.{op}.s{n} {{d}}, {{0}}, {{1}};", ["pred"], kind, kind + "?")
            row(0.15, f"setp.{op}.u{n} {{d}}, {{0}}, {{1}};", ["pred"], kind, kind + "?")
        for op in (f"shl.b{n}", f"shr.s{n}", f"shr.u{n}"):
            for count in (1, 2, 3, 7, 8, n // 2 if n < 64 else 33, n - 1):
                row(0.2, f"{op} {{d}}, {{0}}, {count};", [kind], kind)
        amount = f"and.b32 %t0, {{1}}, {n - 1};"
        row(0.3, f"{amount} shl.b{n} {{d}}, {{0}}, %t0;", [kind], kind, "b32")
        row(0.3, f"{amount} shr.s{n} {{d}}, {{0}}, %t0;", [kind], kind, "b32")
        temporary = {16: "%s0", 32: "%t0", 64: "%w0"}[n]
        for op in (f"div.s{n}", f"rem.s{n}", f"div.u{n}", f"rem.u{n}"):
            # an odd number from 1 up: neither zero nor -1, by which the least number has no quotient
            divisor = f"and.b{n} {temporary}, {{1}}, {(1 << (n - 1)) - 1}; or.b{n} {temporary}, {temporary}, 1;"
            row(0.15 if n < 64 else 0.03, f"{divisor} {op} {{d}}, {{0}}, {temporary};", [kind], kind, kind)
    row(0.5, "mul.hi.s32 {d}, {0}, {1};", ["b32"], "b32", "b32?")
    row(0.5, "mul.hi.u32 {d}, {0}, {1};", ["b32"], "b32", "b32?")
    row(0.7, "mad.lo.s32 {d}, {0}, {1}, {2};", ["b32"], "b32", "b32?", "b32?")
    row(0.5, "mul.wide.s32 {d}, {0}, {1};", ["b64"], "b32", "b32?")
    row(0.5, "mul.wide.u32 {d}, {0}, {1};", ["b64"], "b32", "b32?")
    row(0.7, "mul.wide.s16 {d}, {0}, {1};", ["b32"], "b16", "b16?")
    row(0.7, "mul.wide.u16 {d}, {0}, {1};", ["b32"], "b16", "b16")
    for op in ("popc", "clz"):
        row(0.2, f"{op}.b32 {{d}}, {{0}};", ["b32"], "b32")
    row(0.2, "brev.b32 {d}, {0};", ["b32"], "b32")
    for start, length in ((0, 8), (8, 8), (4, 12), (16, 16), (31, 1)):
        row(0.15, f"bfe.u32 {{d}}, {{0}}, {start}, {length};", ["b32"], "b32")
        row(0.15, f"bfe.s32 {{d}}, {{0}}, {start}, {length};", ["b32"], "b32")
    for selector in ("0x5410", "0x7632", "0x3340", "0x0123", "0x4140"):
        row(0.15, f"prmt.b32 {{d}}, {{0}}, {{1}}, {selector};", ["b32"], "b32", "b32?")
    for selector in ("0x7770", "0x7771", "0x7772", "0x7773", "0x8880", "0x9991", "0xaaa2", "0xbbb3"):
        row(0.3, f"prmt.b32 {{d}}, {{0}}, 0, {selector};", ["b32"], "b32")
    row(0.3, "shf.l.wrap.b32 {d}, {0}, {1}, {2};", ["b32"], "b32", "b32", "7")
    row(0.3, "shf.r.wrap.b32 {d}, {0}, {1}, {2};", ["b32"], "b32", "b32", "9")
    row(1.5, "mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], "b32")
    row(1.2, "mov.b32 {d}, {{{0}, {1}}};", ["b32"], "b16", "b16")
    row(0.4, "mov.b64 {{{d}, {e}}}, {0};", ["b32", "b32"], "b64")
    row(0.4, "mov.b64 {d}, {{{0}, {1}}};", ["b64"], "b32", "b32")
    for to, of in (
        ("s32", "s16"), ("u32", "u16"), ("s32", "s8"), ("u32", "u8"), ("u16", "u32"), ("s16", "s8"), ("u16", "u8"),
        ("s64", "s32"), ("u64", "u32"), ("u32", "u64"), ("s64", "s16"), ("u64", "u16"), ("u16", "u64"),
    ):  # fmt: skip
        source = "b" + str(max(16, int(of[1:])))
        row(1.0, f"cvt.{to}.{of} {{d}}, {{0}};", ["b" + to[1:]], source)
    row(0.4, "cvt.rzi.s32.f32 {d}, {0};", ["b32"], "b32")
    for of in ("s16", "u16", "s8", "u8"):
        row(0.4, f"cvt.rn.f32.{of} {{d}}, {{0}};", ["b32"], "b16")
    row(0.4, "cvt.rn.f32.s32 {d}, {0};", ["b32"], "b32")
    row(0.4, "cvt.rn.f64.s32 {d}, {0};", ["b64"], "b32")
    for op in ("and", "or", "xor"):
        row(0.3, f"{op}.pred {{d}}, {{0}}, {{1}};", ["pred"], "pred", "pred")
    row(0.3, "not.pred {d}, {0};", ["pred"], "pred")
    for lanes in (1, 16):
        row(0.3, f"shfl.sync.bfly.b32 {{d}}, {{0}}, {lanes}, 31, -1;", ["b32"], "b32")
    # a word that all threads read, at an address that was computed
    address = "cvt.u64.u32 %w0, %t0; add.s64 %w0, {1}, %w0; ld.global.b32 {d}, [%w0];"
    for base in ("%uniform", "%in"):
        row(0.6, f"shl.b32 %t0, {{0}}, 2; and.b32 %t0, %t0, 60; {address}".replace("{1}", base), ["b32"], "b32")
        short = "shl.b16 %s0, {0}, 2; and.b16 %s0, %s0, 60; cvt.u32.u16 %t0, %s0;"
        row(0.6, f"{short} {address}".replace("{1}", base), ["b32"], "b16")
    for kind, weight in (("b16", 1.0), ("b32", 2.0)):
        rows.append((weight, lambda g, kind=kind: g.load(kind)))
    rows.append((1.5, _vector))
    return rows


def _vector(g: Generator) -> None:
    """Four words at once, from an address that is the thread's own or everybody's."""
    at = 16 * g.rng.randrange(WORDS // 4)
    base = "%uniform" if g.rng.random() < 0.7 else "%in"
    if base == "%in":
        g.load("b32")
        return
    first = len(g.registers["b32"])
    names = ", ".join(f"%r{first + i}" for i in range(4))
    g.define(f"ld.global.v4.b32 {{{{{names}}}}}, [{base}+{at}];", ["b32"] * 4)


def _float(g: Generator, what: str) -> str:
    """A half, a pair or a float32, read or made of what was read."""
    rng, held = g.rng, g.floats[what]
    if held and rng.random() < 0.8:
        return rng.choice(held[-4:])
    at = rng.randrange(FINITE, WORDS)
    if what == "f32":
        half = f"ld.global.b16 %s0, [%in+{at * THREADS * 4}];"
        _keep(g, "f32", f"{half} cvt.f32.{g.type} {{d}}, %s0;", "b32")
    elif what == "pair" or rng.random() < 0.6:
        base, distance = rng.choice((("%in", THREADS * 4), ("%in", THREADS * 4), ("%uniform", 4)))
        _keep(g, "pair", f"ld.global.b32 {{d}}, [{base}+{at * distance}];", "b32")
        if what == "half":
            g.define("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], g.floats["pair"][-1])
            held += [f"%rs{n}" for n in g.registers["b16"][-2:]]
    else:
        _keep(g, "half", f"ld.global.b16 {{d}}, [%in+{at * THREADS * 4}];", "b16")
    return held[-1]


def _keep(g: Generator, what: str, text: str, kind: str, *operands: str) -> None:
    """Append a step that makes a float."""
    g.define(text, [kind], *operands)
    g.floats[what].append(f"%{LETTER[kind]}{g.registers[kind][-1]}")


def _float_steps() -> list[tuple[float, Callable[[Generator], None]]]:
    """What is done to floats: signs and masks, pairs and their halves, arithmetic without NaN, conversions."""
    rows: list[tuple[float, Callable[[Generator], None]]] = []

    def row(weight: float, text: str, what: str, *operands: str) -> None:
        def draw(g: Generator) -> None:
            given = [_float(g, o) for o in operands]
            if len(set(given)) == len(given):
                _keep(g, what, text.replace("TYPE", g.type), "b16" if what == "half" else "b32", *given)

        rows.append((weight, draw))

    for what, two, wide in (("half", "", "b16"), ("pair", "x2", "b32")):
        for op in ("neg", "abs"):
            row(0.5, f"{op}.TYPE{two} {{d}}, {{0}};", what, what)
        for op in ("add.rn", "mul.rn", "min", "max"):
            row(0.3, f"{op}.TYPE{two} {{d}}, {{0}}, {{1}};", what, what, what)
        row(0.2, f"fma.rn.TYPE{two} {{d}}, {{0}}, {{1}}, {{2}};", what, what, what, what)
        for op, bits in (("and", "7FFF"), ("xor", "8000"), ("and", "FFF0")):
            row(0.3, f"{op}.{wide} {{d}}, {{0}}, 0x{bits * (1 + (two != ''))};", what, what)
    row(0.1, "and.b32 {d}, {0}, 0xFFFF7FFF;", "pair", "pair")
    row(0.1, "xor.b32 {d}, {0}, 0x80000000;", "pair", "pair")
    row(2.5, "mov.b32 {d}, {{{0}, {1}}};", "pair", "half", "half")
    row(0.3, "mov.b16 {d}, 0xBE00;", "half")
    row(1.2, "cvt.rn.TYPE.f32 {d}, {0};", "half", "f32")
    row(0.4, "cvt.rn.TYPEx2.f32 {d}, {0}, {1};", "pair", "f32", "f32")
    row(0.5, "cvt.f32.TYPE {d}, {0};", "f32", "half")
    for op in ("neg", "abs"):
        row(0.2, f"{op}.f32 {{d}}, {{0}};", "f32", "f32")
    for op in ("add.rn", "mul.rn", "min", "max"):
        row(0.15, f"{op}.f32 {{d}}, {{0}}, {{1}};", "f32", "f32", "f32")

    def unpacked(g: Generator) -> None:
        g.define("mov.b32 {{{d}, {e}}}, {0};", ["b16", "b16"], _float(g, "pair"))
        g.floats["half"] += [f"%rs{n}" for n in g.registers["b16"][-2:]]

    def rounded(g: Generator) -> None:
        _keep(g, "half", f"cvt.rn.f32.s8 %t0, {{0}}; cvt.rn.{g.type}.f32 {{d}}, %t0;", "b16", g.register("b16"))

    return [*rows, (1.5, unpacked), (0.5, rounded)]


TABLE = _table()
WEIGHTS = [weight for weight, _ in TABLE]
DRAWS = [draw for _, draw in TABLE]
FLOATS = _float_steps()
FLOAT_WEIGHTS = [weight for weight, _ in FLOATS]
FLOAT_DRAWS = [draw for _, draw in FLOATS]


def generate(seed: int) -> Program:
    """The program of a seed."""
    g = Generator(seed)
    for _ in range(g.rng.choice((1, 2, 4))):
        g.load("b32")
    steps = g.rng.choice((4, 6, 10, 16, 24))
    drawn = g.rng.choices(DRAWS, WEIGHTS, k=steps)
    if g.rng.random() < 0.5:
        floats = g.rng.choices(FLOAT_DRAWS, FLOAT_WEIGHTS, k=steps)
        drawn = [g.rng.choice(two) for two in zip(drawn, floats, strict=True)] if g.rng.random() < 0.3 else floats
    for draw in drawn:
        draw(g)
    every = [register for step in g.program.steps for register in step.defines]
    last = every[-3:]
    g.program.stored = list(dict.fromkeys([*last, *(r for r in every if g.rng.random() < 0.3)]))
    return g.program


def module(texts: Sequence[str], processor: str) -> str:
    """A module with these entries."""
    head = f".version 8.0\n.target {processor}\n.address_size 64\n"
    return head + "\n".join(texts) + "\n"
