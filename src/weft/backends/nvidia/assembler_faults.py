"""Rewrite PTX that ptxas is known to assemble wrongly.

Random kernels find sequences of instructions that ptxas turns into wrong machine code, most of them at every level but
-O0. `FAULTS` lists those that are known, and `avoid_faults` rewrites each into a sequence that is assembled correctly:

    abs.s16 %rs2, %rs1;          ->     cvt.s32.s16 t, %rs1;  abs.s32 t, t;  cvt.u16.u32 %rs2, t;
    cvt.s32.s16 %r1, %rs2;              cvt.s32.s16 %r1, %rs2;

In the first form ptxas computes the absolute value in 32 bits and omits the sign extension from 16 bits: for -32768 the
result is 32768, where -32768 is right.

The rewriting is done on the PTX that LLVM emits, because LLVM's own simplifications would undo it if it were done
earlier. docs/reference/ptxas.md says of each fault what the machine code does, what is written instead and in which
versions it was seen, and how to search for faults; a test on the GPU runs the rewritten sequences.

Not done here: PTX that users write (inline assembly) is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from weft.base.remarks import NO_REMARKS, InstructionDeclined, RemarkCollector


@dataclass(frozen=True)
class AssemblerFault:
    """A sequence of PTX that ptxas assembles wrongly."""

    name: str
    first_capability: int
    """The least compute capability for which the sequence is rewritten."""
    rewrite: Callable[[str], str]
    """From the text of a module to the text without the sequence."""


def avoid_faults(ptx: str, capability: int, remarks: RemarkCollector = NO_REMARKS) -> str:
    """The module without the sequences that ptxas assembles wrongly for a compute capability (90 is Hopper).

    >>> print(avoid_faults("\\tabs.s16 \\t%rs2, %rs1;", 90))
        { .reg .b32 %mended; cvt.s32.s16 %mended, %rs1; abs.s32 %mended, %mended; cvt.u16.u32 %rs2, %mended; }
    """
    for rewrite in dict.fromkeys(f.rewrite for f in FAULTS if capability >= f.first_capability):
        before, ptx = ptx, rewrite(ptx)
        if ptx != before:
            names = " or ".join(f.name for f in FAULTS if f.rewrite is rewrite)
            why = "ptxas assembles it wrongly, and other instructions stand in its place"
            remarks.add(InstructionDeclined(None, f"the usual PTX ({names})", why))
    return ptx


SHORT_ABS = re.compile(r"abs\.s16 \t(%rs\d+), (%rs\d+);")
SHORT_NEG = re.compile(r"(?:neg\.s16 \t(%rs\d+), |sub\.s16 \t(%rs\d+), 0, )(%rs\d+);")


def _short_absolute(ptx: str) -> str:
    if "abs.s16" not in ptx:
        return ptx
    wide = r"{ .reg .b32 %mended; cvt.s32.s16 %mended, \2; abs.s32 %mended, %mended; cvt.u16.u32 \1, %mended; }"
    return SHORT_ABS.sub(wide, ptx)


def _short_negation(ptx: str) -> str:
    if "neg.s16" not in ptx and "sub.s16" not in ptx:
        return ptx

    def inverted(m: re.Match[str]) -> str:
        result = m[1] or m[2]
        return f"not.b16 \t{result}, {m[3]};\n\tadd.s16 \t{result}, {result}, 1;"

    return SHORT_NEG.sub(inverted, ptx)


ABS = re.compile(r"abs\.s(32|64) \t(%rd?\d+), (%rd?\d+);")


def _absolute(ptx: str) -> str:
    if "abs.s32 \t" not in ptx and "abs.s64 \t" not in ptx:
        return ptx

    def by_sign(m: re.Match[str]) -> str:
        bits, result, x = m.groups()
        sign = f"shr.s{bits} %mended, {x}, {int(bits) - 1};"
        return (
            f"{{ .reg .b{bits} %mended; {sign} xor.b{bits} {result}, {x}, %mended; "
            f"sub.s{bits} {result}, {result}, %mended; }}"
        )

    return ABS.sub(by_sign, ptx)


LEAST_OR_GREATEST = re.compile(r"(?:min|max)\.s32 \t%r\d+, (%r\d+), (%r\d+);")
NEGATED = re.compile(r"(?:neg\.s32 \t(%r\d+), |sub\.s32 \t(%r\d+), (-?\d+), )(%r\d+);")


def _compared_negation(ptx: str) -> str:
    if "neg.s32" not in ptx and "sub.s32" not in ptx:
        return ptx
    compared = {register for pair in LEAST_OR_GREATEST.findall(ptx) for register in pair}
    if not compared:
        return ptx

    def inverted(m: re.Match[str]) -> str:
        result, constant = m[1] or m[2], int(m[3] or 0)
        if result not in compared:
            return m[0]
        return f"not.b32 \t{result}, {m[4]};\n\tadd.s32 \t{result}, {result}, {constant + 1};"

    return NEGATED.sub(inverted, ptx)


SHORT_EXTREME = re.compile(r"(?:min|max)\.[su]16 \t(%rs\d+),")
SHORT_EQUAL = re.compile(r"setp\.(eq|ne)\.[bsu]16 \t(%p\d+), (%rs\d+), (%rs\d+|-?\d+);")


def _compared_extreme(ptx: str) -> str:
    extremes = set(SHORT_EXTREME.findall(ptx))
    if not extremes:
        return ptx

    def by_difference(m: re.Match[str]) -> str:
        how, result, x, y = m.groups()
        if x not in extremes and y not in extremes:
            return m[0]
        return f"{{ .reg .b16 %mended; xor.b16 %mended, {x}, {y}; setp.{how}.u16 {result}, %mended, 0; }}"

    return SHORT_EQUAL.sub(by_difference, ptx)


UNPACKED = re.compile(r"mov\.b32 \t\{(%rs\d+), (%rs\d+)\}, (%r\d+);")
INSTRUCTION = re.compile(r"\t(?:@!?%p\d+ +)?([a-z][\w.:]*) +\t?(.*);")
REGISTER = re.compile(r"%(?:rd|rs|r|p|f|fd)\d+\b|%\w+(?:\.\w+)?")
VARYING = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer", "%warpid")
EXCHANGES = ("shfl", "ldmatrix", "mma", "wgmma", "atom", "match", "activemask", "elect")


def _uniform_halves(ptx: str) -> str:
    if "mov.b32 \t{%rs" not in ptx:
        return ptx
    uniform = _Uniform(ptx)

    def shifted(m: re.Match[str]) -> str:
        low, high, word = m.groups()
        if not uniform(word):
            return m[0]
        halves = f"cvt.u16.u32 {low}, {word}; shr.u32 %mended, {word}, 16; cvt.u16.u32 {high}, %mended;"
        return f"{{ .reg .b32 %mended; {halves} }}"

    return UNPACKED.sub(shifted, ptx)


class _Uniform:
    """Whether a register has one value in all threads of a block, as far as its definitions tell."""

    def __init__(self, ptx: str) -> None:
        self.sources: dict[str, list[str]] = {}
        for operation, operands in INSTRUCTION.findall(ptx):
            results, _, rest = operands.partition("}," if operands.startswith("{") else ",")
            varies = operation.startswith(EXCHANGES) or any(name in rest for name in VARYING)
            read = ["varies"] if varies else REGISTER.findall(rest)
            for register in REGISTER.findall(results):
                self.sources.setdefault(register, []).extend(read)
        self.varies: dict[str, bool] = {"varies": False}

    def __call__(self, register: str) -> bool:
        pending, seen = [register], {register}
        while pending:
            name = pending.pop()
            if not self.varies.get(name, True):
                self.varies[register] = False
                return False
            for source in self.sources.get(name, ()):
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return True


NARROW_STORE = re.compile(r"\t(st\.[\w.:]*\.b(8|16|32) \t?\[[^\]]*\], )(\{[^}]*\}|%r[sd]?\d+);")
FLOAT_RESULT = re.compile(r"\t[a-z][\w.]*\.(?:b?f16|f32|f64)[\w.]* +\t?(%r[sd]?\d+),")
WIDTH = {"rs": 16, "r": 32, "rd": 64}


def _stored_part(ptx: str) -> str:
    floats: set[str] | None = None

    def copied(m: re.Match[str]) -> str:
        nonlocal floats
        head, bits, stored = m.groups()
        wider = {r: w for r, kind in re.findall(r"(%(r[sd]?)\d+)", stored) if (w := WIDTH[kind]) > int(bits)}
        if wider and floats is None:
            floats = set(FLOAT_RESULT.findall(ptx))
        parts = [r for r in wider if floats and r in floats]
        if not parts:
            return m[0]
        names = {r: f"%mended{i}" for i, r in enumerate(parts)}
        copies = " ".join(f".reg .b{wider[r]} {name}; mov.b{wider[r]} {name}, {r};" for r, name in names.items())
        stored = re.sub(r"%r[sd]?\d+", lambda r: names.get(r[0], r[0]), stored)
        return f"\t{{ {copies} {head.replace(chr(9), '')}{stored}; }}"

    return NARROW_STORE.sub(copied, ptx)


SHORT_MAXIMUM = re.compile(r"max(?:\.ftz)?\.f16 \t(%rs\d+),")
SHORT_MINIMUM = re.compile(r"min((?:\.ftz)?\.f16) \t(%rs\d+), (%rs\d+), (%rs\d+);")


def _limited_half(ptx: str) -> str:
    maxima = set(SHORT_MAXIMUM.findall(ptx))
    if not maxima:
        return ptx
    integers: set[str] | None = None

    def by_pairs(m: re.Match[str]) -> str:
        nonlocal integers
        kind, result, x, y = m.groups()
        if x not in maxima and y not in maxima:
            return m[0]
        if integers is None:
            integers = _read_as_integers(ptx)
        if result not in integers:
            return m[0]
        pairs = f"mov.b32 %mended, {{{x}, {x}}}; mov.b32 %other, {{{y}, {y}}}; min{kind}x2 %mended, %mended, %other;"
        return f"{{ .reg .b32 %mended, %other; {pairs} cvt.u16.u32 {result}, %mended; }}"

    return SHORT_MINIMUM.sub(by_pairs, ptx)


def _read_as_integers(ptx: str) -> set[str]:
    """The registers that instructions read which are neither for halves, nor put them in words, nor store them."""
    registers: set[str] = set()
    for operation, operands in INSTRUCTION.findall(ptx):
        rest = operands.partition("}," if operands.startswith("{") else ",")[2]
        if not (".f16" in operation or operation.startswith("st.") or (operation == "mov.b32" and "{" in rest)):
            registers.update(REGISTER.findall(rest))
    return registers


PAIRED = re.compile(r"mov\.b32 \t(%r\d+), \{(%rs\d+), (%rs\d+)\};")
SIGN = re.compile(r"(neg|abs)\.b?f16(x2)? \t(%rs?\d+), (%rs?\d+);")
SHORT_COPY = re.compile(r"mov\.b16 \t(%rs\d+), (%rs\d+);")
SHORT_MOVE = re.compile(r"\t(?:@(!?%p\d+) +)?([a-z][\w.:]*) +\t?(?:\{([^}]*)\}|(%rs\d+)), (.*);")
NEVER = re.compile(r"mov\.(?:pred|b1) +\t?(%p\d+), 0;")
NUMBER = re.compile(r"-?\d+|0[xX][0-9A-Fa-f]+")
ROUNDED = re.compile(r"cvt\.r[a-z.]*\.b?f16\.f32$")


def _masked_half(ptx: str) -> str:
    """Signs and masks of halves that are put into a pair: done to the pair, in one or two instructions of 32 bits."""
    pairs = PAIRED.findall(ptx)
    if not pairs:
        return ptx
    halves = _Halves(ptx)
    origins = {half: halves.origin(half) for _, low, high in pairs for half in (low, high)}
    paired = {source for source, _, _ in origins.values()}
    while more := {source for copy, source in halves.copies if copy in paired} - paired:
        paired |= more
    paired |= {word for low, high, word in UNPACKED.findall(ptx) if low in paired or high in paired}
    words = {word for word, _, _ in pairs}

    def by_bits(m: re.Match[str]) -> str:
        how, two, result, x = m.groups()
        if result not in paired and x not in words:
            return m[0]
        bits = 32 if two else 16
        if how == "neg":
            return f"xor.b{bits} \t{result}, {x}, {'0x80008000' if two else '0x8000'};"
        if x in halves.rounded:
            return f"{{ .reg .b16 %mended; xor.b16 %mended, {x}, 0x8000; min.u16 {result}, %mended, {x}; }}"
        return f"and.b{bits} \t{result}, {x}, {'0x7FFF7FFF' if two else '0x7FFF'};"

    constants = _short_constants(ptx) if "mov.b16 \t%rs" in ptx else {}

    def in_words(m: re.Match[str]) -> str:
        word, low, high = m.groups()
        (low, low_mask, low_sign), (high, high_mask, high_sign) = origins[low], origins[high]
        lines = _pair_with_constants(word, low, high, constants)
        mask, sign = high_mask << 16 | low_mask, high_sign << 16 | low_sign
        if mask != 0xFFFFFFFF:
            lines += f"\n\tand.b32 \t{word}, {word}, 0x{mask:X};"
        if sign:
            lines += f"\n\txor.b32 \t{word}, {word}, 0x{sign:X};"
        return lines

    return PAIRED.sub(in_words, SIGN.sub(by_bits, ptx))


def _pair_with_constants(word: str, low: str, high: str, constants: dict[str, int]) -> str:
    """The pair of two halves, without those that are negative constants."""
    low_bits, high_bits = constants.get(low), constants.get(high)
    if max(low_bits or 0, high_bits or 0) < 1 << 15:
        return f"mov.b32 \t{word}, {{{low}, {high}}};"
    if low_bits is not None and high_bits is not None:
        return f"mov.b32 \t{word}, {high_bits << 16 | low_bits};"
    if high_bits is not None:
        return f"cvt.u32.u16 \t{word}, {low};\n\tor.b32 \t{word}, {word}, {high_bits << 16};"
    moved = f"cvt.u32.u16 \t{word}, {high};\n\tshl.b32 \t{word}, {word}, 16;"
    return f"{moved}\n\tor.b32 \t{word}, {word}, {low_bits};"


class _Halves:
    """What the registers of 16 bits are made of."""

    def __init__(self, ptx: str) -> None:
        self.made: dict[str, list[tuple[str, str]]] = {}
        for guard, operation, several, short, rest in SHORT_MOVE.findall(ptx):
            for register in REGISTER.findall(several) or [short]:
                self.made.setdefault(register, []).append((operation, "" if guard or several else rest))
        self.copies = SHORT_COPY.findall(ptx)
        self.rounded = {half for half, made in self.made.items() if any(ROUNDED.match(how) for how, _ in made)}
        while more := {copy for copy, source in self.copies if source in self.rounded} - self.rounded:
            self.rounded |= more

    def origin(self, half: str) -> tuple[str, int, int]:
        """A half x, a mask and a sign such that the given one is (x & mask) ^ sign.

        Followed are signs of floats, and masks of numbers that were rounded; a mask of an integer can stay where it is.
        """
        x, mask, sign = half, 0xFFFF, 0
        origin = x, mask, sign
        while (step := self._step(x)) is not None:
            x, kept, flipped, is_sign = step
            mask, sign = mask & kept, sign ^ (flipped & mask)
            if is_sign or x in self.rounded:
                origin = x, mask, sign
        return origin

    def _step(self, half: str) -> tuple[str, int, int, bool] | None:
        """The half that one instruction makes this one of, the bits that it keeps and flips, and whether it is one that
        changes the sign of a float. None where several instructions write either.
        """
        sources = self.made.get(half, ())
        if len(sources) != 1:
            return None
        operation, rest = sources[0]
        x, _, number = rest.partition(", ")
        if len(self.made.get(x, ())) != 1:
            return None
        bits = int(number, 0) & 0xFFFF if NUMBER.fullmatch(number) else None
        if operation in ("neg.f16", "neg.bf16") or (operation == "xor.b16" and bits == 0x8000):
            return x, 0xFFFF, 0x8000, True
        if operation in ("abs.f16", "abs.bf16"):
            return x, 0x7FFF, 0, True
        if operation == "and.b16" and bits is not None:
            return x, bits, 0, bits == 0x7FFF
        return (x, 0xFFFF, 0, False) if operation == "mov.b16" else None


def _short_constants(ptx: str) -> dict[str, int]:
    """The registers of 16 bits that hold one constant, by moves alone; what a load that never happens leaves is one."""
    never = set(NEVER.findall(ptx))
    moves: dict[str, set[str]] = {}
    for guard, operation, several, short, rest in SHORT_MOVE.findall(ptx):
        if guard in never:
            continue
        for register in REGISTER.findall(several) or [short]:
            moves.setdefault(register, set()).add(rest if operation == "mov.b16" else "")
    values: dict[str, int] = {}
    for register in moves:
        source, seen = register, {register}
        while len(numbers := moves.get(source, ())) == 1 and (source := next(iter(numbers))) not in seen:
            seen.add(source)
        if NUMBER.fullmatch(source):
            values[register] = int(source, 0) & 0xFFFF
    return values


FAULTS = (
    # abs.s16 h, x; cvt.s32.s16 r, h;
    AssemblerFault("absolute value of 16 bits, sign-extended", 0, _short_absolute),
    # neg.s16 h, x; cvt.s32.s16 r, h;
    AssemblerFault("negation of 16 bits, sign-extended", 0, _short_negation),
    # abs.s32 a, x; rem.s32 r, a, y; or abs.s32 a, x; neg.s32 n, a; setp.ge.s32 p, n, -128;
    AssemblerFault("absolute value of 32 or 64 bits", 0, _absolute),
    # neg.s32 n, y; min.s32 m, x, n; min.s32 r, m, z;
    AssemblerFault("negation within a minimum or maximum of three", 90, _compared_negation),
    # max.s16 m, x, y; setp.eq.s16 p, m, y;
    AssemblerFault("minimum or maximum of 16 bits, compared for equality with what it is of", 90, _compared_extreme),
    # ld.global.b32 w, [a]; mov.b32 {low, high}, w; where a is the same in all threads
    AssemblerFault("halves of a word that all threads share", 0, _uniform_halves),
    # add.f32 f, x, y; st.global.b8 [a], f;
    AssemblerFault("lower bits of a floating-point number, stored", 0, _stored_part),
    # max.f16 m, x, -64; min.f16 h, m, 64; cvt.u32.u16 r, h; for constants
    AssemblerFault("half that is limited from below and above, read as an integer", 0, _limited_half),
    # mov.b32 {z, _}, v; neg.f16 n, x; mov.b32 p, {n, y}; mov.b32 q, {z, w}; mul.rn.f16x2 r, p, q;
    AssemblerFault("sign of a half in a pair, with another pair", 0, _masked_half),
    # cvt.rn.bf16.f32 x, f; and.b16 m, x, 0x7FFF; mov.b32 p, {m, y};
    AssemblerFault("mask of a rounded number, the lower half of a pair", 0, _masked_half),
)
"""What is known, in the order in which it is rewritten."""
