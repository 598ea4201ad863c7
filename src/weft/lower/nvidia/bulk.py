"""Bulk tensor copies: one lane has the copy engine move the boxes of a buffer (boxes.py)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import LayoutError, Note, Span, Unsupported
from weft.base.remarks import BulkCopy
from weft.ir import bit_width, int_value, shape_of, span_of
from weft.ir.gpu import MemDescType, encoding_of
from weft.ir.nvidia.ttng import DIVIDED, EACH_WARP
from weft.ir.types import TensorDescType, signless
from weft.layouts import LinearLayout, NVMMASharedLayout, f2
from weft.targets.instruction import OF_WARP

from ..context import Context
from ..telling import memory_text
from .boxes import Boxes, boxes_of, boxes_within, columns_of, divided
from .matrices import of_block
from .mbarriers import elected, holds
from .table import lowering

REDUCTIONS = {1: "add", 2: "min", 3: "max", 4: "inc", 5: "dec", 6: "and", 7: "or", 8: "xor"}
AT_LEAST = 5
"""Comparison of integers with a sign, by xDSL's number."""
MODES = {0: 16, 1: 32, 2: 64, 3: 128}


def boxes_of_descriptor(type: Attribute, c: Context | None = None) -> Boxes:
    """The boxes of a descriptor by its type; LayoutError where no mode of the copy engine gives its layout."""
    assert isinstance(type, TensorDescType)
    block = type.block_type
    layout = encoding_of(block)
    span = c.build.span if c is not None else None
    if layout is None or layout.linear is None:
        raise LayoutError(
            f"a bulk copy of blocks of {'x'.join(map(str, shape_of(block)))}: one row has no place in a swizzle of 8",
            span,
            hint="descriptors of a row are for copies that gather or scatter rows, which Blackwell has",
        )
    width = max(1, bit_width(block.element_type) // 8)
    return _boxes(layout.linear, width, layout.text(), span, type.of_images)


def _boxes(memory: LinearLayout, width: int, name: str, span: Span | None, images: bool = False) -> Boxes:
    if images and memory.has_in("block") and any(basis[0] for basis in memory.bases["block"]):
        raise LayoutError(
            f"blocks of a cluster cannot divide the pixels of a load of images, which follow each other within the "
            f"bounding box; {name} does",
            span,
            hint="let them divide the channels, or hold copies: cga_layout=[[0, 1]] or [[0, 0]]",
        )
    boxes = columns_of(memory, width) if images else boxes_of(memory, width)
    if boxes is not None:
        return boxes
    shape = "x".join(str(n) for n in memory.out_dims.values())
    raise LayoutError(
        f"a bulk copy cannot fill a tile of {shape} elements of {width} bytes that lies as {name} says: no swizzle of "
        "the copy engine (none, 32, 64 or 128 bytes) puts the rows of a box so",
        span,
        hint=f"use NVMMASharedLayout.get_default_for([{shape.replace('x', ', ')}], dtype), not transposed",
    )


def _check_whole(c: Context, type: MemDescType) -> None:
    if type.gaps:
        raise LayoutError(
            f"a bulk copy cannot fill or read padded memory, which lies as {type.data.layout.text()} says: rows of a "
            "box follow each other without gaps",
            c.build.span,
            hint=f"use NVMMASharedLayout.get_default_for({list(type.linear.out_dims.values())}, dtype), whose swizzle "
            "avoids bank conflicts as padding does",
        )


def _in_buffer(c: Context, type: MemDescType, boxes: Boxes, begin: int, width: int) -> Boxes:
    """The boxes of a descriptor where they are in a buffer, or in the part of one that begins at byte `begin`."""
    of_buffer = boxes_of(type.linear, width)
    if not begin and of_buffer is not None and _alike(of_buffer, boxes):
        return boxes
    within = boxes_within(type.linear, boxes, begin, width)
    if within is not None:
        return within
    of_buffer = _boxes(type.linear, width, type.data.layout.text(), c.build.span)
    part = f", in which the part begins at byte {begin}" if begin else ""
    raise LayoutError(
        f"the descriptor moves boxes of {list(boxes.box)} with a swizzle of {boxes.swizzle} bytes, "
        f"the buffer has boxes of {list(of_buffer.box)} with {of_buffer.swizzle}{part}",
        c.build.span,
        hint="give the buffer the descriptor's own layout"
        + (f"; parts begin at multiples of {max(128, 8 * boxes.swizzle)} bytes" if begin else ""),
    )


class _Transfer:
    """The operands that all copies between a tensor and a buffer have."""

    def __init__(
        self, c: Context, desc: SSAValue, coordinates: Sequence[SSAValue], buffer: SSAValue, spread: bool = False,
        among: int = 0,
    ) -> None:  # fmt: skip
        type = buffer.type
        assert isinstance(type, MemDescType) and isinstance(desc.type, TensorDescType)
        self.boxes = boxes_of_descriptor(desc.type, c)
        width = max(1, bit_width(type.element_type) // 8)
        _check_whole(c, type)
        c.only_own(buffer, "a bulk copy from or to")
        begin = c.offset_of(buffer)
        if not desc.type.of_images or begin:
            self.boxes = _in_buffer(c, type, self.boxes, begin, width)
        _check_made(c, desc, self.boxes)
        self.c, self.rank, self.tile = c, len(coordinates), type
        self.map = c[desc]
        several = 1 << among.bit_count()
        each = _warps_for(self.boxes, c.program.warps * several) if spread else 1
        self.among = among if each >= several else 0
        """The bits of a block's rank by which blocks share the boxes, as warps do."""
        self.warps = each >> self.among.bit_count()
        indices = range(0, len(self.boxes.offsets), each)
        bits = [1 << i for i in range(self.warps.bit_length() - 1)]
        rest = iter(self.warps << i for i in range(self.among.bit_count()))
        of_block = [next(rest) if self.among >> i & 1 else 0 for i in range(c.program.blocks.bit_length() - 1)]
        blocks = type.linear.bases["block"] if type.linear.has_in("block") else ()
        places = []
        behind = len(coordinates) - len(self.boxes.box) if desc.type.of_images else 0
        for k in indices:
            for dim, base in reversed(list(enumerate(coordinates))):
                d = dim - behind  # of images only the last coordinate, of channels, is one of the box
                if behind and d < 1:
                    places.append(c[base])
                    continue
                by_warp = [self.boxes.starts[b][d] for b in bits]
                start, by_block = self.boxes.starts[k][d], [basis[d] for basis in blocks]
                if self.among:
                    by_block = [x + self.boxes.starts[b][d] for x, b in zip(by_block, of_block, strict=True)]
                moved = start or any(by_warp) or any(by_block)
                places.append(c.plus(c[base], c.build.linear([start], (), by_warp, by_block)) if moved else c[base])
        self.at = c.build.add("join", places, [("i32", len(places))]).result if len(places) > 1 else places[0]
        offsets, by_warp = [self.boxes.offsets[k] ^ begin for k in indices], [self.boxes.offsets[b] for b in bits]
        by_block = [self.boxes.offsets[b] for b in of_block] if self.among else []
        moved = any(offsets) or any(by_warp) or any(by_block)
        self.shared = c.plus(c.build.linear(offsets, (), by_warp, by_block), c[buffer]) if moved else c[buffer]

    def tell(self, access: str) -> None:
        """Report the boxes by which the tile is moved."""
        if self.c.program.remarks:
            tile = memory_text(self.tile)
            boxes = len(self.boxes.offsets), self.boxes.box, self.boxes.swizzle, self.warps
            self.c.program.remarks.add(BulkCopy(self.c.build.span, access, tile, *boxes))


def _warps_for(boxes: Boxes, warps: int) -> int:
    """How many warps share the boxes, each by a lane of its own: as many as there are, where box i + j is i xor j.

    One lane after the other would keep its warp from the product that waits for all of them.
    """
    wanted = min(warps, len(boxes.offsets))

    def apart(values: Sequence[int]) -> bool:
        return all(values[i] == values[i & -wanted] ^ values[i & wanted - 1] for i in range(len(values))) and all(
            values[i] == values[i & i - 1] ^ values[i & -i] for i in range(1, wanted)
        )

    columns = [boxes.offsets, *zip(*boxes.starts, strict=True)]
    return wanted if all(map(apart, columns)) else 1


def _alike(a: Boxes, b: Boxes) -> bool:
    """Whether two ways to fall into boxes are one, dimensions of size 1 that only one has apart."""

    def squeezed(x: Boxes) -> tuple[object, ...]:
        kept = [i for i, n in enumerate(x.box) if n > 1 or any(s[i] for s in x.starts)]
        return [x.box[i] for i in kept], x.offsets, [[s[i] for i in kept] for s in x.starts]

    return squeezed(a) == squeezed(b) and (a.swizzle == b.swizzle)


def _check_made(c: Context, desc: SSAValue, boxes: Boxes) -> None:
    """Where the descriptor was made in sight, it must be for the boxes that its type stands for."""
    maker = desc.owner
    if not isinstance(maker, Operation) or maker.name != "ttng.reinterpret_tensor_descriptor":
        return
    pointer = maker.operands[0]
    for use in pointer.uses:
        op = use.operation
        if op.name != "ttng.tensormap_create" or use.index != 0:
            continue
        rank = len(boxes.box)
        sides = [c[x].op for x in op.operands[2 : 2 + rank]]
        numbers = [s.attrs["value"] if s is not None and s.name == "constant" else None for s in sides]
        swizzle = MODES.get(int_value(op.properties["swizzle_mode"]))
        wanted = list(boxes.bytes_of_map)
        if swizzle != boxes.swizzle or any(g is not None and g != w for g, w in zip(numbers, wanted, strict=True)):
            shown = [g if g is not None else "?" for g in numbers]
            raise LayoutError(
                f"the tensor map is for boxes of {shown[::-1]} with a swizzle of {swizzle} bytes, the layout of the "
                f"descriptor's blocks consists of boxes of {wanted[::-1]} with {boxes.swizzle}",
                c.build.span,
                hint=f"make the map for boxes of {wanted[::-1]} with {boxes.swizzle}, or give the blocks its layout",
                notes=(Note("the tensor map is made here", span_of(op)),),
            )


@lowering("ttng.async_tma_copy_global_to_local")
def _load(c: Context, op: Operation) -> None:
    desc, *coordinates, barrier, result, predicate = op.operands
    _begin_load(c, op, desc, coordinates, (), barrier, result, predicate)


@lowering("ttng.async_tma_copy_im2col_to_local")
def _load_images(c: Context, op: Operation) -> None:
    desc, *rest, barrier, result, predicate = op.operands
    rank = len(rest) // 2 + 1  # two offsets less than coordinates
    _begin_load(c, op, desc, rest[:rank], rest[rank:], barrier, result, predicate)


def _begin_load(
    c: Context, op: Operation, desc: SSAValue, coordinates: Sequence[SSAValue], offsets: Sequence[SSAValue],
    barrier: SSAValue, result: SSAValue, predicate: SSAValue,
) -> None:  # fmt: skip
    alike = _alike_blocks(result) if holds(op, "multicast") else 0
    t = _Transfer(c, desc, coordinates, result, spread=True, among=alike if DIVIDED in op.attributes else 0)
    t.tell("load")
    active = elected(c, predicate, t.warps, whichever=True)
    operands, name = [t.shared, t.map, t.at, c[barrier]], f"cp.async.bulk.tensor.{t.rank}d.load"
    if offsets:
        shifts = [c[x] for x in reversed(offsets)]
        operands.append(c.build.add("join", shifts, [("i16", len(shifts))]).result if len(shifts) > 1 else shifts[0])
        name += ".im2col"
    if alike:
        if not t.among:
            first = c.is_zero(c.index("block", alike))
            active = c.build.op("arith.andi", [active, first], "i1")
        ranks = sum(1 << x for x in f2.span([1 << i for i in f2.bits(alike)]))
        rank = c.index("block", c.program.blocks - 1 & ~t.among)
        operands.append(c.build.op("arith.trunci", [c.build.op("arith.shli", [c.number(ranks), rank], "i32")], "i16"))
        name += ".multicast"
    copy = c.build.instruction(name, [*operands, active])
    if t.among:
        copy.attrs["awaited"] = True


def _alike_blocks(buffer: SSAValue) -> int:
    """The bits of a block's rank that make no difference to which part of a buffer it holds."""
    assert isinstance(buffer.type, MemDescType)
    linear = buffer.type.linear
    columns = linear.in_columns("block") if linear.has_in("block") else ()
    return sum(1 << i for i, x in enumerate(columns) if not x)


@lowering("ttng.async_tma_copy_local_to_global")
def _store(c: Context, op: Operation) -> None:
    _begin_store(c, op, "store")


@lowering("ttng.async_tma_reduce")
def _reduce(c: Context, op: Operation) -> None:
    _begin_store(c, op, f"reduce.{REDUCTIONS[int_value(op.properties['kind'])]}")


def _begin_store(c: Context, op: Operation, kind: str) -> None:
    if EACH_WARP in op.attributes:
        _store_by_warps(c, op, kind)
        return
    desc, *coordinates, source = op.operands
    t = _Transfer(c, desc, coordinates, source)
    t.tell(kind.removeprefix("reduce."))
    c.build.instruction(f"cp.async.bulk.tensor.{t.rank}d.{kind}", [t.map, t.at, t.shared, elected(c, whichever=True)])
    c.build.instruction("cp.async.bulk.commit_group", [])


def _store_by_warps(c: Context, op: Operation, kind: str) -> None:
    """Each warp has its own parts of a tile stored, those that the descriptor is for: of W warps, warp w the parts w,
    w + W, ..., counted down the columns. A part that would begin before the tensor is not stored."""
    desc, *coordinates, source = op.operands
    type = source.type
    assert isinstance(type, MemDescType) and isinstance(desc.type, TensorDescType)
    width = max(1, bit_width(type.element_type) // 8)
    _check_whole(c, type)
    c.only_own(source, "a bulk copy from")
    own = of_block(type.linear)
    shape, part = tuple(own.out_dims.values()), shape_of(desc.type.block_type)
    counts, warps = [n // m for n, m in zip(shape, part, strict=True)], c.program.warps
    boxes = boxes_of_descriptor(desc.type, c)
    every = divided(own, boxes.box, boxes.swizzle, width)
    if every is None or len(shape) != 2 or counts[0] * counts[1] % warps or c.offset_of(source):
        raise LayoutError(
            f"warps cannot each store parts of {list(part)} elements of a tile of {list(shape)}",
            c.build.span,
            hint=f"a descriptor of parts of the tile, as many as warps ({warps}) or a multiple of that, in its layout",
        )
    places = dict(zip(every.starts, every.offsets, strict=True))

    def starts(number: int) -> list[tuple[int, int]]:
        first = number % counts[0] * part[0], number // counts[0] * part[1]
        return [(first[0] + i, first[1] + j) for i, j in boxes.starts]

    bits = [1 << i for i in range(warps.bit_length() - 1)]
    moved = [starts(bit)[0] for bit in bits]
    mine = [start for first in range(0, counts[0] * counts[1], warps) for start in starts(first)]
    blocks = type.linear.bases["block"] if type.linear.has_in("block") else ()
    at = [
        c.plus(c[base], c.build.linear([start[d]], (), [x[d] for x in moved], [x[d] for x in blocks]))
        for start in mine
        for d, base in reversed(list(enumerate(coordinates)))
    ]
    by_warp = [places[x] - places[(0, 0)] for x in moved]
    shared = c.plus(c.build.linear([places[start] for start in mine], (), by_warp), c[source])
    zero = c.number(0)
    inside = [c.build.op("arith.cmpi", [c[base], zero], "i1", predicate=AT_LEAST) for base in coordinates]
    active = c.all_of([elected(c, None, warps, whichever=True), *inside])
    assert active is not None
    operands = [c[desc], c.build.add("join", at, [("i32", len(at))]).result, shared, active]
    copy = c.build.instruction(f"cp.async.bulk.tensor.2d.{kind}", operands)
    copy.attrs[OF_WARP] = every.bytes(width)
    c.build.instruction("cp.async.bulk.commit_group", [])
    if c.program.remarks:
        access = kind.removeprefix("reduce.")
        c.program.remarks.add(
            BulkCopy(c.build.span, access, memory_text(type), len(mine) * warps, boxes.box, boxes.swizzle, warps)
        )


@lowering("ttng.async_tma_store_wait")
def _store_wait(c: Context, op: Operation) -> None:
    read_only = "read_only" not in op.properties or holds(op, "read_only")
    name = "cp.async.bulk.wait_group" + (".read" if read_only else "")
    c.build.instruction(name, [c.number(int_value(op.properties["pendings"]))])


@lowering("ttng.async_tma_gather", "ttng.async_tma_scatter")
def _rows(c: Context, op: Operation) -> None:
    verb = "gathers" if op.name.endswith("gather") else "scatters"
    raise Unsupported(
        f"a bulk copy that {verb} rows, which the copy engine has from compute capability 10.0 on,",
        c.program.target,
        c.build.span,
        hint="Weft does not write that generation's own instructions yet",
    )


def parameter_of(type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
    """(elements, box with the innermost dimension first, swizzle, block) of a kernel parameter that is a descriptor."""
    assert isinstance(type, TensorDescType)
    block, element = type.block_type, type.block_type.element_type
    layout = encoding_of(block)
    if layout is not None and layout.linear is None and isinstance(layout.named, NVMMASharedLayout):
        box, swizzle = layout.named.box(shape_of(block))[::-1], layout.named.swizzle_byte_width or 16
    else:
        boxes = boxes_of_descriptor(type)
        box, swizzle = boxes.bytes_of_map, boxes.swizzle
    unsigned = str(element) in ("ui32", "ui64")  # of which a minimum is another one; narrower ones have none
    return (
        str(element).removeprefix("u").replace("i", "u") if unsigned else str(signless(element)),
        box,
        swizzle,
        tuple(shape_of(block)),
    )
