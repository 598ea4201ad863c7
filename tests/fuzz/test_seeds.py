"""A hundred and fifty random kernels, each in one of the variants; `make fuzz` runs new ones for as long as wanted."""

from __future__ import annotations

import platform
import sys

import pytest

from weft.compiler import host_cpu

from .campaign import pairs
from .compare import VARIANTS, check

X86 = platform.machine().lower() in ("x86_64", "amd64") and host_cpu().has("avx2")
NAMES = [name for name in VARIANTS if X86 or "cpu" not in VARIANTS[name].options]
SEEDS = 150


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.parametrize(("seed", "variant"), list(pairs(0, SEEDS, NAMES, in_turn=True)))
def test_agrees_with_numpy(seed: int, variant: str) -> None:
    check(seed, variant)
