"""Text that is not tile IR: the whole message."""

from __future__ import annotations

import time

import pytest

from weft.base import CompilationError
from weft.ir import ParseError, parse_module


def body(text: str) -> str:
    return (
        f"module {{\n  tt.func @f(%p: !tt.ptr<f32>, %n: i32, %t: tensor<8xf32>) {{\n{text}\n    tt.return\n  }}\n}}\n"
    )


def message(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse_module(text, "k.ttir")
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "    %0 = arith.addi %n, %m : i32",
            "k.ttir:3:25: error: '%m' is not defined\n"
            "    3 |     %0 = arith.addi %n, %m : i32\n"
            "      |                         ^^\n"
            "hint: define it before, or make it an argument of the function; of its type is %n",
        ),
        (
            "    %0 = tt.make_tensor_descriptor %p, [%m], [%q] : !tt.ptr<f32>, !tt.tensordesc<tensor<8xf32>>",
            "k.ttir:3:41: error: '%m' is not defined\n"
            "    3 |     %0 = tt.make_tensor_descriptor %p, [%m], [%q] : !tt.ptr<f32>, !tt.tensordesc<tensor<8xf32>>\n"
            "      |                                         ^^\n"
            "hint: define it before, or make it an argument of the function; of its type is %n",
        ),
        (
            "    %0 = tt.load %p, %m : !tt.ptr<f32>",
            "k.ttir:3:22: error: '%m' is not defined\n"
            "    3 |     %0 = tt.load %p, %m : !tt.ptr<f32>\n"
            "      |                      ^^\n"
            "hint: define it before, or make it an argument of the function",
        ),
        (
            "    %0 = arith.addi %n, %p : i32",
            "k.ttir:3:25: error: '%p' is of type !tt.ptr<f32>, used here as i32\n"
            "    3 |     %0 = arith.addi %n, %p : i32\n"
            "      |                         ^^\n"
            "hint: line 2 defines it: write its type here, or make another value of it with tt.ptr_to_int",
        ),
        (
            "    %0 = tt.lod %p : !tt.ptr<f32>",
            "k.ttir:3:10: error: unknown operation 'tt.lod'\n"
            "    3 |     %0 = tt.lod %p : !tt.ptr<f32>\n"
            "      |          ^^^^^^\n"
            "hint: did you mean 'tt.load'?",
        ),
        (
            "    %0 = tt.load %p cacheModifier = fast : !tt.ptr<f32>",
            "k.ttir:3:37: error: expected one of none, ca, cg, wb, cs, wt, cv, found 'fast'\n"
            "    3 |     %0 = tt.load %p cacheModifier = fast : !tt.ptr<f32>\n"
            "      |                                     ^^^^\n"
            "hint: tt.load is written like this: %r = tt.load %p, %mask, %other : tensor<64x!tt.ptr<f32>>",
        ),
        (
            "    %0 = arith.addi %n, %n",
            "k.ttir:4:5: error: expected ':', found 'tt.return'\n"
            "    4 |     tt.return\n"
            "      |     ^^^^^^^^^\n"
            "hint: arith.addi is written like this: %r = arith.addi %x, %y : tensor<64xi32>",
        ),
        (
            "    cf.br ^bb7",
            "k.ttir:3:11: error: there is no block '^bb7'\n"
            "    3 |     cf.br ^bb7\n"
            "      |           ^^^^\n"
            "hint: begin a block with a line `^bb7:` in this region",
        ),
        (
            "    %0 = arith.constant 300 : i8",
            "k.ttir:3:25: error: 300 does not fit in i8\n"
            "    3 |     %0 = arith.constant 300 : i8\n"
            "      |                         ^^^\n"
            "hint: i8 holds -128 to 255, signed or unsigned; use a wider type",
        ),
        (
            "    %0 = arith.constant dense<[1, 2]> : tensor<4xi32>",
            "k.ttir:3:25: error: dense<...> has the shape [2], its type the shape [4]\n"
            "    3 |     %0 = arith.constant dense<[1, 2]> : tensor<4xi32>\n"
            "      |                         ^^^^^\n"
            "hint: a single number fills the whole tensor, dense<0.0>",
        ),
        (
            "    %0 = tt.load %p : tensor<8xf32, 1>",
            "k.ttir:3:23: error: an encoding belongs to Triton's GPU dialects, not to tile IR\n"
            "    3 |     %0 = tt.load %p : tensor<8xf32, 1>\n"
            "      |                       ^^^^^^^^^^^^^^^^\n"
            "hint: drop what is after the comma",
        ),
        (
            "    %n = arith.addi %n, %n : i32",
            "k.ttir:3:5: error: '%n' is defined twice\n"
            "    3 |     %n = arith.addi %n, %n : i32\n"
            "      |     ^^\n"
            "hint: line 2 defines it too: rename one, '%n_1', and its uses",
        ),
        (
            "    %0:2 = arith.addi %n, %n : i32",
            "k.ttir:3:5: error: arith.addi has 1 results, 2 are named\n"
            "    3 |     %0:2 = arith.addi %n, %n : i32\n"
            "      |     ^^\n"
            "hint: name 1 before the '=', %r0",
        ),
        (
            '    tt.assert %n, "no end : i32',
            "k.ttir:3:19: error: unexpected character '\"'\n"
            '    3 |     tt.assert %n, "no end : i32\n'
            "      |                   ^\n"
            "hint: the string that begins here does not end on its line",
        ),
        (
            "    %0 = arith.cmpi less, %n, %n : i32",
            "k.ttir:3:21: error: expected one of eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge, found 'less'\n"
            "    3 |     %0 = arith.cmpi less, %n, %n : i32\n"
            "      |                     ^^^^\n"
            "hint: arith.cmpi is written like this: %r = arith.cmpi slt, %x, %y : tensor<64xi32>",
        ),
    ],
)
def test_message(line: str, wanted: str) -> None:
    assert message(body(line)) == wanted


def test_the_end_of_the_text() -> None:
    assert (
        message("module {")
        == "k.ttir:1:9: error: expected '}', found the end of the text\n    1 | module {\n      |         ^\n"
        "hint: a body holds operations, `%r = tt.splat %x : ...` or `tt.store ...`, and labels, `^bb1:`; '}' ends it"
    )


def test_an_alias_that_is_its_own_definition() -> None:
    text = "#a = loc(#b)\n#b = loc(#a)\nmodule { } loc(#a)"
    assert message(text) == (
        "k.ttir:2:1: error: '#b' is defined by itself\n    2 | #b = loc(#a)\n      | ^^\n"
        "hint: write out what it stands for in one of the aliases"
    )


def test_a_value_of_an_inner_region_is_not_seen_outside() -> None:
    line = """    scf.for %i = %n to %n step %n : i32 {
      %inner = arith.addi %i, %i : i32
    }
    %0 = arith.addi %inner, %n : i32"""
    assert message(body(line)).startswith("k.ttir:6:21: error: '%inner' is not defined")


@pytest.mark.parametrize(
    "text",
    [
        "module {" * 100_000,
        "module { tt.func @f() { " + "scf.execute_region {" * 10_000,
        "tensor<" * 200_000,
        "tensor<" * 3 + "x" * 500_000,
        "#a = " + "[" * 100_000,
        "#a = loc(" + "callsite(" * 100_000,
        '"' + "\\" * 300_001,
        "%" * 100_000,
        "module attributes {a = " + "9" * 100_000 + "} {}",
        "module attributes {a = dense<" + "[" * 50_000 + "> : tensor<2xi32>} {}",
        "module attributes {a = dense<1> : tensor<" + "4x" * 50_000 + "i32>} {}",
        "module attributes {a = dense<1> : tensor<999999999999999999x999999999999999999xi32>} {}",
        "module attributes {a = i99999999} {}",
        "\x00\x01\x02",
        "//" * 500_000,
        "".join(f"#a{i} = loc(#a{i + 1})\n" for i in range(20_000)) + "module { } loc(#a0)",
    ],
    ids=range(16),
)
def test_hostile_text_fails_soon_and_cleanly(text: str) -> None:
    start = time.perf_counter()
    try:
        parse_module(text)
    except CompilationError as error:
        assert "<ttir>:" in str(error)
    assert time.perf_counter() - start < 5
