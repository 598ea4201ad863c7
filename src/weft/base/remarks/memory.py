"""Remarks about memory: how wide an access is, how a tile changes its layout, what lies in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.base.spans import Span

from .remark import Alternative, Remark, Site, in_cycles, with_article

__all__ = ["AccessWidth", "BulkCopy", "Conversion", "Gathered", "Placed", "RowAligned", "SharedAccess", "SharedBuffer"]


@dataclass(frozen=True)
class AccessWidth(Remark):
    """How many bytes one instruction of a thread accesses, and what keeps it from more."""

    kind: ClassVar[str] = "access width"
    access: str
    """load, store, atomic, copy; of shared memory, by indices, also gather and scatter."""
    tile: str
    """As the text of the IR has it: 1024xf32."""
    bytes: int
    most: int
    """The bytes that the widest access of this kind has on the machine."""
    limit: str
    """What is in the way: nothing ("widest"), "alignment", "contiguity", "stride" (neighbours are a number apart),
    "repeat" (they have the same address), "wrap" (they begin anew at the multiples of a number), "mask", "tile",
    "layout", "buffer" or "index"."""
    fact: str
    """What it is, with the value that spoils it; empty where nothing does."""
    value: str = ""
    """That value's name in the source, or the number that it is, if it has either."""
    value_span: Span | None = None
    """Where it is computed; None for an argument of the kernel."""
    spoil: tuple[str, ...] = ()
    """All arguments that would have to be multiples of the widest access, where one has to be; "" for what is none."""

    @property
    def message(self) -> str:
        unit = "byte" if self.bytes == 1 else "bytes"
        text = f"{self.access} of {self.tile}, {self.bytes} {unit} at a time"
        if self.limit == "widest":
            return f"{text}, the most there are"
        return f"{text} of at most {self.most}: {self.fact}{_elsewhere(self.span, self.value_span)}"


@dataclass(frozen=True)
class Conversion(Remark):
    """A tile that is moved from one layout to another: who made it, who wanted it otherwise, how, and for how much."""

    kind: ClassVar[str] = "conversion"
    tile: str
    source: str
    """The layout that it has."""
    result: str
    """The layout that is wanted."""
    made_by: Site
    wanted_by: tuple[Site, ...]
    plan: str
    """registers, shuffles, shared, hybrid or cluster; see `weft.layouts.plan`."""
    cycles: float
    """Of a warp."""
    scratch_bytes: int
    """Of shared memory."""
    considered: tuple[Alternative, ...]

    @property
    def message(self) -> str:
        wanted = ", ".join(map(str, self.wanted_by)) or "nobody"
        way = {"nothing": "nothing moves", "registers": "within each thread"}.get(self.plan, f"by {self.plan}")
        text = f"{self.tile} of {self.made_by}, wanted otherwise by {wanted}: {way}, {in_cycles(self.cycles)}"
        text += f", {self.scratch_bytes} bytes of shared memory" if self.scratch_bytes else ""
        others = [str(a) for a in self.considered if a.what != self.plan]
        return f"{text}; not {', '.join(others)}" if others else text


@dataclass(frozen=True)
class Gathered(Remark):
    """Elements that are looked up by an index in a tile: how, and for how much."""

    kind: ClassVar[str] = "gather"
    tile: str
    plan: str
    """shuffles or shared; see `weft.layouts.plan`."""
    cycles: float
    """Of a warp."""
    considered: tuple[Alternative, ...]

    @property
    def message(self) -> str:
        others = [str(a) for a in self.considered if a.what != self.plan]
        text = f"of {self.tile}: by {self.plan}, {in_cycles(self.cycles)}"
        return f"{text}; not {', '.join(others)}" if others else text


@dataclass(frozen=True)
class SharedAccess(Remark):
    """A tile that goes to or from a buffer in shared memory: by which instructions, and with which bank conflicts."""

    kind: ClassVar[str] = "shared access"
    access: str
    tile: str
    instruction: str
    """That of the machine for matrices, or `shared` for plain loads and stores."""
    bytes: int
    """What one instruction moves of each lane."""
    count: int
    """Instructions of each warp."""
    wavefronts: int
    """Passes over the banks that one instruction takes."""
    least: int
    """Passes that it would take without bank conflicts."""
    layout: str = ""
    """Of the tile in registers, as layout IR has it."""
    memory: str = ""
    """Of the buffer, without the gaps of a padded one."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Of a padded buffer: after every so many bytes so many are left out."""
    bank: int = 0
    lanes: tuple[int, ...] = ()
    """Lanes of plain accesses that want different words of one bank in one pass, and that bank; none without
    conflicts."""
    buffer: str = ""
    """The buffer as it was allocated, 2x64x32xf32 and its layout; "" where it is not known."""
    order: tuple[int, ...] = ()
    """The dimensions of that buffer in the order of the tile, if they are transposed for the access."""

    @property
    def message(self) -> str:
        plain = "plain access" if self.count == 1 else "plain accesses"
        by = plain if self.instruction == "shared" else self.instruction
        lost = self.wavefronts - self.least
        conflicts = f"{lost} of them lost to bank conflicts" if lost else "no bank conflicts"
        text = f"{self.access} of {self.tile} by {self.count} {by} of {self.bytes} bytes a lane, {self.wavefronts}"
        return f"{text} wavefront{'s' if self.wavefronts > 1 else ''} each, {conflicts}"


@dataclass(frozen=True)
class BulkCopy(Remark):
    """A tile that the copy engine moves between global and shared memory, as boxes."""

    kind: ClassVar[str] = "bulk copy"
    access: str
    tile: str
    boxes: int
    box: tuple[int, ...]
    """Elements of each along the tensor's dimensions."""
    swizzle: int
    """Bytes of the rows within which the engine changes the order of chunks of 16 bytes; 0 for none."""
    warps: int
    """How many warps begin the boxes, each by one lane."""

    @property
    def message(self) -> str:
        boxes = f"{self.boxes} box{'es' if self.boxes > 1 else ''} of {'x'.join(map(str, self.box))}"
        swizzle = f"swizzled by {self.swizzle} bytes" if self.swizzle else "not swizzled"
        by = f"begun by {self.warps} warps" if self.warps > 1 else "begun by one lane"
        return f"{self.access} of {self.tile} as {boxes}, {swizzle}, {by}"


@dataclass(frozen=True)
class Placed(Remark):
    """A buffer: its size, its place, and how long it is in use."""

    bytes: int
    offset: int
    purpose: str
    """What it was made for: conversion, reduction, a tile's local_alloc, ..."""
    first: Span | None = None
    """The first and the last line of the source that access it; None where they are not known."""
    last: Span | None = None

    @property
    def message(self) -> str:
        text = f"{self.bytes} bytes for {with_article(self.purpose)}, at byte {self.offset}"
        if self.first is None or self.last is None:
            return text
        if self.first.line == self.last.line:
            return f"{text}, in use on line {self.first.line}"
        return f"{text}, in use from line {self.first.line} to {self.last.line}"


@dataclass(frozen=True)
class SharedBuffer(Placed):
    """A buffer in shared memory."""

    kind: ClassVar[str] = "shared buffer"


@dataclass(frozen=True)
class RowAligned(Remark):
    """Consecutive elements from any address on, accessed by the aligned vectors of memory."""

    kind: ClassVar[str] = "row aligned"
    access: str
    tile: str
    bytes: int
    """Of a vector."""
    shifted: bool
    """Whether its runs are not those of the rows that are stored, so that they do not begin at vectors."""
    fact: str
    """Why vectors are not aligned as the row is written; empty for a row that only lies with such."""
    value: str = ""
    value_span: Span | None = None

    @property
    def message(self) -> str:
        text = f"{self.access} of {self.tile} by aligned vectors of {self.bytes} bytes, "
        if self.shifted:
            return f"{text}shifted between threads: the rows that are stored are aligned otherwise"
        text += "wherever the row begins"
        return text + (f": {self.fact}{_elsewhere(self.span, self.value_span)}" if self.fact else "")


def _elsewhere(span: Span | None, other: Span | None) -> str:
    """The line of a value, if it is another one."""
    return f" (line {other.line})" if other is not None and (span is None or span.line != other.line) else ""
