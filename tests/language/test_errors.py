"""What is said when a rule is broken: the whole text, with what was found and a way out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import weft.language as tl
from language.bench_ir import Bench
from weft.base import CompileTimeAssertionFailure
from weft.language.semantic import IncompatibleTypeErrorImpl

ARGS = {
    "x": "fp32",
    "h": "fp16",
    "n": "i32",
    "u": "u32",
    "b": "u1",
    "p": "*fp32",
    "q": "*i32",
    "k": "*kfp32",
    "c": "i8",
}


def refused(kind: type[BaseException], message: str) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """A test that what the function does on these arguments is refused with exactly this text."""

    def decorate(what: Callable[..., Any]) -> Callable[[], None]:
        def test() -> None:
            bench = Bench(*ARGS.values())
            values = dict(zip(ARGS, bench.args))
            with pytest.raises(kind) as caught:
                what(bench, **values)
            assert str(caught.value) == message

        return test

    return decorate


def tile(bench: Bench, *shape: int, type: Any = tl.float32) -> Any:
    return bench(tl.zeros, shape, type)


CASES: list[tuple[str, type[BaseException], str, Callable[..., Any]]] = [
    (
        "mixed signs",
        TypeError,
        "Cannot use /, //, or % with int32 and uint32 because they have different signedness; this is unlikely to "
        "result in a useful answer. Cast them to the same signedness.",
        lambda B, n, u, **_: B(n.__floordiv__, u),
    ),
    ("float //", TypeError, "`//` takes integers, got fp32 and fp32", lambda B, x, **_: B(x.__floordiv__, x)),
    (
        "number out of range",
        ValueError,
        "Scalar 300 is out of range for type int8",
        lambda B, c, **_: B(c.__add__, 300),
    ),
    (
        "negative number and unsigned",
        ValueError,
        "Cannot perform a binary operation between an unsigned tensor and a negative scalar. "
        "Perform a explicit cast on one of them.",
        lambda B, u, **_: B(u.__add__, -1),
    ),
    ("two pointers", TypeError, "cannot add pointers together", lambda B, p, **_: B(p.__add__, p)),
    (
        "a pointer times",
        IncompatibleTypeErrorImpl,
        "invalid operands of type pointer<fp32> and weft.language.int32",
        lambda B, p, n, **_: B(p.__mul__, n),
    ),
    (
        "bits of floats",
        IncompatibleTypeErrorImpl,
        "invalid operands of type weft.language.float32 and weft.language.float32",
        lambda B, x, n, **_: B(x.__and__, n),
    ),
    (
        "~ of a float",
        ValueError,
        "wrong type argument to unary invert (weft.language.float32)",
        lambda B, x, **_: B(x.__invert__),
    ),
    (
        "- of a pointer",
        ValueError,
        "wrong type argument to unary minus (pointer<fp32>)",
        lambda B, p, **_: B(p.__neg__),
    ),
    (
        "not of an int",
        ValueError,
        "`not` takes values of int1, got int32",
        lambda B, n, **_: B(n.__not__),
    ),
    ("and of an int", ValueError, "`and` takes values of int1, got int32", lambda B, n, **_: B(n.logical_and, n)),
    (
        "shapes",
        ValueError,
        "Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8",
        lambda B, **_: B(tile(B, 4).__add__, tile(B, 8)),
    ),
    ("program_id", ValueError, "program_id axis must be 0, 1, or 2 but got 3", lambda B, **_: B(tl.program_id, 3)),
    ("program_id", ValueError, "program_id axis must be 0, 1, or 2 but got 0.0", lambda B, **_: B(tl.program_id, 0.0)),
    (
        "arange of 7",
        ValueError,
        "arange's range must be a power of 2",
        lambda B, **_: B(tl.arange, 0, 7),
    ),
    (
        "arange of nothing",
        ValueError,
        "arange's end argument must be greater than the start argument, got 4 to 4",
        lambda B, **_: B(tl.arange, 4, 4),
    ),
    (
        "arange to a text",
        ValueError,
        "arange's arguments must be integers, got '16' of type str",
        lambda B, **_: B(tl.arange, 0, "16"),
    ),
    (
        "arange to a float",
        ValueError,
        "arange's arguments must be integers, got 16.0 of type float",
        lambda B, **_: B(tl.arange, 0, 16.0),
    ),
    (
        "arange beyond int32",
        ValueError,
        "arange must fit in int32, got 0 to 2199023255552",
        lambda B, **_: B(tl.arange, 0, 1 << 41),
    ),
    (
        "arange at run time",
        ValueError,
        "arange's arguments must be of type tl.constexpr",
        lambda B, n, **_: B(tl.arange, 0, n),
    ),
    (
        "a float as an int",
        TypeError,
        "the value 1.5 is a float and does not fit the integer type int32: cast it first",
        lambda B, **_: B(tl.full, (4,), 1.5, tl.int32),
    ),
    (
        "a negative unsigned",
        TypeError,
        "the value -1 is negative and does not fit the unsigned type uint8",
        lambda B, **_: B(tl.full, (4,), -1, tl.uint8),
    ),
    (
        "odd shape",
        ValueError,
        "Shape element 1 must be a power of 2",
        lambda B, **_: B(tl.zeros, (4, 6), tl.float32),
    ),
    (
        "shape at run time",
        TypeError,
        "Shape element 0 must have type `constexpr[int]`, got `int32`",
        lambda B, n, **_: B(tl.zeros, (n,), tl.float32),
    ),
    (
        "reshape",
        ValueError,
        "reshape() cannot change total number of elements in tensor: [4, 8] has 32, [4, 4] has 16",
        lambda B, **_: B(tile(B, 4, 8).reshape, 4, 4),
    ),
    ("trans", ValueError, "tl.trans invoked with a 0- or 1-dimensional tensor", lambda B, **_: B(tl.trans, tile(B, 8))),
    (
        "permute",
        ValueError,
        "permute dims must be a permutation of 0, 1, ..., n-1, but were [1, 1]",
        lambda B, **_: B(tl.permute, tile(B, 4, 8), 1, 1),
    ),
    (
        "split",
        ValueError,
        "split needs a last dimension of size 2, got shape [4, 8]",
        lambda B, **_: B(tl.split, tile(B, 4, 8)),
    ),
    (
        "join",
        TypeError,
        "join needs one element type, got fp32 and int32: cast one of them",
        lambda B, **_: B(tl.join, tile(B, 4), tile(B, 4, type=tl.int32)),
    ),
    (
        "cat",
        AssertionError,
        "tensor dims must match except in the concat dimension 1, got [4, 8] and [2, 8]",
        lambda B, **_: B(tl.cat, tile(B, 4, 8), tile(B, 2, 8), dim=1),
    ),
    (
        "broadcast_to",
        ValueError,
        "Cannot broadcast, rank mismatch: [8], [4, 8]",
        lambda B, **_: B(tl.broadcast_to, tile(B, 8), 4, 8),
    ),
    ("axis", ValueError, "invalid axis 3. Expected -2 <= axis < 2", lambda B, **_: B(tl.expand_dims, tile(B, 8), 3)),
    (
        "axes",
        ValueError,
        "expand_dims received duplicate axes, normalized axes = [0, 0]",
        lambda B, **_: B(tl.expand_dims, tile(B, 8), (0, -3)),
    ),
    (
        "index",
        ValueError,
        "unsupported tensor index: 0 (a tensor is indexed only with None and with full slices `:`; "
        "load elements by pointers)",
        lambda B, **_: B(tile(B, 8).__getitem__, 0),
    ),
    (
        "item",
        ValueError,
        "can only unsplat single-element tensors, got shape [8]",
        lambda B, **_: B(tl.core.item, tile(B, 8)),
    ),
    (
        "cast",
        TypeError,
        "cannot cast fp8e5[4] to int32: go through float32",
        lambda B, **_: B(tile(B, 4, type=tl.float8e5).to, tl.int32),
    ),
    (
        "rounding",
        ValueError,
        "fp_downcast_rounding should be set only for truncating fp conversions. Source scalar type is fp16 and "
        "destination type is fp32",
        lambda B, h, **_: B(h.to, tl.float32, fp_downcast_rounding="rtz"),
    ),
    (
        "rounding mode",
        ValueError,
        "Invalid rounding mode: up. Supported rounding modes are 'rtne' and 'rtz'.",
        lambda B, x, **_: B(x.to, tl.float16, fp_downcast_rounding="up"),
    ),
    (
        "bitcast",
        ValueError,
        "Cannot bitcast data-type of size 32 to data-type of size 16",
        lambda B, x, **_: B(x.to, tl.float16, bitcast=True),
    ),
    (
        "load of a number",
        ValueError,
        "Unsupported ptr type weft.language.float32 in `tl.load`: expected a pointer or a tensor of them",
        lambda B, x, **_: B(tl.load, x),
    ),
    ("other", ValueError, "`other` cannot be provided without `mask`", lambda B, p, **_: B(tl.load, p, other=1.0)),
    ("mask", ValueError, "Mask must have boolean scalar type, got int32", lambda B, p, n, **_: B(tl.load, p, mask=n)),
    (
        "mask of a scalar",
        ValueError,
        "Mask argument cannot be block type if pointer argument is not a block",
        lambda B, p, **_: B(tl.load, p, mask=tile(B, 4, type=tl.int1)),
    ),
    (
        "cache",
        ValueError,
        "Cache modifier .xx not supported; supported: .ca, .cg, .cs, .cv",
        lambda B, p, **_: B(tl.load, p, cache_modifier=".xx"),
    ),
    (
        "eviction",
        ValueError,
        "Eviction policy soon not supported; supported: evict_last, evict_first",
        lambda B, p, **_: B(tl.load, p, eviction_policy="soon"),
    ),
    ("const", ValueError, "Cannot store to a constant pointer", lambda B, k, **_: B(tl.store, k, 1.0)),
    (
        "store of a tile to a scalar",
        ValueError,
        "Value argument cannot be block type if pointer argument is not a block",
        lambda B, p, **_: B(tl.store, p, tile(B, 4)),
    ),
    (
        "pointers are not broadcast",
        ValueError,
        "Expected pointer argument to have shape [8, 4] but got [8, 1]",
        lambda B, p, **_: B(tl.store, B(p.__add__, tile(B, 8, 1, type=tl.int32)), tile(B, 8, 4)),
    ),
    (
        "atomic types",
        ValueError,
        "atomic_max does not support fp16",
        lambda B, p, **_: B(tl.atomic_max, B(p.to, tl.pointer_type(tl.float16)), 1.0),
    ),
    (
        "atomic order",
        ValueError,
        "Memory semantic sloppy not supported; supported: acquire, release, acq_rel, relaxed",
        lambda B, q, **_: B(tl.atomic_add, q, 1, sem="sloppy"),
    ),
    (
        "cas",
        TypeError,
        "atomic_cas needs `cmp` to have the element type fp32, got int32: cast it",
        lambda B, p, **_: B(tl.atomic_cas, p, 1, 2),
    ),
    (
        "dot K",
        ValueError,
        "input and other must have equal reduction dimensions: got fp32[16, 32] and fp32[16, 16], K = 32 and 16",
        lambda B, **_: B(tl.dot, tile(B, 16, 32), tile(B, 16, 16)),
    ),
    (
        "dot types",
        TypeError,
        "Both operands must be same dtype. Got fp32 and fp16",
        lambda B, **_: B(tl.dot, tile(B, 16, 16), tile(B, 16, 16, type=tl.float16)),
    ),
    (
        "dot ranks",
        ValueError,
        "input and other must have equal ranks >= 2: got fp32[16, 16] and fp32[2, 16, 16]",
        lambda B, **_: B(tl.dot, tile(B, 16, 16), tile(B, 2, 16, 16)),
    ),
    (
        "dot of scalars",
        TypeError,
        "dot needs two tensors of rank 2 or more, got fp32[] and fp32[]",
        lambda B, x, **_: B(tl.dot, x, x),
    ),
    (
        "dot precision",
        ValueError,
        "input_precision must be one of ('ieee', 'tf32', 'tf32x3', 'bf16x3', 'bf16x6'). Got exact",
        lambda B, **_: B(tl.dot, tile(B, 16, 16), tile(B, 16, 16), input_precision="exact"),
    ),
    (
        "dot accumulator",
        TypeError,
        "the accumulator is fp16 but the product is fp32: cast it, or say out_dtype "
        "(which float16 and fp8 operands follow)",
        lambda B, **_: B(tl.dot, tile(B, 16, 16), tile(B, 16, 16), acc=tile(B, 16, 16, type=tl.float16)),
    ),
    (
        "scales",
        ValueError,
        "lhs_scale must be a tensor of shape [32, 2]. Got [32, 4] for K = 64",
        lambda B, **_: B(
            tl.dot_scaled,
            tile(B, 32, 64, type=tl.float8e5),
            tile(B, 32, 4, type=tl.uint8),
            "e5m2",
            tile(B, 64, 32, type=tl.float8e5),
            None,
            "e5m2",
        ),
    ),
    (
        "math",
        ValueError,
        "Expected dtype ['fp32', 'fp64'] but got fp16: cast it with .to(tl.float32)",
        lambda B, h, **_: B(tl.exp, h),
    ),
    (
        "clamp",
        TypeError,
        "Unexpected dtype int32. Only floating point clamp is supported",
        lambda B, n, **_: B(tl.clamp, n, 0, 1),
    ),
    (
        "xor_sum",
        CompileTimeAssertionFailure,
        "error: xor_sum only supported for integers, got fp32",
        lambda B, **_: B(tl.xor_sum, tile(B, 8)),
    ),
    ("reduce axis", ValueError, "invalid axis 2. Expected -2 <= axis < 2", lambda B, **_: B(tl.sum, tile(B, 4, 8), 2)),
    (
        "reduce a scalar",
        ValueError,
        "a reduction needs tensors, got the scalar fp32[]",
        lambda B, x, **_: B(tl.sum, x, 0),
    ),
    (
        "gather",
        ValueError,
        "index dim 1 must match the corresponding source dim: got [2, 4] for a source of [4, 8] and axis 0",
        lambda B, **_: B(tl.gather, tile(B, 4, 8), tile(B, 2, 4, type=tl.int32), 0),
    ),
    (
        "histogram",
        TypeError,
        "histogram only supports integer input, got fp32",
        lambda B, **_: B(tl.histogram, tile(B, 8), 16),
    ),
    (
        "hint",
        ValueError,
        "Shape of input to multiple_of does not match the length of values: [4, 8] and [2]",
        lambda B, **_: B(tl.multiple_of, tile(B, 4, 8), 2),
    ),
    (
        "hint of zero",
        ValueError,
        "multiple_of takes positive integers, got 0",
        lambda B, n, **_: B(tl.multiple_of, n, 0),
    ),
    (
        "hint at run time",
        TypeError,
        "values element 0 must have type `constexpr`, got a tensor",
        lambda B, n, **_: B(tl.multiple_of, n, n),
    ),
    ("static_assert", CompileTimeAssertionFailure, "error: why", lambda B, **_: B(tl.static_assert, False, "why")),
    (
        "static_assert at run time",
        NotImplementedError,
        "Assertion condition could not be determined at compile-time. "
        "Make sure that it depends only on `constexpr` values",
        lambda B, b, **_: B(tl.static_assert, b),
    ),
    (
        "print",
        TypeError,
        "the first argument of device_print must be a string known when compiling, got int32[]",
        lambda B, n, **_: B(tl.device_print, n),
    ),
    (
        "print text",
        ValueError,
        "the text of device_print must be printable ASCII, got 'ö'",
        lambda B, n, **_: B(tl.device_print, "ö", n),
    ),
    (
        "assume",
        TypeError,
        "assume takes a condition of type int1, got int32: write it as a comparison",
        lambda B, n, **_: B(tl.assume, n),
    ),
    (
        "descriptor block",
        ValueError,
        "Descriptor block shape must have at least 16 bytes in the last dimension, but got 2 * 4 = 8 bytes",
        lambda B, p, n, **_: B(tl.make_tensor_descriptor, p, [n, n], [n, 1], [2, 2]),
    ),
    (
        "descriptor stride",
        ValueError,
        "Tensor descriptor last dim must be 1 but got 2",
        lambda B, p, n, **_: B(tl.make_tensor_descriptor, p, [n, n], [n, 2], [4, 8]),
    ),
    (
        "descriptor rank",
        ValueError,
        "Expected 1 <= ndim <= 5 but got 0 dimensions",
        lambda B, p, **_: B(tl.make_tensor_descriptor, p, [], [], []),
    ),
    (
        "block pointer",
        ValueError,
        "Expected shape/strides/offsets/block_shape to have the same length",
        lambda B, p, n, **_: B(tl.make_block_ptr, p, (n,), (1, 1), (0, 0), (4, 4), (1, 0)),
    ),
    (
        "moving a block pointer",
        TypeError,
        "a block pointer is moved with tl.advance(pointer, offsets), not by adding to it",
        lambda B, p, n, **_: B(B(tl.make_block_ptr, p, (n, n), (n, 1), (0, 0), (4, 4), (1, 0)).__add__, 1),
    ),
]


@pytest.mark.parametrize(("kind", "message", "what"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_message(kind: type[BaseException], message: str, what: Callable[..., Any]) -> None:
    refused(kind, message)(what)()


def test_warnings() -> None:
    bench = Bench("i32", "fp32")
    n, x = bench.args
    with pytest.warns(UserWarning, match=r"^tl\.where with a non-boolean condition is deprecated and will error out"):
        bench(tl.where, n, x, 1.0)
    with pytest.warns(UserWarning, match=r"^Value 32 exceeds the maximum bitwidth \(32\) for type 'int32'\."):
        bench(n.__lshift__, tl.constexpr(32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bench(n.__lshift__, tl.constexpr(31))
