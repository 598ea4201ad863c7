"""Hints to the compiler, prints and assertions from the device, barriers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Block, Operation

from weft import ir
from weft.ir import tt

from .. import dtypes as dt
from ..tensors import tensor
from .base import block_shape, shape_text
from .hints import HintChecks


class Diagnostics(HintChecks):
    """What a kernel says about itself."""

    def _hint(self, name: str, attribute: str, x: tensor, values: Sequence[int]) -> tensor:
        """Put a hint on the operation that makes `x`, or on the argument that it is."""
        rank = len(block_shape(x)) or int(name == "multiple_of")  # a scalar can only be a multiple
        if len(values) != rank:
            raise ValueError(
                f"Shape of input to {name} does not match the length of values: "
                f"{shape_text(block_shape(x))} and {list(values)}"
            )
        for value in values:
            if value <= 0:
                raise ValueError(f"{name} takes positive integers, got {value}")
        if self._checks_promises():
            self.check_hint(name, x, values)
        attr = ir.dense_attr(ir.tensor_of((len(values),), ir.i32), values)
        owner: Any = x.handle.owner
        if isinstance(owner, Operation) and len(owner.results) == 1 and not owner.regions:
            owner.attributes[attribute] = attr
        elif isinstance(owner, Block) and isinstance(function := owner.parent_op(), tt.FuncOp):
            self._hint_argument(function, owner, x, attribute, values[0])
        else:
            self._hint_copy(x, attribute, attr)
        return x

    def _checks_promises(self) -> bool:
        """Whether what the author promises is asserted.

        PyTorch compiles all its kernels with `debug`, for the assertions of their own, and without `sanitize_overflow`;
        its products promise more of the last rows than holds.
        """
        return bool(self.options.debug and self.options.sanitize_overflow)

    def _hint_copy(self, x: tensor, attribute: str, attr: Attribute) -> None:
        """What a loop carries, or one of several results, is made by an operation of its own, which can have a hint."""
        owner: Any = x.handle.owner
        b = ir.Builder.after(owner) if isinstance(owner, Operation) else ir.Builder.at_start(owner, self.builder.loc)
        scalar = x.type.scalar
        if isinstance(scalar, dt.pointer_type):
            x.handle = b.addptr(x.handle, b.constant(0, ir.like(x.handle.type, ir.i32)))
        elif scalar.is_int() and not scalar.is_int1():
            x.handle = b.create(arith.AddiOp, (x.handle, b.constant(0, x.handle.type)), (x.handle.type,)).results[0]
        else:
            return
        x.handle.owner.attributes[attribute] = attr

    def _hint_argument(self, function: tt.FuncOp, block: Block, x: tensor, attribute: str, value: int) -> None:
        """A hint on an argument of the kernel becomes one of the function's attributes for it."""
        if attribute != "tt.divisibility" or block_shape(x):
            return
        index = x.handle.index
        present: Any = function.arg_attrs
        attributes = list(present.data) if present is not None else [ir.empty_dict() for _ in block.args]
        hints = dict(attributes[index].data)
        before = hints.get(attribute)
        if before is not None and ir.int_value(before) % value == 0:
            return
        hints[attribute] = ir.i32_attr(value)
        attributes[index] = DictionaryAttr(hints)
        function.properties["arg_attrs"] = ArrayAttr(attributes)

    def multiple_of(self, x: tensor, values: Sequence[int]) -> tensor:
        """All elements (of each row) are multiples of a number."""
        return self._hint("multiple_of", "tt.divisibility", x, values)

    def max_contiguous(self, x: tensor, values: Sequence[int]) -> tensor:
        """The first elements of each so many are one after the other."""
        return self._hint("max_contiguous", "tt.contiguity", x, values)

    def max_constancy(self, x: tensor, values: Sequence[int]) -> tensor:
        """Each so many elements are equal."""
        return self._hint("max_constancy", "tt.constancy", x, values)

    def debug_barrier(self) -> None:
        """Wait for all threads of the program."""
        self.builder.create(ir.BarrierOp)

    def device_print(self, prefix: str, args: Sequence[tensor], hex: bool) -> None:
        """Print values when the kernel runs."""
        # The text begins with a space and ends with a colon, which is how it is shown after a program's place.
        if not prefix.endswith(" ") and args:
            prefix += " "
        if not prefix.endswith(": ") and args:
            prefix = prefix[:-1] + ": "
        if len(prefix) > 2 and not prefix.startswith(" "):
            prefix = " " + prefix
        signed = ir.i32_array([int(a.dtype.is_int_signed()) for a in args])
        properties = {"prefix": ir.str_attr(prefix), "hex": ir.bool_attr(bool(hex)), "isSigned": signed}
        self.builder.create(tt.PrintOp, [a.handle for a in args], (), properties)

    def device_assert(self, cond: Any, msg: str, mask: Any) -> None:
        """With the option `debug`, end the launch with an error where the condition does not hold."""
        if not self.options.debug:
            return
        if mask is not None:
            cond = self.or_(cond, self.not_(mask))
        self.builder.create(tt.AssertOp, (cond.handle,), (), {"message": ir.str_attr(msg)})

    def assume(self, cond: tensor) -> None:
        """Promise the compiler that a condition holds."""
        if block_shape(cond):
            raise ValueError(f"assume takes a scalar condition, got {cond}")
        if not cond.dtype.is_int1():
            raise TypeError(f"assume takes a condition of type int1, got {cond.dtype}: write it as a comparison")
        if self._checks_promises():
            self.device_assert(cond, "what is assumed is false", None)
        self.builder.create(ir.AssumeOp, (cond.handle,), (), {"op_bundle_sizes": ir.i32_array(())})
