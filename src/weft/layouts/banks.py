"""Passes over the banks of shared memory: what an access costs, exactly, for any linear map.

Memory has 32 banks of words of 4 bytes; a machine says how many, and how wide. In one pass every bank delivers one
word, to all lanes that want it. Lanes go in phases of as many consecutive ones as the banks have words for: all 32
for a word each, 8 for 16 bytes each. The words that a phase wants are the image of a linear map W; they collide where
they share a bank, and a bank is a linear map B of the word. Each bank that is asked for anything is asked for as many
words as the kernel of B has in the image of W, so that a phase takes 2 ** (rank W - rank B W) passes.

The formula is our own; Zhou et al., Linear Layouts (arXiv 2505.23819v5), lemma 9.4, bound it from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.machines import DEFAULT, Machine

from . import f2


def passes(lanes: Sequence[int], bits_log: int, vector: int, machine: Machine = DEFAULT) -> tuple[int, int]:
    """(passes over the banks, passes without conflicts) when each lane accesses 2 ** vector consecutive elements.

    `lanes` are the offsets, in elements of 2 ** bits_log bits, that each lane bit adds; they are multiples of
    2 ** vector.

    >>> passes([32, 64, 128, 256, 512], 5, 0)  # a column of a row-major tile of 32 words
    (32, 1)
    >>> passes([4, 8, 16, 32, 64], 5, 2)  # 16 bytes of each lane, one after the other
    (4, 4)
    """
    shift = machine.bank_bytes.bit_length() + 2 - bits_log  # bits of an offset within a word; negative for larger ones
    bank_log = machine.banks.bit_length() - 1
    width = max(0, vector - shift)  # the words of one lane: their banks differ, they share the rest of the address
    inside = lanes[: max(0, bank_log - width)]
    words = [(x >> shift if shift >= 0 else x << -shift) >> width << width for x in inside]
    phases = 1 << len(lanes) - len(inside)
    low = (1 << bank_log) - 1
    banked = [x & low for x in words]
    if len({*banked}) == len(banked) and all(banked) and f2.are_units(banked):  # each bit a bank of its own
        return phases, phases
    return phases << f2.rank(words) - f2.rank(banked), phases


def count_wavefronts(
    addresses: npt.NDArray[np.integer[Any]] | Sequence[int], width: int, machine: Machine = DEFAULT
) -> int:
    """The wavefronts of one access whose lanes want `width` bytes at these byte addresses, by counting; any addresses.

    >>> count_wavefronts([0, 4, 8, 12], 4), count_wavefronts([0, 128, 256, 256], 4)
    (1, 3)
    """
    starts = np.asarray(addresses, np.int64)
    words, phase = _phases(width, machine)
    total = 0
    for at in range(0, len(starts), phase):
        wanted = starts[at : at + phase, None] // machine.bank_bytes + np.arange(words)
        total += int(np.bincount(np.unique(wanted) % machine.banks).max())
    return total


def meeting(
    addresses: npt.NDArray[np.integer[Any]] | Sequence[int], width: int, machine: Machine = DEFAULT
) -> tuple[int, tuple[int, ...]]:
    """The bank of which lanes want the most words in one phase, and those lanes; no lanes where none meet.

    Lanes want `width` bytes at these byte addresses. Of lanes that want the same word the first is named.

    >>> meeting([0, 128, 256, 256, 4], 4)
    (0, (0, 1, 2))
    >>> meeting([0, 4, 8, 12], 4)
    (0, ())
    """
    starts = np.asarray(addresses, np.int64)
    words, phase = _phases(width, machine)
    worst: tuple[int, tuple[int, ...]] = (0, ())
    for at in range(0, len(starts), phase):
        lanes: dict[int, dict[int, int]] = {}  # by bank and word
        for lane in range(at, min(at + phase, len(starts))):
            for word in range(words):
                wanted = int(starts[lane]) // machine.bank_bytes + word
                lanes.setdefault(wanted % machine.banks, {}).setdefault(wanted, lane)
        bank, first = max(lanes.items(), key=lambda item: len(item[1]))
        if len(first) > max(1, len(worst[1])):
            worst = bank, tuple(first.values())
    return worst


def _phases(width: int, machine: Machine) -> tuple[int, int]:
    """Words of a lane, and the lanes that are served together."""
    words = max(1, width // machine.bank_bytes)
    return words, max(1, machine.banks // words)
