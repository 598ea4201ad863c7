"""Named layouts as values: their checks, text and identity, and those for which there is no stored data."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import pickle
import random

import numpy as np
import pytest

import weft.layouts as wl
from weft.base import Unsupported
from weft.layouts import (
    AMDMFMALayout,
    AMDWMMALayout,
    AutoLayout,
    BlockedLayout,
    CoalescedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    IntelDPASLayout,
    LayoutError,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    make_cga_layout,
)

from .stored import OWN, lines, named

BLOCKED = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
MMA = NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
WGMMA = NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
WGMMAS = NVMMADistributedLayout([3, 0], [4, 1, 1], [16, 64, 16])
MFMA = AMDMFMALayout(3, [32, 32, 8], True, [2, 2])
WMMA = AMDWMMALayout(2, False, [2, 2])

BAD = [
    (lambda: BlockedLayout([1, 3], [8, 4], [4, 1], [1, 0]), "size_per_thread must be powers of two, got 3"),
    (lambda: BlockedLayout([1, 4], [32], [4, 1], [1, 0]), "threads_per_warp has 1 entries [32], expected 2"),
    (lambda: BlockedLayout([], [], [], []), "size_per_thread is empty"),
    (
        lambda: BlockedLayout([1, 4], [8, 4], [4, 1], [1, 1]),
        "order must have each of the dimensions 0, 1 once, got [1, 1]",
    ),
    (lambda: BlockedLayout(4, [8, 4], [4, 1], [1, 0]), "size_per_thread must be a list, got 4"),
    (lambda: BlockedLayout([1, 4], [8, 4], [4, True], [1, 0]), "powers of two, got True"),
    (lambda: BlockedLayout([1], [32], [4], [0], [[2]]), "leaves parts of the tile without a block"),
    (lambda: BlockedLayout([1], [32], [4], [0], [[1, 0]]), "has 2 coordinates, expected 1"),
    (lambda: BlockedLayout([1], [32], [4], [0], [[-1]]), "must be integers from 0 on, got [-1]"),
    (lambda: BLOCKED.to_linear([128]), "a layout of rank 2 for a tile of rank 1"),
    (lambda: BLOCKED.to_linear([128, 48]), "must be powers of two, got 48"),
    (lambda: SliceLayout(2, BLOCKED), "dim must be an integer from 0 to 1, got 2"),
    (lambda: SliceLayout(0, BlockedLayout([1], [32], [4], [0])), "a slice of it would have no dimension"),
    (lambda: SliceLayout(0, "blocked"), "parent must be a distributed layout, got 'blocked'"),
    (lambda: DistributedLinearLayout([[1, 0]], [], [], [], [2, 2]), "nothing maps to dim1 = 1"),
    (lambda: DistributedLinearLayout([[4, 0]], [], [], [], [2, 2]), "outside of 0 .. 1"),
    (lambda: DotOperandLayout(2, MMA, 2), "operand_index must be an integer from 0 to 1, got 2"),
    (lambda: DotOperandLayout(0, MMA, 0), "k_width is 0"),
    (lambda: DotOperandLayout(0, MMA, 3), "k_width must be a power of two, got 3"),
    (lambda: DotOperandLayout(0, BLOCKED, 2), "k_width must be 0"),
    (lambda: DotOperandLayout(1, WGMMA, 2), "operand 1 of wgmma is in shared memory"),
    (lambda: WGMMAS.to_linear([4, 64, 64]), "the rank of wgmma's result must be 2, got 3"),
    (lambda: NVMMADistributedLayout([3, 0], [4, 1, 1], [16]), "for rank 3 must be [16, N, K]"),
    (lambda: DotOperandLayout(0, SliceLayout(0, BLOCKED), 0), "no product has a result with the layout"),
    (lambda: DotOperandLayout(0, WMMA, 32), "must be one of 4, 8, 16, got 32"),
    (lambda: NVMMADistributedLayout([5, 0], [4, 1], [128, 64, 16]), "version must be [2, 0] (mma.sync) or [3, 0]"),
    (lambda: NVMMADistributedLayout([2, 0], [4, 1], [16, 8, 16]), "instr_shape of version [2, 0] for rank 2"),
    (lambda: NVMMADistributedLayout([3, 0], [4], [16, 8, 16]), "warps_per_cta must have 2 entries"),
    (lambda: AMDMFMALayout(3, [8, 8, 8], True, [1, 1]), "M x N, one of 32x32, 16x16, 64x4, 4x64, got [8, 8, 8]"),
    (lambda: AMDMFMALayout(5, [32, 32, 8], True, [1, 1]), "version must be an integer from 1 to 4, got 5"),
    (lambda: AMDMFMALayout(3, [64, 4, 4], False, [1, 1]), "is always transposed"),
    (lambda: AMDMFMALayout(3, [32, 32, 8], 1, [1, 1]), "transposed must be True or False, got 1"),
    (lambda: AMDMFMALayout(3, [32, 32, 8], True, [1, 1], 16), "element_bitwidth must be one of 32, 64, got 16"),
    (lambda: AMDWMMALayout(3, True, [1, 1]), "[16, 16, K] with K one of 4, 32, 64, 128, got [16, 16, 16]"),
    (lambda: IntelDPASLayout(8, 8, 16, 2, [1, 1], [1, 1], 8), "threads_per_warp must be execution_size (16) or more"),
    (lambda: DotOperandLayout(0, IntelDPASLayout(8, 8, 16, 2, [1, 1], [1, 1], 16), 2), "must be 1, got 2"),
    (lambda: SwizzledSharedLayout(3, 1, 1, [0]), "vec must be a power of two, got 3"),
    (lambda: NVMMASharedLayout(96, 16), "swizzle_byte_width must be one of 0, 32, 64, 128, got 96"),
    (lambda: NVMMASharedLayout(128, 4), "element_bitwidth must be one of 8, 16, 32, 64, got 4"),
    (lambda: NVMMASharedLayout(128, 16, 1), "a tile of rank 1 has no rows to swizzle"),
    (lambda: NVMMASharedLayout(128, 16).to_linear([64, 32]), "has 64 elements of 16 bits, and dimension 1 of the tile"),
    (lambda: NVMMASharedLayout(128, 16).to_linear([4, 64]), "has 4 rows; a swizzle needs 8 or more"),
    (lambda: SharedLinearLayout([]), "offset_bases is empty"),
    (lambda: SharedLinearLayout([[0, 2]]).to_linear([1, 4]), "nothing maps to"),
    (
        lambda: SharedLinearLayout([[0, 1], [1, 0]]).to_linear([2, 1]),
        "for a tile of [2, 2], too big for one of [2, 1]: the bases [0, 1] lead outside of it",
    ),
    (lambda: SharedLinearLayout([[0, 1]], alignment=24), "alignment must be a power of two, got 24"),
    (lambda: PaddedSharedLayout([], [[1]], [], [2]), "interval_padding_pairs is empty"),
    (lambda: PaddedSharedLayout([[2, 1], [2, 2]], [[1]], [], [2]), "an interval is given twice"),
    (lambda: PaddedSharedLayout([[2, 1]], [[1]], [], [4]), "nothing maps to dim0 = 2"),
    (lambda: PaddedSharedLayout([[2, 1]], [[1]], [], [2]).to_linear([4]), "for a tile of shape [2], got [4]"),
    (lambda: TensorMemoryLayout((32, 64), 1), "the number of rows in block must be one of 64, 128, got 32"),
    (lambda: TensorMemoryLayout((64, 1024), 1), "tensor memory has 512"),
    (lambda: TensorMemoryLayout((128, 64), 1).to_linear([64, 64]), "a block has 128 rows"),
    (lambda: TensorMemoryLayout((64, 64), 1, (4, 1), True).to_linear([256, 64]), "must split 128 rows among 2 blocks"),
    (lambda: TensorMemoryScalesLayout((3, 1)), "cta_split_num must be powers of two, got 3"),
    (lambda: make_cga_layout([2, 1], [2, 2], [1, 0]), "is to be split 2 times among 1 blocks"),
    (lambda: wl.get_tmem_reg_layout(32, [128, 64], TensorMemoryLayout((128, 64), 1), 2), "must be 4 or more"),
    (lambda: wl.get_tmem_reg_layout(16, [128, 32], TensorMemoryLayout((128, 16), 4), 4), "col_stride is at most 2"),
    (lambda: wl.get_tmem_reg_layout(32, [256, 512], TensorMemoryLayout((128, 512), 1), 4), "takes 1024 columns"),
    (
        lambda: wl.mfma_scale_layout(DotOperandLayout(0, WMMA, 8), [16, 4]),
        "an operand of a 16x16 or 32x32 AMDMFMALayout",
    ),
    (lambda: wl.wmma_scale_layout(DotOperandLayout(0, WMMA, 8), [16, 4]), "version 3 and rank 2"),
    (lambda: wl.natural_k_width(12), "element_bits must be a power of two, got 12"),
    (lambda: AutoLayout().to_linear([4]), "AutoLayout is a placeholder"),
    (lambda: SliceLayout(0, CoalescedLayout()), "CoalescedLayout is a placeholder"),
    (lambda: DotOperandLayout(0, AutoLayout(), 2), "AutoLayout is a placeholder"),
]


@pytest.mark.parametrize(("make", "text"), BAD, ids=[text[:40] for _, text in BAD])
def test_bad_parameters(make, text) -> None:
    with pytest.raises(LayoutError) as caught:
        make()
    assert text in caught.value.message


GARBAGE = (
    None,
    3,
    -1,
    2.5,
    True,
    "x",
    [],
    [[]],
    [None],
    [1, 2.5],
    [-1, 1],
    [[1], 2],
    [[0, 1], [0]],
    {},
    object(),
    BLOCKED,
)


def test_any_bad_parameter_is_a_layout_error() -> None:
    """No other exception, whatever a parameter is, and whatever shape the layout is then used for."""
    good = [BLOCKED, SliceLayout(1, BLOCKED), MMA, WGMMA, MFMA, WMMA, DotOperandLayout(0, MMA, 2)]
    good += [IntelDPASLayout(8, 8, 16, 2, [1, 1], [1, 1], 16), SwizzledSharedLayout(8, 1, 8, [1, 0])]
    good += [NVMMASharedLayout(128, 16), SharedLinearLayout([[0, 1], [1, 0]]), TensorMemoryLayout((64, 8), 1)]
    good += [DistributedLinearLayout([[0, 1]], [[1, 0]], [], [], [2, 2]), TensorMemoryScalesLayout()]
    good += [PaddedSharedLayout.with_identity_for([[2, 1]], [2, 2], [1, 0])]
    refused = 0
    for layout in good:
        fields = {f.name: getattr(layout, f.name) for f in dataclasses.fields(layout)}
        for name, value in itertools.product(fields, GARBAGE):
            try:
                changed = type(layout)(**{**fields, name: value})
            except LayoutError as error:
                assert type(layout).__name__ in error.message or name == "parent", error.message
                refused += 1
                continue
            for shape in ([64, 64], [2, 2], [128, 1], [64], [0, 4], [4.0, 4], 4, None):
                with contextlib.suppress(LayoutError, Unsupported):
                    changed.to_linear(shape)
    assert refused > 900


def test_text_makes_the_layout_again() -> None:
    for case in lines(OWN / "zoo.jsonl"):
        layout = named(case["layout"])
        again = eval(repr(layout), vars(wl))
        assert again == layout and hash(again) == hash(layout) and repr(again) == repr(layout)
    assert repr(BLOCKED) == "BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])"
    assert repr(TensorMemoryLayout((64, 8), 1, two_ctas=True)) == "TensorMemoryLayout([64, 8], 1, two_ctas=True)"
    assert repr(AutoLayout()) == "AutoLayout()"


def test_lists_and_tuples_are_the_same() -> None:
    assert BlockedLayout((1, 4), (8, 4), (4, 1), (1, 0), ()) == BLOCKED
    assert BlockedLayout([1, 4], [8, 4], [4, 1], np.array([1, 0])) in {BLOCKED}
    assert AMDMFMALayout(3, [32, 32, 8], True, [2, 2], 32, [1, 1]) == MFMA
    assert NVMMASharedLayout(128, 16, 2, False, False, None) == NVMMASharedLayout(128, 16)


def test_fields_equal_lists() -> None:
    """As in Gluon, where they are lists; and have a hash all the same."""
    assert BLOCKED.order == [1, 0] == BLOCKED.order == (1, 0) and not BLOCKED.order != [1, 0]
    assert BLOCKED.order != [0, 1] and BLOCKED.order != [1, 0, 2] and BLOCKED.order != 10
    linear = DistributedLinearLayout([[0, 1]], [[0, 2], [1, 0]], [], [], [2, 4])
    assert linear.reg_bases == [[0, 1]] and linear.lane_bases == [(0, 2), [1, 0]] and linear.warp_bases == []
    assert {BLOCKED.order: 1}[1, 0] == 1 and copy.deepcopy(BLOCKED.order) == pickle.loads(pickle.dumps(BLOCKED.order))


def test_values() -> None:
    for layout in (BLOCKED, SliceLayout(1, DotOperandLayout(0, MMA, 2)), AutoLayout()):
        assert pickle.loads(pickle.dumps(layout)) == layout == copy.deepcopy(layout)
    with pytest.raises(AttributeError):
        BLOCKED.order = (0, 1)
    assert BLOCKED.to_linear([64, 64]) is BLOCKED.to_linear((64, 64))
    assert [x.rank for x in (BLOCKED, SliceLayout(0, BLOCKED), MMA, DotOperandLayout(0, MMA, 2))] == [2, 1, 2, 2]


def test_cluster_parts() -> None:
    parent = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0], [[1, 0], [0, 1]])
    assert SliceLayout(0, parent).cga_layout == ((0,), (1,))
    assert DotOperandLayout(0, parent, 0).cga_layout == ((1, 0), (0, 0))
    assert DotOperandLayout(1, parent, 0).cga_layout == ((0, 0), (0, 1))
    layout = DistributedLinearLayout([[0, 1], [1, 0]], [], [], [[4, 0], [2, 0], [0, 2]], [8, 4])
    assert layout.cga_layout == ((2, 0), (1, 0), (0, 1))
    assert make_cga_layout([2, 4], [2, 2], [1, 0]) == ((0, 1), (0, 0), (1, 0))


def test_default_swizzle() -> None:
    make = NVMMASharedLayout.get_default_for
    assert make([64, 64], 16) == NVMMASharedLayout(128, 16)
    assert make([64, 16], 16).swizzle_byte_width == 32
    assert make([64, 64], 16, cga_layout=[[0, 1]]) == NVMMASharedLayout(64, 16, cga_layout=[[0, 1]])
    assert make([32, 128], 8, transposed=True) == NVMMASharedLayout(32, 8, transposed=True)
    assert make([4, 64], 16).swizzle_byte_width == 0
    assert make([64], 16) == NVMMASharedLayout(0, 16, 1)
    assert make([16, 32], 8, fp4_padded=True).swizzle_byte_width == 64


class Half:
    primitive_bitwidth = 16


def test_element_types_or_their_widths() -> None:
    assert NVMMASharedLayout.get_default_for([64, 64], Half) == NVMMASharedLayout.get_default_for([64, 64], dtype=16)
    memory = TensorMemoryLayout((128, 64), 1)
    assert wl.get_tmem_reg_layout(Half, [128, 64], memory, 4) == wl.get_tmem_reg_layout(16, [128, 64], memory, 4)


LATER = {
    "AMDWMMALayout": ["warp_bases", "reg_bases"],
    "TensorMemoryLayout": ["cga_layout", "fp4_padded"],
    "TensorMemoryScalesLayout": ["block_rep_order", "cga_layout"],
}
"""Parameters that layouts have since Triton 3.7 or later."""


def test_the_parameters_are_gluons() -> None:
    triton = pytest.importorskip("triton", minversion="3.6", reason="compares with Triton")
    later = LATER if triton.__version__.startswith("3.6.") else {}
    gluon = pytest.importorskip("triton.experimental.gluon.language")
    blackwell = pytest.importorskip("triton.experimental.gluon.language.nvidia.blackwell")
    amd = pytest.importorskip("triton.experimental.gluon.language.amd")
    compared = 0
    for name, cls in vars(wl).items():
        theirs = next((vars(m)[name] for m in (gluon, blackwell, amd) if name in vars(m)), None)
        if not isinstance(cls, type) or not dataclasses.is_dataclass(theirs):
            continue
        required = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING]
        expected = [
            f.name
            for f in dataclasses.fields(theirs)
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        ours = [f.name for f in dataclasses.fields(cls)]
        assert {*later.get(name, ())} <= {*ours} - {f.name for f in dataclasses.fields(theirs)}, name
        ours = [parameter for parameter in ours if parameter not in later.get(name, ())]
        assert ours == [f.name for f in dataclasses.fields(theirs)], name
        assert required == expected, name
        compared += 1
    assert compared == 15


def test_padded_addresses() -> None:
    layout = PaddedSharedLayout.with_identity_for([[2, 1], [4, 2]], [16], [0])
    places = layout.address(np.arange(16))
    assert places[:8].tolist() == [0, 1, 3, 4, 8, 9, 11, 12]  # e0 e1 p e2 e3 p p p e4 e5 p e6 e7
    assert [layout.address(i) for i in range(16)] == places.tolist()
    assert layout.size == places[-1] + 1
    assert PaddedSharedLayout.with_identity_for([[64, 8]], [4, 8], [0, 1]).to_linear([4, 8]).basis("offset", 0) == (
        1,
        0,
    )


def dpas_result(m: int, n: int, size: int, threads: int) -> tuple[int, int]:
    """(lane, register) of an element of the result: row after row over the lanes."""
    at = m * size + n
    return at % threads, at // threads


@pytest.mark.parametrize(("opc", "threads"), [(1, 16), (2, 16), (4, 16), (1, 32), (2, 32), (4, 32)])
def test_dpas_instruction(opc: int, threads: int) -> None:
    """One instruction, against the definition: 32 bits of B, 16 of A (or one element) at a time, row by row."""
    layout = IntelDPASLayout(8, 8, 16, opc, [1, 1], [1, 1], threads)
    result = layout.to_linear([8, 16])
    width_a, depth = max(1, opc // 2), 8 * opc
    a = DotOperandLayout(0, layout, width_a).to_linear([8, depth])
    b = DotOperandLayout(1, layout, opc).to_linear([depth, 16])
    for m, n in itertools.product(range(8), range(16)):
        lane, register = dpas_result(m, n, 16, threads)
        assert result.apply(register=register, lane=lane, warp=0, block=0) == {"dim0": m, "dim1": n}
    for m, k in itertools.product(range(8), range(depth)):
        lane, register = dpas_result(m, k // width_a, depth // width_a, threads)
        place = {"register": register * width_a + k % width_a, "lane": lane, "warp": 0, "block": 0}
        assert a.apply(place) == {"dim0": m, "dim1": k}
    for k, n in itertools.product(range(depth), range(16)):
        lane, register = dpas_result(k // opc, n, 16, threads)
        place = {"register": register * opc + k % opc, "lane": lane, "warp": 0, "block": 0}
        assert b.apply(place) == {"dim0": k, "dim1": n}


def test_dpas_clusters_warps_and_repetitions() -> None:
    layout = IntelDPASLayout(8, 8, 16, 2, [2, 2], [2, 2], 32)
    result = layout.to_linear([128, 128]).bases
    assert result["register"] == ((2, 0), (4, 0), (0, 16), (8, 0), (0, 64), (32, 0), (64, 0))
    assert result["warp"] == ((0, 32), (16, 0))
    a = DotOperandLayout(0, IntelDPASLayout(8, 8, 16, 2, [2, 2], [4, 2], 32), 1).to_linear([64, 64]).bases
    assert a["register"] == ((2, 0), (4, 0), (8, 0), (16, 0), (0, 16), (0, 32)) and a["warp"] == ((0, 0), (32, 0))
    b = DotOperandLayout(1, IntelDPASLayout(8, 8, 16, 2, [2, 2], [4, 2], 32), 2).to_linear([64, 64]).bases
    assert b["register"] == ((1, 0), (4, 0), (8, 0), (0, 16), (16, 0), (32, 0)) and b["warp"] == ((0, 32), (0, 0))


def test_operands_of_products_meet() -> None:
    """Where a warp has a row of the result it has that row of operand 0, and likewise columns of operand 1."""
    rng = random.Random(1)
    for parent, k_width in ((MMA, 2), (MMA, 4), (MFMA, 8), (WMMA, 8), (BLOCKED, 0)):
        m, n, k = (1 << rng.randrange(5, 8) for _ in range(3))
        result = parent.to_linear([m, n])
        for index, dim, shape in ((0, "dim0", [m, k]), (1, "dim1", [k, n])):
            operand = DotOperandLayout(index, parent, k_width).to_linear(shape)
            for warp in range(4):
                rows = []
                for layout in (result, operand):
                    registers, lanes = np.meshgrid(*(np.arange(layout.in_dims[d]) for d in ("register", "lane")))
                    rows.append(set(layout.apply(register=registers, lane=lanes, warp=warp, block=0)[dim].flat))
                assert rows[0] == rows[1], (parent, index, warp)


def test_operands_in_registers_have_a_batch_though_wgmma_has_none() -> None:
    bases = DotOperandLayout(0, WGMMAS, 2).to_linear([4, 64, 64]).bases
    assert bases["warp"] == ((1, 0, 0), (2, 0, 0))
    assert bases["lane"] == ((0, 0, 2), (0, 0, 4), (0, 1, 0), (0, 2, 0), (0, 4, 0))
    sliced = SliceLayout(1, DotOperandLayout(0, WGMMAS, 2)).to_linear([64, 64]).bases
    assert sliced["warp"] == ((1, 0), (2, 0)) and sliced["lane"] == ((0, 2), (0, 4), (0, 0), (0, 0), (0, 0))
