"""Findings about arithmetic: products without a matrix unit, double precision that nobody asked for, repeated work."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from weft.base.remarks import InstructionDeclined, ProductBy

from ..record import Finding
from .rule import Facts, rule

__all__ = ["double_precision", "no_matrix_unit", "replicated_work", "weaker_instruction"]


@rule("no-matrix-unit")
def no_matrix_unit(facts: Facts) -> Iterator[Finding]:
    """A product that lanes multiply and add."""
    for r in facts.explanation.remarks.of(ProductBy):
        if not r.instruction:
            size = "x".join(map(str, r.shape))
            what = f"a product of {size} takes {r.count:,} multiplications of each lane"
            fix = PRECISE if "in full precision" in r.reason else TYPES
            yield Finding("no-matrix-unit", r.span, what, r.reason, fix)


TYPES = "take operands of 16 bits, 8 bits or tf32, and sizes of at least 16"
PRECISE = 'pass input_precision="tf32", or "tf32x3" where its 10 bits of fraction are not enough'


@rule("weaker-instruction")
def weaker_instruction(facts: Facts) -> Iterator[Finding]:
    """A product or copy that was not given the best instruction of the machine, for a reason that its author can do
    something about; the remark says the others."""
    for r in facts.explanation.remarks.of(InstructionDeclined):
        fix = next((fix for reason, fix in BY_REASON.items() if reason in r.reason), None)
        if fix is not None:
            yield Finding("weaker-instruction", r.span, f"not done by {r.instruction}", r.reason, fix)


BY_REASON = {
    "num_warps is": "take num_warps=4, or a multiple of it",
    "its rows are": "take blocks that have its sizes; of few rows and many columns, exchange the operands",
    "lies along the other": "store the operand transposed, contiguous along the dimension that is summed",
    "which input_precision does not allow": PRECISE,
    "a product with a batch": "let each program do one product of the batch",
    "it has no": "take operands of 16 bits, 8 bits or tf32",
    "compared and swapped": "add in a type that it has, such as float32",
    "descriptors of the Triton language": "write the copy in Gluon: kernel.to_gluon(...) has the rest",
    "are taken modulo": "leave the modulo out, and mask what is behind the end",
    "is a stride 1?": "leave out a stride that is 1, or let it be specialised (do_not_specialize)",
    "may both load and store": "store to another array than those that are loaded",
    "is not 0": "let `other` of the load be 0, and choose another value by tl.where",
    "are masked": "mask rows and columns by one limit each: (i < rows)[:, None] & (j < columns)[None, :]",
    "along the other dimension": "store the operand transposed, or transpose the loaded tile by tl.trans",
}
"""What helps, by a part of the reason."""


@rule("double-precision")
def double_precision(facts: Facts) -> Iterator[Finding]:
    """Arithmetic on f64 in a kernel none of whose arrays has f64."""
    program = facts.program
    if program is None or any("f64" in (p.elem, p.pointee) for p in program.parameters):
        return
    for op in facts.ops:
        if op.name.startswith(("arith.", "math.")) and any(v.elem == "f64" for v in (*op.results, *op.operands)):
            yield Finding(
                "double-precision",
                op.span,
                "arithmetic on f64",
                "none of the kernel's arrays has that type, and a GPU has few units for it",
                "write constants as tl.float32, or cast with .to(tl.float32)",
            )
            return


@rule("replicated-work")
def replicated_work(facts: Facts) -> Iterator[Finding]:
    """A kernel whose largest tile has fewer elements than its block has threads."""
    program = facts.program
    tiles = facts.explanation.tiles
    if program is None or not tiles:
        return
    threads = program.machine.threads(program.warps)
    largest = max(tiles, key=lambda tile: prod(tile.shape))
    elements = prod(largest.shape)
    if 1 < elements < threads:
        fewer = max(1, elements // program.lanes)
        yield Finding(
            "replicated-work",
            largest.remark.span,
            f"{threads} threads work on tiles of {elements} elements",
            "threads without an element of their own repeat the work of others",
            f"num_warps={fewer}, or larger blocks",
            change={"num_warps": fewer} if fewer < program.warps else {},
        )
