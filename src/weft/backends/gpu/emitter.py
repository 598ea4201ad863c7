"""A lane program as LLVM IR: what one thread does, with a fragment's registers as values of their own.

Registers are spelled as LLVM spells operands, except where not writing an instruction is better:

    Sum("%x7", 16)       %x7 + 16: addresses with a common base need one addition, and the distance goes into the
                         instruction that accesses memory
    Part("%x9", 1, ...)  the upper half of a word: halves that are loaded in words and multiplied in words are never
                         taken apart

`Emitter.names` spells them out where an operation needs them. What has been spelled out is remembered as long as it
dominates what follows: until the end of the region.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from weft.backends.llvm.elementwise import Asked
from weft.backends.llvm.emit import Function, Module
from weft.backends.llvm.values import Type, Value, literal, vec
from weft.base import Unsupported, registry
from weft.ir import lane
from weft.ir.lane import LaneOp, LaneProgram
from weft.ops.dtypes import DTYPES

from .approximations import APPROXIMATIONS
from .dialect import Dialect
from .lines import Lines
from .operands import BITS, LLVM, Part, Register, Sum

__all__ = ["BITS", "EMITTERS", "LLVM", "Emitter", "Part", "Register", "Sum", "emitter"]

Handler = Callable[["Emitter", LaneOp], None]
EMITTERS: dict[str, Handler] = {}
"""How each operation is emitted, by its name; the star stands for those on elements that have no entry."""

CONVERGENT, PURE, CONVERGENT_PURE = "#0", "#1", "#2"
ATTRIBUTES = (
    "attributes #0 = { convergent nounwind }",
    "attributes #1 = { nounwind willreturn memory(none) }",
    "attributes #2 = { convergent nounwind willreturn memory(none) }",
)


emitter = registry(EMITTERS)
"""Registers how operations are emitted."""


@dataclass
class _Loop:
    """A loop that is being written."""

    before: list[str]
    """Instructions for the block before it."""
    scope: int
    """Which scope that block is."""
    place: int
    """Where in the lines that block ends."""


@dataclass(frozen=True)
class Walk:
    """The loop of a block over its programs."""

    number: str
    """The register with the index along x of the program that is executed."""
    count: str
    """The one with how many programs there are along x."""
    following: str
    """The label at which a program ends."""


REMEMBERED = frozenset(
    (*(f"arith.{name}i" for name in ("add", "sub", "mul", "and", "or", "xor", "cmp")), "arith.bitcast")
)
"""Operations whose instructions are written once, and in front of loops that do not change their operands."""
SHORT = 4
"""Members of the largest structure that is written out wherever it is used."""


class Body(Function):
    """A kernel's function as what is written with `weft.backends.llvm` sees it: lines go where the emitter's go."""

    has_halves = True
    emitter: Emitter
    is_remembered = False
    """Whether an instruction that has been written is not written again where it dominates what follows."""

    def emit(self, type: Type, text: str, operands: Sequence[Value] | None = None) -> Value:
        """Append an instruction that has a result."""
        e = self.emitter
        if not self.is_remembered:
            return Value(type, e.ins(text))
        return Value(type, e.once(text, text, None if operands is None else [x.name for x in operands]))


class Emitter:
    """The function under construction, and the registers of every value so far."""

    def __init__(self, program: LaneProgram, dialect: Dialect[Emitter], fp_fusion: bool) -> None:
        self.program, self.dialect = program, dialect
        self.branches = program.body.branches()
        self.loops = program.body.loops()
        self.module = Module()
        self.module.approximation = dialect.approximation
        self.module.attributes += ATTRIBUTES
        self.llvm = {**LLVM, "bf16": dialect.bf16}
        """The LLVM type of a register, by element type."""
        self.f: Body
        self.lines: list[str] = []
        self.env: dict[lane.Value, list[Register]] = {}
        self.fast = "contract " if fp_fusion else ""
        self.strings: dict[str, str] = {}
        self.uses = program.body.uses()
        self.source: Lines | None = None
        self.place = ""
        """What the lines of an operation end with: where it is in the source."""
        self.largest: dict[str, int] = {}
        """Registers that are known not to be negative, and what they are at most."""
        self.partition: tuple[int, int] | None = None
        """(the first warp, how many) of the partition that is written."""
        self.walk: Walk | None = None
        """The loop over programs, if a block executes several."""
        self.multiples: dict[str, tuple[str, int, str]] = {}
        """Registers of 64 bits that are another one, shifted left by so many places; where that is in the source."""
        self.scaled: dict[str, tuple[str, str]] = {}
        """Sums of 64 bits of which a term is one of `multiples`, and their terms."""
        self.added: dict[str, set[str]] = {}
        """Multiples that are added to those of `scaled` and change at least as often."""
        self._carried: set[str] = set()
        """Registers that a loop carries from one iteration to the next."""
        self.steps: dict[str, tuple[str, str]] = {}
        """Sums of a carried register and one that the loop does not change: (carried, distance)."""
        self.written: dict[str, str] = {}
        """The lines of what may go in front of loops, by what they make."""
        self.vectors: dict[tuple[str, ...], str] = {}
        """Vectors by their type and the names of their elements."""
        self.whole: Container[lane.Value] = ()
        """Values whose vectors nobody takes apart."""
        self.inside: dict[str, str] = {}
        """Elements that were not taken out of a vector, and what would do it."""
        self._structs: dict[str, str] = {}
        """The names of types."""
        self._count = 0
        self._registers: dict[object, str] = {}
        self._scopes: list[list[object]] = [[]]
        self._loops: list[_Loop] = []
        self._depth: dict[str, int] = {}
        """How many loops are around what makes a register; for those that are not here, all."""

    def start(self, function: Body) -> None:
        """Write into a function."""
        self.f, self.lines = function, function.lines
        function.emitter, function.fast, function.instead = self, self.fast, APPROXIMATIONS
        function.bf16 = self.dialect.bf16
        self._depth.update((argument.name, 0) for argument in function.args)

    # -- writing ------------------------------------------------------------------------------------------------------

    def ins(self, text: str) -> str:
        """Append an instruction with a result; its name."""
        self._count += 1
        name = f"%x{self._count}"
        self.lines.append(f"  {name} = {text}{self.place}")
        self._depth[name] = len(self._loops)
        return name

    def once(self, key: object, text: str, operands: Sequence[str] | None = None) -> str:
        """As `ins`, for what has no effects; the result is remembered under a key, for as long as it dominates what
        follows. Where the operands are named, it goes in front of the loops that change none of them.
        """
        register = self._registers.get(key)
        if register is not None:
            return register
        depth = len(self._loops)
        if depth and operands is not None:
            depths = self._depth
            depth = max((depths.get(x, depth) for x in operands if x[0] == "%"), default=0)
        if depth < len(self._loops):
            self._count += 1
            register = f"%x{self._count}"
            loop = self._loops[depth]
            loop.before.append(f"  {register} = {text}{self.place}")
            self._scopes[loop.scope].append(key)
        else:
            register = self.ins(text)
            self._scopes[-1].append(key)
        if operands is not None:
            self.written[register] = f"  {register} = {text}{self.place}"
        self._registers[key] = register
        self._depth[register] = depth
        return register

    def known(self, key: object) -> str | None:
        """What `once` remembers under a key."""
        return self._registers.get(key)

    def pure(self, text: str) -> str:
        """As `ins`, written once for one text."""
        return self.once(text, text)

    def early(self, instruction: str, *operands: str, to: str = "") -> str:
        """As `pure`, in front of the loops that change no operand: arithmetic of addresses and masks.

        early("add i64", x, "16"), early("zext i32", x, to="i64")
        """
        text = f"{instruction} {', '.join(operands)}{f' to {to}' if to else ''}"
        return self.once(text, text, operands)

    def reserve(self, count: int, deeper: int = 0) -> list[str]:
        """Names for registers that phi nodes will define; `deeper` is 1 for those of a loop that begins."""
        names = [self.f.reserve(scalar("i32")).name for _ in range(count)]
        self._depth.update((name, len(self._loops) + deeper) for name in names)
        if deeper:
            self._carried.update(names)
        return names

    def note_step(self, a: str, b: str, total: str) -> None:
        """Two registers of 64 bits, or one and a number, are added: a loop may add one to the other in each
        iteration, and both may have multiples as terms.
        """
        here = len(self._loops)
        for term, by in ((a, b), (b, a)):
            if term in self._carried and (by[0] != "%" or self._depth.get(by, here) < here):
                self.steps[total] = (term, by)
            if by in self.multiples:
                self.scaled[total] = (a, b)
                if term in self.scaled and self._depth.get(term, here) <= self._depth.get(by, here):
                    self.added.setdefault(term, set()).add(by)

    def before_loop(self, text: str) -> str:
        """Append an instruction to the block before the innermost loop; its name."""
        self._count += 1
        name = f"%x{self._count}"
        self._loops[-1].before.append(f"  {name} = {text}{self.place}")
        self._depth[name] = len(self._loops) - 1
        return name

    def finish(self) -> None:
        """Write two kinds of arithmetic on addresses as instructions that nobody sees into.

        Multiples of 32-bit numbers that loops add to addresses: the assembler would join such a product, of 32 bits to
        64, with the addition, in each iteration, in two registers side by side: the address is copied there and back,
        and must wait until the copies before have read theirs. On an H200 that was an eighth of the time of a pipelined
        product.

        Sums that addresses of a tile have in common (`_common`).
        """
        instead = {}
        for name in self._common():
            line, (a, b) = self.written[name], self.scaled[name]
            instead[line] = line.replace(f"add i64 {a}, {b}", self.dialect.hidden("add", a, b))
        for name in {by for _, by in self.steps.values() if by in self.multiples}:
            base, places, place = self.multiples[name]
            instead[self.written[name]] = f"  {name} = {self.dialect.hidden('shl', base, str(places))}{place}"
        if instead:
            self.lines[:] = [instead.get(line, line) for line in self.lines]

    def _common(self) -> Iterator[str]:
        """The sums that are to stay terms of their own.

        In `row = base + 2 * i; row + 2 * j`, LLVM takes the factor out, and computes `base + 2 * (i + j)` for each `j`:
        four instructions of 32 bits in place of two. A convolution of 128 x 64 x 32 takes 278 instructions in an
        iteration, and took 375. If there are more bases than `j`, LLVM is right: they have `2 * (i + j)` in common.
        """
        bases = Counter(term for terms in self.scaled.values() for term in terms if term in self.multiples)
        for row, columns in self.added.items():
            depth = self._depth.get(row, 0)
            is_outside = any(self._depth.get(column, 0) > depth for column in columns)
            if row in self.written and (is_outside or len(columns) >= max(bases[x] for x in self.scaled[row])):
                yield row

    @contextmanager
    def loop(self) -> Iterator[None]:
        """What is written inside is a loop's; the block before it, which is still open, gets what does not change."""
        loop = _Loop([], len(self._scopes) - 1, len(self.lines))
        self._loops.append(loop)
        yield
        self._loops.pop()
        self.lines[loop.place : loop.place] = loop.before

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}{self.place}")

    def mark(self) -> int:
        """The beginning of a region, for `forget`."""
        self._scopes.append([])
        return len(self._scopes) - 1

    def given(self, name: str, below: int = 0) -> str:
        """A number that an intrinsic gives which has no arguments, once; it is less than `below`, if that is not 0."""
        text = self.call(name, "i32", ())
        if below:
            text = f"call range(i32 0, {below}) i32 @{name}()"
        number = self.once(name, text, ())
        if below:
            self.largest[number] = below - 1
        return number

    def forget(self, mark: int) -> None:
        """The end of a region: what was written in it does not dominate what follows."""
        for scope in self._scopes[mark:]:
            for key in scope:
                del self._registers[key]
        del self._scopes[mark:]

    def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]], attributes: str = "") -> str:
        """Call a function or an intrinsic; arguments are (type, name). The text, for `ins` or `do`."""
        declarations = self.module.declarations
        if name not in declarations:
            declarations[name] = f"declare {result} @{name}({', '.join(t for t, _ in arguments)})"
        operands = ", ".join(f"{t} {a}" for t, a in arguments)
        return f"call {result} @{name}({operands}){' ' + attributes if attributes else ''}"

    def asm(
        self,
        text: str,
        constraints: str,
        results: Sequence[str],
        arguments: Iterable[tuple[str, str]],
        attributes: str = "",
        effects: bool = True,
    ) -> list[str]:
        """Inline assembly; `results` are LLVM types. With effects it is never removed, doubled or passed by another."""
        type = results[0] if len(results) == 1 else self._struct(results) if results else "void"
        operands = ", ".join(f"{t} {a}" for t, a in arguments)
        side = "sideeffect " if effects else ""
        line = f'call {type} asm {side}"{text}", "{constraints}"({operands}){" " + attributes if attributes else ""}'
        if not results:
            self.do(line)
            return []
        result = self.ins(line)
        if len(results) == 1:
            return [result]
        return [self.ins(f"extractvalue {type} {result}, {i}") for i in range(len(results))]

    def _struct(self, members: Sequence[str]) -> str:
        """The type of several results; long ones get a name, which is read a hundred times as fast as its members."""
        text = f"{{ {', '.join(members)} }}"
        if len(members) <= SHORT:
            return text
        if text not in self._structs:
            self._structs[text] = f"%t{len(self._structs)}"
            self.module.globals.append(f"{self._structs[text]} = type {text}")
        return self._structs[text]

    def fail(self, op: LaneOp, feature: str, *works_on: str) -> Unsupported:
        """The error for what is not emitted for this target."""
        return Unsupported(feature, self.program.target, op.span, works_on=works_on)

    # -- registers ----------------------------------------------------------------------------------------------------

    def __getitem__(self, value: lane.Value) -> list[Register]:
        return self.env[value]

    def name(self, register: Register) -> str:
        """A register as an operand."""
        if isinstance(register, str):
            return register
        if isinstance(register, Sum):
            if not register.base:
                return str(register.offset)
            if not register.offset:
                return register.base
            total = self.early(f"add {register.type}", register.base, str(register.offset))
            if register.type == "i64":
                self.note_step(register.base, str(register.offset), total)
            return total
        word = "i16" if register.count * BITS[register.type] == 16 else "i32"
        type = f"<{register.count} x {register.type}>"
        whole = self.pure(f"bitcast {word} {register.word} to {type}")
        return self.pure(f"extractelement {type} {whole}, i32 {register.index}")

    def lowest_byte(self, register: Register) -> str:
        """A word whose lowest byte is this one; its other bytes do not matter."""
        if not isinstance(register, Part) or register.count != 4:
            return self.early("zext i8", self.name(register), to="i32")
        return self.early("lshr i32", register.word, str(8 * register.index)) if register.index else register.word

    def names(self, value: lane.Value) -> list[str]:
        """All registers of a value as operands."""
        return [r if isinstance(r, str) else self.name(r) for r in self.env[value]]

    def one(self, value: lane.Value) -> str:
        """The first register of a value, for one that is the same for all."""
        return self.name(self.env[value][0])

    def wide(self, value: lane.Value, count: int) -> list[Register]:
        """`count` registers of a value that has as many or one."""
        registers = self.env[value]
        return registers if len(registers) == count else registers * count

    def word(self, parts: Sequence[Register], type: str) -> str:
        """Elements of an LLVM type in one integer, the lowest first: i16 or i32 for smaller ones, else the bits."""
        bits = BITS[type] * len(parts)
        first = parts[0]
        if len(parts) == 1:
            name = self.name(first)
            return name if type[0] == "i" else self.pure(f"bitcast {type} {name} to i{bits}")
        if (
            isinstance(first, Part)
            and first.count == len(parts)
            and all(isinstance(p, Part) and p.word == first.word and p.index == i for i, p in enumerate(parts))
        ):
            return first.word
        if type == "i8" and len(parts) in (2, 4) and (permuted := self._bytes(parts)) is not None:
            return permuted
        vector = f"<{len(parts)} x {type}>"
        whole = "poison"
        for i, part in enumerate(parts):
            whole = self.pure(f"insertelement {vector} {whole}, {type} {self.name(part)}, i32 {i}")
        return self.pure(f"bitcast {vector} {whole} to i{bits}")

    def vector(self, names: Sequence[str], type: str) -> str:
        """Registers as the elements of a vector; that which they were taken from, if it is one."""
        if (taken := self.vectors.get((type, *names))) is not None:
            return taken
        whole, element = "poison", type[1:-1].partition(" x ")[2]
        for i, name in enumerate(names):
            whole = self.ins(f"insertelement {type} {whole}, {element} {name}, i32 {i}")
        return whole

    def elements(self, name: str, type: str, count: int, value: lane.Value | None = None) -> list[str]:
        """The elements of a vector, each in a register; those of a value that is `whole` stay inside."""
        texts = [f"extractelement {type} {name}, i32 {i}" for i in range(count)]
        if value in self.whole:
            taken = [f"{name}.{i}" for i in range(count)]
            self.inside.update(zip(taken, texts, strict=True))
        else:
            taken = [self.ins(text) for text in texts]
        self.vectors[type, *taken] = name
        return taken

    def _bytes(self, parts: Sequence[Register]) -> str | None:
        """Bytes that lie in words, as a word, by permutations; None where not all do.

        Four bytes of four words take three, of which the first two serve their neighbours in the same words too. Two
        words of 16 bits one after the other need none: what makes the second can put the first beside it.
        """
        words: dict[str, int] = {}
        for p in parts:
            if not isinstance(p, Part) or p.type != "i8" or p.count > 4:
                return None
            words[p.word] = p.count
        names = list(words)
        where = [(p.word, p.index) for p in parts if isinstance(p, Part)]
        if len(where) == 4 and set(words.values()) == {2} and where == [(w, i) for w in names for i in range(2)]:
            return self.word(names, "i16")
        wide = {w: w if n == 4 else self.early("zext i16", w, to="i32") for w, n in words.items()}
        if len(names) <= 2:
            sources, places = [wide[w] for w in names], where
        else:
            pairs: list[tuple[str, int]] = []
            both = [self._pair(wide, where[i], where[i + 1]) for i in (0, 2)]
            for name, first in both:
                pairs += [(name, first), (name, first + 1)]
            sources, places, names = [name for name, _ in both], pairs, [name for name, _ in both]
        selector = sum((4 * names.index(w) + i) << 4 * k for k, (w, i) in enumerate(places))
        word = self.permuted(sources[0], sources[-1], str(selector))
        return word if len(parts) == 4 else self.pure(f"trunc i32 {word} to i16")

    def _pair(self, wide: dict[str, str], a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
        """A word in which two bytes are neighbours, and which byte the first is; the others are their neighbours."""
        (one, i), (two, j) = a, b
        first = i & 1 if i & 1 == j & 1 else 0
        i, j = i ^ first, j ^ first
        selector = i | 4 + j << 4 | (i ^ 1) << 8 | 4 + (j ^ 1) << 12
        return self.permuted(wide[one], wide[two], str(selector)), 2 * first

    def permuted(self, a: str, b: str, selector: str) -> str:
        """The bytes of two words that a selector names."""
        return self.dialect.permute(self, a, b, selector)

    def parts(self, word: str, type: str, count: int) -> list[Register]:
        """The elements of an integer of `count` of them."""
        if count == 1:
            return [word if type[0] == "i" else self.pure(f"bitcast i{BITS[type]} {word} to {type}")]
        return [Part(word, i, count, type) for i in range(count)]

    def constant(self, elem: str, value: int | float) -> Register:
        """A number as an operand."""
        if elem in ("i32", "i64"):
            return Sum("", int(value), elem)
        if elem.startswith("f8"):
            return str(small_bits(elem, float(value)))
        if elem in ("i8", "i16"):
            bits = BITS[elem]
            return str((int(value) + (1 << bits - 1) & (1 << bits) - 1) - (1 << bits - 1))
        if elem == "bf16" and self.llvm[elem] == "i16":
            return str(small_bits(elem, float(value)))
        return literal(vec(self.llvm[elem], 0), value)

    # -- operands of what is written with weft.backends.llvm ----------------------------------------------------------

    def typed(self, elem: str, name: str) -> Value:
        """An operand for what is written with `weft.backends.llvm`."""
        return Value(vec(self.llvm[elem], 0), name)

    def of_type(self, type: str, name: str) -> Value:
        """As `typed`, by the LLVM type."""
        return Value(scalar(type), name)

    def asked(self, op: LaneOp) -> Asked:
        """An operation as what all targets share sees it."""
        sources = tuple(v.elem for v in op.operands)
        return Asked(op.name, sources, op.results[0].elem, op.attrs, op.span, self.program.target)

    # -- operations ---------------------------------------------------------------------------------------------------

    def region(self, block: lane.Block) -> list[lane.Value]:
        """Emit the operations of a region; the operands of what ends it."""
        for op in block.ops:
            if op.name in ("yield", "condition"):
                return list(op.operands)
            self.op(op)
        return []

    def op(self, op: LaneOp) -> None:
        """Emit one operation."""
        handler = EMITTERS.get(op.name)
        if handler is None and lane.is_elementwise(op.name):
            handler = EMITTERS["*"]
        if handler is None:
            raise self.fail(op, f"`{op.name}`")
        if self.source is not None:
            self.place = self.source.suffix(op.span)
        self.f.is_remembered = op.name in REMEMBERED
        handler(self, op)


def scalar(type: str) -> Type:
    """The LLVM type of that name."""
    return vec(type, 0)


def small_bits(elem: str, value: float) -> int:
    """The bits of a number in one of the small floats."""
    number = np.array(value, DTYPES[elem])
    return int(number.view(f"int{8 * number.itemsize}"))
