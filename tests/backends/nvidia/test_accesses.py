"""A thread of a GPU loads and stores what the lane program says: nobody makes accesses wider, or joins them."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from typing import Any

import pytest

import weft
from gluon.sources import arguments_of, sources
from kernels import load_cases
from weft.compiler import lane_program
from weft.ir.lane import ELEMENT_BITS, LaneProgram
from weft.runtime import knobs

CASES, GLUON = load_cases("weft"), sources("weft")
FEWER = {"concatenate", "nvmma_memory", "slices", "reinterpreted", "collectives", "cluster_copy"}
"""Kernels of which a thread loads what it has stored or loaded itself: LLVM takes what it has."""
TABLES = {"math_functions", "random_streams", "random_streams_long_seed", "elementwise"}
"""Those of which a function looks into a table of its own."""
ACCESS = re.compile(
    r"\b(ld|st)(?:\.volatile|\.relaxed\.\w+|\.acquire\.\w+)?\.(global|shared)"
    r"(?:\.(?!v\d|[bfsu]\d)[\w:]+)*(?:\.v(\d))?\.[bfsu](\d+)"
)
Accesses = Counter[tuple[str, str, int]]
WIDEST = 16


def in_program(program: LaneProgram) -> Accesses:
    """How many accesses of how many bytes its text has for a thread: loops and branches count once."""
    found: Accesses = Counter()
    for op in program.body.walk():
        if op.name in ("load", "store") and op.attrs["space"] in ("global", "shared"):
            value = op.result if op.name == "load" else op.operands[1]
            size = op.attrs["vector"] * max(8, ELEMENT_BITS[value.elem]) // 8
            kind = "ld" if op.name == "load" else "st"
            found[kind, op.attrs["space"], min(size, WIDEST)] += op.operands[0].count * max(1, size // WIDEST)
    return found


def in_ptx(ptx: str) -> Accesses:
    return Counter((kind, space, int(n or 1) * int(bits) // 8) for kind, space, n, bits in ACCESS.findall(ptx))


def sampled(names: Any) -> list[Any]:
    return [n if zlib.crc32(n.encode()) % 20 == 0 else pytest.param(n, marks=pytest.mark.slow) for n in names]


def compare(name: str, make: Any, options: dict[str, Any]) -> None:
    program = lane_program(make(), "sim:cuda:90", options)
    with knobs.cache.scope():
        knobs.cache.disabled = True
        ptx = weft.compile(make(), "cuda:90", options).asm["ptx"]
    made, wanted = in_ptx(ptx), in_program(program)
    if name in TABLES:
        assert made > wanted
    elif name in FEWER:
        assert made < wanted
    else:
        assert made == wanted


@pytest.mark.parametrize("name", sampled(CASES))
def test_kernels_of_triton(name: str) -> None:
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    compare(name, lambda: weft.ASTSource(case.kernel, types, values, attributes), case.options)


@pytest.mark.parametrize("name", sampled(GLUON))
def test_kernels_of_gluon(name: str) -> None:
    source = GLUON[name]
    signature, attributes = arguments_of(source)
    if name == "pipelined_copy":
        pytest.skip("it is refused")
    compare(name, lambda: weft.ASTSource(source.kernel, signature, source.constexprs, attributes), source.options)
