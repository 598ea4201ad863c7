"""Named layouts, register layouts of tensor memory and layouts of scales, against what Triton computes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from weft.layouts import (
    DistributedLinearLayout,
    DotOperandLayout,
    LayoutError,
    get_tmem_reg_layout,
    mfma_scale_layout,
    wmma_scale_layout,
)

from .stored import GOLDEN, OWN, as_stored, lines, named


def check(case: dict[str, Any]) -> str | None:
    """What is different from Triton's layout, or None."""
    found = named(case["layout"]).to_linear(case["shape"])
    if list(as_stored(found).items()) != list(case["bases"].items()):
        return f"{case['layout']} for {case['shape']}: {as_stored(found)}, expected {case['bases']}"
    if [list(item) for item in found.out_dims.items()] != case["out_dims"]:
        return f"{case['layout']} for {case['shape']}: {found.out_dims}, expected {case['out_dims']}"
    return None


def check_all(path: Path, expected: int) -> None:
    cases = lines(path)
    assert len(cases) == expected
    wrong = [text for case in cases if (text := check(case)) is not None]
    assert not wrong, f"{len(wrong)} of {len(cases)}; the first: {wrong[0]}"


def test_own_data() -> None:
    check_all(OWN / "zoo.jsonl", 622)
    kinds = Counter(case["layout"]["kind"] for case in lines(OWN / "zoo.jsonl"))
    assert len(kinds) == 10 and min(kinds.values()) >= 30


def test_golden_data() -> None:
    if not GOLDEN.exists():
        pytest.skip("the golden data is not part of the repository")
    check_all(GOLDEN / "layouts.jsonl", 1569)


def explicit(layout: DistributedLinearLayout) -> dict[str, list[list[int]]]:
    return as_stored(layout.to_linear(layout.shape))


def test_tensor_memory() -> None:
    cases = lines(OWN / "tensor_memory.jsonl")
    assert sum(case["bases"] is None for case in cases) >= 10
    for case in cases:
        arguments = (case["num_warps"], case["instr_variant"], case["cga_layout"])
        memory = named(case["layout"])
        if case["bases"] is None:
            with pytest.raises(LayoutError):
                get_tmem_reg_layout(case["element_bits"], case["shape"], memory, *arguments)
        else:
            found = get_tmem_reg_layout(case["element_bits"], case["shape"], memory, *arguments)
            assert explicit(found) == case["bases"], case


def test_scales() -> None:
    for case in lines(OWN / "scales.jsonl"):
        operand = named(case["layout"])
        assert isinstance(operand, DotOperandLayout)
        make = mfma_scale_layout if case["layout"]["parent"]["kind"] == "AMDMFMALayout" else wmma_scale_layout
        assert explicit(make(operand, case["shape"])) == case["bases"], case
