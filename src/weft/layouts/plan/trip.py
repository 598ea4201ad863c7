"""A trip through shared memory: where elements lie, the instructions on both sides, and what they cost.

Which trip a conversion takes is found by `Planner` (search.py).

Only one of several copies is stored; every copy is loaded. `store_map` gives for (register, lane, warp) the offset in
the memory of the writer's block, `load_map` for (register, lane, warp, block) the offset and the block that is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError
from weft.machines import Machine

from .. import f2
from ..linear import LinearLayout
from .access import Access


@dataclass(frozen=True)
class Trip:
    """One conversion through shared memory."""

    scope: str
    """Who has to wait: "warp", "block" or "cluster"."""
    stored: Mapping[str, Sequence[int]]
    """The element of each bit of register, lane and warp, in coordinates of what one block holds."""
    wanted: Mapping[str, Sequence[int]]
    """The same of those who load; and of each bit of block."""
    home: Mapping[str, Sequence[int]]
    """What each of those adds to the block that is read."""
    store_masks: Mapping[str, int]
    """Bits of registers, lanes and warps that hold copies: who has one of them set stores nothing."""
    store: Access
    load: Access
    memory: tuple[int, ...]
    """The element at each power of two of the offset, in coordinates of what one block holds."""
    element_bits: int
    repetitions: int
    machine: Machine

    @cached_property
    def store_map(self) -> LinearLayout:
        """(register, lane, warp) -> offset, in elements."""
        columns = [x for vectors in self.stored.values() for x in self._offsets(vectors)]
        return LinearLayout._make(((d, len(v)) for d, v in self.stored.items()), [self._memory], columns)

    @cached_property
    def load_map(self) -> LinearLayout:
        """(register, lane, warp, block) -> offset, block."""
        size, columns = len(self.memory), []
        for dim, vectors in self.wanted.items():
            columns += [x | y << size for x, y in zip(self._offsets(vectors), self.home[dim], strict=True)]
        outs = [self._memory, ("block", len(self.wanted["block"]))]
        return LinearLayout._make(((d, len(v)) for d, v in self.wanted.items()), outs, columns)

    @property
    def _memory(self) -> tuple[str, int]:
        return "offset", len(self.memory)

    def _offsets(self, vectors: Sequence[int]) -> list[int]:
        place = f2.Echelon(self.memory)
        return [place.coefficients(v) or 0 for v in vectors]

    @property
    def scratch_bytes(self) -> int:
        """Bytes of shared memory in each block."""
        return (1 << len(self.memory)) // self.repetitions * max(8, self.element_bits) // 8

    @property
    def rounds(self) -> tuple[int, int]:
        """How often each store, and each load, is done: more than once where lanes or warps take part in one round
        after the other.
        """
        if self.repetitions == 1:
            return 1, 1
        size = len(self.memory) - (self.repetitions.bit_length() - 1)
        low = (1 << len(self.memory)) - 1
        counts = []
        for side in (self.store_map, self.load_map):
            moving = [c for d in side.in_dims if d != "register" for c in side.in_columns(d)]
            counts.append(1 << f2.rank([(c & low) >> size for c in moving]))
        return counts[0], counts[1]

    @property
    def wavefronts(self) -> int:
        """Passes over the banks of each warp, both ways."""
        store, load = self.rounds
        return store * self.store.count * self.store.wavefronts + load * self.load.count * self.load.wavefronts

    @property
    def excess(self) -> int:
        """Wavefronts of each warp that are lost to bank conflicts."""
        return self.store.count * self.store.excess + self.load.count * self.load.excess

    @property
    def faults(self) -> tuple[bool, bool]:
        """Whether it needs more memory than there is, and whether it has bank conflicts."""
        return self.scratch_bytes > self.machine.shared_bytes, self.excess > 0

    @property
    def instructions(self) -> dict[str, int]:
        """Instructions of each warp, by kind."""
        width = max(8, self.element_bits)
        counts: dict[str, int] = {}
        for access, word, rounds in zip((self.store, self.load), ("st", "ld"), self.rounds, strict=True):
            name = access.instruction
            if name == "shared":
                name = f"{word}.shared.b{width << access.vector}"
            counts[name] = counts.get(name, 0) + access.count * rounds
        return counts

    @property
    def barriers(self) -> dict[str, int]:
        """Barriers by scope: one between storing and loading, one more between repetitions."""
        return {self.scope: 2 * self.repetitions - 1}

    @property
    def fixed(self) -> float:
        """What barriers and latency cost, whatever is moved."""
        return self.machine.waiting(self.scope, self.repetitions)

    @property
    def cycles(self) -> float:
        """What it costs each warp."""
        store, load = self.rounds
        return store * self.store.cost(self.machine) + load * self.load.cost(self.machine) + self.fixed

    def run(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Execute on values indexed [block, warp, lane, register]."""
        blocks, warps, lanes, registers = values.shape
        shape = (warps, lanes, registers)
        offsets = self.store_map.table().reshape(shape)
        w, x, r = np.indices(shape)
        masks = self.store_masks
        writes = ((w & masks["warp"]) | (x & masks["lane"]) | (r & masks["register"])) == 0
        where = self.load_map.table()
        log = self.load_map.out_log("offset")
        home, wanted = where >> log, where & (1 << log) - 1
        size = (1 << len(self.memory)) // self.repetitions
        loaded_values = np.zeros(where.shape, values.dtype)
        for number in range(self.repetitions):  # the same memory again, after a barrier
            memory = np.zeros((blocks, size), values.dtype)
            stored, loaded = writes & (offsets // size == number), wanted // size == number
            memory[:, offsets[stored] % size] = values[:, stored]
            loaded_values[loaded] = memory[home[loaded], wanted[loaded] % size]
        return loaded_values.reshape(tuple(1 << self.load_map.in_log(d) for d in ("block", "warp", "lane", "register")))

    def check(self) -> None:
        """Prove that no two elements share a place: bits that are not copies go to independent offsets.

        LayoutError where they do, or where an instruction would take part in several rounds at once.
        """
        used = [
            column
            for dim in ("register", "lane", "warp")
            for i, column in enumerate(self.store_map.in_columns(dim))
            if not self.store_masks[dim] >> i & 1
        ]
        if f2.rank(used) != len(used):
            raise LayoutError("two elements would be stored at the same offset")
        each = (1 << len(self.memory)) // self.repetitions
        for access, rounds in zip((self.store, self.load), self.rounds, strict=True):
            if rounds > 1 and access.instruction != "shared":
                raise LayoutError(f"some lanes alone would take part in a round of {access.instruction}")
            kept = self._kept(access)
            if any(f2.multiply(kept, r) >= each for r in access.registers[: access.vector]):
                raise LayoutError(f"{1 << access.vector} elements at once would be of several rounds")

    def _kept(self, access: Access) -> list[int]:
        """The offsets of the registers of one side that hold no copies."""
        columns = (self.store_map if access is self.store else self.load_map).in_columns("register")
        copies = set(f2.bits(self.store_masks["register"]) if access is self.store else f2.dependent(columns))
        return [c & (1 << len(self.memory)) - 1 for i, c in enumerate(columns) if i not in copies]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""

        def side(access: Access) -> dict[str, Any]:
            return {
                "instruction": access.instruction,
                "vector": 1 << access.vector,
                "count": access.count,
                "wavefronts": access.wavefronts,
                "ideal_wavefronts": access.ideal,
                "registers": list(access.registers),
            }

        return {
            "scope": self.scope,
            "store": side(self.store),
            "load": side(self.load),
            "store_offsets": {d: [list(b) for b in bs] for d, bs in self.store_map.bases.items()},
            "load_offsets": {d: [list(b) for b in bs] for d, bs in self.load_map.bases.items()},
            "copies": dict(self.store_masks),
            "scratch_bytes": self.scratch_bytes,
            "repetitions": self.repetitions,
        }
