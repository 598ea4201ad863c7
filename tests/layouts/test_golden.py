"""Named layouts, register layouts of tensor memory and layouts of scales, against what Triton computes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import weft.layouts
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


def amd_layout(line: str) -> tuple[str, str, bool]:
    """The layout of a line of amd.txt, the shape, and whether it is here as it is there."""
    known = "AMDMFMALayout AMDWMMALayout DotOperandLayout mfma_scale_layout wmma_scale_layout"
    names = {name: getattr(weft.layouts, name) for name in known.split()}
    text, shape, *parts = (part.strip() for part in f"{line} ".split(" |"))
    found = eval(text, names).to_linear([int(size) for size in shape.split("x")])
    bases = [[tuple(map(int, basis.split(","))) for basis in part.split()] for part in parts]
    return text, shape, [list(found.bases[d]) for d in ("register", "lane", "warp", "block")] == bases


def test_amd_matrix_layouts_by_bases() -> None:
    """WMMA as Triton 3.7 places it: each warp and register names the tile that it has."""
    _, *stored = (OWN / "amd_bases.txt").read_text(encoding="utf-8").splitlines()
    wrong = [line for line in stored if not amd_layout(line)[2]]
    assert len(stored) == 113 and not wrong, f"{len(wrong)} of {len(stored)}; the first: {wrong[0]}"


def test_amd_scale_layouts() -> None:
    """Scales of products on gfx950 and gfx1250, of either operand, with several warps and tiles of a warp."""
    _, *stored = (OWN / "amd_scales.txt").read_text(encoding="utf-8").splitlines()
    wrong = [line for line in stored if not amd_layout(line)[2]]
    assert len(stored) == 200 and not wrong, f"{len(wrong)} of {len(stored)}; the first: {wrong[0]}"
    assert min(sum(line.startswith(kind) for line in stored) for kind in ("mfma", "wmma")) >= 50


def test_amd_matrix_layouts() -> None:
    """Results and operands of MFMA and WMMA: tools/make_amd_layouts.py asked Triton's bindings."""
    head, *stored = (OWN / "amd.txt").read_text(encoding="utf-8").splitlines()
    assert len(stored) == 900 and head.startswith("# 900 layouts of Triton")
    kinds: Counter[str] = Counter()
    wrong = []
    for line in stored:
        text, shape, right = amd_layout(line)
        if not right:
            wrong.append(line)
        family = "MFMA" if "MFMA" in text else "WMMA"
        kinds[f"{family} {'operand' if text.startswith('Dot') else 'result'}"] += 1
        kinds["transposed"] += ", True" in text
        kinds["tiles"] += "tiles_per_warp" in text
        kinds["batch"] += shape.count("x") == 2
        kinds["double"] += "element_bitwidth" in text
    assert not wrong, f"{len(wrong)} of {len(stored)}; the first: {wrong[0]}"
    assert min(kinds.values()) >= 25 and len(kinds) == 8, kinds
