"""Small kernels for what Triton's own tests once found wrong here, one for each class of fault."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def _later_maximum(v0, i0, v1, i1):
    first = v0 > v1
    return tl.where(first, v0, v1), tl.where(first, i0, i1)


@weft.jit
def _where_of_running_maximum(X, Z, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    x = tl.load(X + m * N + n)
    i = tl.broadcast_to((m if AXIS == 0 else n).to(tl.int64), [M, N])
    _, z = tl.associative_scan((x, i), axis=AXIS, combine_fn=_later_maximum)
    tl.store(Z + m * N + n, z)


@pytest.mark.parametrize("shape", [(8, 32), (1, 256), (64, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_with_a_result_that_nothing_reads(shape: tuple[int, int], axis: int) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    z = np.full(shape, -1, np.int64)
    _where_of_running_maximum[(1,)](x, z, *shape, axis)
    best = np.maximum.accumulate(x, axis=axis)
    steps = np.broadcast_to(np.expand_dims(np.arange(shape[axis]), 1 - axis), shape)
    np.testing.assert_array_equal(z, np.maximum.accumulate(np.where(x == best, steps, 0), axis=axis))


@weft.jit
def _integers_from_a_float_zero(Z, N: tl.constexpr, VALUE: tl.constexpr):
    tl.store(Z + tl.arange(0, N), tl.full((N,), VALUE, tl.int8) + 1)


def test_a_float_zero_is_a_zero_of_any_type() -> None:
    z = np.zeros(8, np.int8)
    _integers_from_a_float_zero[(1,)](z, 8, 0.0)
    np.testing.assert_array_equal(z, 1)
    with pytest.raises(weft.CompilationError, match=r"1\.5 is a float"):
        _integers_from_a_float_zero[(1,)](z, 8, 1.5)


def test_an_error_in_a_replaced_source_points_to_its_place() -> None:
    @weft.jit
    def kernel(Z):
        tl.store(Z, 1)

    kernel._unsafe_update_src(kernel.src.replace("tl.store(Z, 1)", "tl.store(Z, missing)"))
    with pytest.raises(weft.CompilationError) as e:
        kernel[(1,)](np.zeros(1))
    line = kernel.starting_line_number + 2
    assert f"test_conformance.py:{line}:21: " in str(e.value)
    assert "tl.store(Z, missing)" in str(e.value)


def test_the_name_that_repr_makes() -> None:
    def name(facts):
        return f"scale_{facts.signature['X']}_{facts.constants['BLOCK']}".replace("*", "p")

    @weft.jit(repr=name)
    def scale(X, BLOCK: tl.constexpr):
        at = X + tl.arange(0, BLOCK)
        tl.store(at, tl.load(at) * 2)

    x = np.ones(8, np.float32)
    assert scale[(1,)](x, 8).name == "scale_pfp32_8"
    assert "@scale_pfp32_8(" in scale[(1,)](x, 8).asm["ttir"]


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_an_integer_that_no_type_holds(value: int) -> None:
    @weft.jit
    def kernel(value, X):
        pass

    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        kernel[(1,)](value, np.zeros(1))


def test_what_is_said_of_a_tuple_does_not_count_for_its_items() -> None:
    @weft.jit(do_not_specialize=["strides"])
    def kernel(X, strides):
        one = tl.arange(0, strides[1])  # a bound has to be constant
        tl.store(X + one, strides[0] + strides[1])

    x = np.zeros(1, np.int32)
    kernel[(1,)](x, (3, 1))
    assert x[0] == 4


@pytest.mark.parametrize("how", ["reset_to_zero", "restore_value"])
def test_tuning_around_an_argument_that_is_not_given(how: str) -> None:
    @weft.autotune([weft.Config({"BLOCK": 8}), weft.Config({"BLOCK": 16})], key=["n"], **{how: ["extra"]})
    @weft.jit
    def fill(out, extra, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, 1 if extra is None else tl.load(extra), mask=i < n)

    out = np.zeros(20, np.float32)
    fill[lambda meta: (weft.cdiv(20, meta["BLOCK"]),)](out, None, 20)
    np.testing.assert_array_equal(out, 1)


def test_tile_ir_from_a_file_in_the_place_of_a_kernels(tmp_path) -> None:
    @weft.jit
    def add_one(X, BLOCK: tl.constexpr):
        at = X + tl.arange(0, BLOCK)
        tl.store(at, tl.load(at) + 1)

    x = np.zeros(8, np.float32)
    text = add_one[(1,)](x, 8).asm["ttir"]
    file = tmp_path / "add_three.ttir"
    file.write_text(text.replace("dense<1.000000e+00>", "dense<3.000000e+00>"))
    add_one[(1,)](x, 8, ir_override=str(file))
    np.testing.assert_array_equal(x, 4)
    file = tmp_path / "of_doubles.ttir"
    file.write_text(text.replace("f32", "f64"))
    with pytest.raises(weft.CompilationError, match="the kernel add_one that it stands for takes"):
        add_one[(1,)](x, 8, ir_override=str(file))


def test_the_hash_of_a_function_can_be_forgotten() -> None:
    @weft.jit
    def kernel(X):
        tl.store(X, 1)

    key = kernel.cache_key
    kernel.hash = None
    assert kernel.hash is None
    assert kernel.cache_key == key == kernel.hash


def test_hooks_ask_for_all_that_is_known_of_a_launch() -> None:
    seen = []

    def hook(metadata):
        metadata.add(lambda extra: {"extra": extra}, (7,))
        seen.append(dict(metadata.get()))

    @weft.jit(launch_metadata=lambda grid, kernel, args: {"grid": grid, "x": args["x"]})
    def kernel(x):
        pass

    weft.knobs.runtime.launch_enter_hook.add(hook)
    try:
        kernel[(1, 3, 2)](6)
    finally:
        weft.knobs.runtime.launch_enter_hook.remove(hook)
    assert seen[0]["grid"] == (1, 3, 2)
    assert seen[0]["x"] == 6
    assert seen[0]["extra"] == 7


@weft.jit
def _shape_of_a_descriptor(X, Z, M, N, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.make_tensor_descriptor(X, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    tl.static_assert(block.block_shape == [BM, BN])
    tl.static_assert(block.block_shape != [BN, BM])
    tl.store(Z, tl.sum(block.load([0, 0])))


def test_a_list_of_python_compared_with_a_list_of_the_kernel() -> None:
    x, z = np.ones((8, 16), np.float32), np.zeros(1, np.float32)
    _shape_of_a_descriptor[(1,)](x, z, 8, 16, 4, 8)
    assert z[0] == 32


@weft.jit
def _checked_sum(a, b):
    tl.device_assert(a.to(tl.int64) + b.to(tl.int64) < 1000, "too much")
    return a + b


@weft.jit
def _checked_maximum(a, b):
    if a > b:
        tl.device_assert(a < 1000, "too much")
        c = a
    else:
        tl.device_assert(b < 1000, "too much")
        c = b
    return c


@weft.jit(debug=True)
def _combine_and_check(X, Z, N: tl.constexpr, FN: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr):
    x = tl.load(X + tl.arange(0, N))
    if SCAN:
        tl.store(Z + tl.arange(0, N), tl.associative_scan(x, 0, FN, reverse=REVERSE))
    else:
        tl.store(Z, tl.reduce(x, 0, FN))


@pytest.mark.parametrize("size", [2, 64, 512])
@pytest.mark.parametrize("function", [_checked_sum, _checked_maximum], ids=["sum", "maximum"])
@pytest.mark.parametrize("how", ["reduce", "scan", "reversed"])
def test_an_assertion_in_a_combine_function(size: int, function, how: str) -> None:
    x, z = np.zeros(size, np.int32), np.zeros(size, np.int32)
    x[0] = x[-1] = 499
    choice = (size, function, how != "reduce", how == "reversed")
    _combine_and_check[(1,)](x, z, *choice)
    x[size // 2] = 1200
    with pytest.raises(weft.DeviceAssertionError, match="too much"):
        _combine_and_check[(1,)](x, z, *choice)


@weft.jit
def _store_one_or_the_other(C, X, Z):
    tl.store(Z, tl.load(X)) if tl.load(C) > 0 else tl.store(Z + 1, tl.load(X + 1))


@pytest.mark.parametrize("condition", [0, 1])
def test_a_conditional_expression_for_what_it_does(condition: int) -> None:
    z = np.zeros(2, np.float32)
    _store_one_or_the_other[(1,)](np.array([condition], np.int32), np.array([3, 5], np.float32), z)
    np.testing.assert_array_equal(z, [3, 0] if condition else [0, 5])


@weft.jit
def _value_or_nothing(C, Z):
    x = tl.load(C) if tl.load(C) > 0 else tl.store(Z, 1)
    tl.store(Z, x)


def test_a_conditional_expression_with_a_value_on_one_side() -> None:
    with pytest.raises(weft.CompilationError, match="has no value, the other has one"):
        _value_or_nothing[(1,)](np.zeros(1, np.int32), np.zeros(1, np.int32))


@weft.jit
def _histogram(X, Z, M: tl.constexpr, N: tl.constexpr):
    tl.store(Z + tl.arange(0, N), tl.histogram(tl.load(X + tl.arange(0, M)), N))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32])
def test_a_histogram_of_the_upper_half_of_unsigned_numbers(kind: type) -> None:
    x = np.random.default_rng(0).integers(0, 256, 512).astype(kind)
    z = np.zeros(256, np.int32)
    _histogram[(1,)](x, z, 512, 256)
    np.testing.assert_array_equal(z, np.bincount(x, minlength=256))


def test_a_constexpr_of_an_enclosing_function_that_changes() -> None:
    captured = tl.constexpr(42)

    @weft.jit
    def kernel(Z):
        tl.store(Z, captured)

    z = np.zeros(1, np.int32)
    kernel[(1,)](z)
    kernel[(1,)](z)
    assert z[0] == 42
    captured.value = 43
    with pytest.raises(RuntimeError, match=r"captured has changed .* from constexpr\[42\] to constexpr\[43\]"):
        kernel[(1,)](z)


@weft.jit
def _store_one(Z):
    tl.store(Z, 1)


@weft.jit
def _store_two(Z):
    tl.store(Z, 2)


def test_preloading_what_belongs_to_another_kernel() -> None:
    seen = []
    weft.knobs.runtime.jit_cache_hook = lambda *args, **kw: seen.append(kw["compile"]["specialization_data"])
    try:
        _store_one.warmup(np.dtype("int32"), grid=(1,))
    finally:
        weft.knobs.runtime.jit_cache_hook = None
    assert _store_one.preload(seen[0]) is not None
    with pytest.raises(RuntimeError, match="Specialization data is for .*_store_one, and this is .*_store_two"):
        _store_two.preload(seen[0])
