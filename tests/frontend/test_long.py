"""Long is not deep: chains of branches, sums and early returns as long as Python takes them, and one budget."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Block

import weft
from weft.base import CompilationError, CompileOptions
from weft.frontend import ast_to_ttir, chains

HEAD = """
import weft
import weft.language as tl

{before}
@weft.jit
def k(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
{body}
    tl.store(o + i, a)
"""
X = np.arange(16, dtype=np.float32)


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    """Makes a kernel of a text."""

    def make(body: str, before: str = "") -> Any:
        path = tmp_path / "long.py"
        path.write_text(HEAD.format(body=body, before=before))
        spec = importlib.util.spec_from_file_location("long", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.k

    return make


def run(kernel: Any, n: int) -> Any:
    out = np.zeros_like(X)
    kernel[(1,)](X, out, n, BLOCK=16)
    return out


def traced(kernel: Any, **options: Any) -> Any:
    signature = {"x": "*fp32", "o": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    module = ast_to_ttir(kernel, signature, {"BLOCK": 16}, options=CompileOptions(**options))
    weft.ir.verify(module)
    return module


def compiled(kernel: Any, target: str) -> Any:
    signature = {"x": "*fp32", "o": "*fp32", "n": "i32"}
    return weft.compile(weft.ASTSource(kernel, signature, {"BLOCK": 16}), target=target)


def depths(block: Block) -> Iterator[int]:
    """How many branches are around each operation."""
    work = [(block, 0)]
    while work:
        block, depth = work.pop()
        for op in block.ops:
            yield depth
            work += [(inner, depth + 1) for region in op.regions for inner in region.blocks]


CHANGES = ("a += 1", "s = n", "a, s = a * 2, s + 3")
ELIF = "".join(f"    {'el' if j else ''}if n == {j}:\n        {CHANGES[j % 3]}\n" for j in range(20))
RETURNS = "@weft.jit\ndef f(x, a, n):\n" + "".join(
    f"    if tl.load(x + {j}) == n:\n        return a + {j}\n" for j in range(14)
)
CHOICE = " else ".join(f"a + {j} if n == {j}" for j in range(20)) + " else a * 2"


@pytest.mark.parametrize("longest", [2, 5, 100])
def test_a_chain_that_is_cut_does_what_python_does(kernel: Any, monkeypatch: Any, longest: int) -> None:
    monkeypatch.setattr(chains, "LONGEST", longest)
    made = kernel(f"    s = 0\n{ELIF}    else:\n        s = -1\n    a += s")
    deep = max(depths(traced(made).body.block))
    assert deep <= longest + 2 if longest < 100 else deep > 20
    for n in range(-1, 21):
        kinds = {0: X + 1, 1: X + n, 2: X * 2 + 3}
        np.testing.assert_array_equal(run(made, n), kinds[n % 3] if 0 <= n < 20 else X - 1)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_early_returns_and_conditional_expressions_are_cut(kernel: Any, monkeypatch: Any, target: str) -> None:
    monkeypatch.setattr(chains, "LONGEST", 4)
    returns = kernel("    a = f(x, a, n)", RETURNS + "    return a * 2\n")
    choice = kernel(f"    for t in range(2):\n        a = {CHOICE}")
    assert max(depths(traced(returns).body.block)) <= 6 and max(depths(traced(choice).body.block)) <= 7
    with weft.target(target):
        for n in (-1, 4, 13) if target == "cpu" else (4,):
            np.testing.assert_array_equal(run(returns, n), X + n if 0 <= n < 14 else X * 2)
            np.testing.assert_array_equal(run(choice, n), X + 2 * n if 0 <= n < 20 else X * 4)


def test_a_value_made_on_the_way_is_handed_on(kernel: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(chains, "LONGEST", 3)
    body = "    b = a\n    if n > 0:\n        b = a + 1\n"
    indent = "    "
    for j in range(1, 8):
        indent += "    "
        body += f"{indent}c{j} = b * {j}\n{indent}if n > {j}:\n{indent}    a = c{max(1, j - 2)} + c{j}\n"
    made = kernel(body)
    for n in range(9):
        b, a, c = X + 1, X, {}
        for j in range(1, 8):
            if n <= j - 1:
                break
            c[j] = b * j
            if n > j:
                a = c[max(1, j - 2)] + c[j]
        np.testing.assert_array_equal(run(made, n), a)


def test_as_long_as_python_takes_it(kernel: Any) -> None:
    chain = "".join(f"    {'el' if j else ''}if n == {j}:\n        a *= {j}\n" for j in range(300))
    assert max(depths(traced(kernel(chain)).body.block)) <= chains.LONGEST + 2
    traced(kernel("    a = a" + ".to(tl.int32).to(tl.float32)" * 400))
    compiled(kernel("    a = " + " + ".join(["a"] * 1500)), "cpu")


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_an_index_in_many_steps(kernel: Any, target: str) -> None:
    steps = "".join(f"    j = tl.where(j > {k}, j - 1, j + i)\n" for k in range(300))
    compiled(kernel(f"    j = i\n{steps}    a = tl.load(x + j, j < n)"), target)


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_as_deep_as_python_takes_it(kernel: Any, target: str) -> None:
    ifs = "".join("    " * (j + 1) + f"if n > {j}:\n" + "    " * (j + 2) + f"a += {j}\n" for j in range(98))
    loops = "".join("    " * (j + 1) + f"for j{j} in range(n):\n" + "    " * (j + 2) + "a += 1\n" for j in range(20))
    for body in (ifs, loops):
        compiled(kernel(body), target)


def test_what_is_deeper_than_the_stack_is_told_with_its_place(kernel: Any) -> None:
    before = "@weft.jit\ndef f0(a, n):\n    return a + 1\n"
    ifs = "".join("    " * (j + 1) + f"if n > {j}:\n" for j in range(60)) + "    " * 61
    for j in range(8):
        before += f"@weft.jit\ndef f{j + 1}(a, n):\n{ifs}a = f{j}(a, n)\n    return a\n"
    with pytest.raises(CompilationError, match="nested too deeply to be compiled") as raised:
        compiled(kernel("    a = f8(a, n)", before), "cpu")
    assert raised.value.span is not None and raised.value.hint


def test_calls_that_are_too_deep_are_told_as_calls(kernel: Any) -> None:
    before = "@weft.jit\ndef f0(a, n):\n    return a + 1\n"
    ifs = "".join("    " * (j + 1) + f"if n > {j}:\n" for j in range(5)) + "    " * 6
    for j in range(95):
        before += f"@weft.jit\ndef f{j + 1}(a, n):\n{ifs}a = f{j}(a, n)\n    return a\n"
    with pytest.raises(CompilationError) as raised:
        compiled(kernel("    a = f95(a, n)", before), "cpu")
    assert re.fullmatch(r"\d+ calls within one another are nested too deeply to be compiled", raised.value.message)
    assert raised.value.span is not None
    assert raised.value.hint == (
        "let fewer functions call each other, or repeat with tl.static_range; "
        "sys.setrecursionlimit(...) makes the stack larger"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tl.rand(0, i, 1 << 21)", "2097152 rounds of Philox are unrolled"),
        ("f(f(f(a)))", "this call of `f` makes its body once more"),
        ("[j for j in range(1 << 40)][0]", "this range has 1099511627776 values"),
        ("tl.map_elementwise(f, a, pack=1 << 20)", "map_elementwise packs 1048576 elements"),
    ],
)
def test_one_budget_covers_what_is_unrolled(kernel: Any, line: str, said: str) -> None:
    before = "@weft.jit\ndef f(a):\n    return a + 1\n"
    with pytest.raises(CompilationError) as raised:
        traced(kernel(f"    a = {line}", before), unroll_budget=2)
    assert raised.value.span is not None and raised.value.span.line == 13
    count = 2 if "f(f" in line else 0
    assert raised.value.message == f"{said}, {count} were unrolled before, and the limit of one kernel is 2"
    assert raised.value.hint


def test_a_tree_of_calls_ends(kernel: Any) -> None:
    before = "@weft.jit\ndef f0(a):\n    return a + 1\n"
    for j in range(60):
        before += f"@weft.jit\ndef f{j + 1}(a):\n    return f{j}(f{j}(a))\n"
    with pytest.raises(CompilationError, match="500 were unrolled before, and the limit of one kernel is 500"):
        traced(kernel("    a = f60(a)", before), unroll_budget=500)
