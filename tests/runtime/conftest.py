"""A cache of its own for every test of the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.runtime import knobs


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[Path]:
    """Kernels are kept below tmp_path, settings are set back."""
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope(), knobs.autotuning.scope():
        knobs.cache.dir = str(tmp_path / "kernels")
        yield tmp_path / "kernels"
