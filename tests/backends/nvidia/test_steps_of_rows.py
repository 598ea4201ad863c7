"""Rows that are a stride apart have addresses that are an addition apart: fewer multiplications, the same places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from weft.backends.nvidia import emit
from weft.ir import parse_module
from weft.lower import lower
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

HEAD = """
module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i64 {tt.divisibility = 16 : i32},
                    %t: i64, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<32x64xf32>
    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %w = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
    %rows = tt.expand_dims %w {axis = 1 : i32} : tensor<32xi64> -> tensor<32x1xi64>
    %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %v = arith.extsi %c : tensor<64xi32> to tensor<64xi64>
    %columns = tt.expand_dims %v {axis = 0 : i32} : tensor<64xi64> -> tensor<1x64xi64>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %ss = tt.splat %s : i64 -> tensor<32x1xi64>
    %ts = tt.splat %t : i64 -> tensor<1x64xi64>
    %from = arith.constant dense<77> : tensor<32x1xi64>
    %three = arith.constant dense<3> : tensor<32x1xi64>
"""
PLACES = """
    %a = tt.broadcast %down : tensor<32x1xi64> -> tensor<32x64xi64>
    %b = tt.broadcast ACROSS : tensor<1x64xi64> -> tensor<32x64xi64>
    %at = arith.addi %a, %b : tensor<32x64xi64>
    %p = tt.addptr %xs, %at : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi64>
    tt.store %p, %zeroMASK : tensor<32x64x!tt.ptr<f32>>
"""
UP = "%down = arith.muli %rows, %ss : tensor<32x1xi64>"
BACK = """
    %turned = arith.subi %from, %rows : tensor<32x1xi64>
    %product = arith.muli %ss, %turned : tensor<32x1xi64>
    %down = arith.muli %product, %three : tensor<32x1xi64>
"""
BOTH = UP + "\n    %across = arith.muli %columns, %ts : tensor<1x64xi64>"
TURNS = """
    %zero32 = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    scf.for %i = %zero32 to %n step %one : i32 {
      %first = arith.muli %i, %c32 : i32
      %wide = arith.extsi %first : i32 to i64
      %firsts = tt.splat %wide : i64 -> tensor<32x1xi64>
      %here = arith.addi %firsts, %rows : tensor<32x1xi64>
      %down = arith.muli %here, %ss : tensor<32x1xi64>
      %limit = tt.splat %t : i64 -> tensor<32x1xi64>
      %less = arith.cmpi slt, %here, %limit : tensor<32x1xi64>
      %ok = tt.broadcast %less : tensor<32x1xi1> -> tensor<32x64xi1>
      PLACES
    }
"""
END = "    tt.return\n  }\n}\n"


def ptx(body: str, across: str = "%columns") -> str:
    places = PLACES.replace("ACROSS", across).replace("MASK", ", %ok" if "%ok" in body else "")
    text = body.replace("PLACES", places) if "PLACES" in body else body + places
    module = tile_pipeline(parse_module(HEAD + text + END))
    gpu_pipeline(module, "cuda:90", stages=1)
    return emit(lower(module)).ptx


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "setp.lt": lambda a, b: int(a < b),
    "setp.gt": lambda a, b: int(a > b),
    "setp.ge": lambda a, b: int(a >= b),
    "setp.le": lambda a, b: int(a <= b),
    "setp.ne": lambda a, b: int(a != b),
    "setp.eq": lambda a, b: int(a == b),
}


def stores(text: str, thread: int, arguments: list[int]) -> Iterator[int]:
    """The addresses of the elements that a thread of a program stores; signed numbers, whatever is done with them."""
    lines = [x.strip().rstrip(";") for x in text.splitlines() if x.strip() and not x.strip().startswith(("//", "."))]
    labels = {x[:-1]: i for i, x in enumerate(lines) if x.endswith(":")}
    known: dict[str, int] = {"%tid.x": thread, "%ctaid.x": 0}
    at = next(i for i, x in enumerate(lines) if "ld.param" in x)

    def number(name: str, bits: int = 64) -> int:
        value = known[name] if name.startswith("%") else int(name)
        return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)

    while not lines[at].startswith("ret"):
        guard, name, rest = re.fullmatch(r"(?:@(!?%\w+)\s+)?(\S+)\s*(.*)", lines[at]).groups()  # type: ignore[union-attr]
        at += 1
        given = [x.strip() for x in re.sub(r"[{}]", "", rest).split(",")]
        if name.endswith(":") or (guard and number(guard.lstrip("!"), 2) % 2 == guard.startswith("!")):
            continue
        bits = int(re.findall(r"\d+$", name)[0]) if re.search(r"\d$", name) else 64
        stem = re.sub(r"\.lo|\.wide|\.pred|\.[bsu]\d+$", "", name)
        if stem.startswith("bra"):
            at = labels[given[0]]
        elif name.startswith("ld.param"):
            which = re.search(r"param_(\d+)", given[1])
            known[given[0]] = arguments[int(which.group(1))] if which else 0
        elif name.startswith("st.global"):
            place = re.fullmatch(r"\[(%\w+)(?:\s*\+\s*(-?\d+))?\]", given[0])
            assert place is not None, lines[at - 1]
            first = number(place[1]) + int(place[2] or 0)
            yield from (first + 4 * i for i in range(len(given) - 1))
        elif stem in ("mov", "cvta.to.global", "cvt.s64", "cvt.u64", "cvt.u32", "cvt.s32") or stem.startswith("cvt"):
            known[given[0]] = number(given[1], 32 if ".s64.s32" in name else 64) % (
                1 << 32 if ".u32" in name else 1 << 64
            )
            known[given[0]] = number(given[0])
        elif stem == "shr":
            value = number(given[1], bits) if ".s" in name else number(given[1], bits) % (1 << bits)
            known[given[0]] = value >> number(given[2])
        elif stem == "mad":
            known[given[0]] = number(given[1], bits) * number(given[2], bits) + number(given[3])
        else:
            known[given[0]] = BINARY[stem](number(given[1], bits), number(given[2], bits))


def reached(text: str, arguments: list[int]) -> list[int]:
    """What all threads store, in order."""
    return sorted(address for thread in range(128) for address in stores(text, thread, arguments))


def places(rows: range, stride: int, step: int = 1) -> list[int]:
    return sorted(4096 + 4 * (r * stride + c * step) for r in rows for c in range(64))


@pytest.mark.parametrize("stride", [64, 4096, 1 << 33, -96])
def test_rows(stride: int) -> None:
    assert reached(ptx(UP), [4096, stride, 0, 0]) == places(range(32), stride)


def test_rows_that_go_back() -> None:
    assert reached(ptx(BACK), [4096, 160, 0, 0]) == places(range(77, 45, -1), 3 * 160)


def test_two_strides() -> None:
    assert reached(ptx(BOTH, "%across"), [4096, 16, 1 << 20, 0]) == places(range(32), 16, 1 << 20)


def test_in_a_loop() -> None:
    """Of rows that are compared with a limit too; each was multiplied by itself."""
    text = ptx(TURNS)
    assert reached(text, [4096, 1 << 20, 83, 3]) == places(range(83), 1 << 20)
    assert len(re.findall(r"\b(?:mad|mul)\.lo\.s64", text)) == 1
