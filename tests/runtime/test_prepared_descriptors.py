"""Launches in native code of descriptors, lists of constants, and constants of the language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import TensorDescriptor
from weft.base import LaunchError

from .test_prepared import Watched, _at_once

__all__ = ["_at_once"]


def copies() -> Any:
    @weft.jit
    def copied(source, target, n, BLOCK: tl.constexpr):
        tile = source.load([0, 0])
        target.store([0, 0], tile + n)
        tl.static_assert(source.block_shape[1] == BLOCK)

    return copied


def described(shape: tuple[int, int] = (16, 32), first: int = 0, padding: str = "zero") -> Any:
    return TensorDescriptor.from_tensor(np.arange(first, first + np.prod(shape)).reshape(shape).astype(np.float32),
                                        [16, 32], padding)  # fmt: skip


def prepared_pair(monkeypatch: pytest.MonkeyPatch) -> tuple[Watched, Any, Any]:
    watched, source, target = Watched(copies(), monkeypatch), described(), described()
    watched.prepare(source, target, 3, BLOCK=32)
    assert (target.base == source.base + 3).all()
    return watched, source, target


def test_other_arrays_sizes_and_strides_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, *_ = prepared_pair(monkeypatch)
    for shape in ((16, 32), (3, 16), (40, 48), (7, 64)):
        source, target = described(shape, 100), described(shape, 7)
        wanted = target.base.copy()
        wanted[:16, :32] = source.base[:16, :32] + 5
        assert watched.is_native(source, target, 5, BLOCK=32), shape
        assert (target.base == wanted).all(), shape
    wide = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    source, target = TensorDescriptor(wide, [16, 32], [64, 1], [16, 32]), described()
    assert watched.is_native(source, target, 2, BLOCK=32)
    assert (target.base == wide[:, :32] + 2).all()


def change_block(d: Any) -> None:
    d.block_shape = [8, 32]


def change_padding(d: Any) -> None:
    d.padding = "nan"


def change_element(d: Any) -> None:
    d.base = d.base.astype(np.int32)


def shorten_rows(d: Any) -> None:
    d.shape = [16, 28]


CHANGES = [change_block, change_padding, change_element, shorten_rows]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_what_is_another_key_goes_the_general_way(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]
) -> None:
    watched, source, target = prepared_pair(monkeypatch)
    watched.plan_no_more()
    change(source)
    try:
        assert not watched.is_native(source, target, 3, BLOCK=32)
    except Exception as error:
        assert not isinstance(error, AssertionError)


def test_rows_of_other_lengths_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 36 elements follow each other without gaps, or are 36 of 40: what is known of them differs."""
    watched = Watched(copies(), monkeypatch)
    dense, target = described((16, 36)), described((16, 36))
    watched.prepare(dense, target, 1, BLOCK=32)
    watched.plan_no_more()
    assert watched.is_native(described((9, 36)), target, 1, BLOCK=32)
    wide = np.zeros((16, 40), np.float32)
    apart = TensorDescriptor(wide, [16, 36], [40, 1], [16, 32])
    assert not watched.is_native(apart, target, 1, BLOCK=32)
    assert (target.base[:, :32] == 1).all()


def test_a_changed_descriptor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, source, target = prepared_pair(monkeypatch)
    source.base = np.full((16, 32), 9, np.float32)
    source.shape = [16, 16]
    assert watched.is_native(source, target, 3, BLOCK=32)
    assert (target.base[:, :16] == 12).all() and (target.base[:, 16:] == 3).all()


def test_read_only_arrays_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, source, target = prepared_pair(monkeypatch)
    source.base.flags.writeable = False
    assert watched.is_native(source, target, 3, BLOCK=32)
    target.base.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        watched.kernel[(1,)](source, target, 3, BLOCK=32)


def test_arrays_that_overlap_go_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, *_ = prepared_pair(monkeypatch)
    memory = np.arange(17 * 32, dtype=np.float32).reshape(17, 32)
    before = memory.copy()
    source, target = (TensorDescriptor.from_tensor(x, [16, 32]) for x in (memory[:-1], memory[1:]))
    watched.kernel[(1,)](source, target, 3, BLOCK=32)
    assert (memory[1:] == before[:-1] + 3).all()


def test_something_else_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, source, target = prepared_pair(monkeypatch)

    class Other(TensorDescriptor):
        pass

    other = Other(source.base, source.shape, source.strides, source.block_shape)
    assert not watched.is_native(other, target, 3, BLOCK=32)
    del other.padding
    for wrong in (source.base, None, 5):
        with pytest.raises(Exception):
            watched.kernel[(1,)](wrong, target, 3, BLOCK=32)


@pytest.mark.parametrize("value", [[1, 2], [1, [2, "x"]], tl.constexpr(3), tl.constexpr((1, 2.5)), [tl.constexpr(4)]])
def test_lists_and_constants_of_the_language(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    @weft.jit
    def stored(out, C: tl.constexpr):
        tl.store(out, 1)

    out = np.zeros(1, np.int32)
    watched = Watched(stored, monkeypatch)
    watched.prepare(out, C=value)
    watched.plan_no_more()
    assert watched.is_native(out, C=value)
    assert not watched.is_native(out, C=[1, 2, 3]) and not watched.is_native(out, C=tl.constexpr(77))
    if isinstance(value, list):
        assert watched.is_native(out, C=list(value)) and not watched.is_native(out, C=tuple(value))
        value.append(5)
        assert not watched.is_native(out, C=value)
