"""What is no argument of a function on layouts is refused in words, whatever it is."""

from __future__ import annotations

import pytest

from weft.layouts import (
    BlockedLayout,
    LayoutError,
    LinearLayout,
    SwizzledSharedLayout,
    bank_conflicts,
    describe,
    infer,
    wavefronts,
)
from weft.layouts.plan import plan_conversion, plan_gather, plan_local_access, plan_reduction, vector_width

ROWS = BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
COLUMNS = BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1])
SHARED = SwizzledSharedLayout(8, 1, 8, [1, 0])
SHAPE = (64, 64)
A = LinearLayout.from_bases({"register": [(0, 1), (0, 2)], "lane": [(1, 0), (2, 0)]}, {"dim0": 4, "dim1": 4})

CASES = {
    "bits 3": (lambda: plan_conversion(ROWS, COLUMNS, SHAPE, 3), "elements have 1, 2, 4, 8, 16, 32, 64 or 128 bits"),
    "bits True": (lambda: plan_reduction(ROWS, SHAPE, 0, True), "elements have .* bits, got True"),
    "bits 0": (lambda: plan_gather(ROWS, ROWS, SHAPE, SHAPE, 0, 0), "elements have .* bits, got 0"),
    "bits -8": (lambda: plan_local_access(ROWS, SHARED, SHAPE, -8), "elements have .* bits, got -8"),
    "bits of a vector": (lambda: vector_width(ROWS, SHAPE, 24), "elements have .* bits, got 24"),
    "bits of conflicts": (lambda: bank_conflicts(ROWS, SHARED, SHAPE, 1.5), r"elements have .* bits, got 1\.5"),
    "no layout": (lambda: plan_conversion(7, COLUMNS, SHAPE, 16), "the source layout must be a layout, got 7"),
    "no shared layout": (
        lambda: plan_local_access(ROWS, None, SHAPE, 16),
        "the shared layout must be a layout, got None",
    ),
    "no registers": (lambda: wavefronts("rows", SHARED, SHAPE, 16), "the layout must be a layout, got 'rows'"),
    "shape": (
        lambda: plan_conversion(ROWS, COLUMNS, 64, 16),
        "the source must be a list of sizes",
    ),
    "size": (lambda: plan_conversion(ROWS, COLUMNS, (64, 0), 16), "sizes from 1 on, got 0 in it"),
    "target": (lambda: plan_conversion(ROWS, COLUMNS, SHAPE, 16, 80), "the planner knows no machine 80"),
    "axis": (lambda: plan_reduction(ROWS, SHAPE, 2, 16), "axis must be from 0 to 1, got 2"),
    "axis of a gather": (lambda: plan_gather(ROWS, ROWS, SHAPE, SHAPE, -1, 16), "axis must be from 0 to 1, got -1"),
    "axis of a word": (lambda: infer.reduce_result(A, "dim0"), "reduce: the axis must be from -2 to 1, got 'dim0'"),
    "order": (lambda: vector_width(ROWS, SHAPE, 16, [0, 0]), r"order must have each of .* 0 to 1 once, got \[0, 0\]"),
    "order beyond": (lambda: vector_width(ROWS, SHAPE, 16, [0, 2]), "each of order must be from 0 to 1, got 2"),
    "too wide": (lambda: vector_width(ROWS, SHAPE, 64, most_bits=32), "most_bits is 32, less than an element of 64"),
    "trans": (lambda: infer.trans_result(A, [0, 1, 2]), r"order must have each of 2 dimensions once, got \[0, 1, 2\]"),
    "reshape": (lambda: infer.reshape_result(A, "ab"), "reshape: the shape must be a list of sizes, got 'ab'"),
    "inference": (lambda: infer.join_result(ROWS), "join: expected a LinearLayout, got BlockedLayout"),
    "describe": (lambda: describe(ROWS), "describe needs a LinearLayout"),
    "compose": (lambda: A.compose(3), "compose needs a LinearLayout, got 3"),
    "divide": (lambda: A.divide_left(None), "divide_left needs a LinearLayout, got None"),
    "bases": (lambda: LinearLayout.from_bases(3, {"dim0": 2}), "bases must map input dimensions to lists"),
    "bases of one": (lambda: LinearLayout.from_bases({"lane": 3}, {"dim0": 2}), "the bases of lane must be a list"),
    "outputs": (lambda: LinearLayout.from_bases({"lane": []}, 2), "out_dims must map output dimensions to sizes"),
    "transpose": (lambda: A.transpose_ins(3), "the order must be a list of the input dimensions"),
    "reshape dims": (lambda: A.reshape_ins([4, 4]), "reshape_ins needs a mapping of names to sizes"),
    "rename": (lambda: A.rename_ins("ab"), "a renaming of input dimensions needs a mapping"),
    "basis": (lambda: A.basis("lane", "0"), "lane has 2 bases, there is no basis '0'"),
    "point": (lambda: A.apply(3), r"apply needs an index for each of \(register, lane\), by name; got 3"),
    "name": (lambda: LinearLayout.identity_1d(4, 3, "dim0"), "the name of a dimension must be a string, got 3"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    make, text = CASES[name]
    with pytest.raises(LayoutError, match=text):
        make()
