"""Reading and writing: what Triton wrote comes back, and what we write is read again."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser
from xdsl.dialects.builtin import CallSiteLoc, NameLoc

from weft.base import Span
from weft.ir import parse_module, print_module, span_of, splat_value, tt, verify
from weft.passes import cpu_pipeline, tile_pipeline

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.ttir"))
IDS = [path.name for path in FILES]


def body(text: str) -> str:
    return f"module {{\n  tt.func public @f(%p: !tt.ptr<f32>, %n: i32, %c: i1) {{\n{text}\n    tt.return\n  }}\n}}\n"


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_what_triton_wrote_comes_back(path: Path) -> None:
    module = parse_module(path.read_text(), path.name)
    verify(module)
    plain = print_module(module)
    assert print_module(parse_module(plain)) == plain
    located = print_module(module, locations=True)
    assert print_module(parse_module(located), locations=True) == located


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_what_triton_wrote_survives_the_passes(path: Path) -> None:
    module, _ = cpu_pipeline(tile_pipeline(parse_module(path.read_text(), path.name)))
    verify(module, "cpu")
    parse_module(print_module(module))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the real Triton is not installed")
@pytest.mark.parametrize("locations", [False, True])
def test_triton_reads_the_same_from_our_text(locations: bool, tmp_path: Path) -> None:
    import triton
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget

    backend = triton.compiler.make_backend(GPUTarget("cuda", 90, 32))

    def read(text: str) -> str:
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        path = tmp_path / "text.ttir"
        path.write_text(text)
        module = ir.parse_mlir_module(str(path), context)
        assert module.verify()
        return str(module.str_nodebug())

    for path in FILES:
        text = path.read_text()
        assert read(print_module(parse_module(text), locations)) == read(text), path.name


# -- places and names ----------------------------------------------------------------------------------------------


def test_locations() -> None:
    text = """
    #loc = loc("k.py":3:0)
    module {
      tt.func public @f(%x: f32 loc("x"(#loc))) {
        %y = arith.addf %x, %x : f32 loc(#loc2)
        %z = arith.addf %y, %y : f32
        tt.return loc(callsite(#loc1 at "main.py":9:2))
      } loc(#loc)
    } loc(#loc)
    #loc1 = loc("k.py":4:8)
    #loc2 = loc("y"(#loc1))
    """
    module = parse_module(text, "k.ttir")
    add, second, end = next(op for op in module.ops).body.block.ops  # type: ignore[attr-defined]
    assert isinstance(add.location, NameLoc)
    assert span_of(add) == Span("k.py", 4, 8)
    assert span_of(second) == Span("k.ttir", 6, 8)  # the place in the text, where it names none
    assert isinstance(end.location, CallSiteLoc)
    assert span_of(end) == Span("k.py", 4, 8)
    assert "%y_0" not in print_module(module)


def test_names_come_from_hints_locations_and_constants() -> None:
    text = print_module(
        parse_module(
            body("""
    %1 = arith.constant 1 : i32
    %2 = arith.constant -7 : i64
    %3 = arith.constant true
    %4 = arith.constant 1.5 : f32
    %twice = arith.addi %1, %n : i32
    %twice_3 = arith.addi %twice, %n : i32""")
        )
    )
    for line in ("%c1_i32 =", "%cm7_i64 =", "%true =", "%cst =", "%twice =", "%twice_0 = arith.addi %twice, %n"):
        assert line in text


# -- FileCheck -----------------------------------------------------------------------------------------------------


def check(output: str, lines: str, tmp_path: Path) -> None:
    """Compare with `CHECK:` lines, as MLIR's own tests do."""
    path = tmp_path / "checks.mlir"
    path.write_text(lines)
    options = Options(match_filename=str(path))
    assert Matcher(options, FInput("-", output), Parser.from_opts(options)).run() == 0


def test_control_flow_reads_like_mlir(tmp_path: Path) -> None:
    module = parse_module(
        body("""
    %0 = scf.if %c -> (i32) {
      scf.yield %n : i32
    } else {
      %1 = arith.addi %n, %n overflow<nsw> : i32
      scf.yield %1 : i32
    }
    %2:2 = scf.for %i = %n to %0 step %n iter_args(%a = %n, %b = %c) -> (i32, i1)  : i32 {
      scf.yield %i, %b : i32, i1
    } {tt.num_stages = 3 : i32}
    %3 = scf.while (%x = %2#0) : (i32) -> i32 {
      scf.condition(%c) %x : i32
    } do {
    ^bb0(%y: i32):
      scf.yield %y : i32
    } attributes {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}""")
    )
    verify(module)
    check(
        print_module(module),
        """
        // CHECK:       %[[IF:.*]] = scf.if %c -> (i32) {
        // CHECK-NEXT:    scf.yield %n : i32
        // CHECK-NEXT:  } else {
        // CHECK-NEXT:    %[[SUM:.*]] = arith.addi %n, %n overflow<nsw> : i32
        // CHECK-NEXT:    scf.yield %[[SUM]] : i32
        // CHECK:       %[[FOR:.*]]:2 = scf.for %i = %n to %[[IF]] step %n iter_args({{.*}}) -> (i32, i1) : i32 {
        // CHECK-NEXT:    scf.yield %i, %b : i32, i1
        // CHECK-NEXT:  } {tt.num_stages = 3 : i32}
        // CHECK-NEXT:  scf.while (%x = %[[FOR]]#0) : (i32) -> i32 {
        // CHECK-NEXT:    scf.condition(%c) %x : i32
        // CHECK-NEXT:  } do {
        // CHECK-NEXT:  ^bb0(%y: i32):
        // CHECK-NEXT:    scf.yield %y : i32
        // CHECK-NEXT:  } attributes {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
        """,
        tmp_path,
    )


def test_blocks_and_generic_form(tmp_path: Path) -> None:
    module = parse_module(
        body("""
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, cache = 3 : i32}> : (!tt.ptr<f32>) -> f32
    cf.cond_br %c, ^bb1, ^bb2(%n, %n : i32, i32)
  ^bb1:
    cf.br ^bb2(%later, %n : i32, i32)
  ^bb2(%a: i32, %b: i32):
    %later = arith.addi %a, %b : i32""")
    )
    text = print_module(module)
    check(
        text,
        """
        // CHECK:       %v = tt.load %p cacheModifier = cg : !tt.ptr<f32>
        // CHECK-NEXT:  cf.cond_br %c, ^bb1, ^bb2(%n, %n : i32, i32)
        // CHECK-NEXT:  ^bb1:
        // CHECK-NEXT:  cf.br ^bb2(%{{.*}}, %n : i32, i32)
        // CHECK-NEXT:  ^bb2(%a: i32, %b: i32):
        // CHECK-NEXT:  %later = arith.addi %a, %b : i32
        """,
        tmp_path,
    )


def test_an_operation_that_is_not_well_formed_is_still_shown() -> None:
    load = tt.LoadOp.create()
    assert print_module(load) == '"tt.load"() : () -> ()\n'


# -- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1.000000e+00 : f32", None),
        ("0.1 : f32", "1.000000e-01 : f32"),
        ("1.1754943508222875e-38 : f32", None),
        ("0x7F800000 : f32", None),
        ("0xFF80 : bf16", None),
        ("dense<0x7FC00001> : tensor<8xf32>", None),
        ("dense<[0.000000e+00, -0.000000e+00]> : tensor<2xf16>", None),
        ("dense<[[1, -2], [3, 127]]> : tensor<2x2xi8>", None),
        ("dense<[true, false]> : tensor<2xi1>", None),
        ('dense<"0x0100FF7F"> : tensor<2xi16>', "dense<[1, 32767]> : tensor<2xi16>"),
        ("dense<3> : tensor<1024x1024xi32>", None),
        ("-9223372036854775808 : i64", None),
        ("255 : i8", "-1 : i8"),
        ("0x10 : i32", "16 : i32"),
        ("true", None),
    ],
)
def test_constants(text: str, shown: str | None) -> None:
    printed = print_module(parse_module(body(f"    %x = arith.constant {text}")))
    assert f"= arith.constant {shown or text}\n" in printed


def test_a_splat_is_stored_once() -> None:
    module = parse_module(body("    %x = arith.constant dense<0.5> : tensor<1024x1024xf32>"))
    constant = next(op for op in module.walk() if op.name == "arith.constant")
    value = constant.properties["value"]
    assert len(value.data.data) == 4 and splat_value(value) == 0.5  # type: ignore[attr-defined]


def test_a_nan_keeps_its_bits() -> None:
    module = parse_module(body("    %x = arith.constant dense<0xFFC01234> : tensor<8xf32>"))
    value = next(op for op in module.walk() if op.name == "arith.constant").properties["value"]
    found = splat_value(value)
    assert found is not None and math.isnan(found)
    assert "dense<0xFFC01234>" in print_module(module)


def test_strings() -> None:
    text = body(r'    tt.assert %c, "tab\09 quote\22 slash\\ line\0A euro\E2\82\AC" : i1')
    message = next(op for op in parse_module(text).walk() if isinstance(op, tt.AssertOp)).message
    assert message.data == 'tab\t quote" slash\\ line\n euro€'
    assert print_module(parse_module(text)) == text


def test_predicates_may_be_strings() -> None:
    text = """
module {
  tt.func public @k(%n: i32, %x: !tt.ptr<i1>) {
    %0 = arith.cmpi "sgt", %n, %n : i32
    tt.store %x, %0 : !tt.ptr<i1>
    tt.return
  }
}
"""
    assert "arith.cmpi sgt, %n, %n : i32" in print_module(parse_module(text))
