"""The dialect of SPIR-V: accesses with a mask or hints for the caches, and atomics.

What has a mask is in a branch. OpenCL's atomics are of 32 and 64 bits: narrower ones are done on the word that they
are in, by compare-and-swap; so are all of floats but additions of f32 and f64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.backends.llvm.elementwise import narrow, widen
from weft.base import Unsupported
from weft.ir.lane import ELEMENT_BITS, LaneOp

from ..gpu.branched import FLOATS, BranchedMemory, Hints, bits_of
from ..gpu.branches import Branches
from ..gpu.emitter import Emitter, Register
from ..gpu.memory import SWAPPED, pointer_to
from .lanes import Lanes

WORD = 32
"""Bits of the smallest atomic."""
UNCACHED = ("cv", "wt")


class Memory(Lanes, BranchedMemory):
    """Global and shared memory."""

    counts_shared = True
    scopes: Mapping[str, str] = {"cta": "workgroup", "gpu": "device"}

    def begin(self, e: Emitter) -> None:
        """What the accesses of a program need."""
        super().begin(e)
        self.branches = Branches(e)

    def hints(self, e: Emitter, op: LaneOp) -> Hints:
        """What must not come out of a cache is volatile; other hints are the device's to guess."""
        attrs = op.attrs
        return Hints(before="volatile " if attrs.get("volatile") or attrs.get("cache") in UNCACHED else "")

    def atomic(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Sequence[Register], mask: Register | None
    ) -> list[Register] | None:
        """OpenCL's own where there is one, else by compare-and-swap of the word that the element is in."""
        kind = SWAPPED.get(op.attrs["kind"])
        is_sum = kind == "fadd" or (kind == "add" and elem in FLOATS)
        if kind is None or len(new) > 1:
            raise e.fail(op, f"atomic {op.attrs['kind']} of {'several ' if len(new) > 1 else ''}{elem}")
        if ELEMENT_BITS[elem] >= WORD:
            return super().atomic(e, op, elem, address, new, mask)
        operand = e.name(new[0])

        def changed(old: str) -> str:
            return _combined(e, "fadd" if is_sum else kind, elem, old, operand)

        return [self._by_words(e, op, elem, address, mask, changed)]

    def compare_and_swap(
        self, e: Emitter, op: LaneOp, address: Register, old: Register, new: Register, mask: Register | None
    ) -> Register:
        """Of narrow elements too: where another one is there, that is stored again."""
        elem = op.operands[2].elem
        bits, type = ELEMENT_BITS[elem], e.llvm[elem]
        if bits >= WORD:
            return super().compare_and_swap(e, op, address, old, new, mask)
        wanted, stored = (bits_of(e, x, elem) for x in (old, new))

        def changed(found: str) -> str:
            there = found if type[0] == "i" else e.ins(f"bitcast {type} {found} to i{bits}")
            same = e.ins(f"icmp eq i{bits} {there}, {wanted}")
            chosen = e.ins(f"select i1 {same}, i{bits} {stored}, i{bits} {there}")
            return chosen if type[0] == "i" else e.ins(f"bitcast i{bits} {chosen} to {type}")

        return self._by_words(e, op, elem, address, mask, changed)

    def _by_words(
        self,
        e: Emitter,
        op: LaneOp,
        elem: str,
        address: Register,
        mask: Register | None,
        changed: Callable[[str], str],
    ) -> str:
        """What was there before an element became what it is `changed` to: its word is read, and swapped until nobody
        else has written it meanwhile."""
        bits, type, space = ELEMENT_BITS[elem], e.llvm[elem], op.attrs["space"]
        wide = "i64" if space == "global" else "i32"

        def swapped() -> list[str]:
            place = e.name(address)
            word = pointer_to(e, e.ins(f"and {wide} {place}, -4"), space)
            byte = e.ins(f"and {wide} {place}, 3")
            low = byte if wide == "i32" else e.ins(f"trunc i64 {byte} to i32")
            shift = e.ins(f"shl i32 {low}, 3")
            others = e.ins(f"xor i32 {e.ins(f'shl i32 {(1 << bits) - 1}, {shift}')}, -1")
            f, before = e.f, e.f.block
            first = e.ins(f"load atomic i32, {word} monotonic, align 4")
            again, done = f.new_label("again"), f.new_label("swapped")
            (current,) = e.reserve(1)
            e.do(f"br label %{again}")
            f.start(again)
            at = len(e.lines)
            field = e.ins(f"trunc i32 {e.ins(f'lshr i32 {current}, {shift}')} to i{bits}")
            old = field if type == f"i{bits}" else e.ins(f"bitcast i{bits} {field} to {type}")
            made = changed(old)
            made = made if type == f"i{bits}" else e.ins(f"bitcast {type} {made} to i{bits}")
            moved = e.ins(f"shl i32 {e.ins(f'zext i{bits} {made} to i32')}, {shift}")
            whole = e.ins(f"or i32 {e.ins(f'and i32 {current}, {others}')}, {moved}")
            scope = self.scope(op)
            pair = e.ins(f"cmpxchg {word}, i32 {current}, i32 {whole} {scope}acq_rel acquire")
            seen, held = (e.ins(f"extractvalue {{ i32, i1 }} {pair}, {i}") for i in (0, 1))
            e.do(f"br i1 {held}, label %{done}, label %{again}")
            e.lines.insert(at, f"  {current} = phi i32 [ {first}, %{before} ], [ {seen}, %{again} ]")
            f.start(done)
            return [old]

        if mask is None:
            return swapped()[0]
        f, before = e.f, e.f.block
        inside, after = f.new_label("held"), f.new_label("after")
        e.do(f"br i1 {e.name(mask)}, label %{inside}, label %{after}")
        f.start(inside)
        mark = e.mark()
        (old,) = swapped()
        e.forget(mark)
        last = f.block
        e.do(f"br label %{after}")
        f.start(after)
        return e.ins(f"phi {type} [ {old}, %{last} ], [ {e.name(e.constant(elem, 0))}, %{before} ]")

    def remote(self, e: Emitter, address: str, rank: str) -> str:
        """There are no clusters."""
        raise Unsupported("the shared memory of another block", e.program.target)

    def copy(self, e: Emitter, op: LaneOp, target: Register, source: Register, mask: Register | None) -> None:
        """There are no copies to shared memory: no row says so."""
        raise e.fail(op, "an asynchronous copy")

    def await_copies(self, e: Emitter, op: LaneOp) -> None:
        """There is nothing to wait for."""


def _combined(e: Emitter, kind: str | None, elem: str, old: str, new: str) -> str:
    """What an atomic of a kind stores."""
    type = e.llvm[elem]
    if kind == "xchg":
        return new
    if kind == "fadd":
        return narrow(e.f, elem, e.f.fadd(*(widen(e.f, elem, e.typed(elem, x)) for x in (old, new)))).name
    if kind in ("add", "and", "or", "xor"):
        return e.ins(f"{kind} {type} {old}, {new}")
    less = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}[str(kind)]
    return e.ins(f"select i1 {e.ins(f'icmp {less} {type} {old}, {new}')}, {type} {old}, {type} {new}")
