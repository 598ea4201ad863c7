"""A misuse in one line of a kernel: the message and the way out, whole."""

from __future__ import annotations

import linecache
import types
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.compiler import ASTSource

HEAD = """import weft
import weft.language as tl
@weft.jit
def kernel(p, q, n):
    x = tl.load(p + tl.arange(0, 16))
    i = tl.load(q + tl.arange(0, 16))
    u = i.to(tl.uint32)
    """
ASM = "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [i], dtype=tl.int32, is_pure=True, pack=1)"
INT64 = "convert the tensor first, x.to(tl.int64)"
RANGE = "range(end) or range(start, end, step), and the hints that tl.range takes"

CASES = [
    ("v = x.to(tl.float8e5) > i", "unexpected type fp8e5 and int32", "convert first: x.to(tl.float32)"),
    (
        "v = tl.pointer_type(tl.float32, tl.float32)",
        "TypeError: address_space has type `dtype`; expected `int`.",
        None,
    ),
    (
        "v: tl.constexp = 3",
        "module `weft.language` has no attribute `constexp`",
        "did you mean `constexpr` or `const`?",
    ),
    (
        "v: some.thing = 3",
        "some is not defined",
        "assign `some` first, make it a parameter, or a global, `some = tl.constexpr(...)`",
    ),
    (
        "v: tl.constexpr[int] = 3",
        "type 'constexpr' is not subscriptable",
        "an annotation is a name, x: tl.constexpr = 3",
    ),
    (
        "v = tl.full([16], 0, p.dtype)",
        "dtype must be an element type of numbers, got pointer<fp32>",
        "it is called as tl.full(shape, value, dtype)",
    ),
    (
        "v = tl.zeros([16], x.type)",
        "dtype must be an element type of numbers, got fp32[16]",
        "it is called as tl.zeros(shape, dtype)",
    ),
    ("v = " + ASM.replace("'mov.b32 $0, $1;'", "3"), "asm must be a text, got 3", None),
    (
        "v = " + ASM.replace("pack=1", "pack=3"),
        "pack must be a positive number that divides the number of elements, 16, got 3",
        "pack=1 gives the assembly one element at a time",
    ),
    (
        "v = " + ASM.replace("dtype=tl.int32", "dtype=()"),
        "dtype names no type: the assembly has one result, or several",
        None,
    ),
    (
        "v = " + ASM.replace("dtype=tl.int32", "dtype=p.dtype"),
        "dtype must be an element type of numbers, got pointer<fp32>",
        None,
    ),
    (
        "v = tl.sum((x, x))",
        "`sum` takes a tensor or a number as `input`, found the tuple (a tensor fp32[16], a tensor fp32[16])",
        "it is called as tl.sum(input, axis=None, keep_dims=False, dtype=None)",
    ),
    (
        "v = x.shape[1]",
        "index 1 is outside a tuple of 1 values",
        "its values are numbered from 0, and from the last one -1 on; len(t) says how many",
    ),
    (
        "v = u + (-1)",
        "Cannot perform a binary operation between an unsigned tensor and a negative scalar. "
        "Perform a explicit cast on one of them.",
        "x.to(tl.int64) makes it signed; or subtract",
    ),
    ("v = i + 2**40", "Scalar 1099511627776 is out of range for type int32", INT64),
    (
        "v = [k for k in x]",
        "cannot iterate over a tensor fp32[16]: only tuples can be",
        "a tile is computed as a whole: operations are on all its elements",
    ),
    ("v = 1 / 0", "division by zero", "both sides are known when the kernel is compiled: the divisor is 0 there"),
    (
        "v = tl.umulhi(x, x)",
        "Expected dtype ['int32', 'int64', 'uint32', 'uint64'] but got fp32",
        "convert first, x.to(tl.int32)",
    ),
    (
        "for k in range(0, n, 0): pass",
        "the step of a range must not be 0",
        "a loop without iterations has start == end",
    ),
    ("for k in range(1, step=2): pass", "range takes one to three positional arguments", RANGE),
    ("for k in range(1, 2, 3, 4): pass", "range takes one to three positional arguments", RANGE),
    (
        "for k, m in range(n): pass",
        "the variable of a `for` must be one name",
        "give it one, and take what else an iteration needs from a tuple, t[i]",
    ),
    (
        "v = tl.make_block_ptr(p, (16,), (1,), (0,), (16,), (0.0,))",
        "Expected a permutation of (0, 1, ..., len(order)-1) in order, got [0.0]",
        None,
    ),
]


def load(path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    linecache.cache.pop(str(path), None)

    module = types.ModuleType(path.stem)
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


@pytest.mark.parametrize(("line", "message", "hint"), CASES, ids=[line for line, *_ in CASES])
def test_a_line(line: str, message: str, hint: str | None, tmp_path: Path) -> None:
    kernel = load(tmp_path / "misused.py", HEAD + line + "\n").kernel
    with pytest.raises(weft.CompilationError) as caught:
        weft.compile(ASTSource(kernel, {"p": "*fp32", "q": "*i32", "n": "i32"}), target="cuda:90")
    assert caught.value.message == message
    if hint is None:  # how the function is called
        assert (caught.value.hint or "").startswith("it is called as tl.")
    else:
        assert caught.value.hint == hint


@pytest.mark.parametrize("annotation", ["tl.int32", "int", "'anything'", "bool", "list[int]", "None"])
def test_other_annotations_mean_nothing(annotation: str, tmp_path: Path) -> None:
    text = HEAD + f"v: {annotation} = n + 1\n    tl.store(q, v)\n"
    kernel = load(tmp_path / "annotated.py", text).kernel
    assert "arith.addi" in weft.compile(ASTSource(kernel, {"p": "*fp32", "q": "*i32", "n": "i32"})).asm["ttir"]
