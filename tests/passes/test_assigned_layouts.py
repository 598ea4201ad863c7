"""What `assign_layouts` makes of tile IR is layout IR: the verifier of that stage has nothing to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.ir import parse_module, print_module, verify
from weft.passes import tile_pipeline
from weft.passes.assign_layouts import assign_layouts
from weft.passes.decompose_dot_scaled import decompose_dot_scaled

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttir").glob("*.ttir"))


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_is_layout_ir(path: Path) -> None:
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    decompose_dot_scaled(module)
    assign_layouts(module, "cuda:80")
    verify(module, "layout")
    text = print_module(module)
    assert print_module(parse_module(text)) == text
