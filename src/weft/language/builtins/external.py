"""Code from elsewhere: library functions by name, inline assembly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import ir
from weft.base import Unsupported, hinted

from ..constants import known_flag, shown, unwrap
from ..dtypes import dtype
from ..protocol import GIVEN, builtin
from ..tensors import tensor
from ..tuples import tuple as _tuple

if TYPE_CHECKING:
    from ..annotations import Value
    from ..semantic import TritonSemantic

__all__ = ["inline_asm_elementwise"]


@builtin
def inline_asm_elementwise(
    asm: str,
    constraints: str,
    args: Sequence[Any],
    dtype: dtype | Sequence[dtype],
    is_pure: bool,
    pack: int,
    _semantic: TritonSemantic = GIVEN,
) -> Value:
    """Assembly of the target, applied to `pack` elements at once.

    `constraints` are LLVM's; with several result types the result is a tuple; without arguments it is a scalar.
    On the CPU it is Unsupported, even if the result is unused, unless it only reads a register such as %globaltimer.

    >>> evaluate("tl.inline_asm_elementwise('add.s32 $0, $1, 5;', '=r,r', [x], tl.int32, True, 1)", x=[1, 2])
    array([6, 7], dtype=int32)
    """
    types = unwrap(dtype)
    single = not hasattr(types, "__iter__")
    types = [types] if single else [unwrap(t) for t in types]
    for of in types:
        _semantic.check_type_of_numbers(of)
    if not types:
        raise TypeError("dtype names no type: the assembly has one result, or several")
    inputs = _semantic.broadcast_tensors(*[_semantic.to_tensor(a) for a in unwrap(args)])
    results = [inputs[0].type.with_element_ty(t) if inputs else t for t in types]
    properties: dict[str, Any] = {
        "asm_string": ir.str_attr(_known_text(asm, "asm")),
        "constraints": ir.str_attr(_known_text(constraints, "constraints")),
        "pure": ir.bool_attr(known_flag(is_pure, "is_pure")),
        "packed_element": ir.i32_attr(_known_pack(pack, inputs)),
    }
    op = _semantic.builder.create(
        ir.tt.ElementwiseInlineAsmOp, [t.handle for t in inputs], [t.to_ir() for t in results], properties
    )
    if str(_semantic.target) == "cpu" and ir.register_of(op) is None:
        raise Unsupported("inline_asm_elementwise", "cpu", works_on=("cuda",))
    values = [tensor(r, t) for r, t in zip(op.results, results, strict=True)]
    return values[0] if single else _tuple(values)


def _known_text(value: Any, name: str) -> str:
    text = unwrap(value)
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a text, got {shown(value)}")
    return text


def _known_pack(value: Any, inputs: Sequence[tensor]) -> int:
    """How many elements the assembly takes at once."""
    pack = unwrap(value)
    if not isinstance(pack, int):
        raise TypeError(f"pack must be a constexpr integer, got {shown(value)}")
    numel = inputs[0].numel.value if inputs and inputs[0].type.is_block() else pack
    if pack < 1 or numel % pack:
        raise hinted(
            ValueError(f"pack must be a positive number that divides the number of elements, {numel}, got {pack}"),
            "pack=1 gives the assembly one element at a time",
        )
    return int(pack)


def dispatch(
    func: Any,
    lib_name: str,
    lib_path: str,
    args: list[tensor],
    arg_type_symbol_dict: dict[tuple[dtype, ...], tuple[str, dtype]],
    ret_type: Any,
    is_pure: bool,
    _semantic: TritonSemantic,
) -> tensor:
    """Call the library function for the types of `args`, which have one shape; `func` makes the operation."""
    key = tuple(a.dtype for a in args)
    entry = arg_type_symbol_dict.get(key)
    if entry is None:
        signatures = "; ".join("(" + ", ".join(map(str, types)) + ")" for types in arg_type_symbol_dict)
        raise TypeError(
            f"input argument type ({', '.join(map(str, key))}) is not supported by this function: it takes {signatures}"
        )
    symbol, element = entry
    result = ret_type if ret_type is not None else (args[0].type.with_element_ty(element) if args else element)
    make = func if func is not None else _extern_op(_semantic)
    handle = make(lib_name, lib_path, symbol, [a.handle for a in args], result.to_ir(), is_pure)
    return tensor(handle, result)


def _extern_op(semantic: TritonSemantic) -> Any:
    def make(lib_name: str, lib_path: str, symbol: str, operands: list[Any], type: Any, is_pure: bool) -> Any:
        properties: dict[str, Any] = {
            "libname": ir.str_attr(lib_name),
            "libpath": ir.str_attr(lib_path),
            "symbol": ir.str_attr(symbol),
            "pure": ir.bool_attr(is_pure),
        }
        return semantic.builder.create(ir.tt.ExternElementwiseOp, operands, (type,), properties).result

    return make


@builtin
def extern_elementwise(
    lib_name: str,
    lib_path: str,
    args: list[Any],
    arg_type_symbol_dict: dict[tuple[dtype, ...], tuple[str, dtype]],
    is_pure: bool,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:
    """A library function on every element: `arg_type_symbol_dict` says which one for which types.

    Arguments are broadcast, and promoted to a common type where their own types are not in the table.
    """
    inputs = [_semantic.to_tensor(a) for a in args]
    if tuple(t.dtype for t in inputs) not in arg_type_symbol_dict and len(inputs) > 1:
        common = inputs[0].dtype
        if all(not t.dtype.is_ptr() for t in inputs):
            for value in inputs[1:]:
                common = _semantic.computation_type_impl(common, False, value.dtype, False, False)
            if (common,) * len(inputs) in arg_type_symbol_dict:
                inputs = [_semantic.cast(t, common) for t in inputs]
    inputs = _semantic.broadcast_tensors(*inputs)
    return dispatch(None, lib_name, lib_path, inputs, arg_type_symbol_dict, None, is_pure, _semantic)


def binary_op_type_legalization(lhs: Any, rhs: Any, semantic: TritonSemantic) -> tuple[tensor, tensor]:
    """Two operands in one type and one shape."""
    return semantic.binary_op_type_checking_impl(lhs, rhs)


def extern(fn: Any) -> Any:
    """Mark a function that calls a library function: a builtin."""
    return builtin(fn)
