"""Types and values: dtypes, constexpr, tuples, signatures, aggregates."""

from __future__ import annotations

from collections import namedtuple

import pytest

import weft.language as tl
from language.bench_ir import Bench
from weft import ir
from weft.language import core
from weft.language.callable import constexpr_function


def test_element_types() -> None:
    for name in [*core.dtype.SINT_TYPES, *core.dtype.UINT_TYPES, *core.dtype.FP_TYPES]:
        made = core.dtype(name)
        assert made == core.dtype(name) and hash(made) == hash(core.dtype(name)) and str(made) == name
        assert made.to_ir() is core.dtype(name).to_ir()
        assert repr(made) == f"weft.language.{made.codegen_name()}" and getattr(tl, made.codegen_name()) == made
    assert tl.float8e4nv.to_ir() == ir.f8E4M3FN and tl.float8e4b15.to_ir() == ir.i8
    assert (tl.int1.itemsize, tl.int1.is_int_unsigned(), tl.uint8.get_int_max_value()) == (0, True, 255)
    assert (tl.bfloat16.fp_mantissa_width, tl.float16.exponent_bias, tl.int64.get_int_min_value()) == (7, 15, -(2**63))
    with pytest.raises(ValueError, match=r"^unknown element type 'int7': known are int8, int16, "):
        core.dtype("int7")
    with pytest.raises(ValueError, match=r"^Unsupported bitwidth 7 and signedness True$"):
        core.get_int_dtype(7, True)
    assert core.get_int_dtype(32, False) == tl.uint32


def test_pointers_and_tiles() -> None:
    pointer = tl.pointer_type(tl.float32)
    assert str(pointer) == "pointer<fp32>" and pointer.mangle() == "Pfp32" and str(pointer.to_ir()) == "!tt.ptr<f32>"
    assert pointer != tl.pointer_type(tl.float32, const=True) and pointer == tl.pointer_type(tl.float32)
    tile = tl.block_type(tl.float32, [4, 8])
    assert str(tile) == "<['4', '8'], fp32>" and tile.mangle() == "fp32S4_8S" and tile.nbytes == 128
    assert tile == tl.block_type(tl.float32, (4, 8)) and tile.scalar == tl.float32
    with pytest.raises(TypeError, match=r"^0d block_type is forbidden$"):
        tl.block_type(tl.float32, [])
    with pytest.raises(ValueError, match=r"^Shape element 1 must be a power of 2\nit is 3; the nearest are 2 and 4$"):
        tl.block_type(tl.float32, [4, 3])
    with pytest.raises(ValueError, match=r"^numel \(2097152\) exceeds triton maximum tensor numel \(1048576\)\n"):
        tl.block_type(tl.float32, [2**21])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("*fp32", "pointer<fp32>"), ("*kfp16", "const_pointer<fp16>"), ("**i32", "pointer<pointer<int32>>"),
        ("i1", "int1"), ("u1", "int1"), ("B", "int1"), ("u64", "uint64"), ("fp8e4nv", "fp8e4nv"), ("bf16", "bf16"),
        ("tensordesc<fp16[64,32]>", "tensor_descriptor<<['64', '32'], fp16>>"),
        (("i32", "*fp16"), "[:int32,:pointer<fp16>]"),
    ],
)  # fmt: skip
def test_types_from_a_signature(text: object, shown: str) -> None:
    assert str(tl.str_to_ty(text, None)) == shown


def test_unknown_types_in_a_signature() -> None:
    with pytest.raises(ValueError, match=r"^unknown type 'i128' in a signature: known are fp8e4nv, "):
        tl.str_to_ty("i128", None)
    assert tl.str_to_ty("constexpr", 3) == tl.constexpr_type(3)


def test_constexpr_folds_as_python() -> None:
    c = tl.constexpr
    assert (
        repr(c(7) // -2) == "constexpr[-4]" and repr(c(7) % -2) == "constexpr[-1]" and repr(2 ** c(3)) == "constexpr[8]"
    )
    assert repr(c(c(c(1)))) == "constexpr[1]" and (c(3) == 3).value is True and bool(c(0)) is False
    assert [c(3).__not__().value, c(3).logical_and(0).value, c(0).logical_or(4).value] == [False, 0, 4]
    assert c([1, 2])[1] == 2 and list(c((1, 2))) == [1, 2] and [10, 20][c(1)] == 20 and float(c(2)) == 2.0
    assert c(3).type == tl.constexpr_type(3) and c("a").type.mangle() == "constexpr_type[a]"
    assert len({c(1), c(1)}) == 1 and f"{c(3)}" == "constexpr[3]"
    with pytest.raises(TypeError, match=r"^cannot iterate over constexpr\[3\]: the value is of type int$"):
        list(c(3))


def test_tuples() -> None:
    bench = Bench("i32")
    x = bench.args[0]
    t = tl.tuple([x, tl.constexpr(2)])
    assert len(t) == 2 and t[0] is x and t[tl.constexpr(-1)] == 2 and str(t.type) == "[:int32,:constexpr_type[2]]"
    assert (t == t).value and not (t == tl.tuple([x])).value and len(t + t) == 4 and len(t * tl.constexpr(3)) == 6
    handles: list[object] = []
    t._flatten_ir(handles)
    again, cursor = t.type._unflatten_ir(handles, 0)
    assert cursor == 1 and again[0].handle is x.handle and again[1] == 2
    with pytest.raises(IndexError, match=r"^index 5 is outside a tuple of 2 values$"):
        t[5]


def test_the_type_of_a_tuple_of_constants_is_that_of_one_constant() -> None:
    """A constexpr whose value is a tuple is a tuple of constexprs here; Triton has it as one."""
    t, same = core._normalize_tuple((5, (6, 7))), tl.constexpr_type((5, (6, 7)))
    assert t.type == same and same == t.type and hash(t.type) == hash(same)
    for other in ((5, (6, 8)), (5, 6, 7), 5, None):
        assert t.type != tl.constexpr_type(other) and tl.constexpr_type(other) != t.type
    assert tl.tuple([Bench("i32").args[0]]).type != tl.constexpr_type((5,))


def test_named_tuples() -> None:
    point = core._normalize_tuple(namedtuple("Point", "x y")(1, (2, 3)))
    assert point.x == 1 and point.y[1] == 3 and point.type.fields == ["x", "y"]
    with pytest.raises(AttributeError, match=r"^this tuple has no field `z`; its fields are x, y$"):
        point.z


@core._aggregate
class Span:
    """A begin, an end and a step."""

    begin: tl.tensor
    end: tl.tensor
    step: tl.constexpr

    @constexpr_function
    def __init__(self, begin, end, step):
        self.begin, self.end, self.step = begin, end, tl.constexpr(step)


def test_aggregates() -> None:
    bench = Bench("i32", "i64")
    span = Span(*bench.args, 4)
    assert (
        isinstance(span, core.base_value)
        and str(span.type) == "Span(begin: int32, end: int64, step: constexpr_type[4])"
    )
    handles: list[object] = []
    span._flatten_ir(handles)
    again, cursor = span.type._unflatten_ir(handles, 0)
    assert cursor == 2 and again.end.handle is bench.args[1].handle and again.step == 4 and again.type == span.type
    with pytest.raises(
        TypeError, match=r"^Expected <class '.*tensor'> for attribute 'begin' of Span, got <class 'int'>$"
    ):
        span.begin = 3
    assert Span.__doc__ == "A begin, an end and a step."


def test_descriptor_types_know_signs() -> None:
    types: list[object] = []
    tl.str_to_ty("tensordesc<u32[4,8]>", None)._flatten_ir_types(None, types)
    assert [str(t) for t in types] == ["!tt.tensordesc<tensor<4x8xui32>>", "i32", "i32", "i64", "i64"]


def test_extrema_of_constexprs() -> None:
    bench = Bench("i32")
    assert (
        bench(core.builtin_max, tl.constexpr(2), 5).value == 5
        and bench(core.builtin_min, 2, tl.constexpr(5), 1).value == 1
    )
    assert bench(core.builtin_max, bench.args[0], 3).type == tl.int32
    with pytest.raises(ValueError, match=r"^min/max need two values or more, got 1$"):
        bench(core.builtin_max, 2)
    with pytest.raises(ValueError, match=r"^max of constexprs does not take nan: use tl.maximum$"):
        bench(core.builtin_max, 2.0, float("nan"))


def test_ranges_carry_their_hints() -> None:
    r = tl.range(0, 10, num_stages=3, flatten=True)
    assert (r.start, r.end, r.step.value, r.num_stages, r.flatten, r.loop_unroll_factor) == (0, 10, 1, 3, True, None)
    assert tl.range(5).start.value == 0 and tl.static_range(2, 8, 3).step.value == 3 and tl.condition(1).condition == 1
    with pytest.raises(RuntimeError, match=r"^tl.range can only be used in @triton.jit'd functions$"):
        list(r)
    with pytest.raises(TypeError, match=r"^int32\[\] used as tl.static_range end value is not a constexpr$"):
        tl.static_range(0, Bench("i32").args[0])
