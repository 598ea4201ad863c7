"""What a vendor adds to the simulator: what instructions do that only its machines have, beside registers and memory.

Most entries of a vendor's table have a meaning on registers, which is all that is needed. `sim/nvidia/` has the others:
what happens later, at barriers in memory, on behalf of a copy engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from weft.base import Unsupported
from weft.ir.lane import LaneOp, Parameter
from weft.machines import Machine, part
from weft.targets.instruction import Instruction

from .contexts import AnyContext, Wait
from .values import Array


class Meaning:
    """The vendor's part, which its folder calls `MEANING`: here one whose instructions do no more than compute."""

    def instruction(self, context: AnyContext, op: LaneOp, entry: Instruction) -> Iterator[Wait] | None:
        """Do what an instruction does; None for one whose meaning on registers and memory is all of it."""
        return None

    def await_(self, context: AnyContext, op: LaneOp) -> None:
        """`await`: registers that an instruction has still been writing."""
        raise Unsupported(f"`{op.name}`", context.batch.program.target, op.span)

    def assembly(self, context: AnyContext, op: LaneOp) -> Iterator[Wait]:
        """`assembly`, which the kernel's author wrote."""
        raise Unsupported("inline assembly, simulated", context.batch.program.target, op.span)

    def touches_memory(self, op: LaneOp) -> bool:
        """Whether `assembly` may tell other blocks something."""
        return True

    def watch(self, context: AnyContext, op: LaneOp) -> None:
        """Before each operation, while something is under way (`batch.products`)."""

    def carry(self, context: AnyContext, op: LaneOp) -> None:
        """The same, after it."""

    def finish(self, batch: Any) -> None:
        """All blocks of a batch (`machine.Batch`) have ended."""

    def tensor_map(self, parameter: Parameter, described: Any, address: int) -> Array:
        """The 128 bytes of an argument with `shape`, `strides` in elements and maybe `padding`."""
        raise Unsupported("descriptors with layouts")

    def written(self, op: LaneOp) -> tuple[str, str] | None:
        """What wrote shared memory, with "{}" for who it was for, and what would order it; None for a plain write."""
        return None

    def reading(self, op: LaneOp) -> tuple[str, str]:
        """What still reads shared memory, in words, and what waits for it."""
        return "something", ""


@lru_cache(maxsize=32)
def meaning_of(machine: Machine) -> Meaning:
    """What the vendor of a machine adds."""
    meaning = part("sim", machine)
    adds: Meaning = meaning.MEANING if meaning is not None else Meaning()
    return adds
