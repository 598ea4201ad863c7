"""Compiling the Gluon source of a kernel gives the lane program that the kernel has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from writing.compare import TARGETS, compared, every, kernels, launches, programs, programs_of_launch

SAMPLE = (
    "kernels/layer_norm_backward",
    "kernels/matmul_f16",
    "kernels/flash_attention_64_causal",
    "kernels/welford",
    "kernels/scalar_memory",
    "kernels/rms_norm",
    "kernels/descriptor_window",
    "kernels/sort_rows_int32",
    "kernels/float_atomics",
    "kernels/spin_lock",
    "benchmarks/matmul_128x128x64",
    "gluon/persistent_matmul",
    "gluon/specialised_with_results",
    "gluon/padded_blocks",
)
"""Reductions, copies under way in a loop, matrix products, branches, a sort, atomics, a loop with a condition;
partitions, mbarriers, bulk copies, descriptors of the host and of the kernel."""
LAUNCHED = (
    "specialized/two_steps",
    "specialized/causal_head_64",
    "specialized/grouped",
    "clusters/gluon_bulk-copies-True",
)
"""Loops that are divided among warps, by descriptors and by pointers, and bulk copies in a cluster."""
LEAST = 0.95
"""Of all kernels on a GPU, how many have the same program."""


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    return {**kernels(), **launches()}


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.thinned(2)
def test_sample(name: str, suite: dict[str, Any], tmp_path: Path) -> None:
    wanted, found, _ = programs(suite[name], "cuda:90", tmp_path)
    assert found == wanted


@pytest.mark.parametrize("name", LAUNCHED)
def test_launched(name: str, suite: dict[str, Any]) -> None:
    wanted, found = programs_of_launch(suite[name], "cuda:90")
    assert found == wanted


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_all(target: str) -> None:
    found = {name: compared(name, its, made) for name, its, made in every() if its == target}
    same = [result == "the same" for result in found.values() if result]
    others = [f"{name}: {result}" for name, result in found.items() if result not in ("", "the same")]
    share = sum(same) / len(same)
    assert share >= LEAST, "\n".join([f"{share:.3f} of the kernels have the same program; not:", *others])
