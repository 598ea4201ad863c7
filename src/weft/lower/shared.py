"""Shared memory: buffers, their parts, and tiles that go in and out, as wide as both layouts allow.

A descriptor becomes the address where its buffer begins. Which instruction is used is decided by `plan_local_access`:
the one whose tile divides the map from registers to offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from weft.base import Unsupported
from weft.ir import bit_width, int_value, ints_of
from weft.ir.gpu import MemDescType
from weft.ir.lane import Value
from weft.layouts import LinearLayout, NVMMASharedLayout, f2, with_gaps
from weft.layouts.plan import LocalAccess, plan_local_access
from weft.machines import oldest_with

from .blocks import as_in_memory, in_each_block
from .context import Context, elem_of, lowering
from .convert import convert
from .copied_bytes import copied, copy_order
from .halves import from_halves, to_halves
from .memory import neighbours
from .padding import Gaps, gaps_of, place, place_of_buffer
from .telling import memory_text, tell_shared, tell_width
from .unfit import narrow_copy

ROW = 16
"""Bytes of a row of a matrix that ldmatrix and stmatrix move."""


def memory_of(value: SSAValue) -> tuple[MemDescType, LinearLayout, int]:
    """(the type of a descriptor, the layout of the tile it stands for, bytes of an element)."""
    type = value.type
    assert isinstance(type, MemDescType)
    return type, type.linear, max(1, bit_width(type.element_type) // 8)


class Side:
    """A register layout in a buffer: offsets by register, lane, warp and block, and whose memory it is.

    `begin` is where the part begins that is accessed, in bytes, and `rank` is xored to the ranks of its blocks; the
    registers of a vector are in the order in which they are in memory, whatever `begin` does to the addresses within a
    vector.
    """

    def __init__(
        self,
        c: Context,
        layout: LinearLayout,
        memory: LinearLayout,
        width: int,
        store: bool,
        gaps: Gaps,
        begin: int = 0,
        matrices: bool = True,
        rank: int = 0,
    ) -> None:
        shape = tuple(layout.out_dims.values())
        pairs = [(interval // width, padding // width) for interval, padding in gaps]
        machine = c.machine
        if begin % ROW or not matrices:  # lanes give rows of matrices, whose elements cannot change places
            machine = replace(machine, matrix_loads="", matrix_stores="")
        self.plan: LocalAccess = plan_local_access(layout, memory, shape, 8 * width, machine, store=store, gaps=pairs)
        self.homes, self.rank = _homes(self.plan, rank), rank
        if self.homes:  # ldmatrix and stmatrix are for a block's own memory only
            machine = replace(machine, matrix_loads="", matrix_stores="")
            self.plan = plan_local_access(layout, memory, shape, 8 * width, machine, store=store, gaps=pairs)
        offsets = self.plan.place
        low = (1 << offsets.out_log("offset")) - 1
        self.width, self.layout, self.gaps = width, layout, gaps
        self.columns = [x & low for x in offsets.in_columns("register")]
        self.lanes = [x & low for x in offsets.in_columns("lane")]
        self.warps = [x & low for x in offsets.in_columns("warp")]
        self.blocks = [x & low for x in offsets.in_columns("block")]
        copies = layout.free_variable_masks()["register"]
        kept = [i for i in range(len(self.columns)) if not copies >> i & 1]
        named = [sum(1 << kept[i] for i in f2.bits(r)) for r in self.plan.access.registers]
        self.named = [f2.multiply(self.columns, r) for r in named]
        vector = 1 << self.plan.access.vector
        within = begin // width % vector if self.plan.access.instruction == "shared" else 0
        in_order = f2.span(named)
        self.order = [in_order[i ^ within] for i in range(len(in_order))]

    def address(self, c: Context, base: Value, vector: int, offset: int = 0, home: Value | None = None) -> Value:
        """The addresses of each group of registers; `offset` bytes are xored to all."""
        starts = [f2.multiply(self.columns, self.order[i]) for i in range(0, len(self.order), vector)]
        if self.plan.access.instruction == "shared":
            lanes = self.lanes
        else:  # lanes 0 to 7 give the rows of the first matrix, 8 to 15 of the second, and so on
            trans = ".trans" in self.plan.access.instruction
            word = max(0, 2 - (self.width.bit_length() - 1))
            matrices = self.named[1 if trans else word : self.plan.access.vector]
            lanes = [*([self.named[0], *self.lanes[:2]] if trans else self.lanes[2:]), *matrices]
        registers, *others = ([x * self.width for x in side] for side in (starts, lanes, self.warps, self.blocks))
        at = place(c, registers, others, self.gaps, offset)
        return c.plus(at, self.home(c, base, vector) if home is None else home)

    @property
    def bytes_of_lanes(self) -> list[int]:
        """What each bit of a lane's number adds to an address."""
        return [x * self.width for x in self.lanes]

    @property
    def space(self) -> str:
        """Whether it is in the block's own memory."""
        return "cluster" if self.homes else "shared"

    def first_block(self, c: Context) -> list[Value]:
        """Conditions under which a block is the one of several with copies that stores to memory which only one has."""
        if not self.homes:
            return []
        copies = self.layout.free_variable_masks()["block"]
        others = sum(1 << i for i in f2.bits(copies) if not self.homes["block"][i])
        return [c.is_zero(c.index("block", others))] if others else []

    def home(self, c: Context, base: Value, vector: int) -> Value:
        """For each group of registers, where the buffer begins in the block that has its elements."""
        return self.in_home(c, base, vector) if self.homes else base

    def in_home(self, c: Context, base: Value, vector: int) -> Value:
        """For each group of registers, an address of shared memory as one of the block that has its elements."""
        groups = range(0, len(self.order), vector)
        if not self.homes:
            rank = c.build.linear([0], block=[1 << i for i in range(c.program.blocks.bit_length() - 1)])
            return c.build.rename(c.build.remote(base, rank), [0 for _ in groups])
        ranks = [f2.multiply(self.homes["register"], self.order[i]) ^ self.rank for i in groups]
        several = sorted(set(ranks))
        parts = (self.homes[d] for d in ("lane", "warp", "block"))
        addresses = c.build.remote(base, c.build.linear(several, *parts))
        return c.build.rename(addresses, [several.index(r) for r in ranks])

    def back(self) -> list[int]:
        """For each register of the layout where among those accessed it is."""
        columns = self.plan.place.in_columns("register")
        place = {f2.multiply(columns, r): k for k, r in enumerate(self.order)}
        return [place[x] for x in f2.span(columns)]


SAME = "blocks of a cluster write what they hold to their own memory: give both layouts the same cga_layout"


def _homes(plan: LocalAccess, rank: int) -> dict[str, list[int]]:
    """What each bit of register, lane, warp and block adds to the rank of the block in whose memory elements are.

    Empty where every block has its own, which no part does that begins in another block.
    """
    log = plan.place.out_log("offset")
    if not plan.place.out_log("block"):
        return {}  # all have the same
    homes = {d: [x >> log for x in plan.place.in_columns(d)] for d in ("register", "lane", "warp", "block")}
    away = any(x for d in ("register", "lane", "warp") for x in homes[d])
    return homes if rank or away or list(homes["block"]) != list(f2.identity(len(homes["block"]))) else {}


def for_memory(c: Context, value: Value, layout: LinearLayout, memory: LinearLayout) -> tuple[Value, LinearLayout]:
    """A tile such that each element is in a block that can store it to all memory that is to have it.

    A block stores to the memory of any other. But where several blocks have copies of the memory, each writes its own:
    it must hold what goes there.
    """
    columns = memory.in_columns("block") if memory.has_in("block") else ()
    copied = [i for i in range(layout.in_log("block")) if i >= len(columns) or not columns[i]]
    if not any(any(layout.bases["block"][i]) for i in copied):
        return value, layout
    whole = layout.out_dims == memory.out_dims
    wanted = as_in_memory(layout, memory) if whole else in_each_block(layout)
    return convert(c, value, layout, wanted), wanted


def store_tile(
    c: Context,
    value: Value,
    layout: LinearLayout,
    memory: LinearLayout,
    base: Value,
    width: int,
    offset: int = 0,
    gaps: Gaps = (),
    first_only: bool = False,
    rank: int = 0,
) -> None:
    """A tile into a buffer, in the memory of whichever blocks have it; one of several copies is stored.

    A matrix instruction is for all lanes and stores all copies; with `first_only` only the first of them counts.
    """
    if c.program.blocks > 1 and layout.has_in("block"):
        value, layout = for_memory(c, value, layout, memory)
    side = Side(c, layout, memory, width, True, gaps, offset, matrices=not first_only, rank=rank)
    vector = 1 << side.plan.access.vector
    tell_shared(c, "store", value.elem, side.plan, (layout, memory), side.bytes_of_lanes)
    ordered = c.build.rename(value, side.order)
    address = side.address(c, base, vector, offset)
    if side.plan.access.instruction == "shared":
        c.build.store(side.space, address, ordered, vector, c.all_of([*c.once(layout), *side.first_block(c)]))
    else:
        c.build.add("instruction", [address, to_halves(c, ordered)], (), {"isa": side.plan.access.instruction})


def load_tile(
    c: Context,
    elem: str,
    layout: LinearLayout,
    memory: LinearLayout,
    base: Value,
    width: int,
    offset: int = 0,
    gaps: Gaps = (),
    rank: int = 0,
) -> Value:
    """A tile from a buffer."""
    side = Side(c, layout, memory, width, False, gaps, offset, rank=rank)
    tell_shared(c, "load", elem, side.plan, (layout, memory), side.bytes_of_lanes)
    vector = 1 << side.plan.access.vector
    address = side.address(c, base, vector, offset)
    if side.plan.access.instruction == "shared":
        loaded = c.build.load(side.space, address, elem, vector)
    else:
        loaded = from_halves(c, side.plan.access.instruction, address, elem, len(side.order))
    return c.build.rename(loaded, side.back())


@lowering("ttg.local_alloc")
def _local_alloc(c: Context, op: Operation) -> None:
    result = op.results[0]
    type, memory, width = memory_of(result)
    base = c.allocate(type.bytes, "local_alloc", _alignment(type, memory))
    c.program.shared[-1].tile = memory_text(type)
    c[result] = base
    if op.operands:
        source = op.operands[0]
        store_tile(c, c.whole(source), c.layout(source), memory, base, width, gaps=gaps_of(type, width))


def _alignment(type: MemDescType, memory: LinearLayout) -> int:
    """What the address must be a multiple of: the copy engine wants 128, and swizzles by bits 7 to 9 of the address."""
    if isinstance(type.data.layout.named, NVMMASharedLayout):
        return 1024 if type.data.layout.named.swizzle_byte_width else 128
    return 16 if memory.in_dims["offset"] * bit_width(type.element_type) <= 128 else 128


@lowering("ttg.local_dealloc")
def _local_dealloc(c: Context, op: Operation) -> None:
    """Memory is placed for the whole kernel."""


@lowering("ttg.local_load")
def _local_load(c: Context, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    type, memory, width = memory_of(source)
    offset, gaps = c.offset_of(source), gaps_of(type, width)
    layout, rank = c.layout(result), c.rank_of(source)
    c[result] = load_tile(c, elem_of(result.type), layout, memory, c[source], width, offset, gaps, rank)


@lowering("ttg.local_store")
def _local_store(c: Context, op: Operation) -> None:
    value, target = op.operands
    type, memory, width = memory_of(target)
    offset, gaps = c.offset_of(target), gaps_of(type, width)
    rank = c.rank_of(target)
    store_tile(c, c.whole(value), c.layout(value), memory, c[target], width, offset, gaps, rank=rank)


@lowering("ttg.memdesc_index")
def _memdesc_index(c: Context, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    type, _, width = memory_of(result)
    step = place_of_buffer(c, c[op.operands[1]], type.elements * width, gaps_of(type, width))
    c[result] = c.plus(c[source], step)


@lowering("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_reinterpret")
def _memdesc_view(c: Context, op: Operation) -> None:
    """The same memory; another layout of it begins where a part of padded memory does."""
    source, result = op.operands[0], op.results[0]
    type, _, width = memory_of(source)
    offset, gaps = c.offset_of(source), gaps_of(type, width)
    moved = op.name == "ttg.memdesc_reinterpret" and bool(gaps) and offset > 0
    c[result] = c.plus(c[source], c.number(with_gaps(offset, gaps))) if moved else c[source]
    c.stays(result, source)
    if moved:
        c.offsets[result] = 0


@lowering("ttg.memdesc_subslice")
def _memdesc_subslice(c: Context, op: Operation) -> None:
    """The buffer is the same; the part's first element is where it is, and the layout is linear."""
    source, result = op.operands[0], op.results[0]
    type, memory, width = memory_of(source)
    numbers = ints_of(op.properties["offsets"])
    buffers, offsets = numbers[: -len(memory.out_dims)], numbers[-len(memory.out_dims) :]
    first = memory.pseudoinvert().apply(dict(zip(memory.out_dims, offsets, strict=True)))
    c[result] = c[source]
    if any(buffers):
        c[result] = c.plus(c[source], c.number(_start_of_buffers(c, type, memory, width, buffers[0])))
    c.offsets[result] = c.offset_of(source) ^ int(first["offset"]) * width
    rank = c.rank_of(source) ^ int(first.get("block", 0))
    if rank:
        c.ranks[result] = rank


def _start_of_buffers(c: Context, type: MemDescType, memory: LinearLayout, width: int, index: int) -> int:
    """In bytes, where the buffers from one on begin."""
    size, gaps = memory.in_dims["offset"] * width, gaps_of(type, width)
    if any(size % interval for interval, _ in gaps):
        raise Unsupported(
            "some of several padded buffers, of which gaps are not in each alike,",
            c.program.target,
            c.build.span,
            hint="index(i) gives each of them; or choose intervals of at most a buffer",
        )
    return with_gaps(index * size, gaps)


@lowering("ttg.async_copy_global_to_local")
def _async_copy(c: Context, op: Operation) -> None:
    machine = c.program.machine
    if not machine.async_copies:
        raise Unsupported("an asynchronous copy", machine.name, c.build.span, works_on=oldest_with("async_copies"))
    pointer, target = op.operands[0], op.operands[1]
    type, memory, width = memory_of(target)
    gaps = gaps_of(type, width)
    segments = _segments(op)
    rest = list(op.operands[2:])
    mask = rest.pop(0) if segments[2] else None
    layout = c.layout(pointer)
    c.only_own(target, "an asynchronous copy to")
    order, vector = copy_order(c, pointer, mask, 8 * width)
    if c.program.blocks > 1 and as_in_memory(layout, memory) != layout:
        raise Unsupported("copies to another block's shared memory", c.program.target, c.build.span, hint=SAME)
    side, together = Side(c, layout, memory, width, True, gaps), vector
    vector = min([vector, *(size // width for gap in gaps for size in gap)])
    begin = c.offset_of(target) // width
    offsets = [f2.multiply(side.columns, r) for r in order]
    others = (*side.lanes, *side.warps, *side.blocks)
    while vector > 1 and not (
        vector * width in machine.async_copies and _dense([x ^ begin for x in offsets], vector, others)
    ):
        vector //= 2
    size = vector * width
    tell_width(c, "copy", op, pointer, mask, 8 * width, vector, buffered=vector < together)
    if size not in machine.async_copies:
        raise narrow_copy(c, size, (pointer, mask, target), neighbours(c, pointer, 8 * width), together)
    starts = list(range(0, len(order), vector))
    parts = ([offsets[i] for i in starts], side.lanes, side.warps, side.blocks)
    registers, *distances = ([x * width for x in part] for part in parts)
    to = c.plus(place(c, registers, distances, gaps, c.offset_of(target)), c[target])
    where = c.build.rename(c.whole(pointer), [order[i] for i in starts])
    wanted = [copied(c, mask, order, vector, width)] if mask is not None else []
    c.build.add("copy_async", [to, where, *wanted], (), {"bytes": size, "masked": bool(wanted)})
    c[op.results[0]] = c.number(0)


def _dense(offsets: Sequence[int], vector: int, moving: Sequence[int]) -> bool:
    groups = (offsets[i : i + vector] for i in range(0, len(offsets), vector))
    return all(g == list(range(g[0], g[0] + vector)) and g[0] % vector == 0 for g in map(list, groups)) and not any(
        x % vector for x in moving
    )


def _segments(op: Operation) -> list[int]:
    """How many operands each group has: pointer, target, mask, other."""
    attr = op.properties.get("operandSegmentSizes", op.attributes.get("operandSegmentSizes"))
    if attr is not None:
        return [int(x) for x in attr.get_values()]  # type: ignore[attr-defined]
    return [1, 1, int(len(op.operands) > 2), int(len(op.operands) > 3)]


@lowering("ttg.async_commit_group")
def _commit(c: Context, op: Operation) -> None:
    c.build.add("commit_async")
    c[op.results[0]] = c.number(0)


@lowering("ttg.async_wait")
def _wait(c: Context, op: Operation) -> None:
    """Each lane waits for its own copies; a barrier comes before whoever reads those of the others."""
    pending = int_value(op.properties["num"]) if "num" in op.properties else int_value(op.attributes["num"])
    c.build.add("wait_async", (), (), {"pending": pending})
    c[op.results[0]] = c.number(0)
