"""The algebra against its definition, and against Triton's class where Triton is installed."""

from __future__ import annotations

import itertools
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from weft.layouts import LayoutError, LinearLayout, f2

from .random_layouts import invertible, layout, permutation

seeds = st.integers(0, 1 << 32).map(random.Random)


def function(x: LinearLayout) -> dict[int, int]:
    """The whole map, flattened, by the definition: xor of the bases of the bits that are set."""
    table = {}
    for point in range(1 << x.total_in_log):
        value = 0
        for i, column in enumerate(x.columns):
            value ^= column if point >> i & 1 else 0
        table[point] = value
    return table


def random_layout(rng: random.Random, most: int = 7) -> LinearLayout:
    out_log = rng.randrange(1, most)
    columns = [rng.randrange(1 << out_log) for _ in range(rng.randrange(0, most))]
    return layout(rng, columns, out_log)


def all_invertible(size: int) -> list[list[int]]:
    return [
        list(columns) for columns in itertools.product(range(1, 1 << size), repeat=size) if f2.rank(columns) == size
    ]


def flat(columns: list[int], size: int) -> LinearLayout:
    return LinearLayout.from_bases({"x": [(c,) for c in columns]}, {"y": 1 << size}, require_surjective=False)


def test_all_pairs_of_invertible_3x3_maps() -> None:
    maps = all_invertible(3)
    assert len(maps) == 168
    layouts = [flat(m, 3) for m in maps]
    for a, b in itertools.product(layouts, layouts):
        both = a.rename_outs({"y": "x"}).compose(b)
        assert [
            b.columns[0] * (y & 1) ^ b.columns[1] * (y >> 1 & 1) ^ b.columns[2] * (y >> 2) for y in a.columns
        ] == list(both.columns)
        assert b @ a.rename_outs({"y": "x"}) == both
        found = a.invert_and_compose(b)
        assert found.rename_outs({"x": "z"}).rename_ins({"x": "w"}).compose(b.rename_ins({"x": "z"})) == a.rename_ins(
            {"x": "w"}
        )


def test_all_4x4_maps_against_the_identity() -> None:
    identity = LinearLayout.identity_1d(16, "x", "x")
    count = 0
    for columns in itertools.product(range(16), repeat=4):
        rank = f2.rank(columns)
        inverse = f2.solve(columns, f2.identity(4))
        assert (inverse is not None) == (rank == 4)
        assert len(f2.kernel(columns)) == 4 - rank
        if inverse is not None:
            count += 1
            a = flat(list(columns), 4).rename_outs({"y": "x"})
            assert a.compose(a.invert()) == identity == a.invert().compose(a)
    assert count == 20160


def test_common_complements_of_all_pairs_of_small_sets() -> None:
    """Units, sums, copies and zeros: as large as can be, and nothing but zero in common with either."""
    sets = [list(x) for n in range(4) for x in itertools.product([0, 1, 2, 3, 4], repeat=n)]
    for a, b in itertools.product(sets, sets):
        found = f2.common_complement(a, b, 3)
        assert f2.rank(found) == len(found) == 3 - max(f2.rank(a), f2.rank(b))
        for side in (a, b):
            assert f2.rank([*side, *found]) == f2.rank(side) + len(found)


@given(seeds)
def test_apply_is_the_definition(rng: random.Random) -> None:
    x = random_layout(rng)
    table = function(x)
    assert x.table().tolist() == list(table.values())
    points = np.arange(1 << x.total_in_log)
    named, at = {}, 0
    for name, size in x.in_dims.items():
        named[name] = points >> at & size - 1
        at += size.bit_length() - 1
    arrays = x.apply(named)
    for point in points.tolist():
        single = x.apply({n: int(v[point]) for n, v in named.items()})
        assert {n: int(v[point]) for n, v in arrays.items()} == single
        assert tuple(single.values()) == x._coordinates(table[point])


@given(seeds)
def test_product(rng: random.Random) -> None:
    a, b, c = (random_layout(rng, 4) for _ in range(3))
    assert (a * b) * c == a * (b * c)
    assert a * LinearLayout.empty() == a == LinearLayout.empty() * a
    whole = a * b
    for dims in itertools.product(*(range(s) for s in whole.in_dims.values())):
        point = dict(zip(whole.in_dims, dims, strict=True))
        low = a.apply({n: v & a.in_dims[n] - 1 for n, v in point.items()})
        high = b.apply({n: v >> a.in_log(n) for n, v in point.items()})
        assert whole.apply(point) == {n: low[n] | high[n] << a.out_log(n) for n in low}


@given(seeds)
def test_division_undoes_the_product(rng: random.Random) -> None:
    a, b = random_layout(rng, 4), random_layout(rng, 4)
    assert (a * b).divide_left(a) == b
    assert (a * b).divide_right(b) == a


@given(seeds)
def test_division_finds_only_divisors(rng: random.Random) -> None:
    a = random_layout(rng, 5)
    b = layout(rng, permutation(rng, rng.randrange(3)), 2)
    for quotient, whole in ((a.divide_left(b), lambda q: b * q), (a.divide_right(b), lambda q: q * b)):
        if quotient is not None:
            assert whole(quotient) == a


@given(seeds)
def test_inverses(rng: random.Random) -> None:
    size = rng.randrange(1, 8)
    a = layout(rng, invertible(rng, size), size)
    names = ["register", "lane", "warp"]
    assert a.is_invertible()
    there = a.rename_ins({n: n + "'" for n in names}).invert()
    assert set(function(a.compose(a.invert())).values()) == set(range(1 << size))
    assert all(k == v for k, v in function(a.compose(a.invert())).items())
    assert there.invert().rename_ins({n + "'": n for n in names}) == a


@given(seeds)
def test_pseudoinverse_is_a_right_inverse(rng: random.Random) -> None:
    size = rng.randrange(1, 6)
    columns = invertible(rng, size) + [rng.randrange(1 << size) for _ in range(rng.randrange(4))]
    rng.shuffle(columns)
    a = layout(rng, columns, size)
    back = a.pseudoinvert()
    assert all(k == v for k, v in function(back.compose(a)).items())
    free = a.free_variable_masks()
    for bases in back.bases.values():
        for basis in bases:
            assert all(not b & free[n] for n, b in zip(back.out_dims, basis, strict=True))


@given(seeds)
@settings(max_examples=200)
def test_the_preferred_source_is_the_nearest(rng: random.Random) -> None:
    """Against all solutions: same warp if there is one, then same lane if there is one, then fewest ones."""
    size = rng.randrange(1, 6)
    make = rng.choice([permutation, lambda r, s, c: invertible(r, s) + [r.randrange(1 << s) for _ in range(c)]])
    outs = {"dim0": 1 << size}
    a = layout(rng, make(rng, size, rng.randrange(3)), size).reshape_outs(outs)
    b = layout(rng, make(rng, size, rng.randrange(3)), size).reshape_outs(outs)
    found = a.invert_and_compose(b, prefer=("warp", "lane"))
    assert found.compose(b) == a
    everything = {v: [] for v in range(1 << size)}
    for x, y in function(b).items():
        everything[y].append(x)

    def parts(x: int) -> dict[str, int]:
        result = {}
        for name, s in b.in_dims.items():
            result[name], x = x & s - 1, x >> s.bit_length() - 1
        return result

    at = 0
    for name, s in a.in_dims.items():
        for i in range(s.bit_length() - 1):
            home = {n: (1 << i if n == name and 1 << i < b.in_dims[n] else 0) for n in b.in_dims}
            choices = everything[a.columns[at]]
            got = parts(found.columns[at])
            at += 1
            for dim in ("warp", "lane"):
                near = [c for c in choices if parts(c)[dim] == home[dim]]
                if not near:
                    break
                assert got[dim] == home[dim]
                choices = near
            else:
                assert found.columns[at - 1].bit_count() == min(c.bit_count() for c in choices)


def test_the_textbook_choice_crosses_warps_and_the_preferred_does_not() -> None:
    copies = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,)], "warp": [(0,)]}, {"dim0": 4})
    plain = copies.invert_and_compose(copies)
    assert plain.basis("warp", 0) == (0, 0, 0)
    assert copies.invert_and_compose(copies, prefer=("warp", "lane")).is_trivial_over(["warp"])


@given(seeds)
def test_rearranging(rng: random.Random) -> None:
    x = random_layout(rng)
    assert x.transpose_ins(list(x.in_dims)[::-1]).transpose_ins(list(x.in_dims)) == x
    assert x.transpose_outs(list(x.out_dims)[::-1]).transpose_outs(list(x.out_dims)) == x
    assert x.flatten_ins().reshape_ins(x.in_dims) == x
    assert x.flatten_outs().reshape_outs(x.out_dims) == x
    left = x.sublayout(["register"], x.out_dims)
    assert left.concat_ins(x.sublayout(["lane", "warp"], x.out_dims)) == x
    top = x.sublayout(x.in_dims, ["dim0"])
    assert top.concat_outs(x.sublayout(x.in_dims, ["dim1"])) == x
    wider = x.resize_in("lane", 2 * x.in_dims["lane"]).resize_out("dim1", 2 * x.out_dims["dim1"])
    assert wider.resize_in("lane", x.in_dims["lane"]).resize_out("dim1", x.out_dims["dim1"]) == x
    assert wider.free_variable_masks()["lane"] >> x.in_log("lane") == 1
    assert pickle.loads(pickle.dumps(x)) == x
    assert eval(repr(x)) == x and hash(eval(repr(x))) == hash(x)


@given(seeds)
def test_quotient(rng: random.Random) -> None:
    inner = layout(rng, [rng.randrange(8) for _ in range(3)], 3, ("register", "lane"), ("register", "lane"))
    whole = inner * LinearLayout.identity_1d(4, "warp", "warp")
    assert whole.is_trivial_over(["warp"])
    assert whole.quotient(["warp"]) == inner
    mixed = LinearLayout.from_bases({"lane": [(1, 0)], "warp": [(1, 1)]}, {"lane": 2, "warp": 2})
    assert not mixed.is_trivial_over(["warp"]) and mixed.quotient(["warp"]) is None


BAD = {
    "size": (lambda: LinearLayout.identity_1d(3, "lane", "dim0"), "the size of lane must be a power of two, got 3"),
    "negative": (
        lambda: LinearLayout.from_bases({"lane": [(-1,)]}, {"dim0": 2}),
        "basis 1 of lane is (-1,): its coordinate -1 of dim0 is outside of 0 .. 1",
    ),
    "oversized": (
        lambda: LinearLayout.from_bases({"lane": [(1,), (4,)]}, {"dim0": 4}),
        "basis 2 of lane is (4,): its coordinate 4 of dim0 is outside of 0 .. 3",
    ),
    "length": (
        lambda: LinearLayout.from_bases({"lane": [(1, 0), (1,)]}, {"dim0": 4, "dim1": 2}),
        "basis 2 of lane has 1 coordinates (1,), expected one for each of the 2 output dimensions (dim0, dim1)",
    ),
    "missing": (
        lambda: LinearLayout.from_bases({"lane": [(1,)]}, {"dim0": 4}),
        "the layout does not reach all of its output: nothing maps to dim0 = 2",
    ),
    "unknown": (
        lambda: LinearLayout.identity_1d(4, "lane", "dim0").in_log("warp"),
        "the layout has no input dimension 'warp'; it has (lane)",
    ),
    "not invertible": (
        lambda: LinearLayout.zeros_1d(4, "lane", "dim0").invert(),
        "the layout has no inverse, it is not injective: the bits 0x3 of lane hold copies",
    ),
    "apply": (
        lambda: LinearLayout.identity_1d(4, "lane", "dim0").apply(lane=4),
        "an index of lane is outside of 0 .. 3",
    ),
    "fraction": (
        lambda: LinearLayout.from_bases({"lane": [(1.5,)]}, {"dim0": 4}),
        "basis 1 of lane is (1.5,): its coordinate 1.5 of dim0 is no integer; legal are 0 .. 3",
    ),
    "no coordinates": (
        lambda: LinearLayout.from_bases({"lane": [1]}, {"dim0": 4}),
        "basis 1 of lane is 1, expected a coordinate for each of the output dimensions (dim0)",
    ),
    "size is a fraction": (
        lambda: LinearLayout.from_bases({"lane": [(1,)]}, [("dim0", 2.0)]),
        "the size of the output dimension dim0 must be a power of two, got 2.0",
    ),
    "entry": (
        lambda: LinearLayout.from_bases({"lane": [(1,)]}, [4]),
        "out_dims has the entry 4, expected names, or pairs of name and size",
    ),
    "names": (
        lambda: LinearLayout.from_bases({0: [(1,)]}, {"dim0": 2}),
        "the names of input dimensions must be strings, got [0]",
    ),
    "names alone": (
        lambda: LinearLayout.from_bases({"lane": [(2,)]}, ["dim0"]),
        "the layout does not reach all of its output: nothing maps to dim0 = 1",
    ),
    "index": (
        lambda: LinearLayout.identity_1d(4, "lane", "dim0").apply(lane=np.array([0.5])),
        "an index of lane is no integer but float64; legal are 0 .. 3",
    ),
    "trivial over": (
        lambda: LinearLayout.identity_1d(4, "lane", "lane").is_trivial_over(["warp"]),
        "the layout has no input dimension 'warp'; it has (lane)",
    ),
    "prefer": (
        lambda: LinearLayout.identity_1d(4, "lane", "dim0").invert_and_compose(
            LinearLayout.identity_1d(4, "lane", "dim0"), prefer=("wrap",)
        ),
        "prefer: neither layout has an input dimension 'wrap'; the outer has (lane)",
    ),
    "renamed to one": (
        lambda: LinearLayout.from_bases({"a": [(1,)], "b": [(2,)]}, {"dim0": 4}).rename_ins({"a": "b"}),
        "an input dimension is named twice: b, b",
    ),
    "twice": (
        lambda: LinearLayout.from_bases([("a", [(1,)]), ("a", [(2,)])], {"dim0": 4}),
        "an input dimension is named twice: a, a",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(LayoutError) as caught:
        make()
    assert caught.value.message == message


# -- against Triton ------------------------------------------------------------

try:
    from triton._C.libtriton.linear_layout import LinearLayout as Theirs
except ImportError:
    Theirs = None

needs_triton = pytest.mark.skipif(Theirs is None, reason="Triton is not installed")


def theirs(x: LinearLayout):
    bases = [(n, [list(b) for b in bs]) for n, bs in x.bases.items()]
    return Theirs.from_bases(bases, list(x.out_dims), list(x.out_dims.values()), False)


@needs_triton
@given(seeds)
@settings(deadline=None)
def test_as_triton(rng: random.Random) -> None:
    size = rng.randrange(1, 6)
    columns = invertible(rng, size) + [rng.randrange(1 << size) for _ in range(rng.randrange(3))]
    rng.shuffle(columns)
    a = layout(rng, columns, size)
    b = layout(rng, invertible(rng, size), size).reshape_outs(a.out_dims)
    c = layout(rng, invertible(rng, size), size).reshape_outs(a.out_dims)
    assert str(LinearLayout.empty()) == str(Theirs())
    for x in (a, b, a * b):
        assert str(x) == str(theirs(x))
        assert (x.is_surjective(), x.is_injective(), x.is_invertible()) == (
            theirs(x).is_surjective(),
            theirs(x).is_injective(),
            theirs(x).is_invertible(),
        )
    assert str(b.invert()) == str(theirs(b).invert())
    assert str(b.invert_and_compose(c)) == str(theirs(b).compose(theirs(c).invert()))
    assert str(a.invert_and_compose(b).compose(b)) == str(theirs(a.invert_and_compose(b)).compose(theirs(b)))
    assert np.array_equal(a.matrix(), np.array(theirs(a).get_matrix_view()))


def test_bases_are_the_callers_own() -> None:
    layout = LinearLayout.identity_1d(4, "lane", "dim0")
    layout.bases["lane"] = ()
    assert layout.bases == {"lane": ((1,), (2,))}
