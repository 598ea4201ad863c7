"""Check hints about addresses as if arrays began where CUDA's allocator puts them; only with `debug`, on a CPU.

    %a = tt.ptr_to_int %p {tt.from_array}        # %p is made of the array %x: tl.multiple_of(x + offsets, 256)
becomes
    %o = (tt.ptr_to_int %x) and -16
    %a = (tt.ptr_to_int %p) - %o

A hint is written for arrays whose memory a GPU's allocator has aligned, to 256 bytes and more. A CPU's aligns to 16, so
that only what an address is beyond a multiple of 16 counts (a view that begins at the second element), as in the
simulator. Where an address may be of several arrays, it is of the one that begins next before it.

Integers of 64 bits may be addresses too: those made of a pointer are treated as one. Of those that become a pointer
only later nobody knows the array, so they are counted from their first element. Others are what they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import each_once
from weft.ir import Builder, find, i32, i32_attr, i64, is_tensor, like, shape_of, tt

from .pointer_roots import roots_of
from .removal import remove

MARK = "tt.from_array"
"""Of the operations that the language makes for hints about what may be an address."""
KEPT = 16
"""Bytes that every allocator aligns to: what an address is beyond a multiple is the author's."""


def place_hints(root: Operation) -> None:
    """Rewrite the addresses that hints are about."""
    for op in [op for op in find(root, tt.PtrToIntOp) if MARK in op.attributes]:
        op.results[0].replace_all_uses_with(_placed(op))
        remove(op)


def _placed(op: Operation) -> SSAValue:
    b = Builder.before(op)
    pointer = op.operands[0]
    producer = pointer.owner
    if not isinstance(producer, tt.IntToPtrOp):
        return _counted(b, b.create(tt.PtrToIntOp, (pointer,), (op.results[0].type,)).results[0], roots_of(pointer))
    number = producer.operands[0]
    pointers = _pointers_in(number)
    if pointers:
        return _counted(b, number, roots_of(pointers[0]) if len(pointers) == 1 else [])
    return _counted(b, number, []) if _becomes_pointer(number, producer) else number


def _counted(b: Builder, address: SSAValue, roots: Sequence[SSAValue]) -> SSAValue:
    """How many bytes an address is from the beginning of its array."""
    nearest: SSAValue | None = None
    for array in roots:
        address_of = b.create(tt.PtrToIntOp, (array,), (i64,)).results[0]
        begin: SSAValue = b.binary(arith.AndIOp, address_of, b.constant(-KEPT, i64))
        if is_tensor(address.type):
            begin = b.splat(begin, shape_of(address.type))
        distance = b.binary(arith.SubiOp, address, begin)
        nearest = distance if nearest is None else b.binary(arith.MinUIOp, nearest, distance)
    if nearest is not None:
        return nearest
    return b.binary(arith.SubiOp, address, _first(b, address))


def _first(b: Builder, value: SSAValue) -> SSAValue:
    """A tile whose elements all are the first one of another."""
    type: Attribute = value.type
    for axis in range(len(shape_of(type)) if is_tensor(type) else 0):
        zero = b.constant(0, like(type, i32))
        value = b.create(tt.GatherOp, (value, zero), (type,), {"axis": i32_attr(axis)}).results[0]
    return value


def _pointers_in(number: SSAValue) -> list[SSAValue]:
    """The pointers that an integer is made of by arithmetic."""
    pointers: list[SSAValue] = []
    todo = [number]
    for value in each_once(todo):
        if not isinstance(owner := value.owner, Operation):
            continue
        if isinstance(owner, tt.PtrToIntOp):
            pointers.append(owner.operands[0])
        elif not owner.regions and not isinstance(owner, tt.LoadOp):
            todo += owner.operands
    return pointers


def _becomes_pointer(number: SSAValue, besides: Operation) -> bool:
    """Whether arithmetic makes a pointer of an integer, other than for its hint."""
    todo = [number]
    for value in each_once(todo):
        for use in value.uses:
            user = use.operation
            if isinstance(user, tt.IntToPtrOp):
                if user is not besides and not any(MARK in u.operation.attributes for u in user.results[0].uses):
                    return True
            elif not user.regions:
                todo += user.results
    return False
