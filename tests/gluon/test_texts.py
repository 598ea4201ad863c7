"""The layout IR of Gluon kernels is what it was when it was compared with Triton's (see test_against_triton.py).

The files of tests/data/gluon are written by make_texts.py.
"""

from __future__ import annotations

import pytest

import weft.ir.gpu  # the operations of layout IR
from frontend.triton_oracle import canonical
from weft.ir import parse_module, print_module, verify

from .make_texts import STORED
from .sources import sources, traced

KERNELS = sources("weft")


def test_every_kernel_is_stored() -> None:
    assert weft.ir.gpu.ttg is not None
    assert {path.stem for path in STORED.glob("*.ttgir")} == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_text(name: str) -> None:
    module = traced(KERNELS[name])
    verify(module, "gluon")
    text = (STORED / f"{name}.ttgir").read_text(encoding="utf-8")
    assert print_module(module) == text
    assert canonical(print_module(parse_module(text, f"{name}.ttgir"))) == canonical(text)
