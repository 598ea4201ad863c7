"""Bytes that are prefetched into the cache must belong to an array."""

from __future__ import annotations

import numpy as np
import pytest

from weft.sim import MisalignedError, OutOfBoundsError, run

from .kit import Kit


def _run(begin: int, size: int, is_asked: bool = True) -> None:
    k = Kit("x:i32*")
    first = k.equal(k.thread(), 0 if is_asked else 99)
    address = k.place("x", k.int(begin // 4))
    k.instruction("prefetch.bulk.L2", [address, k.int(size)], active=first)
    run(k.program(), 1, {"x": np.zeros(64, np.int32)})


@pytest.mark.parametrize(("begin", "size"), [(0, 256), (240, 16), (-16, 16)])
def test_of_an_array(begin: int, size: int) -> None:
    """A lane that does not prefetch may have any address."""
    _run(begin, size, is_asked=begin >= 0)


@pytest.mark.parametrize(("begin", "size"), [(0, 272), (256, 16), (-16, 32)])
def test_of_no_array(begin: int, size: int) -> None:
    with pytest.raises(OutOfBoundsError, match="not all of one array"):
        _run(begin, size)


@pytest.mark.parametrize(("begin", "size"), [(4, 16), (0, 20), (0, 0), (0, 1 << 20)])
def test_of_other_sizes(begin: int, size: int) -> None:
    with pytest.raises(MisalignedError, match="multiples of 16"):
        _run(begin, size)
