"""The state that the lowering of every operation uses: the builder, the layouts, and the fragments made so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.ir import Attribute, Block as XBlock, Operation, SSAValue

from weft.analysis import AxisFacts
from weft.base import Span, Unsupported, registry
from weft.base.remarks import Conversion
from weft.ir import element_of, int_value, is_pointer, is_tensor, shape_of, span_of, type_text
from weft.ir.gpu import AsyncTokenType, MemDescType, layout_of
from weft.ir.lane import Allocation, Block, Builder, LaneProgram, Value
from weft.ir.types import TensorDescType
from weft.layouts import LinearLayout
from weft.ops.table import ELEMENTWISE, ROWS

from .known_numbers import number_of
from .variables import variable_of
from .vendor import Lowering, lowering_of

__all__ = ["LOWERINGS", "Context", "Lowering", "elem_of", "lowering"]

LOWERINGS: dict[str, Lowering] = {}
"""How each operation is lowered, by its name; `arith` and `math` go as they are."""


lowering = registry(LOWERINGS)
"""Registers the lowering of some operations: `@lowering("tt.load")`."""


_IN_SHARED = (AsyncTokenType, MemDescType)


def elem_of(type: Attribute) -> str:
    """The lane program's element type for a value of some type; pointers are i64."""
    if type.__class__ in _IN_SHARED:
        return "i32"  # an address in shared memory; of a token nothing is left
    if type.__class__ is TensorDescType:
        return "i64"  # where the tensor map lies
    element = element_of(type)
    return "i64" if is_pointer(element) else type_text(element)


_INSTEAD = {
    "amdg": "it is for AMD's GPUs, for which Weft does not compile yet",
    "tt": "give the module as tile IR, without layouts: passes write it with others for this target",
    "ttng": "it works on cuda:90",
}
"""What to do about operations that a target does not have, by their dialect."""


class Context:
    """The lowering of one kernel: where operations are appended, and what each value has become."""

    def __init__(self, program: LaneProgram, keeps_layouts: bool = False) -> None:
        self.program, self.machine = program, program.machine
        self.keeps_layouts = keeps_layouts
        """Whether layouts are their author's: accesses are then as wide as the layout says, and no wider."""
        self.adds = lowering_of(program.machine)
        self.lowerings = {**LOWERINGS, **self.adds.lowerings}
        self.build = Builder(program.body)
        self.facts = AxisFacts()
        self.fragments: dict[SSAValue, Value] = {}
        self.waiting: dict[SSAValue, Callable[[], Value]] = {}
        """What is made when it is first asked for, by operations of the same block."""
        self.parts: dict[XBlock, Any] = {}
        """What is known of the blocks that load or store rows (row_parts.py)."""
        self.deferred: set[Operation] = set()
        """Operations on rows that are lowered where they are stored or reduced, run by run."""
        self.offsets: dict[SSAValue, int] = {}
        """Bytes that are xored to all places in a part of a buffer."""
        self.ranks: dict[SSAValue, int] = {}
        """What is xored to the ranks of the blocks in whose memory a part of a buffer is, where that is not 0."""
        self.specialized: object = None
        """What the vendor keeps of a kernel with partitions."""
        self.exchanges: object = None
        """What the vendor keeps of the reductions of a kernel that is run by clusters."""
        self.exchanged: dict[Hashable, list[tuple[Value, ...]]] = {}
        """What reductions found of other warps, for those of the same elements (reduce.py)."""
        self.rows: dict[Hashable, int] = {}
        """The rows whose elements each thread accesses alone, numbered (rows.py)."""
        self.has_stored = False
        """Whether global memory may have been written before what is lowered now."""
        self.elements: XBlock | None = None
        """The function on single elements that is lowered now (elements.py), if any."""
        self.width = 1
        """Registers of its arguments."""
        self.conversions: dict[Hashable, Conversion] = {}
        """What was told of conversions (telling.py)."""
        self.op: Operation | None = None
        """The operation that is lowered now."""
        self.active: list[tuple[Value, bool]] = []
        """The branches of it that are lowered now: conditions, and which side."""

    # -- operations --------------------------------------------------------------------------------------------------

    def block(self, ops: Sequence[Operation]) -> None:
        """Lower operations one after the other."""
        outer = self.op
        for op in ops:
            self.op = op
            self.build.span = span_of(op) or self.build.span
            lowering = self.lowerings.get(op.name)
            if op in self.deferred:
                continue
            if lowering is not None:
                lowering(self, op)
            elif len(op.results) > 1 and op.name in ELEMENTWISE:
                self._both_halves(op)
            elif op.name in ELEMENTWISE:
                self[op.results[0]] = self.elementwise(op)
            else:
                hint = _INSTEAD.get(op.name.partition(".")[0])
                raise Unsupported(f"`{op.name}`", self.program.target, self.build.span, hint=hint)
        self.op = outer

    def elementwise(self, op: Operation, registers: Sequence[int] | None = None) -> Value:
        """What an operation of `arith` or `math` computes, for some of the registers of its result or for all."""
        operands = [self[x] for x in op.operands]
        if registers is not None:
            operands = [x if x.count == 1 else self.build.rename(x, registers) for x in operands]
        return self._same_operation(op, operands)

    def of_given(self, op: Operation, operands: Sequence[Value]) -> Value:
        """What an operation that a lane program has, too, computes of what is given in the place of its operands: some
        of their registers, as `row_parts.py` has them.
        """
        return self.build.select(*operands) if op.name == "arith.select" else self._same_operation(op, operands)

    def _same_operation(self, op: Operation, operands: Sequence[Value]) -> Value:
        predicate = op.properties.get("predicate")
        attrs = {"predicate": int_value(predicate)} if predicate is not None else {}
        name, _, flag = (ROWS[op.name].lane or op.name).partition(" ")
        if flag:
            attrs[flag] = True
        return self.build.op(name, operands, elem_of(op.results[0].type), **attrs)

    def _both_halves(self, op: Operation) -> None:
        """A product in twice the bits."""
        operands = [self[x] for x in op.operands]
        elem, count = elem_of(op.results[0].type), max(v.count for v in operands)
        halves = self.build.add(op.name, operands, [(elem, count)] * 2)
        self.set_all(op.results, halves.results)

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to another block."""
        before = self.build
        self.build = Builder(block)
        self.build.span, self.build.partition = before.span, before.partition
        yield block
        self.build = before

    # -- values -----------------------------------------------------------------------------------------------------

    def __getitem__(self, value: SSAValue) -> Value:
        """What a value has become: one register where all are the same."""
        if value in self.waiting:
            self[value] = self.waiting.pop(value)()
        return self.fragments[value]

    def __setitem__(self, value: SSAValue, fragment: Value) -> None:
        self.fragments[value] = fragment
        if self.elements is None and not self.offset_of(value):
            type = value.type
            if value.name_hint or type.__class__ is MemDescType:
                elem = type_text(type.element_type) if type.__class__ is MemDescType else ""
                variable = variable_of(value, fragment, elem)
                if variable is not None:
                    self.program.variables.append(variable)

    def set_all(self, values: Sequence[SSAValue], fragments: Sequence[Value]) -> None:
        """What several values have become."""
        for value, fragment in zip(values, fragments, strict=True):
            self[value] = fragment

    def is_true(self, value: SSAValue) -> bool:
        """Whether a condition is known to hold everywhere."""
        return bool(self.known(value))

    def known(self, value: SSAValue) -> int | None:
        """The integer that a value is everywhere, if it is a constant."""
        number = number_of(self[value])
        return None if number is None else int(number)

    def whole(self, value: SSAValue) -> Value:
        """What a value has become, with as many registers as its layout has."""
        fragment = self[value]
        count = self.count(value.type)
        return fragment if fragment.count == count else self.build.rename(fragment, [0] * count)

    def layout(self, value: SSAValue) -> LinearLayout:
        """The layout of a tile, its inputs register, lane, warp and block."""
        return layout_of(value.type)

    def count(self, type: Attribute) -> int:
        """Registers of a value of that type."""
        return layout_of(type).in_dims["register"] if is_tensor(type) else 1

    def number(self, value: int, elem: str = "i32") -> Value:
        """An integer constant."""
        return self.build.constant(elem, value)

    # -- indices ----------------------------------------------------------------------------------------------------

    def index(self, dim: str, mask: int) -> Value:
        """The bits of the lane's or the warp's index that are in a mask."""
        bits = tuple(1 << i & mask for i in range(mask.bit_length()))
        return self.build.linear((0,), **{dim: bits})  # type: ignore[arg-type]

    def lane(self) -> Value:
        """i32: the number of the lane."""
        return self.index("lane", self.program.lanes - 1)

    def negated(self, condition: Value) -> Value:
        """i1: whether it does not hold."""
        return self.build.op("arith.xori", [condition, self.build.constant("i1", 1)], "i1")

    def active_mask(self) -> Value | None:
        """i1: which elements have come here, in a function on single elements; None for all."""
        return self.all_of([x if chosen else self.negated(x) for x, chosen in self.active])

    def is_zero(self, value: Value) -> Value:
        """i1: whether an i32 is 0."""
        return self.build.op("arith.cmpi", [value, self.number(0)], "i1", predicate=0)

    def parity(self, lane: int, warp: int = 0) -> Value:
        """i1: whether an odd number of the lane's and warp's bits in two masks is set."""
        bits = [tuple(m >> i & 1 for i in range(m.bit_length())) for m in (lane, warp)]
        odd = self.build.linear((0,), lane=bits[0], warp=bits[1])
        return self.build.op("arith.cmpi", [odd, self.number(0)], "i1", predicate=1)

    def once(self, layout: LinearLayout | None, cluster: bool = False) -> list[Value]:
        """Conditions under which a lane is the one of several copies that acts; None for a scalar.

        Each block has a copy of its own, unless it is for all of the `cluster`: in global memory.
        """
        if layout is None:
            masks = {"lane": self.program.lanes - 1, "warp": self.program.warps - 1, "block": self.program.blocks - 1}
        else:
            masks = layout.free_variable_masks()
        dims = ("lane", "warp", "block") if cluster else ("lane", "warp")
        return [self.is_zero(self.index(d, m)) for d in dims if (m := masks.get(d, 0))]

    def coordinates(self, layout: LinearLayout, dim: str) -> Value:
        """i32: the coordinate along one dimension of the tile that each register holds."""
        part = layout.sublayout(layout.in_dims, [dim])
        registers = [0]
        for column in part.in_columns("register"):
            registers += [x ^ column for x in registers]
        return self.build.linear(registers, part.in_columns("lane"), part.in_columns("warp"), part.in_columns("block"))

    # -- shared memory ----------------------------------------------------------------------------------------------

    def allocate(self, size: int, purpose: str, alignment: int = 16) -> Value:
        """i32: the address of a new buffer in shared memory."""
        span: Span | None = self.build.span
        self.program.shared.append(Allocation(size, alignment, None, span, purpose))
        return self.build.add("shared", (), [("i32", 1)], {"allocation": len(self.program.shared) - 1}).result

    def offset_of(self, descriptor: SSAValue) -> int:
        """Where in its buffer a part begins: bytes, to be xored to the places in it."""
        return self.offsets.get(descriptor, 0)

    def rank_of(self, descriptor: SSAValue) -> int:
        """What is xored to the rank of the block that has an element of a part: where the part begins."""
        return self.ranks.get(descriptor, 0)

    def stays(self, view: SSAValue, source: SSAValue) -> None:
        """Another look at the same memory, or the same part of it under another name, begins where that does."""
        self.offsets[view] = self.offset_of(source)
        if self.rank_of(source):
            self.ranks[view] = self.rank_of(source)

    def only_own(self, descriptor: SSAValue, access: str) -> None:
        """Raises Unsupported for a part of a buffer that other blocks of the cluster have in their memory."""
        if self.rank_of(descriptor):
            raise Unsupported(
                f"{access} a part of shared memory that lies in other blocks of the cluster",
                self.program.target,
                self.build.span,
                hint="load it into registers, and store it to memory of which each block has its own part",
            )

    def plus(self, *terms: Value) -> Value:
        """The sum of i32 values."""
        total = terms[0]
        for term in terms[1:]:
            total = self.build.op("arith.addi", [total, term], "i32")
        return total

    def all_of(self, conditions: Sequence[Value | None]) -> Value | None:
        """The conjunction of those that are there; None for none."""
        result: Value | None = None
        for c in conditions:
            if c is not None:
                result = c if result is None else self.build.op("arith.andi", [result, c], "i1")
        return result


def tile_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tile."""
    return tuple(shape_of(value.type))
