"""Fences between asynchronous copies by threads and products that read what they copied from shared memory.

    %t = ttg.async_wait {num = 1}                       %t = ttg.async_wait {num = 1}
    %d = ttng.warp_group_dot %a, %b, %c     becomes     ttng.fence_async_shared {bCluster = false}
                                                        %d = ttng.warp_group_dot %a, %b, %c

`cp.async` writes as the thread itself would, wgmma reads through the asynchronous proxy; between the two there must be
a fence (PTX ISA, wgmma.mma_async). Triton writes none where it copies iterations ahead, in its layout IR and in its
PTX. For layout IR as text only: in a Gluon kernel the author decides.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from weft.ir import Builder, bool_attr, walk
from weft.ir.gpu.ttg import AsyncCopyGlobalToLocalOp, AsyncWaitOp
from weft.ir.gpu.ttng import FenceAsyncSharedOp, WarpGroupDotOp


def fence_copies(module: ModuleOp) -> None:
    """Put a fence after each wait for copies that has none, in a module with products of warp groups."""
    ops = list(walk(module))
    if not all(any(isinstance(op, kind) for op in ops) for kind in (AsyncCopyGlobalToLocalOp, WarpGroupDotOp)):
        return
    for op in ops:
        if isinstance(op, AsyncWaitOp) and not isinstance(op.next_op, FenceAsyncSharedOp):
            Builder.after(op).create(FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})
