"""Addresses that are a pointer of all lanes and a distance of 32 bits: accesses through buffer descriptors.

    %b = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc...(ptr addrspace(1) %low, i16 0, i64 4294901760, ...)
    %d = select i1 %mask, i32 %distance, i32 -65536
    %v = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %b, i32 %d, i32 0, i32 0)

The lane program has such a sum where `lower/amd/addresses.py` wrote it. The descriptor lies in four scalar registers;
an access takes one vector register for its address instead of two, and a mask is a distance that is out of range: what
is loaded from there is 0, and nothing is stored, without a branch. A mask that all lanes have, such as whether a loop
has another iteration, is a descriptor of no records.

The fields of a descriptor are those of LLVM's AMDGPUUsage, "Buffer Resource Descriptor", and of the instruction sets'
manuals: a format that is not 0, and from RDNA on a bit that is reserved, and that distances alone are compared with the
number of records. gfx1250's have pointers of 57 bits and numbers of records of 45, which LLVM puts together, no format,
and of the flags those four alone that say how distances are compared and that it is a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weft.ir.amd.amdg import BIAS
from weft.ir.lane import LaneOp, LaneProgram, Value

from ..gpu.emitter import Emitter, Register, Sum
from ..gpu.operands import Access
from .first_lane import Alike

RECORDS = (1 << 32) - (1 << 16)
"""Distances below it are in range; what is added to one in an instruction leads from none at it to one in range."""
FORMAT = 7 << 12 | 4 << 15
OF_DISTANCE, WIDE_OF_DISTANCE = 1 << 24 | 3 << 28, 3
MOST_POINTERS = 16
"""Descriptors of an access: each takes four scalar registers."""
NEAR = 1 << 11
"""Distances that every processor takes as a part of the instruction."""
RSRC = "llvm.amdgcn.make.buffer.rsrc.p8.p1"
VECTORS = {8: "i8", 16: "i16", 32: "i32", 64: "<2 x i32>", 128: "<4 x i32>"}
"""The types of accesses, by their bits."""


@dataclass(frozen=True)
class Place:
    """Where an address of an access is: the pointer, what varies of the distance, and bytes beyond."""

    low: str
    distance: str
    more: int


Mask: TypeAlias = tuple[str, str]
"""The part of a mask that all lanes have, and the other one; "" for none."""


class Addresses:
    """Addresses of the operation that is being written; `flags` are those of descriptors, 0 where there are none."""

    def __init__(self, flags: int, program: LaneProgram) -> None:
        self.flags = flags
        self.places: dict[tuple[str, int] | str, Place] = {}
        self.masks: dict[tuple[str, int] | str, Mask] = {}
        self.is_alike = Alike(program).is_alike

    def look(self, e: Emitter, op: LaneOp) -> bool:
        """Take the addresses of an access apart; whether there is one of this form."""
        self.places, self.masks = {}, {}
        is_copy = op.name == "copy_async"
        if self.flags and (is_copy or op.attrs["space"] == "global"):
            value = op.operands[1 if is_copy else 0]
            firsts: dict[Value, tuple[Value, int, Place]] = {}
            for i, register in enumerate(e.env[value]):
                found = _sum(e, value, i)
                if found is not None and _key(register) not in self.places:
                    self.places[_key(register)] = self._place(e, *found, firsts)
        if self.places and (op.attrs.get("masked") or (is_copy and len(op.operands) > 2)):
            mask = op.operands[1 if op.name == "load" else 2]
            for i, register in enumerate(e.env[mask]):
                self.masks[_key(register)] = self._parts(e, mask, i)
        return bool(self.places)

    def _place(
        self, e: Emitter, low: Value, distances: Value, register: int, firsts: dict[Value, tuple[Value, int, Place]]
    ) -> Place:
        """Where an address is. Rows of a tile lie some times a stride apart, which all lanes have: such a distance from
        the first row moves the pointer, and all rows share the register of the first."""
        first = firsts.get(low)
        apart = None if first is None else self._apart(e, distances, register, *first[:2])
        if first is None or apart is None or not apart.keys() - {""} or len(self.places) >= MOST_POINTERS:
            place = _place(e, low, distances, register)
            firsts.setdefault(low, (distances, register, place))
            return place
        moved = first[2].low
        for name, times in apart.items():
            if name:
                wide = e.early("mul i64", e.early("sext i32", name, to="i64"), str(times))
                moved = e.early("add i64", moved, wide)
        if apart.get("", 0):
            moved = e.early("add i64", moved, str(apart[""]))
        return Place(moved, first[2].distance, first[2].more)

    def _apart(self, e: Emitter, value: Value, register: int, other: Value, first: int) -> dict[str, int] | None:
        """By how much a register is more than another one: so many times each of some registers that all lanes have,
        and a number, whose name is ""; None where that is not known."""
        (value, register), (other, first) = _source(value, register), _source(other, first)
        if value is not other:
            return None
        a, b = e.env[value][register], e.env[value][first]
        if _key(a) == _key(b):
            return {}
        if isinstance(a, Sum) and isinstance(b, Sum) and a.base == b.base:
            return {"": a.offset - b.offset}
        if value.op is None or value.op.name not in ("arith.addi", "arith.muli"):
            return None
        parts = [self._apart(e, x, *((register, x, first) if x.count > 1 else (0, x, 0))) for x in value.op.operands]
        left, right = parts
        if left is None or right is None:
            return None
        if value.op.name == "arith.addi":
            return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
        for moved, still, factor in ((left, right, value.op.operands[1]), (right, left, value.op.operands[0])):
            factor, at = _source(factor, register if factor.count > 1 else 0)
            if still or not self.is_alike(factor):
                continue
            times = e.env[factor][at]
            if isinstance(times, Sum) and not times.base:
                return {name: n * times.offset for name, n in moved.items()}
            if not moved.keys() - {""}:
                return {e.name(times): moved.get("", 0)}
        return None

    def _parts(self, e: Emitter, mask: Value, register: int) -> Mask:
        while mask.op is not None and mask.op.name == "rename":
            register, mask = mask.op.attrs["table"][register], mask.op.operands[0]
        name = e.name(e.env[mask][register])
        if self.is_alike(mask):
            return name, ""
        if mask.op is not None and mask.op.name == "arith.andi":
            a, b = (e.name(e.env[x][register if x.count > 1 else 0]) for x in mask.op.operands)
            left, right = map(self.is_alike, mask.op.operands)
            if left != right:
                return (a, b) if left else (b, a)
        return "", name

    def of(self, access: Access) -> Place | None:
        """Where an access is, if it is through a descriptor."""
        return self.at(access.address) if access.space == "global" else None

    def at(self, address: Register) -> Place | None:
        """Where an address of global memory is, likewise."""
        return self.places.get(_key(address))

    def arguments(self, e: Emitter, access: Access, place: Place, policy: int) -> list[tuple[str, str]]:
        """The descriptor, the distance, and what caches are asked for, as arguments of an intrinsic."""
        buffer, distance = self.descriptor(e, access.mask, place, access.more)
        return [("ptr addrspace(8)", buffer), ("i32", distance), ("i32", "0"), ("i32", str(policy))]

    def descriptor(self, e: Emitter, mask: Register | None, place: Place, more: int = 0) -> tuple[str, str]:
        """The descriptor and the distance of an access under a mask, `more` bytes further."""
        base = e.early("inttoptr i64", place.low, to="ptr addrspace(1)")
        alike = own = ""
        if mask is not None:
            alike, own = self.masks.get(_key(mask), ("", e.name(mask)))
        records = str(RECORDS) if not alike else e.pure(f"select i1 {alike}, i64 {RECORDS}, i64 0")
        values = [("ptr addrspace(1)", base), ("i16", "0"), ("i64", records), ("i32", str(self.flags))]
        buffer = e.pure(e.call(RSRC, "ptr addrspace(8)", values))
        distance = place.distance
        if place.more + more:
            distance = e.early("add i32", distance, str(place.more + more))
        if own:
            distance = e.pure(f"select i1 {own}, i32 {distance}, i32 {RECORDS - (1 << 32)}")
        return buffer, distance

    def load(self, e: Emitter, access: Access, place: Place, policy: int) -> str:
        """What is there, as one value of the access's bits; 0 where its mask does not hold."""
        type = VECTORS[access.shape.words * access.shape.bits]
        name = f"llvm.amdgcn.raw.ptr.buffer.load.{_short(type)}"
        return e.ins(e.call(name, type, self.arguments(e, access, place, policy)))

    def store(self, e: Emitter, access: Access, place: Place, policy: int, value: str) -> None:
        """Store a value of the access's bits, where its mask holds."""
        type = VECTORS[access.shape.words * access.shape.bits]
        name = f"llvm.amdgcn.raw.ptr.buffer.store.{_short(type)}"
        e.do(e.call(name, "void", [(type, value), *self.arguments(e, access, place, policy)]))


def flags_of(generation: int) -> int:
    """Of descriptors of a generation."""
    if generation >= 0x1250:
        return WIDE_OF_DISTANCE
    return FORMAT | OF_DISTANCE if generation >= 0x1000 else FORMAT


def _short(type: str) -> str:
    """A type in the name of an intrinsic: v4i32 of <4 x i32>."""
    return type.replace("<", "v").replace(" x ", "").replace(">", "")


def _key(register: Register) -> tuple[str, int] | str:
    if isinstance(register, Sum):
        return register.base, register.offset
    return register if isinstance(register, str) else ""


def _source(value: Value, register: int) -> tuple[Value, int]:
    """Where a register comes from that has only been renamed."""
    while value.op is not None and value.op.name == "rename":
        register, value = value.op.attrs["table"][register], value.op.operands[0]
    return value, register if value.count > 1 else 0


def _sum(e: Emitter, value: Value, register: int) -> tuple[Value, Value, int] | None:
    """The pointer, and which register of distances is added to it, where an address is such a sum."""
    value, register = _source(value, register)
    if value.op is None or value.op.name != "arith.addi":
        return None
    low, far = value.op.operands
    if low.count > 1 or low.op is None or low.op.name != "arith.subi" or far.op is None or far.op.name != "arith.extui":
        return None
    return low, far.op.operands[0], register


def _place(e: Emitter, low: Value, distances: Value, register: int) -> Place:
    distance: Register = e.env[distances][register if distances.count > 1 else 0]
    if isinstance(distance, Sum) and distance.base and abs(distance.offset - BIAS) < NEAR:
        return Place(e.one(low), e.early("add i32", distance.base, str(BIAS)), distance.offset - BIAS)
    return Place(e.one(low), e.name(distance), 0)
