"""libdevice: its table, and the one operation that a call is."""

from __future__ import annotations

import csv
import inspect
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.language as tl
from language.bench_ir import Bench
from weft import ir
from weft.base import Unsupported
from weft.language.extra import libdevice

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "libdevice.tsv"


def test_there_are_198_functions() -> None:
    names = libdevice.names()
    assert len(names) == len(set(names)) == 198
    assert set(names) <= set(dir(libdevice))
    with pytest.raises(AttributeError, match=r"^libdevice has no function `frobnicate`$"):
        libdevice.frobnicate


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference is not here")
def test_the_table_is_complete() -> None:
    with REFERENCE.open() as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t") if r["backend"] == "cuda"]
    want = {(r["name"], r["args"], r["symbol"], r["result"]) for r in rows}
    found = {
        (name, ",".join(map(str, types)), symbol, str(result))
        for name in libdevice.names()
        for types, (symbol, result) in libdevice._table(name).items()
    }
    assert found == want | {("fast_tanhf", "fp32", "__nv_tanhf", "fp32")}


def test_a_call_is_one_operation() -> None:
    bench = Bench("fp32", "fp32")
    y = bench(libdevice.pow, *bench.args)
    (op,) = bench.block.ops
    assert op.name == "tt.extern_elementwise" and op.properties["symbol"] == ir.str_attr("__nv_powf")
    assert y.dtype == tl.float32
    assert str(inspect.signature(libdevice.pow)) == "(arg0, arg1, _semantic=None)"


def test_arguments_are_broadcast_and_numbers_converted() -> None:
    bench = Bench("fp32")
    tile = bench(tl.full, (8,), 2.0, tl.float32)
    assert bench(libdevice.pow, tile, bench.args[0]).type == tl.block_type(tl.float32, [8])
    assert bench(libdevice.pow, tile, 3.0).type == tl.block_type(tl.float32, [8])


def test_promotion_only_where_the_types_are_not_listed() -> None:
    bench = Bench("fp32", "i32", "fp64")
    x, n, wide = bench.args
    assert bench(libdevice.pow, x, n).handle.owner.properties["symbol"] == ir.str_attr("__nv_powif")
    assert bench(libdevice.pow, x, wide).handle.owner.properties["symbol"] == ir.str_attr("__nv_pow")


def test_predicates_are_boolean() -> None:
    bench = Bench("fp32")
    assert bench(libdevice.isnan, bench.args[0]).dtype == tl.int1
    assert bench(libdevice.signbit, bench.args[0]).dtype == tl.int32


def test_types_that_a_function_does_not_take() -> None:
    bench = Bench("fp16")
    message = r"^input argument type \(fp16\) is not supported by this function: it takes \(fp32\); \(fp64\)$"
    with pytest.raises(TypeError, match=message):
        bench(libdevice.exp, bench.args[0])
    with pytest.raises(TypeError, match=r"^libdevice\.pow takes 2 arguments, got 1$"):
        bench(libdevice.pow, bench.args[0])


def test_what_only_a_gpu_has() -> None:
    assert tl.extra.cuda.libdevice.pow is tl.extra.hip.libdevice.pow is libdevice.pow
    bench = Bench("fp16")
    with pytest.raises(Unsupported) as failure:
        bench(tl.extra.cuda.convert_custom_float8_sm80, bench.args[0], tl.float8e4b15)
    assert str(failure.value) == (
        "error: tl.extra.cuda.convert_custom_float8_sm80 is not supported on target cpu\nhint: it works on cuda"
    )
    with pytest.raises(Unsupported, match="tl.extra.hip.memrealtime is not supported on target cpu"):
        bench(tl.extra.hip.memrealtime)


def test_target_info() -> None:
    bench = Bench()
    for question in ("is_cuda", "is_hip", "is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250"):
        assert bench(getattr(tl.target_info, question)).value is False
        assert getattr(tl.target_info, question)() is False
    assert bench(tl.target_info.cuda_capability_geq, 8).value is False
    assert bench(tl.target_info.current_target).value.backend == "cpu"
    assert tl.target_info.current_target().backend == "cpu"


@weft.constexpr_function
def capability() -> int:
    target = tl.target_info.current_target()
    return target.arch if target.backend == "cuda" and tl.target_info.cuda_capability_geq(8) else 0


@weft.jit
def tell_target(out):
    target: tl.constexpr = tl.target_info.current_target()
    tl.store(out, tl.target_info.is_cuda())
    tl.store(out + 1, capability())
    if target.backend == "cuda":
        tl.store(out + 2, tl.target_info.cuda_capability_geq(9, 0))


@pytest.mark.parametrize(
    ("target", "told"), [("cpu", [0, 0, 5]), ("sim:cuda:80", [1, 80, 0]), ("sim:cuda:90", [1, 90, 1])]
)
def test_functions_of_the_host_are_told_the_target_of_the_kernel(target: str, told: list[int]) -> None:
    out = np.full(3, 5, np.int32)
    with weft.target(target):
        tell_target[(1,)](out)
        assert tl.target_info.is_cuda() is (target != "cpu")  # on the host it is where launches go
    assert out.tolist() == told
