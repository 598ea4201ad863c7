"""What is built: constants where they are used, hints as attributes, nothing dead."""

from __future__ import annotations

import pytest

import weft.language as tl
from language.bench_ir import Bench
from weft import ir
from weft.language import core


def test_a_number_becomes_a_constant_tile_at_once() -> None:
    bench = Bench()
    x = bench(tl.arange, 0, 8)
    bench(x.__add__, 5)
    assert bench.ops() == ["tt.make_range", "arith.constant", "arith.addi"]
    bench(tl.where, bench(x.__lt__, 3), x, 0)
    assert bench.ops()[3:] == ["arith.constant", "arith.constant", "arith.cmpi", "arith.constant", "arith.select"]


def test_masked_load_with_a_number() -> None:
    bench = Bench("*fp16")
    x = bench(tl.arange, 0, 8)
    pointers = bench(bench.args[0].__add__, x)
    start = len(bench.ops())
    bench(tl.load, pointers, mask=bench(x.__lt__, x), other=0.1)
    assert bench.ops()[start:] == ["arith.cmpi", "arith.constant", "tt.load"]
    constant = next(op for op in bench.block.ops if op.name == "arith.constant")
    # 0.1 is a float32 first, as everywhere, then a float16.
    assert ir.splat_value(constant.properties["value"]) == 0.0999755859375


def test_true_is_one_as_a_bound_of_arange() -> None:
    bench = Bench()
    assert bench(tl.arange, False, True).shape == bench(tl.arange, 0, 1).shape


def test_float64_gets_the_float32_of_a_number() -> None:
    bench = Bench("*fp64")
    bench(tl.store, bench.args[0], 0.1)
    constant = next(op for op in bench.block.ops if op.name == "arith.constant")
    assert ir.splat_value(constant.properties["value"]) == 0.10000000149011612


def test_changing_only_the_sign_is_no_operation() -> None:
    bench = Bench("i32")
    y = bench(bench.args[0].to, tl.uint32)
    assert y.dtype == tl.uint32 and bench.ops() == []


def test_hints() -> None:
    bench = Bench("i32")
    x = bench(bench(tl.arange, 0, 8).__mul__, 4)
    assert bench(tl.multiple_of, x, 4) is x
    bench(tl.max_contiguous, x, [2])
    bench(tl.max_constancy, x, (tl.constexpr(1),))
    attributes = {k: str(v) for k, v in x.handle.owner.attributes.items()}
    assert attributes == {
        "tt.divisibility": "dense<4> : tensor<1xi32>",
        "tt.contiguity": "dense<2> : tensor<1xi32>",
        "tt.constancy": "dense<1> : tensor<1xi32>",
    }


def test_prints() -> None:
    bench = Bench("i32", "u8")
    bench(tl.device_print, "x", *bench.args, 1.5, hex=True)
    bench(tl.device_print, "there")
    first, second = (op for op in bench.block.ops if op.name == "tt.print")
    assert first.prefix.data == " x: " and ir.ints_of(first.isSigned) == (1, 0, 0) and second.prefix.data == " there"


@pytest.mark.parametrize("debug", [False, True])
def test_debugging_adds_checks(debug: bool) -> None:
    bench = Bench("i32", "u1", debug=debug)
    n, mask = bench.args
    bench(tl.device_assert, n, "n is zero", mask=mask)
    bench(n.__add__, 1)
    names = bench.ops()
    assert names.count("tt.assert") == (2 if debug else 0)
    bench(core.add, n, 1, sanitize_overflow=False)
    assert bench.ops().count("tt.assert") == names.count("tt.assert")


def test_static_print(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench()
    bench(tl.static_print, "block", tl.constexpr(3), sep=": ", end="!\n")
    assert capsys.readouterr().out == "block: 3!\n"


@pytest.mark.parametrize("value", [0x00, 0x01, 0x07, 0x08, 0x38, 0x40, 0x7E, 0x7F, 0x80, 0x81, 0xB8, 0xFE])
def test_fp8e4b15_is_a_shifted_float16(value: int) -> None:
    import numpy as np

    bench = Bench("u8")
    bench.args[0].type = tl.float8e4b15
    half = bench.run(bench(bench.args[0].to, tl.float16), {bench.args[0]: np.int8(np.uint8(value).view(np.int8))})
    exponent, mantissa = value >> 3 & 15, value & 7
    size = 2.0 ** (exponent - 15) * (1 + mantissa / 8) if exponent else 2.0**-14 * mantissa / 8
    assert float(half) == (-size if value & 0x80 else size)


def test_fp8e4b15_from_float16() -> None:
    import numpy as np

    bench = Bench("fp16")
    back = bench(bench.args[0].to, tl.float8e4b15)
    for number, want in (
        (0.0, 0),
        (1.0, 0x78),
        (1.75, 0x7E),
        (5.0, 0x7E),
        (-np.inf, 0xFE),
        (np.nan, 0x7E),
        (2.0**-17, 1),
    ):
        assert int(np.uint8(bench.run(back, {bench.args[0]: np.float16(number)}))) == want, number
