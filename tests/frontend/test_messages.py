"""What is said to kernels that treat a value of the run as one of the compilation: the whole text, with a way out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import CompilationError, compiler
from weft.base import Unsupported


@weft.jit
def comprehension(x, n):
    squares = [i * i for i in range(n)]
    tl.store(x, squares[0])


@weft.jit
def stored_range(x, n):
    r = range(n)
    tl.store(x, len(r))


@weft.jit
def unrolled(x, n):
    squares = [i * i for i in tl.static_range(n)]
    tl.store(x, squares[0])


@weft.jit
def loop_range(x, n):
    squares = [i * i for i in tl.range(4)]
    tl.store(x, squares[0] + n)


@weft.jit
def elements(x, n):
    items = list(n)
    tl.store(x, items[0])


@weft.jit
def length(x, n):
    tl.store(x, len(tl.arange(0, 8) + n))


@weft.jit
def host_function(x, n):
    tl.store(x, math.sqrt(n))


@weft.jit
def function_of_numpy(x, n):
    tl.store(x, np.sqrt(n.to(tl.float32)))


@weft.jit
def reduction_of_numpy(x, n):
    tl.store(x, np.sum(tl.arange(0, 8)))


@weft.jit
def more_than_it_takes(x, n):
    tl.store(x, tl.abs(n, 2, 3))


@weft.jit
def axis_of_the_grid(x, n):
    tl.store(x, tl.program_id(n))


def _message(kernel: Any) -> str:
    """The text of the error, with the places in this file counted from the kernel's first line."""
    with pytest.raises(CompilationError) as caught:
        compiler.compile(weft.ASTSource(kernel, {"x": "*fp32", "n": "i32"}))
    error = caught.value
    assert error.span is not None and error.span.file == __file__
    return f"{error.span.line - kernel.fn.__code__.co_firstlineno}: {error.message}; {error.hint}"


UNROLLED = "outside of a `for` it is unrolled while the kernel is compiled: mark the parameter tl.constexpr"


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (comprehension, f"2: range() needs a value known at compile time, found a scalar int32; {UNROLLED}"),
        (stored_range, f"2: range() needs a value known at compile time, found a scalar int32; {UNROLLED}"),
        (unrolled, f"2: static_range() needs a value known at compile time, found a scalar int32; {UNROLLED}"),
        (loop_range, "2: cannot iterate over a range: only tuples can be; use Python's range(...)"),
        (
            elements,
            "2: list() needs a value known at compile time, found a scalar int32; the elements of a tensor cannot be "
            "taken apart; a tuple can be",
        ),
        (
            length,
            "2: len() needs a value known at compile time, found a tensor int32[8]; the sizes of a tile are x.shape, "
            "and x.numel is how many elements it has",
        ),
        (
            host_function,
            "2: `sqrt` runs while the kernel is compiled, and cannot take a scalar int32 (TypeError: must be real "
            "number, not tensor); in a kernel, tl.sqrt or libdevice.sqrt computes on tensors",
        ),
        (
            function_of_numpy,
            "2: `sqrt` runs while the kernel is compiled, and cannot take a scalar fp32 (TypeError: it is for arrays); "
            "in a kernel, tl.sqrt or libdevice.sqrt computes on tensors",
        ),
        (
            reduction_of_numpy,
            "2: `sum` runs while the kernel is compiled, and cannot take a tensor int32[8] (TypeError: it is for "
            "arrays); in a kernel, tl.sum computes on tensors",
        ),
        (more_than_it_takes, "2: abs() takes 1 positional argument, 3 were given; it is called as tl.abs(x)"),
        (
            axis_of_the_grid,
            "2: the axis of program_id must be of type tl.constexpr; mark the parameter, `n: tl.constexpr`",
        ),
    ],
)
def test_values_of_the_run_where_python_wants_its_own(kernel: Any, text: str) -> None:
    assert _message(kernel) == text


@weft.jit
def comprehension_over_range(x, N: tl.constexpr):
    squares = [i * i for i in range(N)]
    tl.store(x, squares[N - 1] + len(squares))  # 16 + 5


def test_a_comprehension_over_a_known_range() -> None:
    kernel = compiler.compile(weft.ASTSource(comprehension_over_range, {"x": "*i32", "N": "constexpr"}, {"N": 5}))
    assert "arith.constant 16" in kernel.asm["ttir"] and "arith.constant 5" in kernel.asm["ttir"]


@weft.jit
def unused_assembly(x, n):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [n], tl.int32, is_pure=True, pack=1)
    tl.store(x, n)


def test_assembly_is_refused_also_where_nobody_uses_it() -> None:
    with pytest.raises(Unsupported, match="inline_asm_elementwise is not supported on target cpu"):
        compiler.compile(weft.ASTSource(unused_assembly, {"x": "*i32", "n": "i32"}))


@weft.jit
def stored(x, n):
    tl.store(x + tl.arange(0, 4), n)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((np.zeros(4), (1, 2)), "cannot convert a tuple of 2 to tensor\nhint: use its elements, one at a time"),
        ((np.zeros(4), (3,)), "cannot convert a tuple of 1 to tensor\nhint: use its elements, one at a time"),
        (
            (5, 1),
            "Unsupported ptr type int32[4] in `tl.store`: expected a pointer or a tensor of them\n"
            "hint: the argument `x` is a number in this call: pass an array",
        ),
        (
            (1.5, 1),
            "Unsupported ptr type fp32[4] in `tl.store`: expected a pointer or a tensor of them\n"
            "hint: the argument `x` is a number in this call: pass an array",
        ),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_arguments_that_cannot_be_what_the_kernel_takes_them_for(target: str, arguments: Any, text: str) -> None:
    with pytest.raises(CompilationError) as caught:
        stored[(1,)](*arguments, target=target)
    error = caught.value
    assert f"{error.message}\nhint: {error.hint}" == text


@weft.jit
def compared_with_none(x, n):
    tl.store(x, 1.0 if n == None else 2.0)  # noqa: E711


def test_a_comparison_with_none() -> None:
    assert _message(compared_with_none) == (
        "2: cannot convert None of type NoneType to tensor; "
        "`is None` and `is not None` ask whether a value is None"
    )


@weft.jit
def several_axes(x, n):
    tl.sum(tl.zeros((4, 4), tl.float32), axis=(0, 1))


@weft.jit
def axis_of_the_run(x, n):
    tl.cumsum(tl.arange(0, 8), n)


@weft.jit
def tile_as_axis(x, n):
    tl.sort(tl.arange(0, 8), tl.arange(0, 4))


@weft.jit
def flag_of_the_run(x, n):
    tl.sum(tl.arange(0, 8), 0, keep_dims=n > 2)


@weft.jit
def descriptor_as_tuple(x, n):
    tl.device_print("x", tl.associative_scan(tl.make_block_ptr, 0, several_axes))


@weft.jit
def repeated_block_pointer(x, n):
    tl.broadcast_to(tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,)), (16,))


@weft.jit
def wider_other(x, n):
    tl.load(x + tl.arange(0, 4), mask=tl.arange(0, 4) < n, other=tl.zeros((4, 4), tl.float32))


@weft.jit
def annotated_global(x, n):
    tl.store(x, ANNOTATED)


ANNOTATED: tl.constexpr = 42


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            several_axes,
            "2: axis must be a constexpr integer, got (0, 1); "
            "one axis at a time; a reduction without an axis is over all elements",
        ),
        (axis_of_the_run, "2: axis must be a constexpr integer, got int32; mark the parameter, `n: tl.constexpr`"),
        (
            tile_as_axis,
            "2: axis must be a constexpr integer, got int32[4]; write a number there, "
            "or mark the parameter that it comes from, `N: tl.constexpr`",
        ),
        (flag_of_the_run, "2: keep_dims must be a constexpr bool, got int1; mark the parameter, `n: tl.constexpr`"),
        (
            descriptor_as_tuple,
            "2: `associative_scan` takes a tensor or a tuple of tensors as `input`, found the function make_block_ptr; "
            "it is called as tl.associative_scan(input, axis, combine_fn, reverse=False)",
        ),
        (
            repeated_block_pointer,
            "2: a block pointer cannot be repeated, got pointer<fp32[16]>; "
            "it is called as tl.broadcast_to(input, *shape)",
        ),
        (
            wider_other,
            "2: Expected pointer argument to have shape [4, 4] but got [4]; "
            "x[:, None] and x[None, :] add axes, tl.reshape and tl.broadcast_to change shapes",
        ),
        (
            annotated_global,
            "2: Cannot access global variable ANNOTATED from within @jit'ed function. It is of type int, which could "
            "change between launches; make it constant, `ANNOTATED = tl.constexpr(42)`, or pass it as an argument; "
            "an annotation does not make it constant",
        ),
    ],
)
def test_misused_arguments(kernel: Any, message: str) -> None:
    assert _message(kernel) == message


@weft.jit
def huge_power(x, n):
    tl.store(x, 2 ** 2**40)


@weft.jit
def huge_shift(x, n):
    tl.store(x, n + (1 << (1 << 40)))


@weft.jit
def huge_text(x, n):
    tl.static_assert("a" * (1 << 60) != "")


@weft.jit
def returned_early(x, n):
    if n > 3:
        return n
    tl.store(x, n)
    return 0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            huge_power,
            "2: this power has more than 65536 bits; integers of the language have at most 64 bits; "
            "write 2.0 ** n for a float",
        ),
        (
            huge_shift,
            "2: this shifted integer has more than 65536 bits; integers of the language have at most 64 bits; "
            "write 2.0 ** n for a float",
        ),
        (
            huge_text,
            "2: there is not enough memory to compile this; make what is computed at compile time here smaller",
        ),
        (returned_early, "3: a kernel cannot return a value; store the result with tl.store"),
    ],
    ids=lambda v: v.fn.__name__ if isinstance(v, weft.JITFunction) else "",
)
def test_values_that_cannot_be(kernel: Any, message: str) -> None:
    assert _message(kernel) == message


@weft.jit
def returned_nothing(x, n):
    tl.store(x, n)
    return ()


def test_an_empty_tuple_may_be_returned() -> None:
    x = np.zeros(1, np.int32)
    returned_nothing[(1,)](x, 7)
    assert x[0] == 7


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("x.astype(tl.float16)", "x.to(tl.float16) converts"),
        ("x.mean()", "tl.sum(x, axis) / n"),
        ("tl.dot(x, x)", "matrices are multiplied, [M, K] times [K, N]; of vectors, tl.sum(a * b)"),
    ],
)
def test_habits_of_numpy_have_a_way_out(line: str, hint: str) -> None:
    with pytest.raises(weft.CompilationError) as caught:
        weft.testing.evaluate(line, x=[1.0, 2.0])
    assert caught.value.hint == hint
