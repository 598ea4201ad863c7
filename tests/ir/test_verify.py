"""What `verify` refuses: the whole message."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block

from weft.base import CompilationError
from weft.ir import Builder, i32, i32_attr, parse_module, tt, verify

HEAD = (
    "%p: !tt.ptr<f32>, %n: i32, %c: i1, %x: f32, %t: tensor<8xf32>, %m: tensor<8x4xf16>, %i: tensor<8xi32>, "
    "%pp: tensor<8x!tt.ptr<f32>>, %mask: tensor<8xi1>, %d: !tt.tensordesc<tensor<8x4xf16>>, %bp: !tt.ptr<tensor<8xf32>>"
)

REFUSED = [
    (
        "%0 = arith.addi %x, %x : f32",
        "arith.addi: expected integers, got f32\nhint: arith.addf works on f32",
    ),
    (
        "%0 = arith.mulf %n, %n : i32",
        "arith.mulf: expected floats, got i32\nhint: arith.muli works on i32",
    ),
    (
        "%0 = math.exp %i : tensor<8xi32>",
        "math.exp: expected floats, got tensor<8xi32>",
    ),
    (
        "%0 = arith.extsi %n : i32 to i16",
        "arith.extsi: the result must be wider, got i32 to i16",
    ),
    (
        "%0 = arith.truncf %x : f32 to f64",
        "arith.truncf: the result must be narrower, got f32 to f64",
    ),
    (
        "%0 = arith.sitofp %t : tensor<8xf32> to tensor<8xf32>",
        "arith.sitofp: expected integers, got tensor<8xf32>",
    ),
    (
        "%0 = arith.select %mask, %n, %n : tensor<8xi1>, i32",
        "arith.select: the condition tensor<8xi1> does not have the shape of i32",
    ),
    (
        "%0 = tt.fp_to_fp %x : f32 -> f8E5M2",
        "tt.fp_to_fp: from f32 to the narrower f8E5M2 a rounding is needed\nhint: add `rounding = rtne`",
    ),
    (
        "%0 = tt.bitcast %x : f32 -> i16",
        "tt.bitcast: f32 and i16 differ in width",
    ),
    (
        "%0 = tt.bitcast %p : !tt.ptr<f32> -> i64",
        "tt.bitcast: cannot cast !tt.ptr<f32> to i64\nhint: tt.ptr_to_int and tt.int_to_ptr do",
    ),
    (
        "%0 = tt.addptr %pp, %n : tensor<8x!tt.ptr<f32>>, i32",
        "tt.addptr: operands and result must have one shape, got tensor<8x!tt.ptr<f32>>, i32\n"
        "hint: give i32 that shape with tt.splat",
    ),
    (
        "%0 = tt.splat %n : i32 -> tensor<12xi32>",
        "tt.splat: tensor<12xi32>: every dimension of a tile is a power of two, 12 is not (the nearest are 8 "
        "and 16)\n"
        "hint: take a power of two, and leave out what is too much with a mask",
    ),
    (
        "%0 = tt.splat %n : i32 -> tensor<2097152xi32>",
        "tt.splat: tensor<2097152xi32>: a tile has at most 1048576 elements, not 2097152\n"
        "hint: take a power of two, and leave out what is too much with a mask",
    ),
    (
        "%0 = tt.splat %n : i32 -> tensor<8xf32>",
        "tt.splat: the elements of i32 and tensor<8xf32> differ in type",
    ),
    (
        "%0 = tt.make_range {end = 9 : i32, start = 0 : i32} : tensor<8xi32>",
        "tt.make_range: from 0 to 9 are 9 integers, not 8\nhint: let end be 8 : i32",
    ),
    (
        "%0 = tt.expand_dims %t {axis = 2 : i32} : tensor<8xf32> -> tensor<8x1xf32>",
        "tt.expand_dims: axis 2 is not between 0 and 1\n"
        "hint: the new dimension goes before dimension `axis`; 1 puts it last",
    ),
    (
        "%0 = tt.broadcast %m : tensor<8x4xf16> -> tensor<8x8xf16>",
        "tt.broadcast: [8, 4] cannot be broadcast to [8, 8]: only dimensions of size 1 can grow",
    ),
    (
        "%0 = tt.reshape %m : tensor<8x4xf16> -> tensor<16xf16>",
        "tt.reshape: tensor<8x4xf16> and tensor<16xf16> differ in the number of elements\n"
        "hint: the products of the sizes, 32 and 16, must be equal; tt.broadcast repeats elements",
    ),
    (
        "%0 = tt.trans %m {order = array<i32: 0, 0>} : tensor<8x4xf16> -> tensor<8x4xf16>",
        "tt.trans: the order [0, 0] is not a permutation of the 2 dimensions\n"
        "hint: array<i32: 1, 0> reverses them all",
    ),
    (
        "%0, %1 = tt.split %m : tensor<8x4xf16> -> tensor<8xf16>",
        "tt.split: the last dimension must be 2, got tensor<8x4xf16>",
    ),
    (
        '%0 = "tt.trans"(%m) : (tensor<8x4xf16>) -> tensor<4x8xf16>',
        "tt.trans: 'order' is missing",
    ),
    (
        '%0 = "tt.load"(%p) : (!tt.ptr<f32>) -> f32',
        "tt.load: operandSegmentSizes must split 1 operands into 3 groups\n"
        "hint: array<i32: ...> has the number of operands for each of ptr, mask, other",
    ),
    (
        '%0 = "tt.splat"() : () -> tensor<8xf32>',
        "tt.splat: operands: 0, expected 1",
    ),
    (
        '"tt.splat"(%n) : (i32) -> ()',
        "tt.splat: results: 0, expected 1",
    ),
    (
        '"scf.yield"() ({}) : () -> ()',
        "scf.yield: regions: 1, expected 0",
    ),
    (
        "%0 = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<f32>",
        "tt.load: boundaryCheck and padding belong to block pointers, not to !tt.ptr<f32>",
    ),
    (
        "%0 = tt.load %bp {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<8xf32>>",
        "tt.load: boundaryCheck [1] must name different ones of 1 dimensions",
    ),
    (
        "%0 = tt.atomic_rmw add, acq_rel, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32",
        "tt.atomic_rmw: add does not work on f32",
    ),
    (
        "%0 = tt.atomic_cas acq_rel, gpu, %p, %n, %n : (!tt.ptr<f32>, i32, i32) -> i32",
        "tt.atomic_cas: through !tt.ptr<f32> goes f32, not i32",
    ),
    (
        "%0 = tt.descriptor_load %d[%n] : !tt.tensordesc<tensor<8x4xf16>> -> tensor<8x4xf16>",
        "tt.descriptor_load: 2 indices are needed, got 1",
    ),
    (
        "%0 = tt.dot %m, %m, %m : tensor<8x4xf16> * tensor<8x4xf16> -> tensor<8x4xf16>",
        "tt.dot: [8, 4] times [8, 4]: the inner dimensions 4 and 8 differ",
    ),
    (
        '%0 = "tt.reduce"(%t) <{axis = 1 : i32}> ({\n^bb0(%a: f32, %b: f32):\n  tt.reduce.return %a : f32\n}) : '
        "(tensor<8xf32>) -> f32",
        "tt.reduce: axis 1 is not one of the 1 dimensions of tensor<8xf32>\nhint: it is 0 here",
    ),
    (
        '%0 = "tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%a: f32):\n  tt.reduce.return %a : f32\n}) : '
        "(tensor<8xf32>) -> f32",
        "tt.reduce: the function takes f32, f32, not f32",
    ),
    (
        '%0 = "tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%a: f32, %b: f32):\n  scf.yield %a : f32\n}) : '
        "(tensor<8xf32>) -> f32",
        "scf.yield: a block of tt.reduce ends in tt.reduce.return\nhint: add a last line: tt.reduce.return %s : f32",
    ),
    (
        "scf.if %c {\n  scf.yield %n : i32\n}",
        "scf.yield: expected nothing, got i32\nhint: these are the types of scf.if's results",
    ),
    (
        "%0 = scf.if %c -> (i32) {\n  scf.yield %n : i32\n}",
        "scf.if: yields values, so it needs both branches",
    ),
    (
        "%0 = scf.for %j = %n to %n step %n iter_args(%a = %x) -> (f32) : i32 {\n  scf.yield %j : i32\n}",
        "scf.yield: expected f32, got i32\nhint: these are the types of scf.for's results",
    ),
    (
        "%0 = tt.call @g(%n) : (i32) -> i32",
        "tt.call: there is no function @g\nhint: did you mean @f?",
    ),
    (
        "tt.return %n : i32",
        "tt.return: ends a block, but more follows\nhint: move it to the end, or begin a block after it, `^bb1:`",
    ),
    (
        '%0 = "tt.get_program_id"() <{axis = "x"}> : () -> i32',
        "tt.get_program_id: 'axis' must be an integer",
    ),
    (
        "%0 = tt.get_program_id x : i64",
        "tt.get_program_id: yields i32, not i64",
    ),
]


@pytest.mark.parametrize(("line", "wanted"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refused(line: str, wanted: str) -> None:
    module = parse_module(f"module {{ tt.func public @f({HEAD}) {{\n{line}\n tt.return }} }}", "k.ttir")
    with pytest.raises(CompilationError) as caught:
        verify(module)
    text = str(caught.value)
    told, example, _ = text.split(" error: ", 1)[1].partition("\nhint: a right one, for comparison: ")
    assert told == wanted and (example or "\nhint: " in told)
    assert text.startswith("k.ttir:")


def test_uses_before_definitions() -> None:
    module = parse_module("""module { tt.func @f(%n: i32, %c: i1) {
      cf.cond_br %c, ^bb1, ^bb2
    ^bb1:
      %0 = arith.addi %n, %n : i32
      cf.br ^bb2
    ^bb2:
      %1 = arith.addi %0, %n : i32
      tt.return
    } }""")
    with pytest.raises(
        CompilationError, match=r"arith.addi: operand 0 \(i32\) is not defined before it is used\nhint: "
    ):
        verify(module)


def test_a_module_built_by_hand() -> None:
    block = Block(arg_types=(i32,))
    b = Builder.at_end(block)
    b.create(arith.AddiOp, (block.args[0], Block(arg_types=(i32,)).args[0]), (i32,))
    b.create(tt.ReturnOp)
    from xdsl.dialects.builtin import FunctionType
    from xdsl.ir import Region

    function = tt.FuncOp.create(
        properties={"sym_name": StringAttr("f"), "function_type": FunctionType.from_lists([i32], [])},
        regions=[Region(block)],
    )
    with pytest.raises(CompilationError, match="operand 1 .* is not defined"):
        verify(ModuleOp([function]))


def test_operations_of_other_dialects() -> None:
    from xdsl.dialects import test as other

    with pytest.raises(CompilationError, match="^error: test.op: is not an operation of tile IR"):
        verify(ModuleOp([other.TestOp.create()]))


def test_stage_cpu_has_no_calls() -> None:
    module = parse_module("""module {
      tt.func public @f() { tt.call @g() : () -> () tt.return }
      tt.func private @g() { tt.return }
    }""")
    verify(module)
    with pytest.raises(CompilationError, match="tt.call: should have been rewritten"):
        verify(module, "cpu")


def test_an_unknown_stage() -> None:
    with pytest.raises(ValueError, match="unknown stage 'gpu', expected one of tile, cpu"):
        verify(ModuleOp([]), "gpu")


def test_properties_of_the_wrong_kind_are_no_crash() -> None:
    module = parse_module(
        'module { tt.func @f(%p: !tt.ptr<f32>) { %0 = tt.load %p {cache = "x"} : !tt.ptr<f32> tt.return } }'
    )
    with pytest.raises(CompilationError, match="'cache' must be an integer"):
        verify(module)
    load = next(op for op in module.walk() if isinstance(op, tt.LoadOp))
    load.properties["cache"] = i32_attr(1)
    verify(module)
