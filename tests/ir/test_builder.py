"""Making operations, their places and their attributes."""

from __future__ import annotations

import doctest
import importlib

import pytest
from xdsl.ir import Block

from weft.base import Span
from weft.ir import (
    Builder,
    bf16,
    bit_width,
    dense_attr,
    dense_values,
    f8E5M2,
    f32,
    i1,
    i8,
    i32,
    i64,
    int_type,
    ptr_of,
    span_of,
    splat_attr,
    splat_value,
    tensor_of,
    tensordesc_of,
    tt,
    type_string,
)


@pytest.mark.parametrize("name", ["types", "attrs", "locations", "builder", "signature"])
def test_examples_in_the_text(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"weft.ir.{name}")).failed == 0


def test_types_are_made_once() -> None:
    assert int_type(32) is i32
    assert tensor_of([8, 4], f32) is tensor_of((8, 4), f32)
    assert ptr_of(f32) is ptr_of(f32)
    assert tensordesc_of([8], f32) is tensordesc_of((8,), f32)
    assert [bit_width(t) for t in (i1, i8, bf16, f8E5M2, ptr_of(f32), tensor_of((4,), i64))] == [1, 8, 16, 8, 64, 64]
    assert type_string(ptr_of(f8E5M2)) == "*fp8e5"


def test_places() -> None:
    block = Block()
    b = Builder.at_end(block)
    first = b.constant(1, i32)
    last = b.constant(3, i32)
    Builder.before(last.owner).constant(2, i32)  # type: ignore[arg-type]
    assert [splat_value(op.properties["value"]) for op in block.ops] == [1, 2, 3]
    Builder.after(first.owner).constant(9, i32)  # type: ignore[arg-type]
    Builder.at_start(block).constant(0, i32)
    assert [splat_value(op.properties["value"]) for op in block.ops] == [0, 1, 9, 2, 3]
    with pytest.raises(ValueError, match="no insertion point"):
        Builder().constant(1, i32)


def test_spans() -> None:
    b = Builder.at_end(Block())
    with b.span(Span("k.py", 7, 2)):
        assert b.current_span() == Span("k.py", 7, 2)
        x = b.constant(1, i32)
    assert span_of(x.owner) == Span("k.py", 7, 2)  # type: ignore[arg-type]
    assert span_of(b.constant(1, i32).owner) is None  # type: ignore[arg-type]
    assert span_of(Builder.before(x.owner).constant(2, i32).owner) == Span("k.py", 7, 2)  # type: ignore[arg-type]


def test_regions() -> None:
    b = Builder.at_end(Block(arg_types=(i32, i1)))
    n, c = b.block.args  # type: ignore[union-attr]
    branch = b.if_(c, (i32,))
    for region in branch.regions:
        with b.inside(region.block):
            b.yield_((n,))
    assert [op.name for op in b.block.ops] == ["scf.if"]  # type: ignore[union-attr]
    assert branch.results[0].type == i32


def test_constants() -> None:
    b = Builder.at_end(Block())
    assert splat_value(b.constant(0xFFFFFFFF, i32).owner.properties["value"]) == -1  # type: ignore[union-attr]
    assert splat_value(b.constant(True, i1).owner.properties["value"]) == -1  # type: ignore[union-attr]
    tile = b.constant(1.5, tensor_of((1024, 1024), f32)).owner.properties["value"]  # type: ignore[union-attr]
    assert splat_value(tile) == 1.5 and len(dense_values(tile)) == 1  # type: ignore[arg-type]
    many = dense_attr(tensor_of((2, 2), i8), [1, 2, 3, 255])
    assert dense_values(many) == (1, 2, 3, -1) and splat_value(many) is None
    assert dense_attr(tensor_of((4,), f32), [2.0] * 4) == splat_attr(tensor_of((4,), f32), 2.0)


def test_load_and_store() -> None:
    b = Builder.at_end(Block(arg_types=(tensor_of((8,), ptr_of(f32)), tensor_of((8,), i1), tensor_of((8,), f32))))
    p, mask, other = b.block.args  # type: ignore[union-attr]
    load = b.load(p, mask, other, cache=tt.CacheModifier.CG).owner
    assert isinstance(load, tt.LoadOp)
    assert (load.ptr, load.mask, load.other) == (p, mask, other)
    assert load.result.type == tensor_of((8,), f32)
    bare = b.load(p).owner
    assert isinstance(bare, tt.LoadOp) and bare.mask is None and bare.other is None
    store = b.store(p, other, mask)
    assert store.mask is mask and b.store(p, other).mask is None
