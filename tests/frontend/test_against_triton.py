"""The frontend means what Triton's means: the same kernels, through Triton's own first passes, give the same IR.

For each case of tests/kernels our tile IR, as text, is read by Triton 3.6.0 and cleaned up by its passes (inlining,
canonicalisation, common subexpressions), and compared with what Triton made of the same kernel (tests/data/ttir).
Names of values and the order of constants do not count.  No GPU is needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from frontend.triton_oracle import OPTIONS, canonical, through_triton
from kernels import load_cases
from weft import ir
from weft.frontend import ast_to_ttir

triton = pytest.importorskip("triton", minversion="3.6", reason="compares with Triton")
if not triton.__version__.startswith("3.6."):
    pytest.skip("the stored IR is that of Triton 3.6", allow_module_level=True)

STORED = Path(__file__).resolve().parents[1] / "data" / "ttir"
CASES = {name: case for name, case in load_cases("weft").items() if case.ttir and (STORED / f"{name}.ttir").exists()}

# Cases whose IR differs in form, and why.  Their results are compared by tests/test_kernels.py.
STRUCTURED = "early returns are structured here and jumps in Triton"
SHORTER = "the library builds the same values with fewer operations"
EITHER = "a step of the run may be negative here, and must be positive in Triton"
ORDER = "the library's function of a reduction compares in another order"
NEGATION = "-x is one operation here, as in Triton from 3.8 on, and 0 - x in 3.6"
DIFFERENT = {
    "cross_entropy": STRUCTURED,
    "early_return": STRUCTURED,
    "calls": STRUCTURED,
    "mapped": STRUCTURED,
    "unrolled_rows_1_15_2": EITHER,
    "sort_rows": SHORTER,
    "sort_rows_int32": SHORTER,
    "sort_rows_f16": SHORTER,
    "extremes": ORDER,
    "extremes_int32": ORDER,
    "extremes_ties": ORDER,
    "flips": SHORTER,
    "seeded_dropout": SHORTER,
    "random_streams": SHORTER,
    "random_streams_long_seed": SHORTER,
    "math_functions": NEGATION,
    "math_functions_f64": NEGATION,
    "swish_chain_float32": NEGATION,
    "swish_chain_float16": NEGATION,
    "swish_chain_bfloat16": NEGATION,
    "dynamic_if": NEGATION,
    "static_loop": NEGATION,
}


@pytest.mark.parametrize("name", CASES)
def test_same_as_triton(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    signature, values, attributes = case.signature(case.make_inputs())
    text = ir.print_module(ast_to_ttir(case.kernel, signature, values, attributes, OPTIONS, "cuda:90"))
    ours = canonical(through_triton(text, case.options, tmp_path / "kernel.ttir"))
    theirs = canonical((STORED / f"{name}.ttir").read_text(encoding="utf-8"))
    if name not in DIFFERENT:
        assert ours == theirs
    else:
        assert ours != theirs, "no difference any more: take it out of DIFFERENT"
