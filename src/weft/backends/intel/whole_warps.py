"""The dialect of SPIR-V in which one work item is a whole warp: the second way to the same hardware.

The emitter writes what one lane does, as for all GPUs; what lanes tell each other, accesses under a mask and atomics
are written as the instructions below, which LLVM does not have, and `widening` makes all of it code of vectors with an
element for each lane.

    lanes.index                             the lane's number
    lanes.shuffle i32 %x, i32 %lane         %x of another lane; lanes.swap i32 %x, 4: of the one at a distance
    lanes.ballot i1 %b                      lanes.any i1 %b: whether a lane has it, in all of them
    lanes.load %m [T a, T b] load <2 x T>, ptr addrspace(1) %p, align 8      what is there instead is in brackets
    lanes.store %m store T %x, ptr addrspace(1) %p, align 4
    lanes.call %m [T a] T @f(i64 %p, T %x)  a function of one lane, called by one lane after the other
    lanes.print i32 (...) @printf(...)      called by one lane after the other: those that a branch has let in
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.backends.llvm.elementwise import widen
from weft.backends.llvm.values import vec
from weft.ir.lane import LaneOp, LaneProgram
from weft.targets.instruction import Instruction

from ..gpu.branched import stored_whole
from ..gpu.emitter import Body, Emitter, Part, Register
from ..gpu.memory import instead_of, pointer_to
from ..gpu.operands import Access
from .assertions import any_of
from .dialect import SPIRV
from .lanes import BLOCK


class WholeWarps(SPIRV):
    """The dialect of one program."""

    prints = "lanes.print"

    def attributes(self, program: LaneProgram, registers: int) -> str:
        """A work item for each warp, whose vectors are not to be made larger; there are no subgroups."""
        return f"!reqd_work_group_size !{BLOCK} !vec_type_hint !{BLOCK + 1}"

    def begin(self, e: Emitter) -> None:
        """As for lanes, but for the size of a block."""
        super().begin(e)
        e.whole = ()  # elements of vectors are what it works with
        e.module.attributes[-2:] = [
            f"!{BLOCK} = !{{i32 {e.program.warps}, i32 1, i32 1}}",
            f"!{BLOCK + 1} = !{{<{self.lanes} x float> undef, i32 0}}",
        ]

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _thread(self, e: Emitter) -> str:
        lane = self.lane(e)
        if e.program.warps == 1:
            return lane
        wide = e.once("item", e.call("_Z12get_local_idj", "i64", [("i32", "0")]), ())
        warp = e.once("warp", f"trunc i64 {wide} to i32", ())
        return e.early("or i32", e.early("mul i32", warp, str(self.lanes)), lane)

    def lane(self, e: Emitter) -> str:
        """A constant vector."""
        return e.once("lane", "lanes.index", ())

    def same(self, e: Emitter, key: object, number: str) -> str:
        """All lanes have it."""
        return number

    def shuffle(self, e: Emitter, word: str, lane: str, *, xor: bool) -> str:
        """A shuffle of the vector."""
        return e.ins(f"lanes.swap i32 {word}, {lane}" if xor else f"lanes.shuffle i32 {word}, i32 {lane}")

    def ballot(self, e: Emitter, bit: str) -> str:
        """A bit for each lane."""
        return e.ins(f"lanes.ballot i1 {bit}")

    def barrier(self, e: Emitter, op: LaneOp) -> None:
        """Of the block; a warp's work item waits for nobody."""
        if op.attrs["scope"] != "warp" and e.program.warps > 1 and int(op.attrs.get("warps", 2)) > 1:
            super().barrier(e, op)

    # -- memory -------------------------------------------------------------------------------------------------------

    def masked_load(
        self, e: Emitter, access: Access, hints: Any, other: Sequence[Register] | None
    ) -> Sequence[Register]:
        """One load for each lane, where some lane's mask holds."""
        shape = access.shape
        whole = shape.word if shape.words == 1 else f"<{shape.words} x {shape.word}>"
        words = instead_of(e, access, other)
        if shape.bits == 8:
            words = [e.early("trunc i32", word, to="i8") for word in words]
        pointer = pointer_to(e, access.address, access.space, access.more)
        mask = "true" if access.mask is None else e.name(access.mask)
        instead = ", ".join(f"{shape.word} {word}" for word in words)
        size = shape.words * shape.bits // 8
        name = e.ins(f"lanes.load {mask} [{instead}] load {hints.before}{whole}, {pointer}, align {size}")
        if shape.words > 1:
            return [e.ins(f"extractelement {whole} {name}, i32 {i}") for i in range(shape.words)]
        return [Part(e.ins(f"zext i8 {name} to i32"), 0, 4, "i8")] if shape.bits == 8 else [name]

    def masked_store(self, e: Emitter, access: Access, hints: Any, words: Sequence[str]) -> None:
        """One store for each lane whose mask holds."""
        size = access.shape.words * access.shape.bits // 8
        type, whole = stored_whole(e, access, words)
        pointer = pointer_to(e, access.address, access.space, access.more)
        mask = "true" if access.mask is None else e.name(access.mask)
        e.do(f"lanes.store {mask} store {hints.before}{type} {whole}, {pointer}, align {size}")

    def atomic(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Sequence[Register], mask: Register | None
    ) -> list[Register] | None:
        """By one lane after the other."""

        def written(inner: Emitter, names: list[str]) -> Register:
            made = super(WholeWarps, self).atomic(inner, op, elem, names[0], names[1:], None)
            assert made is not None
            return made[0]

        type = e.llvm[elem]
        return [self._by_lanes(e, op, [*[(type, x) for x in new]], address, mask, type, elem, written)]

    def ordered(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
    ) -> Register:
        """The same for an atomic load or store."""

        def written(inner: Emitter, names: list[str]) -> Register:
            return super(WholeWarps, self).ordered(inner, op, elem, names[0], names[1], None)

        return self._by_lanes(e, op, [(e.llvm[elem], new)], address, mask, e.llvm[elem], elem, written)

    def compare_and_swap(
        self, e: Emitter, op: LaneOp, address: Register, old: Register, new: Register, mask: Register | None
    ) -> Register:
        """The same for a compare-and-swap."""
        elem = op.operands[2].elem
        type = e.llvm[elem]

        def written(inner: Emitter, names: list[str]) -> Register:
            return super(WholeWarps, self).compare_and_swap(inner, op, names[0], names[1], names[2], None)

        return self._by_lanes(e, op, [(type, old), (type, new)], address, mask, type, elem, written)

    def _by_lanes(
        self,
        e: Emitter,
        op: LaneOp,
        operands: Sequence[tuple[str, Register]],
        address: Register,
        mask: Register | None,
        type: str,
        elem: str,
        written: Callable[[Emitter, list[str]], Register],
    ) -> str:
        """What a function of one lane gives, that is written once for operations that are alike."""
        attrs = [op.attrs.get(key) for key in ("space", "kind", "order", "scope")]
        name = ".".join(["weft", op.name, elem, *(str(a) for a in attrs if a is not None)])
        wide = "i64" if op.attrs["space"] == "global" else "i32"
        types = [wide, *(t for t, _ in operands)]
        if name not in e.module.defined:
            pairs = [(f"p{i}", vec(t, 0)) for i, t in enumerate(types)]
            f = Body(e.module, name, vec(type, 0), pairs, "nounwind", "internal spir_func")
            e.module.functions.append(f)
            e.module.defined.add(name)
            inner = Emitter(e.program, self, False)
            inner.module = e.module
            inner.start(f)
            result = inner.name(written(inner, [a.name for a in f.args]))
            inner.do(f"ret {type} {result}")
        names = [e.name(x) for x in (address, *(x for _, x in operands))]
        arguments = ", ".join(f"{t} {n}" for t, n in zip(types, names, strict=True))
        held = "true" if mask is None else e.name(mask)
        zero = e.name(e.constant(elem, 0))
        return e.ins(f"lanes.call {held} [{type} {zero}] {type} @{name}({arguments})")

    # -- products -----------------------------------------------------------------------------------------------------

    def instruction(
        self, e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
    ) -> list[list[Register]]:
        """DPAS by sums of vectors: an element of A is spread over the lanes, each of which has a column of B."""
        if "types" not in entry.params:
            raise e.fail(op, f"the instruction `{entry.name}`")
        a, b, c = entry.operands
        rows, _, depth = entry.shape
        left, right, sums = ([e.name(r) for r in chunk] for chunk in chunks)
        assert a.layout is not None and b.layout is not None and c.layout is not None
        lanes = range(self.lanes)
        places = {
            tuple(a.layout(register=r, lane=lane).values()): (r, lane) for r in range(a.count) for lane in lanes
        }
        is_float = c.elem == "f32"
        elems = [*entry.params["types"]]
        b_rows = {b.layout(register=r, lane=0)["dim0"]: r for r in range(b.count)}
        c_rows = {c.layout(register=r, lane=0)["dim0"]: r for r in range(c.count)}
        lefts = [self._factor(e, elems[0], x) for x in left]
        rights = [self._factor(e, elems[1], x) for x in right]
        out = list(sums)
        for m in range(rows):
            for k in range(depth):
                register, lane = places[m, k]
                x, y, at = lefts[register], rights[b_rows[k]], c_rows[m]
                word = e.pure(f"bitcast float {x} to i32") if is_float else x
                spread = e.pure(f"lanes.shuffle i32 {word}, i32 {lane}")
                if is_float:
                    spread = e.pure(f"bitcast i32 {spread} to float")
                    out[at] = e.ins(e.call("llvm.fma.f32", "float", [("float", n) for n in (spread, y, out[at])]))
                else:
                    out[at] = e.ins(f"add i32 {out[at]}, {e.ins(f'mul i32 {spread}, {y}')}")
        return [list(out)]

    def _factor(self, e: Emitter, kind: str, name: str) -> str:
        """An element of A or B as what is multiplied: f32 or i32."""
        if kind in ("s8", "u8"):
            return e.pure(f"{'sext' if kind == 's8' else 'zext'} i8 {name} to i32")
        if kind == "tf32":
            bits = e.pure(f"and i32 {e.pure(f'bitcast float {name} to i32')}, -8192")
            return e.pure(f"bitcast i32 {bits} to float")
        if kind == "f16":
            return e.pure(f"fpext half {name} to float")
        return widen(e.f, kind, e.typed(kind, name)).name

    def anywhere(self, e: Emitter, bit: str) -> str:
        """The lanes of a warp are one work item."""
        some = e.ins(f"lanes.any i1 {bit}")
        return some if e.program.warps == 1 or e.partition is not None else any_of(e, some, of_block=True)
