"""A Gluon kernel means what it means in Triton: the same source gives the same layout IR.

Each kernel of tests/gluon/kernels is traced by Weft and by Triton 3.6.0. Both texts go through Triton's inlining,
canonicalisation and elimination of common subexpressions, and are compared; names of values do not count. What has open
layouts is compared again after Weft's pass that finds them, and Triton's. Then Triton compiles our text to PTX. No GPU
is needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from frontend.triton_oracle import canonical
from weft.ir import print_module, verify
from weft.passes.nvidia.create_tensormaps import create_tensormaps
from weft.passes.resolve_layouts import resolve_layouts

from .sources import sources, traced
from .triton_gluon import accepted, cleaned, made_by_triton

triton = pytest.importorskip("triton", minversion="3.6", reason="compares with Triton")
if not triton.__version__.startswith("3.6."):
    pytest.skip("the comparison is with Triton 3.6", allow_module_level=True)

OURS, THEIRS = sources("weft"), sources("triton")
OPEN = ("#gluon.auto_encoding", "#gluon.coalesced_encoding")
OPEN_NAMES = [name for name, source in OURS.items() if any(kind in print_module(traced(source)) for kind in OPEN)]
DIFFERENT = {"device_library": "the library of an external function is named here"}
NOT_COMPILED = {"pipelined_copy": "copies of 2 bytes, which cp.async cannot do"}


def test_there_are_enough() -> None:
    assert len(OURS) >= 60
    assert len(OPEN_NAMES) >= 6


@pytest.mark.parametrize("name", OURS)
def test_same_as_triton(name: str, tmp_path: Path) -> None:
    module = traced(OURS[name])
    verify(module, "gluon")
    ours = canonical(cleaned(print_module(module), tmp_path / "kernel.ttgir"))
    theirs = canonical(made_by_triton(THEIRS[name]))
    if name in DIFFERENT:
        assert ours != theirs, "no difference any more: take it out of DIFFERENT"
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", OPEN_NAMES)
def test_same_layouts_found(name: str, tmp_path: Path) -> None:
    module = traced(OURS[name])
    resolve_layouts(module)
    verify(module, "layout")
    ours = canonical(cleaned(print_module(module), tmp_path / "kernel.ttgir"))
    assert ours == canonical(made_by_triton(THEIRS[name], resolve=True))


@pytest.mark.parametrize("name", ["tma_copy", "wgmma_from_descriptors", "padded_blocks"])
def test_same_tensor_maps(name: str, tmp_path: Path) -> None:
    module = traced(OURS[name])
    create_tensormaps(module)
    verify(module, "layout")
    ours = canonical(cleaned(print_module(module), tmp_path / "kernel.ttgir"))
    assert sorted(ours) == sorted(canonical(made_by_triton(THEIRS[name], maps=True)))


@pytest.mark.parametrize("name", [name for name in OURS if name not in NOT_COMPILED])
def test_triton_compiles_our_text(name: str, tmp_path: Path) -> None:
    source = OURS[name]
    module = traced(source)
    resolve_layouts(module)
    ptx = accepted(print_module(module), source.capability, source.options, tmp_path / "kernel.ttgir")
    assert f".visible .entry {name}" in ptx
