"""Which parameters a kernel stores through: so that a launch can refuse arrays that are read-only.

    tt.func @k(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>)     # ... tt.store (tt.addptr %out, %i), %v
    stored_params(module) == [1]

A pointer's origins are the parameters it was computed from, through any operation and around loops; where it was made
of an integer, those that the integer was computed from.  Pointers that come out of memory have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ContainerType, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from weft.base import each_once
from weft.ir import TensorDescType, is_pointer, walk

_WRITES = (
    *("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_store"),
    *("tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce"),
)


_READS = (*_WRITES, "tt.load", "tt.atomic_load", "tt.descriptor_load", "tt.descriptor_gather")


def _is_address(value: SSAValue) -> bool:
    return isinstance(value.type, TensorDescType) or is_pointer(value.type)


def _may_hold_one(value: SSAValue) -> bool:
    """Whether a value is an address, or an integer (or tile of them) wide enough for one."""
    kind = value.type
    element = kind.get_element_type() if isinstance(kind, ContainerType) else kind
    return _is_address(value) or (isinstance(element, IntegerType) and element.width.data == 64)


def stored_params(module: ModuleOp) -> list[int]:
    """Positions of the kernel's parameters that it stores through, in order."""
    function: Operation | None = next((op for op in module.body.block.ops if op.name == "tt.func"), None)
    if function is None:
        return []
    entry = function.regions[0].blocks[0]
    stored: set[int] = set()
    work = [op.operands[0] for op in walk(function) if op.name in _WRITES]
    for value in each_once(work):
        wanted = _is_address if _is_address(value) else _may_hold_one
        owner: Any = value.owner
        if isinstance(owner, Operation):
            if owner.name == "tt.int_to_ptr":
                wanted = _may_hold_one
            if owner.name not in _READS:
                work += filter(wanted, owner.operands)
                work += _yielded(owner, wanted)
        elif owner is entry:
            stored.add(entry.args.index(value))
        elif isinstance(owner, Block):
            # An argument of a loop's body, or of a block that is branched to: whatever may come in.
            parent = owner.parent_op()
            if parent is function and function is not None:
                for block in function.regions[0].blocks:
                    if block.last_op is not None and owner in block.last_op.successors:
                        work += filter(wanted, block.last_op.operands)
            elif parent is not None:
                work += filter(wanted, parent.operands)
                work += _yielded(parent, wanted)
    return sorted(stored)


def _yielded(op: Operation, wanted: Callable[[SSAValue], bool]) -> list[SSAValue]:
    """Addresses that the regions of an operation end with."""
    return [
        value
        for region in op.regions
        for block in region.blocks
        if block.last_op is not None
        for value in block.last_op.operands
        if wanted(value)
    ]
