"""Layout IR to the lane program: once, for every GPU.

`lower(module)` takes a module whose tiles have layouts and gives the program of its kernel. One file for a family of
operations; each registers itself by the operation's name (context.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, Operation

from weft.base import Unsupported
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import int_value, is_pointer, pointee_of, type_text
from weft.ir.gpu import encoding_of
from weft.ir.lane import Block, LaneProgram, Parameter, Value, verify
from weft.ir.made_tensors import tensor_of
from weft.ir.types import TensorDescType
from weft.machines import DEFAULT, Machine, machine_of

from . import (
    atomics,
    calls,
    control,
    dot,
    elements,
    gather,
    histogram,
    memory,
    picked,
    polls,
    reduce,
    rows,
    runs,
    scan,
    shapes,
    shared,
)
from .barriers import insert_barriers
from .context import LOWERINGS, Context
from .depth_first import depth_first
from .end_by_warp import end_by_warp
from .few_blocks import few_blocks, few_copies
from .in_parts import hold_less
from .mask_loads import mask_loads
from .order_globals import order_globals
from .placement import place
from .share import share
from .sink_loads import sink_loads
from .stores_first import store_first
from .telling import tell_buffers
from .vendor import VendorLowering, lowering_of

__all__ = ["LOWERINGS", "finish", "lower"]

# imported to fill the table of lowerings
FAMILIES = (
    *(atomics, calls, control, dot, elements, gather, histogram, memory),
    *(picked, polls, reduce, rows, runs, scan, shapes, shared),
)


def lower(
    module: ModuleOp,
    machine: Machine | None = None,
    remarks: RemarkCollector = NO_REMARKS,
    *,
    keeps_layouts: bool = False,
) -> LaneProgram:
    """The lane program of the one kernel in a module of layout IR, for a machine or for the one that it names; with
    `keeps_layouts`, its layouts are their author's (see `memory`).

    Unsupported where an operation has no lowering.
    """
    kernels = [op for op in module.body.block.ops if op.name == "tt.func"]
    if len(kernels) != 1:
        raise Unsupported(f"a module of {len(kernels)} functions", hint="a module has one kernel, a `tt.func public`")
    attributes = module.attributes
    if machine is None:
        machine = machine_of(getattr(attributes.get("ttg.target"), "data", DEFAULT))
    kernel = kernels[0]
    body = kernel.regions[0].blocks[0]
    parameters: list[Parameter] = []
    vendor = lowering_of(machine)
    arguments: list[Value] = []
    for value in body.args:
        name_hint = _unlike(value.name_hint or f"arg{len(parameters)}", parameters)
        parameters.append(_parameter(name_hint, value.type, vendor, kernel, value.index))
        arguments.append(Value("i64" if parameters[-1].pointee else parameters[-1].elem, 1))
    warps = int_value(attributes["ttg.num-warps"]) if "ttg.num-warps" in attributes else 4
    lanes = int_value(attributes["ttg.threads-per-warp"]) if "ttg.threads-per-warp" in attributes else machine.lanes
    if lanes != machine.lanes:
        raise Unsupported(f"layout IR for warps of {lanes} threads", machine.name)
    program = LaneProgram(
        str(getattr(kernel.properties["sym_name"], "data", "kernel")),
        machine,
        tuple(parameters),
        Block(tuple(arguments)),
        warps,
        int_value(attributes["ttg.num-ctas"]) if "ttg.num-ctas" in attributes else 1,
        remarks=remarks,
    )
    context = Context(program, keeps_layouts)
    for value, argument in zip(body.args, arguments, strict=True):
        context[value] = argument
    cap = int_value(attributes["ttg.maxnreg"]) if "ttg.maxnreg" in attributes else 0
    program.registers = cap
    program.most_blocks = few_blocks(list(body.ops), context.facts, machine, remarks) if program.blocks < 2 else 0
    program.blocks_by_memory = program.most_blocks > 0
    context.adds.body(context, list(body.ops), cap)
    finish(program)
    program.most_blocks = program.most_blocks or few_copies(program)
    return program


def _parameter(name: str, type: Attribute, vendor: VendorLowering, kernel: Operation, index: int) -> Parameter:
    if isinstance(type, TensorDescType) and encoding_of(type.block_type) is not None:
        number, made = (_said_of(kernel, index, what) for what in ("tt.descriptor", "tt.made"))
        descriptor = int_value(number) if number is not None else -1
        tensor = tensor_of(made) if made is not None else None
        pointee, box, swizzle, block = vendor.descriptor(type)
        moved = block if descriptor < 0 else ()  # what follows a descriptor's parts may be for parts of its blocks
        return Parameter(name, "tensormap", pointee, box, swizzle, moved, descriptor, tensor)
    if is_pointer(type):
        return Parameter(name, "ptr", type_text(pointee_of(type)))
    return Parameter(name, type_text(type))


def _said_of(kernel: Operation, index: int, what: str) -> Attribute | None:
    """What is said of an argument: which descriptor it is the map of besides its parts, of what it is made."""
    attrs = kernel.properties.get("arg_attrs")
    if not isinstance(attrs, ArrayAttr) or index >= len(attrs.data):
        return None
    said: Attribute | None = attrs.data[index].data.get(what)
    return said


def finish(program: LaneProgram) -> None:
    """Place the buffers of shared memory, put barriers where accesses meet, and check what has come out."""
    share(program)
    sink_loads(program)
    mask_loads(program)
    store_first(program)
    place(program)
    lowering_of(program.machine).before_barriers(program)
    insert_barriers(program)
    order_globals(program)
    hold_less(program)
    depth_first(program)
    end_by_warp(program)
    lowering_of(program.machine).finished(program)
    verify(program)
    tell_buffers(program)


def _unlike(name: str, others: Sequence[Parameter]) -> str:
    """A name that no other parameter has: the parts of a descriptor are name, name.1, name.2, ..."""
    taken = {p.name for p in others}
    numbers = itertools.count(1)
    unused = name
    while unused in taken:
        unused = f"{name}.{next(numbers)}"
    return unused
