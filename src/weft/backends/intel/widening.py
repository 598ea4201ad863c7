"""LLVM IR of one lane to LLVM IR of a warp: every value becomes vectors of 16 elements, one for each lane.

    %x3 = add i32 %x1, 4                    %x3 = add <16 x i32> %x1, splat (i32 4)
    %x4 = load float, ptr ... %x3           16 loads, whose results are the elements
    %x5 = extractelement <4 x float> ...    nothing: a vector of 4 is 4 vectors, one for each of its elements
    br i1 %x6, ...                          by the bit of lane 0

Where a lane program branches, all lanes of a warp go the same way (`ir/lane.py`), so that one lane's bit says which. No
other branches are in what is widened: accesses under a mask, atomics and functions with branches of their own are done
by one lane after the other (`whole_warps` says how they are written). A pointer is a number, since SPIR-V has no
vectors of pointers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.base import Unsupported

from .ir_text import MANGLED, TYPE, bits_of, members, split, typed
from .warp_code import WarpCode

BRANCHES = (
    *("body", "done", "again", "then", "else", "join", "partition", "others", "together", "never", "short", "long"),
    *("failed", "held"),
)
"""How labels begin of the loops and branches of lane programs, and of those to a short way of doing the same."""
ALL = "label %short"
"""What is taken where it is right for all lanes; the other way is right for any."""
OF_ITEM = "item."
"""How functions begin that a work item calls once, whatever its lanes are."""
PRINTS, PRINTED = "label %prints", "label %printed"
"""Where lanes print that have something to say, and what follows: a loop over lanes."""
EVERY = "splat (i1 true)"
"""A mask that all lanes have."""
DBG = re.compile(r", !dbg !\d+$")
CASTS = frozenset(["zext", "sext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui"])
IMMEDIATE = ("llvm.abs", "llvm.ctlz", "llvm.cttz")
"""Intrinsics whose last operand is a constant, not one for each lane."""


@dataclass
class _Phi:
    """One whose operands are not all known yet: where it stands, what defines it."""

    line: int
    names: list[str]
    type: str
    incoming: list[tuple[str, str]]


class Widened(WarpCode):
    """One kernel, line by line."""

    def __init__(self, lanes: int, target: str, arguments: dict[str, str]) -> None:
        super().__init__(lanes)
        self.target, self.arguments = target, arguments
        self.ends: dict[str, str] = {}
        """The block in which each block ends now."""
        self.begun = self.block
        self.phis: list[_Phi] = []
        self.printing: tuple[str, str, str] | None = None
        """The loop over lanes that print, where one is being written: (lane, its head, what follows a lane)."""

    # -- instructions -------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One line of the kernel."""
        if not text.startswith("  "):
            self.ends[self.begun] = self.block
            self.out.append(text)
            self.block = self.begun = text[:-1]
            if self.begun == "entry":
                self._spread_arguments()
            return
        found = DBG.search(text)
        self.place = found[0] if found else ""
        text = (text[: found.start()] if found else text).strip()
        name, is_definition, rest = text.partition(" = ")
        if not is_definition or not name.startswith("%"):
            name, rest = "", text
        rest = re.sub(r" #\d+$", "", rest)
        op, _, operands = rest.partition(" ")
        handler = getattr(self, f"_{op.replace('.', '_')}", None)
        if handler is not None:
            made = handler(name, operands)
        elif op in CASTS:
            made = self._cast(op, operands)
        else:
            made = self._plain(op, operands)
        if name and made is not None:
            self.made[name] = made

    def _spread_arguments(self) -> None:
        for name, type in self.arguments.items():
            member, scalar = members(type)[1], name
            if type.startswith("ptr"):
                scalar = self.ins(f"ptrtoint {type} {name} to {member}")
            self.made[name] = [self.spread(member, scalar)]

    def _plain(self, op: str, operands: str) -> list[str]:
        """Arithmetic and comparisons: (flags) type a, b."""
        match = re.match(rf"((?:[a-z]+ )*?)({TYPE}) (?=[^a-z]|true|false|splat|poison|zero)(.*)", operands)
        if match is None or op in ("alloca", "extractvalue"):
            raise Unsupported(f"the instruction `{op}` for whole warps", self.target)
        flags, type, rest = match.groups()
        _, member = members(type)
        columns = [self.operand(type, text) for text in split(rest)]
        return [self.ins(f"{op} {flags}{self.vector(member)} {', '.join(row)}") for row in zip(*columns, strict=True)]

    def _cast(self, op: str, operands: str) -> list[str]:
        source, _, target = operands.rpartition(" to ")
        type, _, name = source.rpartition(" ")
        flags = "nneg " if type.startswith("nneg ") else ""
        type = type.removeprefix("nneg ")
        kinds = self.vector(members(type)[1]), self.vector(members(target)[1])
        if members(type)[1] == "i1" and op.endswith("tofp"):  # of which LLVM makes a choice between scalars
            one = f"splat ({members(target)[1]} {'-' * (op == 'sitofp')}1.0)"
            return [
                self.ins(f"select {kinds[0]} {x}, {kinds[1]} {one}, {kinds[1]} zeroinitializer")
                for x in self.operand(type, name)
            ]
        return [self.converted(op, flags, members(type)[1], members(target)[1], x) for x in self.operand(type, name)]

    def _select(self, name: str, operands: str) -> list[str]:
        condition, *values = split(operands)
        bit_type, _, bit = condition.partition(" ") if condition[0] != "<" else condition.rpartition(" ")
        bits = self.operand(bit_type, bit)
        (type, a), (_, b) = (typed(value) for value in values)
        left, right = self.operand(type, a), self.operand(type, b)
        bits = bits if len(bits) == len(left) else bits * len(left)
        kind, vector = self.vector("i1"), self.vector(members(type)[1])
        return [
            self.ins(f"select {kind} {c}, {vector} {x}, {vector} {y}")
            for c, x, y in zip(bits, left, right, strict=True)
        ]

    def _bitcast(self, name: str, operands: str) -> list[str]:
        source, _, target = operands.rpartition(" to ")
        type, text = typed(source)
        (have, member), (want, other) = members(type), members(target)
        parts = self.operand(type, text)
        if have == want:
            if member == other:
                return parts
            return [self.ins(f"bitcast {self.vector(member)} {x} to {self.vector(other)}") for x in parts]
        small, large = bits_of(other), bits_of(member)
        if have > want:  # elements are joined, the lowest first
            whole, each = self.vector(f"i{small}"), have // want
            joined = []
            for i in range(0, have, each):
                word = ""
                for k, part in enumerate(parts[i : i + each]):
                    bits = self.as_bits(member, part)
                    wide = self.converted("zext", "", f"i{large}", f"i{small}", bits)
                    if k:
                        wide = self.ins(f"shl {whole} {wide}, splat (i{small} {k * large})")
                    word = self.ins(f"or {whole} {word}, {wide}") if word else wide
                joined.append(self.from_bits(other, word))
            return joined
        taken = []
        whole = self.vector(f"i{large}")
        for part in parts:
            bits = self.as_bits(member, part)
            for k in range(want // have):
                moved = self.ins(f"lshr {whole} {bits}, splat (i{large} {k * small})") if k else bits
                taken.append(self.from_bits(other, self.ins(f"trunc {whole} {moved} to {self.vector(f'i{small}')}")))
        return taken

    def _extractelement(self, name: str, operands: str) -> list[str]:
        whole, place = split(operands)
        return [self.operand(*typed(whole))[int(place.split()[1])]]

    def _insertelement(self, name: str, operands: str) -> list[str]:
        whole, element, place = split(operands)
        parts = list(self.operand(*typed(whole)))
        (parts[int(place.split()[1])],) = self.operand(*typed(element))
        return parts

    def _shufflevector(self, name: str, operands: str) -> list[str]:
        a, b, places = split(operands)
        parts = [*self.operand(*typed(a)), *self.operand(*typed(b))]
        numbers = re.findall(r"i32 (\d+)", places.partition("> ")[2])
        return [parts[int(number)] for number in numbers]

    def _phi(self, name: str, operands: str) -> list[str]:
        match = re.match(rf"({TYPE}) (.*)", operands)
        assert match is not None
        count, _ = members(match[1])
        incoming = [(x.strip(), block.strip()) for x, block in re.findall(r"\[ (.*?), %(\S+) \]", match[2])]
        names = [name] if count == 1 else [f"{name}.{i}" for i in range(count)]
        self.phis.append(_Phi(len(self.out), names, match[1], incoming))
        self.out += [self.place] * count  # written in the end, when all is known
        return names

    def finish(self) -> None:
        """Write phi nodes: their operands by the names that those have now, from the blocks that those are in."""
        self.ends[self.begun] = self.block
        for phi in self.phis:
            member = members(phi.type)[1]
            columns = [(self.operand(phi.type, x), self.ends.get(block, block)) for x, block in phi.incoming]
            for i, name in enumerate(phi.names):
                pairs = ", ".join(f"[ {parts[i]}, %{block} ]" for parts, block in columns)
                at = phi.line + i
                self.out[at] = f"  {name} = phi {self.vector(member)} {pairs}{self.out[at]}"

    # -- control flow -------------------------------------------------------------------------------------------------

    def _br(self, name: str, operands: str) -> None:
        if operands.startswith("label"):
            if operands.startswith(PRINTED) and self.printing is not None:
                (lane, head, following), self.printing = self.printing, None
                self.loop_ends(lane, head, following, [])
            self.do(f"br {operands}")
            return
        condition, *labels = split(operands)
        if labels[0].startswith(PRINTS):
            (mask,) = self.operand("i1", condition.removeprefix("i1 "))
            self.printing = self.loop_begins(mask, [])
            self.do(f"br {labels[0]}")
            return
        if not all(label.removeprefix("label %").startswith(BRANCHES) for label in labels[:2]):
            raise Unsupported("a branch that not all lanes of a warp take", self.target)
        bit = condition.removeprefix("i1 ")
        if bit.startswith("%"):
            (mask,) = self.operand("i1", bit)
            bit = self.all(mask) if labels[0].startswith(ALL) else self.of_lane("i1", mask, 0)
        self.do(f"br i1 {bit}, {', '.join(labels[:2])}")

    def _ret(self, name: str, operands: str) -> None:
        self.do(f"ret {operands}")

    def _fence(self, name: str, operands: str) -> None:
        self.do(f"fence {operands}")

    # -- memory -------------------------------------------------------------------------------------------------------

    def _getelementptr(self, name: str, operands: str) -> list[str]:
        _, base, distance = split(operands)
        type, text = typed(base)
        more_type, more = typed(distance)
        (added,) = self.operand(more_type, more)
        if text == "@shared_memory":
            return [added]
        (number,) = self.operand(type, text)
        return [self.ins(f"add {self.vector(more_type)} {number}, {added}")]

    def _inttoptr(self, name: str, operands: str) -> list[str]:
        return self.operand(*typed(operands.rpartition(" to ")[0]))

    _ptrtoint = _inttoptr

    def _alloca(self, name: str, operands: str) -> None:
        self.ins(f"alloca {operands}", name)

    def _load(self, name: str, operands: str) -> list[str]:
        kind, pointer, *rest = split(operands)
        type = kind.removeprefix("volatile ")
        type_of, number = typed(pointer)
        if type_of == "ptr":
            return [self.spread(type, self.ins(f"load {kind}, {pointer}, {', '.join(rest)}"))]
        (numbers,) = self.operand(type_of, number)
        return self._loads(kind, type, type_of, numbers, ", ".join(rest))

    def _loads(self, kind: str, type: str, pointer: str, numbers: str, rest: str) -> list[str]:
        """One for each lane."""
        (count, member), wide = members(type), members(pointer)[1]
        made = ["poison"] * count
        for lane in range(self.lanes):
            place = self.pointer(pointer, self.of_lane(wide, numbers, lane))
            whole = self.ins(f"load {kind}, {place}, {rest}")
            for i in range(count):
                part = whole if count == 1 else self.ins(f"extractelement {type} {whole}, i32 {i}")
                made[i] = self.ins(f"insertelement {self.vector(member)} {made[i]}, {member} {part}, i32 {lane}")
        return made

    def _lanes_load(self, name: str, operands: str) -> list[str]:
        """Where no lane's mask holds nothing is loaded; else lanes without it load what another one loads."""
        mask_text, _, rest = operands.partition(" [")
        others, _, access = rest.partition("] load ")
        kind, pointer, *rest_of = split(access)
        type = kind.removeprefix("volatile ")
        pointer_type, number = typed(pointer)
        (numbers,) = self.operand(pointer_type, number)
        if mask_text == "true":
            return self._loads(kind, type, pointer_type, numbers, ", ".join(rest_of))
        (mask,) = self.operand("i1", mask_text)
        instead = [self.operand(*typed(x))[0] for x in split(others)]
        member, wide = members(type)[1], members(pointer_type)[1]
        bits = self.of_lane("i32", self.ballot(mask), 0)
        inside, after, before = self.label("held"), self.label("after"), self.block
        self.do(f"br i1 {self.ins(f'icmp ne i32 {bits}, 0')}, label %{inside}, label %{after}")
        self.start(inside)
        first = self.of_lane(wide, numbers, self.lanes - 1)
        for lane in reversed(range(self.lanes - 1)):
            held, mine = self.of_lane("i1", mask, lane), self.of_lane(wide, numbers, lane)
            first = self.ins(f"select i1 {held}, {wide} {mine}, {wide} {first}")
        vector, kinds = self.vector(wide), self.vector("i1")
        safe = self.ins(f"select {kinds} {mask}, {vector} {numbers}, {vector} {self.spread(wide, first)}")
        made = self._loads(kind, type, pointer_type, safe, ", ".join(rest_of))
        words = self.vector(member)
        chosen = [
            self.ins(f"select {kinds} {mask}, {words} {x}, {words} {other}")
            for x, other in zip(made, instead, strict=True)
        ]
        self.do(f"br label %{after}")
        self.start(after)
        return [
            self.ins(f"phi {words} [ {x}, %{inside} ], [ {other}, %{before} ]")
            for x, other in zip(chosen, instead, strict=True)
        ]

    def _store(self, name: str, operands: str) -> None:
        value, pointer, *rest = split(operands)
        type, text = typed(value.removeprefix("volatile "))
        if typed(pointer)[0] == "ptr":
            self.do(f"store {operands}")
            return
        self._stores(None, "volatile " * value.startswith("volatile "), type, text, pointer, ", ".join(rest))

    def _lanes_store(self, name: str, operands: str) -> None:
        mask_text, _, access = operands.partition(" store ")
        mask = None if mask_text == "true" else self.operand("i1", mask_text)[0]
        value, pointer, *rest = split(access)
        type, text = typed(value.removeprefix("volatile "))
        self._stores(mask, "volatile " * value.startswith("volatile "), type, text, pointer, ", ".join(rest))

    def _stores(self, mask: str | None, flags: str, type: str, text: str, pointer: str, rest: str) -> None:
        """One for each lane, in a loop where there is a mask."""
        (count, member), parts = members(type), self.operand(type, text)
        pointer_type, number = typed(pointer)
        (numbers,) = self.operand(pointer_type, number)
        wide = members(pointer_type)[1]

        def one(lane: int | str) -> None:
            elements = [self.of_lane(member, part, lane) for part in parts]
            whole = elements[0] if count == 1 else "poison"
            for i, element in enumerate(elements if count > 1 else ()):
                whole = self.ins(f"insertelement {type} {whole}, {member} {element}, i32 {i}")
            place = self.pointer(pointer_type, self.of_lane(wide, numbers, lane))
            self.do(f"store {flags}{type} {whole}, {place}, {rest}")

        if mask is None:
            for lane in range(self.lanes):
                one(lane)
            return
        number, held, after = self.loop_begins(mask, [])
        one(number)
        self.loop_ends(number, held, after, [])

    # -- calls --------------------------------------------------------------------------------------------------------

    def _lanes_call(self, name: str, operands: str) -> list[str]:
        mask_text, _, rest = operands.partition(" [")
        instead, _, call = rest.partition("] ")
        type, _, callee = call.partition(" @")
        function, _, arguments = callee.partition("(")
        mask = EVERY if mask_text == "true" else self.operand("i1", mask_text)[0]
        (first,) = self.operand(*typed(instead))
        given = [(t, self.operand(t, x)[0]) for t, x in map(typed, split(arguments[:-1]))]
        vector = self.vector(type)
        self.count += 1
        carried = f"%w.old{self.count}"
        lane, head, following = self.loop_begins(mask, [(vector, carried, first)])
        spelled = ", ".join(f"{t} {self.of_lane(t, x, lane)}" for t, x in given)
        old = self.ins(f"call spir_func {type} @{function}({spelled})")
        made = self.ins(f"insertelement {vector} {carried}, {type} {old}, i32 {lane}")
        self.loop_ends(lane, head, following, [(vector, carried, made)])
        return [f"{carried}.next"]

    def _call(self, name: str, operands: str) -> list[str] | None:
        match = re.match(rf"((?:[a-z]+ )*?)({TYPE}) @([\w.]+)\((.*)\)$", operands)
        if match is None:
            raise Unsupported("inline assembly", self.target)
        flags, type, function, listed = match.groups()
        given = [typed(x) for x in split(listed)]
        if function.startswith(("_Z", OF_ITEM)):  # of the work item: its place, a barrier
            row = ", ".join(f"{t} {self._of_item(t, x)}" for t, x in given)
            call = f"call {flags}{type} @{function}({row})"
            if type == "void":
                self.do(call)
                return None
            return [self.spread(type, self.ins(call))]
        _, member = members(type)
        if not function.startswith("llvm."):
            parts = [self.operand(t, x)[0] for t, x in given]
            result = "poison"
            for lane in range(self.lanes):
                row = ", ".join(f"{t} {self.of_lane(t, x, lane)}" for (t, _), x in zip(given, parts, strict=True))
                one = self.ins(f"call {flags}{type} @{function}({row})")
                result = self.ins(f"insertelement {self.vector(member)} {result}, {member} {one}, i32 {lane}")
            return [result]
        stem = re.sub(r"\.(v\d+)?b?[if]\d+$", "", function)
        wide = f"{stem}.v{self.lanes}{MANGLED.get(member, member)}"
        last = given.pop() if stem.startswith(IMMEDIATE) else None
        columns = [self.operand(t, x) for t, x in given]
        kinds = [self.vector(members(t)[1]) for t, _ in given]
        behind = [f"{last[0]} {last[1]}"] if last is not None else []
        types = ", ".join([*kinds, *(["i1"] if last is not None else [])])
        self.declared[wide] = f"declare {self.vector(member)} @{wide}({types})"
        return [
            self.ins(
                f"call {flags}{self.vector(member)} @{wide}("
                + ", ".join([*(f"{k} {x}" for k, x in zip(kinds, row, strict=True)), *behind])
                + ")"
            )
            for row in zip(*columns, strict=True)
        ]

    def _of_item(self, type: str, name: str) -> str:
        """An operand that all lanes have, as the work item has it."""
        is_own = name in self.arguments or name not in self.made
        return name if is_own else self.of_lane(type, self.made[name][0], 0)

    def _lanes_index(self, name: str, operands: str) -> list[str]:
        return [self.ins(f"add {self.vector('i32')} {self.numbers()}, zeroinitializer")]

    def _lanes_swap(self, name: str, operands: str) -> list[str]:
        word, distance = split(operands)
        (x,) = self.operand(*typed(word))
        return [self.shuffled("i32", x, [lane ^ int(distance) for lane in range(self.lanes)])]

    def _lanes_shuffle(self, name: str, operands: str) -> list[str]:
        (_, word), (_, lane) = map(typed, split(operands))
        (x,) = self.operand("i32", word)
        if not lane.startswith("%"):
            return [self.shuffled("i32", x, [int(lane) & self.lanes - 1] * self.lanes)]
        (places,) = self.operand("i32", lane)
        vector = self.vector("i32")
        places = self.ins(f"and {vector} {places}, splat (i32 {self.lanes - 1})")
        made = "poison"
        for i in range(self.lanes):
            one = self.of_lane("i32", x, self.of_lane("i32", places, i))
            made = self.ins(f"insertelement {vector} {made}, i32 {one}, i32 {i}")
        return [made]

    def _lanes_print(self, name: str, operands: str) -> None:
        """For the lane that a loop has come to; in a loop of its own where all print."""
        function, _, listed = operands.partition(" @printf(")
        (text_type, text), *values = (typed(x) for x in split(listed[:-1]))
        lane, head, following = self.printing or self.loop_begins(EVERY, [])
        given = [f"{text_type} {text}", *(f"{t} {self.of_lane(t, self.operand(t, x)[0], lane)}" for t, x in values)]
        self.ins(f"call spir_func {function} @printf({', '.join(given)})")
        if self.printing is None:
            self.loop_ends(lane, head, following, [])

    def _lanes_any(self, name: str, operands: str) -> list[str]:
        (mask,) = self.operand(*typed(operands))
        return [self.ins(f"icmp ne {self.vector('i32')} {self.ballot(mask)}, zeroinitializer")]

    def _lanes_ballot(self, name: str, operands: str) -> list[str]:
        (mask,) = self.operand(*typed(operands))
        return [self.ballot(mask)]


def widened(text: str, lanes: int, target: str) -> str:
    """A module in which the kernel is one of whole warps; functions of one lane stay what they are."""
    out: list[str] = []
    kernel: Widened | None = None
    for line in text.splitlines():
        if line.startswith("define spir_kernel"):
            parameters = re.findall(rf"({TYPE})[ \w]* (%[\w.]+)[,)]", line.partition("(")[2])
            kernel = Widened(lanes, target, {name: type for type, name in parameters})
            out.append(line)
        elif line == "}" and kernel is not None:
            kernel.finish()
            out += [*kernel.out, line, *kernel.declared.values()]
            declared = set(kernel.declared)
            kernel = None
        elif kernel is not None:
            kernel.line(line)
        else:
            match = re.match(r"declare .*?@([\w.]+)\(", line)
            if match is None or match[1] not in declared:
                out.append(line)
    return "\n".join(out) + "\n"
