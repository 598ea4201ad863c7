"""The tile program: tile IR read once into light objects that code generation can walk cheaply.

xDSL objects are made for rewriting; code generation asks the same few questions of each value thousands of times (its
shape, its element, who uses it). `read_function` copies a verified `tt.func` into `Op`s and `Value`s with plain Python
attributes:

    Value: shape () for a scalar, element by name ("f32", "i1", "ptr", ...), `op` that defines it (None for a block
    argument), `users` Op:    name ("tt.load"), args, results, attrs (ints, floats, strings, lists), regions (lists of
    blocks), span

Ops are numbered in program order (`index`), which is the order of side effects.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block as IRBlock, Operation, SSAValue

from weft.base import Span
from weft.ir import argument_name, element_of, shape_of, span_of
from weft.ir.types import PtrType
from weft.ops import ELEMENTS

ELEMENT_BITS = {**{e.name: e.bits for e in ELEMENTS.values()}, "ptr": 64}


def element_bits(elem: str) -> int:
    """Width in bits of an element type, by name (`i1` counts as 1; every fp8 kind as 8)."""
    bits = ELEMENT_BITS.get(elem)
    if bits is not None:
        return bits
    return int(elem[1:])


class Value:
    """A scalar or a tile in the program."""

    __slots__ = ("block", "elem", "index", "is_tile", "op", "pointee", "shape", "users")

    def __init__(
        self, shape: tuple[int, ...], elem: str, pointee: str, op: Op | None, index: int, block: Block | None
    ) -> None:
        self.shape, self.elem, self.pointee = shape, elem, pointee
        self.is_tile = shape != ()
        """Whether it is a tile, not a scalar."""
        self.op, self.index, self.block = op, index, block
        self.users: list[Op] = []

    @property
    def is_inside(self) -> bool:
        """Whether it is made by a loop that is evaluated where what the loop gives is read."""
        return self.block is not None and self.block.parent is not None and self.block.parent.fused

    @property
    def numel(self) -> int:
        """How many elements it has."""
        n = 1
        for s in self.shape:
            n *= s
        return n

    @property
    def name(self) -> str:
        """Its name in the tile IR, that of a variable of the kernel where it has one; else what makes it."""
        if self.op is None:
            return "a value carried into a block"
        hint = self.op.source.results[self.index].name_hint
        return f"%{hint}" if hint else self.op.name

    def __repr__(self) -> str:
        producer = self.op.name if self.op else "argument"
        return f"<{producer}#{self.index}: {'x'.join(map(str, self.shape))}{'x' if self.shape else ''}{self.elem}>"


class Op:
    """An operation of the program."""

    __slots__ = (
        "args",
        "attrs",
        "block",
        "fused",
        "index",
        "last",
        "name",
        "regions",
        "results",
        "source",
        "span",
        "successors",
    )

    def __init__(
        self, name: str, args: list[Value], attrs: dict[str, Any], block: Block, index: int, source: Operation
    ) -> None:
        self.name, self.args, self.attrs, self.block, self.index = name, args, attrs, block, index
        self.last = index  # the index of the last op nested within
        self.fused = False
        """Whether it is a loop, or a branch in one, that is evaluated where what it gives is read (see `loops`)."""
        self.results: list[Value] = []
        self.regions: list[list[Block]] = []
        self.successors: list[tuple[Block, list[Value]]] = []
        self.source = source
        self.span: Span | None = None

    @property
    def is_volatile(self) -> bool:
        """Whether it is a load that must be done in its place, each time, and once."""
        return bool(self.attrs.get("isVolatile"))

    @property
    def result(self) -> Value:
        """The result, of an operation that has one."""
        return self.results[0]

    def __repr__(self) -> str:
        return f"<op {self.index} {self.name}>"


class Block:
    """A basic block: its arguments and ops; `parent` is the op whose region holds it (None for the function's)."""

    __slots__ = ("args", "label", "ops", "parent", "predecessors")

    def __init__(self, parent: Op | None) -> None:
        self.parent = parent
        self.args: list[Value] = []
        self.ops: list[Op] = []
        self.label = ""
        self.predecessors = 0


class FunctionProgram:
    """A kernel: its name, parameters with their attributes, and blocks."""

    def __init__(self, name: str, blocks: list[Block], arg_attrs: list[dict[str, Any]], count: int) -> None:
        self.name, self.blocks, self.arg_attrs, self.count = name, blocks, arg_attrs, count
        self.checked: list[int] = []
        """The parameters that are arrays with limits; each has two parameters more, at the end (see `check_bounds`)."""
        self.names: list[str] = []
        """The names of the parameters."""

    @property
    def params(self) -> list[Value]:
        """The parameters: the arguments of the first block."""
        return self.blocks[0].args


def element_name(type: Attribute) -> tuple[str, str]:
    """(element name, pointee name or "") of a scalar type."""
    if isinstance(type, builtin.IntegerType):
        return f"i{type.width.data}", ""
    if isinstance(type, PtrType):
        pointee = type.pointee
        if isinstance(pointee, builtin.TensorType):
            return "blockptr", ""
        return "ptr", element_name(pointee)[0]
    if isinstance(type, builtin.IndexType):
        return "i64", ""
    if isinstance(type, builtin.BFloat16Type):
        return "bf16", ""
    name = getattr(type, "name", str(type))
    return ("tensordesc", "") if "tensordesc" in name else (name, "")


def python_attr(attr: Attribute) -> Any:
    """A plain Python value of an attribute, where there is one."""
    if isinstance(attr, builtin.IntegerAttr):
        return attr.value.data
    if isinstance(attr, builtin.FloatAttr):
        return attr.value.data
    if isinstance(attr, builtin.StringAttr):
        return attr.data
    if isinstance(attr, builtin.DenseArrayBase):
        return list(attr.get_values())
    if isinstance(attr, builtin.ArrayAttr):
        return [python_attr(a) for a in attr.data]
    if isinstance(attr, builtin.UnitAttr):
        return True
    if isinstance(attr, builtin.DenseIntOrFPElementsAttr):
        values = attr.get_values()
        return values[0] if attr.is_splat() else list(values)
    data = getattr(attr, "data", None)
    if data is not None and not isinstance(data, (tuple, dict)):
        return getattr(data, "value", data)
    return attr


class _Reader:
    def __init__(self) -> None:
        self.values: dict[SSAValue, Value] = {}
        self.types: dict[int, tuple[Attribute, tuple[int, ...], str, str]] = {}
        """By identity, with the types, so that no other gets the number; their values would be hashed each time."""
        self.count = 0

    def describe(self, type: Attribute) -> tuple[Attribute, tuple[int, ...], str, str]:
        description = self.types.get(id(type))
        if description is None:
            elem, pointee = element_name(element_of(type))
            description = self.types[id(type)] = (type, shape_of(type), elem, pointee)
        return description

    def value(self, ssa: SSAValue, op: Op | None, index: int, block: Block | None) -> Value:
        _, shape, elem, pointee = self.describe(ssa.type)
        result = Value(shape, elem, pointee, op, index, block)
        self.values[ssa] = result
        return result

    def region(self, blocks: list[IRBlock], parent: Op | None) -> list[Block]:
        made_blocks = {}
        for ir_block in blocks:
            block = made_blocks[ir_block] = Block(parent)
            block.args = [self.value(a, None, i, block) for i, a in enumerate(ir_block.args)]
        # Values of blocks that dominate must be known first; Triton prints blocks in an order that guarantees it.
        for ir_block, block in made_blocks.items():
            for ir_op in ir_block.ops:
                self.op(ir_op, block, made_blocks)
        return list(made_blocks.values())

    def op(self, ir_op: Operation, block: Block, blocks: dict[IRBlock, Block]) -> None:
        attrs = {k: python_attr(v) for k, v in ir_op.attributes.items()}
        for key, attr in ir_op.properties.items():
            attrs[key] = python_attr(attr)
        operands = [self.values[o] for o in ir_op.operands]
        op = Op(ir_op.name, operands, attrs, block, self.count, ir_op)
        self.count += 1
        op.span = span_of(ir_op)
        if ir_op.successors:
            _split_successors(ir_op, op, operands, blocks)
        for operand in operands:
            operand.users.append(op)
        op.results = [self.value(r, op, i, block) for i, r in enumerate(ir_op.results)]
        block.ops.append(op)
        for region in ir_op.regions:
            op.regions.append(self.region(list(region.blocks), op))
        op.last = self.count - 1


def _split_successors(ir_op: Operation, op: Op, operands: list[Value], blocks: dict[IRBlock, Block]) -> None:
    targets = [blocks[s] for s in ir_op.successors]
    for t in targets:
        t.predecessors += 1
    if len(targets) == 1:
        op.successors = [(targets[0], operands)]
    else:
        then_args = len(targets[0].args)
        op.successors = [(targets[0], operands[1 : 1 + then_args]), (targets[1], operands[1 + then_args :])]


def read_function(func: Operation) -> FunctionProgram:
    """Copy a `tt.func` into a tile program."""
    reader = _Reader()
    blocks = reader.region(list(func.regions[0].blocks), None)
    name = python_attr(func.properties.get("sym_name") or func.attributes["sym_name"])
    raw = func.properties.get("arg_attrs") or func.attributes.get("arg_attrs")
    arg_attrs: list[dict[str, Any]] = []
    if isinstance(raw, builtin.ArrayAttr):
        arg_attrs = [{k: python_attr(v) for k, v in d.data.items()} for d in raw.data]
    while len(arg_attrs) < len(blocks[0].args):
        arg_attrs.append({})
    program = FunctionProgram(str(name), blocks, arg_attrs, reader.count)
    if "weft.checked" in func.attributes:
        program.checked = python_attr(func.attributes["weft.checked"])
    program.names = [argument_name(a) for a in func.regions[0].blocks[0].args]
    return program
