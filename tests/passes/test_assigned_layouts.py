"""What `assign_layouts` makes of tile IR is layout IR: the verifier of that stage has nothing to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.ir import parse_module, print_module, verify
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttir").glob("*.ttir"))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
@pytest.mark.thinned(4)
def test_is_layout_ir(path: Path, target: str) -> None:
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    gpu_pipeline(module, machine_of(target))
    verify(module, "layout")
    text = print_module(module)
    assert print_module(parse_module(text)) == text
