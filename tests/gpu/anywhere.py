"""Tests of launches that say nothing of a vendor, so that the pretended GPUs of each are tested by them too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import weft

from . import test_kernels as kernels, test_launching as launching, test_two_gpus as two

LAUNCHES = (
    kernels.test_launches_go_where_the_arrays_are,
    kernels.test_a_host_array_among_those_of_a_gpu_is_named,
    kernels.test_a_frozen_launch,
    kernels.test_a_grid_of_nothing_launches_nothing,
    kernels.test_there_is_no_such_gpu,
    launching.test_a_grid_beyond_the_limits,
    two.test_kernels_with_memory_of_their_own,
    two.test_arrays_of_two_gpus_are_refused,
)


def launched(test: Any, pretend: Callable[[int], Iterator[Any]]) -> None:
    """Run a test on so many pretended GPUs as it needs; its kernels are compiled anew for them."""
    used = [value for value in test.__globals__.values() if isinstance(value, weft.JITFunction)]
    for _ in pretend(2 if test.__module__.endswith("two_gpus") else 1):
        for kernel in used:
            kernel.reset()
        test()
        for kernel in used:
            kernel.reset()
