"""What our PTX is made of, counted beside Triton's for the same source: never more of what costs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
KERNELS = ("add", "softmax 4096", "layer norm", "transpose 64", "rows 64x128", "matmul 64x64x32", "matmul 128x128x64")

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def _benchmark(name: str) -> ModuleType:
    """A module of the benchmarks, which are no package."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.insert(0, str(BENCHMARKS))
    return importlib.import_module(name)


def _weighed(kernel: Any) -> dict[str, int]:
    """What is compared. An asynchronous copy counts as the load and the store that it is."""
    found = _benchmark("ptx_counts").counts(kernel.asm["ptx"])

    def total(*beginnings: str) -> int:
        return sum(n for kind, n in found.items() if kind.startswith(beginnings))

    return {
        "loads from global memory": total("ld.global", "cp.async"),
        "stores to global memory": total("st.global"),
        "loads from shared memory": total("ld.shared", "ldmatrix"),
        "stores to shared memory": total("st.shared", "stmatrix", "cp.async"),
        "local memory": total("ld.local", "st.local"),
        "shuffles": total("shfl"),
        "products": total("mma"),
        "barriers": total("bar.sync"),
        "bytes of shared memory": int(kernel.metadata.shared),
    }


@pytest.mark.parametrize("name", KERNELS)
def test_never_more_than_triton(name: str) -> None:
    cases = _benchmark("gpu_cases").cases
    ours, theirs = (_weighed(cases(side)[name].compile(80)) for side in ("weft", "triton"))
    stages = 3 if name.startswith("matmul") else 1
    # Pipelined loops may keep a buffer more, num_stages of them, for a barrier less in each iteration.
    theirs["bytes of shared memory"] = theirs["bytes of shared memory"] * stages // max(1, stages - 1)
    more = {kind: (n, theirs[kind]) for kind, n in ours.items() if n > theirs[kind]}
    assert not more
    assert ours["loads from global memory"] and ours["stores to global memory"]
