"""`gl.extra.rows`: rows of memory that begin at any address, read and written by aligned vectors. Weft's own.

    row = rows.load_row(x + program * width, 0, width, 0.0, 1024, 4, layout, aligned=True)
    rows.store_row(out + program * width, 0, width, row * 2, 4)

Place p of a tile of n places is element (p - shift) mod n of the row, of which the first `end` are there. A thread has
`run` places in a row, and `shift` is chosen so that these begin at multiples of their size in memory. Only the first
run, and the one in which the row ends, are accessed element by element. With a `shift` of 0 that is a load with a mask.
"""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.ir.gpu import rows
from weft.language import dtypes as dt
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape
from weft.language.tensors import tensor
from weft.layouts import DistributedLayout

from ...operands import known_number
from ...semantic import GluonSemantic
from ...types import described

__all__ = ["load_row", "store_row"]


def _pointer(name: str, row: Any) -> Any:
    """The address of a row's first element."""
    if not isinstance(row, tensor) or block_shape(row) or not row.type.scalar.is_ptr():
        raise TypeError(f"{name}: expected a pointer to the first element of the row, got {getattr(row, 'type', row)}")
    return row.handle


def _count(semantic: GluonSemantic, value: Any) -> Any:
    return semantic.cast(semantic.to_tensor(value), dt.int32).handle


def _run(name: str, run: Any) -> Any:
    return ir.i32_attr(known_number(f"{name}: run", run, 1))


@builtin
def load_row(
    row: Any, shift: Any, end: Any, other: Any, size: Any, run: Any, layout: Any, aligned: Any = False,
    cache_modifier: Any = "", eviction_policy: Any = "", _semantic: GluonSemantic = GIVEN,
) -> tensor:  # fmt: skip
    """A row as a tile of `size` places in a layout in which a thread has `run` places side by side.

    Places that the row does not have hold `other`. With `aligned`, runs are known to begin at multiples of their size,
    or of 16 bytes where they are longer; otherwise that is found when the program runs.
    """
    pointer = _pointer("load_row", row)
    laid = unwrap(layout)
    if not isinstance(laid, DistributedLayout):
        raise TypeError(f"load_row: expected a layout of registers, got {described(laid)}")
    result = _semantic.given_type(row.dtype.element_ty, (known_number("load_row: size", size, 1),), laid)
    beyond = unwrap(other)
    if not isinstance(beyond, tensor):
        beyond = _semantic.full((), beyond, result.element_ty)
    operands = [pointer, _count(_semantic, shift), _count(_semantic, end), beyond.handle]
    cache = _semantic._str_to_load_cache_modifier(unwrap(cache_modifier))
    evict = _semantic._str_to_eviction_policy(unwrap(eviction_policy))
    properties = {"run": _run("load_row", run), **ir.access_hints(cache, evict)}
    if unwrap(aligned):
        properties["aligned"] = ir.unit_attr()
    return tensor(_semantic.builder.create(rows.LoadRowOp, operands, (result.to_ir(),), properties).results[0], result)


@builtin
def store_row(
    row: Any, shift: Any, end: Any, value: Any, run: Any, cache_modifier: Any = "", eviction_policy: Any = "",
    _semantic: GluonSemantic = GIVEN,
) -> None:  # fmt: skip
    """Write the places of a tile that a row has; a thread has `run` of them side by side."""
    pointer = _pointer("store_row", row)
    if not isinstance(value, tensor) or len(block_shape(value)) != 1:
        raise TypeError(f"store_row: expected a tile of one dimension, got {getattr(value, 'type', value)}")
    value = _semantic.cast(value, row.dtype.element_ty)
    cache = _semantic._str_to_store_cache_modifier(unwrap(cache_modifier))
    evict = _semantic._str_to_eviction_policy(unwrap(eviction_policy))
    operands = [pointer, _count(_semantic, shift), _count(_semantic, end), value.handle]
    properties = {"run": _run("store_row", run), **ir.access_hints(cache, evict)}
    _semantic.builder.create(rows.StoreRowOp, operands, (), properties)
