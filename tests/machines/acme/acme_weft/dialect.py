"""LLVM IR as Acme's machines run it: each thread is one of the host's, and what lanes tell each other is a call.

place("thread")   @acme_place(i32 0)              masked_load   a branch around a load
shuffle           @acme_shuffle(word, lane, 1)    barrier       @acme_barrier(i32 1)
copy              @acme_copy(to, from, size, n)   await_copies  @acme_await(single copies that may be pending)
instruction       @acme_instruction(which, operands, results)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from weft.backends.gpu.diagnostics import address_of
from weft.backends.gpu.memory import address_text, instead_of
from weft.backends.gpu.operands import BITS, LLVM
from weft.base import Unsupported
from weft.ir.lane import LaneProgram

from .counted import counted
from .instructions import INSTRUCTIONS

__all__ = ["PLACES", "Dialect"]

PLACES = ("thread", *(f"{what}.{axis}" for what in ("block", "blocks") for axis in "xyz"))
NAMES = list(INSTRUCTIONS)


class Dialect:
    """See `weft.backends.gpu.Dialect`."""

    processor, convention, tensor_map, bf16, adds_bf16 = "one", "ccc", "", "bfloat", False
    converts_slowly = False
    counts_shared = False
    scopes: Mapping[str, str] = {}
    scalars: Mapping[str, Any] = {}

    def __init__(self, program: LaneProgram) -> None:
        self.target = program.target
        self.pending = counted(program)

    def attributes(self, program: Any, registers: int) -> str:
        return ""

    def pointers(self, program: Any) -> tuple[str, ...]:
        return ()

    def anywhere(self, e: Any, bit: str) -> str:
        return bit

    def shared_memory(self, program: Any, alignment: int) -> str:
        return f"@shared_memory = external addrspace(3) global [0 x i8], align {alignment}"

    def begin(self, e: Any) -> None:
        e.module.globals.append("@acme_zero = global i32 0")

    # -- where a thread is, and others --------------------------------------------------------------------------------

    def place(self, e: Any, what: str, below: int = 0) -> str:
        if what == "rank":
            return "0"
        index = PLACES.index(what.replace("program", "block"))
        number = e.once(what, e.call("acme_place", "i32", [("i32", str(index))]), ())
        if below:
            e.largest[number] = below - 1
        return number

    def same(self, e: Any, key: object, number: str) -> str:
        return number

    def shuffle(self, e: Any, word: str, lane: str, *, xor: bool) -> str:
        return e.ins(e.call("acme_shuffle", "i32", [("i32", word), ("i32", lane), ("i32", str(int(xor)))]))

    def ballot(self, e: Any, bit: str) -> str:
        return e.ins(e.call("acme_ballot", "i32", [("i32", e.ins(f"zext i1 {bit} to i32"))]))

    def elect(self, e: Any) -> str:
        thread = self.place(e, "thread")
        return e.early("icmp eq i32", e.early("and i32", thread, "15"), "0")

    def permute(self, e: Any, a: str, b: str, selector: str) -> str:
        high = e.early("shl i64", e.early("zext i32", b, to="i64"), "32")
        both, word = e.early("or i64", high, e.early("zext i32", a, to="i64")), "0"
        for i in range(4):
            nibble = e.early("and i32", e.early("lshr i32", selector, str(4 * i)), "7")
            places = e.early("zext i32", e.early("shl i32", nibble, "3"), to="i64")
            byte = e.early("and i32", e.early("trunc i64", e.early("lshr i64", both, places), to="i32"), "255")
            word = e.early("or i32", word, e.early("shl i32", byte, str(8 * i)))
        return word

    def barrier(self, e: Any, op: Any) -> None:
        if "id" in op.attrs or op.attrs["scope"] == "cluster":
            raise Unsupported("a barrier of a part of the block", self.target, op.span)
        e.do(e.call("acme_barrier", "void", [("i32", str(int(op.attrs["scope"] == "block")))]))

    def fence(self, e: Any, op: Any) -> None:
        if op.attrs["kind"].startswith("async"):
            raise Unsupported("a fence for a copy engine", self.target, op.span)
        e.do("fence acq_rel")

    # -- memory -------------------------------------------------------------------------------------------------------

    def hints(self, e: Any, op: Any) -> Any:
        return "volatile " if op.attrs.get("volatile") else ""

    @contextmanager
    def _where(self, e: Any, mask: Any) -> Iterator[tuple[str, str]]:
        inside, after, before = e.f.new_label("held"), e.f.new_label("after"), e.f.block
        e.do(f"br i1 {'true' if mask is None else e.name(mask)}, label %{inside}, label %{after}")
        e.f.start(inside)
        mark = e.mark()
        yield before, inside
        e.forget(mark)
        e.do(f"br label %{after}")
        e.f.start(after)

    def _pointer(self, e: Any, address: Any, space: str, more: int = 0) -> str:
        if space == "cluster":
            raise Unsupported("the shared memory of another block", self.target)
        type, base, offset = address_text(e, address, space == "global")
        return e.ins(f"getelementptr i8, ptr {e.ins(f'inttoptr {type} {base} to ptr')}, i64 {offset + more}")

    def masked_load(self, e: Any, access: Any, hints: Any, other: Any) -> list[str]:
        shape, instead = access.shape, instead_of(e, access, other)
        pointer = self._pointer(e, access.address, access.space, access.more)
        with self._where(e, access.mask) as (before, inside):
            size, words = shape.bits // 8, []
            for k in range(shape.words):
                place = e.ins(f"getelementptr i8, ptr {pointer}, i64 {k * size}")
                word = e.ins(f"load {hints}{shape.word}, ptr {place}, align {size}")
                words.append(word if shape.bits > 8 else e.ins(f"zext i8 {word} to i32"))
        pairs = zip(words, instead, strict=True)
        chosen = [e.ins(f"phi {access.word} [ {w}, %{inside} ], [ {i}, %{before} ]") for w, i in pairs]
        return chosen if shape.bits > 8 else [e.ins(f"trunc i32 {w} to i8") for w in chosen]

    def masked_store(self, e: Any, access: Any, hints: Any, words: Sequence[str]) -> None:
        shape, pointer = access.shape, self._pointer(e, access.address, access.space, access.more)
        size = shape.bits // 8
        with self._where(e, access.mask):
            for k, word in enumerate(words):
                place = e.ins(f"getelementptr i8, ptr {pointer}, i64 {k * size}")
                word = word if shape.bits > 8 else e.ins(f"trunc i32 {word} to i8")
                e.do(f"store {hints}{shape.word} {word}, ptr {place}, align {size}")

    def atomic(self, e: Any, op: Any, elem: str, address: Any, new: Any, mask: Any) -> None:
        return None  # LLVM's own

    def ordered(self, e: Any, op: Any, elem: str, address: Any, new: Any, mask: Any) -> Any:
        type, pointer = f"i{BITS[LLVM[elem]]}", self._pointer(e, address, op.attrs["space"])
        order = {"relaxed": "monotonic"}.get(op.attrs["order"], op.attrs["order"])
        with self._where(e, mask) as (before, inside):
            if op.attrs["kind"] == "store":
                e.do(f"store atomic {type} {e.name(new)}, ptr {pointer} {order}, align {int(type[1:]) // 8}")
            else:
                loaded = e.ins(f"load atomic {type}, ptr {pointer} {order}, align {int(type[1:]) // 8}")
        if op.attrs["kind"] == "store":
            return e.constant(elem, 0)
        return e.ins(f"phi {type} [ {loaded}, %{inside} ], [ 0, %{before} ]")

    def compare_and_swap(self, e: Any, op: Any, address: Any, old: Any, new: Any, mask: Any) -> Any:
        type = LLVM[op.operands[2].elem]
        bits, pointer = f"i{BITS[type]}", self._pointer(e, address, op.attrs["space"])
        names = [e.name(x) if type[0] == "i" else e.ins(f"bitcast {type} {e.name(x)} to {bits}") for x in (old, new)]
        with self._where(e, mask) as (before, inside):
            pair = e.ins(f"cmpxchg ptr {pointer}, {bits} {names[0]}, {bits} {names[1]} seq_cst seq_cst")
            found = e.ins(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
        found = e.ins(f"phi {bits} [ {found}, %{inside} ], [ 0, %{before} ]")
        return found if type == bits else e.ins(f"bitcast {bits} {found} to {type}")

    def copy(self, e: Any, op: Any, target: Any, source: Any, mask: Any) -> None:
        there, here = self._pointer(e, target, "shared"), self._pointer(e, source, "global")
        size = str(op.attrs["bytes"])
        read = size if mask is None else e.ins(f"select i1 {e.name(mask)}, i32 {size}, i32 0")
        e.do(e.call("acme_copy", "void", [("ptr", there), ("ptr", here), ("i32", read), ("i32", size)]))

    def await_copies(self, e: Any, op: Any) -> None:
        if op.name == "wait_async":
            e.do(e.call("acme_await", "void", [("i32", str(self.pending[id(op)]))]))

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def approximation(self, f: Any, name: str, operands: list[Any]) -> Any:
        type = operands[0].type
        if name == "quotient":
            return f.emit(type, f"fdiv {type} {operands[0].name}, {operands[1].name}")
        if name in ("reciprocal", "rsqrt"):
            x = operands[0].name if name == "reciprocal" else f.intrinsic("sqrt", type, operands).name
            return f.emit(type, f"fdiv {type} 1.0, {x}")
        return f.intrinsic(name, type, operands)

    def hidden(self, name: str, a: str, b: str) -> str:
        return f"{name} i64 {a}, {b}"

    def pair_conversion(self, source: str, target: str) -> None:
        return None

    def toward_zero(self, e: Any, source: str, target: str, name: str) -> None:
        return None

    def to_integer(self, e: Any, name: str, source: str, bits: int, *, signed: bool) -> str:
        short, integer = {"f32": "f32", "f64": "f64"}[source], f"i{bits}"
        called = f"llvm.fpto{'s' if signed else 'u'}i.sat.{integer}.{short}"
        return e.ins(e.call(called, integer, [(LLVM[source], name)]))

    # -- what has no other form ---------------------------------------------------------------------------------------

    def _array(self, e: Any, values: Sequence[tuple[str, str]], size: int) -> str:
        """Memory of a thread's that has these (type, name), each at a multiple of `size` bytes."""
        e._count += 1
        e.f.allocas.append(f"  %b{e._count} = alloca [{max(1, len(values)) * size} x i8], align 16")
        memory = f"%b{e._count}"
        for i, (type, name) in enumerate(values):
            e.do(f"store {type} {name}, ptr {e.ins(f'getelementptr i8, ptr {memory}, i32 {i * size}')}")
        return memory

    def instruction(self, e: Any, op: Any, entry: Any, given: Any) -> list[list[str]]:
        elems = [o.elem for o in entry.operands]
        registers = [(LLVM[elem], e.name(r)) for elem, some in zip(elems, given, strict=True) for r in some]
        (made,) = entry.results
        memory, results = self._array(e, registers, 4), self._array(e, [(LLVM[made.elem], "0.0")] * made.count, 4)
        index = str(NAMES.index(entry.name))
        e.do(e.call("acme_instruction", "void", [("i32", index), ("ptr", memory), ("ptr", results)]))
        places = (e.ins(f"getelementptr i8, ptr {results}, i32 {4 * i}") for i in range(made.count))
        return [[e.ins(f"load {LLVM[made.elem]}, ptr {place}") for place in places]]

    def together(self, value: Any) -> int:
        return 1

    def clock(self, e: Any) -> str:
        return e.ins(e.call("acme_clock", "i64", ()))

    def zero(self, e: Any) -> str:
        return e.ins("load volatile i32, ptr @acme_zero")

    def load_anew(self, e: Any) -> None:
        e.asm("", "~{memory}", (), ())

    def keep(self, e: Any, given: list[tuple[str, str]]) -> None:
        self._array(e, given, 8)

    def print(self, e: Any, form: str, values: list[tuple[str, str]]) -> None:
        kinds = "".join({"i32": "i", "i64": "q", "double": "d"}[type] for type, _ in values)
        letters = str(int.from_bytes(kinds.encode(), "little"))
        array = self._array(e, values, 8)
        e.do(e.call("acme_print", "void", [("ptr", address_of(e, form)), ("i64", letters), ("ptr", array)]))

    def give_up(self, e: Any, message: str, path: str, line: int) -> None:
        e.do(e.call("acme_give_up", "void", [("ptr", address_of(e, message)), ("i32", str(line))]))

    def trap(self, e: Any) -> None:
        e.do(e.call("acme_give_up", "void", [("ptr", "null"), ("i32", "0")]))

    def remote(self, e: Any, address: str, rank: str) -> str:
        raise Unsupported("clusters of blocks", self.target)

    def wait(self, e: Any, op: Any) -> None:
        raise Unsupported("products that go on by themselves", self.target, op.span)

    def assembly(self, e: Any, op: Any) -> None:
        raise Unsupported("inline assembly", self.target, op.span)
