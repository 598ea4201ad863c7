"""Bulk tensor copies: one lane has the copy engine move the boxes that a buffer falls into."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import LayoutError, Note, Span, Unsupported
from weft.ir import bit_width, int_value, shape_of, span_of
from weft.ir.gpu import MemDescType, encoding_of
from weft.ir.types import TensorDescType, signless
from weft.layouts import LinearLayout

from .boxes import Boxes, boxes_of
from .context import Context, lowering
from .mbarriers import elected

__all__ = ["boxes_of_descriptor", "parameter_of"]

REDUCTIONS = {1: "add", 2: "min", 3: "max", 4: "inc", 5: "dec", 6: "and", 7: "or", 8: "xor"}
MODES = {0: 16, 1: 32, 2: 64, 3: 128}


def boxes_of_descriptor(type: Attribute, c: Context | None = None) -> Boxes:
    """The boxes of a descriptor by its type; LayoutError where no mode of the copy engine gives its layout."""
    assert isinstance(type, TensorDescType)
    block = type.block_type
    layout = encoding_of(block)
    span = c.build.span if c is not None else None
    if layout is None or layout.linear is None:
        raise LayoutError(f"{type} does not say how its blocks lie in shared memory", span)
    width = max(1, bit_width(block.element_type) // 8)
    return _boxes(layout.linear, width, layout.text(), span)


def _boxes(memory: LinearLayout, width: int, name: str, span: Span | None) -> Boxes:
    found = boxes_of(memory, width)
    if found is not None:
        return found
    shape = "x".join(str(n) for n in memory.out_dims.values())
    raise LayoutError(
        f"a bulk copy cannot fill a tile of {shape} elements of {width} bytes that lies as {name} says: no swizzle of "
        "the copy engine (none, 32, 64 or 128 bytes) puts the rows of a box so",
        span,
        hint=f"use NVMMASharedLayout.get_default_for([{shape.replace('x', ', ')}], dtype), not transposed",
    )


class _Transfer:
    """The operands that all copies between a tensor and a buffer have."""

    def __init__(self, c: Context, desc: SSAValue, coordinates: Sequence[SSAValue], buffer: SSAValue) -> None:
        type = buffer.type
        assert isinstance(type, MemDescType) and isinstance(desc.type, TensorDescType)
        self.boxes = boxes_of_descriptor(desc.type, c)
        width = max(1, bit_width(type.element_type) // 8)
        here = _boxes(type.linear, width, type.data.layout.text(), c.build.span)
        if not _alike(here, self.boxes):
            raise LayoutError(
                f"the descriptor moves boxes of {list(self.boxes.box)} with a swizzle of {self.boxes.swizzle} bytes, "
                f"the buffer has boxes of {list(here.box)} with {here.swizzle}",
                c.build.span,
                hint="give the buffer the descriptor's own layout",
            )
        _check_made(c, desc, self.boxes)
        self.rank = len(coordinates)
        self.map = c[desc]
        starts = [s for start in self.boxes.starts for s in reversed(start)]
        bases = [c[x] for x in reversed(coordinates)]
        at = c.build.add("join", bases, [("i32", self.rank)]).result if self.rank > 1 else bases[0]
        count = len(self.boxes.offsets)
        if any(starts):
            at = c.build.rename(at, [k % self.rank for k in range(count * self.rank)])
            at = c.plus(at, c.build.linear(starts))
        self.at = at
        self.shared = c.plus(c.build.linear(self.boxes.offsets), c[buffer]) if count > 1 else c[buffer]


def _alike(a: Boxes, b: Boxes) -> bool:
    """Whether two ways to fall into boxes are one, dimensions of size 1 that only one has apart."""

    def squeezed(x: Boxes) -> tuple[object, ...]:
        kept = [i for i, n in enumerate(x.box) if n > 1 or any(s[i] for s in x.starts)]
        return [x.box[i] for i in kept], x.offsets, [[s[i] for i in kept] for s in x.starts]

    return squeezed(a) == squeezed(b) and (a.swizzle == b.swizzle)


def _check_made(c: Context, desc: SSAValue, boxes: Boxes) -> None:
    """Where the descriptor was made in sight, it must be for the boxes that its type stands for."""
    made = desc.owner
    if not isinstance(made, Operation) or made.name != "ttng.reinterpret_tensor_descriptor":
        return
    pointer = made.operands[0]
    for use in pointer.uses:
        op = use.operation
        if op.name != "ttng.tensormap_create" or use.index != 0:
            continue
        rank = len(boxes.box)
        sides = [c[x].op for x in op.operands[2 : 2 + rank]]
        given = [s.attrs["value"] if s is not None and s.name == "constant" else None for s in sides]
        swizzle = MODES.get(int_value(op.properties["swizzle_mode"]))
        wanted = list(boxes.bytes_of_map)
        if swizzle != boxes.swizzle or any(g is not None and g != w for g, w in zip(given, wanted, strict=True)):
            shown = [g if g is not None else "?" for g in given]
            raise LayoutError(
                f"the tensor map is for boxes of {shown[::-1]} with a swizzle of {swizzle} bytes, the layout of the "
                f"descriptor's blocks consists of boxes of {wanted[::-1]} with {boxes.swizzle}",
                c.build.span,
                notes=(Note("the tensor map is made here", span_of(op)),),
            )


@lowering("ttng.async_tma_copy_global_to_local")
def _load(c: Context, op: Operation) -> None:
    if int(getattr(getattr(op.properties.get("multicast"), "value", None), "data", 0)):
        raise Unsupported("a bulk copy to several blocks (multicast)", c.program.target, c.build.span)
    desc, *coordinates, barrier, result, predicate = op.operands
    t = _Transfer(c, desc, coordinates, result)
    operands = [t.shared, t.map, t.at, c[barrier], elected(c, predicate)]
    c.build.instruction(f"cp.async.bulk.tensor.{t.rank}d.load", operands)


@lowering("ttng.async_tma_copy_local_to_global")
def _store(c: Context, op: Operation) -> None:
    desc, *coordinates, source = op.operands
    t = _Transfer(c, desc, coordinates, source)
    c.build.instruction(f"cp.async.bulk.tensor.{t.rank}d.store", [t.map, t.at, t.shared, elected(c)])
    c.build.instruction("cp.async.bulk.commit_group", [])


@lowering("ttng.async_tma_reduce")
def _reduce(c: Context, op: Operation) -> None:
    desc, *coordinates, source = op.operands
    kind = REDUCTIONS[int_value(op.properties["kind"])]
    t = _Transfer(c, desc, coordinates, source)
    c.build.instruction(f"cp.async.bulk.tensor.{t.rank}d.reduce.{kind}", [t.map, t.at, t.shared, elected(c)])
    c.build.instruction("cp.async.bulk.commit_group", [])


@lowering("ttng.async_tma_store_wait")
def _store_wait(c: Context, op: Operation) -> None:
    c.build.instruction("cp.async.bulk.wait_group.read", [c.number(int_value(op.properties["pendings"]))])


@lowering("ttng.async_tma_gather", "ttng.async_tma_scatter")
def _rows(c: Context, op: Operation) -> None:
    what = "gathers" if op.name.endswith("gather") else "scatters"
    raise Unsupported(
        f"a bulk copy that {what} rows: the copy engine has it from compute capability 10.0 on",
        c.program.target,
        c.build.span,
        works_on=["cuda:100"],
    )


def parameter_of(type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
    """(elements, box with the innermost dimension first, swizzle, block) of a kernel parameter that is a descriptor."""
    assert isinstance(type, TensorDescType)
    boxes = boxes_of_descriptor(type)
    return (
        str(signless(type.block_type.element_type)),
        boxes.bytes_of_map,
        boxes.swizzle,
        tuple(shape_of(type.block_type)),
    )
