"""The matrix instructions that a launch asks for by `matrix_instr_nonkdim` and `kpack`, as in Triton.

    matrix_instr_nonkdim = 16      instructions of 16 x 16, where 32 x 32 fits too; 32 likewise
    kpack = 2                      a lane has twice as many elements in a row of the summed dimension as an instruction
                                   takes: operands of f16 are read 16 bytes at a time on gfx942, not 8

They are attributes of the module. If there is no such instruction for a product, the product's size decides, and the
remark `product` says which instruction was taken. kpack applies to gfx90a and gfx942 (instructions of later processors
take 16 bytes each), but not to chained products, whose results are the next operands without a conversion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from weft.ir import i32_attr, int_value, shape_of
from weft.machines import Machine
from weft.targets.instruction import Instruction

NAMES = ("matrix_instr_nonkdim", "kpack")
WIDEST = 16
"""Bytes of an access of shared memory."""


def note_asked(options: Mapping[str, Any], module: ModuleOp) -> None:
    """Write onto a module what a launch asks for."""
    for name in NAMES:
        if options.get(name):
            module.attributes[f"amdg.{name}"] = i32_attr(options[name])


def asked_instructions(
    op: Operation, entries: Sequence[Instruction], machine: Machine, chained: bool
) -> Sequence[Instruction]:
    """Of the instructions that can do a product, those that are asked for; all where none of these fits it."""
    side, pack = (_asked(op, name) for name in NAMES)
    rows, columns = shape_of(op.results[0].type)[-2:]
    fitting = [e for e in entries if side in e.shape[:2] and rows >= e.shape[0] and columns >= e.shape[1]]
    chosen = fitting or list(entries)
    return chosen if pack < 2 or chained else [_packed(e, op, pack, machine) for e in chosen]


def _asked(op: Operation, name: str) -> int:
    root: Operation | None = op
    while root is not None and not isinstance(root, ModuleOp):
        root = root.parent_op()
    attribute = None if root is None else root.attributes.get(f"amdg.{name}")
    return 0 if attribute is None else int_value(attribute)


def _packed(entry: Instruction, op: Operation, pack: int, machine: Machine) -> Instruction:
    """An instruction whose operands have so many times as many elements in a row, if they then fit one access."""
    width = entry.params.get("k_width")
    bits = max(x.bits for x in entry.operands[:2])
    depth = shape_of(op.operands[0].type)[-1]
    fits = isinstance(width, int) and width * pack * bits <= WIDEST * 8 and depth >= pack * entry.shape[2]
    return replace(entry, params={**entry.params, "k_width": width * pack}) if fits else entry  # type: ignore[operator]
