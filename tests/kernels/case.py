"""What one test kernel is: the kernel, its data, its grid, and the answer NumPy gives.

    Case(
        name="vector_add",
        kernel=vector_add_kernel,
        inputs=lambda rng: {"x": normal(rng, 1000), "y": normal(rng, 1000), "out": zeros(1000), "n": 1000},
        constexprs={"BLOCK": 256},
        grid=(4,),
        reference=lambda a: {"out": f64(a["x"]) + f64(a["y"])},
    )

`inputs` returns the arguments by parameter name: NumPy arrays (also of `ml_dtypes` types) become pointers,
`Descriptor` becomes a tensor descriptor, Python numbers stay scalars. `reference` sees copies of the arguments from
before the launch and returns what the named arrays must hold afterwards; floats are compared in float64 with the
case's tolerance, everything else exactly. Nothing in this file knows which Triton runs the kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Arguments = dict[str, Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)

TYPE_NAMES = {
    np.dtype(np.bool_): "i1",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "u8",
    np.dtype(np.uint16): "u16",
    np.dtype(np.uint32): "u32",
    np.dtype(np.uint64): "u64",
    np.dtype(np.float16): "fp16",
    np.dtype(np.float32): "fp32",
    np.dtype(np.float64): "fp64",
    BF16: "bf16",
    E4M3: "fp8e4nv",
    E5M2: "fp8e5",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "fp8e4b8",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "fp8e5b16",
}
FLOATS = {name for name in TYPE_NAMES.values() if "f" in name}


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor over `array` that moves blocks of `block_shape`."""

    array: Array
    block_shape: tuple[int, ...]
    padding: str = "zero"


@dataclass(frozen=True)
class Case:
    """One kernel with its data, grid and expected result."""

    name: str
    kernel: Any
    inputs: Callable[[np.random.Generator], Arguments]
    reference: Callable[[Arguments], Mapping[str, Any]]
    grid: tuple[int, ...] = (1,)
    constexprs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    rtol: float = 1e-5
    atol: float = 1e-6
    ttir: bool = True
    """False for kernels that Triton 3.6.0 refuses for cuda:90 although the language allows them."""
    tags: tuple[str, ...] = ()

    def make_inputs(self) -> Arguments:
        """The arguments, from a generator seeded by the name: the same in every run."""
        return self.inputs(np.random.default_rng(list(self.name.encode())))

    def signature(self, arguments: Arguments) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int, ...], Any]]:
        """Types, compile-time values and attributes as a first launch with these arguments would specialise them."""
        types: dict[str, str] = {}
        values: dict[str, Any] = {}
        attributes: dict[tuple[int, ...], Any] = {}
        for position, name in enumerate(self.kernel.arg_names):
            if name in self.constexprs:
                types[name], values[name] = "constexpr", self.constexprs[name]
                continue
            if name not in arguments:
                types[name], values[name] = "constexpr", inspect.signature(self.kernel.fn).parameters[name].default
                continue
            value = arguments[name]
            types[name] = type_name(value)
            if types[name] == "constexpr":
                values[name] = value
            elif isinstance(value, np.ndarray) or (type(value) is int and value % 16 == 0):
                attributes[(position,)] = [["tt.divisibility", 16]]
        return types, values, attributes

    def check(self, before: Arguments, after: Arguments) -> None:
        """Fail with a readable message unless every array in the reference holds what it should."""
        for name, expected in self.reference(before).items():
            compare(f"{self.name}.{name}", storage(after[name]), np.asarray(expected), self.rtol, self.atol)


def type_name(value: Any) -> str:
    """The type a launch gives an argument: `*fp32`, `i32`, `fp32`, `constexpr` for the integer 1 and None."""
    if isinstance(value, Descriptor):
        block = ",".join(map(str, value.block_shape))
        return f"tensordesc<{TYPE_NAMES[value.array.dtype]}[{block}]>"
    if isinstance(value, np.ndarray):
        return "*" + TYPE_NAMES[value.dtype]
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        if value == 1:
            return "constexpr"
        if -(2**31) <= value < 2**31:
            return "i32"
        return "i64" if value < 2**63 else "u64"
    if isinstance(value, float):
        return "fp32"
    if value is None:
        return "constexpr"
    raise TypeError(f"no argument type for {value!r}")


def storage(value: Any) -> Array:
    """The array behind an argument."""
    array: Array = value.array if isinstance(value, Descriptor) else value
    return array


def copy_arguments(arguments: Arguments) -> Arguments:
    """Arguments whose arrays are copies, so that a launch cannot touch the originals."""
    copies: Arguments = {}
    for name, value in arguments.items():
        if isinstance(value, Descriptor):
            copies[name] = Descriptor(value.array.copy(), value.block_shape, value.padding)
        else:
            copies[name] = value.copy() if isinstance(value, np.ndarray) else value
    return copies


def compare(label: str, actual: Array, expected: Array, rtol: float, atol: float) -> None:
    """Compare in float64 when the stored type is a float, exactly otherwise."""
    if TYPE_NAMES.get(actual.dtype) in FLOATS:
        np.testing.assert_allclose(f64(actual), f64(expected), rtol=rtol, atol=atol, err_msg=label, equal_nan=True)
    else:
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype), err_msg=label)


# Data ----------------------------------------------------------------------------------------------------------------


def f64(array: Any) -> Array:
    """The array in float64, from any type including those of ml_dtypes."""
    return np.asarray(array).astype(np.float64)


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32, scale: float = 1.0) -> Array:
    """Normally distributed values, rounded to `dtype`."""
    return (rng.standard_normal(shape) * scale).astype(dtype)


def uniform(
    rng: np.random.Generator, *shape: int, low: float = 0.0, high: float = 1.0, dtype: Any = np.float32
) -> Array:
    """Uniform values in [low, high), rounded to `dtype`."""
    return rng.uniform(low, high, shape).astype(dtype)


def integers(rng: np.random.Generator, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
    """Integers in [low, high)."""
    return rng.integers(low, high, shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    """An array of zeros."""
    return np.zeros(shape, dtype)


def filled(*shape: int, value: float, dtype: Any = np.float32) -> Array:
    """An array of one value: outputs are often filled, so that an untouched element is noticed."""
    return np.full(shape, value, dtype)
