"""Remarks about elements that are combined: how a reduction or scan goes from threads to warps and blocks."""

from __future__ import annotations

from dataclasses import dataclass

from .remark import Remark

__all__ = ["Combined", "Reduced", "Scanned"]


@dataclass(frozen=True)
class Combined(Remark):
    """Elements that are combined along a dimension of a tile, the nearest first."""

    tile: str
    axis: int
    each: int
    """Elements of a row that each thread combines by itself."""
    lanes: int
    """Lanes of a warp that combine what they have."""
    shuffles: int
    """By so many shuffles of each lane."""
    warps: int
    blocks: int
    """Warps, and blocks of a cluster, that combine what they have through shared memory."""
    scratch_bytes: int
    sent: bool = False
    """Whether blocks send each other their results, instead of reading those of the others."""

    @property
    def message(self) -> str:
        steps = [f"{self.each} elements in each thread"] * (self.each > 1)
        steps += [f"{self.lanes} lanes by {self.shuffles} shuffle{'s' if self.shuffles > 1 else ''}"] * (self.lanes > 1)
        shared = f"through {self.scratch_bytes} bytes of shared memory"
        steps += [f"{self.warps} warps {shared}"] * (self.warps > 1)
        how = "that send each other their results" if self.sent else shared
        steps += [f"{self.blocks} blocks of the cluster {how}"] * (self.blocks > 1)
        return f"{self.tile} along dimension {self.axis}: {', then '.join(steps) or 'one element'}"


class Reduced(Combined):
    """A reduction."""

    kind = "reduction"


class Scanned(Combined):
    """A prefix scan."""

    kind = "scan"
