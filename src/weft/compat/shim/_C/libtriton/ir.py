"""triton._C.libtriton.ir: a module of tile IR, read operation by operation.

PyTorch finds out in this way which arrays a user's kernel writes to: `ASTSource.make_ir(...).walk(function)`, and what
each operation says of its operands, results, regions and blocks.  Things that are the same have the same `id()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xdsl.ir as xdsl
from xdsl.dialects import builtin

from weft.base import CompilationError
from weft.ir import is_tensor, print_module, shape_of, verify


class _Known:
    """A thing of xDSL, under the names that Triton gives its own."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def id(self) -> int:
        """A number that is the thing's own while its module is there."""
        return id(self._of)


class Value(_Known):
    """A result of an operation or an argument of a block."""

    def get_shape(self) -> list[int]:
        """The sizes of a tile; none of a scalar."""
        return list(shape_of(self._of.type)) if is_tensor(self._of.type) else []


class Region(_Known):
    """A region of an operation."""


class Block(_Known):
    """A block of a region."""

    def get_num_arguments(self) -> int:
        """How many arguments it has."""
        return len(self._of.args)

    def get_argument(self, index: int) -> Value:
        """One of them."""
        return Value(self._of.args[index])

    def get_parent(self) -> Region | None:
        """The region that it is in."""
        return None if self._of.parent is None else Region(self._of.parent)


class Operation(_Known):
    """An operation of tile IR."""

    def get_name(self) -> str:
        """Its name: "tt.load"."""
        return str(self._of.name)

    def get_num_operands(self) -> int:
        """How many operands it has."""
        return len(self._of.operands)

    def get_operand(self, index: int) -> Value:
        """One of them."""
        return Value(self._of.operands[index])

    def get_num_results(self) -> int:
        """How many results it has."""
        return len(self._of.results)

    def get_result(self, index: int) -> Value:
        """One of them."""
        return Value(self._of.results[index])

    def get_num_regions(self) -> int:
        """How many regions it has."""
        return len(self._of.regions)

    def get_region(self, index: int) -> Region:
        """One of them."""
        return Region(self._of.regions[index])

    def get_block(self) -> Block | None:
        """The block that it is in; None for a module."""
        return None if self._of.parent is None else Block(self._of.parent)

    def _attribute(self, name: str) -> Any:
        return self._of.properties.get(name, self._of.attributes.get(name))

    def get_str_attr(self, name: str) -> str | None:
        """An attribute that is a text, if it has it."""
        attribute = self._attribute(name)
        return attribute.data if isinstance(attribute, builtin.StringAttr) else None

    def get_flat_symbol_ref_attr(self, name: str) -> str | None:
        """An attribute that is the name of a function, if it has it."""
        attribute = self._attribute(name)
        return attribute.root_reference.data if isinstance(attribute, builtin.SymbolRefAttr) else None

    def get_bool_attr(self, name: str) -> bool | None:
        """An attribute that is true or false, if it has it."""
        attribute = self._attribute(name)
        return bool(attribute.value.data) if isinstance(attribute, builtin.IntegerAttr) else None

    def get_int_attr(self, name: str) -> int | None:
        """An attribute that is an integer, if it has it."""
        attribute = self._attribute(name)
        return int(attribute.value.data) if isinstance(attribute, builtin.IntegerAttr) else None

    def get_constant_value(self) -> int | float | bool | None:
        """The value of a constant; that of all elements of a tile. None for other operations."""
        value = self._attribute("value") if self.get_name() == "arith.constant" else None
        if isinstance(value, builtin.DenseIntOrFPElementsAttr):
            value = next(value.iter_attrs())
        if isinstance(value, builtin.IntegerAttr):
            return bool(value.value.data) if value.type == builtin.i1 else int(value.value.data)
        return float(value.value.data) if isinstance(value, builtin.FloatAttr) else None


class Module(Operation):
    """A module of tile IR."""

    def __init__(self, of: builtin.ModuleOp) -> None:
        super().__init__(of)

    def walk(self, function: Callable[[Operation], Any]) -> None:
        """Call a function with every operation, those within one before itself, the module last."""
        _walk(self._of, function)

    def verify(self) -> bool:
        """Is it as it has to be?"""
        try:
            verify(self._of)
        except CompilationError:
            return False
        return True

    def str(self) -> Any:
        """The text."""
        return print_module(self._of)

    __str__ = str


class Context:
    """What modules are made in; xDSL's need none."""


def _walk(op: xdsl.Operation, function: Callable[[Operation], Any]) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                _walk(inner, function)
    function(Operation(op))


def load_dialects(context: Context) -> None:
    """Dialects need no loading."""


block, context, module, operation, region, value = Block, Context, Module, Operation, Region, Value
