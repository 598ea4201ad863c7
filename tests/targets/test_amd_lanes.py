"""AMD's exchanges between lanes: which lane each reads, by the documents, and how lanes at a distance are read."""

from __future__ import annotations

import numpy as np
import pytest

from weft.machines import Machine
from weft.machines.amd import ROWS, exchange
from weft.targets.amd import INSTRUCTIONS
from weft.targets.instruction import Array
from weft.targets.table import has

NUMBERS = {lanes: np.arange(lanes, dtype=np.int32)[None, :, None] for lanes in (32, 64)}


def read(name: str, lanes: int, *more: int) -> list[int]:
    """The lane that each lane reads."""
    words = [np.full((1, lanes, 1), word, np.uint32).view(np.int32) for word in more]
    (result,) = INSTRUCTIONS[name].run(NUMBERS[lanes], *words)
    return list(map(int, result[0, :, 0]))


@pytest.mark.parametrize("lanes", [32, 64])
def test_dpp_controls_as_the_documents_say(lanes: int) -> None:
    row = [lane & ~15 for lane in range(lanes)]
    for name, within in {
        "quad_perm.3120": lambda x: x & ~3 | (3, 1, 2, 0)[x & 3],
        "row_ror.3": lambda x: (x + 13) % 16,  # rotated to the right: lane 3 reads lane 0
        "row_mirror": lambda x: 15 - x,
        "row_half_mirror": lambda x: x & 8 | 7 - (x & 7),
        "row_share.9": lambda x: 9,
        "row_xmask.6": lambda x: x ^ 6,
    }.items():
        assert read(f"dpp.{name}", lanes) == [r + within(lane & 15) for lane, r in enumerate(row)], name
    assert read("dpp.wave_ror.1", lanes) == [(lane - 1) % lanes for lane in range(lanes)]
    assert read("dpp.wave_rol.1", lanes) == [(lane + 1) % lanes for lane in range(lanes)]


@pytest.mark.parametrize("lanes", [32, 64])
def test_the_crossbar_and_readlane(lanes: int) -> None:
    assert read("ds_swizzle.xor.19", lanes) == [lane ^ 19 for lane in range(lanes)]
    assert read("ds_swizzle.before.4", lanes) == [lane & ~7 | 3 for lane in range(lanes)]
    assert read("ds_swizzle.after.4", lanes) == [lane & ~7 | 4 for lane in range(lanes)]
    assert read("readlane", lanes, 21) == [21] * lanes
    wanted = (np.arange(lanes, dtype=np.int32) * 5 + 3) % lanes
    (result,) = INSTRUCTIONS["ds_bpermute"].run(4 * wanted[None, :, None], NUMBERS[lanes])
    assert (result[0, :, 0] == wanted).all()


def test_patterns_of_rows() -> None:
    low, high = 0x76543210, 0x00FEDCBA
    places = [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 0, 0]
    assert read("permlane16", 32, low, high) == [*places, *(16 + p for p in places)]
    assert read("permlanex16", 32, low, high) == [*(16 + p for p in places), *places]


@pytest.mark.parametrize("width", [16, 32])
def test_swaps(width: int) -> None:
    """Odd rows (halves) of the first operand are exchanged with even ones of the second."""
    a, b = NUMBERS[64], NUMBERS[64] + 100
    first, second = (x[0, :, 0] for x in INSTRUCTIONS[f"permlane{width}.swap"].run(a, b))
    for lane in range(64):
        odd = lane // width % 2
        assert first[lane] == (100 + lane - width if odd else lane)
        assert second[lane] == (100 + lane if odd else lane + width)


def at_a_distance(machine: Machine, mask: int) -> Array:
    """What lanes have after the instructions for a distance; what belongs to each of them is done beside."""
    lanes, value = machine.lanes, NUMBERS[machine.lanes]
    for name in exchange(machine.generation, mask):
        assert has(machine, name)
        entry = INSTRUCTIONS[name]
        if name == "ds_bpermute":
            (value,) = entry.run(4 * (NUMBERS[lanes] ^ mask), value)
        elif name == "permlanex16":
            halves = [sum((p ^ mask & 15) << 4 * (p % 8) for p in range(at, at + 8)) for at in (0, 8)]
            (value,) = entry.run(value, *(np.full_like(value, h - (h >> 31 << 32)) for h in halves))
        elif name.endswith("swap"):
            width = int(name.removeprefix("permlane").removesuffix(".swap"))
            first, second = entry.run(value, value)
            value = np.where(NUMBERS[lanes] & width, first, second)
        else:
            (value,) = entry.run(value)
    return value


@pytest.mark.parametrize("machine", ROWS, ids=lambda m: m.name)
def test_lanes_at_every_distance_are_read_by_what_their_processor_has(machine: Machine) -> None:
    for mask in range(machine.lanes):
        assert (at_a_distance(machine, mask) == NUMBERS[machine.lanes] ^ mask).all(), mask
    assert len(machine.exchanges) == machine.lanes and machine.exchanges[0] == 0
    assert max(machine.exchanges) <= machine.shuffle
    cheap = {1 << i for i in range(6) if 1 << i < machine.lanes and machine.exchanges[1 << i] < machine.shuffle}
    through_crossbar = {16, 32} if machine.name in ("hip:gfx90a", "hip:gfx942") else set()
    assert cheap == {1, 2, 4, 8, 16, 32 if machine.lanes == 64 else 16} - through_crossbar
