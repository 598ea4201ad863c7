"""Lay out tiles of one dimension for memory: runs of 16 bytes, lanes side by side, a contiguous piece for each warp.

    %i = tt.make_range ... : tensor<4096xi32, #ttg.blocked<{sizePerThread = [16], ...}>>
    ...
    %v = tt.load %p : tensor<4096x!tt.ptr<f32>, ...>
becomes the same in
    #ttg.linear<{register = [[1], [2], [128], [256], [512]], lane = [[4], [8], ...], warp = [[1024], [2048]], ...}>

The lanes of a warp, each with the 16 bytes that an access can take, are side by side: with runs of 64 bytes each access
would leave gaps of 48 between lanes, and be served in four times as many parts; runs of 4 bytes would take four times
the accesses. The accesses of a warp are contiguous, up to 4 KB, whereas a blocked layout distributes them over the
warps in turn: on an H200 this makes copies of 8 to 32 KB in a block 2 to 4 % faster. With 8 KB for each warp they are 1
% slower again.

If addresses or masks are not known to allow accesses of 16 bytes, a lane has runs of as many bytes as they allow, or a
single element: with runs of 16 bytes the lanes of each access would leave gaps, of 14 bytes between elements of 2.
Tiles that allow wider accesses then take several narrow ones, without gaps. (`align_rows` makes long runs of most of
these.)

A row may end long before its tile does: `range(0, 16384) < n`, with n = 4096. The warps beyond the end would be idle,
and the others would have four times as much to do. Such a tile is distributed over the warps in at least eight rounds,
if it has as many accesses. A tile whose place depends on the program's number (`program * 4096 + range(0, 4096) < n`)
is whole in all programs but the last, so this is not done to it.

This is done to layouts that the compiler chose: those of kernels in the Triton language, and the resolved form of an
AutoLayout or a CoalescedLayout. A layout that an author wrote in Gluon stays, even if it is bad for memory, unless the
launch says `relayout=True`.

It is done if no operation depends on the layout: all tiles of that layout are created, combined element by element,
loaded, stored, and reduced to one number. Then it does not matter which thread computes an element. Not done here:
tiles of more dimensions, whose ranges are slices of a layout, and tiles that go to conversions or shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.analysis import AxisFacts
from weft.base import each_once
from weft.base.remarks import NO_REMARKS, LayoutChanged, LayoutKept, RemarkCollector
from weft.ir import bit_width, element_of, is_tensor, pointee_of, span_of, tile_text, values_in, walk
from weft.ir.gpu import LayoutAttr, encoding_for, encoding_of, told_layout
from weft.layouts import BlockedLayout, DistributedLinearLayout
from weft.ops.table import ELEMENTWISE

RUN_BYTES = 16
PIECE_BYTES = 4096
ROUNDS = 8
"""Times that a tile which may end early is dealt out to all warps."""
BLIND = ELEMENTWISE | {*("arith.constant", "tt.make_range", "tt.splat", "tt.load", "tt.store", "tt.reduce")}
CONTROL = ("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition")


def recoalesce(module: ModuleOp, remarks: RemarkCollector = NO_REMARKS, *, keeps_layouts: bool = False) -> None:
    """Lay out anew what can be, in each function of a module of layout IR; with `keeps_layouts`, say what can."""
    for function in module.body.block.ops:
        if function.name == "tt.func":
            relay(function, None, remarks, keeps_layouts=keeps_layouts)


def relay(
    function: Operation, layouts: Iterable[LayoutAttr] | None, remarks: RemarkCollector, *, keeps_layouts: bool = False
) -> None:
    """Lay out anew, of a function, the tiles of these layouts (None: of all), where that can be done and is better."""
    if keeps_layouts and not remarks:
        return
    users = users_of_rows(function)
    for layout in list(users) if layouts is None else layouts:
        better = _better(layout, users.get(layout, ()))
        if better is not None:
            tell_layout(function, layout, better, remarks, LayoutKept if keeps_layouts else LayoutChanged)
            if not keeps_layouts:
                replace_layout(function, layout, better)
                users = users_of_rows(function)


Users = Sequence[tuple[Operation, list[SSAValue]]]
"""Operations on tiles of a layout, with all their tiles."""


def users_of_rows(function: Operation) -> dict[LayoutAttr, Users]:
    """The layouts of a function's tiles of one dimension, with the operations on these."""
    users: dict[LayoutAttr, list[tuple[Operation, list[SSAValue]]]] = {}
    for op in walk(function):
        tiles = [v for v in (*op.operands, *op.results) if is_tensor(v.type)]
        for layout in {id(e): e for v in tiles if (e := encoding_of(v.type)) is not None}.values():
            if len(layout.data.shape) == 1:
                of_layout = users.setdefault(layout, [])
                if not of_layout or of_layout[-1][0] is not op:  # equal encodings need not be one object
                    of_layout.append((op, tiles))
    return {**users}


def layouts_of(function: Operation) -> list[LayoutAttr]:
    """The layouts of a function's tiles, each once."""
    return list(dict.fromkeys(e for v in values_in(function) if (e := encoding_of(v.type)) is not None))


def tell_layout(
    function: Operation,
    layout: LayoutAttr,
    chosen: LayoutAttr,
    remarks: RemarkCollector,
    kind: type[LayoutChanged | LayoutKept],
) -> None:
    """Say at the first access of a tile what its layout becomes, or would."""
    if not remarks or layout.linear == chosen.linear:  # another name for it
        return
    accesses = (op for op in walk(function) if op.name in ("tt.load", "tt.store"))
    op = next(op for op in accesses if encoding_of(op.operands[0].type) == layout)
    before, after = (told_layout(x.named) for x in (layout, chosen))
    tile = tile_text((*op.results, *op.operands[1:])[0].type)
    remarks.add(kind(span_of(op), tile, before, after, _why(chosen)))


def _why(layout: LayoutAttr) -> str:
    """What a layout of one dimension brings, in numbers."""
    bases = layout.linear.bases if layout.linear is not None else {}
    sizes = [basis[0] for basis in bases["lane"]]
    run = f"{sizes[0]} element{'s' if sizes[0] > 1 else ''}"
    side_by_side = f"each access takes a run of {run}, and the lanes of a warp lie side by side"
    pieces = min((basis[0] for basis in bases["warp"]), default=0)
    more = isinstance(layout.named, DistributedLinearLayout) and pieces
    return f"{side_by_side}; a warp has {pieces} elements in a row" if more else side_by_side


def _better(layout: LayoutAttr, users: Users) -> LayoutAttr | None:
    """The layout that tiles of a layout should have instead; None where it is good, or something sees it."""
    named = layout.named
    if not isinstance(named, BlockedLayout) or named.rank != 1 or blocks_of(layout) == 0:
        return None
    facts, sizes, run, vector, rounds = AxisFacts(), set(), 0, RUN_BYTES, 1
    narrow = RUN_BYTES
    for op, tiles in users:
        if op.name not in CONTROL and not is_blind(op, tiles, layout):
            return None
        if op.name in ("tt.load", "tt.store"):
            pointer = op.operands[0]
            bits = max(8, bit_width(pointee_of(element_of(pointer.type))))
            sizes.add(bits)
            run = max(run, facts.of(pointer).contiguity[0])
            vector = min(vector, vector_of(op, facts, bits))
            possible = max(1, vector_of(op, facts, bits))
            if possible < min(facts.of(pointer).contiguity[0], RUN_BYTES * 8 // bits):
                narrow = min(narrow, possible)
            rounds = max(rounds, ROUNDS if any(ends_early(x, facts) for x in masks_of(op)) else 1)
    if not sizes:
        return None
    size, size_here = layout.data.shape[0], named.size_per_thread[0]
    lanes, warps, blocks = named.threads_per_warp[0], named.warps_per_cta[0], blocks_of(layout)
    threads = lanes * warps * blocks
    most, least = (RUN_BYTES * 8 // bits for bits in (min(sizes), max(sizes)))
    each = size_here
    if size_here > most and run > most:
        each = most
    elif size_here < least <= vector and size >= least * threads:
        each = least
    each = min(each, narrow)
    if run >= each * lanes and size > each * threads:
        piece = max(each * lanes, min(size // (warps * blocks * rounds), PIECE_BYTES * 8 // max(sizes)))
        return encoding_for(in_pieces(size, each, piece, lanes, warps, blocks), layout.data.shape)
    if each == size_here:
        return None
    return encoding_for(BlockedLayout([each], [lanes], [warps], [0], named.cga_layout), layout.data.shape)


def blocks_of(layout: LayoutAttr) -> int:
    """How many blocks of a cluster a tile is divided among; 0 where some of them hold the same."""
    linear = layout.linear
    return 0 if linear is None or linear.free_variable_masks().get("block") else linear.in_dims.get("block", 1)


def vector_of(op: Operation, facts: AxisFacts, bits: int) -> int:
    """How many elements one access of a thread can take, if it has as many in a row."""
    axis_facts = facts.of(op.operands[0])
    return min(
        axis_facts.contiguity[0],
        axis_facts.divisibility[0] * 8 // bits,
        *(facts.of(x).constancy[0] for x in masks_of(op)),
    )


def masks_of(op: Operation) -> Sequence[SSAValue]:
    return op.operands[2:3] if op.name == "tt.store" else op.operands[1:2]


def ends_early(mask: SSAValue, facts: AxisFacts) -> bool:
    """Whether a mask compares consecutive numbers that are the same in all programs: all may have a short row."""
    for op in _made_of(mask):
        if op.name == "arith.cmpi":
            numbers = [x for x in op.operands if is_tensor(x.type) and facts.of(x).contiguity[0] > 1]
            if any(all(maker.name != "tt.get_program_id" for maker in _made_of(x)) for x in numbers):
                return True
    return False


def _made_of(value: SSAValue) -> Iterator[Operation]:
    """The operations that a value is computed by; of what a loop counts or carries, those of what it begins with."""
    todo = [value]
    for current in each_once(todo):
        if isinstance(current, BlockArgument):
            loop = current.block.parent_op()
            if loop is not None and loop.name == "scf.for":
                todo.append(loop.operands[0 if current.index == 0 else current.index + 2])
        elif isinstance(current.owner, Operation):
            yield current.owner
            todo += current.owner.operands


def in_pieces(size: int, each: int, piece: int, lanes: int, warps: int, blocks: int = 1) -> DistributedLinearLayout:
    """Runs of `each` elements, lanes side by side, and `piece` elements in a row for each warp, dealt out in turn to
    those of all blocks of a cluster.

    A piece has at least a run for each lane, and there is at least one for each warp.
    """
    assert each * lanes <= piece <= size // warps // blocks, (size, each, piece, lanes, warps, blocks)

    def bases(first: int, end: int) -> list[list[int]]:
        return [[1 << i] for i in range(first.bit_length() - 1, end.bit_length() - 1)]

    request, of_block, of_all = each * lanes, piece * warps, piece * warps * blocks
    registers = bases(1, each) + bases(request, piece) + bases(of_all, size)
    parts = bases(each, request), bases(piece, of_block), bases(of_block, of_all)
    return DistributedLinearLayout(registers, *parts, [size])


def is_blind(op: Operation, tiles: list[SSAValue], layout: LayoutAttr) -> bool:
    """Whether an operation does the same whoever has which element."""
    return op.name in BLIND and all(encoding_of(v.type) == layout for v in tiles)


def replace_layout(function: Operation, old: LayoutAttr, new: LayoutAttr) -> None:
    replace_layouts(function, {old: new})


def replace_layouts(function: Operation, instead: Mapping[LayoutAttr, LayoutAttr]) -> None:
    """Give tiles other layouts, each by the one that it has."""
    for value in values_in(function):
        old = encoding_of(value.type)
        if old is not None and (new := instead.get(old)) is not None:
            value._type = new.tensor(element_of(value.type))
            op = value.owner
            number = op.properties.get("value") if isinstance(op, Operation) else None
            if isinstance(op, Operation) and isinstance(number, DenseIntOrFPElementsAttr):
                op.properties["value"] = DenseIntOrFPElementsAttr(value.type, number.data)  # type: ignore[arg-type]
