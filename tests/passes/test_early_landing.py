"""Which loops of products await copies early: those that were faster so on an H200."""

from __future__ import annotations

import pytest

from weft.machines import machine_of
from weft.passes.early_landing import lands_early, warps_by_registers


@pytest.mark.parametrize(
    ("m", "n", "k", "warps", "stages", "is_early"),
    [
        (64, 64, 32, 4, 4, True),  # 426 us, and 446 us if copies are awaited as late as may be
        (64, 64, 32, 4, 3, True),  # 400, 452
        (64, 128, 32, 4, 4, True),  # 317, 325
        (64, 64, 64, 4, 4, True),  # 353, 387
        (128, 64, 64, 4, 4, True),  # 286, 311
        (64, 64, 64, 4, 3, False),  # 414, 381
        (128, 64, 64, 4, 3, False),  # 337, 298
        (128, 128, 32, 4, 4, False),  # 236, 227
        (128, 128, 32, 4, 3, False),  # 392, 250
        (128, 128, 32, 8, 3, False),  # 258, 198: 64 products whose operands come from DRAM
        (128, 256, 32, 8, 4, False),  # 243, 209
    ],
)
def test_copies_are_awaited_early_where_they_have_arrived(
    m: int, n: int, k: int, warps: int, stages: int, is_early: bool
) -> None:
    machine, size = machine_of("cuda:90"), 2 * (m + n) * k
    threads = machine.threads(warps)
    by_registers = warps_by_registers(machine, size, warps, m * n // threads)
    at_a_time = min(by_registers, machine.blocks_at_a_time(threads, stages * size) * warps)
    assert lands_early(machine, stages, size, warps, at_a_time) is is_early
