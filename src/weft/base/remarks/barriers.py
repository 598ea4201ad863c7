"""Remarks about order: where threads wait for each other, and for whose sake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .remark import Remark, Site, with_article

__all__ = ["Barrier"]


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
