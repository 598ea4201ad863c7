"""Remarks about loops: what is copied iterations ahead, and why something is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .remark import Copy, Remark, Site

__all__ = ["NotPipelined", "NotSpecialized", "Pipelined", "WarpsSpecialized"]


@dataclass(frozen=True)
class Pipelined(Remark):
    """A loop whose loads are begun iterations ahead, as asynchronous copies into shared memory."""

    kind: ClassVar[str] = "pipelined"
    stages: int
    """How many iterations are under way at a time, the one that computes included."""
    asked: int
    """How many were asked for, by num_stages."""
    copies: tuple[Copy, ...]
    shared_bytes: int
    """Of all buffers together."""
    fewer: str = ""
    """Why there are fewer stages than were asked for."""
    IN_REGISTERS: ClassVar[str] = "registers hold one iteration's loads"
    """The reason on machines whose loads go through registers, which have two stages in any case."""

    @property
    def message(self) -> str:
        text = f"{self.stages} stages"
        if self.stages < self.asked:
            text += f" of {self.asked} asked for, as {self.fewer}"
        copies = "; ".join(map(str, self.copies))
        text += f", {self.shared_bytes} bytes of shared memory: {copies}"
        counts = {copy.buffers for copy in self.copies}
        if min(counts) < self.stages:
            text += "; a barrier behind the reads of a buffer does for another buffer"
        return f"{text}; one more, as two iterations' products are under way" if max(counts) > self.stages else text


@dataclass(frozen=True)
class NotPipelined(Remark):
    """A loop, or one load of it, that waits for memory in each iteration."""

    kind: ClassVar[str] = "not pipelined"
    what: str
    """The tile that is loaded, or `the loop` for all that it loads."""
    reason: str
    because: Site | None = None
    """The operation that is in the way, if it is another one."""

    @property
    def message(self) -> str:
        text = f"{self.what}: {self.reason}"
        return f"{text} ({self.because})" if self.because is not None else text


@dataclass(frozen=True)
class WarpsSpecialized(Remark):
    """A loop in which a warp of its own has the copy engine load what the others multiply."""

    kind: ClassVar[str] = "warps specialized"
    stages: int
    """How many buffers each operand has."""
    copies: tuple[Copy, ...]
    overlaps: bool
    """Whether the last product of an iteration is begun in the next one, and runs beside what is between products."""

    @property
    def message(self) -> str:
        text = "a warp of its own has the copy engine load the operands of its products: "
        text += "; ".join(map(str, self.copies))
        if self.overlaps:
            text += "; the last product of an iteration runs beside what the next one makes of its first"
        return text


@dataclass(frozen=True)
class NotSpecialized(Remark):
    """A loop of products in which all warps load and multiply, without a separate warp for the copies of operands."""

    kind: ClassVar[str] = "warps not specialized"
    reason: str

    @property
    def message(self) -> str:
        return f"all warps load and multiply, none is reserved for copies: {self.reason}"
