"""Turn accesses through one pointer and a tile of offsets into loads and stores through tiles of pointers.

    %v = amdg.buffer_load %p[%offsets], %mask : tensor<64xf32, #blocked>
becomes
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>
    %1 = tt.addptr %0, %offsets : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
    %v = tt.load %1, %mask : tensor<64x!tt.ptr<f32>, #blocked>

so that all passes over loads and stores apply to them. The lowering finds the one pointer and the offsets of 32 bits
again, as it does for `tl.load(p + offsets)`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from weft.ir import Builder, find, like, segments, tt
from weft.ir.amd.amdg import BufferLoadOp, BufferStoreOp

from ..removal import remove


def expand_buffers(module: ModuleOp) -> None:
    """Rewrite all buffer accesses of a module of layout IR."""
    for load in find(module, BufferLoadOp):
        b = Builder.before(load)
        read = [x for x in (_pointers(b, load), load.mask, load.other) if x is not None]
        sizes = segments(1, int(load.mask is not None), int(load.other is not None))
        new = b.create(tt.LoadOp, read, (load.result.type,), {**_cache(load), "operandSegmentSizes": sizes})
        new.result.name_hint = load.result.name_hint
        load.result.replace_all_uses_with(new.result)
        remove(load)
    for store in find(module, BufferStoreOp):
        b = Builder.before(store)
        written = [x for x in (_pointers(b, store), store.value, store.mask) if x is not None]
        b.create(tt.StoreOp, written, (), _cache(store))
        remove(store)


def _pointers(b: Builder, op: BufferLoadOp | BufferStoreOp) -> SSAValue:
    tile = like(op.offsets.type, op.ptr.type)
    splat = b.create(tt.SplatOp, (op.ptr,), (tile,)).results[0]
    return b.create(tt.AddPtrOp, (splat, op.offsets), (tile,)).results[0]


def _cache(op: BufferLoadOp | BufferStoreOp) -> dict[str, Attribute]:
    return {} if op.cache is None else {"cache": op.cache}
