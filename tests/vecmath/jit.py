"""Running functions of the math library on NumPy arrays: the harness of its tests, its error table and its timings.

f = compiled("exp", "float", lanes=16)
f(np.linspace(-1, 1, 1000, dtype=np.float32))
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from weft.backends.llvm import vecmath
from weft.backends.llvm.emit import Module
from weft.backends.llvm.values import I64, PTR, VOID, vec

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

NUMPY = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}
HOST_FEATURES = llvm.get_host_cpu_features().flatten()
HOST_CPU = llvm.get_host_cpu_name()
AVX512 = "+avx512f" in HOST_FEATURES.split(",")
_ROUNDS = 16


def loop_module(name: str, elem: str, lanes: int, wide_scale: bool = AVX512, body=None) -> Module:
    """A module with `run(rounds, n, inputs..., output)`: the function over n elements, n a multiple of lanes,
    repeated.
    """
    found = vecmath.definition(name, elem)
    module = Module()
    vecmath.configure(module, avx512=wide_scale)
    params = [("rounds", I64), ("n", I64), *((f"p{i}", PTR) for i in range(len(found.args))), ("out", PTR)]
    f = module.function(
        "run",
        VOID,
        params,
        '"prefer-vector-width"="512"',
        param_attributes=["", "", *["noalias"] * (len(found.args) + 1)],
    )
    rounds, n, *inputs, out = f.args
    zero, one, step = f.const(I64, 0), f.const(I64, 1), f.const(I64, max(lanes, 1))
    with f.loop(zero, rounds, one), f.loop(zero, n, step) as i:
        values = [f.load(vec(e, lanes), f.gep(vec(e, 0), p, i), align=8) for e, p in zip(found.args, inputs)]
        f.store(vecmath.call(f, name, values), f.gep(vec(found.result, 0), out, i), align=4)
    f.ret()
    return module


def optimise(text: str, cpu: str = HOST_CPU, features: str = HOST_FEATURES, level: int = 3):
    """Parse and optimise; gives LLVM's module and the target machine."""
    parsed = llvm.parse_assembly(text)
    parsed.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=level)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    builder.getModulePassManager().run(parsed, builder)
    return parsed, machine


class Compiled:
    """A function of the library, machine code on arrays of any length."""

    def __init__(self, name: str, elem: str, lanes: int, **options) -> None:
        self.found = vecmath.definition(name, elem)
        self.lanes = max(lanes, 1)
        start = time.perf_counter()
        module = loop_module(name, elem, lanes, **options)
        text = module.text()
        self.emit_seconds = time.perf_counter() - start
        self.text = text
        parsed, machine = optimise(text)
        self.assembly = machine.emit_assembly
        self._engine = llvm.create_mcjit_compiler(parsed, machine, use_lmm=True)
        self._engine.finalize_object()
        self._parsed = parsed
        self._run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * (len(self.found.args) + 1))(
            self._engine.get_function_address("run")
        )
        self.compile_seconds = time.perf_counter() - start

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        count = len(arrays[0])
        padded = -(-count // self.lanes) * self.lanes
        inputs = [
            np.ascontiguousarray(np.resize(a, padded), NUMPY[e]) for a, e in zip(arrays, self.found.args, strict=True)
        ]
        out = np.empty(padded, NUMPY[self.found.result])
        self._run(1, padded, *(a.ctypes.data for a in inputs), out.ctypes.data)
        return out[:count]

    def nanoseconds(self, *arrays: np.ndarray, seconds: float = 0.05) -> float:
        """Time for one element, over arrays that stay in the first-level cache; the best of several runs."""
        count = len(arrays[0]) // self.lanes * self.lanes
        inputs = [aligned(count, NUMPY[e]) for e in self.found.args]
        for a, given in zip(inputs, arrays, strict=True):
            a[:] = given[:count]
        out = aligned(count, NUMPY[self.found.result])
        pointers = [*(a.ctypes.data for a in inputs), out.ctypes.data]
        rounds, best = _ROUNDS, float("inf")
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            start = time.perf_counter()
            self._run(rounds, count, *pointers)
            taken = time.perf_counter() - start
            best = min(best, taken / (rounds * count) * 1e9)
            if taken < seconds / 20:
                rounds *= 2
        return best


def aligned(count: int, kind: type) -> np.ndarray:
    """Uninitialised memory that begins on a cache line."""
    raw = np.empty(count * np.dtype(kind).itemsize + 64, np.uint8)
    return raw[-raw.ctypes.data % 64 :][: count * np.dtype(kind).itemsize].view(kind)


@cache
def compiled(name: str, elem: str, lanes: int = 0) -> Compiled:
    """The function on the host, in as many lanes as fill 512 bits unless told otherwise."""
    return Compiled(name, elem, lanes or (8 if elem in ("double", "i64") else 16))


def ulps(got: np.ndarray, wanted: np.ndarray, elem: str) -> np.ndarray:
    """Distance from `wanted` (more precise than `elem`) in units of the last place of `elem` at wanted; NaN and inf
    must agree.
    """
    kind = NUMPY[elem]
    info = np.finfo(kind)
    with np.errstate(all="ignore"):
        rounded = np.asarray(wanted).astype(kind)
        wide = np.asarray(wanted, dtype=np.longdouble)
        size = np.maximum(np.abs(wide), np.longdouble(info.smallest_normal))
        _, exponent = np.frexp(size)
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent - 1 - info.nmant, info.minexp - info.nmant))
        distance = np.abs(got.astype(np.longdouble) - wide) / unit
    same = (got == rounded) & ~np.isfinite(rounded) | (np.isnan(got) & np.isnan(rounded))
    # an overflow of the exact value, or a value next to it: the largest number is one unit away from infinity
    edge = np.isinf(got) & (np.abs(wide) >= np.longdouble(info.max) * (1 - np.longdouble(info.eps)))
    edge |= np.isinf(rounded) & (np.abs(got) >= info.max * (1 - info.eps))
    distance = np.where(same, 0, np.where(edge, 1, distance))
    return np.where(np.isnan(distance) | (np.isinf(rounded) != np.isinf(got)) & ~edge, np.inf, distance).astype(
        np.float64
    )


def bit_patterns(elem: str, count: int, seed: int = 1) -> np.ndarray:
    """Random bits: every exponent, both signs, denormals, infinities and NaNs."""
    random = np.random.default_rng(seed)
    width = np.uint32 if elem == "float" else np.uint64
    return random.integers(0, np.iinfo(width).max, count, dtype=width, endpoint=True).view(NUMPY[elem])


def specials(elem: str) -> np.ndarray:
    """The values where definitions turn: zeros, ones, infinities, NaN, the ends of the ranges, and neighbours."""
    info = np.finfo(NUMPY[elem])
    base: Sequence[float] = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        4.0,
        10.0,
        100.0,
        np.pi,
        np.e,
        float(info.tiny),
        float(info.smallest_subnormal),
        float(info.max),
        np.inf,
        np.nan,
        float(info.eps),
    ]
    with np.errstate(all="ignore"):
        values = np.array([*base, *(-b for b in base)], dtype=NUMPY[elem])
        near = [np.nextafter(values, NUMPY[elem](np.inf)), np.nextafter(values, NUMPY[elem](-np.inf))]
        return np.concatenate([values, *near])
