"""The frontend means what Triton's means: the same kernels, through Triton's own first passes, give the same IR.

For each case of tests/kernels our tile IR, as text, is read by Triton 3.6.0 and cleaned up by its passes (inlining,
canonicalisation, common subexpressions), and compared with what Triton made of the same kernel (tests/data/ttir).
Names of values and the order of constants do not count.  No GPU is needed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernels import load_cases
from weft import ir
from weft.base import CompileOptions
from weft.frontend import ast_to_ttir

triton = pytest.importorskip("triton", minversion="3.6", reason="compares with Triton")
if not triton.__version__.startswith("3.6."):
    pytest.skip("the stored IR is that of Triton 3.6", allow_module_level=True)

STORED = Path(__file__).resolve().parents[1] / "data" / "ttir"
CASES = {name: case for name, case in load_cases("weft").items() if case.ttir and (STORED / f"{name}.ttir").exists()}

# What options a cuda:90 compilation gives the language.
OPTIONS = CompileOptions(
    default_dot_input_precision="tf32",
    allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    supported_fp8_dtypes=("fp8e4b15", "fp8e4nv", "fp8e5"),
    deprecated_fp8_dot_operand_dtypes=("fp8e4b15",),
    max_num_imprecise_acc_default=2**30,
)

# Cases whose IR differs in form, and why.  Their results are compared by tests/test_kernels.py.
STRUCTURED = "early returns are structured here and jumps in Triton"
SHORTER = "the library builds the same values with fewer operations"
ORDER = "the library's function of a reduction compares in another order"
DIFFERENT = {
    "cross_entropy": STRUCTURED,
    "early_return": STRUCTURED,
    "calls": STRUCTURED,
    "mapped": STRUCTURED,
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
}


def through_triton(text: str, options: dict[str, Any], path: Path) -> str:
    """Tile IR after Triton's first stage for cuda:90."""
    from triton._C.libtriton import ir as triton_ir
    from triton.backends.compiler import GPUTarget, Language
    from triton.compiler import make_backend

    backend = make_backend(GPUTarget("cuda", 90, 32))
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    path.write_text(text, encoding="utf-8")
    module = triton_ir.parse_mlir_module(str(path), context)
    module.context = context
    assert module.verify()
    stages: dict[str, Any] = {}
    backend.add_stages(stages, backend.parse_options(options), Language.TRITON)
    return str(stages["ttir"](module, {}))


_LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)')
_CONSTANT = re.compile(r"(%[\w.$-]+) = arith\.constant (.*)$")
_RESULT = re.compile(r"%[\w.$-]+(?=(?::\d+)?(?:, %[\w.$-]+)* = )")
_ARGUMENT = re.compile(r"%[\w.$-]+(?=: )")
_NAME = re.compile(r"%[\w.$-]+")


def canonical(text: str) -> list[str]:
    """IR text without locations, values numbered in the order of their definition, constants written where used."""
    text = _LOCATION.sub("", re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE))
    meaning: dict[str, str] = {}
    count = 0
    result = []
    for line in filter(None, map(str.strip, text.splitlines())):
        constant = _CONSTANT.match(line)
        if constant:
            meaning[constant[1]] = "{" + constant[2] + "}"
            continue
        defining = _ARGUMENT if line.startswith(("^", "tt.func")) else _RESULT
        defined = {match.start() for match in defining.finditer(line)}
        before = dict(meaning)
        for match in defining.finditer(line):
            meaning[match[0]] = f"%{count}"
            count += 1
        result.append(_NAME.sub(lambda m: (meaning if m.start() in defined else before).get(m[0], m[0]), line))
    return result


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
