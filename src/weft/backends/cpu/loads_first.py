"""Several vectors of a loop at a time, with all their loads before their stores.

    load x[0]  load y[0]  store z[0]  load x[1]  load y[1]  store z[1]  ...       one vector at a time
    load x[0]  load y[0]  load x[1]  load y[1]  ...  store z[0]  store z[1]  ...  four vectors at a time

A processor starts a load before an earlier store has ended if their addresses differ in the last 12 bits. If they do
not, the load waits, even if the addresses are on different pages. Large arrays that NumPy allocates one after the other
each begin 16 bytes further in a page than the one before. So with one vector at a time, each load waits for the store
right before it; with four, only the first load of the four does.

`find_group` says for which bits of the innermost loop the body is repeated. `Nest.counted` does so where no access is
under a mask, and what is left of a loop that ends earlier one vector at a time. As in any unrolled body, all roots are
evaluated before one of them writes, which a nest may do in any case.

Of arrays of 16,384 float32 that begin 16 bytes apart, a blend of two takes 0.75 of the time on an Emerald Rapids and a
step of Adam 0.79, with vectors of 256 bits 0.55 and 0.66. Eight vectors at a time bring little more, two about half.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from weft.backends.cpu.coords import log2
from weft.backends.cpu.planned import Planned
from weft.backends.cpu.program import Value
from weft.backends.cpu.questions import Steps
from weft.backends.cpu.roots import StoreRoot, WriteRoot

VECTORS = 2
"""How many vectors at a time, as a power of two."""
MOST_REPEATED = 64
"""Operations of a body that is repeated: in a longer one, a load comes long after the store before it."""
MOST_HELD = 16
"""Vectors that wait in registers for the loads before they are stored."""


class Group(NamedTuple):
    """What of a nest is done at a time."""

    bits: tuple[int, ...] = ()
    """The first bits of the innermost loop; none where the body is not repeated."""
    masks: frozenset[Value] = frozenset()
    """The masks of all accesses."""

    def of_loop(self, run: Sequence[int], inside: Set[Value]) -> tuple[int, ...]:
        """The bits of a loop for which its body is repeated, where the masks of `inside` hold."""
        is_innermost = tuple(run[: len(self.bits)]) == self.bits
        return self.bits if is_innermost and self.masks <= inside else ()


def find_group(nest: Planned) -> Group:
    """What of a nest without unrolled bits is done at a time."""
    stores = [root.op for root in nest.roots if isinstance(root, StoreRoot)]
    plain = all(isinstance(root, (StoreRoot, WriteRoot)) or root.op is None for root in nest.roots)
    if not stores or not plain or nest.unroll or nest.reduce_bits or len(nest.visited) > MOST_REPEATED:
        return Group()
    loads = [v.op for v, _ in nest.visited if v.op is not None and v.op.name == "tt.load" and v not in nest.env]
    fused = any(v.is_inside or (v.op is not None and v.op.fused) for v, _ in nest.visited)
    vectors = min(VECTORS, log2(max(1, MOST_HELD // len(nest.roots))))
    bits = next(iter(nest.loop_runs([*nest.inner_bits, *nest.outer_bits])), ())[:vectors]
    accesses = nest.accesses()
    if fused or not all(_is_plain(steps, nest.lane_bits) for steps, _, _ in accesses):
        return Group()
    if not any(read is not None and any(steps.get(b, 0) != 0 for b in bits) for steps, _, read in accesses):
        return Group()
    masks = [op.args[1] for op in loads if len(op.args) > 1] + [op.args[2] for op in stores if len(op.args) > 2]
    return Group(bits, frozenset(masks))


def _is_plain(steps: Steps, lanes: Sequence[int]) -> bool:
    """Whether an access is to whole vectors, or to one value for all lanes."""
    moves = [steps.get(b, 0) for b in lanes]
    return all(move == 0 for move in moves) or moves == [1 << i for i in range(len(moves))]
