"""Matrix products of warp groups (wgmma), which may go on while the program does other things.

acc = warpgroup_mma(a, b, acc, is_async=True)
...
acc = warpgroup_mma_wait(0, deps=(acc,))
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft import ir
from weft.base import LayoutError, hinted
from weft.ir.nvidia import ttng
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, base_type, base_value, builtin
from weft.language.semantic import shape_text
from weft.language.tensors import tensor
from weft.language.tuples import tuple as _tuple
from weft.layouts import DotOperandLayout, NVMMADistributedLayout

from ....memory import shared_memory_descriptor
from ....operands import check_precision, known_number
from ....semantic import GluonSemantic
from ....types import distributed_type, layout_of
from ..barriers import listed


@builtin
def fence_async_shared(cluster: Any = False, _semantic: GluonSemantic = GIVEN) -> None:
    """What this thread wrote to shared memory is seen by wgmma and by bulk copies from now on."""
    flag = unwrap(cluster)
    if not isinstance(flag, (bool, int)):
        raise TypeError(f"fence_async_shared: cluster must be True or False, known when compiling, got {flag}")
    properties = {"bCluster": ir.bool_attr(bool(flag))}
    _semantic.builder.create(ttng.FenceAsyncSharedOp, (), (), properties)


class warpgroup_mma_accumulator_type(base_type):
    """The type of a product that may still be under way."""

    way_out: ClassVar[str] = (
        "warpgroup_mma_wait(num_outstanding=0, deps=(acc,)) waits for the product and gives its value; a loop that "
        "carries products under way begins with acc = warpgroup_mma_init(acc)"
    )

    def __init__(self, tensor_type: distributed_type) -> None:
        self.tensor_type = tensor_type

    def __str__(self) -> str:
        return f"warpgroup_mma_accumulator<{self.tensor_type}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, warpgroup_mma_accumulator_type) and self.tensor_type == other.tensor_type

    def __hash__(self) -> int:
        return hash(("warpgroup_mma_accumulator", self.tensor_type))

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        return warpgroup_mma_accumulator(handles[cursor], self.tensor_type), cursor + 1

    def _as_carried(self) -> base_type:
        return self.tensor_type

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        self.tensor_type._flatten_ir_types(builder, out)

    def mangle(self) -> str:
        return f"FT{self.tensor_type.mangle()}FT"


class warpgroup_mma_accumulator(base_value):
    """A product that may still be under way: `warpgroup_mma_wait` gives its value."""

    def __init__(self, handle: Any, tensor_type: distributed_type) -> None:
        self.handle = handle
        self.type: warpgroup_mma_accumulator_type = warpgroup_mma_accumulator_type(tensor_type)

    def __str__(self) -> str:
        return str(self.type)

    __repr__ = __str__

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)


@builtin
def warpgroup_mma_init(value: tensor, _semantic: GluonSemantic = GIVEN) -> warpgroup_mma_accumulator:
    """A tensor as an accumulator that a loop of asynchronous products can carry."""
    if not isinstance(value, tensor) or not isinstance(value.type, distributed_type):
        raise TypeError(f"warpgroup_mma_init needs a tensor, got {value}")
    return warpgroup_mma_accumulator(value.handle, value.type)


def _tensor_type(acc: Any) -> distributed_type:
    type = acc.type.tensor_type if isinstance(acc, warpgroup_mma_accumulator) else getattr(acc, "type", None)
    if not isinstance(type, distributed_type):
        raise TypeError(f"expected a tensor or an accumulator of warpgroup_mma, got {acc}")
    return type


def _check(a: Any, b: Any, acc: distributed_type) -> None:
    """Operands and accumulator must be what the instruction takes, and it must divide them."""
    layout = acc.layout
    if not isinstance(layout, NVMMADistributedLayout) or tuple(layout.version) != (3, 0):
        raise LayoutError(
            f"warpgroup_mma: the layout of `acc` must be an NVMMADistributedLayout of version [3, 0], it is {layout!r}",
            hint="gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N, K])",
        )
    if not isinstance(b, shared_memory_descriptor):
        raise hinted(
            TypeError(f"warpgroup_mma: `b` must be in shared memory, got {b}"),
            "b = gl.allocate_shared_memory(..., gl.NVMMASharedLayout.get_default_for(shape, dtype), value)",
        )
    if not isinstance(a, shared_memory_descriptor):
        laid = layout_of(a.type) if isinstance(a, tensor) else None
        if not isinstance(laid, DotOperandLayout) or laid.parent != layout or laid.operand_index:
            raise LayoutError(
                f"warpgroup_mma: `a` must be in shared memory or in a DotOperandLayout of `acc`, got {laid or a!r}",
                hint=f"gl.convert_layout(a, gl.DotOperandLayout(0, {layout!r}, k_width))",
            )
    _check_shapes(a, b, acc, layout)


def _check_shapes(a: Any, b: Any, acc: distributed_type, layout: NVMMADistributedLayout) -> None:
    left, right = ([int(unwrap(s)) for s in x.shape] for x in (a, b))
    if not len(left) == len(right) == len(acc.shape) == 2:
        shapes = f"{shape_text(left)}, {shape_text(right)} and {shape_text(acc.shape)}"
        raise ValueError(f"warpgroup_mma: operands and accumulator have two dimensions, got {shapes}")
    if left[1] != right[0] or list(acc.shape) != [left[0], right[1]]:
        raise ValueError(
            f"warpgroup_mma: {shape_text(left)} times {shape_text(right)} into {shape_text(acc.shape)}; "
            "[M, K] times [K, N] into [M, N]"
        )
    m, n, k = acc.shape[0], acc.shape[1], left[1]
    width = int(layout.instr_shape[1])
    depth = 256 // a.dtype.primitive_bitwidth
    rows = min(16 * layout.warps_per_cta[0], max(m, 64))  # warps beyond the last row compute what others do
    for dimension, have, need in (("M", m, rows), ("N", n, width), ("K", k, depth)):
        if have % need:
            raise LayoutError(
                f"warpgroup_mma: the instruction is {rows} x {width} x {depth} (M x N x K) for {a.dtype} and "
                f"{layout.warps_per_cta[0]} warps along M; {dimension} = {have} is {have // need} times {need}, "
                f"{have % need} are left over",
                hint=f"make {dimension} a multiple of {need}"
                + (f", or choose instr_shape=[16, {have}, {depth}]" if dimension == "N" and have % 8 == 0 else ""),
            )


@builtin
def warpgroup_mma(
    a: Any,
    b: Any,
    acc: Any,
    use_acc: Any = True,
    precision: Any = None,
    max_num_imprecise_acc: Any = None,
    is_async: Any = False,
    *,
    side_by_side: Any = False,
    _semantic: GluonSemantic = GIVEN,
) -> Any:
    """`a @ b + acc`, or `a @ b` where `use_acc` is false, by wgmma.

    `a` is in shared memory or in a DotOperandLayout of `acc`, `b` in shared memory. With `is_async` the product is only
    begun: the result is a `warpgroup_mma_accumulator`, and what it reads must not change until it was waited for.

    With `side_by_side`, the columns of `acc` follow those of the product before, which has the same `a` and whose `b`
    ends in memory where this one begins. Such products begin with the last of them, by instructions of all their
    columns, and count as one.
    """
    type_ = _tensor_type(acc)
    _check(a, b, type_)
    check_precision("warpgroup_mma", a, unwrap(precision))
    use = _semantic.to_tensor(use_acc)
    limit, fp8 = unwrap(max_num_imprecise_acc), a.dtype.is_fp8() and b.dtype.is_fp8()
    depth = int(unwrap(a.shape[-1]))
    if limit is None:
        limit = _semantic.options.max_num_imprecise_acc_default if fp8 else 0
    elif fp8 and limit > depth:
        raise ValueError(f"max_num_imprecise_acc ({limit}) must be <= K ({depth})")
    properties: dict[str, Any] = {
        "inputPrecision": ir.enum_attr(_semantic._str_to_dot_input_precision(unwrap(precision))),
        "maxNumImpreciseAcc": ir.i32_attr(limit),
    }
    if unwrap(is_async):
        properties["isAsync"] = ir.bool_attr(True)
    op = _semantic.builder.create(
        ttng.WarpGroupDotOp, (a.handle, b.handle, acc.handle, use.handle), (type_.to_ir(),), properties
    )
    if unwrap(side_by_side):
        op.attributes[ttng.SIDE_BY_SIDE] = ir.unit_attr()
    result = op.results[0]
    return warpgroup_mma_accumulator(result, type_) if unwrap(is_async) else tensor(result, type_)


@builtin
def warpgroup_mma_wait(num_outstanding: Any = 0, deps: Any = None, _semantic: GluonSemantic = GIVEN) -> Any:
    """Wait until at most so many products are under way; `deps`, which are complete then, are given back."""
    if unwrap(deps) is None:
        raise hinted(ValueError("warpgroup_mma_wait deps must be given"), "acc = warpgroup_mma_wait(0, deps=(acc,))")
    values = listed(deps)
    for value in values:
        if not isinstance(value, (shared_memory_descriptor, warpgroup_mma_accumulator)):
            _tensor_type(value)
    op = _semantic.builder.create(
        ttng.WarpGroupDotWaitOp,
        [v.handle for v in values],
        [v.handle.type for v in values],
        {"pendings": ir.i32_attr(known_number("num_outstanding", num_outstanding))},
    )
    results: list[Any] = []
    for value, handle in zip(values, op.results, strict=True):
        if isinstance(value, shared_memory_descriptor):
            results.append(shared_memory_descriptor(handle, *value.type.parts()))
        else:
            results.append(tensor(handle, _tensor_type(value)))
    return results[0] if len(results) == 1 else _tuple(results)
