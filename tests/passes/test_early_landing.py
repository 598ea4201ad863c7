"""Which loops of products await copies early: those that were faster so on an H200."""

from __future__ import annotations

import pytest

from weft.machines import machine_of
from weft.passes.early_landing import lands_early


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
    size = 2 * (m + n) * k
    words = m * n // (32 * warps)
    assert lands_early(machine_of("cuda:90"), stages, size, stages * size, warps, words) is is_early
