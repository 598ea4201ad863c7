"""The operations of Triton's dialect `tt`: one class for each, with Triton's names for everything.

    %pid = tt.get_program_id x : i32
    %off = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %ptr = tt.addptr %base, %off : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %val = tt.load %ptr, %mask, %zero : tensor<128x!tt.ptr<f32>>

The class of `tt.get_program_id` is `GetProgramIdOp`. Operands, properties and results are reached by name
(`op.ptr`, `op.mask`, `op.result`). Groups of operands that may be absent need `operandSegmentSizes`
(`weft.ir.segments`); `weft.ir.Builder` sets it. Types are checked by `weft.ir.verify`, not by these classes.

Scalars and tiles go through the same operations: a tile operation with a scalar operand works on a scalar.
"""

from .enums import *
from .tt_compute import *
from .tt_elementwise import *
from .tt_function import *
from .tt_memory import *
from .tt_shape import *
from .types import PtrType as PtrType, TensorDescType as TensorDescType
