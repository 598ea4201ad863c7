"""Remarks about order: where threads wait for each other, or for memory, and for whose sake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .remark import Remark, Site, with_article

__all__ = ["Barrier", "Fence"]


@dataclass(frozen=True)
class Barrier(Remark):
    """A barrier that the compiler put in; those that the author wrote have no remark."""

    kind: ClassVar[str] = "barrier"
    scope: str
    """warp, block or cluster: who waits for each other."""
    memory: str
    """shared or global."""
    earlier: Site
    later: Site
    """The access that has to come after the earlier one; where the kernel ends, its end."""
    buffers: tuple[str, ...] = ()
    """What the buffers in which they meet were made for: that of the earlier access, that of the later one."""

    @property
    def message(self) -> str:
        text = f"of the {self.scope}, between {self.earlier} and {self.later}, in {self.memory} memory"
        if not self.buffers:
            return text
        earlier, later = with_article(self.buffers[0]), with_article(self.buffers[-1])
        return (
            f"{text} for {later}" if earlier == later else f"{text}: bytes that were for {earlier} are now for {later}"
        )


@dataclass(frozen=True)
class Fence(Remark):
    """A fence that the compiler put in: matrix units and the copy engine read shared memory by a way of their own,
    the asynchronous proxy, on which they need not see what threads have written before."""

    kind: ClassVar[str] = "fence"
    earlier: Site
    """What writes."""
    later: Site
    """What reads, or writes the same bytes again."""

    @property
    def message(self) -> str:
        return f"of the asynchronous proxy, between {self.earlier} and {self.later}"
