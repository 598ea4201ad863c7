"""LLVM IR of a warp as it is written: values are vectors of an element for each lane, and lanes take turns in loops.

    c.spread("i32", "%n")                    a scalar in all lanes
    c.of_lane("i32", "%w5", 3)               the element of one lane
    c.ballot("%w6")                          the bits of a mask as a number, in all lanes
    lane, head, following = c.loop_begins("%w6", [])       what follows is done by one lane of the mask after the other
    ...
    c.loop_ends(lane, head, following, [])

This file knows how vectors, masks and loops over lanes are spelled; `widening.py` says what each instruction becomes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir_text import bits_of, folded, members, splat, split

LETTERS = {"i8": "h", "i16": "t", "i32": "j"}
NAMES = {"i16": "ushort", "i32": "uint", "i64": "ulong"}
"""What OpenCL calls integers without a sign, in the names of functions."""


class WarpCode:
    """What has been written of a kernel, and the vectors that its registers have become."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.out: list[str] = []
        self.made: dict[str, list[str]] = {}
        """The vectors of each register: one for each element of its type."""
        self.declared: dict[str, str] = {}
        """The functions that are called, with their declarations."""
        self.block = "entry"
        """The block that is being written."""
        self.place, self.count = "", 0

    def ins(self, text: str, name: str = "") -> str:
        """An instruction with a result; of constants their value, as LLVM finds no instruction for vectors of those."""
        if not name:
            if "splat (i" in text and (constant := folded(text)):
                return constant
            self.count += 1
            name = f"%w{self.count}"
        self.out.append(f"  {name} = {text}{self.place}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.out.append(f"  {text}{self.place}")

    def start(self, label: str) -> None:
        """A block that the widening begins."""
        self.out.append(f"{label}:")
        self.block = label

    def label(self, hint: str) -> str:
        """A new name."""
        self.count += 1
        return f"w.{hint}{self.count}"

    def vector(self, type: str) -> str:
        """A type with an element for each lane."""
        return f"<{self.lanes} x {type}>"

    def operand(self, type: str, text: str) -> list[str]:
        """The vectors of an operand, one for each element of its type."""
        count, member = members(type)
        if text in self.made:
            return self.made[text]
        if text in ("poison", "undef", "zeroinitializer"):
            return [text] * count
        if text.startswith("splat"):
            return [f"splat ({text[7:-1]})"] * count
        if text.startswith("<"):
            return [f"splat ({part})" for part in split(text[1:-1])]
        if text.startswith("%"):
            raise KeyError(text)
        return [f"splat ({member} {text})"]

    def spread(self, type: str, name: str) -> str:
        """A scalar in all lanes."""
        vector = self.vector(type)
        first = self.ins(f"insertelement {vector} poison, {type} {name}, i32 0")
        return self.ins(f"shufflevector {vector} {first}, {vector} poison, {self.vector('i32')} zeroinitializer")

    def of_lane(self, type: str, name: str, lane: int | str) -> str:
        """The element of one lane."""
        return self.ins(f"extractelement {self.vector(type)} {name}, i32 {lane}")

    def shuffled(self, type: str, name: str, lanes: Sequence[int]) -> str:
        """Elements in another order."""
        if name.startswith(("splat", "zero")):
            return name
        vector, places = self.vector(type), ", ".join(f"i32 {lane}" for lane in lanes)
        return self.ins(f"shufflevector {vector} {name}, {vector} poison, {self.vector('i32')} <{places}>")

    def numbers(self) -> str:
        """The numbers of lanes."""
        return f"<{', '.join(f'i32 {lane}' for lane in range(self.lanes))}>"

    def ballot(self, mask: str) -> str:
        """A vector whose elements are all the mask's bits."""
        vector = self.vector("i32")
        word = self.ins(f"select {self.vector('i1')} {mask}, {vector} splat (i32 1), {vector} zeroinitializer")
        word = self.ins(f"shl {vector} {word}, {self.numbers()}")
        distance = 1
        while distance < self.lanes:
            other = self.shuffled("i32", word, [lane ^ distance for lane in range(self.lanes)])
            word = self.ins(f"or {vector} {word}, {other}")
            distance *= 2
        return word

    def all(self, mask: str) -> str:
        """Whether all lanes have the bit."""
        return self.ins(f"icmp eq i32 {self.of_lane('i32', self.ballot(mask), 0)}, {(1 << self.lanes) - 1}")

    def pointer(self, type: str, number: str) -> str:
        """The number of one lane as a pointer of LLVM's."""
        if type.endswith("(3)"):
            return f"{type} {self.ins(f'getelementptr i8, {type} @shared_memory, i32 {number}')}"
        return f"{type} {self.ins(f'inttoptr i64 {number} to {type}')}"

    def converted(self, op: str, flags: str, source: str, target: str, name: str) -> str:
        """A narrow integer is made wider by OpenCL's function: LLVM joins a `zext` with a `trunc` before it, to what it
        finds no instruction for. A lowest bit is compared, as LLVM gives what it makes of a `trunc` a wrong size."""
        kinds = self.vector(source), self.vector(target)
        if op == "trunc" and target == "i1":
            lowest = self.ins(f"and {kinds[0]} {name}, {splat(1, bits_of(source))}")
            return self.ins(f"icmp ne {kinds[0]} {lowest}, zeroinitializer")
        if op != "zext" or source not in LETTERS or not name.startswith("%"):
            return self.ins(f"{op} {flags}{kinds[0]} {name} to {kinds[1]}")
        function = f"convert_{NAMES[target]}{self.lanes}"
        function = f"_Z{len(function)}{function}Dv{self.lanes}_{LETTERS[source]}"
        self.declared[function] = f"declare {kinds[1]} @{function}({kinds[0]})"
        wide = self.ins(f"call {kinds[1]} @{function}({kinds[0]} {name})")
        mask = splat((1 << bits_of(source)) - 1, bits_of(target))  # it copies the sign, whatever its name says
        return self.ins(f"and {kinds[1]} {wide}, {mask}")

    def as_bits(self, type: str, name: str) -> str:
        """A vector as one of integers of the same size."""
        if type[0] == "i":
            return name
        return self.ins(f"bitcast {self.vector(type)} {name} to {self.vector(f'i{bits_of(type)}')}")

    def from_bits(self, type: str, name: str) -> str:
        """The vector of a type that such integers are."""
        if type[0] == "i":
            return name
        return self.ins(f"bitcast {self.vector(f'i{bits_of(type)}')} {name} to {self.vector(type)}")

    # -- loops over lanes ----------------------------------------------------------------------------------------------

    def loop_begins(self, mask: str, carried: list[tuple[str, str, str]]) -> tuple[str, str, str]:
        """A loop over lanes, which is inside where the lane's mask holds: (lane, label before, label of the next).

        `carried` are (type, register, first value).
        """
        before, head, inside, following = self.block, self.label("lane"), self.label("held"), self.label("next")
        self.count += 1
        lane = f"%w.lane{self.count}"
        if not mask.startswith("%"):  # an element of a constant, which LLVM would have to find when it is run
            mask = self.ins(f"or {self.vector('i1')} {mask}, zeroinitializer", f"{lane}.mask")
        self.do(f"br label %{head}")
        self.start(head)
        self.out.append(f"  {lane} = phi i32 [ 0, %{before} ], [ {lane}.next, %{following} ]")
        for type, register, first in carried:
            self.out.append(f"  {register} = phi {type} [ {first}, %{before} ], [ {register}.next, %{following} ]")
        self.do(f"br i1 {self.of_lane('i1', mask, lane)}, label %{inside}, label %{following}")
        self.start(inside)
        return lane, head, following

    def loop_ends(self, lane: str, head: str, following: str, carried: list[tuple[str, str, str]]) -> None:
        """`carried` are (type, register, what the lane made of it)."""
        inside, done = self.block, self.label("done")
        self.do(f"br label %{following}")
        self.start(following)
        for type, register, made in carried:
            self.out.append(f"  {register}.next = phi {type} [ {made}, %{inside} ], [ {register}, %{head} ]")
        self.ins(f"add i32 {lane}, 1", f"{lane}.next")
        again = self.ins(f"icmp ult i32 {lane}.next, {self.lanes}")
        self.do(f"br i1 {again}, label %{head}, label %{done}")
        self.start(done)
