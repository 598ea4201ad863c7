"""Layout expressions: what they stand for, and what is said about those that stand for nothing."""

from __future__ import annotations

import pytest

from weft.layouts import (
    AMDMFMALayout,
    AMDWMMALayout,
    BlockedLayout,
    DotOperandLayout,
    LayoutError,
    LinearLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SliceLayout,
    SwizzledSharedLayout,
    from_cute,
)
from weft.view import as_linear, evaluate, parse_layout

BLOCKED = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
TEXT = "BlockedLayout([1,4],[8,4],[4,1],[1,0])"
BLOCKED_IR = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
SHAPE = (32, 16)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, BLOCKED),
        ("BlockedLayout(size_per_thread=(1, 4), threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0])", BLOCKED),
        (f"gl.SliceLayout(1, ttgl.{TEXT})", SliceLayout(1, BLOCKED)),
        (f"SliceLayout(dim=0, parent={TEXT},)", SliceLayout(0, BLOCKED)),
        ("NVMMADistributedLayout([2, 0], [2, 2], [16, 8])", NVMMADistributedLayout([2, 0], [2, 2], [16, 8])),
        ("SwizzledSharedLayout(1, 1, 8, order=[1, 0])  # a comment", SwizzledSharedLayout(1, 1, 8, [1, 0])),
        ("LinearLayout.empty()", LinearLayout.empty()),
        ("LinearLayout.identity_1d(4, 'lane', \"dim0\")", LinearLayout.identity_1d(4, "lane", "dim0")),
        (
            "LinearLayout({'lane': [[1, 0]]}, {'dim0': 2, 'dim1': 2}, require_surjective=False)",
            LinearLayout.from_bases({"lane": [(1, 0)]}, {"dim0": 2, "dim1": 2}, require_surjective=False),
        ),
        (f"{TEXT}.to_linear([64, 16])", BLOCKED.to_linear([64, 16])),
        (f"({TEXT}).invert()", BLOCKED.to_linear(SHAPE).invert()),
        (f"{TEXT}.transpose_outs(['dim1', 'dim0'])", BLOCKED.to_linear(SHAPE).transpose_outs(["dim1", "dim0"])),
        (
            f"{TEXT}.compose(LinearLayout.identity_1d(32, 'dim0', 'x') * LinearLayout.identity_1d(16, 'dim1', 'y'))",
            BLOCKED.to_linear(SHAPE).rename_outs({"dim0": "x", "dim1": "y"}),
        ),
        (f"{TEXT}.rename_ins({{'lane': 'thread'}})", BLOCKED.to_linear(SHAPE).rename_ins({"lane": "thread"})),
        (
            f"LinearLayout.identity_1d(32, 'dim0', 'x') * LinearLayout.identity_1d(16, 'dim1', 'y') @ {TEXT}",
            BLOCKED.to_linear(SHAPE).rename_outs({"dim0": "x", "dim1": "y"}),
        ),
        (f"{BLOCKED_IR}.to_linear([64, 16])  # as IR has it", BLOCKED.to_linear([64, 16])),
        (f"gl.SliceLayout(1, {BLOCKED_IR})", SliceLayout(1, BLOCKED)),
        ("gl.amd.cdna3.AMDMFMALayout(3, [32, 32, 8], True, [2, 2])", AMDMFMALayout(3, [32, 32, 8], True, [2, 2])),
        ("gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)", NVMMASharedLayout(128, 16)),
        (
            f"{TEXT} * LinearLayout.identity_1d(2, 'register', 'dim0')",
            BLOCKED.to_linear(SHAPE) * LinearLayout.identity_1d(2, "register", "dim0"),
        ),
        ("(4,(2,4)):(8,(1,2))", from_cute("(4,(2,4)):(8,(1,2))").invert()),
        ("Swizzle<2,0,3> o 0 o (8,8):(8,1)", from_cute("Swizzle<2,0,3> o 0 o (8,8):(8,1)").invert()),
        ("(8,8):(8,1).flatten_ins()", from_cute("(8,8):(8,1)").flatten_ins()),
        ("8:2.flatten_outs()", from_cute("8:2")),
        ("(4,8):(9,1)", PaddedSharedLayout([[8, 1]], [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], [], [4, 8])),
        ("4:2", PaddedSharedLayout([[1, 1]], [[1], [2]], [], [4])),
        ("(Swizzle(2, 0, 3)) o ((8, 8) : (8, 1))", from_cute("Swizzle<2,0,3> o 0 o (8,8):(8,1)").invert()),
        ("Layout((8, 8), (8, 1)).flatten_ins()", from_cute("(8,8):(8,1)").flatten_ins()),
        (
            "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
            from_cute("Swizzle<3,3,3> o 0 o (8,64):(64,1)").invert(),
        ),
        ("{'lane': [[1], [2]]}", LinearLayout.from_bases({"lane": [(1,), (2,)]}, ["dim0"])),
        ("gl.amd.AMDMFMALayout(3, [32, 32, 8], True, [2, 2])", AMDMFMALayout(3, [32, 32, 8], True, [2, 2])),
        ("amd.AMDWMMALayout(version=2, transposed=False, warps_per_cta=[4, 1])", AMDWMMALayout(2, False, [4, 1])),
        (
            " #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = true}>",
            AMDMFMALayout(4, [16, 16, 32], True, [2, 2]),
        ),
        (
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_wmma<{version = 2, isTranspose = false, warpsPerCTA = [1, 2]}>,"
            " kWidth = 8}>",
            DotOperandLayout(1, AMDWMMALayout(2, False, [1, 2]), 8),
        ),
    ],
)
def test_value(text: str, expected: object) -> None:
    assert parse_layout(text, SHAPE) == expected


def test_names_of_the_caller() -> None:
    linear = BLOCKED.to_linear(SHAPE)
    assert evaluate("A.invert_and_compose(outer=A)", SHAPE, {"A": BLOCKED}) == linear.invert_and_compose(linear)


def test_repr_is_an_expression() -> None:
    """What Python prints of a layout can be typed."""
    for layout in (BLOCKED, SliceLayout(0, BLOCKED), BLOCKED.to_linear(SHAPE), BLOCKED.to_linear((8, 8))):
        assert parse_layout(repr(layout), SHAPE) == layout


ERRORS = {
    "BlockedLayout([1,4],[8,4],[4,1])": """\
<layout>:1:1: error: BlockedLayout: missing a required argument: 'order'
    1 | BlockedLayout([1,4],[8,4],[4,1])
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: the parameters are (size_per_thread, threads_per_warp, warps_per_cta, order, cga_layout)""",
    "SliceLayout(1, BlockedLayout([1,3],[8,4],[4,1],[1,0]))": """\
<layout>:1:33: error: BlockedLayout: the entries of size_per_thread must be powers of two, got 3 in [1, 3]
    1 | SliceLayout(1, BlockedLayout([1,3],[8,4],[4,1],[1,0]))
      |                                 ^
hint: the nearest are 2 and 4""",
    "LinearLayout({'register': [[1]], 'lane': [[2], [8]]}, {'dim0': 4})": """\
<layout>:1:48: error: basis 2 of lane is (8,): its coordinate 8 of dim0 is outside of 0 .. 3
    1 | LinearLayout({'register': [[1]], 'lane': [[2], [8]]}, {'dim0': 4})
      |                                                ^^^
hint: a right one, for comparison: LinearLayout({'register': [[0, 1]], 'lane': [[1, 0], [2, 0]]}, {'dim0': 4, \
'dim1': 2})""",
    "LinearLayout({'lane': [[1]]}, {'dim0': 3})": """\
<layout>:1:40: error: the size of the output dimension dim0 must be a power of two, got 3
    1 | LinearLayout({'lane': [[1]]}, {'dim0': 3})
      |                                        ^
hint: a right one, for comparison: LinearLayout({'register': [[0, 1]], 'lane': [[1, 0], [2, 0]]}, {'dim0': 4, \
'dim1': 2})""",
    "SharedLinearLayout([[0, 1], [1, 0], [0]])": """\
<layout>:1:37: error: SharedLinearLayout: the basis [0] of offset_bases has 1 coordinates, expected 2, one for each \
dimension
    1 | SharedLinearLayout([[0, 1], [1, 0], [0]])
      |                                     ^^^
hint: a right one, for comparison: SharedLinearLayout(offset_bases=[[0, 1], [0, 2], [1, 0], [2, 0]])""",
    "LinearLayout.identity_1d(2, 'lane', 'dim0').sublayout(['lane', 'thread'], ['dim0'])": """\
<layout>:1:64: error: the layout has no input dimension 'thread'; it has (lane)
    1 | LinearLayout.identity_1d(2, 'lane', 'dim0').sublayout(['lane', 'thread'], ['dim0'])
      |                                                                ^^^^^^^^
hint: the parameters are (ins, outs)""",
    "SliceLayout(1, #ttg.blockd<{sizePerThread = [1, 4]}>)": """\
<layout>:1:16: error: there is no layout #ttg.blockd
    1 | SliceLayout(1, #ttg.blockd<{sizePerThread = [1, 4]}>)
      |                ^^^^^^^^^^^
hint: did you mean #ttg.blocked?""",
    "#ttg.amd_mfma<{version = 3}>": """\
<layout>:1:1: error: #ttg.amd_mfma: 'warpsPerCTA' is missing
    1 | #ttg.amd_mfma<{version = 3}>
      | ^^^^^^^^^^^^^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "SwizzledSharedLayout(2, max_phase=3, per_phase=2, order=[1, 0])": """\
<layout>:1:35: error: SwizzledSharedLayout: max_phase must be a power of two, got 3
    1 | SwizzledSharedLayout(2, max_phase=3, per_phase=2, order=[1, 0])
      |                                   ^
hint: the nearest are 2 and 4""",
    "AMDMFMALayout(3, [16, 16, 16], True, [1, 1], tiles=[2, 2])": """\
<layout>:1:52: error: AMDMFMALayout: got an unexpected keyword argument 'tiles'
    1 | AMDMFMALayout(3, [16, 16, 16], True, [1, 1], tiles=[2, 2])
      |                                                    ^^^^^^
hint: the parameters are (version, instr_shape, transposed, warps_per_cta, element_bitwidth, tiles_per_warp, \
cga_layout)""",
    "LinearLayout.empty().compose(3)": """\
<layout>:1:30: error: compose: outer must be a layout, got 3
    1 | LinearLayout.empty().compose(3)
      |                              ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "LinearLayout({'lane': 5}, ['dim0'])": """\
<layout>:1:14: error: LinearLayout: bases must be a mapping of dimensions to bases, as {'lane': [[0, 1], [1, 0]]}, \
got {'lane': 5}
    1 | LinearLayout({'lane': 5}, ['dim0'])
      |              ^^^^^^^^^^^
hint: a right one, for comparison: LinearLayout({'register': [[0, 1]], 'lane': [[1, 0], [2, 0]]}, {'dim0': 4, \
'dim1': 2})""",
    "{'lane': [[1]], 'lane': [[2]]}": """\
<layout>:1:17: error: the name lane is given twice
    1 | {'lane': [[1]], 'lane': [[2]]}
      |                 ^^^^^^
hint: drop or rename one of them""",
    "BlockLayout([1])": """\
<layout>:1:1: error: there is no layout or function BlockLayout
    1 | BlockLayout([1])
      | ^^^^^^^^^^^
hint: did you mean BlockedLayout?""",
    "SliceLayout(1, BlockedLayout([1,4]": """\
<layout>:1:35: error: expected `,` or `)`, found the end
    1 | SliceLayout(1, BlockedLayout([1,4]
      |                                   ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "[1, 2": """\
<layout>:1:6: error: expected `,` or `]`, found the end
    1 | [1, 2
      |      ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "LinearLayout.empty() + 1": """\
<layout>:1:22: error: '+' is not allowed in a layout expression
    1 | LinearLayout.empty() + 1
      |                      ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "LinearLayout.empty() 1": """\
<layout>:1:22: error: expected the end of the expression, `*`, `@` or `.`, found `1`
    1 | LinearLayout.empty() 1
      |                      ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "LinearLayout.empty().columns": """\
<layout>:1:1: error: a method has to be called: add `()` with its arguments
    1 | LinearLayout.empty().columns
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "LinearLayout.zeros_1d(2,'lane','dim0').invert()": """\
<layout>:1:1: error: the layout has no inverse, it is not injective: the bits 0x1 of lane hold copies
    1 | LinearLayout.zeros_1d(2,'lane','dim0').invert()
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pseudoinvert() chooses one source of each""",
    "5": """\
<layout>:1:1: error: a layout is needed here, this is a number
    1 | 5
      | ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "BlockedLayout": """\
<layout>:1:1: error: BlockedLayout has to be called: add `(...)` with its parameters
    1 | BlockedLayout
      | ^^^^^^^^^^^^^
hint: BlockedLayout(size_per_thread=[1, 8], threads_per_warp=[4, 8], warps_per_cta=[4, 1], order=[1, 0])""",
    "LinearLayout.identity_1d(size=2, 'lane')": """\
<layout>:1:34: error: an argument without a name after one with a name
    1 | LinearLayout.identity_1d(size=2, 'lane')
      |                                  ^^^^^^
hint: name it too, or move it before those with names""",
    "(4,8):(5,1)": """\
<layout>:1:1: error: (4,8):(5,1): (1, 0) and (0, 5) have one offset, 5, so that it is no layout of memory
    1 | (4,8):(5,1)
      | ^^^^^^^^^^^
hint: from_cute gives the map from coordinates to offsets; in an expression, flatten_outs() after it does""",
    "(4,8):(9,1).invert()": """\
<layout>:1:1: error: (4,8):(9,1): dim1 = 1 adds 1 and dim0 = 1 adds 9 to the offset; the sum carries, 9 + 1 = 10, \
which no xor does (8)
    1 | (4,8):(9,1).invert()
      | ^^^^^^^^^^^
hint: only layouts in which every bit of the offset comes from one bit of a coordinate are linear over F2; \
overlapping strides are not, nor is padding, which weft.layouts.cute_memory reads""",
    "Swizzle<3,3> o 8:1": """\
<layout>:1:12: error: expected ',', found `>`
    1 | Swizzle<3,3> o 8:1
      |            ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
    "BlockedLayout([],": """\
<layout>:1:18: error: expected a layout, a number, a string or a list, found the end
    1 | BlockedLayout([],
      |                  ^
hint: write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)""",
}


@pytest.mark.parametrize("text", ERRORS)
def test_error(text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        parse_layout(text, SHAPE)
    assert str(caught.value) == ERRORS[text]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "LinearLayout.__class__",
        "LinearLayout.empty().__reduce__()",
        "LinearLayout._make((), (), ())",
        "gl.LinearLayout.empty().apply.__globals__",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "LinearLayout.empty().apply(**{})",
        "(" * 500 + ")" * 500,
        "LinearLayout.identity_1d(" + "9" * 5000 + ", 'lane', 'dim0')",
        "A" * 30_000,
        "BlockedLayout([1, '4'], {'a': 1}, None, True)",
        "SliceLayout({}, [])",
        "LinearLayout([], 5)",
        "LinearLayout({'lane': 5}, ['dim0'])",
        "LinearLayout({'lane': [['a']]}, ['dim0'])",
        "LinearLayout.empty().compose(3)",
        "LinearLayout.empty().reshape_ins(3)",
        "LinearLayout.identity_1d(2, 'lane', 'dim0').transpose_ins(3)",
        "LinearLayout.identity_1d('2', 'lane', 'dim0')",
        "LinearLayout.identity_1d(2, 3, 4)",
        "{'lane': []}",
        "{'lane': [[1, 'x']]}",
        "{'lane': [[0, 1], 0]}",
        "{'lane': [[None, 1]], 'warp': 3}",
    ],
)
def test_nothing_but_layout_errors(text: str) -> None:
    """Nothing that is typed is run, and nothing that is wrong makes another exception."""
    with pytest.raises(LayoutError):
        as_linear(parse_layout(text, SHAPE), SHAPE)
