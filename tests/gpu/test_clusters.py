"""Clusters of blocks on the GPU: what tests/lower and tests/gluon check in the simulator, and num_ctas of the language.

Every loop of these kernels has a bound. Those that wait for mbarriers would wait for ever if bytes did not come: each
runs in a process of its own, which is ended when its time is over, and the driver then ends the kernel too.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.language as tl
from children import SOURCE, TESTS, environment
from gluon.clusters import CHECKS
from kernels.case import copy_arguments
from kernels.clusters import CHECKS as OF_THE_LANGUAGE, in_clusters
from kernels.simulated import NAMES
from layouts.plans import filled, random_conversion
from lower.test_clusters import conversions, machine_for, program_of, shape_of
from weft.compiler import devices

from .arrays import View, launch, on_device
from .run import run_on_gpu


@pytest.fixture(autouse=True)
def has_clusters() -> None:
    if devices.current_device().capability < 90:
        pytest.skip("clusters came with compute capability 9.0")


WAITING = [name for name in CHECKS if name.startswith(("bulk", "wgmma"))]
"""Checks whose kernels wait for mbarriers."""

SECONDS = 120
SCRIPT = """
import sys
from gpu.arrays import launch
from gpu.test_clusters import CHECKS

CHECKS[sys.argv[1]](launch)
"""


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in WAITING])
def test_cluster(name: str) -> None:
    CHECKS[name](launch)


@pytest.mark.parametrize("name", WAITING)
def test_cluster_with_mbarriers(name: str) -> None:
    env = environment(TESTS, SOURCE)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seed", conversions())
def test_conversion(seed: int) -> None:
    src, dst, bits, _ = random_conversion(seed)
    program = program_of(src, dst, bits, machine_for(seed, src, bits))
    out = np.zeros(int(np.prod(shape_of(dst))), f"i{bits // 8}")
    run_on_gpu(program, 3, {"out": out})
    assert np.array_equal(out.reshape(shape_of(dst)), filled(dst).astype(out.dtype))


@pytest.mark.parametrize("name", OF_THE_LANGUAGE)
def test_num_ctas(name: str) -> None:
    """Kernels of the Triton language, whose tiles the blocks of a cluster divide."""
    OF_THE_LANGUAGE[name](launch)


CORPUS = [name for name in NAMES if name.endswith(".ttir")]


@pytest.mark.parametrize("blocks", [2, 4])
@pytest.mark.parametrize("name", CORPUS)
def test_kernels_that_know_nothing_of_clusters(name: str, blocks: int) -> None:
    """The test kernels, each program a cluster; but for those with loops that end when something happens."""
    kernel = in_clusters(name, blocks)
    if any(op.name == "while" for op in kernel.program.body.walk()):
        pytest.skip("it may wait for other programs")
    after = copy_arguments(kernel.case.make_inputs())
    run_on_gpu(kernel.program, kernel.case.grid, kernel.chosen(after))
    kernel.case.check(kernel.case.make_inputs(), after)


@weft.jit
def filled_alone(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1.0)


def test_programs_that_run_at_once() -> None:
    """A cluster lies within one group of multiprocessors: of larger ones there are fewer blocks, never more."""
    x = np.zeros(1024, np.float32)
    views: list[View] = []
    argument = on_device(x, views)
    counts = {n: filled_alone.warmup(argument, 256, num_ctas=n, grid=(1,)).n_max_programs for n in (1, 2, 4)}
    assert counts[1] % devices.current_device().multiprocessors == 0
    assert 0 < 4 * counts[4] <= 2 * counts[2] <= counts[1]
