"""A conversion within a warp by shuffles: shears over F2.

Register r and lane l of the result come from register A r + B l and lane D r + E l of the source. This map is written

    r1 = r + F l            each lane chooses among its registers (selects)
    l2 = E' l + D r1        each register is read from another lane (a shuffle), and renamed: r2 = A' r1
    r2 + G l2               each lane chooses among its registers (selects)

with E' = E + D F, A' = A + G D and G E' = B + A F. F is chosen with as few selects as possible such that there is a
G: wherever two lanes of the result would read one lane of the source, they must want the same register. Where the
source holds copies in several lanes, one is chosen that makes this so. Warps take part in the maps like further lane
bits.

Three shears for each exchange of a register with a lane bit is how a transposition is done in registers; fusing them as
above is due to Triton's pull request 7558; the derivation for any linear map, copies included, is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import f2


@dataclass(frozen=True)
class Shears:
    """The three stages, as matrices (tuples of columns); `*_warp` are what warp bits contribute."""

    after: tuple[int, ...]  # F, for each lane bit a vector of registers of the result
    lanes: tuple[int, ...]  # E'
    lanes_by_register: tuple[int, ...]  # D
    lanes_by_warp: tuple[int, ...]  # M
    registers: tuple[int, ...]  # A'
    before: tuple[int, ...]  # G, for each lane bit a vector of registers of the source
    before_by_warp: tuple[int, ...]  # H
    packed: int = 0
    """Register bits within a word: 2 ** packed elements are shuffled at once."""

    @property
    def shuffle_kind(self) -> str:
        """ "xor" where each register comes from a constant distance, "idx" where lanes are computed, or "none"."""
        if self.lanes != tuple(f2.identity(len(self.lanes))) or any(self.lanes_by_warp):
            return "idx"
        return "xor" if any(self.lanes_by_register) else "none"

    @property
    def masks(self) -> list[int]:
        """The distances at which lanes are read, of kind "xor"; none where they are computed."""
        distances = list({*self.lanes_by_register} - {0}) if self.shuffle_kind == "xor" else []
        return [mask for mask in f2.span(distances) if mask]

    def to_dict(self) -> dict[str, Any]:
        """As plain data: for every bit of a lane, register or warp index what it adds."""
        return {
            "select_before": {"lane": list(self.before), "warp": list(self.before_by_warp)},
            "shuffle": {
                "kind": self.shuffle_kind,
                "lane": list(self.lanes),
                "register": list(self.lanes_by_register),
                "warp": list(self.lanes_by_warp),
            },
            "rename": list(self.registers),
            "select_after": {"lane": list(self.after)},
            "elements_in_a_word": 1 << self.packed,
        }


def shears(
    registers: Sequence[tuple[int, int]],
    lanes: Sequence[tuple[int, int]],
    warps: Sequence[tuple[int, int]],
    copies: Sequence[tuple[int, int]],
) -> Shears | None:
    """The stages of a conversion within warps, or None where it takes more than one round.

    `registers`, `lanes` and `warps` say for each such bit of the result which (register, lane) of the source it adds;
    `copies` are (register, lane) of the source that change nothing.
    """
    a, d = [r for r, _ in registers], [x for _, x in registers]
    after = [0] * len(lanes)
    image = list(lanes)  # (register, lane) of the source that each lane bit makes, with what `after` adds
    rows = f2.Echelon()  # of the lane parts
    assigned: list[int] = []  # the lane bits given to it
    consistent: list[int] = []  # relations to look at once all lanes that can be are independent
    for i, (_, lane) in enumerate(lanes):
        if lane not in rows:
            rows.add(lane)
            assigned.append(i)
        else:
            consistent.append(i)
    for i in consistent:
        used = rows.coefficients(image[i][1])
        register = image[i][0]
        for k, j in enumerate(assigned):
            if used is not None and used >> k & 1:
                register ^= image[j][0]
        if not register:  # reads what other lanes read too
            continue
        choice = _way_out(rows, image[i], registers, copies)
        if choice is None:
            return None
        added, image[i] = choice
        after[i] = added
        rows.add(image[i][1])
        assigned.append(i)
    e = [x for _, x in image]
    independent = [e[i] for i in assigned]
    size = max([x.bit_length() for x in (*e, *d, *(x for _, x in warps))] + [len(lanes)])
    # G: on the source lanes that are read it is known, elsewhere it is zero.
    coefficients = f2.solve([*independent, *f2.complement(independent, size)], f2.identity(size)) or []
    parts = [image[i][0] for i in assigned]
    g = [f2.multiply(parts, k & (1 << len(parts)) - 1) for k in coefficients][:size]
    renamed = [x ^ f2.multiply(g, y) for x, y in zip(a, d, strict=True)]
    h = [r ^ f2.multiply(g, x) for r, x in warps]
    return Shears(
        tuple(after),
        tuple(e),
        tuple(d),
        tuple(x for _, x in warps),
        tuple(renamed),
        tuple(g[: len(lanes)]),
        tuple(h),
    )


def _way_out(
    rows: f2.Echelon, image: tuple[int, int], registers: Sequence[tuple[int, int]], copies: Sequence[tuple[int, int]]
) -> tuple[int, tuple[int, int]] | None:
    """(register of the result to add, new image) that makes a lane bit read a lane of its own."""
    for r, lane in copies:
        if image[1] ^ lane not in rows:
            return 0, (image[0] ^ r, image[1] ^ lane)
    for i, (r, lane) in enumerate(registers):
        if image[1] ^ lane not in rows:
            return 1 << i, (image[0] ^ r, image[1] ^ lane)
    return None
