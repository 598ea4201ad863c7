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

from .enums import (
    CacheModifier,
    DescriptorReduceKind,
    EvictionPolicy,
    InputPrecision,
    MemSemantic,
    MemSyncScope,
    PaddingOption,
    ProgramDim,
    PropagateNan,
    RMWOp,
    RoundingMode,
    ScaleDotElemType,
)
from .tt_compute import (
    DotOp,
    DotScaledOp,
    ElementwiseInlineAsmOp,
    ExternElementwiseOp,
    GatherOp,
    HistogramOp,
    MapElementwiseOp,
    MapElementwiseReturnOp,
    ReduceOp,
    ReduceReturnOp,
    ScanOp,
    ScanReturnOp,
)
from .tt_elementwise import (
    AddPtrOp,
    BitcastOp,
    ClampFOp,
    FpToFpOp,
    IntToPtrOp,
    PtrToIntOp,
)
from .tt_function import AssertOp, CallOp, FuncOp, GetNumProgramsOp, GetProgramIdOp, PrintOp, ReturnOp
from .tt_memory import (
    AdvanceOp,
    AtomicCASOp,
    AtomicLoadOp,
    AtomicPollOp,
    AtomicRMWOp,
    AtomicStoreOp,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    LoadOp,
    MakeTensorDescriptorOp,
    MakeTensorPtrOp,
    StoreOp,
)
from .tt_shape import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    JoinOp,
    MakeRangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransOp,
    UnsplatOp,
)
from .types import PtrType, TensorDescType

__all__ = [
    # types
    "PtrType",
    "TensorDescType",
    # enumerations
    "CacheModifier",
    "DescriptorReduceKind",
    "EvictionPolicy",
    "InputPrecision",
    "MemSemantic",
    "MemSyncScope",
    "PaddingOption",
    "ProgramDim",
    "PropagateNan",
    "RMWOp",
    "RoundingMode",
    "ScaleDotElemType",
    # functions and programs
    "FuncOp",
    "CallOp",
    "ReturnOp",
    "GetProgramIdOp",
    "GetNumProgramsOp",
    "PrintOp",
    "AssertOp",
    # element by element
    "AddPtrOp",
    "BitcastOp",
    "ClampFOp",
    "FpToFpOp",
    "IntToPtrOp",
    "PtrToIntOp",
    # shapes
    "MakeRangeOp",
    "SplatOp",
    "UnsplatOp",
    "ExpandDimsOp",
    "BroadcastOp",
    "ReshapeOp",
    "TransOp",
    "CatOp",
    "JoinOp",
    "SplitOp",
    # memory
    "LoadOp",
    "StoreOp",
    "AtomicRMWOp",
    "AtomicCASOp",
    "AtomicLoadOp",
    "AtomicStoreOp",
    "AtomicPollOp",
    "MakeTensorPtrOp",
    "AdvanceOp",
    "MakeTensorDescriptorOp",
    "DescriptorLoadOp",
    "DescriptorStoreOp",
    "DescriptorReduceOp",
    "DescriptorGatherOp",
    "DescriptorScatterOp",
    # many elements at once
    "DotOp",
    "DotScaledOp",
    "ReduceOp",
    "ReduceReturnOp",
    "ScanOp",
    "ScanReturnOp",
    "MapElementwiseOp",
    "MapElementwiseReturnOp",
    "ExternElementwiseOp",
    "ElementwiseInlineAsmOp",
    "HistogramOp",
    "GatherOp",
]
