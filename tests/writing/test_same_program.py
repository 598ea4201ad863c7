"""Compiling the Gluon source of a kernel gives the lane program that the kernel has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.writing import NoWord
from writing.compare import TARGETS, NotCompiled, applies, kernels, programs

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
LEAST = 0.95
"""Of all kernels on both GPUs, how many have the same program."""


@pytest.fixture(scope="module")
def every() -> dict[str, Any]:
    return kernels()


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str, every: dict[str, Any], tmp_path: Path) -> None:
    wanted, found, _ = programs(every[name], "cuda:90", tmp_path)
    assert found == wanted


@pytest.mark.slow
def test_all(every: dict[str, Any], tmp_path: Path) -> None:
    same, others = 0, []
    for name, made in every.items():
        for target in TARGETS:
            if not applies(name, target):
                continue
            try:
                wanted, found, _ = programs(made, target, tmp_path)
                what = "" if wanted == found else "another program"
            except NotCompiled:
                continue
            except NoWord as error:
                what = error.feature
            if what:
                others.append(f"{name} on {target}: {what}")
            else:
                same += 1
    share = same / (same + len(others))
    assert share >= LEAST, "\n".join([f"{share:.3f} of the kernels have the same program; not:", *others])
