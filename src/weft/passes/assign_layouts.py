"""Give every tile of tile IR a layout, which makes it layout IR.

    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %p = tt.addptr %base, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %a = tt.load %p : tensor<64x!tt.ptr<f16>>
becomes
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
    ...

`Choices` says which layout each tile that is loaded, or computed from loaded tiles, should have. Tiles that any thread
can compute (ranges, constants, masks, addresses) are computed again in every layout that a user wants, so they never
move. All others are converted where an operation wants another layout.

    loads, stores, atomics    a blocked layout whose vectors run along consecutive addresses
    products                  operands and accumulator as the matrix instruction or the multiply-adds take them
    operations on shapes      the layout that makes them move nothing (weft.layouts.infer)

Not done here: choosing among layouts (layout_choices.py), and moving conversions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from weft.analysis import DEEP, operands_first
from weft.base import LayoutError
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import element_of, is_tensor, shape_of, span_of
from weft.ir.gpu import laid_tensor
from weft.ir.gpu.ttg import ConvertLayoutOp
from weft.layouts import LinearLayout, infer
from weft.machines import Machine

from .blocks_of_clusters import Bases, operand_division
from .layout_choices import Choices
from .natural_layouts import SHAPES, AnyLayout, linear_of, natural_result, source_layout
from .removal import remade
from .tile_groups import MOVED_VIEWS, VIEWS, carried


class _Assigner:
    """The function being rewritten: which value stands for a tile in a layout."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.copies: dict[tuple[SSAValue, AnyLayout], SSAValue] = {}
        self.moved: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}
        """Tiles that are moved already, by where they are."""
        self.laid: dict[SSAValue, AnyLayout] = {}
        self.depth = 0
        self.spent: list[Operation] = []
        self.ends: dict[Operation, Sequence[AnyLayout | None]] = {}
        """What the last operation of a region hands on, in which layouts."""

    # -- tiles in the layout that is wanted ---------------------------------------------------------------------------

    def get(self, value: SSAValue, layout: AnyLayout) -> SSAValue:
        """A tile in a layout: itself, made anew, or converted."""
        if not is_tensor(value.type) or self.laid.get(value) == layout:
            return value
        tile = self.copies.get((value, layout))
        if tile is None:
            anew = value not in self.laid
            self.depth += 1
            if anew and self.depth == DEEP:
                for first in operands_first(value, lambda x: self.is_alike(x, layout)):
                    self.get(first, layout)
            tile = self.copies[value, layout] = self.anew(value, layout) if anew else self.converted(value, layout)
            self.depth -= 1
            self.laid[tile] = layout
        return tile

    def is_alike(self, value: OpResult, layout: AnyLayout) -> bool:
        """Whether a tile has yet to be made anew, of operands in the same layout."""
        is_laid = value in self.laid or (value, layout) in self.copies
        return is_tensor(value.type) and not is_laid and value.op.name not in (*VIEWS, *MOVED_VIEWS)

    def type_of(self, value: SSAValue, layout: AnyLayout) -> Attribute:
        """The type of a tile in a layout."""
        return laid_tensor(list(shape_of(value.type)), element_of(value.type), layout)

    def converted(self, value: SSAValue, layout: AnyLayout) -> SSAValue:
        """A conversion, right after the tile is made; or of what was moved to the same layout by another name."""
        place = value, linear_of(layout, shape_of(value.type))
        value = self.moved.get(place, value)
        conversion = ConvertLayoutOp.create(operands=[value], result_types=[self.type_of(value, layout)])
        if isinstance(value.owner, Block):
            first = value.owner.first_op
            assert first is not None
            conversion.location = first.location
            value.owner.insert_op_before(conversion, first)
        else:
            conversion.location = value.owner.location
            self.after(value.owner, conversion)
        self.moved.setdefault(place, conversion.results[0])
        return conversion.results[0]

    @staticmethod
    def after(op: Operation, new: Operation) -> None:
        """Insert an operation after another."""
        assert op.parent is not None
        op.parent.insert_op_after(new, op)

    def anew(self, value: SSAValue, layout: AnyLayout) -> SSAValue:
        """The operation that computes a tile, once more in this layout."""
        op = value.owner
        assert isinstance(op, Operation)
        operands = [self.get(x, source_layout(op, x, layout)) for x in op.operands]
        copy = remade(op, operands, [self.type_of(old, layout) for old in op.results])
        number = copy.properties.get("value")
        if isinstance(number, DenseIntOrFPElementsAttr):  # it has the type too
            copy.properties["value"] = DenseIntOrFPElementsAttr(copy.results[0].type, number.data)  # type: ignore[arg-type]
        for old, result in zip(op.results, copy.results, strict=True):
            result.name_hint = old.name_hint
        self.after(op, copy)
        return copy.results[0]

    def own(self, value: SSAValue) -> AnyLayout:
        """The layout a tile has, or one for a tile that may have any."""
        layout = self.choices.known(value)
        return layout if layout is not None else self.choices.default(list(shape_of(value.type)))

    # -- operations ---------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Every operation of a block."""
        for argument in block.args:
            if is_tensor(argument.type):
                self.settle(argument, self.choices.of(argument))
        for op in list(block.ops):
            self.op(op)

    def settle(self, value: SSAValue, native: AnyLayout) -> None:
        """A tile comes out in a layout; others who want it find it there."""
        value._type = self.type_of(value, native)
        self.laid[value] = native

    def op(self, op: Operation) -> None:
        """Operands as an operation wants them, results as they come out."""
        tiles = [r for r in op.results if is_tensor(r.type)]
        if tiles and all(self.choices.is_free(r) or self.choices.is_view(r) for r in tiles):
            self.spent.append(op)  # made where it is wanted
            return
        if op.name in ("scf.for", "scf.if", "scf.while"):
            self.control(op)
            return
        if op in self.choices.products and self.choices.adds.is_result(self.choices.products[op]):
            self.product_in_memory(op)
            return
        wanted, native = self.layouts(op)
        for i, (operand, layout) in enumerate(zip(op.operands, wanted, strict=True)):
            if is_tensor(operand.type):
                op.operands[i] = self.get(operand, layout if layout is not None else self.own(operand))
        for result in tiles:
            self.settle(result, native if native is not None else self.shaped(op, result))

    def shaped(self, op: Operation, result: SSAValue) -> AnyLayout:
        """The layout in which an operation gives its result, now that its operands have theirs."""
        return natural_result(op, self.laid[op.operands[0]]) if op.name in SHAPES else self.choices.of(result)

    def layouts(self, op: Operation) -> tuple[Sequence[AnyLayout | None], AnyLayout | None]:
        """(the layout of each operand, None for any; that of the results, None where it follows)."""
        count = len(op.operands)
        tiles = [r for r in op.results if is_tensor(r.type)]
        if op in self.ends:
            return self.ends[op], None
        if op in self.choices.accesses:
            layout = self.choices.access(op)
            return [layout] * count, layout
        if op.name == "tt.dot":
            return self.product(op)
        if op.name == "tt.dot_scaled":
            return self.choices.operands[op], self.choices.products[op]
        if op.name == "tt.split":
            return [self.splittable(op)], None
        place = self.choices.place(op)
        if place is not None:
            return [place] * count, place if op.name == "tt.scan" else None
        if op.name in ("tt.join", "tt.cat", "tt.reduce", "tt.histogram"):
            return [self.common(op.operands)] * count, None
        if op.name == "tt.gather":
            return [None, self.choices.of(tiles[0])], self.choices.of(tiles[0])
        if op.name in ("tt.trans", "tt.reshape") or not tiles:
            return [None] * count, None
        return [self.choices.of(tiles[0])] * count, self.choices.of(tiles[0])

    def common(self, operands: Sequence[SSAValue]) -> AnyLayout:
        """The layout of the first operand that has one."""
        layouts = (self.choices.known(x) for x in operands)
        return next((x for x in layouts if x is not None), self.own(operands[0]))

    def splittable(self, op: Operation) -> AnyLayout:
        """The operand's own layout where a register tells its halves apart, else one where it does."""
        layout, shape = self.own(op.operands[0]), list(shape_of(op.operands[0].type))
        try:
            infer.split_result(linear_of(layout, shape))
        except LayoutError:
            return infer.join_result(self.choices.default(shape[:-1]).to_linear(shape[:-1]))
        return layout

    def product(self, op: Operation) -> tuple[Sequence[AnyLayout], AnyLayout]:
        """Operands and accumulator as the instruction wants them."""
        total = self.choices.products[op]
        return [*self.choices.operands[op], total], total

    def product_in_memory(self, op: Operation) -> None:
        """Operands in shared memory, but for a left one that has come out of a product."""
        parent, access, machine = self.choices.products[op], self.choices.accesses.get, self.choices.machine
        adds = self.choices.adds
        assert not isinstance(parent, LinearLayout)
        a, b, total = op.operands
        known, wanted = self.choices.known(a), adds.left_in_registers(op, parent)
        if known is not None and adds.is_result(known) and wanted is not None:
            left = self.get(a, wanted)
        else:
            left = adds.in_memory(op, self.get(a, self.own(a)), 0, self.division(op, 0), machine, access)
        right = adds.in_memory(op, self.get(b, self.own(b)), 1, self.division(op, 1), machine, access)
        old = op.results[0]
        result = adds.product(op, left, right, self.get(total, parent))
        self.choices.stands_for(result, old)
        self.laid[result] = parent

    def division(self, op: Operation, index: int) -> Bases:
        """How the blocks of a cluster divide an operand of a product."""
        return operand_division(self.choices.clusters.products.get(op, ()), index)

    def control(self, op: Operation) -> None:
        """What is given, carried and handed on, in the layout of its group."""
        agreed = [self.agreed(op, group) for group in carried(op)]
        first = len(op.operands) - len(agreed) if op.name == "scf.for" else 0
        operands = agreed if op.name == "scf.for" else agreed[: len(op.operands)] if op.name == "scf.while" else []
        handed = agreed[len(op.operands) :] if op.name == "scf.while" else agreed
        for i, layout in enumerate(operands, first):
            if layout is not None:
                op.operands[i] = self.get(op.operands[i], layout)
        for result, layout in zip(op.results, handed, strict=True):
            if layout is not None:
                self.settle(result, layout)
        for i, region in enumerate(op.regions):
            if not region.blocks:
                continue
            end = region.blocks[0].last_op
            assert end is not None
            self.ends[end] = [None, *handed] if end.name == "scf.condition" else operands if i else handed
            if op.name == "scf.if":
                self.ends[end] = handed
            self.block(region.blocks[0])

    def agreed(self, op: Operation, group: Sequence[SSAValue]) -> AnyLayout | None:
        """The layout of what control flow hands on, a loop's argument or a branch's result; None for a scalar."""
        member = group[0 if op.name == "scf.if" else 1]
        return self.choices.of(member) if is_tensor(member.type) else None


def assign_layouts(
    module: ModuleOp,
    machine: Machine,
    warps: int = 4,
    blocks: int = 1,
    ahead: bool = False,
    remarks: RemarkCollector = NO_REMARKS,
) -> ModuleOp:
    """Layouts for all tiles of a module of tile IR, which becomes layout IR for a machine.

    A program is a cluster of so many `blocks`, which divide its tiles. `ahead` says that loads for products will be
    copied iterations ahead (pipeline_loads.py).
    """
    for function in module.body.block.ops:
        if function.name == "tt.func":
            for block in function.regions[0].blocks:
                choices = Choices(machine, warps, blocks, ahead)
                choices.decide(block)
                if remarks:
                    choices.tell(remarks, span_of(function))
                assigner = _Assigner(choices)
                assigner.block(block)
                for op in reversed(assigner.spent):
                    op.detach()
                    op.erase()
    attributes: dict[str, Attribute] = {
        "ttg.num-ctas": IntegerAttr(blocks, i32),
        "ttg.num-warps": IntegerAttr(warps, i32),
        "ttg.target": StringAttr(machine.name),
        "ttg.threads-per-warp": IntegerAttr(machine.lanes, i32),
    }
    module.attributes.update(attributes)
    return module
