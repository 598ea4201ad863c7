"""CuTe layouts against the definition: the sum of coordinates times strides, then the swizzle."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from weft.layouts import (
    CuteLayout,
    CuteSwizzle,
    LayoutError,
    LinearLayout,
    NVMMASharedLayout,
    SwizzledSharedLayout,
    from_cute,
    to_cute,
)

from .random_layouts import invertible, split


def definition(layout: CuteLayout, index: int) -> int:
    """The offset of a flat index, by the words of CuTe's documentation."""
    total = layout.offset
    for size, stride in layout.leaves():
        total += index % size * stride
        index //= size
    if layout.swizzle:
        b, m, s = layout.swizzle.bits, layout.swizzle.base, layout.swizzle.shift
        bits = (1 << b) - 1
        yyy = bits << (m + max(0, s))
        moved = (total & yyy) >> s if s >= 0 else (total & yyy) << -s
        total ^= moved
    return total


def size(layout: CuteLayout) -> int:
    result = 1
    for count, _ in layout.leaves():
        result *= count
    return result


TEXTS = [
    "8:1",
    "1:0",
    "(8,64):(64,1)",
    "((4,8),(2,2)):((32,1),(16,8))",
    "(((2,2),2),8):(((1,4),2),8)",
    "(8,(4,2)):(1,(0,8))",
    "(4,2):(3,16)",  # a stride that is no power of two, and nothing carries: 3 and 6 would
    "(2,4):(3,4)",
    "Swizzle<3,3,3> o 0 o (8,64):(64,1)",
    "Swizzle<2,4,3> o 0 o (8,(32,2)):(32,(1,256))",
    "Swizzle<1,0,-3> o 0 o (8,2):(1,8)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_linear_is_the_sum(text: str) -> None:
    layout = CuteLayout.parse(text)
    assert str(layout) == text
    if text == "(4,2):(3,16)":
        with pytest.raises(LayoutError, match=r"dim0 = 2 adds 6 and dim0 = 1 adds 3 .* 3 \+ 6 = 9"):
            layout.to_linear()
        return
    linear = layout.to_linear()
    table = linear.table()
    for index in range(size(layout)):
        assert table[index] == layout(index) == definition(layout, index)
    assert len(linear.in_dims) == len(layout.modes()) and list(linear.out_dims) == ["offset"]


def test_coordinates() -> None:
    layout = CuteLayout.parse("(4,(2,8)):(2,(1,8))")
    assert [layout(i, j) for i in (0, 1) for j in range(4)] == [0, 1, 8, 9, 2, 3, 10, 11]
    linear = layout.to_linear(["row", "column"], "byte")
    assert linear.apply(row=3, column=5) == {"byte": layout(3, 5)}
    with pytest.raises(LayoutError, match="3 coordinates for 2 modes"):
        layout(0, 0, 0)


def test_offsets_are_affine() -> None:
    layout = CuteLayout.parse("Swizzle<3,0,3> o 64 o (8,8):(8,1)")
    affine = layout.to_affine()
    assert [affine.apply(dim0=i, dim1=j)["offset"] for i in range(8) for j in range(8)] == [
        layout(i, j) for i in range(8) for j in range(8)
    ]
    assert str(layout) == "Swizzle<3,0,3> o 64 o (8,8):(8,1)"
    with pytest.raises(LayoutError, match="has the offset 64"):
        layout.to_linear()
    with pytest.raises(LayoutError, match="and the offset adds 3"):
        CuteLayout.parse("Swizzle<0,0,0> o 3 o 4:1").to_affine()


def test_static_integers_and_spaces() -> None:
    plain = CuteLayout.parse("Swizzle<3,4,3> o 0 o ((8,4),(64,2)):((64,512),(1,2048))")
    assert CuteLayout.parse(" Sw<3,4,3> o _0 o ((_8, _4),(_64,_2)) : ((_64,_512), (_1, _2048)) ") == plain
    assert CuteLayout.parse("(8,):(1,)").shape == (8,)


@given(st.integers(0, 1 << 30))
def test_round_trip_of_strides(seed: int) -> None:
    """Any permutation of offset bits, any cut into modes, with copies; and back the same map."""
    rng = random.Random(seed)
    log = rng.randrange(1, 9)
    values = [1 << i for i in range(log)]
    rng.shuffle(values)
    for _ in range(rng.randrange(3)):
        values.insert(rng.randrange(len(values) + 1), 0)
    flat = LinearLayout.from_bases({"x": [(v,) for v in values]}, {"offset": 1 << log})
    layout = flat.reshape_ins(split(rng, len(values), ("dim0", "dim1", "dim2")))
    text = to_cute(layout)
    assert from_cute(text) == layout
    assert str(CuteLayout.parse(text)) == text


@given(st.integers(0, 1 << 30))
def test_round_trip_of_swizzles(seed: int) -> None:
    rng = random.Random(seed)
    bits = rng.randrange(1, 4)
    base, shift = rng.randrange(4), rng.randrange(bits, 5)
    log = base + bits + shift + rng.randrange(3)
    swizzle = CuteSwizzle(bits, base, rng.choice([shift, -shift]))
    values = [1 << i for i in range(log)]
    rng.shuffle(values)
    flat = LinearLayout.from_bases({"x": [(swizzle(v),) for v in values]}, {"offset": 1 << log})
    layout = flat.reshape_ins(split(rng, log, ("dim0", "dim1")))
    again = CuteLayout.from_linear(layout)
    assert again.to_linear() == layout and CuteLayout.parse(str(again)) == again
    assert again.swizzle is not None


def test_swizzles_are_their_own_inverse() -> None:
    for swizzle in (CuteSwizzle(3, 4, 3), CuteSwizzle(2, 1, -2), CuteSwizzle(0, 0, 0)):
        assert [swizzle(swizzle(x)) for x in range(4096)] == list(range(4096))


def test_shared_layouts() -> None:
    """The well-known names of the swizzles that wgmma reads, K-major, 16-bit elements."""
    for width, name in ((128, "Swizzle<3,3,3>"), (64, "Swizzle<2,3,3>"), (32, "Swizzle<1,3,3>")):
        shared = NVMMASharedLayout(width, 16).to_linear([8, width // 2])
        coordinates = shared.invert().sublayout(["dim0", "dim1"], ["offset"])
        assert to_cute(coordinates) == f"{name} o 0 o (8,{width // 2}):({width // 2},1)"
        assert from_cute(to_cute(coordinates)) == coordinates
    plain = SwizzledSharedLayout(1, 1, 1, [0, 1]).to_linear([16, 8]).invert().sublayout(["dim0", "dim1"], ["offset"])
    assert to_cute(plain) == "(16,8):(1,16)"


def test_threads_and_values() -> None:
    """The accumulator of mma.m16n8, as CUTLASS writes it: (T32,V4) -> (M16,N8)."""
    text = "((4,8),(2,2)):((32,1),(16,8))"
    layout = from_cute(text, ["lane", "register"]).reshape_outs({"dim0": 16, "dim1": 8})
    assert layout.bases["lane"] == ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))
    assert layout.bases["register"] == ((0, 1), (8, 0))
    assert to_cute(layout) == text


def test_what_is_no_cute_layout() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        columns = invertible(rng, 6)
        layout = LinearLayout.from_bases({"lane": [(c,) for c in columns]}, {"offset": 64})
        try:
            text = to_cute(layout)
        except LayoutError as error:
            assert "have bits in common" in error.message and "lane = " in error.message
        else:
            assert from_cute(text, ["lane"]) == layout


def test_bad_input() -> None:
    for text, message in (
        ("(4,8):(9,1)", "dim1 = 1 adds 1 and dim0 = 1 adds 9 to the offset; the sum carries, 9 + 1 = 10"),
        ("(2,2):(1,1)", "dim1 = 1 adds 1 and dim0 = 1 adds 1 to the offset; the sum carries, 1 + 1 = 2"),
        ("(32,32):(33,1)", "carries"),
        ("(6,8):(8,1)", "the mode 6:8 has a size that is no power of two"),
        ("(4,8):(-8,1)", "the mode 4:-8 has a negative stride"),
        ("(0,8):(8,1)", "a mode of size 0"),
        ("(4,8):(8,(1,2))", "the shape 8 and the stride (1,2) are not nested alike"),
        ("(4,8)", "at 5: expected ':', it ends there"),
        ("(4,8:(8,1)", "at 4: expected ')', got ':(8,1)'"),
        ("(4,8):(8,1) x", "at 12: expected a number, a parenthesis"),
        ("4:1)", "at 3: expected the end, got ')'"),
        ("Swizzle<3,3> o 0 o 4:1", "at 11: expected ',', got '> o 0 o '"),
        ("Swizzle<3,3,2> o 0 o 4:1", "the shift must be 3 or more"),
        ("Swizzle<3,-3,3> o 0 o 4:1", "the base must be 0 or more"),
        ("", "at 0: expected a number, it ends there"),
    ):
        with pytest.raises(LayoutError) as caught:
            from_cute(text)
        assert message in caught.value.message, caught.value.message
    with pytest.raises(LayoutError, match="1 names for 2 modes"):
        from_cute("(4,8):(8,1)", ["row"])
    with pytest.raises(LayoutError, match="no input dimension"):
        to_cute(LinearLayout.empty())
