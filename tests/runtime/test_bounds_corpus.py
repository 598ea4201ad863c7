"""Some 300 faulty launches and 500 clean ones with `debug=True`, made of a table of offsets and a table of accesses.

The offsets are one text, which stands in a kernel and is evaluated by NumPy, so that NumPy says which element of which
tile is the first outside, and what the arrays hold afterwards.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import OutOfBoundsError

GUARD = 64
"""Elements on both sides of the array, which nothing may touch."""

# name: (the iterations of a loop over i, offsets); `look` reads an index from memory
OFFSETS: dict[str, tuple[int, str]] = {
    "a row": (1, "at + arange(0, 16)"),
    "one element": (1, "at + arange(0, 1)"),
    "a long row": (1, "at + arange(0, 1024)"),
    "every third": (1, "at + arange(0, 16) * 3"),
    "backwards": (1, "at + 15 - arange(0, 16)"),
    "each four times": (1, "at + arange(0, 16) // 4"),
    "around": (1, "at + (arange(0, 16) * 5 + 3) % 16"),
    "shuffled": (1, "at + (arange(0, 16) ^ 5)"),
    "a choice": (1, "at + where(arange(0, 16) > 7, arange(0, 16), 7 - arange(0, 16))"),
    "a matrix": (1, "at + arange(0, 8)[:, None] * 16 + arange(0, 16)[None, :]"),
    "with gaps": (1, "at + arange(0, 8)[:, None] * 40 + arange(0, 16)[None, :] * 2"),
    "by columns": (1, "at + arange(0, 8)[:, None] + arange(0, 16)[None, :] * 8"),
    "a diagonal": (1, "at + arange(0, 8)[:, None] + arange(0, 8)[None, :]"),
    "a cube": (1, "at + arange(0, 4)[:, None, None] * 32 + (arange(0, 4)[:, None] * 8 + arange(0, 8)[None, :])[None]"),
    "from memory": (1, "at + look(index, arange(0, 16))"),
    "a scalar": (20, "at + i"),
    "blocks": (4, "at + i * 16 + arange(0, 16)"),
    "blocks, the last first": (4, "at + (3 - i) * 16 + arange(0, 16)"),
    "blocks of rows": (3, "at + (i * 4 + arange(0, 4))[:, None] * 8 + arange(0, 8)[None, :]"),
    "more and more": (4, "at + arange(0, 8) * i"),
}  # fmt: skip
ACCESSES = {
    "load": "tl.store(out + keep, tl.load(x + o))",
    "load with a mask": "tl.store(out + keep, tl.load(x + o, mask=o < n, other=0))",
    "store": "tl.store(x + o, o.to(x.dtype.element_ty))",
    "store with a mask": "tl.store(x + o, o.to(x.dtype.element_ty), mask=o < n)",
    "atomic": "tl.atomic_max(x + o, (o + 100).to(x.dtype.element_ty))",
    "atomic with a mask": "tl.atomic_max(x + o, (o + 100).to(x.dtype.element_ty), mask=o < n)",
}
DTYPES = (np.int32, np.int64, np.uint32, np.float32)
LOOK = "@weft.jit\ndef look(index, o):\n    return tl.load(index + o)\n\n\n"


@dataclass(frozen=True)
class Case:
    """A kernel of the corpus."""

    offsets: str
    access: str

    @property
    def masked(self) -> bool:
        return "mask" in self.access

    @property
    def dtype(self) -> type:
        number = list(OFFSETS).index(self.offsets) + list(ACCESSES).index(self.access)
        return DTYPES[number % (3 if self.access.startswith("atomic") else 4)]

    @property
    def file(self) -> str:
        return f"corpus_{self.offsets}_{self.access}.py".replace(" ", "_")

    @lru_cache
    def tiles(self) -> list[np.ndarray[Any, Any]]:
        """The offsets of every iteration, from 0."""
        iterations, text = OFFSETS[self.offsets]
        names = {"arange": np.arange, "where": np.where, "look": lambda a, o: a[o], "index": index(), "at": 0}
        return [np.asarray(eval(text, {**names, "i": i})) for i in range(iterations)]

    @lru_cache
    def kernel(self) -> Any:
        """The kernel k(x, out, index, at, n)."""
        iterations, text = OFFSETS[self.offsets]
        shape = self.tiles()[0].shape
        strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
        places = [
            f"tl.arange(0, {size})[{_axis(axis, len(shape))}] * {strides[axis]}" for axis, size in enumerate(shape)
        ]
        keep = " + ".join([f"i * {int(np.prod(shape))}", *places])
        lines = [
            "@weft.jit(do_not_specialize=['at', 'n'])",
            "def k(x, out, index, at, n):",
            f"    for i in range({iterations}):",
            "        o = " + re.sub(r"\b(arange|where)\(", r"tl.\1(", text),
            f"        keep = {keep}",
            f"        {ACCESSES[self.access]}  # here",
        ]
        source = LOOK + "\n".join(lines) + "\n"
        linecache.cache[self.file] = (len(source), None, source.splitlines(keepends=True), self.file)
        scope: dict[str, Any] = {"weft": weft, "tl": tl}
        exec(compile(source, self.file, "exec"), scope)
        return scope["k"]


def _axis(axis: int, rank: int) -> str:
    return ", ".join(":" if k == axis else "None" for k in range(rank))


def index() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).permutation(16).astype(np.int32)


CASES = [Case(offsets, access) for offsets in OFFSETS for access in ACCESSES]


@dataclass
class Launch:
    """A launch of a case: with an array of `size` elements, offsets moved by `at`, and n as the bound of the mask."""

    case: Case
    size: int
    at: int
    n: int

    def run(self) -> None:
        whole = np.full(self.size + 2 * GUARD, 7, self.case.dtype)
        x = self.x = whole[GUARD : GUARD + self.size]
        x[:] = np.arange(self.size) % 90
        self.whole = whole
        self.before = x.copy()
        self.out = np.zeros(sum(tile.size for tile in self.case.tiles()), self.case.dtype)
        self.case.kernel()[(1,)](x, self.out, index(), self.at, self.n, debug=True)

    def first_outside(self) -> tuple[tuple[int, ...], int] | None:
        """The place and the number of the first element outside, by NumPy."""
        for tile in self.case.tiles():
            offsets = tile + self.at
            outside = (offsets < 0) | (offsets >= self.size)
            if self.case.masked:
                outside &= offsets < self.n
            if outside.any():
                place = tuple(int(k) for k in np.argwhere(outside)[0])
                return place, int(offsets[place])
        return None

    def untouched(self) -> bool:
        return bool((self.whole[:GUARD] == 7).all() and (self.whole[-GUARD:] == 7).all())

    def effect(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """What x and out are after a clean launch, by NumPy."""
        x, out = self.before.copy(), []
        for tile in self.case.tiles():
            offsets = tile + self.at
            on = offsets < self.n if self.case.masked else np.ones(offsets.shape, bool)
            if self.case.access.startswith("load"):
                out.append(np.where(on, x[np.where(on, offsets, 0)], 0).ravel())
            elif self.case.access.startswith("store"):
                x[offsets[on]] = offsets[on]
            else:
                np.maximum.at(x, offsets[on], (offsets[on] + 100).astype(x.dtype))
        return x, np.concatenate(out) if out else np.zeros_like(self.out)


def extent(case: Case) -> int:
    """The elements from 0 to the largest offset."""
    return max(int(tile.max()) for tile in case.tiles()) + 1


def faulty(case: Case) -> list[Launch]:
    """One past the end, far past the end, before the beginning."""
    size = extent(case)
    return [
        Launch(case, size - 1, 0, size),
        Launch(case, size // 2, 0, size),
        Launch(case, size, -1, size),
    ]


def clean(case: Case) -> list[Launch]:
    """The whole array; a part of it; with a mask, what lies past the array."""
    size = extent(case)
    fitting = [Launch(case, size, 0, size), Launch(case, size + 5, 5, size + 5), Launch(case, size + 9, 3, size)]
    if not case.masked:
        return [*fitting, Launch(case, size + 1, 1, 0)]
    return [
        *fitting,
        Launch(case, size, 4, size),
        Launch(case, max(1, size // 3), 0, max(1, size // 3)),
        Launch(case, 1, 0, 0),
    ]


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.thinned(4)
def test_faults_are_found_where_they_are(offsets: str, access: str) -> None:
    case = Case(offsets, access)
    line = len(LOOK.split("\n")) + 5
    for launch in faulty(case):
        expected = launch.first_outside()
        assert expected is not None
        with pytest.raises(OutOfBoundsError) as caught:
            launch.run()
        error = caught.value
        assert error.span is not None
        assert (error.span.file, error.span.line) == (case.file, line)
        assert (error.argument, error.position or (), error.index) == ("x", *expected)
        assert launch.untouched()


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.thinned(4)
def test_clean_launches_do_what_they_should(offsets: str, access: str) -> None:
    for launch in clean(Case(offsets, access)):
        assert launch.first_outside() is None
        launch.run()
        x, out = launch.effect()
        np.testing.assert_array_equal(launch.x, x)
        np.testing.assert_array_equal(launch.out, out)
        assert launch.untouched()


def test_there_are_enough() -> None:
    assert sum(len(faulty(case)) for case in CASES) >= 200
    assert sum(len(clean(case)) for case in CASES) >= 500
