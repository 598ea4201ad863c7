"""CuTe layouts against the definition: the sum of coordinates times strides, then the swizzle."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from weft.layouts import (
    BlockedLayout,
    CuteComposed,
    CuteLayout,
    CuteSwizzle,
    LayoutError,
    LinearLayout,
    NVMMASharedLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    cute_memory,
    from_cute,
    parse_cute,
    to_cute,
)

from .random_layouts import invertible, split


def definition(layout: CuteLayout, index: int) -> int:
    """The offset of a flat index, by the words of CuTe's documentation."""
    total = layout.offset
    for size, stride in layout.leaves():
        total += index % size * stride
        index //= size
    return swizzled(layout.swizzle, total) if layout.swizzle else total


def swizzled(swizzle: CuteSwizzle, total: int) -> int:
    b, m, s = swizzle.bits, swizzle.base, swizzle.shift
    bits = (1 << b) - 1
    yyy = bits << (m + max(0, s))
    return total ^ ((total & yyy) >> s if s >= 0 else (total & yyy) << -s)


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
    layout = parse_cute(text)
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
    layout = parse_cute("(4,(2,8)):(2,(1,8))")
    assert [layout(i, j) for i in (0, 1) for j in range(4)] == [0, 1, 8, 9, 2, 3, 10, 11]
    linear = layout.to_linear(["row", "column"], "byte")
    assert linear.apply(row=3, column=5) == {"byte": layout(3, 5)}
    with pytest.raises(LayoutError, match="3 coordinates for 2 modes"):
        layout(0, 0, 0)


def test_offsets_are_affine() -> None:
    layout = parse_cute("Swizzle<3,0,3> o 64 o (8,8):(8,1)")
    affine = layout.to_affine()
    assert [affine.apply(dim0=i, dim1=j)["offset"] for i in range(8) for j in range(8)] == [
        layout(i, j) for i in range(8) for j in range(8)
    ]
    assert str(layout) == "Swizzle<3,0,3> o 64 o (8,8):(8,1)"
    with pytest.raises(LayoutError, match="has the offset 64"):
        layout.to_linear()
    with pytest.raises(LayoutError, match="the offset at dim0 = 3 is 6, and the xor of what its bits give alone is 2"):
        parse_cute("Swizzle<0,0,0> o 3 o 4:1").to_affine()


def random_layout(rng: random.Random, depth: int = 0) -> Any:
    """Any CuTe layout of up to 64 coordinates: strides of all kinds, swizzles, offsets, layouts of layouts."""
    sizes = [1 << rng.randrange(3) for _ in range(rng.randrange(1, 4))]
    strides = [rng.choice([0, 1, 2, 4, 8, 16, 32, 64, 3, 5, 9, 12, -1, -4]) for _ in sizes]
    plain = CuteLayout(tuple(sizes), tuple(strides))
    swizzle = CuteSwizzle(rng.randrange(3), rng.randrange(3), rng.choice([2, 3, -2])) if rng.random() < 0.4 else None
    offset = rng.choice([0, 0, 1, 3, 4, 7, 32, 100])
    if depth < 2 and rng.random() < 0.4:
        inner = random_layout(rng, depth + 1)
        return CuteComposed(swizzle or plain, offset, inner)
    return CuteLayout(plain.shape, plain.stride, swizzle, offset)


def by_definition(layout: Any, index: int) -> int:
    if isinstance(layout, CuteLayout):
        return definition(layout, index)
    inner = layout.offset + by_definition(layout.inner, index)
    if isinstance(layout.outer, CuteSwizzle):
        return swizzled(layout.outer, inner)
    # the last mode of an outer layout goes on beyond its size
    *leaves, (_, last) = layout.outer.leaves()
    total = layout.outer.offset
    for count, stride in leaves:
        total, inner = total + inner % count * stride, inner // count
    return total + inner * last


def test_exactly_the_affine_ones_are_read() -> None:
    """A layout is refused if and only if its offsets, one by one, are no affine map; else it is that map."""
    kinds = [0, 0, 0]
    for seed in range(800):
        layout = random_layout(random.Random(seed))
        count = 1
        for group in layout.modes():
            for s, _ in group:
                count *= s
        offsets = [by_definition(layout, i) for i in range(count)]
        assert [layout.at(i) for i in range(count)] == offsets
        table = [offsets[0]]
        for bit in range(count.bit_length() - 1):
            table += [x ^ offsets[0] ^ offsets[1 << bit] for x in table]
        is_affine = table == offsets and min(offsets) >= 0
        try:
            affine = layout.to_affine()
        except LayoutError as error:
            assert not is_affine, (layout, error)
            kinds[0] += 1
            continue
        assert is_affine, layout
        flat = affine.linear.flatten_ins()
        assert (flat.table() ^ affine.constant["offset"]).tolist() == offsets, layout
        assert parse_cute(str(layout)).to_affine() == affine
        kinds[1 if affine.is_linear else 2] += 1
        try:
            again = to_cute(affine)
        except LayoutError:
            continue
        assert [parse_cute(again).at(i) for i in range(count)] == offsets, (layout, again)
    assert kinds[0] > 150 and min(kinds[1:]) > 50, kinds


def test_memory_with_padding() -> None:
    """A layout of memory has every element at the offset that CuTe has it at, padding included; else it is refused."""
    kinds = [0, 0, 0]
    for seed in range(250):
        rng = random.Random(seed)
        layout = random_layout(rng, 2)
        if rng.random() < 0.7:
            rows, columns = 1 << rng.randrange(4), 1 << rng.randrange(4)
            more = rng.choice([0, 1, 2, 3, 4, 8])
            layout = CuteLayout((rows, columns), rng.choice([(columns + more, 1), (1, rows + more)]))
        sizes = [1] * len(layout.modes())
        for at, group in enumerate(layout.modes()):
            for s, _ in group:
                sizes[at] *= s
        points = list(itertools.product(*(range(s) for s in sizes)))
        offsets = [layout(*p) for p in points]
        try:
            memory = cute_memory(layout)
        except LayoutError:
            if sorted(offsets) == list(range(len(points))):
                with pytest.raises(LayoutError):
                    layout.to_linear()
            kinds[0] += 1
            continue
        linear = memory if isinstance(memory, LinearLayout) else memory.to_linear(sizes)
        where = linear.invert().sublayout(list(linear.out_dims), ["offset"])
        for point, offset in zip(points, offsets, strict=True):
            found = where.apply({f"dim{i}": x for i, x in enumerate(point)})["offset"]
            assert (found if isinstance(memory, LinearLayout) else memory.address(found)) == offset, layout
        kinds[1 if isinstance(memory, LinearLayout) else 2] += 1
        if not isinstance(memory, LinearLayout):
            try:
                assert [parse_cute(to_cute(memory, sizes))(*p) for p in points] == offsets
            except LayoutError as error:
                assert "a swizzle below its padding" in error.message and layout.swizzle
    assert min(kinds) > 20, kinds


PRINTED = {
    # tensor-layouts 0.3.2: str and repr of Layout, compose(Swizzle, Layout), compose of layouts, Tensor
    "(4, 8) : (8, 1)": "(4,8):(8,1)",
    "Layout((4, 8), (8, 1))": "(4,8):(8,1)",
    "Layout((4, 8))": "(4,8):(1,4)",
    "8 : 1": "8:1",
    "((2, 2), 8) : ((1, 4), 2)": "((2,2),8):((1,4),2)",
    "(8) : (1)": "(8):(1)",
    "(Swizzle(3, 3, 3)) o ((8, 64) : (64, 1))": "Swizzle<3,3,3> o 0 o (8,64):(64,1)",
    "(Swizzle(3, 3, 3)) o {8} o ((8, 64) : (64, 1))": "Swizzle<3,3,3> o 8 o (8,64):(64,1)",
    "ComposedLayout(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)), offset=0)": "Swizzle<3,3,3> o 0 o (8,64):(64,1)",
    "((4, 8) : (8, 1)) o ((8, 4) : (4, 1))": "((4,8):(8,1)) o 0 o ((8,4):(4,1))",
    "Tensor((4, 8) : (8, 1), offset=3)": "Swizzle<0,0,0> o 3 o (4,8):(8,1)",
    "{3} ∘ (4, 8) : (8, 1)": "Swizzle<0,0,0> o 3 o (4,8):(8,1)",
    # CUTLASS in C++, its Python, and pycute
    "Sw<3,4,3> o smem_ptr[16b](unset) o ((_128,_16),_1,_4):((_64,_1),_0,_16)":
        "Swizzle<3,3,3> o 0 o ((128,16),1,4):((64,1),0,16)",
    "Sw<2,4,3> o smem_ptr[4b] o (_8,_128):(_128,_1)": "Swizzle<2,5,3> o 0 o (8,128):(128,1)",
    "S<3,4,3> o 0 o ((64,1),(8,8),(1,4)):((1,0),(64,512),(0,4096))":
        "Swizzle<3,4,3> o 0 o ((64,1),(8,8),(1,4)):((1,0),(64,512),(0,4096))",
    "SW_3_3_3 o 0 o (8, 64):(64, 1)": "Swizzle<3,3,3> o 0 o (8,64):(64,1)",
}  # fmt: skip


@pytest.mark.parametrize("text", PRINTED)
def test_texts_of_other_programs(text: str) -> None:
    assert str(parse_cute(text)) == PRINTED[text] == str(parse_cute(PRINTED[text]))


def test_named_layouts_as_cute() -> None:
    assert to_cute(BlockedLayout([1, 4], [8, 4], [1, 1], [1, 0]), [8, 16]) == "((4,8),4):((32,1),8)"
    for wrong, message in (
        (TensorMemoryLayout([128, 64], 1), "neither in registers nor in shared memory"),
        (SwizzledSharedLayout(1, 1, 1, [1, 0], [[1, 0]]), "has parts in 2 blocks"),
    ):
        with pytest.raises(LayoutError, match=message):
            to_cute(wrong, [128, 64])
    with pytest.raises(LayoutError, match="only together with the shape of a tile"):
        to_cute(SwizzledSharedLayout(1, 1, 1, [1, 0]))


def test_static_integers_and_spaces() -> None:
    plain = parse_cute("Swizzle<3,4,3> o 0 o ((8,4),(64,2)):((64,512),(1,2048))")
    assert parse_cute(" Sw<3,4,3> o _0 o ((_8, _4),(_64,_2)) : ((_64,_512), (_1, _2048)) ") == plain
    assert parse_cute("(8,):(1,)").shape == (8,)


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
    assert str(parse_cute(text)) == text


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
    again = parse_cute(to_cute(layout))
    assert again.to_linear() == layout and parse_cute(str(again)) == again
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
        ("(4,8:(8,1)", "at 2: expected ':', got ',8:(8,1)'"),
        ("(4,8):(8,1) x", "at 12: expected the end, got 'x'"),
        ("(4,8):(?,1)", "at 7: expected a number, got '?,1)'"),
        ("(4,8):(1@0,1@1)", "at 8: expected a stride that is a number, and not one of a coordinate of its own"),
        ("Swizzle(3, 3, 3)", "at 16: expected a layout after it"),
        ("Sw<1,0,3> o smem_ptr[16b] o 8:1", "of addresses it moves bytes within an element of 16 bits"),
        ("Sw<3,4,3> o smem_ptr[6b] o 8:1", "elements of 6 bits"),
        ("ComposedLayout(4:1, offset=1)", "expected an outer and an inner layout"),
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
