"""Writing LLVM IR as text: a module, and a function under construction.

LLVM's own builder costs microseconds for each instruction and knows nothing of `bfloat`; text costs a string. What
instructions take and give are values (values.py), and every method appends one line:

    >>> m = Module()
    >>> f = m.function("add_one", VOID, [("p", PTR)])
    >>> x = f.load(I64, f.args[0])
    >>> f.store(f.add(x, f.const(I64, 1)), f.args[0])
    >>> f.ret()
    >>> print(m.text().strip())
    define void @add_one(ptr %p) {
    entry:
      %v1 = load i64, ptr %p
      %v2 = add i64 %v1, 1
      store i64 %v2, ptr %p
      ret void
    }

Vector types are `vec("float", 16)`; arithmetic takes vectors and scalars alike. Loops are written with `loop`, which
makes the induction variable and the carried values phi nodes:

    with f.loop(start, stop, step) as i: ...            # body
    out = f.loop_carrying(start, stop, step, inits, lambda i, values: [...new values])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from . import parts
from .values import I64, PTR, VOID, Type, Value, const, mangle, vec


class Module:
    """LLVM IR under construction: functions, globals, and the declarations of what they call."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.globals: list[str] = []
        self.declarations: dict[str, str] = {}
        self.defined: set[str] = set()
        self.calls: Counter[str] = Counter()
        """How often each function that returns a value is called."""
        self.attributes: list[str] = []
        self.gathers_words = False
        """Whether the processor gathers words, but no narrower elements."""
        self.swapped_bits = 64
        """How many bits of memory one compare-and-swap exchanges at most."""
        self.stack = 0
        """The address space of the target's stack."""
        self.masked_bits = frozenset((8, 16, 32, 64))
        """The sizes of elements that the target loads and stores under a mask by one instruction."""
        self.branches_at_masks = False
        """Whether such a store takes so long that it is branched around (`CPU.branches_at_masks`)."""
        self.fuses = True
        """Whether a product and a sum with one rounding are an instruction of the target."""
        self.converts_half = True
        """Whether conversions between half and single are instructions of the target."""
        self.splits_pairs = False
        """Whether a vector of two words is stored as two words: see Note [Pairs]."""
        self.widest = 128
        """Bits of the widest integers that the target computes with."""
        self.hides_bounds = False
        """Whether LLVM must not see that a float is compared with a constant, and one of the two chosen.

        It makes that one instruction, which on AArch64 gives NaN where a signaling NaN is compared.
        """
        self.approximation: Callable[[Function, str, list[Value]], Value] | None = None
        """What writes an approximate instruction of the target, where it has such; see `backends/gpu/dialect.py`."""

    def function(
        self,
        name: str,
        result: Type,
        params: Sequence[tuple[str, Type]],
        attributes: str = "",
        linkage: str = "",
        param_attributes: Sequence[str] | None = None,
    ) -> Function:
        """Begin a function; `linkage` as in `internal`, `attributes` as written after the parameter list."""
        function = Function(self, name, result, params, attributes, linkage, param_attributes)
        self.functions.append(function)
        self.defined.add(name)
        return function

    def inline_single(self) -> None:
        """Put functions that are called once in the place of their calls; what returns nothing is left alone."""
        for function in self.functions:
            if self.calls[function.name] == 1:
                function.inline()

    def declare(self, name: str, result: Type, params: Sequence[Type]) -> None:
        """Declare an external function or an intrinsic, once."""
        if name not in self.declarations and name not in self.defined:
            self.declarations[name] = f"declare {result} @{name}({', '.join(p.text for p in params)})"

    def use_nontemporal(self) -> None:
        """Define `!0` as the metadata that marks stores around the cache."""
        line = "!0 = !{i32 1}"
        if line not in self.attributes:
            self.attributes.append(line)

    @property
    def streams(self) -> bool:
        """Whether some store goes around the cache."""
        return bool(self.attributes)

    def text(self) -> str:
        """The module as LLVM assembly."""
        pieces = [*self.globals, *(f.text() for f in self.functions)]
        pieces += self.declarations.values()
        pieces += self.attributes
        return "\n".join(pieces) + "\n"


class Function:
    """A function under construction, appended to at its end: the current block is the last one."""

    bf16 = "i16"
    """How a bf16 is held: as its bits, or as `bfloat` where that is computed with."""
    has_halves = False
    """Whether f16, and bf16 that is a `bfloat`, are computed and rounded as they are."""
    instead: Mapping[str, str] = MappingProxyType({})
    """Functions of f32 that the target has in the place of the library's."""

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        params: Sequence[tuple[str, Type]],
        attributes: str,
        linkage: str,
        param_attributes: Sequence[str] | None = None,
    ) -> None:
        self.module, self.name, self.result = module, name, result
        self.args = [Value(t, "%" + n) for n, t in params]
        self.attributes = list(param_attributes or [""] * len(params))
        pairs = zip(self.args, self.attributes, strict=True)
        signature = ", ".join(f"{a.type}{' ' + e if e else ''} {a.name}" for a, e in pairs)
        before, after = (f"{linkage} " if linkage else ""), (f" {attributes}" if attributes else "")
        self.header = f"define {before}{result} @{name}({signature}){after} {{"
        self.lines: list[str] = ["entry:"]
        self.allocas: list[str] = []
        self.block = "entry"
        self._next = 0
        self._labels = 0
        self._constants: set[str] = set()  # registers of which LLVM knows what they hold
        self.types = {a.name: a.type for a in self.args}
        self._depth = 0
        self._cut_depth = -1
        self._marked = False
        self.fast = ""  # fast-math flags put on floating-point arithmetic, for example "contract "

    def inline(self) -> None:
        """Let LLVM put the function in the place of its calls, as it does with none that does not ask."""
        if "alwaysinline" not in self.header and "noinline" not in self.header:
            self.header = self.header.removesuffix("{") + "alwaysinline {"

    # -- plumbing ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The function as LLVM assembly, in several functions if it is divisible and long."""
        return "\n".join(parts.in_parts(self)) if self._marked else self.written(self.lines, self.allocas)

    def written(self, lines: Iterable[str], at_entry: Sequence[str]) -> str:
        """These lines as the text of the function, with those at its entry behind the first."""
        first, *rest = lines
        return "\n".join([self.header, first, *at_entry, *rest, "}"]) + "\n"

    def emit(self, type: Type, text: str, operands: Sequence[Value] | None = None) -> Value:
        """Append an instruction that has a result; with its operands where it is integer arithmetic."""
        self._next += 1
        name = f"%v{self._next}"
        self.types[name] = type
        self.lines.append(f"  {name} = {text}")
        return Value(type, name)

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + text)

    def reserve(self, type: Type) -> Value:
        """A register named before the instruction that defines it (for phi nodes): see `define`."""
        self._labels += 1
        name = f"%r{self._labels}"
        self.types[name] = type
        return Value(type, name)

    def define(self, value: Value, text: str) -> None:
        """Append the instruction that defines a reserved register."""
        self.lines.append(f"  {value.name} = {text}")

    def new_label(self, hint: str) -> str:
        """A name for a block, not used before."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Begin the block `label`; the one before must have been ended."""
        self.lines.append(label + ":")
        self.block = label

    def alloca(self, type: Type, count: int = 1, align: int = 64) -> Value:
        """Stack memory in the entry block."""
        self._labels += 1
        name = f"%a{self._labels}"
        self.types[name] = PTR
        text = f"alloca {type}, i64 {count}, align {align}"
        if self.module.stack:
            space = f"addrspace({self.module.stack})"
            self.allocas.append(f"  {name}.s = {text}, {space}")
            text = f"addrspacecast ptr {space} {name}.s to ptr"
        self.allocas.append(f"  {name} = {text}")
        return Value(PTR, name)

    def variable(self, value: Value) -> Value:
        """The address of a variable that has a value from the beginning; LLVM keeps it in registers."""
        address = self.alloca(value.type, 1, 8)
        self.allocas.append(f"  store {value}, {address}, align 8")
        return address

    def entry_value(self, type: Type, text: str) -> Value:
        """An instruction in the entry block, where it dominates everything."""
        self._labels += 1
        name = f"%e{self._labels}"
        self.types[name] = type
        self.allocas.append(f"  {name} = {text}")
        return Value(type, name)

    # -- control flow -----------------------------------------------------------------------------------------------

    def br(self, label: str) -> None:
        """Go on at a block."""
        self.do(f"br label %{label}")

    def cond_br(self, cond: Value, then: str, other: str) -> None:
        """Go on at one of two blocks."""
        self.do(f"br i1 {cond.name}, label %{then}, label %{other}")

    def ret(self, value: Value | None = None) -> None:
        """Return."""
        self.do("ret void" if value is None else f"ret {value}")

    def phi(self, type: Type, incoming: Sequence[tuple[Value, str]]) -> Value:
        """A value that depends on the block one comes from."""
        return self.emit(type, f"phi {type} " + ", ".join(f"[ {v.name}, %{b} ]" for v, b in incoming))

    @contextmanager
    def loop(self, start: Value, stop: Value, step: Value, at_least_once: bool = False) -> Iterator[Value]:
        """Run the body for start, start+step, ... below stop (signed compare)."""
        body, done = self.new_label("body"), self.new_label("done")
        before = self.block
        if not at_least_once:
            self.cond_br(self.icmp("slt", start, stop), body, done)
        else:
            self.br(body)
        self.start(body)
        i, following = self.reserve(start.type), self.reserve(start.type)
        mark = len(self.lines)
        self._depth += 1  # as `sealed`
        yield i
        self._depth -= 1
        self.lines.insert(
            mark, f"  {i.name} = phi {i.type} [ {start.name}, %{before} ], [ {following.name}, %{self.block} ]"
        )
        self.define(following, f"add nsw {i.type} {i.name}, {step.name}")
        self.do(f"br i1 {self.icmp('slt', following, stop).name}, label %{body}, label %{done}")
        self.start(done)

    def loop_carrying(
        self,
        start: Value,
        stop: Value,
        step: Value,
        inits: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
        at_least_once: bool = False,
        may_wrap: bool = False,
    ) -> list[Value]:
        """As `loop`, with values carried from round to round; gives the last ones (the inits if no round ran).

        With `may_wrap` the last addition of the step, a positive one, may go beyond the greatest integer: whether there
        is another round is found out without it.
        """
        head, done = self.new_label("body"), self.new_label("done")
        before = self.block
        if not at_least_once:
            self.cond_br(self.icmp("slt", start, stop), head, done)
        else:
            self.br(head)
        self.start(head)
        i, following = self.reserve(start.type), self.reserve(start.type)
        carried = [self.reserve(v.type) for v in inits]
        mark = len(self.lines)
        self._depth += 1  # as `sealed`
        results = list(body(i, carried))
        self._depth -= 1
        phis = [f"  {i.name} = phi {i.type} [ {start.name}, %{before} ], [ {following.name}, %{self.block} ]"]
        for c, v, r in zip(carried, inits, results, strict=True):
            phis.append(f"  {c.name} = phi {c.type} [ {v.name}, %{before} ], [ {r.name}, %{self.block} ]")
        self.lines[mark:mark] = phis
        self.define(following, f"add nsw {i.type} {i.name}, {step.name}")
        again = self.icmp("ugt", self.sub(stop, i), step) if may_wrap else self.icmp("slt", following, stop)
        last = self.block
        self.do(f"br i1 {again.name}, label %{head}, label %{done}")
        self.start(done)
        if at_least_once:
            return results
        return [self.phi(v.type, [(v, before), (r, last)]) for v, r in zip(inits, results, strict=True)]

    def loop_while(
        self,
        start: Value,
        stop: Value,
        inits: Sequence[Value],
        holds: Callable[[Value], Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
    ) -> tuple[Value, list[Value]]:
        """As `loop_carrying` with steps of one, until something does not hold; gives where it ended besides."""
        head, again, done = self.new_label("head"), self.new_label("body"), self.new_label("done")
        before = self.block
        self.br(head)
        self.start(head)
        i, following = self.reserve(start.type), self.reserve(start.type)
        carried = [self.reserve(v.type) for v in inits]
        mark = len(self.lines)
        self._depth += 1  # as `sealed`
        self.cond_br(self.and_(self.icmp("slt", i, stop), holds(i)), again, done)
        self.start(again)
        results = list(body(i, carried))
        self.define(following, f"add nsw {i.type} {i.name}, 1")
        self._depth -= 1
        phis = [f"  {i.name} = phi {i.type} [ {start.name}, %{before} ], [ {following.name}, %{self.block} ]"]
        for c, v, r in zip(carried, inits, results, strict=True):
            phis.append(f"  {c.name} = phi {c.type} [ {v.name}, %{before} ], [ {r.name}, %{self.block} ]")
        self.lines[mark:mark] = phis
        self.br(head)
        self.start(done)
        return i, carried

    def if_else(
        self, cond: Value, then: Callable[[], Sequence[Value]], other: Callable[[], Sequence[Value]] | None = None
    ) -> list[Value]:
        """Branch on an i1; the values of both sides are joined."""
        yes, no, join = self.new_label("then"), self.new_label("else"), self.new_label("join")
        self.cond_br(cond, yes, no if other else join)
        self.start(yes)
        self._depth += 1  # as `sealed`
        yes_values = list(then())
        yes_end = self.block
        self.br(join)
        if other is None:
            self._depth -= 1
            self.start(join)
            return []
        self.start(no)
        no_values = list(other())
        no_end = self.block
        self._depth -= 1
        self.br(join)
        self.start(join)
        return [self.phi(a.type, [(a, yes_end), (b, no_end)]) for a, b in zip(yes_values, no_values, strict=True)]

    def when(self, cond: Value, then: Callable[[], object]) -> None:
        """Do something only if an i1 holds."""

        def body() -> list[Value]:
            then()
            return []

        self.if_else(cond, body)

    # -- where it may be cut: see parts.py ----------------------------------------------------------------------------

    @contextmanager
    def divisible(self) -> Iterator[None]:
        """What is emitted here runs in a row and leaves at its end, and may be cut at `cut`."""
        outer, self._cut_depth, self._marked = self._cut_depth, self._depth, True
        self.lines.append(parts.BEGIN)
        yield
        self.lines.append(parts.END)
        self._cut_depth = outer

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """What is emitted here belongs to a loop or a branch, and is not cut except where it is `divisible` again."""
        self._depth += 1
        yield
        self._depth -= 1

    def cut(self) -> None:
        """One thing ends here and another begins, if this is not within one of them."""
        if self._depth == self._cut_depth and self.lines[-1] != parts.CUT:
            self.lines.append(parts.CUT)

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def const(self, type: Type, value: int | float) -> Value:
        """See `const`."""
        return const(type, value)

    def bin(self, op: str, a: Value, b: Value) -> Value:
        """A binary instruction by LLVM's name, for example `and`, `lshr`, `sdiv`, `add nsw`."""
        return self.emit(a.type, f"{op} {a.type} {a.name}, {b.name}", (a, b))

    def add(self, a: Value, b: Value) -> Value:
        """`a + b`"""
        return self.bin("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """`a - b`"""
        return self.bin("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """`a * b`"""
        return self.bin("mul", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        """`a & b`"""
        return self.bin("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        """`a | b`"""
        return self.bin("or", a, b)

    def xor(self, a: Value, b: Value) -> Value:
        """`a ^ b`"""
        return self.bin("xor", a, b)

    def shl(self, a: Value, b: Value) -> Value:
        """`a << b`"""
        return self.bin("shl", a, b)

    def lshr(self, a: Value, b: Value) -> Value:
        """`a >> b, zeros from the left`"""
        return self.bin("lshr", a, b)

    def ashr(self, a: Value, b: Value) -> Value:
        """`a >> b, the sign from the left`"""
        return self.bin("ashr", a, b)

    def fbin(self, op: str, a: Value, b: Value) -> Value:
        """A floating-point instruction with the flags in `fast`."""
        return self.emit(a.type, f"{op} {self.fast}{a.type} {a.name}, {b.name}")

    def fadd(self, a: Value, b: Value) -> Value:
        """`a + b, floats`"""
        return self.fbin("fadd", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        """`a - b, floats`"""
        return self.fbin("fsub", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        """`a * b, floats`"""
        return self.fbin("fmul", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        """`a / b, floats`"""
        return self.fbin("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        """`-a`"""
        return self.emit(a.type, f"fneg {a}")

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a*b + c with one rounding."""
        return self.intrinsic("fma", a.type, [a, b, c])

    def icmp(self, pred: str, a: Value, b: Value) -> Value:
        """Compare integers or pointers: eq, ne, slt, ule, ..."""
        return self.emit(a.type.with_elem("i1"), f"icmp {pred} {a.type} {a.name}, {b.name}", (a, b))

    def fcmp(self, pred: str, a: Value, b: Value) -> Value:
        """Compare floats: oeq, une, olt, uno, ..."""
        return self.emit(a.type.with_elem("i1"), f"fcmp {pred} {a.type} {a.name}, {b.name}")

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`."""
        return self.emit(a.type, f"select {cond}, {a}, {b}")

    def cast(self, op: str, a: Value, to: Type) -> Value:
        """`zext`, `sext`, `trunc`, `fpext`, `sitofp`, `bitcast`, `inttoptr`, ...; none if the types agree."""
        return a if a.type == to else self._derived(a, self.emit(to, f"{op} {a} to {to}"))

    def bitcast(self, a: Value, to: Type) -> Value:
        """The same bits as another type; nothing where it is the same."""
        return self.cast("bitcast", a, to)

    def intrinsic(self, name: str, result: Type, args: Sequence[Value], suffix: str | None = None) -> Value:
        """Call `llvm.<name>.<suffix>`; the suffix is the result type's mangling unless given."""
        full = f"llvm.{name}.{mangle(result) if suffix is None else suffix}".removesuffix(".")
        return self.call(full, result, args)

    def call(self, name: str, result: Type, args: Sequence[Value], flags: str = "") -> Value:
        """Call a function that returns a value, declaring it if it is not of this module."""
        self.module.declare(name, result, [a.type for a in args])
        self.module.calls[name] += 1
        return self.emit(result, f"call {flags}{result} @{name}({', '.join(map(str, args))})")

    def call_void(self, name: str, args: Sequence[Value]) -> None:
        """Call a function that returns nothing."""
        self.module.declare(name, VOID, [a.type for a in args])
        self.do(f"call void @{name}({', '.join(map(str, args))})")

    # -- memory -----------------------------------------------------------------------------------------------------

    def load(self, type: Type, ptr: Value, align: int = 0) -> Value:
        """Load from an address."""
        return self.emit(type, f"load {type}, {ptr}{f', align {align}' if align else ''}")

    def _derived(self, a: Value, made: Value) -> Value:
        """What was made of `a` alone, noted as a constant if `a` is one."""
        if a.name in self._constants or not a.name.startswith(("%", "@")):
            self._constants.add(made.name)
        return made

    def bound(self, value: Value) -> Value:
        """An operand of a comparison, of which LLVM does not see that it is constant where it must not."""
        is_known = value.name in self._constants or not value.name.startswith("%")
        if not self.module.hides_bounds or not is_known:
            return value
        return self.call(f"llvm.arithmetic.fence.{mangle(value.type)}", value.type, [value])

    def fence(self) -> None:
        """What is loaded after this is not what was there before, and no load moves over it."""
        self.do("fence acquire")

    def store(self, value: Value, ptr: Value, align: int = 0) -> None:
        """Store to an address."""
        if self.module.splits_pairs and value.type.text in ("<2 x i32>", "<2 x float>"):  # Note [Pairs]
            for lane, at in enumerate((ptr, self.gep(value.type.scalar, ptr, const(I64, 1)))):
                self.store(self.extract(value, lane), at, min(align, 4))
            return
        self.do(f"store {value}, {ptr}{f', align {align}' if align else ''}")

    def gep(self, elem: Type, ptr: Value, index: Value) -> Value:
        """ptr + index * sizeof(elem); with a vector of indices, a vector of pointers."""
        lanes = index.type.lanes or ptr.type.lanes
        return self.emit(vec("ptr", lanes), f"getelementptr {elem.scalar}, {ptr}, {index}")

    # -- lanes ------------------------------------------------------------------------------------------------------

    def splat(self, a: Value, lanes: int) -> Value:
        """A scalar in every lane (a constant stays a constant)."""
        to = a.type.with_lanes(lanes)
        if not a.name.startswith("%") and not a.name.startswith("@"):
            return Value(to, f"splat ({a})" if a.name not in ("poison", "undef") else a.name)
        one = self.emit(to, f"insertelement {to} poison, {a}, i64 0")
        every = self.emit(to, f"shufflevector {one}, {to} poison, <{lanes} x i32> zeroinitializer")
        return self._derived(a, every)

    def shuffle(self, a: Value, b: Value | None, mask: Sequence[int]) -> Value:
        """Lanes of a (0..n-1) and b (n..2n-1) by number; -1 is any value."""
        to = a.type.with_lanes(len(mask))
        other = b.name if b is not None else "poison"
        text = ", ".join(f"i32 {m}" if m >= 0 else "i32 poison" for m in mask)
        return self.emit(to, f"shufflevector {a}, {a.type} {other}, <{len(mask)} x i32> <{text}>")

    def extract(self, a: Value, lane: int | Value) -> Value:
        """One lane of a vector."""
        where = lane if isinstance(lane, Value) else Value(I64, str(lane))
        return self.emit(a.type.scalar, f"extractelement {a}, {where}")

    def insert(self, a: Value, element: Value, lane: int | Value) -> Value:
        """A vector with one lane replaced."""
        where = lane if isinstance(lane, Value) else Value(I64, str(lane))
        return self.emit(a.type, f"insertelement {a}, {element}, {where}")


# Note [Pairs]
#
# LLVM 22 hands the bits of a stored <2 x i32> on to a load of its first word (DAGCombiner, from the store to the load),
# as 64 bits of which it then takes the lower half. Where that word is an index, which is scaled, and some of its upper
# bits are known to be zero, x86's instruction selection drops what takes the half, so that the address has the second
# word in its upper half:
#
#     store <2 x i32> %s, ptr %p                   # %s = or (and %v, 7), 8
#     %x = load i32, ptr %p
#     %y = zext i32 %x to i64
#     %q = getelementptr i32, ptr %t, i64 %y       # movq %xmm0, %rax; movb $1, (%rsi,%rax,4)
#
# Two stores of words do not come to that, whoever loads them and wherever: a kernel's own loads, or those of indices
# that were put into memory. `tests/backends/test_pairs.py` has cases.
