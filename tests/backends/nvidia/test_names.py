"""Terms that hundreds of sums have in common get several names, so that LLVM need not try all pairs of those sums."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import pytest

import weft
import weft.language as tl
from weft.backends.gpu import emit_llvm
from weft.backends.llvm import names
from weft.backends.nvidia import PTX, assembly, machine, ptx_target
from weft.compiler import ASTSource, lane_program
from weft.machines import machine_of


@weft.jit
def lower_triangle(x, out, stride, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    places = (tl.program_id(0) * N + i) * stride + j
    tl.store(out + places, tl.load(x + places, mask=j <= i, other=0.0))


@lru_cache
def module_of(n: int) -> str:
    """The LLVM IR of a tile of n x n addresses in 32 threads."""
    types = {"x": "*fp32", "out": "*fp32", "stride": "i32", "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    program = lane_program(ASTSource(lower_triangle, types, {"N": n}, aligned), "sim:cuda:90", {"num_warps": 1})
    return emit_llvm(program, PTX(program.machine))


def terms(text: str) -> Counter[str]:
    """How many sums each value is a term of."""
    return Counter(x for found in re.finditer(r"= add [^%\n]*(%[^\s,]+), (%[^\s,]+)", text) for x in found.groups())


def test_no_value_is_a_term_of_too_many_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[tuple[str, str | None]] = []

    def watched(text: str) -> str | None:
        handed.append((text, names.further_names(text)))
        return handed[-1][1]

    monkeypatch.setattr(machine, "further_names", watched)
    assembly(module_of(128), ptx_target(machine_of("cuda:90")))
    before, after = handed[-1]
    assert after is not None
    assert max(terms(before).values()) > names.RUN >= max(terms(after).values())
    assert before.rstrip("\n") == _without_names(after).rstrip("\n")


def _without_names(text: str) -> str:
    """The module with what each new name stands for in its place."""
    stands = dict(re.findall(r"(%named\.\d+) = freeze \S+ (%\S+)", text))
    lines = [line for line in text.splitlines() if "= freeze" not in line]
    return re.sub(r"%named\.\d+", lambda m: stands[m[0]], "\n".join(lines))


def test_the_code_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module_of(128)
    found = assembly(text, ptx_target(machine_of("cuda:90")))
    monkeypatch.setattr(machine, "further_names", lambda text: None)
    assert found == assembly(text, ptx_target(machine_of("cuda:90")))


def test_names_stay_in_their_block() -> None:
    rows = "\n".join(f"  %x{i} = add i64 %p, %r{i}" for i in range(70))
    text = f"define void @f(i64 %p) {{\nentry:\n{rows}\nnext:\n{rows.replace('%x', '%y')}\n}}"
    after = names.further_names(text)
    assert after is not None
    first, second = after.split("next:")
    for block in (first, second):
        assert set(re.findall(r"%named\.\d+", block)) == set(re.findall(r"(%named\.\d+) = freeze", block)) != set()


def test_sums_in_other_blocks_count_as_well() -> None:
    """Masked loads are in blocks of their own: with one sum in each, LLVM still tries every pair of them."""
    blocks = "\n".join(f"b{i}:\n  %x{i} = add i32 %p, %r{i}\n  br label %b{i + 1}" for i in range(100))
    after = names.further_names(f"define void @f(i32 %p) {{\n{blocks}\nb100:\n  ret void\n}}")
    assert after is not None
    assert terms(after)["%p"] == names.RUN
    assert max(terms(after).values()) == names.RUN
