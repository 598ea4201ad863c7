"""The test kernels in `sim:xpu:pvc`, whose warps have 16 lanes: they agree with NumPy as on the CPU.

pytest tests/intel/test_simulated.py -m "slow or not slow"      # all of them; otherwise a part
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from kernels import load_cases
from kernels.running import run_case

CASES = load_cases("weft")
ADDRESSES = "sum_lists"
"""Takes addresses of the host as numbers, which lie outside of every array of the simulator."""
OF = 12
ALWAYS = ("matmul_f16", "matmul_int8", "running_sums", "gathers")
DEAR = re.compile("flash_attention|matmul_bf16|batched|matmul_f64|spin_lock|matmul_f32_wide|pointer_m|descriptor_m")


def _cases() -> Iterator[Any]:
    for name in CASES:
        if name != ADDRESSES:
            part = zlib.crc32(f"{name} pvc".encode()) % OF == 0 and not DEAR.search(name)
            yield pytest.param(name, marks=() if part or name in ALWAYS else pytest.mark.slow)


@pytest.mark.parametrize("name", list(_cases()))
@pytest.mark.thinned(3)
def test_kernels_agree_with_numpy(name: str) -> None:
    with weft.target("sim:xpu:pvc"):
        run_case(CASES[name])
