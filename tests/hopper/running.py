"""Run layout IR in the simulator: what each file's kernel is given, and a descriptor as a launcher would take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import weft.ir.gpu  # the operations of layout IR
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.sim import Options, Report, run

DATA = Path(__file__).resolve().parent.parent / "data"
EVERY = [
    Options(copies=copies, order=order, seed=seed)
    for copies, order, seed in (
        ("latest", "forward", 0),
        ("earliest", "forward", 0),
        ("latest", "backward", 0),
        ("latest", "random", 1),
        ("earliest", "random", 2),
    )
]
"""Copies that land at either end, and warps in several orders."""

assert weft.ir.gpu.ttg is not None


@dataclass
class Described:
    """A tensor descriptor by protocol: an array, and what of it is looked at."""

    base: np.ndarray
    block_shape: Sequence[int]
    padding: str = "zero"
    shape: Sequence[int] = ()
    strides: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.shape = tuple(self.shape) or self.base.shape
        self.strides = tuple(self.strides) or tuple(s // self.base.itemsize for s in self.base.strides)


@cache
def program_of(text: str, name: str = "kernel.ttgir") -> LaneProgram:
    """The lane program of a kernel in layout IR; the target may not exist, it is simulated."""
    return lower(parse_module(text, name))


def read(name: str) -> str:
    """A stored kernel."""
    for folder in ("hopper", "ttgir"):
        path = DATA / folder / f"{name}.ttgir"
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(name)


def flattened(program: LaneProgram, values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of parameters: behind a descriptor stand its sizes and strides."""
    found: dict[str, Any] = {}
    rest: list[Any] = []
    given = iter(values.items())
    for parameter in program.parameters:
        if rest:
            found[parameter.name] = rest.pop(0)
            continue
        name, value = next(given)
        found[parameter.name] = value
        if parameter.elem == "tensormap":
            assert isinstance(value, Described), name
            rest = [*value.shape, *value.strides]
    return found


def launch(program: LaneProgram, grid: Any, values: Mapping[str, Any], options: Options | None = None) -> Report:
    """Run a program, its arguments in order."""
    return run(program, grid, flattened(program, values), options or Options())


def simulate(name: str, grid: Any, values: Mapping[str, Any], options: Options | None = None) -> Report:
    """Run a stored kernel, its arguments in order."""
    return launch(program_of(read(name), f"{name}.ttgir"), grid, values, options)


DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "fp8": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f64": np.float64,
}


def aligned(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Zeros at an address that is a multiple of 16."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    raw = np.zeros(count * dtype.itemsize + 16, np.uint8)
    skip = -int(raw.__array_interface__["data"][0]) % 16
    return raw[skip : skip + count * dtype.itemsize].view(dtype).reshape(shape)


def integers(seed: int, shape: Sequence[int], dtype: Any, low: int = -4, high: int = 5) -> np.ndarray:
    """Small whole numbers, exact in every type."""
    found = aligned(shape, dtype)
    found[...] = np.random.default_rng(seed).integers(low, high, shape).astype(np.float32).astype(dtype)
    return found
