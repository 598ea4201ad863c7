"""Common mistakes in calls of kernels: the whole message, the class that a program may catch, and a short traceback."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import DefinitionError, LaunchError


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def a(dtype: Any = np.float32) -> Any:
    return np.zeros(16, dtype)


def call(grid: Any = (1,), /, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    """A launch of `add`; arguments that are not given are right."""
    right = [a(), a(), a(), 16]
    return lambda: add[grid](*args, *right[len(args) :], **{"BLOCK": 16, **kwargs})


KINDS = "kernels take arrays, numbers, None, tuples of these, tensor descriptors and jit functions"
GRID = "a grid is a tuple of 1 to 3 integers or a function that returns one, got a {}"
GRIDS = "hint: kernel[(weft.cdiv(n, BLOCK),)](...), or lambda meta: (weft.cdiv(n, meta['BLOCK']),)"

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an argument is missing": (
        lambda: add[(1,)](a(), a(), a(), BLOCK=16),
        TypeError,
        "argument `n` is missing\nhint: the kernel has (x, y, out, n, BLOCK): give it in its place, or as n=...",
    ),
    "an argument too many": (
        lambda: add[(1,)](a(), a(), a(), 16, 16, 4),
        TypeError,
        "6 arguments were given, the kernel has 5: x, y, out, n, BLOCK\n"
        "hint: several values for one parameter are a tuple, options (num_warps=8) are given by name",
    ),
    "a keyword that is none": (
        call(num_warp=4),
        KeyError,
        "Keyword argument num_warp was specified but unrecognised\nhint: did you mean `num_warps`?",
    ),
    "a list": (
        call((1,), [0.0] * 16),
        TypeError,
        f"argument `x`: failed to specialize argument of type list: {KINDS}\n"
        "hint: numpy.array(x) makes an array of a list, tuple(x) a tuple of arguments",
    ),
    "text": (
        call((1,), a(), a(), a(), "16"),
        TypeError,
        f"argument `n`: failed to specialize argument of type str: {KINDS}\n"
        "hint: text is for parameters that are annotated with tl.constexpr",
    ),
    "a complex number": (
        call((1,), a(), a(), a(), 1j),
        TypeError,
        f"argument `n`: failed to specialize argument of type complex: {KINDS}\n"
        "hint: pass its parts, x.real and x.imag",
    ),
    "a dictionary": (
        call((1,), a(), a(), a(), {}),
        TypeError,
        f"argument `n`: failed to specialize argument of type dict: {KINDS}\n"
        "hint: pass its values one by one, or tuple(x) for a parameter that takes several",
    ),
    "a function": (
        call((1,), a(), a(), a(), len),
        TypeError,
        f"argument `n`: failed to specialize argument of type builtin_function_or_method: {KINDS}\n"
        "hint: decorate the function with @jit to call it in the kernel",
    ),
    "a type": (
        call((1,), a(), a(), a(), np.dtype(np.float32)),
        TypeError,
        f"argument `n`: failed to specialize argument of type {type(np.dtype(np.float32)).__name__}: {KINDS}\n"
        "hint: a type is for parameters that are annotated with tl.constexpr",
    ),
    "something else": (
        call((1,), a(), a(), a(), object()),
        TypeError,
        f"argument `n`: failed to specialize argument of type object: {KINDS}\n"
        "hint: take its numbers and arrays, x.data say, and pass those",
    ),
    "records": (
        call((1,), a([("a", "f4")])),
        TypeError,
        "argument `x`: elements of type void32 cannot be used in a kernel\nhint: pass its fields one by one, x['name']",
    ),
    "strings": (
        call((1,), np.array(["a"] * 16)),
        TypeError,
        "argument `x`: elements of type str32 cannot be used in a kernel\nhint: convert it to an array of numbers",
    ),
    "a grid of a negative size": (
        call((-1,)),
        ValueError,
        "grid size -1 on axis 0 is negative\nhint: a size of 0 launches nothing: max(size, 0)",
    ),
    "no grid": (call(None), TypeError, f"{GRID.format('NoneType')}\n{GRIDS}"),
    "a grid that is a float": (call(lambda meta: 16 / meta["BLOCK"]), TypeError, f"{GRID.format('float')}\n{GRIDS}"),
    "an empty grid": (
        call(()),
        ValueError,
        "a grid has 1 to 3 dimensions, got 0: ()\nhint: one program is kernel[(1,)](...)",
    ),
    "three warps": (
        call(num_warps=3),
        AssertionError,
        "num_warps must be a power of 2, and on a GPU at most 32, got 3\n"
        "hint: 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024",
    ),
    "a negative number of stages": (
        call(num_stages=-1),
        AssertionError,
        "num_stages must be between 1 and 32, got -1\nhint: 2 to 4 are usual, and 1 does not pipeline",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_launch(what: str) -> None:
    launch, kind, message = MISTAKES[what]
    with pytest.raises(kind) as caught:
        launch()
    assert str(caught.value) == message and isinstance(caught.value, LaunchError)
    inside = [f for f in traceback.extract_tb(caught.tb) if f.filename != __file__]
    assert len(inside) <= 6, [f"{f.filename}:{f.lineno}" for f in inside]


def test_a_grid_asks_for_what_is_no_parameter() -> None:
    """The class is Python's own, and a note says what there is."""
    with pytest.raises(KeyError, match="'BLOK'") as caught:
        call(lambda meta: (meta["BLOK"],))()
    assert caught.value.__notes__ == [
        "hint: the grid is a function that asks for 'BLOK'; it can ask for x, y, out, n, BLOCK"
    ]


def test_a_heuristic_asks_for_what_is_no_parameter() -> None:
    kernel = weft.heuristics({"BLOCK": lambda meta: meta["m"]})(add)
    with pytest.raises(KeyError, match="'m'") as caught:
        kernel[(1,)](a(), a(), a(), 16)
    assert caught.value.__notes__[0].startswith(
        "hint: the heuristic of `BLOCK` asks for 'm'; it can ask for x, y, out, n"
    )


def test_a_decorator_above_a_tuned_kernel() -> None:
    tuned = weft.autotune(configs=[weft.Config({"BLOCK": 16})], key=["n"])(add)
    with pytest.raises(DefinitionError) as caught:
        weft.jit(tuned)[(1,)](a(), a(), a(), 16)  # type: ignore[type-var]
    assert str(caught.value) == (
        "error: jit needs a Python function, got an object of type Autotuner\n"
        "hint: decorators apply from the bottom up: put @jit right above the `def`"
    )


@weft.jit
def unknown_keyword(x, n):
    tl.store(x, n, msk=n > 1)


@weft.jit
def no_value(x, n):
    tl.store(x)


@weft.jit
def shape_of_a_number(x, n):
    tl.store(x, tl.sum(tl.zeros(16, tl.float32)))


@weft.jit
def text_behind(x, n):
    print("n =", n, "x")


@weft.jit
def appended(x, n):
    values = [1, 2]
    values.append(n)


@weft.jit
def two_types(x, n):
    tile = tl.zeros([16, 16], tl.float32)
    tl.store(x, tl.sum(tl.dot(tile.to(tl.float16), tile)))


@weft.jit
def array_as_constant(x, N: tl.constexpr):
    tl.store(x, x + N)


STORE = "tl.store(pointer, value, mask=None, boundary_check=(), cache_modifier='', eviction_policy='')"


@pytest.mark.parametrize(
    ("kernel", "n", "message", "hint"),
    [
        (unknown_keyword, 3, "store() got an unexpected keyword argument 'msk'", f"it is called as {STORE}"),
        (no_value, 3, "store() missing 1 required positional argument: 'value'", f"it is called as {STORE}"),
        (
            shape_of_a_number,
            3,
            "`zeros` takes a tuple of integers known at compile time as `shape`, found constexpr 16",
            "it is called as tl.zeros(shape, dtype); a shape is a list or a tuple, [16]",
        ),
        (
            text_behind,
            3,
            "cannot convert x of type str to tensor",
            'text comes first and alone: tl.device_print("n, m:", n, m)',
        ),
        (
            appended,
            3,
            "the tuple (a scalar int32, a scalar int32) has no attribute `append`",
            "lists of a kernel are tuples, which do not change: x = x + (y,) makes a longer one",
        ),
        (two_types, 3, "Both operands must be same dtype. Got fp16 and fp32", "convert one of them, x.to(y.dtype)"),
        (
            array_as_constant,
            np.ones(64),
            f"cannot convert [{'1. ' * 20}... of type ndarray to tensor",
            "an array is no constant: take `tl.constexpr` from its parameter, and tl.load its elements",
        ),
    ],
)
def test_in_a_kernel(kernel: Any, n: Any, message: str, hint: str) -> None:
    with pytest.raises(weft.CompilationError) as caught:
        kernel[(1,)](a(), n)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_kernel_is_no_sequence_without_end() -> None:
    """`kernel[0]`, `kernel[1]`, ... are launchers: Python would go through them for ever."""
    tuned = weft.autotune(configs=[weft.Config({"BLOCK": 16})], key=["n"])(add)
    for kernel in (add, tuned, weft.heuristics({})(add)):
        with pytest.raises(TypeError, match="object is not iterable"):
            list(kernel)  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            1 in kernel  # type: ignore[operator]


def test_options_and_grids_that_are_misspelt() -> None:
    source = weft.ASTSource(unknown_keyword, {"x": "*fp32", "n": "i32"})
    with pytest.raises(weft.LaunchError, match=r"unknown option 'num_warp'\nhint: did you mean `num_warps`\?"):
        weft.compile(source, options={"num_warp": 4})
    with pytest.raises(TypeError, match=r"warmup needs the grid of the launch, and was given `gird`\nhint: .*grid="):
        unknown_keyword.warmup(np.zeros(4, np.float32), 3, gird=(1,))  # type: ignore[call-overload]
