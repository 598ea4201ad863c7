"""Layout IR to the lane program: once, for every GPU.

`lower(module)` takes a module whose tiles have layouts and gives the program of its kernel. One file for a family of
operations; each registers itself by the operation's name (context.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from weft.base import Unsupported
from weft.ir import int_value, is_pointer, pointee_of
from weft.ir.lane import Block, LaneProgram, Parameter, Value, verify
from weft.layouts.plan import machine_of

from . import atomics, control, dot, elements, gather, histogram, memory, reduce, scan, shapes, shared
from .barriers import insert_barriers
from .context import LOWERINGS, Context
from .placement import place

__all__ = ["LOWERINGS", "finish", "lower"]

# imported to fill the table of lowerings
FAMILIES = (atomics, control, dot, elements, gather, histogram, memory, reduce, scan, shapes, shared)


def lower(module: ModuleOp, target: str | None = None) -> LaneProgram:
    """The lane program of the one kernel in a module of layout IR. Unsupported where an operation has no lowering."""
    kernels = [op for op in module.body.block.ops if op.name == "tt.func"]
    if len(kernels) != 1:
        raise Unsupported(f"a module of {len(kernels)} functions")
    attributes = module.attributes
    name = target or str(getattr(attributes.get("ttg.target"), "data", "cuda:80"))
    kernel = kernels[0]
    body = kernel.regions[0].blocks[0]
    parameters: list[Parameter] = []
    arguments: list[Value] = []
    for value in body.args:
        pointer = is_pointer(value.type)
        elem = "i64" if pointer else str(value.type)
        pointee = str(pointee_of(value.type)) if pointer else ""
        name_hint = _unlike(value.name_hint or f"arg{len(parameters)}", parameters)
        parameters.append(Parameter(name_hint, "ptr" if pointer else elem, pointee))
        arguments.append(Value(elem, 1))
    warps = int_value(attributes["ttg.num-warps"]) if "ttg.num-warps" in attributes else 4
    lanes = int_value(attributes["ttg.threads-per-warp"]) if "ttg.threads-per-warp" in attributes else 32
    program = LaneProgram(
        str(getattr(kernel.properties["sym_name"], "data", "kernel")),
        name,
        tuple(parameters),
        Block(tuple(arguments)),
        warps,
        lanes,
    )
    context = Context(program, machine_of(name))
    for value, argument in zip(body.args, arguments, strict=True):
        context[value] = argument
    context.block(list(body.ops))
    finish(program)
    return program


def finish(program: LaneProgram) -> None:
    """Place the buffers of shared memory, put barriers where accesses meet, and check what has come out."""
    place(program)
    insert_barriers(program)
    verify(program)


def _unlike(name: str, others: Sequence[Parameter]) -> str:
    """A name that no other parameter has: the parts of a descriptor are name, name.1, name.2, ..."""
    taken = {p.name for p in others}
    numbers = itertools.count(1)
    found = name
    while found in taken:
        found = f"{name}.{next(numbers)}"
    return found
