"""What remarks tell of the kernels of the suite is what their lane programs do (truth.py)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import weft
from gluon.sources import arguments_of, sources
from kernels import load_cases
from weft.compiler import gpu
from weft.remarks import AccessWidth, Remarks

from .truth import untrue

CASES, GLUON = load_cases("weft"), sources("weft")
NAMES = sorted([*CASES, *(f"gluon/{name}" for name in GLUON)])
TARGETS = ("cuda:75", "cuda:80", "cuda:90")
SAMPLE = [name for name in NAMES if zlib.crc32(name.encode()) % 8 == 0]


def program(name: str, target: str) -> Any:
    """The lane program of a kernel of the suite; None where it is not for that target."""
    source: Any
    if name in CASES:
        case = CASES[name]
        types, values, attributes = case.signature(case.make_inputs())
        source, options = weft.ASTSource(case.kernel, types, values, attributes), case.options
    else:
        found = GLUON[name.removeprefix("gluon/")]
        if int(target.partition(":")[2]) < found.capability:
            return None
        signature, attributes = arguments_of(found)
        source, options = weft.ASTSource(found.kernel, signature, found.constexprs, attributes), found.options
    try:
        return gpu.lane_program(source, f"sim:{target}", options)
    except weft.WeftError:  # which other tests are about
        return None


def lies(names: list[str], target: str) -> Iterator[str]:
    for name in names:
        made = program(name, target)
        if made is not None:
            remarks = made.remarks.collected()
            assert Remarks.from_json(remarks.to_json()) == remarks
            yield from (f"{name}: {text}" for text in untrue(made, remarks))


@pytest.mark.parametrize("number, name", list(enumerate(SAMPLE)))
def test_what_is_told_is_so(number: int, name: str) -> None:
    assert not list(lies([name], TARGETS[number % len(TARGETS)]))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_told_of_all_is_so(target: str) -> None:
    assert not list(lies(NAMES, target))


def test_what_is_not_so_is_seen() -> None:
    made = program("softmax", "cuda:80")
    remarks = made.remarks.collected()
    assert not list(untrue(made, remarks))
    other = Remarks(replace(r, bytes=r.bytes * 2) if isinstance(r, AccessWidth) else r for r in remarks)
    fewer = Remarks(r for r in remarks if r.kind not in ("barrier", "shared buffer"))
    assert [text for false in (other, fewer) for text in untrue(made, false)]
