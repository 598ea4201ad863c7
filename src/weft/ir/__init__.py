"""Tile IR: Triton's dialect in xDSL, with a builder, a reader, a writer and a verifier.

The names of operations, their properties and their text are those of Triton 3.6.0; `arith`, `math`, `scf` and `cf`
are MLIR's and come from xDSL. Start with `tt` (the operations), `Builder` (making them) and `types`.

The names load when they are first used: xDSL takes a few tenths of a second to import, and a process whose kernels are
all in the cache, or that only writes them down, needs nothing of it. The dialects `arith`, `math` and `scf` are here
under their own names, so that the language, which is imported by everyone, has one way to them.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from xdsl.dialects import arith as arith, math as math, scf as scf

    from . import attrs as attrs, extra as extra, tt as tt, types as types
    from .attrs import *
    from .builder import *
    from .check import verify as verify
    from .debugging import *
    from .elementwise import operation as operation
    from .enums import PropagateNan as PropagateNan
    from .extra import *
    from .locations import *
    from .signature import *
    from .special_registers import *
    from .telling import *
    from .text import (
        OpaqueAttr as OpaqueAttr,
        ParseError as ParseError,
        parse_module as parse_module,
        print_module as print_module,
        type_text as type_text,
    )
    from .types import *
    from .walking import *

__getattr__ = lazy_face(
    __name__,
    {
        "attrs": (
            "bool_attr dense_attr dense_values empty_dict enum_attr float_attr i32_array i32_attr int_attr "
            "int_value ints_of segments splat_attr splat_value str_attr unit_attr"
        ),
        "builder": "Builder access_hints pointee_of",
        "check": "verify",
        "debugging": "CheckOp",
        "enums": "PropagateNan",
        "elementwise": "operation",
        "extra": "AssumeOp BarrierOp EndUnlessOp",
        "locations": "UNKNOWN_LOC argument_name call_site_loc file_loc hint_of loc_of name_loc span_of span_of_loc",
        "signature": "flattened_descriptor signature_of type_string",
        "special_registers": "CLOCKS FIXED_REGISTERS NANOSECONDS register_of",
        "telling": "site_of span_of_value tile_text",
        "text": "OpaqueAttr ParseError parse_module print_module type_text",
        "types": (
            "AliasOf Encoding FLOAT_BY_NAME Laid PtrType TensorDescType bf16 bit_width element_of f16 f32 f64 "
            "f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ function_type i1 i16 i32 i64 i8 index int_type is_float is_int "
            "is_pointer is_tensor like numel_of ptr_of shape_of signed_int_type signless tensor_of tensordesc_of"
        ),
        "walking": "find successors values_in walk",
    },
    {
        **{name: f"{__name__}.{name}" for name in ("attrs", "extra", "tt", "types")},
        **{name: f"xdsl.dialects.{name}" for name in ("arith", "math", "scf")},
    },
)
