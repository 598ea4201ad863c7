"""What came into the language with Triton 3.7 to 3.9, on every target."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft import ir

TARGETS = ["cpu", "sim:cuda:80", "sim:cuda:90"]


@weft.jit
def negated(x, o, T: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(o + i, (-tl.load(x + i).to(T)).to(tl.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [tl.float32, tl.float16, tl.bfloat16, tl.float8e5, tl.float8e4nv, tl.float64])
def test_the_sign_of_a_negated_zero(kind: Any, target: str) -> None:
    x = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.nan, 3.5, -0.5], np.float32)
    if kind in (tl.float8e4nv, tl.float8e5):  # to which infinity is the greatest number
        x[4] = 448
    o = np.zeros(8, np.float32)
    negated[(1,)](x, o, kind, target=target)
    assert np.array_equal(o, -x, equal_nan=True)
    assert np.array_equal(np.signbit(o), np.signbit(-x) & ~np.isnan(x) | np.signbit(o) & np.isnan(x))


@weft.jit
def end_to_end(x, y, z, D: tl.constexpr):
    i = tl.arange(0, 4)[:, None, None] * 16 + tl.arange(0, 8)[None, :, None] * 2 + tl.arange(0, 2)[None, None]
    tile = tl.cat(tl.load(x + i), tl.load(y + i), dim=D)
    tl.store(z + tl.arange(0, 128), tile.reshape(128))


@weft.jit
def end_to_end_1d(x, y, z, REORDER: tl.constexpr):
    i = tl.arange(0, 64)
    both = tl.cat(tl.load(x + i, cache_modifier=".cs"), tl.load(y + i), can_reorder=REORDER)
    tl.store(z + tl.arange(0, 128), both)


@pytest.mark.parametrize("target", TARGETS)
def test_cat_is_in_order_along_any_dimension(target: str) -> None:
    a = np.arange(64, dtype=np.int32).reshape(4, 8, 2)
    z = np.zeros(128, np.int32)
    for dim in (0, 1, 2, -1):
        end_to_end[(1,)](a, ~a, z, dim, target=target)
        assert np.array_equal(z, np.concatenate([a, ~a], dim).ravel()), dim
    for reorder in (True, False):
        z[:] = 0
        made = end_to_end_1d[(1,)](a, ~a, z, reorder, target=target)
        assert np.array_equal(z, np.concatenate([a, ~a]).ravel()), reorder
        if target != "cpu":
            assert "ld.global.cs" in made.asm["ptx"]


class Pair(NamedTuple):
    first: Any
    second: Any

    def total(self) -> int:
        return self.first + self.second


@weft.constexpr_function
def swapped(pair):
    assert isinstance(pair, Pair)
    return Pair(pair.second, pair.first)


@weft.jit
def of_pairs(o, P: tl.constexpr, T: tl.constexpr):
    tl.static_assert(T.type == ((5, 6, 7)).type)
    tl.static_assert(swapped(Pair(3, 4)).first == 4)
    tl.static_assert(swapped(P).second == 10 and len(T) == 3)
    back: tl.constexpr = swapped(P)
    tl.store(o, swapped(back).first * 1000 + T[1])


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
def test_named_tuples_keep_their_class_in_functions_of_the_host(target: str) -> None:
    o = np.zeros(1, np.int32)
    of_pairs[(1,)](o, Pair(10, 20), (5, 6, 7), target=target)
    assert o[0] == 10_006


@tl.core._aggregate
class Square:
    x: tl.tensor

    @weft.constexpr_function
    def __init__(self, x):
        self.x = x

    @weft.must_use_result
    @weft.constexpr_function
    def power(self):
        return 2

    @weft.must_use_result
    @weft.jit
    def area(self):
        return self.x * self.x


@weft.jit
def drops(x, POWER: tl.constexpr):
    a = Square(tl.load(x))
    if POWER:
        a.power()
    else:
        a.area()


@pytest.mark.parametrize(("power", "name"), [(True, "power"), (False, "area")])
def test_results_of_methods_must_be_used(power: bool, name: str) -> None:
    with pytest.raises(weft.CompilationError, match=f"The result of a.{name} is not being used"):
        drops[(1,)](np.zeros(1, np.int32), power)


@weft.jit
def copied(src, dst, old, n, ORDERED: tl.constexpr):
    i = tl.arange(0, 16)
    if ORDERED:
        value = tl.atomic_load(src + i, mask=i < n)
        tl.atomic_store(dst + i, value, mask=i < n)
    else:
        value = tl.atomic_load(src + i, i < n, sem="relaxed", scope="sys")
        tl.atomic_store(dst + i, value, i < n, "relaxed", "cta")
    tl.store(old + i, value.to(tl.float32))
    tl.atomic_store(dst + 15, tl.atomic_load(src + 1))


KINDS = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_atomic_loads_and_stores(kind: Any, target: str) -> None:
    src = (np.arange(16) % 7 + 250).astype(np.uint8).astype(kind)
    src.setflags(write=False)  # what is only read need not be writable
    for ordered in (True, False):
        dst, old = np.zeros(16, kind), np.zeros(16, np.float32)
        made = copied[(1,)](src, dst, old, 10, ordered, target=target)
        assert np.array_equal(dst[:10], src[:10]) and dst[15] == src[1] and not dst[10:15].any()
        assert np.array_equal(old[:10], src[:10].astype(np.float32)) and not old[10:].any()
        if target != "cpu":
            bits = max(8, 8 * dst.itemsize)
            orders = ("acquire.gpu", "release.gpu") if ordered else ("relaxed.sys", "relaxed.cta")
            assert f"ld.{orders[0]}.global.b{bits}" in made.asm["ptx"]
            assert f"st.{orders[1]}.global.b{bits}" in made.asm["ptx"]


@weft.jit
def message(flag, payload, out, ROUNDS: tl.constexpr):
    for i in range(ROUNDS):
        if tl.program_id(0) == 0:
            tl.atomic_poll(flag, 2 * i + 1)
            tl.store(out + i, tl.load(payload, volatile=True))
            tl.atomic_store(flag, 2 * i + 2)
        else:
            tl.store(payload, 10 * i + 7)
            tl.atomic_store(flag, 2 * i + 1)
            tl.atomic_poll(flag, 2 * i + 2, sem="acquire", scope="gpu")


@weft.jit
def waits(flag, out, timeout_ns):
    tl.store(out, tl.atomic_poll(flag, 1, timeout_ns=timeout_ns))


@pytest.mark.parametrize("target", TARGETS)
def test_polling(target: str) -> None:
    flag, payload, out = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(4, np.int32)
    message[(2,)](flag, payload, out, 4, target=target)
    assert out.tolist() == [7, 17, 27, 37] and flag[0] == 8
    for value in (0, 1):
        for width in (np.int16, np.int32, np.uint64):
            found = np.zeros(1, np.bool_)
            waits[(1,)](np.full(1, value, width), found, 1000, target=target)
            assert found[0] == (value == 1)


@weft.jit
def refused(p, CASE: tl.constexpr):
    if CASE == 0:
        tl.atomic_load(p, sem="release")
    elif CASE == 1:
        tl.atomic_store(p, 1, sem="acquire")
    elif CASE == 2:
        tl.atomic_poll(p, 1, timeout_ns=-1)
    elif CASE == 3:
        tl.atomic_poll(p + tl.arange(0, 2), 1)
    elif CASE == 4:
        tl.atomic_poll(p, 1, sem="acq_rel")


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (0, "atomic_load only supports acquire and relaxed semantics"),
        (1, "atomic_store only supports release and relaxed semantics"),
        (2, "atomic_poll timeout_ns must be non-negative"),
        (3, "atomic_poll only supports a pointer to a scalar"),
        (4, "atomic_poll only supports acquire and relaxed semantics"),
    ],
)
def test_what_atomic_loads_and_stores_refuse(case: int, text: str) -> None:
    with pytest.raises(weft.CompilationError, match=f"error: {text}\n"):
        refused[(1,)](np.zeros(2, np.int32), case)


@weft.jit
def underflows(x, o):
    i = tl.arange(0, 16)
    tl.store(o + i, tl.expect_zero(tl.load(x + i), i < 8))


def test_values_expected_to_be_zero() -> None:
    x, o = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    made = underflows[(1,)](x, o)
    assert np.array_equal(o, x) and "tt.assert" not in made.asm["ttir"]
    with pytest.raises(weft.DeviceAssertionError, match="expect_zero expected x == 0 where mask is true"):
        underflows[(1,)](x, o, debug=True)
    x[:8] = 0
    underflows[(1,)](x, o, debug=True)


@weft.jit
def sign_of(x):
    if x < 0:
        return 1
    else:
        return 0


@weft.jit
def with_half(x):
    return tl.constexpr(0.5), x


@weft.jit
def of_known_results(o):
    known: tl.constexpr = sign_of(-3)
    tl.static_assert(known == 1)
    pair: tl.constexpr = with_half(7)
    tl.static_assert(pair[0] == 0.5 and pair[1] == 7)
    at_run_time = -3
    tl.static_assert(sign_of(at_run_time).dtype == tl.int32)
    tl.store(o + tl.arange(0, 2 * known), sign_of(at_run_time) + known)


def test_results_that_are_known_can_be_constexprs() -> None:
    o = np.zeros(2, np.int32)
    of_known_results[(1,)](o)
    assert o.tolist() == [2, 2]


@weft.jit
def least_and_reversed(x, least, back, K: tl.constexpr):
    i = tl.arange(0, 4)[:, None]
    tile = tl.load(x + i * 16 + tl.arange(0, 16))
    tl.store(least + i * K + tl.arange(0, K), tl.topk(tile, K, descending=False))
    tl.store(back + i * 16 + tl.arange(0, 16), tl.flip(tile))


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_the_smallest_elements_and_the_last_axis_reversed(target: str) -> None:
    x = np.random.default_rng(0).permutation(64).astype(np.int32).reshape(4, 16)
    for k in (1, 4, 16):
        least, back = np.zeros((4, k), np.int32), np.zeros((4, 16), np.int32)
        least_and_reversed[(1,)](x, least, back, k, target=target)
        assert np.array_equal(least, np.sort(x)[:, :k]) and np.array_equal(back, x[:, ::-1])


@weft.jit
def awaited(flag, out, payload, TIMEOUT: tl.constexpr):
    if TIMEOUT:
        tl.store(out, tl.atomic_poll(flag, 1, scope="sys", timeout_ns=1000))
    else:
        tl.atomic_poll(flag, 1)
        tl.store(out, tl.load(payload))


@pytest.mark.parametrize("target", ["cpu", "cuda:80", "cuda:90"])
@pytest.mark.parametrize("timeout", [True, False])
def test_a_poll_loads_relaxed_and_is_fenced_behind(target: str, timeout: bool) -> None:
    source = weft.ASTSource(awaited, {"flag": "*i32", "out": "*i32", "payload": "*i32"}, {"TIMEOUT": timeout})
    made = weft.compile(source, target)
    scope, text = ("sys", made.asm["ttir"]) if timeout else ("gpu", made.asm["ttir"])
    assert f"tt.atomic_poll acquire, {scope}, %flag, %c1_i32" in text and (" timeout " in text) == timeout
    again = ir.parse_module(text)
    assert ir.print_module(again) == text
    if target == "cpu":
        assert made.metadata.shared == 0
        return
    fence = "acq_rel" if target == "cuda:80" else "acquire"
    ptx = made.asm["ptx"]
    assert ptx.count(f"ld.relaxed.{scope}.global.b32") == 1 and ptx.count(f"fence.{fence}.{scope};") == 1
    assert ptx.count("%globaltimer") == 2 * timeout
    assert (made.metadata.shared == 0) != timeout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%p, %v : !tt.ptr<i8>, i8", "waits for integers of 16, 32 or 64 bits, not for i8"),
        ("%p, %w : !tt.ptr<i8>, i32", "comes i8, not"),
    ],
)
def test_what_a_poll_in_ir_text_refuses(text: str, message: str) -> None:
    source = f"""module {{
  tt.func public @k(%p: !tt.ptr<i8>, %v: i8, %w: i32) {{
    %0 = tt.atomic_poll acquire, gpu, {text} -> i1
    tt.return
  }}
}}"""
    with pytest.raises(weft.WeftError, match=message):
        ir.verify(ir.parse_module(source))


@weft.jit
def divided(x, y, o, T: tl.constexpr, S: tl.constexpr):
    i = tl.arange(0, 16)
    a, b = tl.load(x + i).to(T), tl.load(y + i).to(S)
    tl.static_assert((a / b).dtype == tl.float32 and (a % b).dtype == tl.float32)
    tl.static_assert((a / 2.0).dtype == tl.float32 and (3 % a).dtype == tl.float32)
    tl.static_assert((a * b).dtype == (T if T == S else tl.float16) and (a * 2.0).dtype == T)
    tl.store(o + i, a / b)
    tl.store(o + 16 + i, a % b)
    tl.store(o + 32 + i, 1.0 / a)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("other", [tl.float8e5, tl.float8e4nv])
def test_quotients_of_small_floats_are_float32(other: Any, target: str) -> None:
    x, y = np.linspace(1, 16, 16, dtype=np.float32), np.linspace(3, 18, 16, dtype=np.float32)
    o = np.zeros(48, np.float32)
    divided[(1,)](x, y, o, tl.float8e5, other, target=target)
    small = {tl.float8e5: ml_dtypes.float8_e5m2, tl.float8e4nv: ml_dtypes.float8_e4m3fn}
    a, b = x.astype(small[tl.float8e5]).astype(np.float32), y.astype(small[other]).astype(np.float32)
    np.testing.assert_allclose(o, np.concatenate([a / b, np.fmod(a, b), 1 / a]), rtol=1e-6)


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_atomic_loads_and_stores_as_ir_text(target: str) -> None:
    signature = {"src": "*fp16", "dst": "*fp16", "old": "*fp32", "n": "i32", "ORDERED": "constexpr"}
    made = weft.compile(weft.ASTSource(copied, signature, {"ORDERED": True}), target)
    text = made.asm["ttir"]
    tile, mask = "tensor<16x!tt.ptr<i16>>", "tensor<16xi1>"
    assert re.search(rf"= tt.atomic_load acquire, gpu, %\w+, %\w+ : \({tile}, {mask}\) -> tensor<16xi16>", text)
    assert re.search(rf"tt.atomic_store release, gpu, %\w+, %\w+, %\w+ : {tile}\n", text)
    assert re.search(r"= tt.atomic_load acquire, gpu, %\w+ : \(!tt.ptr<i16>\) -> i16", text)
    assert re.search(r"tt.atomic_store release, gpu, %\w+, %\w+ : !tt.ptr<i16>\n", text)
    assert ir.print_module(ir.parse_module(text)) == text
    if target == "cuda:90":
        assert "tt.atomic_load acquire, gpu" in made.asm["ttgir"] and "ld.acquire.gpu.global.b16" in made.asm["ptx"]


@pytest.mark.parametrize("target", TARGETS)
def test_atomic_loads_and_stores_of_ir_text_run(target: str, tmp_path: Path) -> None:
    file = tmp_path / "k.ttir"
    file.write_text("""module {
  tt.func public @k(%p: !tt.ptr<i32>, %o: !tt.ptr<i32>, %n: i32) {
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %ends = tt.splat %n : i32 -> tensor<8xi32>
    %m = arith.cmpi slt, %i, %ends : tensor<8xi32>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %sp = tt.addptr %s, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %d = tt.splat %o : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %dp = tt.addptr %d, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %v = tt.atomic_load relaxed, cta, %sp, %m : (tensor<8x!tt.ptr<i32>>, tensor<8xi1>) -> tensor<8xi32>
    tt.atomic_store relaxed, sys, %dp, %v : tensor<8x!tt.ptr<i32>>
    %one = tt.atomic_load acquire, sys, %p : (!tt.ptr<i32>) -> i32
    tt.atomic_store release, gpu, %o, %one : !tt.ptr<i32>
    tt.return
  }
}
""")
    x, out = np.arange(10, 18, dtype=np.int32), np.full(8, -1, np.int32)
    weft.compile(str(file), target)[(1,)](x, out, 5)
    assert out.tolist() == [10, 11, 12, 13, 14, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = tt.atomic_load release, gpu, %p : (!tt.ptr<i8>) -> i8", "its order is acquire or relaxed, not release"),
        ("%0 = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i8>) -> i32", "goes i8, not"),
        ("tt.atomic_store acquire, gpu, %p, %v : !tt.ptr<i8>", "its order is release or relaxed, not acquire"),
    ],
)
def test_what_atomic_loads_and_stores_in_ir_text_refuse(text: str, message: str) -> None:
    source = f"""module {{
  tt.func public @k(%p: !tt.ptr<i8>, %v: i8) {{
    {text}
    tt.return
  }}
}}"""
    with pytest.raises(weft.WeftError, match=message):
        ir.verify(ir.parse_module(source))


def test_an_atomic_load_beyond_an_array_is_found() -> None:
    dst, old = np.zeros(16, np.int32), np.zeros(16, np.float32)
    with pytest.raises(weft.WeftError, match="`src`"):
        copied[(1,)](np.zeros(12, np.int32), dst, old, 16, True, debug=True)
    copied[(1,)](np.zeros(12, np.int32), dst, old, 12, True, debug=True)
    with pytest.raises(weft.WeftError, match="`dst`"):
        copied[(1,)](np.zeros(12, np.int32), dst[:10], old, 12, True, debug=True)
