"""Words of registers in shared memory, each thread's in places of its own (held.py).

    own = Parked(build, program, words=8)      # the buffer, and the address of this thread's first word
    own.store([0, 1, 2, 3], words)             # i32 registers; four at a time lie side by side
    again = own.load([0, 1, 2, 3])

Word 4 k of thread t is at byte 16 (k * threads + t) of the buffer: the lanes of a warp access 512 bytes in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import ELEMENT_BITS, Allocation, Builder, LaneProgram, Value

AT_A_TIME = 4
"""Words of an access."""
BYTES = 4 * AT_A_TIME


class Parked:
    """The buffer of a program whose other buffers have been placed."""

    def __init__(self, build: Builder, program: LaneProgram, words: int) -> None:
        self.build, self.threads = build, program.warps * program.lanes
        offset = -(-program.shared_bytes // BYTES) * BYTES
        program.shared.append(Allocation(4 * words * self.threads, BYTES, offset, None, "what registers do not hold"))
        start = build.add("shared", (), [("i32", 1)], {"allocation": len(program.shared) - 1}).result
        lane = [BYTES << i for i in range(program.lanes.bit_length() - 1)]
        warp = [BYTES * program.lanes << i for i in range((program.warps - 1).bit_length())]
        self.place = build.op("arith.addi", [start, build.linear([0], lane, warp)], "i32")

    def _at(self, places: Sequence[int]) -> Value:
        steps = self.build.linear([p // AT_A_TIME * BYTES * self.threads for p in places[::AT_A_TIME]])
        return self.build.op("arith.addi", [self.place, steps], "i32")

    def store(self, places: Sequence[int], words: Value) -> None:
        """Put words there; of places, each four are a run."""
        self.build.store("shared", self._at(places), words, AT_A_TIME)

    def load(self, places: Sequence[int]) -> Value:
        """Read them back."""
        return self.build.load("shared", self._at(places), "i32", AT_A_TIME)


def as_words(build: Builder, value: Value) -> Value:
    """Registers of 16 or 32 bits as words."""
    bits = ELEMENT_BITS[value.elem]
    if bits < 32:
        return build.add("pack", [value], [("i32", value.count * bits // 32)]).result
    return value if value.elem == "i32" else build.op("arith.bitcast", [value], "i32")


def of_words(build: Builder, words: Value, elem: str) -> Value:
    """Words as registers of 16 or 32 bits."""
    each = 32 // ELEMENT_BITS[elem]
    if each > 1:
        return build.add("unpack", [words], [(elem, words.count * each)]).result
    return words if elem == "i32" else build.op("arith.bitcast", [words], elem)
