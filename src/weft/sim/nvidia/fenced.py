"""wgmma.fence: between what a thread does to registers and the wgmma that takes them.

The matrix unit reads and writes the accumulator, and a left operand that is in registers, on its own. PTX wants a
wgmma.fence behind every other access to them, and before the first wgmma; among products of one shape that add to the
same registers there is none. A product is looked at where it stands: its fence is in the same block of the program.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from weft.ir.lane import Block, LaneOp, LaneProgram, Value

from ..errors import FenceError
from ..machine import Batch, Context
from .products import PASSING

_KNOWN: WeakKeyDictionary[Batch, frozenset[LaneOp]] = WeakKeyDictionary()


def check_fenced(context: Context, op: LaneOp) -> None:
    """Report a product before which a wgmma.fence is missing."""
    batch = context.batch
    if batch not in _KNOWN:
        _KNOWN[batch] = frozenset(unfenced(batch.program))
    if op in _KNOWN[batch]:
        text = "a wgmma takes registers that the thread may still be writing: there is no wgmma.fence between"
        error = FenceError(text, op.span, thread=context.thread(0))
        error.hint = "wgmma.fence comes after the last access to the accumulator and to operands in registers"
        batch.launch.error(error)


def unfenced(program: LaneProgram) -> list[LaneOp]:
    """The products of a program whose registers are not fenced."""
    found: list[LaneOp] = []
    todo: list[Block] = [program.body]
    while todo:
        block = todo.pop()
        fenced, fresh = False, set[Value]()
        for op in block.ops:
            todo += op.regions
            isa = str(op.attrs.get("isa", ""))
            if isa == "wgmma.fence":
                fenced, fresh = True, set()
            elif isa.startswith("wgmma.m"):
                registers = [op.operands[2], *([op.operands[0]] if ".ra" in isa else [])]
                if not fenced or any(value in fresh for value in registers):
                    found.append(op)
            elif op.regions:
                fenced = False
            elif op.name not in PASSING or any(value in fresh for value in op.operands):
                fresh.update(op.results)
    return found
