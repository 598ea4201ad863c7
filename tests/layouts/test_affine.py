"""Affine layouts against their definition: every operation on every input."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from weft.layouts import AffineLayout, LayoutError, LinearLayout

from .random_layouts import invertible, layout, split


def random_affine(rng: random.Random, log: int | None = None, exact: bool = False) -> AffineLayout:
    """A random map, a bijection if `exact`."""
    log = log if log is not None else rng.randrange(1, 7)
    columns = invertible(rng, log) if exact else [rng.randrange(1 << log) for _ in range(rng.randrange(1, 7))]
    linear = layout(rng, columns, log)
    return AffineLayout(linear, {n: rng.randrange(s) for n, s in linear.out_dims.items()})


def points(dims: dict[str, int]) -> list[dict[str, int]]:
    """Every input, in order of its flattened number."""
    found = [{}]
    for name, size in reversed(dims.items()):
        found = [{name: v, **rest} for rest in found for v in range(size)]
    return found


def cases(count: int = 40, **options: bool) -> list[tuple[random.Random, AffineLayout]]:
    return [(rng := random.Random(seed), random_affine(rng, **options)) for seed in range(count)]


def flat(point: dict[str, int], dims: dict[str, int]) -> int:
    value, at = 0, 1
    for name, size in dims.items():
        value += point[name] * at
        at *= size
    return value


def test_apply_is_linear_xor_constant() -> None:
    for _, f in cases():
        for point in points(f.in_dims):
            expected = {n: v ^ f.constant[n] for n, v in f.linear.apply(point).items()}
            assert f.apply(point) == f(point) == expected
        grid = {n: np.array([p[n] for p in points(f.in_dims)]) for n in f.in_dims}
        assert f.table().tolist() == [flat(f.apply(p), f.out_dims) for p in points(f.in_dims)]
        assert {n: v.tolist() for n, v in f.apply(grid).items()} == {
            n: [f.apply(p)[n] for p in points(f.in_dims)] for n in f.out_dims
        }


def test_compose_and_inverse() -> None:
    for rng, f in cases(exact=True):
        inverse = f.invert()
        assert f.compose(inverse).is_linear and f.compose(inverse).table().tolist() == list(range(len(f.table())))
        assert f.pseudoinvert() == inverse
        outer_linear = layout(rng, [rng.randrange(16) for _ in range(f.linear.total_out_log)], 4)
        outer = AffineLayout(outer_linear.reshape_ins(f.out_dims), {n: s - 1 for n, s in outer_linear.out_dims.items()})
        for point in points(f.in_dims):
            assert f.compose(outer).apply(point) == outer.apply(f.apply(point))
            assert inverse.apply(f.apply(point)) == point


def test_pseudoinverse_of_copies() -> None:
    for rng in map(random.Random, range(30)):
        log = rng.randrange(1, 6)
        columns = invertible(rng, log)
        columns.insert(rng.randrange(log + 1), 0)
        linear = layout(rng, columns, log)
        f = AffineLayout(linear, {n: rng.randrange(s) for n, s in linear.out_dims.items()})
        assert f.is_surjective() and not f.is_injective() and sum(map(bool, f.free_variable_masks().values())) == 1
        for point in points(f.out_dims):
            assert f.apply(f.pseudoinvert().apply(point)) == point


def test_invert_and_compose() -> None:
    for rng in map(random.Random, range(40)):
        log = rng.randrange(2, 6)
        outer_linear = layout(rng, [*invertible(rng, log), 0], log)
        outer = AffineLayout(outer_linear, {n: rng.randrange(s) for n, s in outer_linear.out_dims.items()})
        columns = [rng.randrange(1 << log) for _ in range(3)]
        inner_linear = layout(rng, columns, log).flatten_outs().reshape_outs(outer.out_dims)
        inner = AffineLayout(inner_linear, {n: rng.randrange(s) for n, s in outer.out_dims.items()})
        for prefer in ((), ("warp", "lane")):
            found = inner.invert_and_compose(outer, prefer)
            for point in points(inner.in_dims):
                assert outer.apply(found.apply(point)) == inner.apply(point)


def test_direct_sum_and_division() -> None:
    for rng, f in cases():
        g = random_affine(rng)
        both = f * g
        for a in points(f.in_dims)[:16]:
            for b in points(g.in_dims)[:16]:
                point = {n: a.get(n, 0) + b.get(n, 0) * f.in_dims.get(n, 1) for n in both.in_dims}
                low, high = f.apply(a), g.apply(b)
                expected = {n: low.get(n, 0) + high.get(n, 0) * f.out_dims.get(n, 1) for n in both.out_dims}
                assert both.apply(point) == expected
        left, right = both.divide_left(f), both.divide_right(g)
        assert left is not None and f * left == both
        assert right is not None and right * g == both
        moved = AffineLayout(f.linear, {n: v ^ (s - 1) for (n, v), s in zip(f.constant.items(), f.out_dims.values())})
        if moved != f:
            assert both.divide_left(moved) is None
    one = LinearLayout.identity_1d(2, "lane", "dim0")
    assert one * AffineLayout(one, [1]) == AffineLayout(one) * AffineLayout(one, [1])


def test_rearranging() -> None:
    for rng, f in cases():
        order = list(f.out_dims)
        rng.shuffle(order)
        ins = list(f.in_dims)
        rng.shuffle(ins)
        cut_in = split(rng, f.linear.total_in_log, ("a", "b"))
        cut_out = split(rng, f.linear.total_out_log, ("x", "y", "z"))
        for point in points(f.in_dims):
            value = f.apply(point)
            assert f.transpose_outs(order).apply(point) == value
            assert f.transpose_ins(ins).apply(point) == value
            assert f.rename_outs({"dim0": "row"}).apply(point)["row"] == value["dim0"]
            number = flat(point, f.in_dims)
            assert flat(f.reshape_outs(cut_out).apply(point), cut_out) == flat(value, f.out_dims)
            a = number % cut_in["a"]
            assert f.reshape_ins(cut_in).apply(a=a, b=number // cut_in["a"]) == value
            assert list(f.flatten_outs().apply(point).values()) == [flat(value, f.out_dims)]
            assert f.flatten_ins().apply({next(iter(f.in_dims)): number}) == value
            assert (
                f.rename_ins({"lane": "thread"}).apply({("thread" if n == "lane" else n): v for n, v in point.items()})
                == value
            )
            assert f.resize_out("dim0", f.out_dims["dim0"] * 2).apply(point) == value
            assert f.resize_in("lane", f.in_dims["lane"] * 2).apply(point) == value
            part = f.sublayout(["lane"], ["dim1"])
            assert part.apply(lane=point["lane"]) == {
                "dim1": f.apply({**dict.fromkeys(f.in_dims, 0), "lane": point["lane"]})["dim1"]
            }
            rest = {n: v for n, v in point.items() if n != "warp"}
            assert f.fix(warp=point["warp"]).apply(rest) == value
        doubled = f.concat_outs(f.rename_outs({"dim0": "p", "dim1": "q"}))
        assert doubled.constant == {**f.constant, "p": f.constant["dim0"], "q": f.constant["dim1"]}
        wide = f * LinearLayout.identity_1d(1, "extra", "unit")
        assert wide.unsqueeze_in("extra").unsqueeze_out("unit") == f
        assert (f * LinearLayout.zeros_1d(2, "lane", "dim0")).remove_zero_bases("lane").linear.in_dims[
            "lane"
        ] <= f.in_dims["lane"]


def test_flip_and_slice() -> None:
    flip = AffineLayout.flip_1d(16, "lane", "dim0")
    assert flip.table().tolist() == list(range(15, -1, -1)) and flip.is_invertible()
    assert flip.compose(flip.rename_ins({"lane": "dim0"})).is_linear
    upper = AffineLayout.slice_1d(8, 4, 16, "lane", "dim0")
    assert upper.table().tolist() == [8, 9, 10, 11] and not upper.is_surjective()


def test_values() -> None:
    f = AffineLayout.flip_1d(4, "lane", "dim0")
    assert eval(repr(f), {"AffineLayout": AffineLayout, "LinearLayout": LinearLayout}) == f
    assert pickle.loads(pickle.dumps(f)) == f and hash(AffineLayout(f.linear, {"dim0": 3})) == hash(f)
    assert f != AffineLayout(f.linear) and f != f.linear
    assert str(f).endswith("xor (3)") and str(AffineLayout(f.linear)) == str(f.linear)


def test_bad_input() -> None:
    linear = LinearLayout.identity_1d(4, "lane", "dim0")
    other = LinearLayout.identity_1d(2, "lane", "dim0")
    for call, text in (
        (lambda: AffineLayout(linear, [4]), "coordinate 4 of dim0 is outside of 0 .. 3"),
        (lambda: AffineLayout(linear, [1, 1]), "has 2 coordinates, expected 1: dim0"),
        (lambda: AffineLayout(linear, {"dim1": 1}), "names dim1, the outputs are dim0"),
        (lambda: AffineLayout.slice_1d(2, 4, 8, "lane", "dim0"), "not a multiple of the size 4"),
        (lambda: AffineLayout(linear).fix(lane=4), "the value 4 of lane is outside of 0 .. 3"),
        (lambda: AffineLayout(other).invert_and_compose(AffineLayout(linear, [2])), "xored with 2 along dim0"),
        (lambda: AffineLayout(linear, [3]).resize_out("dim0", 2), "beyond 1"),
        (lambda: AffineLayout(other.resize_out("dim0", 4)).invert(), "has no inverse"),
    ):
        with pytest.raises(LayoutError) as caught:
            call()
        assert text in caught.value.message, caught.value.message
