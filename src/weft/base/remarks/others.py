"""Remarks about decisions that have no numbers of their own: what was done, for which operations, and why."""

from __future__ import annotations

from dataclasses import dataclass

from .remark import Remark, Site

__all__ = [
    "BlockAccess",
    "CacheHint",
    "FewBlocks",
    "IdleProgram",
    "InClusters",
    "InParts",
    "LoadsSpread",
    "LoopFused",
    "OperandInMemory",
    "PingPong",
    "Prefetched",
    "ProductOverlap",
    "ProductSplit",
    "ProductsJoined",
    "ProgramsInTurn",
    "Rewritten",
    "StoredOnce",
    "SumAsProduct",
    "SumInParts",
    "Unrolled",
]


@dataclass(frozen=True)
class Rewritten(Remark):
    """Something that is done otherwise than it is written."""

    what: str
    why: str
    sites: tuple[Site, ...] = ()
    """The other operations that it is about."""

    @property
    def message(self) -> str:
        text = f"{self.what}: {self.why}"
        return f"{text} ({', '.join(map(str, self.sites))})" if self.sites else text


class SumInParts(Rewritten):
    """A sum that a loop carries: lanes add up their parts, and are combined once, after the loop."""

    kind = "sum in parts"


class ProductSplit(Rewritten):
    """A product that no matrix instruction has, done as products that instructions have."""

    kind = "product split"


class OperandInMemory(Rewritten):
    """An operand of multiplications by lanes that is read from shared memory, slice by slice."""

    kind = "operand in memory"


class StoredOnce(Rewritten):
    """A tile that is stored in shared memory once for several products."""

    kind = "stored once"


class ProductsJoined(Rewritten):
    """Products that begin together and are awaited once."""

    kind = "products joined"


class LoadsSpread(Rewritten):
    """A load of an operand from shared memory that is done in parts, each before the first product that needs it."""

    kind = "loads spread"


class InParts(Rewritten):
    """What is computed some registers at a time, as a thread would hold more than it has, or than two blocks have."""

    kind = "in parts"


class InClusters(Rewritten):
    """A program that is run by several blocks together, although its author asked for one."""

    kind = "in clusters"


class FewBlocks(Rewritten):
    """A limit to the blocks that a multiprocessor runs at a time."""

    kind = "few blocks"


class CacheHint(Rewritten):
    """A hint for the caches that an access is given, although its author asked for none."""

    kind = "cache hint"


class ProductOverlap(Rewritten):
    """Whether products of a loop go on while its next iteration begins."""

    kind = "product overlap"


class SumAsProduct(Rewritten):
    """A sum of products that is computed as a product of matrices."""

    kind = "sum as product"


class Unrolled(Rewritten):
    """A loop that does several iterations at a time, or is one with the loop around it, or has a single iteration."""

    kind = "unrolled"


class Prefetched(Rewritten):
    """What is fetched ahead of where it is wanted: into a cache, or into registers for the next iteration."""

    kind = "prefetched"


class BlockAccess(Rewritten):
    """A tile that is loaded, stored or prefetched by 2D blocks of memory."""

    kind = "block access"


class PingPong(Rewritten):
    """A loop that two groups of warps run in turns, one barrier apart."""

    kind = "ping pong"


class IdleProgram(Rewritten):
    """A condition without which a program stores nothing: it ends at once, and masks are without the condition."""

    kind = "idle program"


class ProgramsInTurn(Rewritten):
    """Programs that a block executes one after the other, because starting a block takes longer than a program."""

    kind = "programs in turn"


class LoopFused(Rewritten):
    """A loop of the kernel that becomes a part of the loops over the tile that it gives."""

    kind = "loop fused"
