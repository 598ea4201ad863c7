"""Random programs: few names, used over and over, for all that control flow may do with them.

The writer knows which names can be read at a place and whether they are integers ("i"), wide integers ("l"), floats
("f"), truths ("b"), pairs of integers ("t") or tiles of them ("v").  Others it knows to be integers that not every path
has set ("h"), which the variable of a loop may follow, or of a type that depends on the path ("x").  A loop's body must
leave every name that can be read before it as it was, but for its scratch names, which are free to change their types
and cannot be read after it.  Programs of the kind `plain` keep to what Triton's frontend takes, the others also read
what only a loop's body sets, change the types of names, assign to arguments that may be compile-time values, and assign
in conditions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Program", "write"]

NAMES = ("a", "b", "c", "d", "e", "k")
ARGUMENTS = ("n", "m", "p", "q")
SLOTS = 32
"""Places of the array that a kernel stores to; the last ones get the variables at its end."""

KINDS = "ilfbtv"
"""The types that a name can be read with."""

Types = dict[str, str]


@dataclass
class Program:
    """The source of a program, and what to launch it with."""

    seed: int
    plain: bool
    text: str
    arguments: tuple[int, ...]
    constants: dict[str, int]
    source: list[int]


@dataclass
class Writer:
    """Writes one function."""

    rng: random.Random
    plain: bool
    kernel: bool
    helpers: list[tuple[str, int, bool]]
    """Functions that can be called: name, how many arguments, whether the result is a pair."""
    constants: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: int = 0
    budget: int = 30
    counters: int = 0
    pair: bool = False
    """Whether the function returns pairs."""

    def put(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.depth + text)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def name(self, env: Types, kind: str = "i") -> str | None:
        """A name of this type that can be read."""
        found = [n for n, t in env.items() if t == kind]
        return self.rng.choice(found) if found else None

    def small(self, env: Types) -> str:
        """A variable, an argument or a number."""
        rng = self.rng
        found = self.name(env)
        if found is not None and rng.random() < 0.75:
            return found
        return rng.choice((*self.constants, "0", "1", "2", "5", "-3"))

    def integer(self, env: Types) -> str:
        """An integer expression whose value stays small."""
        rng = self.rng
        x, y = self.small(env), self.small(env)
        choice = rng.randrange(15)
        if choice < 5:
            return f"({x} * {rng.choice((1, 3, 5))} + {y}) & {rng.choice((7, 31, 127))}"
        if choice == 5:
            return f"(({x} - {y}) & 63) - 20"
        if choice == 6 and self.kernel:
            return f"tl.load(x + (({x} + {y}) & 7))"
        if choice == 7:
            return f"({x} & 63) if {self.condition(env)} else {rng.choice(('1', f'({y} & 63)'))}"
        pair = self.name(env, "t")
        if choice == 8 and pair is not None:
            return f"({pair}[0] ^ {pair}[{rng.randrange(2)}]) & 63"
        number = self.name(env, "f")
        if choice == 9 and number is not None:
            return f"tl.cast({number}, tl.int32) & 127"
        if choice == 10:
            called = [h for h in self.helpers if not h[2]]
            if called:
                return self.call(env, rng.choice(called))
        other = self.name(env, rng.choice("lb"))
        if choice == 11 and other is not None:
            return f"tl.cast({other}, tl.int32) & 31"
        tile = self.name(env, "v")
        if choice > 12 and tile is not None:
            return f"tl.sum({tile} & {rng.choice((1, 7))}) & 63"
        if choice == 12:
            return f"{rng.choice(('min', 'max'))}({x}, {y}) & 63"
        return f"({x} ^ {y}) & 63"

    def call(self, env: Types, helper: tuple[str, int, bool]) -> str:
        """A call of another function."""
        name, count, _ = helper
        values = [self.small(env) for _ in range(count)]
        constant = self.rng.choice((*self.constants, "0", "1", "3"))
        last = self.rng.choice((f", {constant}", f", {constant}", f", C={constant}", ""))
        return f"{name}({', '.join(values)}{last})"

    def condition(self, env: Types) -> str:
        """A condition of the run, seldom one that is known when compiling."""
        rng = self.rng
        x, y = self.small(env), self.small(env)
        simple = f"{x} {rng.choice(('<', '<=', '==', '!=', '>'))} {y}"
        choice = rng.randrange(10)
        truth = self.name(env, "b")
        if choice > 7 and truth is not None:
            return rng.choice((truth, f"not {truth}", f"{truth} and {simple}", f"{simple} or {truth}"))
        if choice == 0 and self.constants:
            return f"{rng.choice(self.constants)} == {rng.randrange(2)}"
        if choice == 1:
            return f"({x} & 1) == 0 {rng.choice(('and', 'or'))} {simple}"
        if choice == 2:
            return f"not ({simple})"
        return simple

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, env: Types, count: int) -> bool:
        """Some statements; whether the last one returns."""
        for _ in range(count):
            if self.budget <= 0:
                break
            self.budget -= 1
            if self.statement(env):
                return True
        return False

    def statement(self, env: Types) -> bool:
        """One statement; whether every path through it returns."""
        rng = self.rng
        choice = rng.randrange(20)
        if choice < 6 or (choice < 8 and not self.kernel):
            self.assign(env)
        elif choice < 8:
            self.put(f"tl.store(o + (({self.small(env)}) & 15), {self.integer(env)})")
        elif choice < 12:
            return self.branch(env)
        elif choice < 16 and self.loops < 3:
            self.for_loop(env)
        elif choice == 16 and self.loops < 3:
            self.while_loop(env)
        elif choice == 17 and not self.loops:
            return self.leave(env)
        elif choice == 18 and self.loops < 2:
            self.unrolled(env)
        else:
            self.assign(env)
        return False

    def target(self, env: Types, kind: str) -> str:
        """A name to assign to: in plain programs one that has no other type."""
        names = [*NAMES, *(ARGUMENTS[:2] if self.kernel and (not self.plain) else ())]
        if self.plain:
            names = [n for n in names if env.get(n, kind) == kind]
        return self.rng.choice(names or ["z"])

    def assign(self, env: Types) -> None:
        rng = self.rng
        choice = rng.randrange(15)
        pairs = [h for h in self.helpers if h[2]]
        if choice == 0:
            name = self.target(env, "f")
            self.put(f"{name} = ({self.integer(env)}) * 0.5")
            env[name] = "f"
        elif choice in (10, 11, 13):
            kind = rng.choice("lbvv") if self.kernel else rng.choice("lb")
            name = self.target(env, kind)
            self.put(f"{name} = {self.value(env, kind)}")
            env[name] = kind
        elif choice == 12:
            first, second = self.name(env), self.name(env)
            names = {k for k in (first, second) if k in NAMES}
            pair = self.name(env, "t")
            if pair is not None and rng.random() < 0.5:
                first, second = self.target(env, "i"), self.target(env, "i")
                if first != second:
                    self.put(f"{first}, {second} = {pair}")
                    env[first] = env[second] = "i"
            elif len(names) == 2:
                self.put(f"{first}, {second} = {second}, {first}")
        elif choice == 1:
            value = f"(({self.integer(env)}), ({self.integer(env)}))"
            if pairs and rng.random() < 0.5:
                value = self.call(env, rng.choice(pairs))
            name = self.target(env, "t")
            self.put(f"{name} = {value}")
            env[name] = "t"
        elif choice == 2:
            first, second = self.target(env, "i"), self.target(env, "i")
            if first != second:
                values = self.call(env, rng.choice(pairs)) if pairs and rng.random() < 0.5 else ""
                self.put(f"{first}, {second} = {values or f'{self.integer(env)}, {self.integer(env)}'}")
                env[first] = env[second] = "i"
        elif choice == 3 and (name := self.name({k: t for k, t in env.items() if k in NAMES})):
            self.put(f"{name} {rng.choice(('^=', '&=', '+=', '-=', '|='))} {self.small(env)} & 63")
        else:
            name = self.target(env, "i")
            self.put(f"{name} = {self.integer(env)}")
            env[name] = "i"

    def value(self, env: Types, kind: str) -> str:
        """An expression of any type."""
        if kind == "i":
            return self.integer(env)
        if kind == "b":
            return f"{self.small(env)} {self.rng.choice(('<', '>=', '!='))} {self.small(env)}"
        if kind == "v":
            x, y = self.name(env, "v") or "tl.arange(0, 8)", self.small(env)
            chosen = f"tl.where({x} > {y}, {x}, {y} & 15)"
            return self.rng.choice((f"({x} * 3 + {y}) & 31", chosen, f"tl.arange(0, 8) ^ {y}"))
        if kind == "l":
            return f"tl.cast({self.integer(env)}, tl.int64)"
        return f"({self.small(env)} & 15) * 0.5" if kind == "f" else f"({self.small(env)} & 15, {self.small(env)} & 31)"

    def branch(self, env: Types) -> bool:
        """`if`, perhaps with `elif` and `else`."""
        rng = self.rng
        parts = rng.choice((1, 1, 2, 2, 3))
        ends: list[Types] = []
        returned = 0
        for k in range(parts):
            last = k == parts - 1 and parts > 1 and rng.random() < 0.7
            condition = self.condition(env)
            if not k and not self.plain and rng.random() < 0.1:
                name = self.target(env, "i")
                condition = f"({name} := {self.integer(env)}) > {self.small(env)}"
                env[name] = "i"
            self.put("else:" if last else f"{'elif' if k else 'if'} {condition}:")
            inner = dict(env)
            self.depth += 1
            mark = len(self.lines)
            done = self.block(inner, rng.randrange(1, 4))
            if not done and self.plain:
                self.restore(env, inner)
            if len(self.lines) == mark:
                self.put("pass")
            self.depth -= 1
            returned += done
            if not done:
                ends.append(inner)
            if last:
                break
        else:
            ends.append(dict(env))
        if not ends:
            return True
        joined: Types = {}
        for name in sorted({n for e in ends for n in e}):
            kinds = {e.get(name, "") for e in ends}
            joined[name] = kinds.pop() if len(kinds) == 1 else "h" if kinds <= {"", "i", "h"} else "x"
        env.clear()
        env.update(joined)
        return False

    def leave(self, env: Types) -> bool:
        """An early return under a condition."""
        self.put(f"if {self.condition(env)}:")
        self.depth += 1
        self.give(env)
        self.depth -= 1
        return False

    def give(self, env: Types) -> None:
        """`return`."""
        if self.kernel:
            self.put(f"tl.store(o + {self.rng.randrange(16)}, {self.integer(env)})")
            self.put("return")
        elif self.pair:
            self.put(f"return {self.integer(env)}, {self.integer(env)}")
        else:
            self.put(f"return {self.integer(env)}")

    # -- loops ---------------------------------------------------------------------------------------------------------

    def restore(self, before: Types, inner: Types) -> None:
        """Give the names that must be as they were their types back."""
        for name, kind in before.items():
            if kind in KINDS and inner.get(name) != kind:
                self.put(f"{name} = {self.value(inner, kind)}")
                inner[name] = kind

    def scratch(self, env: Types) -> set[str]:
        """Names that a loop may change the types of."""
        return set() if self.plain else {n for n in NAMES if self.rng.random() < 0.2}

    def body(self, env: Types, first: Types, scratch: set[str]) -> Types:
        """A loop's body, indented; what can be read at its end."""
        inner = {n: "x" if n in scratch else t for n, t in env.items()} | first
        self.depth += 1
        self.loops += 1
        mark = len(self.lines)
        self.block(inner, self.rng.randrange(1, 5))
        self.restore({n: t for n, t in env.items() if n not in scratch and n not in first}, inner)
        if len(self.lines) == mark:
            self.put("pass")
        self.loops -= 1
        self.depth -= 1
        return inner

    def after(self, env: Types, inner: Types, scratch: set[str], variable: str | None) -> None:
        """What can be read after a loop."""
        kept: Types = {}
        for name in {**env, **inner}:
            before, now = env.get(name, ""), inner.get(name, "")
            if name in scratch:
                kept[name] = "x"
            elif before in (*KINDS, "x") and name != variable:
                kept[name] = before
            elif now == "i" and before in ("", "i", "h") and (not self.plain or before == "i"):
                kept[name] = "i"
            elif now in KINDS and before == "" and not self.plain:
                kept[name] = now
            else:
                kept[name] = "h" if {before, now} <= {"", "i", "h"} else "x"
        env.clear()
        env.update(kept)

    def bounds(self, env: Types) -> str:
        rng = self.rng
        low, high = f"({self.small(env)} & 3)", f"({self.small(env)} & 7)"
        if rng.random() < 0.1:
            return f"tl.program_id(0), {high}, tl.num_programs(0)"
        up, down = f"({self.small(env)} & 3) + 1", f"({self.small(env)} & 3) - 4"
        step = rng.choice(("1", "2", "-1", "-2", "s", "r", up, down))
        if step in ("s", "r") and not self.kernel:
            step = "3"
        if self.plain and step not in ("1", "2", "-1", "-2", "3"):
            step = "2"  # Triton's loops of other steps only count up
        return rng.choice((high, f"{low}, {high}", f"{low}, {high}, {step}", f"{high}, {low}, {step}"))

    def for_loop(self, env: Types) -> None:
        rng = self.rng
        bounds, kind = self.bounds(env), "i"
        if rng.random() < 0.1:
            bounds, kind = f"tl.cast({self.small(env)} & 3, tl.int64), {self.small(env)} & 7", "l"
        names = [n for n in ("i", "j", *NAMES) if not self.plain or env.get(n, kind) == kind]
        variable = rng.choice(names or ["g"])
        scratch = self.scratch(env) - {variable}
        self.put(f"for {variable} in {rng.choice(('range', 'range', 'tl.range'))}({bounds}):")
        inner = self.body(env, {variable: kind}, scratch)
        self.after(env, inner, scratch, variable)

    def while_loop(self, env: Types) -> None:
        self.counters += 1
        counter, scratch = f"w{self.counters}", self.scratch(env)
        self.put(f"{counter} = {self.small(env)} & 3")
        extra = f" and ({self.condition({n: t for n, t in env.items() if n not in scratch})})"
        self.put(f"while {counter} > 0{extra if self.rng.random() < 0.4 and not self.plain else ''}:")
        inner = self.body(env, {}, scratch)
        self.depth += 1
        self.put(f"{counter} -= 1")
        self.depth -= 1
        self.after(env, inner, scratch, None)

    def unrolled(self, env: Types) -> None:
        rng = self.rng
        variable = rng.choice(("i", "j", "u"))
        if self.plain and variable in env:
            variable = "u"
        bounds = rng.choice(("2", "3", "3, 0, -1", "1", f"1, {self.constants[0]} + 2"))
        self.put(f"for {variable} in tl.static_range({bounds}):")
        inner = dict(env)
        inner[variable] = "i"
        self.depth += 1
        self.loops += 1
        mark = len(self.lines)
        self.block(inner, rng.randrange(1, 3))
        self.restore({**env, variable: "i"}, inner)
        if len(self.lines) == mark:
            self.put("pass")
        self.loops -= 1
        self.depth -= 1
        env.update(inner)
        if self.plain:
            del env[variable]


def write(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    plain = rng.random() < 0.4
    text: list[str] = []
    helpers: list[tuple[str, int, bool]] = []
    for k in range(rng.choice((0, 1, 1, 2))):
        count, pair = rng.choice((1, 2, 3)), rng.random() < 0.3
        w = Writer(rng, plain, False, list(helpers), ("C",), budget=8, pair=pair)
        parameters = [f"v{i}" for i in range(count)]
        env: Types = dict.fromkeys(parameters, "i")
        if not w.block(env, rng.randrange(1, 5)):
            w.give(env)
        decorator = "@jit" if pair or rng.random() < 0.8 else "@jit(noinline=True)"
        text += [decorator, f"def h{k}({', '.join([*parameters, 'C: tl.constexpr = 2'])}):", *w.lines, "", ""]
        helpers.append((f"h{k}", count, pair))
    w = Writer(rng, plain, True, helpers, ("C0", "C1"))
    env = dict.fromkeys(ARGUMENTS, "i")
    for name in rng.sample(NAMES, rng.randrange(2, 6)):
        w.put(f"{name} = {w.integer(env)}")
        env[name] = "i"
    if not w.block(env, rng.randrange(3, 8)):
        for slot, (name, kind) in enumerate(sorted((n, t) for n, t in env.items() if t in KINDS)):
            shown = {"i": name, "t": f"{name}[0] + {name}[1]", "v": f"tl.sum({name})"}
            shown_as = shown.get(kind, f"tl.cast({name}, tl.int32)")
            w.put(f"tl.store(o + {16 + slot}, {shown_as})")
    text += ["@jit", "def kernel(o, x, n, m, p, q, s, r, C0: tl.constexpr, C1: tl.constexpr):", *w.lines]
    steps = rng.choice((1, 2, 3)), rng.choice((-1, -2, -3, 1, 2))
    arguments = tuple(rng.choice((0, 1, 1, 2, 3, 6, 16, -5)) for _ in ARGUMENTS) + steps
    constants = {"C0": rng.randrange(2), "C1": rng.choice((0, 1, 5))}
    source = [rng.randrange(-9, 100) for _ in range(8)]
    return Program(seed, plain, "\n".join(text) + "\n", arguments, constants, source)
