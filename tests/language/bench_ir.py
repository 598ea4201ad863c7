"""A place to drive builtins without a frontend, and a small evaluator for what they build.

x, n = bench.args("*fp32", "i32")
y = bench(tl.sort, x)                     # calls the builtin with the semantic
bench.run(y, {x: values})                 # numpy evaluates the IR behind y
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

import weft.language as tl
from weft import ir
from weft.base import CompileOptions
from weft.ir import tt
from weft.language.semantic import TritonSemantic

NUMPY = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


class Bench:
    """Arguments, a builder over one block, a semantic."""

    def __init__(self, *signature: Any, **options: Any) -> None:
        types = [tl.str_to_ty(s, None) for s in signature]
        flat: list[Any] = []
        for type in types:
            type._flatten_ir_types(None, flat)
        self.block = Block(arg_types=flat)
        self.semantic = TritonSemantic(ir.Builder.at_end(self.block), CompileOptions(**options))
        self.args: list[Any] = []
        cursor = 0
        for type in types:
            value, cursor = type._unflatten_ir(list(self.block.args), cursor)
            self.args.append(value)

    def __call__(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, _semantic=self.semantic, **kwargs)

    def ops(self) -> list[str]:
        """The names of the operations built, in order."""
        return [op.name for op in self.block.ops]

    def run(self, value: Any, given: dict[Any, Any] | None = None) -> Any:
        """Evaluate a value; `given` maps tensors to arrays."""
        known: dict[SSAValue, Any] = {k.handle: v for k, v in (given or {}).items()}
        for op in self.block.ops:
            if any(o not in known for o in op.operands):
                continue
            results = evaluate(op, [known[o] for o in op.operands])
            known.update(zip(op.results, results))
        return known[value.handle]


def dtype_of(type: Any) -> Any:
    """numpy's type for the elements of an IR type."""
    return NUMPY[str(ir.element_of(type))]


def _unsigned(x: Any) -> Any:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _mulhi(x: Any, y: Any) -> Any:
    bits = np.asarray(x).dtype.itemsize * 8
    a, b = np.broadcast_arrays(_unsigned(x).astype(object), _unsigned(y).astype(object))
    wide = np.vectorize(lambda p, q: (int(p) * int(q)) >> bits, otypes=[object])(a, b)
    return wide.astype(f"u{bits // 8}").view(f"i{bits // 8}")


def _compare(op: Any, x: Any, y: Any) -> Any:
    name = (arith.CMPI_COMPARISON_OPERATIONS if op.name == "arith.cmpi" else arith.CMPF_COMPARISON_OPERATIONS)[
        ir.int_value(op.properties["predicate"])
    ]
    if name.startswith("u") and op.name == "arith.cmpi":
        x, y = _unsigned(x), _unsigned(y)
    functions = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    return functions[name[-2:]](x, y)


BINARY = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift, "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply,
    "arith.divf": np.divide, "arith.minsi": np.minimum, "arith.maxsi": np.maximum, "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin, "tt.mulhiui": _mulhi, "arith.divsi": lambda x, y: np.trunc(x / y).astype(x.dtype),
    "arith.remsi": np.fmod,
    "arith.minui": lambda x, y: np.minimum(_unsigned(x), _unsigned(y)).view(x.dtype),
    "arith.maxui": lambda x, y: np.maximum(_unsigned(x), _unsigned(y)).view(x.dtype),
    "arith.shrui": lambda x, y: (_unsigned(x) >> _unsigned(y)).view(x.dtype),
}  # fmt: skip
UNARY = {"math.exp": np.exp, "math.log": np.log, "math.sqrt": np.sqrt, "math.cos": np.cos, "math.sin": np.sin}
SIGNED_CASTS = ("arith.extsi", "arith.trunci", "arith.sitofp", "arith.extf", "arith.truncf", "arith.fptosi")


def evaluate(op: Any, values: list[Any]) -> list[Any]:
    """One operation on numpy arrays (scalars are arrays of no dimension)."""
    with np.errstate(all="ignore"):
        return _evaluate(op, values)


def _evaluate(op: Any, values: list[Any]) -> list[Any]:
    types = [r.type for r in op.results]
    name = op.name
    shape = ir.shape_of(types[0]) if types else ()
    if name == "arith.constant":
        return [np.full(shape, ir.splat_value(op.properties["value"])).astype(dtype_of(types[0]))]
    if name in BINARY:
        return [np.asarray(BINARY[name](*values)).astype(dtype_of(types[0]))]
    if name in UNARY:
        return [np.asarray(UNARY[name](*values))]
    if name in ("arith.cmpi", "arith.cmpf"):
        return [_compare(op, *values)]
    if name == "arith.select":
        return [np.where(*values)]
    if name in ("arith.extui", "arith.uitofp"):
        return [_unsigned(values[0]).astype(dtype_of(types[0]))]
    if name in SIGNED_CASTS or name == "tt.fp_to_fp":
        return [np.asarray(values[0]).astype(dtype_of(types[0]))]
    if name == "tt.bitcast":
        return [np.asarray(values[0]).view(dtype_of(types[0]))]
    if name == "tt.make_range":
        return [np.arange(ir.int_value(op.start), ir.int_value(op.end), dtype=np.int32)]
    if name in ("tt.splat", "tt.broadcast"):
        return [np.broadcast_to(values[0], shape)]
    if name in ("tt.reshape", "tt.expand_dims", "tt.unsplat"):
        return [np.ascontiguousarray(values[0]).reshape(shape)]
    if name == "tt.trans":
        return [np.ascontiguousarray(np.transpose(values[0], ir.ints_of(op.order)))]
    if name == "tt.join":
        return [np.stack(values, axis=-1)]
    if name == "tt.split":
        return [values[0][..., 0], values[0][..., 1]]
    if name == "tt.reduce" and len(values) == 1:
        combine = next(iter(op.regions[0].block.ops))
        ufunc = BINARY[combine.name]
        axis = ir.int_value(op.axis)
        result = np.take(values[0], 0, axis)
        for i in range(1, values[0].shape[axis]):
            result = np.asarray(ufunc(result, np.take(values[0], i, axis))).astype(values[0].dtype)
        return [result]
    if name == "tt.gather":
        axis = ir.int_value(op.axis)
        return [np.take_along_axis(values[0], values[1], axis)]
    raise NotImplementedError(f"the evaluator does not know {name}")


__all__ = ["Bench", "evaluate", "tt"]
