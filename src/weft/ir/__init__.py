"""Tile IR: Triton's dialect in xDSL, with a builder, a reader, a writer and a verifier.

The names of operations, their properties and their text are those of Triton 3.6.0; `arith`, `math`, `scf` and `cf`
are MLIR's and come from xDSL. Start with `tt` (the operations), `Builder` (making them) and `types`.

The names load when they are first used: xDSL takes a few tenths of a second to import, and a process whose kernels are
all in the cache, or that only writes them down, needs nothing of it. The dialects `arith`, `math` and `scf` are here
under their own names, so that the language, which is imported by everyone, has one way to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from xdsl.dialects import arith, math, scf

    from . import attrs, extra, tt, types
    from .attrs import (
        bool_attr,
        dense_attr,
        dense_values,
        empty_dict,
        enum_attr,
        float_attr,
        i32_array,
        i32_attr,
        int_attr,
        int_value,
        ints_of,
        segments,
        splat_attr,
        splat_value,
        str_attr,
        symbol_attr,
        unit_attr,
    )
    from .builder import Builder, pointee_of
    from .check import verify
    from .debugging import CheckOp
    from .elementwise import operation
    from .enums import PropagateNan
    from .extra import AssumeOp, BarrierOp
    from .locations import argument_name, call_site_loc, file_loc, hint_of, loc_of, name_loc, span_of, span_of_loc
    from .signature import flattened_descriptor, signature_of, type_string
    from .special_registers import CLOCKS, FIXED_REGISTERS, register_of
    from .telling import site_of, span_of_value, tile_text
    from .text import OpaqueAttr, ParseError, parse_module, print_module, type_text
    from .types import (
        PtrType,
        TensorDescType,
        bf16,
        bit_width,
        element_of,
        f8E4M3FN,
        f8E4M3FNUZ,
        f8E5M2,
        f8E5M2FNUZ,
        f16,
        f32,
        f64,
        function_type,
        i1,
        i8,
        i16,
        i32,
        i64,
        index,
        int_type,
        is_float,
        is_int,
        is_pointer,
        is_tensor,
        like,
        numel_of,
        ptr_of,
        shape_of,
        signed_int_type,
        signless,
        tensor_of,
        tensordesc_of,
    )
    from .walking import walk

__all__ = [
    # dialects
    "tt",
    "arith",
    "math",
    "scf",
    "extra",
    "types",
    "attrs",
    "AssumeOp",
    "BarrierOp",
    "CheckOp",
    "operation",
    # assembly that a CPU has an equivalent of
    "CLOCKS",
    "FIXED_REGISTERS",
    "register_of",
    # making IR
    "Builder",
    # going through it
    "walk",
    # types
    "PtrType",
    "TensorDescType",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "index",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f8E5M2",
    "f8E4M3FN",
    "f8E4M3FNUZ",
    "f8E5M2FNUZ",
    "int_type",
    "signed_int_type",
    "signless",
    "tensor_of",
    "ptr_of",
    "tensordesc_of",
    "function_type",
    "like",
    "shape_of",
    "element_of",
    "numel_of",
    "bit_width",
    "pointee_of",
    "is_float",
    "is_int",
    "is_pointer",
    "is_tensor",
    # attributes
    "PropagateNan",
    "int_attr",
    "i32_attr",
    "bool_attr",
    "enum_attr",
    "float_attr",
    "str_attr",
    "unit_attr",
    "symbol_attr",
    "empty_dict",
    "i32_array",
    "segments",
    "splat_attr",
    "dense_attr",
    "splat_value",
    "dense_values",
    "int_value",
    "ints_of",
    # signatures
    "signature_of",
    "type_string",
    "flattened_descriptor",
    # text
    "parse_module",
    "print_module",
    "type_text",
    "ParseError",
    "verify",
    "OpaqueAttr",
    # places
    "file_loc",
    "loc_of",
    "name_loc",
    "argument_name",
    "call_site_loc",
    "hint_of",
    "span_of",
    "span_of_loc",
    # for remarks
    "site_of",
    "span_of_value",
    "tile_text",
]

__getattr__ = lazy_face(
    __name__,
    {
        "attrs": (
            "bool_attr dense_attr dense_values empty_dict enum_attr float_attr i32_array i32_attr int_attr "
            "int_value ints_of segments splat_attr splat_value str_attr symbol_attr unit_attr"
        ),
        "builder": "Builder pointee_of",
        "check": "verify",
        "debugging": "CheckOp",
        "enums": "PropagateNan",
        "elementwise": "operation",
        "extra": "AssumeOp BarrierOp",
        "locations": "argument_name call_site_loc file_loc hint_of loc_of name_loc span_of span_of_loc",
        "signature": "flattened_descriptor signature_of type_string",
        "special_registers": "CLOCKS FIXED_REGISTERS register_of",
        "telling": "site_of span_of_value tile_text",
        "text": "OpaqueAttr ParseError parse_module print_module type_text",
        "types": (
            "PtrType TensorDescType bf16 bit_width element_of f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f16 f32 f64 "
            "function_type i1 i8 i16 i32 i64 index int_type is_float is_int is_pointer is_tensor like numel_of "
            "ptr_of shape_of signed_int_type signless tensor_of tensordesc_of"
        ),
        "walking": "walk",
    },
    {
        **{name: f"{__name__}.{name}" for name in ("attrs", "extra", "tt", "types")},
        **{name: f"xdsl.dialects.{name}" for name in ("arith", "math", "scf")},
    },
)
